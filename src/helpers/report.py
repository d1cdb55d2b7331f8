"""From the logs of ranks to the lines that a page shows."""

import codecs
import re
from collections import deque
from pathlib import Path

HEAD, TAIL = 400, 100  # lines shown of a rank that prints more
WIDTH = 2000  # characters shown of a line
CHUNK = 1 << 20  # bytes

# Lines of torch's and gloo's own loggers, with times, pids and addresses that never repeat.
NOISE = re.compile(r"(\[rank\d+\]: ?)?\[?[IWEF]\d{4} \d\d:\d\d:\d\d|\[Gloo\] Rank \d+ is connected")


class Log:
    """One log file, read as it grows: complete lines, without noise, capped."""

    def __init__(self, folder: Path, rank: int, stream: str):
        self.rank, self.stream = rank, stream
        self.shown: list[str] = []
        self._pattern = f"logs/*/attempt_*/{rank}/{stream}.log"
        self._folder, self._file = folder, None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._partial, self._silent = "", False
        self._left_out, self._last = 0, deque(maxlen=TAIL)

    def new_lines(self) -> list[str]:
        """Lines that came since the last call, until HEAD of them were shown."""
        if self._file is None:
            self._file = next((open(p, "rb") for p in self._folder.glob(self._pattern)), None)  # noqa: SIM115
        before = len(self.shown)
        while self._file and (data := self._file.read(CHUNK)):
            *lines, self._partial = (self._partial + self._decode(data)).split("\n")
            for line in lines:
                self._take(line)
        return self.shown[before:]

    def last_lines(self) -> list[str]:
        """After the end: the unfinished line, how many lines are left out, and the last ones."""
        before = len(self.shown)
        self.new_lines()
        if self._partial:
            self._take(self._partial)
        if self._file:
            self._file.close()
        if left_out := self._left_out - len(self._last):
            self.shown.append(f"... {left_out:,} lines left out ...")
        self.shown.extend(self._last)
        return self.shown[before:]

    def _take(self, line: str) -> None:
        line = line.rstrip("\r").rpartition("\r")[2]  # a progress bar: what it says in the end
        self._silent |= self.stream == "stderr" and line.startswith("Fatal Python error:")
        if self._silent or NOISE.match(line):  # stacks are told by helpers.failures
            return
        if len(line) > WIDTH:
            line = f"{line[:WIDTH]} ... {len(line) - WIDTH:,} characters left out"
        if len(self.shown) < HEAD:
            self.shown.append(line)
        else:
            self._left_out += 1
            self._last.append(line)


class Logs:
    """What all ranks print. Live: as it comes, stderr too; else stdout, by rank, at the end."""

    def __init__(self, folder: Path, nproc: int, live: bool):
        self.live = live
        streams = ("stdout", "stderr") if live else ("stdout",)
        self._logs = [Log(folder, rank, stream) for rank in range(nproc) for stream in streams]

    def print_new(self) -> None:
        if self.live:
            for log in self._logs:
                _print(log.rank, log.new_lines())

    def print_rest(self) -> None:
        for log in self._logs:
            _print(log.rank, log.last_lines())

    def stdout(self) -> list[str]:
        """What was shown of each rank's stdout, in rank order."""
        return ["\n".join(log.shown) for log in self._logs if log.stream == "stdout"]


def stderr_of(folder: Path, rank: int) -> str:
    """The end of a rank's stderr, without noise."""
    for path in folder.glob(f"logs/*/attempt_*/{rank}/stderr.log"):
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - CHUNK))
            return without_noise(file.read().decode("utf-8", "replace"))
    return ""


def without_noise(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not NOISE.match(line))


def _print(rank: int, lines: list[str]) -> None:
    if lines:
        print("\n".join(f"[rank {rank}] {line}".rstrip() for line in lines), flush=True)

"""Says on stderr where a build is: chapter, cell, elapsed, executed or cached."""

import sys
import threading
import time
from contextlib import suppress
from typing import TextIO

WIDTH = 20  # of the bar, in characters
LINE_EVERY = 30.0  # seconds between lines about one chapter where there is no terminal


class Progress:
    """One bar on a terminal; elsewhere (a log) a line when something is worth one."""

    def __init__(self, chapters: int, stream: TextIO = sys.stderr):
        self.total, self.stream = chapters, stream
        self.bar = stream.isatty()
        self.place, self.key, self.cells, self.cell_number = 0, "", 0, 0
        self.began = self.printed = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._tick, daemon=True).start()

    def chapter(self, key: str, cells: int) -> None:
        """The next chapter begins, with that many code cells."""
        self.place, self.key, self.cells, self.cell_number = self.place + 1, key, cells, 0
        self.began = time.monotonic()

    def cell(self, number: int) -> None:
        """Code cell `number` of the chapter begins."""
        self.cell_number = number
        if self.bar:
            self._draw()

    def note(self, text: str) -> None:
        """What happens to the chapter as a whole: it is cached, it is executed, it failed."""
        self.cell_number = 0
        self.say(f"[{self.place}/{self.total}] {self.key}: {text}")

    def elapsed(self) -> str:
        """Since the chapter began, as minutes:seconds."""
        return "{}:{:02}".format(*divmod(int(time.monotonic() - self.began), 60))

    def say(self, line: str) -> None:
        """A line that stays."""
        with self._lock:
            self.stream.write(f"\r\x1b[K{line}\n" if self.bar else f"{line}\n")
            self.stream.flush()
            self.printed = time.monotonic()

    def close(self) -> None:
        """No more lines."""
        self._ended.set()

    def _state(self) -> str:
        return f"{self.key}  cell {self.cell_number}/{self.cells}  {self.elapsed()}"

    def _draw(self) -> None:
        done = WIDTH * (self.cell_number - 1) // max(self.cells, 1)
        with self._lock, suppress(ValueError):  # the stream was closed at exit
            bar = "#" * done + "." * (WIDTH - done)
            self.stream.write(f"\r\x1b[K[{bar}] {self.place}/{self.total} {self._state()}")
            self.stream.flush()

    def _tick(self) -> None:
        """Elapsed moves while a long cell runs."""
        while not self._ended.wait(1.0):
            if self.cell_number and self.bar:
                self._draw()
            elif self.cell_number and time.monotonic() - self.printed > LINE_EVERY:
                self.say(self._state())

"""A rank that is forked from torchrun finds what one finds that torchrun has started anew."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import agent

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
LOOK = """
import faulthandler, inspect, json, os, pickle, random, signal, sys, threading
import numpy
import torch

class Pair(tuple):
    pass

names = [s for s in signal.Signals if s not in (signal.SIGKILL, signal.SIGSTOP)]
facts = {
    "argv": sys.argv,
    "file": __file__,
    "path": sys.path,
    "main": sorted(set(globals()) & {"__name__", "__file__", "__builtins__", "__doc__"}),
    "pickled": pickle.loads(pickle.dumps(Pair([1, 2]))) == Pair([1, 2]),
    "source": inspect.getsource(Pair),
    "signals": {s.name: str(signal.getsignal(s)) for s in names},
    "files": sorted(int(f) for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}")),
    "leads its session": os.getsid(0) == os.getpid(),
    "parent": open(f"/proc/{os.getppid()}/cmdline").read().count("probe.py"),
    "cwd": os.getcwd(),
    "threads": [t.name for t in threading.enumerate()],
    "torch's threads": torch.get_num_threads(),
    "draws": [torch.initial_seed(), torch.rand(()).item(), random.random(), numpy.random.rand()],
    "faulthandler": faulthandler.is_enabled(),
    "environment": dict(os.environ),
    "child's": eval(os.popen(f"{sys.executable} -c 'import os; print(dict(os.environ))'").read()),
    "encodings": [sys.stdout.encoding, sys.stdout.errors, sys.stderr.encoding, sys.stderr.errors],
}
del facts["environment"]["TORCHELASTIC_RUN_ID"], facts["child's"]["TORCHELASTIC_RUN_ID"]
for each in (facts["environment"], facts["child's"]):
    for name in ("MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "_"):
        each.pop(name, None)
json.dump(facts, open(f"facts.{os.environ['RANK']}", "w"))
"""


def look(command: list[str], folder: Path) -> list[dict]:
    """What two ranks find under `command`, without what no two runs have in common."""
    folder.mkdir()
    (folder / "probe.py").write_text(LOOK, encoding="utf-8")
    line = ["--standalone", "--nproc-per-node", "2", "--redirects", "3", "--log-dir", "logs"]
    env = {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", "PYTHONIOENCODING": "utf-8"}
    subprocess.run(
        [*command, *line, str(folder / "probe.py"), "--flag", "ü"],
        cwd=folder,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=True,
    )
    texts = [(folder / f"facts.{rank}").read_text() for rank in range(2)]
    return [json.loads(text.replace(str(folder), "FOLDER")) for text in texts]


def test_it_finds_the_same_world(tmp_path):
    forked, anew = look(agent.COMMAND, tmp_path / "forked"), look(TORCHRUN, tmp_path / "anew")
    draws = [rank.pop("draws") for rank in (*forked, *anew)]
    assert forked == anew and forked[0] != forked[1]  # the environment holds their numbers
    assert all(len(set(drawn)) == 4 for drawn in zip(*draws, strict=True))  # no seed is inherited


ENDINGS = {
    "returns": "pass",
    "leaves": "sys.exit()",
    "leaves with a number": "sys.exit(3)",
    "leaves with a text": "sys.exit('no data')",
    "raises": "def f():\n    raise ValueError('ü')\nf()",
    "does not parse": "def f(:\n    pass",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "is interrupted": "raise KeyboardInterrupt",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_alike(tmp_path, ending):
    program = f"import sys\nprint('half a line', end='')\n{ENDINGS[ending]}\n"
    (tmp_path / "probe.py").write_text(program, encoding="utf-8")
    found = []
    for start in (agent.ForkedRank, subprocess.Popen):
        with open(tmp_path / "out", "w+") as out, open(tmp_path / "err", "w+") as err:
            args = (sys.executable, "-u", str(tmp_path / "probe.py"))
            process = start(args, env=dict(os.environ), stdout=out, stderr=err)
            code = process.wait(timeout=60)
            out.seek(0), err.seek(0)
            found.append((process.poll(), code, out.read(), err.read()))
    assert found[0] == found[1]


def test_waiting_for_it_has_an_end(tmp_path):
    (tmp_path / "probe.py").write_text("import time\ntime.sleep(600)")
    with open(os.devnull, "w") as null:
        rank = agent.ForkedRank(("", "", str(tmp_path / "probe.py")), {}, null, null)
    try:
        assert rank.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            rank.wait(timeout=0.1)
    finally:
        os.kill(rank.pid, signal.SIGKILL)
    assert rank.wait(timeout=10) == rank.poll() == -signal.SIGKILL


def test_torchruns_own_errors_are_told():
    command = [*agent.COMMAND, "--nnodes", "no number", "probe.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "ValueError" in done.stderr

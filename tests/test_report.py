"""From logs and errors to what a page shows, without processes."""

import json

import pytest

from helpers.failures import Fate, _fates, root_cause
from helpers.places import Places, scrub
from helpers.report import HEAD, Log, Logs

PEER = "[/pytorch/third_party/gloo/pair.cc:547] Connection closed by peer [127.0.0.1]:43829"


def logs_of(folder, rank, stdout=b"", stderr=b""):
    place = folder / "logs" / "run_x" / "attempt_0" / str(rank)
    place.mkdir(parents=True)
    (place / "stdout.log").write_bytes(stdout)
    (place / "stderr.log").write_bytes(stderr)
    return place


@pytest.mark.parametrize(
    ("fates", "root"),
    [
        # The killed rank, though the other one's error is known to the millisecond.
        ([Fate(0, "RuntimeError", 10.2, PEER), Fate(1, "SIGKILL", 11.0)], 1),
        # The survivor that torchrun ended, or that it had to kill for not ending.
        ([Fate(0, "SIGTERM", 9.0), Fate(1, "ValueError", 10.3, "x")], 1),
        ([Fate(0, "SIGKILL", 13.0), Fate(1, "ValueError", 10.3, "x")], 1),
        # An abort of gloo because its peer was gone.
        ([Fate(0, "SIGABRT", 9.0, stderr=PEER), Fate(1, "exit code 3", 9.5)], 1),
        # The same error on all ranks, and another one after it.
        ([Fate(0, "TypeError", 2.1, "x"), Fate(1, "TypeError", 2.0, "x")], 0),
        ([Fate(0, "TypeError", 2.1, "y"), Fate(1, "TypeError", 2.0, "x")], 1),
        ([Fate(0, "SIGTERM", 9.0), Fate(1, "SIGTERM", 9.0)], 0),
    ],
)
def test_root_cause(fates, root):
    assert root_cause(fates).rank == root


SUMMARY = """
W1129 18:23:01.123000 4242 torch/elastic/api.py:1] Sending process 77 closing signal SIGTERM
============================================================
/a/b/probe.py FAILED
------------------------------------------------------------
Failures:
[0]:
  time      : 2025-11-29_18:23:02
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 4241)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[1]:
  time      : 2025-11-29_18:23:01
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 4242) (SIGKILL)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4242
============================================================
"""
EARLY = b"""W1129 18:23:01.123000 4241 torch/x.py:1] noise
a warning
Traceback (most recent call last):
  File "/a/b/probe.py", line 1, in <module>
    import nonesuch
ModuleNotFoundError: No module named 'nonesuch'
and a second line
"""


def test_fates_from_the_summary_and_from_errors(tmp_path):
    (tmp_path / "torchrun.log").write_text(SUMMARY)
    logs_of(tmp_path, 0, stderr=EARLY)
    logs_of(tmp_path, 1)
    error = {"time": 5.0, "type": "OSError", "message": "m", "traceback": "t"}
    (tmp_path / "error.2").write_text(json.dumps(error))
    fates = _fates(tmp_path, 3)
    assert fates[0].headline == "rank 0: ModuleNotFoundError: No module named 'nonesuch'"
    assert fates[0].traceback.startswith("Traceback") and fates[0].stderr == "a warning"
    assert fates[1].headline == "rank 1: SIGKILL"
    assert fates[2] == Fate(2, "OSError", 5.0, "m", "t")
    assert fates[0].time - fates[1].time == 1.0


def test_scrub():
    assert scrub(PEER) == "Connection closed by peer [127.0.0.1]"
    assert scrub("localhost:29500, pid 12, (pid: 3)") == "localhost, pid ..., (pid: ...)"
    assert scrub("No such file: '/a/b c/d.pt'") == "No such file: 'd.pt'"
    kept = "x = [1]/b/c, 1/2/3, see https://pytorch.org/docs/a"
    assert scrub(kept) == kept


def test_log_as_it_grows(tmp_path):
    log = Log(tmp_path, 0, "stdout")
    assert log.new_lines() == []
    place = logs_of(tmp_path, 0)
    with open(place / "stdout.log", "wb", buffering=0) as file:
        euro = "€".encode()
        file.write(b"one\ntw")
        assert log.new_lines() == ["one"]
        file.write(b"o\n[Gloo] Rank 0 is connected to 1 peer ranks.\n" + euro[:1])
        assert log.new_lines() == ["two"]
        file.write(euro[1:] + b"\n1%\r50%\r100%\r\n" + b"x" * 3000 + b"\n")
        long = "x" * 2000 + " ... 1,000 characters left out"
        assert log.new_lines() == ["€", "100%", long]
        file.write(b"line\n" * (HEAD + 1000) + b"end")
        assert len(log.new_lines()) == HEAD - 5
        last = log.last_lines()
    assert (last[0], len(last), last[-1]) == ("... 906 lines left out ...", 101, "end")


@pytest.mark.parametrize("live", [True, False])
def test_which_streams_are_shown(tmp_path, capsys, live):
    stderr = b"careful\n[W1129 18:23:01.1 x.cpp:5] noise\nFatal Python error: Aborted\n  File\n"
    logs_of(tmp_path, 0, b"said\n", stderr)
    logs = Logs(tmp_path, 1, live)
    logs.print_new()
    shown = ["[rank 0] said", "[rank 0] careful"] if live else []
    assert capsys.readouterr().out.splitlines() == shown
    logs.print_rest()
    assert capsys.readouterr().out.splitlines() == ([] if live else ["[rank 0] said"])
    assert logs.stdout() == ["said"]


@pytest.mark.parametrize("recording", [True, False])
def test_places(book_copy, tmp_path, monkeypatch, recording):
    monkeypatch.setenv("BOOK_RECORDING", "1" if recording else "0")
    page = book_copy.page(
        "part/topic", "```{code-cell}\nfirst\n```", "```{code-cell}\n%%torchrun\nf()\n```"
    )
    md_line = page.read_text().split("\n").index("f()") + 1
    (tmp_path / "probe.py").write_text("\n\nf()\n")
    library = (
        '  File "/usr/lib/python3.11/site-packages/torch/nn/m.py", line {}, in call\n    x()\n'
    )
    text = (
        "Traceback (most recent call last):\n"
        f'  File "{tmp_path}/probe.py", line 3, in <module>\n    f()\n    ^^^\n'
        + "".join(map(library.format, (1, 2, 3)))
        + "ValueError: bad\n    at /a/b/c.py\n"
    )
    shown = Places(tmp_path, "probe", "part/topic", {3: (2, 2)}).rewrite(text)
    where, at = ("", "") if recording else (f" (chapters/part/topic.md:{md_line})", ", line {}")
    assert shown == [
        "Traceback (most recent call last):",
        f"  part/topic, cell 2, line 2{where}, in <module>",
        "    f()",
        "  ... 1 more in libraries ...",
        f"  torch/nn/m.py{at.format(2)}, in call",
        f"  torch/nn/m.py{at.format(3)}, in call",
        "ValueError: bad",
        f"    at {'c.py' if recording else '/a/b/c.py'}",
    ]

import time

import pytest
from IPython.core.interactiveshell import InteractiveShell

from helpers import BookError, check, exercise, paths
from helpers import broken as broken_programs
from helpers.broken import broken
from helpers.exercises import load_program, run_on_ranks, run_program

PROGRAM = "LIMIT = 1\nprint('running')\nif __name__ == '__main__':\n    print('limit', LIMIT)\n"
CHECK = """
from helpers.exercises import load_program

def check(source):
    print("noise of the check")
    assert load_program(source).LIMIT > 1, "the limit is still too low"
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A broken program called "slow" in a checkout of its own."""
    monkeypatch.setattr(paths, "DATA", tmp_path)
    monkeypatch.setattr(broken_programs, "_programs", {})
    folder = tmp_path / "broken" / "slow"
    folder.mkdir(parents=True)
    for name, text in {
        "program.py": PROGRAM,
        "cosmetic.py": PROGRAM.replace("LIMIT", "limit"),
        "cure.py": PROGRAM.replace("= 1", "= 2"),
        "check.py": CHECK,
    }.items():
        (folder / name).write_text(text)
    return folder


def attempt(error):
    with exercise("ex-jit"):
        if error is not None:
            raise error


@pytest.mark.parametrize(
    "error, text",
    [
        (None, "ex-jit: solved"),
        (AssertionError("two captures"), "ex-jit: not yet: two captures"),
        (AssertionError(), "ex-jit: not yet: the check does not hold"),
        (NotImplementedError("your turn"), "ex-jit: not yet: your turn"),
        (NotImplementedError(), "ex-jit: not yet: the blank is still to be filled"),
        (NameError("name 'jit' is not defined"), "ex-jit: not yet: name 'jit' is not defined"),
        (RuntimeError("rank 1: NotImplementedError: your turn"),
         "ex-jit: not yet: rank 1: NotImplementedError: your turn"),
    ],
)  # fmt: skip
def test_exercise_tells_how_far_the_reader_is(error, text, capsys):
    attempt(error)
    assert capsys.readouterr().out == text + "\n"


def test_a_blank_inside_wrapped_errors_is_still_a_blank(capsys):
    with exercise("ex-jit"):
        try:
            raise NotImplementedError("your turn")
        except NotImplementedError as error:
            raise RuntimeError("from user code") from error
    assert capsys.readouterr().out == "ex-jit: not yet: your turn\n"


def test_other_errors_are_shown_whole():
    with pytest.raises(ZeroDivisionError):
        attempt(ZeroDivisionError("division by zero"))


@pytest.mark.parametrize(
    "error", [AssertionError("no"), NotImplementedError("your turn"), NameError("x")]
)
def test_while_recording_any_failure_raises(error, monkeypatch):
    monkeypatch.setenv("BOOK_RECORDING", "1")
    with pytest.raises(type(error)):
        attempt(error)
    attempt(None)


def test_check_judges_what_the_reader_last_ran(slow, capsys):
    broken("slow", PROGRAM)
    assert capsys.readouterr().out == "running\nlimit 1\n"
    check("slow")
    assert capsys.readouterr().out == "slow: not yet: the limit is still too low\n"
    broken("slow", PROGRAM.replace("= 1", "= 3"))
    capsys.readouterr()
    check("slow")
    assert capsys.readouterr().out == "slow: cured\n"


def test_check_of_a_program_that_fails_is_not_a_cure(slow, capsys):
    with pytest.raises(ZeroDivisionError):
        broken("slow", "LIMIT = 1 / 0")
    check("slow")
    assert capsys.readouterr().out == "slow: not yet: ZeroDivisionError: division by zero\n"


def test_stored_cure_is_shown_and_judged(slow, capsys):
    check("slow", cure=True)
    out = capsys.readouterr().out
    assert "-LIMIT = 1\n+LIMIT = 2\n" in out and out.endswith("slow: cured\n")
    (slow / "cure.py").write_text(PROGRAM)
    with pytest.raises(AssertionError, match="still too low"):
        check("slow", cure=True)


def test_a_check_that_accepts_the_broken_program_is_a_defect(slow):
    (slow / "check.py").write_text("def check(source): pass")
    broken("slow", PROGRAM)
    with pytest.raises(BookError, match="accepts the broken program"):
        check("slow")


def test_check_before_the_program_ran(slow):
    with pytest.raises(BookError, match="%%broken slow first"):
        check("slow")


def test_unknown_program_and_option(slow):
    with pytest.raises(BookError, match=r"no broken program 'slwo'\. There are: slow"):
        check("slwo")
    with pytest.raises(BookError, match="Write: %%broken NAME"):
        broken("", PROGRAM)
    with pytest.raises(BookError, match="--exepct"):
        broken("slow --exepct X", PROGRAM)


def test_the_book_is_not_built_on_a_program_that_fails_for_another_reason(
    slow, capsys, monkeypatch
):
    monkeypatch.setenv("BOOK_RECORDING", "1")
    broken("slow", PROGRAM)
    (slow / "symptom.txt").write_text("limit is .* too low")
    check("slow")
    assert "not yet: the limit is still too low" in capsys.readouterr().out
    (slow / "symptom.txt").write_text("limit is gone")
    with pytest.raises(AssertionError, match="still too low"):
        check("slow")


def test_expected_symptom(slow, capsys, monkeypatch):
    failing = "raise RuntimeError('modified in place')"
    broken("slow --expect RuntimeError", failing)
    assert capsys.readouterr().out == "RuntimeError: modified in place\n"
    with pytest.raises(RuntimeError):
        broken("slow --expect ValueError", failing)
    broken("slow --expect RuntimeError", PROGRAM)  # the reader has cured it: no complaint
    monkeypatch.setenv("BOOK_RECORDING", "1")
    with pytest.raises(BookError, match="raised no RuntimeError"):
        broken("slow --expect RuntimeError", PROGRAM)


def test_the_book_shows_exactly_the_stored_program(slow, monkeypatch):
    monkeypatch.setenv("BOOK_RECORDING", "1")
    broken("slow", PROGRAM.rstrip("\n"))
    with pytest.raises(BookError, match=r"differs from data/broken/slow/program\.py"):
        broken("slow", PROGRAM + "# edited")


def test_the_magic_in_a_notebook(slow, capsys):
    shell = InteractiveShell.instance()
    try:
        broken_programs.register(shell)
        shell.run_cell("%%broken slow\n" + PROGRAM).raise_error()
        assert "LIMIT" not in shell.user_ns
    finally:
        InteractiveShell.clear_instance()
    check("slow")
    assert "not yet" in capsys.readouterr().out


def test_loaded_program_is_a_module_with_source_that_dynamo_can_compile():
    import inspect

    import torch

    from helpers import GraphRecorder

    source = (
        "import dataclasses, torch\n"
        "@dataclasses.dataclass\nclass Size:\n    width: 'int' = 2\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return x.relu()\n"
    )
    first, second = load_program(source), load_program(source)
    assert first is not second and first.Size().width == 2
    assert inspect.getsource(second.Net).startswith("class Net")
    rec = GraphRecorder()
    torch.compile(first.Net(), backend=rec)(torch.ones(2))
    assert len(rec) == 1


def test_run_program_gives_output_and_exit_status():
    run = run_program("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (run.returncode, run.stdout, run.stderr) == (3, "out\n", "err\n")


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    survived = tmp_path / "survived"
    child = f"import time; time.sleep(6); open({str(survived)!r}, 'w')"
    source = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(AssertionError, match="still runs after 3 seconds"):
        run_program(source, timeout=3)
    time.sleep(6)
    assert not survived.exists()


ON_RANKS = (
    "from helpers.ranks import init_ranks\nrank = init_ranks('cpu').rank\nprint('I am', rank)\n"
)


def test_a_program_on_ranks(slow, capsys):
    broken("slow --nproc 2 --expect ZeroDivisionError", ON_RANKS + "rank / (1 - rank)\n")
    out = capsys.readouterr().out
    assert "[rank 1] I am 1" in out
    assert "ZeroDivisionError: rank 1" in out
    assert run_on_ranks(ON_RANKS, pull=("rank",)) == {"rank": [0, 1]}
    with pytest.raises(AssertionError, match="rank"):
        run_on_ranks(ON_RANKS + "import time\ntime.sleep(60 * rank)\n", timeout=2)

"""`make` on a fresh machine: each thing that may be missing is one plain sentence."""

import os
import shutil
import subprocess
import sys

import pytest

from helpers import paths

# Stands in for Python and its pip: it takes the place of minutes and gigabytes.
PYTHON = """#!/bin/sh
case "$*" in
    -c*) exit "${UNSUPPORTED:-0}" ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*)
        echo "installing into $0"
        echo "${PIP_SAYS:-}" >"$5"
        [ -z "${KILLED:-}" ] || kill -KILL "$PPID"
        exit "${PIP_EXIT:-0}" ;;
    "-m helpers "*) echo "helpers: $*" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Run make in a folder with the Makefile and a stand-in Python; exit status and output."""
    for name in ("Makefile", "src/make_venv.sh", "requirements.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(paths.ROOT / name, tmp_path / name)
    tools = tmp_path / "tools"
    tools.mkdir()

    def tool(name, script):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
        return tools / name

    def run(*arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if k not in ("CXX", "MAKEFLAGS")}
        path = f"{tools}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["make", f"PYTHON={tools / 'python'}", *arguments],
            cwd=tmp_path,
            env=environment | {"PATH": path} | variables,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    tool("python", PYTHON)
    run.tool, run.venv = tool, tmp_path / ".venv"
    return run


def test_environment_is_made_once_and_again_when_the_list_changes(make):
    code, output = make("book", "CHAPTERS=a/b", "SIZE=laptop")
    assert code == 0, output
    assert "installing into .venv/bin/python" in output
    assert "helpers: -m helpers build a/b --size laptop" in output
    assert "installing" not in make("book")[1]
    os.utime(make.venv.parent / "requirements.txt")
    assert "installing" in make("book")[1]


def test_soak_runs_the_named_chapters_five_times_and_stops_at_a_failure(make):
    code, output = make("soak", "CHAPTERS=a/b")
    assert code == 0 and output.count("helpers: -m helpers check --live a/b") == 5, output
    make.tool("python", PYTHON.replace('echo "helpers: $*"', 'echo "helpers: $*"; exit 1'))
    shutil.rmtree(make.venv)
    code, output = make("soak", "CHAPTERS=a/b")
    assert code != 0 and output.count("helpers: -m helpers check --live a/b") == 1, output


def test_threads_that_wait_sleep_also_without_make():
    given = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    shows = "import os, helpers; print(os.environ['OMP_WAIT_POLICY'])"
    command = [sys.executable, "-c", shows]
    for environment, policy in (
        (given, "PASSIVE"),
        (given | {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"),
    ):
        assert subprocess.check_output(command, env=environment, text=True).strip() == policy


def test_environment_elsewhere(make, tmp_path):
    code, output = make("book", f"VENV={tmp_path / 'other'}")
    assert code == 0 and (tmp_path / "other" / ".ready").exists(), output
    assert not make.venv.exists()


def test_unsupported_python(make):
    code, output = make("book", UNSUPPORTED="1")
    assert code != 0 and "Python 3.11 or 3.12 is needed" in output
    assert not make.venv.exists()


def test_missing_python(make):
    code, output = make("book", "PYTHON=/no/such/python")
    assert code != 0 and "/no/such/python is not one" in output


def test_missing_compiler(make):
    for name in ("c++", "g++", "clang++"):  # as on a Mac without its tools: there, but no compiler
        make.tool(name, "#!/bin/sh\nexit 1\n")
    code, output = make("book")
    assert code != 0 and "A C++ compiler is needed" in output and "apt install g++" in output
    assert not make.venv.exists()


def test_too_little_disk(make):
    make.tool("df", "#!/bin/sh\nprintf 'Filesystem\\n/dev/x 9 9 2097152 1%% /\\n'\n")
    code, output = make("book")
    assert code != 0 and "needs 4 GB of disk" in output and "2 GB are free" in output
    assert not make.venv.exists()


@pytest.mark.parametrize(
    ("pip", "sentence"),
    [
        ("NewConnectionError: [Errno -2] Name or service not known", "there is no network"),
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("ResolutionImpossible", "its last words are above"),
    ],
)
def test_pip_that_fails_is_explained_and_leaves_nothing_taken_for_whole(make, pip, sentence):
    code, output = make("book", PIP_SAYS=pip, PIP_EXIT="1")
    assert code != 0 and sentence in output
    assert "helpers:" not in output
    assert "installing" in make("book")[1]


def test_killed_installation_starts_from_nothing(make):
    assert make("book", KILLED="1")[0] != 0
    (make.venv / "half-written").touch()
    code, output = make("book")
    assert code == 0 and "installing" in output
    assert not (make.venv / "half-written").exists()


def test_clean_keeps_the_environment(make):
    make("book")
    (make.venv.parent / "_build").mkdir()
    make("clean")
    assert make.venv.exists() and not (make.venv.parent / "_build").exists()

"""Every exercise of the book: its blank fails, and so does a plausible mistake.

The solution runs where the book is built: a check that refuses it fails the build.
"""

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import chapter_exercises
import pytest
from chapter_exercises import WRONG_ANSWERS, Exercise, all_exercises, exercises_of
from conftest import cell

from helpers import book, paths

SOLUTION = cell("def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION", "solution")
CHECK = cell('with exercise("ex-f"):\n    assert f() == 1', "exercise-check")

EXERCISES = all_exercises()
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)


@functools.cache
def outcomes(key: str) -> dict[tuple[str, str], tuple[str, str | None]]:
    """(output, error) of the check, by label and answer, for all exercises of a chapter.

    An answer is "blank", or the file name of a wrong one.
    """
    cells = {
        (each.label, name): [each.needs, answer, each.check.source]
        for each in EXERCISES
        if each.chapter.key == key
        for name, answer in each.answers().items()
    }
    folder = paths.BUILD / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    (file := folder / f"{key.replace('/', '-')}.json").unlink(missing_ok=True)
    ended, log = run_answers(key, folder, file.name, [*cells.values()])
    assert ended == 0, f"{key}: exit code {ended}\n{log.read_text(errors='replace')[-3000:]}"
    return dict(zip(cells, json.loads(file.read_text()), strict=True))


def run_answers(chapter: str, folder: Path, file: str, answers: list, limit: int = 900) -> tuple:
    """Exit code of the process that ran `answers`, at most `limit` seconds, and its log."""
    runner, log = the_runner()
    order = {"chapter": chapter, "folder": str(folder), "file": file}
    runner.stdin.write(json.dumps(order | {"answers": answers, "limit": limit}) + "\n")
    runner.stdin.flush()
    return int(runner.stdout.readline()), log


@functools.cache
def the_runner() -> tuple[subprocess.Popen, Path]:
    """The process of run_answers.py, which ends when we do, and its log."""
    log = paths.BUILD / "tests" / "answers.log"
    env = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    # One thread: on a busy machine two wait for each other far longer than they compute.
    env |= {"OMP_NUM_THREADS": "1"}
    with open(log, "w") as errors:
        command = [sys.executable, Path(__file__).with_name("run_answers.py")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        return subprocess.Popen(command, text=True, env=env, **pipes), log


def outcome(exercise: Exercise, answer: str) -> str:
    """What the check printed about an answer, which must not raise."""
    output, error = outcomes(exercise.chapter.key)[exercise.label, answer]
    assert error is None, f"Run All would stop here, with {answer}:\n{error}"
    return output


@each_exercise
def test_blank_is_not_yet_and_stops_nothing(exercise):
    assert outcome(exercise, "blank").startswith(f"{exercise.label}: not yet: ")


@each_exercise
def test_wrong_answers_are_rejected_with_a_reason(exercise):
    folder = f"tests/wrong_answers/{exercise.chapter.path.stem}"
    names = exercise.wrong_answers()
    assert names, f"write a plausible wrong answer to {folder}/{exercise.label}.py"
    for name in names:
        output = outcome(exercise, name)
        assert output.startswith(f"{exercise.label}: not yet: "), f"{name} is accepted"
        assert "is not defined" not in output, f"{name}: {output}"


def test_answers_that_never_end_are_ended_and_the_next_run(tmp_path):
    endless = [["import time\ntime.sleep(600)"]]
    assert run_answers("intro", tmp_path, "a.json", endless, limit=3)[0] == -signal.SIGALRM
    assert run_answers("intro", tmp_path, "b.json", [["print(1)"]])[0] == 0
    assert json.loads((tmp_path / "b.json").read_text()) == [["1\n", None]]


@pytest.mark.parametrize("key", book.chapters())
def test_what_readers_write_is_used_only_where_a_blank_is_caught(key):
    assert chapter_exercises.uses_outside_checks(book.read(key)) == []


def test_every_wrong_answer_belongs_to_an_exercise():
    known = {
        WRONG_ANSWERS / each.chapter.path.stem / name
        for each in EXERCISES
        for name in each.wrong_answers()
    }
    assert set(WRONG_ANSWERS.rglob("*.py")) == known


def test_exercise_parts_must_match(book_copy):
    book_copy.toc("a")
    for blocks, fault in (
        ([SOLUTION], "a solution without a check"),
        ([CHECK], "no cell tagged solution"),
        ([SOLUTION, CHECK.replace("ex-f", "")], "has one"),
    ):
        book_copy.page("a", *blocks)
        with pytest.raises(AssertionError, match=fault):
            exercises_of(book.read("a"))


def test_use_outside_a_check_is_found(book_copy):
    book_copy.toc("a")
    book_copy.page("a", SOLUTION, CHECK, cell("print(1, f())"))
    (found,) = chapter_exercises.uses_outside_checks(book.read("a"))
    assert found.endswith(": f")

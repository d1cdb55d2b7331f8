"""Every exercise of the book: its blank fails, its solution passes, a plausible mistake fails."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import chapter_exercises
import pytest
from chapter_exercises import WRONG_ANSWERS, Exercise, all_exercises, exercises_of

from helpers import book, paths

EXERCISES = all_exercises()
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)


def run_answers(exercise: Exercise) -> dict[str, tuple[str, str | None]]:
    """(output, error) of the check by answer: "blank", "solution", and the wrong ones by file."""
    answers = {"blank": exercise.blank, "solution": exercise.solution, **exercise.wrong_answers()}
    cells = [[exercise.needs, answer, exercise.check.source] for answer in answers.values()]
    results = paths.BUILD / "tests" / f"{exercise.id}.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    env["BOOK_CHAPTER"] = exercise.chapter.key
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("run_answers.py"), results],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        timeout=600,
        env=env,
        cwd=results.parent,
        check=False,
    )
    assert results.exists(), done.stdout + done.stderr
    return dict(zip(answers, json.loads(results.read_text()), strict=True))


outcomes = functools.cache(lambda number: run_answers(EXERCISES[number]))


@each_exercise
def test_blank_is_not_yet_and_stops_nothing(exercise):
    output, error = outcomes(EXERCISES.index(exercise))["blank"]
    assert error is None, f"Run All would stop here:\n{error}"
    assert f"{exercise.label}: not yet" in output


@each_exercise
def test_solution_is_accepted(exercise):
    output, error = outcomes(EXERCISES.index(exercise))["solution"]
    assert error is None, error
    assert f"{exercise.label}: solved" in output, output


@each_exercise
def test_wrong_answers_are_rejected_with_a_reason(exercise):
    names = exercise.wrong_answers()
    folder = f"tests/wrong_answers/{exercise.chapter.path.stem}"
    assert names, f"write a plausible wrong answer to {folder}/{exercise.label}.py"
    for name in names:
        output, error = outcomes(EXERCISES.index(exercise))[name]
        assert error is None, f"{name}: the reader would see a traceback, not a reason:\n{error}"
        assert f"{exercise.label}: not yet: " in output, f"{name} is accepted"
        assert "is not defined" not in output, f"{name}: {output}"


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
    front = "---\nkernelspec: {display_name: Python 3, name: python3}\nobjectives: [x]\nteach_minutes: 1\n---\n"
    solution = "```{code-cell}\n:tags: [solution]\ndef f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n```"
    check = (
        '```{code-cell}\n:tags: [exercise-check]\nwith exercise("ex-f"):\n    assert f() == 1\n```'
    )
    book_copy.toc("a")
    for blocks, fault in (
        ([solution], "a solution without a check"),
        ([check], "no cell tagged solution"),
        ([solution, check.replace("ex-f", "")], "has one"),
    ):
        book_copy.page("a", *blocks, front=front)
        with pytest.raises(AssertionError, match=fault):
            exercises_of(book.read("a"))

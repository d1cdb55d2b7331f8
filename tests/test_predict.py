import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from helpers import BookError, guesses, measure, predict


@pytest.fixture(autouse=True)
def no_guesses(monkeypatch):
    monkeypatch.setattr(guesses, "_guesses", {})


def test_guess_and_truth_side_by_side(capsys):
    predict("recompiles", 3)
    measure("recompiles", 5)
    assert capsys.readouterr().out.splitlines() == [
        "recompiles: your guess is 3",
        "recompiles: you said 3, measured 5",
    ]


def test_blank_guess_of_a_lab_copy(capsys):
    predict("recompiles", ...)
    measure("recompiles", 5)
    out = capsys.readouterr().out
    assert "replace the ... by your guess" in out
    assert "recompiles: no guess yet, measured 5" in out


def test_measure_without_a_guess(capsys):
    measure("recompiles", 5)
    assert capsys.readouterr().out == "recompiles: no guess, measured 5\n"


def test_the_last_guess_counts(capsys):
    predict("recompiles", 3)
    predict("recompiles", 4)
    measure("recompiles", 4)
    assert "you said 4, measured 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    "truth, text",
    [(1234567, "1,234,567"), (0.123456, "0.1235"), (True, "True"), ("hangs", "hangs")],
)
def test_numbers_are_readable(truth, text, capsys):
    measure("it", truth)
    assert capsys.readouterr().out == f"it: no guess, measured {text}\n"


def test_table_in_a_notebook_has_a_plain_twin():
    InteractiveShell.instance()
    try:
        with capture_output() as shown:
            predict("a < b", 3)
            measure("a < b", 3)
        (output,) = shown.outputs
    finally:
        InteractiveShell.clear_instance()
    assert output.data["text/plain"] == "a < b: you said 3, measured 3"
    html = output.data["text/html"]
    assert 'class="predict-table"' in html and "a &lt; b" in html and "✓ as you said" in html
    assert "style=" not in html and "color" not in html


def test_a_surprise_is_told_by_word_and_symbol(monkeypatch):
    shown = []
    monkeypatch.setattr(guesses, "show_html", lambda html, text: shown.append(html))
    predict("recompiles", 3)
    measure("recompiles", 5)
    assert "≠ not as you said" in shown[0]


def test_bad_input():
    with pytest.raises(BookError, match="first argument of predict"):
        predict(3, "recompiles")
    with pytest.raises(BookError, match="needs the measured value"):
        measure("recompiles", ...)

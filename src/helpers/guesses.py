"""Predict, then measure: the reader commits to a guess before seeing the truth."""

from html import escape

from helpers.display import show_html
from helpers.paths import BookError

_guesses: dict[str, object] = {}


def predict(name: str, guess: object) -> None:
    """Record a guess; `measure(name, ...)` later shows it beside the truth.

    `...` is the blank of a JupyterLab copy: no guess yet. Running the cell again replaces it.
    """
    if not isinstance(name, str) or not name.strip():
        raise BookError(
            'The first argument of predict is the name of what you guess: predict("recompiles", 3).'
        )
    _guesses[name] = guess
    if guess is ...:
        print(f"{name}: replace the ... by your guess and run this cell again")
    else:
        print(f"{name}: your guess is {_format(guess)}")


def measure(name: str, truth: object) -> None:
    """Show the guess for `name` beside the measured `truth`, as a table of one row.

    Plain text: "recompiles: you said 3, measured 5". Numbers are shown to four figures.
    """
    if truth is ...:
        raise BookError(f"measure({name!r}, ...) needs the measured value, not a blank.")
    measured = _format(truth)
    if name not in _guesses:
        guess, said, verdict = "", "no guess", ""
    elif _guesses[name] is ...:
        guess, said, verdict = "", "no guess yet", ""
    else:
        guess = _format(_guesses[name])
        said, verdict = (
            f"you said {guess}",
            "✓ as you said" if guess == measured else "≠ not as you said",
        )
    cells = "".join(f"<td>{escape(value)}</td>" for value in (guess, measured, verdict or said))
    show_html(
        '<table class="predict-table"><thead><tr><td></td><th scope="col">you said</th>'
        '<th scope="col">measured</th><th scope="col">verdict</th></tr></thead>'
        f'<tbody><tr><th scope="row">{escape(name)}</th>{cells}</tr></tbody></table>',
        f"{name}: {said}, measured {measured}",
    )


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)

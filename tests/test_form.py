"""Front matter, fences, options and tags: each mistake is refused, with its file and line."""

import re

import pytest
from conftest import FRONT_MATTER, cell

from helpers import book
from helpers.paths import BookError


def front(**fields: str) -> str:
    """The usual front matter with fields replaced (or removed, when empty), as YAML text."""
    head = FRONT_MATTER.removesuffix("---\n")
    for name, value in fields.items():
        head = re.sub(rf"^{name}:.*\n(?: .*\n)*", "", head, flags=re.MULTILINE)
        head += f"{name}: {value}\n" if value else ""
    return head + "---\n"


def refused(copy, *blocks: str, says: str, **options) -> None:
    copy.page("talk", *blocks, **options)
    with pytest.raises(BookError, match=says) as caught:
        book.read("talk")
    assert "chapters/talk" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\nobjectives: [a\n---\n", "front matter cannot be read as YAML"),
        ("---\n- a\n---\n", "front matter cannot be read: write lines"),
        ("---\nobjectives: [a]\n", "line 1: the front matter is never closed"),
        (front(objective="[Read]"), "unknown front-matter field 'objective'. Did you mean obj"),
        (front(kernelspec=""), "has no kernelspec"),
        (front(kernelspec="{name: python3}"), "has no kernelspec with display_name"),
        (front(objectives=""), "a chapter says its objectives"),
        (front(objectives="Read"), "objectives is a list"),
        (front(objectives="[]"), "objectives is a list"),
        (front(teach_minutes=""), "a chapter says its teach_minutes"),
        (front(teach_minutes="soon"), "whole number of minutes, not 'soon'"),
        (front(teach_minutes="0"), "whole number of minutes"),
        (front(optional="[The ent]"), "names no section of this page: 'The ent'. Did you mean The"),
        (front(optional="The end"), "optional is a list"),
        (front(needs="{chapters: [tolk]}"), r"does not exist: 'tolk'\. Did you mean talk\?"),
        (front(needs="{chapters: talk}"), "chapters in needs is a list"),
        (front(needs="{ranks: two}"), "ranks in needs is a positive whole number, not 'two'"),
        (front(needs="{rank: 2}"), r"unknown field of needs 'rank'\. Did you mean ranks\?"),
        (front(needs="[talk]"), "needs is written"),
    ],
)
def test_front_matter_that_is_refused(book_copy, text, says):
    refused(book_copy, cell("x = 1"), "## The end", front=text, says=says)


def test_front_matter_that_is_read(book_copy):
    text = front(needs="{chapters: [start/gpt], ranks: 2}", optional="[The end]")
    book_copy.page("start/gpt", cell("x = 1"))
    book_copy.page("talk", cell("x = 1"), "## The end", front=text)
    assert book.read("talk").front["needs"] == {"chapters": ["start/gpt"], "ranks": 2}


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (
            "```{code-cell}\n:tags: [exprot]\n```",
            r"line 10: .*tag 'exprot'\. Did you mean export\?",
        ),
        ("```{code-cell}\n:tags: export\n```", "line 10: tags are a list of words"),
        ("```{code-cell}\n:tags: {export: 1}\n```", "line 10: tags are a list of words"),
        ("```{code-cell}\n:tags: [1]\n```", "line 10: tags are a list of words"),
        ("```{code-cell}\n:tags: [a\n```", "line 10: tags are a list of words"),
        (
            "```{code-cell}\n---\na: [\n---\n```",
            "line 10: the options of this code cell cannot be read as",
        ),
        ("```{code-cell}\n:tag: [export]\n```", r"option 'tag'\. Did you mean tags\?"),
        ("```{code-cell}\nx = 1", "line 10: this code cell is never closed"),
        ("```{code-cell}\nx\n\n```{code-cell}\nx\n```", "line 10: .* before the next one opens"),
        (":::{code-cell}\nx = 1\n:::", "line 10: open a code cell with backticks"),
        ("~~~{code-cell}\nx = 1\n~~~", "line 10: open a code cell with backticks"),
        (
            "1. one\n\n   ```{code-cell}\n   x = 1\n   ```",
            "line 12: open a code cell with backticks",
        ),
        ("> ```{code-cell}\n> x = 1\n> ```", "line 10: open a code cell with backticks"),
        ("::::{note}\n:::{tip}\n:::\n\n```{code-cell}\nx\n```\n::::", "line 14: .* ::: directive"),
        ("````{note}\n```{code-cell}\nx\n```\n````", "line 11: .* another directive does not run"),
        ("```python\nx = 1", "line 10: this fence is never closed"),
        ("<details>\n```{code-cell}\nx = 1\n```\n</details>", "1 code cells .* jupytext sees 0"),
        ("<p>\n```{code-cell}\nx\n```\n\n```{code-cell}\ny\n```", "line 11: jupytext does not see"),
        ("```{code-cell}\n---\ntags: [export]\ntags: [solution]\n---\n```", "tags are a list"),
    ],
)
def test_cells_that_are_refused(book_copy, block, says):
    refused(book_copy, block, says=says)

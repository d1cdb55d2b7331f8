"""The table of contents, chapters as notebooks, and the mistakes that both must name."""

import pytest
from conftest import FRONT_MATTER, cell

from helpers import book
from helpers.lessons import scan
from helpers.paths import BookError


def test_pages_stand_in_the_order_of_the_table_of_contents(book_copy):
    for key in ("start/talk", "more/loud"):
        book_copy.page(key, cell("x = 1"))
    for key in ("intro", "more/topic"):
        book_copy.page(key, "# Prose", front="")
    (book_copy.root / "_toc.yml").write_text(
        "format: jb-book\nroot: chapters/intro\nparts:\n"
        "- caption: One\n  chapters:\n  - file: chapters/start/talk\n"
        "- caption: Two\n  chapters:\n  - file: chapters/more/topic.md\n"
        "    sections: [{file: chapters/more/loud}]\n"
    )
    assert book.pages() == ["intro", "start/talk", "more/topic", "more/loud"]
    assert book.chapters() == ["start/talk", "more/loud"]


def test_every_part_has_a_topic_page_and_a_page_of_claims(book_copy):
    keys = ["intro", *(f"{part}/{page}" for part in "ab" for page in ("topic", "claims"))]
    for key in keys:
        book_copy.page(key, "# A page", front="")
    rest = "".join(f"- file: chapters/{key}\n" for key in keys[1:])
    (book_copy.root / "_toc.yml").write_text(
        f"format: jb-book\nroot: chapters/intro\nchapters:\n{rest}"
    )
    assert book.pages() == keys


@pytest.mark.parametrize(
    ("files", "listed", "says"),
    [
        (["intro", "talk"], ["intro", "tolk"], r"chapters/tolk, but .* Did you mean talk\?"),
        (["intro", "talk"], ["intro"], r"No entry of _toc\.yml names chapters/talk\.md"),
        (["intro", "talk"], ["intro", "talk", "talk"], "chapters/talk twice"),
        (["intro", "a/talk", "b/talk"], ["intro", "a/talk", "b/talk"], "a/talk.* same name"),
        (["intro", "01_talk"], ["intro", "01_talk"], "small letters, digits"),
        (["intro", "my-talk"], ["intro", "my-talk"], "small letters, digits"),
    ],
)
def test_table_of_contents_and_files_agree(book_copy, files, listed, says):
    for key in files:
        book_copy.page(key, "# Prose", front="")
    book_copy.toc(*listed)
    with pytest.raises(BookError, match=says):
        book.pages()


@pytest.mark.parametrize(
    ("toc", "says"),
    [
        (None, r"There is no _toc\.yml"),
        ("root: [", r"_toc\.yml cannot be read as YAML"),
        ("root: README", "Pages live in chapters/"),
        ("root: chapters/intro\nparts: [caption]", "'caption' is not an entry"),
        ("- a", "_toc.yml cannot be read: write lines"),
    ],
)
def test_a_broken_table_of_contents(book_copy, toc, says):
    book_copy.page("intro", "# Prose", front="")
    if toc is not None:
        (book_copy.root / "_toc.yml").write_text(toc)
    with pytest.raises(BookError, match=says):
        book.pages()


HARD = """---
kernelspec: {display_name: Python 3, name: python3}
objectives: [Read]
teach_minutes: 5
---

# Title

```{code-cell}
first = 1
```
```{code-cell} ipython3
:tags: [export, "hide-input"]

second = 2

```

````{admonition} Not a cell
```python
x = "```{code-cell}"
```
````

`````{code-cell}
---
tags:
  - export
  - solution
mystnb:
  image: {alt: words}
---
third = '''
```{code-cell}
````{code-cell}
```
'''
`````

~~~text
```{code-cell}
~~~

:::{note}
A note, ```with ticks```.
:::

```{code-cell}
---
tags: [hide-cell]  # a comment
---

fourth = 4
```

```{code-block} markdown
:::{code-cell}
```

```{code-cell}
:tags: [remove-cell]
---fifth
:sixth
```

```{code-cell}
```

+++ {"slide": true}

```{code-cell}


seventh = 7
```
"""


def test_cells_have_the_lines_sources_and_tags_that_stand_in_the_file(book_copy):
    path = book_copy.page("talk", front=HARD)
    chapter = book.read("talk")
    lines = path.read_text().split("\n")
    assert [(c.number, c.tags) for c in chapter.cells] == [
        *((1, ()), (2, ("export", "hide-input")), (3, ("export", "solution"))),
        *((4, ("hide-cell",)), (5, ("remove-cell",)), (6, ()), (7, ())),
    ]
    for c in chapter.cells:
        source = c.source.split("\n") if c.source else []
        assert lines[c.line - 1 : c.line - 1 + len(source)] == source
    starts = ["first = 1", "second = 2", "third = '''", "fourth = 4", "---fifth", "```", ""]
    assert [lines[c.line - 1] for c in chapter.cells] == starts
    code = [c for c in chapter.notebook.cells if c.cell_type == "code"]
    assert [c.source for c in code] == [c.source for c in chapter.cells]


def test_a_chapter_is_a_valid_notebook_and_the_same_each_time(book_copy):
    import nbformat

    spare = FRONT_MATTER.replace("  language: python\n", "")
    path = book_copy.page("start/talk", "# Talk", cell("x = 1", "export"), "More.", front=spare)
    chapter = book.read("start/talk")
    nbformat.validate(chapter.notebook)
    assert chapter.notebook == book.read("start/talk").notebook
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert chapter.notebook.metadata == {"kernelspec": kernel}
    assert chapter.front["objectives"] == ["Say what it does"]
    assert (chapter.key, chapter.path) == ("start/talk", path)
    assert [c.cell_type for c in chapter.notebook.cells] == ["markdown", "code", "markdown"]


def test_a_page_without_code_needs_no_front_matter(book_copy):
    book_copy.page("intro", "# Only prose", front="")
    page = book.read("intro")
    assert (page.front, page.cells, page.notebook.metadata) == ({}, [], {})


def test_unknown_page_and_wrong_encoding(book_copy):
    path = book_copy.page("start/talk", "# Talk")
    with pytest.raises(BookError, match=r"no chapters/start/tolk\.md. Did you mean start/talk\?"):
        book.read("start/tolk")
    path.write_bytes(b"\xff")
    with pytest.raises(BookError, match=r"chapters/start/talk\.md is not UTF-8"):
        book.read("start/talk")


def test_scan_reads_a_cell_that_a_directive_precedes():
    text = "::::{note}\n:::{tip}\n:::\n::::\n```{code-cell}\nx = 1\n```"
    assert [(c.opening, c.line, c.lines) for c in scan(text, "a.md")] == [(5, 6, ["x = 1"])]

"""The copies for JupyterLab: what is blank, what is folded, where links lead, and what is kept."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from conftest import cell

from helpers import __main__, book, lab, paths
from helpers.lab_copy import blank, empty_guesses, lab_notebook
from helpers.lab_prose import LabProse
from helpers.paths import BookError

SOLUTION = """def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION"""
EXERCISE = (
    "```{exercise} Twice\n:label: ex-double\n\nWrite `double`.\n```\n\n"
    "```{solution-start} ex-double\n:class: dropdown\n```",
    cell(SOLUTION, "solution"),
    "Because.\n\n```{solution-end}\n```\n\nNow check.",
    cell('with exercise("ex-double"):\n    assert double(2) == 4', "exercise-check"),
    "## After it",
)
# Seen rendered in JupyterLab 4.5.11 by jupyterlab-myst 2.7.0. Look at a new one there first.
RENDERED = {
    *("note", "tip", "warning", "admonition", "dropdown", "exercise", "glossary", "figure"),
    *("math", "grid", "card", "tab-set", "tab-item"),
}


def cells_of(copy, key: str = "a"):
    """(type, source, metadata of JupyterLab) of the cells below the first one of a page's copy."""
    notebook = lab_notebook(book.read(key), str)
    return [(c.cell_type, c.source, c.metadata.get("jupyter", {})) for c in notebook.cells[1:]]


def written(copy):
    return lab.write_copies(copy.root / "lab")


def test_solution_is_blank_and_folded_behind_its_check(book_copy):
    book_copy.page("a", "# A", *EXERCISE)
    kinds, sources, _ = zip(*cells_of(book_copy), strict=True)
    exercise, answer, now_check, check, solution, after = sources
    assert kinds == ("markdown", "code", "markdown", "code", "markdown", "markdown")
    assert exercise.startswith("# A\n\n```{exercise} Twice")
    assert answer == 'def double(x):\n    raise NotImplementedError("your turn")'
    assert check.startswith('with exercise("ex-double")')
    assert solution == (
        "````{dropdown} Solution\n```python\ndef double(x):\n    return 2 * x\n```\n\nBecause.\n````"
    )
    assert (now_check, after) == ("Now check.", "## After it")
    assert "solution-" not in "".join(sources)


def test_blank_of_a_class_is_empty():
    source = "class A(B):\n    x = 1\n    ### BEGIN SOLUTION\n    y = 2\n    ### END SOLUTION"
    assert blank(source, "here") == "class A(B):\n    x = 1\n    ...  # your turn"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "outside a function"),
        ("def f():\n    return 1", "enclose the part"),
        (SOLUTION + "\n    ### BEGIN SOLUTION", "enclose the part"),
        ("%%torchrun\n" + SOLUTION, "begins with a magic"),
        ("x = [\n### BEGIN SOLUTION\n1\n### END SOLUTION\n]", "not Python without"),
    ],
)
def test_blank_that_would_stop_run_all_is_refused(source, fault):
    with pytest.raises(BookError, match=fault):
        blank(source, "a, cell 1")


def test_guesses_are_empty():
    source = '%load_ext helpers\npredict("größe", 3 * (1 + 1)); predict(\n    "b", guess=[1,\n  2])\nx.predict("c", 3)'
    assert empty_guesses(source) == (
        '%load_ext helpers\npredict("größe", ...); predict(\n    "b", guess=...)\nx.predict("c", 3)'
    )


def test_what_the_site_hides_is_folded(book_copy):
    book_copy.page(
        "a", cell("1", "hide-input"), cell("2", "remove-cell"), cell("3", "skip-lab"), cell("4")
    )
    assert cells_of(book_copy) == [
        ("code", "1", {"source_hidden": True}),
        ("code", "2", {"source_hidden": True, "outputs_hidden": True}),
        ("code", "4", {}),
    ]


def test_first_cell_says_how_to_get_helpers(book_copy, tmp_path):
    book_copy.page("a", cell("1"))
    first = lab_notebook(book.read("a"), str).cells[0].source
    for options, code in (([], 0), (["-I", "-S"], 1)):  # -S: without site-packages, so without us
        done = subprocess.run(
            [sys.executable, *options, "-c", first], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
    assert "make lab" in done.stderr and "pip install" in done.stderr


PAGES = {
    "intro": "# Start here\n",
    "part/one": "# One: the first\n",
    "glossary": '# Words\n\n```{glossary}\nrank\n  A process\n  of {doc}`part/one`, "one".\n\nring\n  All.\n```\n',
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a {term}`rank`", "a [rank](3.ipynb \"A process of One: the first, 'one'.\")"),
        ("{term}`Rings <ring>`", '[Rings](3.ipynb "All.")'),
        ("{doc}`/intro` {doc}`this <one>`", "[Start here](1.ipynb) [this](2.ipynb)"),
        ("[](../intro.md) [x](one.md#y)", "[Start here](1.ipynb) [x](2.ipynb)"),
        ("[only there](status), [out](https://a.b/c)", "only there, [out](https://a.b/c)"),
        ("`[x](one.md)` ``{term}`rank` ``", "`[x](one.md)` ``{term}`rank` ``"),
        ("```python\nf[x](one)\n```\n", "```python\nf[x](one)\n```\n"),
        (":::{note}\n[](one.md)\n:::\n", ":::{note}\n[One: the first](2.ipynb)\n:::\n"),
        (
            "```{dropdown} A\nx\n```\n\n{doc}`one`\n\n```{dropdown} B\n{doc}`one`\n```\n",
            "```{dropdown} A\nx\n```\n\n[One: the first](2.ipynb)\n\n"
            "```{dropdown} B\n[One: the first](2.ipynb)\n```\n",
        ),
    ],
)
def test_prose_leads_to_the_copies(text, shown):
    prose = LabProse(PAGES, {"intro": "1.ipynb", "part/one": "2.ipynb", "glossary": "3.ipynb"})
    assert prose(text, "part/one") == shown


def test_glossary_becomes_a_definition_list():
    shown = LabProse(PAGES, dict.fromkeys(PAGES, "x.ipynb"))(PAGES["glossary"], "glossary")
    assert '\nrank\n: A process\n  of [One: the first](x.ipynb), "one".\n\nring\n: All.\n' in shown


def test_copies_are_numbered_and_never_overwritten(book_copy):
    book_copy.toc("intro", "part/one", "part/two")
    for key in ("intro", "part/one", "part/two"):
        book_copy.page(key, "# Page", "[](one.md)", cell("1"))
    assert written(book_copy) == [
        f"written  lab/{n}.ipynb" for n in ("01_intro", "02_one", "03_two")
    ]
    mine = book_copy.root / "lab" / "02_one.ipynb"
    mine.write_text(mine.read_text().replace("# Page", "# My page"))
    kept = mine.read_text()
    assert written(book_copy)[1] == "kept     lab/02_one.ipynb"

    for number, name in enumerate(("02_one_new", "02_one_new2")):
        book_copy.page("part/one", f"# Changed {number}", cell("1"))
        line = written(book_copy)[1]
        assert line.startswith(
            f"written  lab/{name}.ipynb: the page has changed; your 02_one.ipynb"
        )
        assert written(book_copy)[1] == f"kept     lab/{name}.ipynb"
    assert mine.read_text() == kept


def test_copy_keeps_its_name_when_the_book_grows_and_links_find_it(book_copy):
    book_copy.toc("intro", "one")
    for key in ("intro", "one", "zero"):
        book_copy.page(key, f"# {key}", "[](one.md)", cell("1"))
    (book_copy.root / "chapters" / "zero.md").rename(book_copy.root / "zero.md")
    written(book_copy)
    (book_copy.root / "zero.md").rename(book_copy.root / "chapters" / "zero.md")
    book_copy.toc("intro", "zero", "one")
    assert written(book_copy) == ["kept     lab/01_intro.ipynb", "written  lab/02_zero.ipynb", "kept     lab/02_one.ipynb"]  # fmt: skip
    assert "(02_one.ipynb)" in (book_copy.root / "lab" / "02_zero.ipynb").read_text()


@pytest.mark.parametrize("name", ["03_one", "12_one_new", "03_one_new2"])
def test_copy_is_known_as_its_chapter(book_copy, monkeypatch, name):
    book_copy.page("part/one", cell("1"))
    monkeypatch.delenv("BOOK_CHAPTER", raising=False)
    monkeypatch.setenv("JPY_SESSION_NAME", f"somewhere/lab/{name}.ipynb")
    assert paths.chapter_key() == "part/one"


@pytest.fixture(scope="module")
def real_copies(tmp_path_factory):
    """The copies of this book's own pages, by name."""
    folder = tmp_path_factory.mktemp("lab")
    lab.write_copies(folder)
    return {path.name: nbformat.read(path, as_version=4) for path in folder.iterdir()}


def test_pages_hold_only_what_jupyterlab_shows(real_copies):
    faults = []
    for name, notebook in real_copies.items():
        prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        directives = set(re.findall(r"^ *[`:]{3,}\{([^}]*)\}", prose, re.MULTILINE))
        faults += [f"{name}: {{{directive}}}" for directive in directives - RENDERED]
        faults += [f"{name}: role {role}" for role in re.findall(r"\{[a-z:]+\}`[^`]*`", prose)]
        links = re.findall(r"\]\(([^)\s:#]+\.\w+)[)\s#]", prose)
        faults += [f"{name}: {link}" for link in links if link not in real_copies]
    assert not faults, "\n".join(faults)
    assert len(real_copies) == len(book.pages())


def test_kernel_is_this_python_whatever_the_reader_has(book_copy, tmp_path, monkeypatch):
    """A kernel called python3 of another environment lies in wait on JUPYTER_PATH."""
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["/elsewhere/python"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.setenv("BOOK_RECORDING", "1")
    command, environment = lab.server(["--port=8"])
    code = "from jupyter_client import kernelspec as k; print(k.get_kernel_spec('python3').argv[0])"
    done = subprocess.run(
        [command[0], "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in ("python", sys.executable)  # "python": the server's own
    assert command[-1] == "--port=8"
    assert "BOOK_RECORDING" not in environment


def test_lab_passes_its_options_on_and_others_do_not(book_copy, monkeypatch, capsys):
    book_copy.toc("intro")
    book_copy.page("intro", "# Page", cell("1"))
    became = []
    monkeypatch.setattr(os, "execve", lambda *call: became.append(call))
    assert __main__.main(["lab", "--no-browser", "--port", "8890"]) == 0
    assert became[0][1][-3:] == ["--no-browser", "--port", "8890"]
    assert "written  lab/01_intro.ipynb" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        __main__.main(["check", "--no-browser"])


def test_settings_leave_the_readers_own_alone(book_copy):
    """Nothing is fetched from Jupyter's news, and the extension that fails is left out."""
    _, environment = lab.server([])
    home = paths.BUILD / "lab"
    assert environment["JUPYTER_CONFIG_PATH"].startswith(str(home))
    overrides = json.loads((home / "config/labconfig/default_setting_overrides.json").read_text())
    assert overrides["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    names = {path.name for path in (home / "extensions").iterdir()}
    assert "jupyterlab-myst" in names and "jupyterlab-jupytext" not in names

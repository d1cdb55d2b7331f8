"""The copies for JupyterLab: their names, what is kept, and how JupyterLab is started."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from conftest import cell

from helpers import __main__, book, lab, paths
from helpers.paths import BookError

# Seen rendered in JupyterLab 4.5.11 by jupyterlab-myst 2.7.0. Look at a new one there first.
RENDERED = {
    *("note", "tip", "warning", "admonition", "dropdown", "exercise", "glossary", "figure"),
    *("math", "grid", "card", "tab-set", "tab-item"),
}


def written(copy):
    return lab.write_copies(copy.root / "lab")


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
        faults += [
            f"{name}: role {role}"
            for role in re.findall(r"\{([a-z:]+)\}`", prose)
            if role != "abbr"
        ]
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


def test_file_that_appears_meanwhile_is_left_alone(book_copy, monkeypatch):
    book_copy.toc("intro")
    book_copy.page("intro", "# Page", cell("1"))
    mine = book_copy.root / "lab" / "01_intro.ipynb"
    make = lab.lab_notebook
    monkeypatch.setattr(
        lab, "lab_notebook", lambda *call: (mine.write_text("mine"), make(*call))[1]
    )
    with pytest.raises(BookError, match="once more"):
        written(book_copy)
    assert mine.read_text() == "mine"

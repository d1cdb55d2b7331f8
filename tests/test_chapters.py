"""Every page of this book: its form, what it exports, and that it names nothing of one machine."""

import codeop
import importlib
import re

import pytest

from helpers import book, paths
from helpers.lessons import check_export

FILES = sorted(paths.CHAPTERS.rglob("[!.]*.md"))
TEXT = (".md", ".py", ".yml", ".toml", ".txt", ".json", ".cfg")
ABSOLUTE = re.compile(r"(?<![\w.:/~-])/(?:work|root|home|tmp|Users)(?:/\w[^\s`\"')]*|(?![\w/]))")


def test_table_of_contents_and_files_agree():
    assert book.pages()
    assert book.chapters()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_page_is_well_formed_and_its_exports_import(path):
    """Exports run twice in one namespace, as in a kernel, and then once more as a lesson."""
    chapter = book.read(path.relative_to(paths.CHAPTERS).with_suffix("").as_posix())
    exports = [cell for cell in chapter.cells if "export" in cell.tags]
    for cell in exports:
        check_export(cell.source, f"chapters/{chapter.key}.md", cell.line)
    namespace = {"__name__": f"notebook_{path.stem}"}
    as_in_a_kernel = codeop.Compile()  # like IPython, remembers `from __future__ import ...`
    for cell in exports * 2:
        exec(as_in_a_kernel(cell.source, str(path), "exec"), namespace)
    if exports:
        importlib.import_module(f"helpers.lessons.{path.stem}")


def _texts():
    folders = [paths.ROOT / name for name in ("chapters", "src", "data", "tests", ".ci")]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    for file in sorted([*files, *paths.ROOT.glob("*")]):
        hidden = any(part in str(file) for part in ("__pycache__", ".egg-info", "/.ipynb"))
        if file.is_file() and not hidden and (file.suffix in TEXT or not file.suffix):
            yield file


def test_nothing_names_this_machine():
    found = [
        f"{file.relative_to(paths.ROOT)}, line {number}: {match[0]}"
        for file in _texts()
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1)
        for match in ABSOLUTE.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_the_search_for_absolute_paths_finds_them():
    root = "/" + "root"
    for text in (f"cd {root}/x", f"`{root}`", f'open("{root}/a")', f"({root})"):
        assert ABSOLUTE.search(text), text
    for text in (f"https://x.org{root}/a", f"a{root}", f"{root}less", "a / root"):
        assert not ABSOLUTE.search(text), text

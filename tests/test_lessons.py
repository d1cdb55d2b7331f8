"""Chapters as modules: names, lines, sources, pickles, reloads, and what is refused."""

import importlib
import inspect
import linecache
import os
import pickle
import re
import sys
import traceback

import pytest
from conftest import cell

from helpers.lessons import lesson_source, needed_lessons
from helpers.paths import BookError

TALK = '''class Talk:
    """Says a word."""

    def say(self, word):
        return f"{word}!"


def fail():
    raise ValueError("on purpose")'''


def line_of(path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").split("\n")
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def lesson(stem: str):
    return importlib.import_module(f"helpers.lessons.{stem}")


def test_only_export_cells_run_and_see_one_namespace(book_copy):
    book_copy.page(
        "start/talk",
        "# Talk",
        cell("WORDS = 3", "export"),
        cell("raise SystemExit('a cell that is not exported ran')"),
        cell("def double():\n    return 2 * WORDS", "hide-input", "export"),
    )
    talk = lesson("talk")
    assert talk.double() == 6
    assert not hasattr(talk, "SystemExit")


def test_traceback_names_file_line_and_text(book_copy):
    path = book_copy.page("talk", "# Talk\n\nSome prose.", cell(TALK, "export"))
    with pytest.raises(ValueError, match="on purpose") as caught:
        lesson("talk").fail()
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    expected = (str(path), line_of(path, "on purpose"), "fail", 'raise ValueError("on purpose")')
    assert (frame.filename, frame.lineno, frame.name, frame.line) == expected


def test_source_of_functions_and_classes_also_after_an_edit(book_copy):
    path = book_copy.page("talk", "# Talk", cell(TALK, "export"), cell("print(1)"))
    talk = lesson("talk")
    book_copy.page("talk", "# A title\n\n" * 30, "def fail(): the prose, edited")
    os.utime(path, (1, 1))
    linecache.checkcache()
    assert inspect.getsource(talk.fail) == TALK[TALK.index("def fail") :] + "\n"
    assert inspect.getsource(talk.Talk) == TALK[: TALK.index("\n\n\ndef fail")] + "\n"
    assert inspect.getsourcefile(talk.Talk) == str(path) == talk.__file__


def test_reload_reads_the_chapter_again(book_copy):
    path = book_copy.page("talk", cell("def word():\n    return 'old'", "export"))
    talk = lesson("talk")
    book_copy.page("talk", "More prose.", cell("def word():\n    return 'new'", "export"))
    assert talk.word() == "old"
    importlib.reload(talk)
    assert talk.word() == "new"
    assert inspect.getsource(talk.word) == "def word():\n    return 'new'\n"
    assert inspect.getsourcelines(talk.word)[1] == line_of(path, "def word")


def test_classes_and_functions_pickle_into_a_spawned_process(book_copy):
    book_copy.page("talk", cell(TALK, "export"))
    talk = lesson("talk")
    assert pickle.loads(pickle.dumps(talk.Talk)) is talk.Talk
    assert talk.Talk.__module__ == talk.fail.__module__ == "helpers.lessons.talk"
    done = book_copy.run(
        "import multiprocessing, sys\n"
        "from helpers.lessons.talk import Talk\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(Talk().say, ['hello']))\n"
        "    heavy = {'torch', 'IPython', 'jupytext', 'yaml', 'nbformat', 'matplotlib'}\n"
        "    print('heavy:', sorted(heavy & set(sys.modules)))\n"
    )
    assert done.stdout == "['hello!']\nheavy: []\n", done.stderr


def test_lessons_import_lessons(book_copy):
    book_copy.page("start/talk", cell(TALK, "export"))
    book_copy.page("more/loud", cell("from helpers.lessons.talk import Talk", "export"))
    book_copy.page("more/last", cell("import helpers.lessons.loud as loud", "export"))
    assert lesson("last").loud.Talk is lesson("talk").Talk
    needed = needed_lessons("%%torchrun --nproc 2\nfrom helpers.lessons.last import loud")
    assert needed == {stem: lesson_source(stem) for stem in ("talk", "loud", "last")}


def test_a_circle_of_imports_is_named(book_copy):
    book_copy.page("one", cell("from helpers.lessons.two import f", "export"))
    book_copy.page("two", cell("def f():\n    import helpers.lessons.three", "export"))
    book_copy.page("three", cell("from helpers.lessons.two import f", "export"))
    with pytest.raises(BookError, match="in a circle: two -> three -> two"):
        lesson("one")
    assert "helpers.lessons.one" not in sys.modules


@pytest.mark.parametrize(
    "statement", ["import helpers.lessons.small_gtp", "from helpers.lessons import small_gtp"]
)
def test_unknown_lesson_names_near_matches(book_copy, statement):
    book_copy.page("start/small_gpt", cell("N = 1", "export"))
    with pytest.raises(ModuleNotFoundError, match=r"small_gtp\.md\. Did you mean small_gpt\?"):
        exec(statement, {})


def test_two_chapters_of_one_name_are_refused(book_copy):
    book_copy.page("a/talk", cell(TALK, "export"))
    book_copy.page("b/talk", cell(TALK, "export"))
    with pytest.raises(
        BookError, match=r"chapters/a/talk\.md and chapters/b/talk\.md have the same"
    ):
        lesson("talk")


def test_a_chapter_without_exports_says_so(book_copy):
    book_copy.page("talk", cell(TALK))
    with pytest.raises(BookError, match=r"chapters/talk\.md exports nothing"):
        lesson("talk")


def test_syntax_error_points_into_the_chapter(book_copy):
    path = book_copy.page("talk", "# Talk", cell("x = 1", "export"), cell("def f(:", "export"))
    with pytest.raises(SyntaxError) as caught:
        lesson("talk")
    expected = (str(path), line_of(path, "def f(:"), "def f(:")
    assert (caught.value.filename, caught.value.lineno, caught.value.text.rstrip()) == expected


def test_an_export_cell_that_runs_code_does_not_import(book_copy):
    path = book_copy.page("talk", cell("import os\nos.environ['X'] = str(1)", "export"))
    line = line_of(path, "environ")
    message = rf"{re.escape(str(path))}, line {line}: `os\.environ\['X'\] = str\(1\)` runs code"
    with pytest.raises(BookError, match=message):
        lesson("talk")


def test_carried_source_keeps_lines_and_runs_without_the_book(book_copy, tmp_path):
    path = book_copy.page("talk", "# Talk\n\nProse.", cell("print(0)"), cell(TALK, "export"))
    source = lesson_source("talk")
    assert source.count("\n") == path.read_text().count("\n")
    assert source.split("\n")[line_of(path, "def fail") - 1] == "def fail():"
    assert "Prose" not in source and "print" not in source
    carried = tmp_path / "carried" / "helpers" / "lessons"
    carried.mkdir(parents=True)
    for file, text in {"../__init__": "", "__init__": "", "talk": source}.items():
        (carried / f"{file}.py").write_text(text)
    code = "from helpers.lessons import talk; print(talk.Talk().say('alone'), talk.__file__)"
    done = book_copy.run(code, env={"PYTHONPATH": str(carried.parents[1])})
    assert done.stdout == f"alone! {carried / 'talk.py'}\n", done.stderr


def test_dynamo_compiles_what_a_lesson_defines(book_copy):
    torch = pytest.importorskip("torch")
    code = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return broken(x.sin()) + 1


def broken(x):
    print("graph break")
    return x"""
    path = book_copy.page("net", "# Net", cell(code, "export"))
    net = lesson("net").Net()
    graphs = []

    def backend(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    x = torch.ones(3)
    assert torch.equal(torch.compile(net, backend=backend)(x), net(x))
    assert len(graphs) == 2
    with pytest.raises(Exception, match=f'"{re.escape(str(path))}", line {line_of(path, "print")}'):
        torch.compile(net, backend="eager", fullgraph=True)(x)

"""What is staged for the site, and what makes it incomplete."""

from pathlib import Path

import pytest
from nbformat import v4

from helpers import finished_pages, site
from helpers.book import Chapter

SOLUTION = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\nprint('### BEGIN')"


def a_chapter(*cells):
    return Chapter("part/one", Path("one.md"), {}, [], v4.new_notebook(cells=list(cells)))


def test_merge_is_todays_prose_with_the_outputs_of_the_run():
    run = v4.new_notebook(cells=[v4.new_markdown_cell("old words"), v4.new_code_cell("x")])
    run.cells[1].outputs = [v4.new_output("stream", text="hi")]
    chapter = a_chapter(
        v4.new_markdown_cell("new"), v4.new_markdown_cell("words"), v4.new_code_cell("x")
    )
    page = site.merge(chapter, run)
    assert [c.source for c in page.cells] == ["new", "words", "x"]
    assert page.cells[2].outputs[0].text == "hi"
    assert chapter.notebook.cells[2].outputs == [], "the chapter itself is left as it was"


def test_streams_that_a_kernel_cut_are_joined_and_keep_their_order():
    run = v4.new_notebook(cells=[v4.new_code_cell("x")])
    run.cells[0].outputs = [
        v4.new_output("stream", text="one, "),
        v4.new_output("stream", text="two"),
        v4.new_output("display_data"),
        v4.new_output("stream", text="after"),
        v4.new_output("stream", name="stderr", text="error"),
    ]
    page = site.merge(a_chapter(v4.new_code_cell("x")), run)
    texts = [output.get("text") for output in page.cells[0].outputs]
    assert texts == ["one, two", None, "after", "error"]
    assert len(run.cells[0].outputs) == 5, "the run itself is left as it was"


def test_merge_with_a_run_of_other_code_is_refused():
    with pytest.raises(AssertionError, match="other code"):
        site.merge(a_chapter(v4.new_code_cell("x")), v4.new_notebook(cells=[v4.new_code_cell("y")]))


def test_injected_values_stand_after_the_defaults():
    default, injected, code = (v4.new_code_cell(source) for source in ("n = 2", "n = 4", "n"))
    default.metadata.tags, injected.metadata.tags = ["parameters"], ["injected-parameters"]
    run = v4.new_notebook(cells=[default, injected, code])
    page = site.merge(a_chapter(v4.new_markdown_cell("words"), default, code), run)
    assert [c.source for c in page.cells] == ["words", "n = 2", "n = 4", "n"]


def test_marker_lines_of_solutions_are_dropped():
    page = site.merge(a_chapter(v4.new_code_cell(SOLUTION)), None)
    assert page.cells[0].source == "x = 1\nprint('### BEGIN')"


def test_links_between_chapters_follow_the_files():
    prose = "[a](../capture/one.md) [b](one.md#part) [c](topic.md) [d](https://x.org/one.md)"
    linked = site._published(prose, {"capture/one": None}, {})
    assert linked == (
        "[a](../capture/one.ipynb) [b](one.ipynb#part) [c](topic.md) [d](https://x.org/one.md)"
    )


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img alt="" src="http://example/x.png">',
        '<iframe src="https://example/x"></iframe>',
    ],
)
def test_a_page_that_fetches_from_another_host_is_a_fault(tmp_path, html):
    (tmp_path / "index.html").write_text(html)
    assert len(finished_pages.page_faults(tmp_path, [])) == 1


def test_links_that_a_reader_follows_are_no_fault(tmp_path):
    links = '<a href="https://pytorch.org">x</a><link rel="canonical" href="https://me.org">'
    (tmp_path / "index.html").write_text(links + '<script src="_static/x.js"></script>')
    assert finished_pages.page_faults(tmp_path, []) == []


def test_style_that_fetches_from_another_host_is_a_fault(tmp_path):
    (tmp_path / "index.html").touch()
    (tmp_path / "x.css").write_text("a { background: url(local.png) url('https://cdn.example/x') }")
    assert finished_pages.page_faults(tmp_path, []) == ["x.css fetches https://cdn.example/x"]


def test_missing_page_is_a_fault(tmp_path):
    (tmp_path / "index.html").touch()
    assert finished_pages.page_faults(tmp_path, ["part/one"]) == ["missing page: part/one.html"]


def test_chinese_words_say_their_language_and_attributes_stay(tmp_path):
    page = tmp_path / "glossary.html"
    page.write_text(
        '<head><title>词</title></head><body><p title="词">FX 计算图. A list</p></body>'
    )
    finished_pages.mark_chinese(tmp_path)
    marked = '<p title="词">FX <span lang="zh">计算图</span>. A list</p>'
    assert page.read_text() == f"<head><title>词</title></head><body>{marked}</body>"


def test_warnings_name_the_page_of_this_repository():
    log = (
        f"reading\n\x1b[91m{site.SOURCE}/part/one.ipynb:60002: WARNING: no such term\n\x1b[0m"
        f"{site.SOURCE}/intro.md:7: WARNING: no such page"
    )
    assert site._faults_in_log(log) == [
        "chapters/part/one.md, cell 6, line 2: WARNING: no such term",
        "chapters/intro.md, line 7: WARNING: no such page",
    ]
    assert site._faults_in_log("a crash\nand its end") == ["a crash", "and its end"]

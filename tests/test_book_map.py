"""The map of the book and the count of claims, as a page shows them."""

import pytest
import yaml
from conftest import FRONT_MATTER

from helpers import book, book_map, claims, paths
from helpers.paths import BookError

PLAN = """
- folder: start
  title: Start
- folder: capture
  title: I Capture
  to_come: {guards: guards and recompiles, breaks: graph breaks}
"""
FACTS = "needs: {chapters: [start/one], ranks: 2}\n---\n"


@pytest.fixture
def small_book(book_copy):
    """A first page that holds the map, two chapters in two parts, and a page at the back."""
    (book_copy.root / "data" / "plan.yml").write_text(PLAN)
    book_copy.page("intro", "# Intro", "<!-- map -->", front="")
    book_copy.page("start/one", "# One")
    book_copy.page("capture/guards", "# G", front=FRONT_MATTER.removesuffix("---\n") + FACTS)
    book_copy.page("glossary", "# Glossary", front="")
    book_copy.toc("intro", "start/one", "capture/guards", "glossary")
    return book_copy


def test_the_map_tells_what_each_chapter_says_of_itself(small_book):
    assert book_map.map_markdown() == (
        "### Start\n\n- {doc}`start/one`, 5 minutes\n  - Say what it does\n\n"
        "### I Capture\n\n"
        "- {doc}`capture/guards`, 5 minutes, 2 ranks, after {doc}`start/one`\n"
        "  - Say what it does\n\n"
        "To come: graph breaks.\n\n"
        "### At the back\n\n- {doc}`glossary`"
    )


def test_a_part_without_a_title_is_an_error(small_book):
    small_book.page("place/two", "# Two")
    small_book.toc("intro", "start/one", "capture/guards", "glossary", "place/two")
    with pytest.raises(BookError, match=r"plan\.yml names no part for chapters/place/"):
        book_map.map_markdown()


def test_markers_are_filled_and_a_wrong_one_is_an_error(small_book):
    filled = book_map.fill("Before <!-- map --> after, <!-- a remark of two words -->")
    assert filled.startswith("Before ### Start") and filled.endswith("two words -->")
    with pytest.raises(BookError, match="Nothing fills the marker <!-- maps -->"):
        book_map.fill("<!-- maps -->")


def test_the_count_is_the_ledgers_own():
    rows = [row["verdict"] for row in yaml.safe_load((paths.DATA / "claims.yml").read_text())]
    text = book_map.claims_markdown()
    assert f"Of {len(rows)} claims tried, {rows.count('false')} are false" in text
    assert all(str(rows.count(verdict)) in text for verdict in claims.SYMBOLS)


def test_the_first_page_asks_for_map_and_count_and_every_page_is_on_the_map():
    pages = book.pages()
    intro = (paths.CHAPTERS / f"{pages[0]}.md").read_text("utf-8")
    assert "<!-- map -->" in intro and "<!-- claims -->" in intro
    the_map = book_map.map_markdown()
    assert [key for key in pages[1:] if f"- {{doc}}`{key}`" not in the_map] == []


def test_nothing_that_is_written_is_still_to_come():
    plan = yaml.safe_load((paths.DATA / "plan.yml").read_text())
    to_come = {f"{part['folder']}/{stem}" for part in plan for stem in part.get("to_come", {})}
    assert to_come.isdisjoint(book.pages()), "remove these from data/plan.yml"

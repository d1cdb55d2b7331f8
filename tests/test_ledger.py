"""The ledger's page: every claim once, and links that lead to the cells that settle."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from conftest import cell

from helpers import BookError, book, claims, ledger, settle
from helpers.claims import claim_anchor


class Rows(HTMLParser):
    """Each <details>: its attributes, its text, and where its links lead."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.options, self.alts = [], {}, []
        self._select = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag == "details":
            self.rows.append({**named, "text": "", "links": []})
        elif tag == "a":
            self.rows[-1]["links"].append(named["href"])
        elif tag == "select":
            self._select = self.options.setdefault(named["name"], [])
        elif tag == "option":
            self._select.append(named["value"])
        elif tag == "img":
            self.alts.append(named["alt"])

    def handle_data(self, data):
        if self.rows:
            self.rows[-1]["text"] += data


@pytest.fixture(scope="module")
def page():
    return Rows(ledger.verdicts_markdown() + ledger.ledger_markdown())


@pytest.fixture(scope="module")
def by_anchor(page):
    return {row["id"]: row for row in page.rows}


def test_every_claim_has_one_row_with_its_own_anchor(page):
    ids = [row["id"] for row in page.rows]
    assert len(ids) == len(set(ids)) == 309
    assert ids == [claim_anchor(claim_id) for claim_id in claims.load()]
    assert [i for i in ids if not re.fullmatch(r"claim-[abc]-[a-z0-9-]+", i)] == []


def test_rows_tell_all_of_their_claim(by_anchor):
    for claim in claims.load().values():
        row = by_anchor[claim_anchor(claim.id)]
        sign = claims.SYMBOLS[claim.verdict]
        assert row["text"].startswith(f"{sign} {claim.verdict} {claim.id} {claim.claim}")
        for fact in (claim.what_happens, claim.when, claim.needs, claim.subject):
            assert fact in row["text"]
        filtered = (row["data-subject"], row["data-verdict"], row["data-article"])
        assert filtered == (claim.subject, claim.verdict, claim.article)


def test_cards_have_the_anchor_that_the_ledger_links_to(monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show_html", lambda html, text: shown.append(html))
    settle("A-1.0a", False)
    settle("B-2a''", False, until=claims.load()["B-2a''"].when)
    assert re.findall(r'id="([^"]+)"', "".join(shown)) == ["claim-a-1-0a", "claim-b-2a-prime2"]


def test_links_lead_to_cells_that_settle_the_claim(by_anchor):
    """Compared with a plain search of the pages' text: nothing forgotten, nothing invented."""
    linked, written = set(), set()
    chapters = {key: book.read(key) for key in book.chapters()}
    for claim_id in claims.load():
        row = by_anchor[claim_anchor(claim_id)]
        numbers = re.findall(r"code cell (\d+)", row["text"])
        for href, number in zip(row["links"], numbers, strict=True):
            key, _, anchor = href.partition(".html#")
            assert anchor == row["id"]
            found = chapters[key].cells[int(number) - 1]
            assert re.search(rf'settle\(\s*"{re.escape(claim_id)}"', found.source)
            assert not {"remove-cell", "remove-output"} & set(found.tags), f"{href} is not shown"
            linked.add((key, claim_id))
    for key, chapter in chapters.items():
        for claim_id in re.findall(r'^\s*settle\(\s*"([^"]+)"', chapter.path.read_text(), re.M):
            written.add((key, claim_id))
    assert linked == written != set()


def test_rows_without_a_cell_say_so(by_anchor):
    for claim in claims.load().values():
        row = by_anchor[claim_anchor(claim.id)]
        documented = claim.needs == "documentation" and not row["links"]
        assert (f"by documentation: {claim.check}" in row["text"]) == documented
        unsettled = not row["links"] and not documented
        assert (ledger.UNSETTLED in row["text"]) == unsettled
        assert not unsettled or claim.check in row["text"], "how one would"


def test_the_figure_tells_the_counts_of_the_data(page):
    counts = Counter(claim.verdict for claim in claims.load().values())
    (alt,) = page.alts
    assert Counter({v: int(n) for n, v in re.findall(r"(\d+) ([a-z-]+)(?=[,.])", alt)}) == counts
    assert "Of 309 claims" in alt


def test_the_figure_needs_no_glyph_that_is_missing(recwarn):
    ledger.verdicts_markdown()
    assert [str(w.message) for w in recwarn if "missing from font" in str(w.message)] == []


def test_the_filter_offers_what_the_rows_hold(page):
    for name in ("subject", "verdict", "article"):
        first, *values = page.options[name]
        assert first == "" and set(values) == {row[f"data-{name}"] for row in page.rows}


def test_the_block_has_no_blank_line_that_would_end_it():
    assert "\n\n" not in ledger.ledger_markdown()


@pytest.fixture
def small_book(book_copy):
    row = (
        "- {{id: {0}, article: A, subject: s, claim: a <b> c., verdict: {1}, what_happens: x & y.,\n"
        "   check: assert x, needs: GPU}}\n"
    )
    (book_copy.root / "data" / "claims.yml").write_text(
        row.format("T-1", "'false'") + row.format("T-2", "needs-gpu")
    )
    book_copy.page("intro", "# Hello", front="")

    def write(*cells):
        book_copy.page("part/one", "# One & only", *cells)
        book_copy.toc("intro", "part/one")
        return Rows(ledger.ledger_markdown()).rows

    return write


def test_a_settled_claim_links_to_its_page(small_book):
    before = cell("%load_ext helpers\nx = 1")
    one, two = small_book(before, cell('%time y = 2\nif x:\n    settle("T-1", x == y)'))
    assert one["links"] == ["part/one.html#claim-t-1"]
    assert "One & only, code cell 2" in one["text"] and ledger.UNSETTLED not in one["text"]
    assert two["links"] == [] and ledger.UNSETTLED in two["text"]
    assert "a <b> c." in one["text"] and "x & y." in one["text"], "escaped once"


def test_a_claim_that_needs_a_gpu_is_not_called_settled_by_its_cell(small_book):
    _, two = small_book(cell('settle("T-2", needs_gpu="run it")'))
    assert "on a GPU, by the check in One & only" in two["text"]


def test_what_only_speaks_of_settle_settles_nothing(small_book):
    ranks = '%%torchrun --nproc 2\nsettle("T-1", x)'  # a rank shows no card
    one, _ = small_book(cell(ranks), cell('print("settle(\'T-1\')")  # settle("T-1")'))
    assert one["links"] == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('for i in ("T-1",):\n    settle(i, x)', r"part/one.md, line \d+: settle\(.*written out"),
        ('settle("T-1", x)\nsettle("T-1", y)', r"part/one.md, line \d+: T-1 .* before"),
    ],
)
def test_a_cell_that_the_ledger_could_not_link_is_refused(small_book, source, message):
    with pytest.raises(BookError, match=message):
        small_book(cell(source))


def test_anchors_of_ids_that_differ_in_primes_differ():
    ids = ["B-1a", "B-1a'", "B-1a''", "B-1.a", "B-11a"]
    assert len({claim_anchor(i) for i in ids}) == len(ids)

"""The page of all claims: their verdicts counted and drawn, a filter, a row for each."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from helpers import book, claims
from helpers.book import Chapter
from helpers.claims import SYMBOLS, Claim, claim_anchor
from helpers.lab_prose import title
from helpers.paths import BookError

ARTICLES = {
    "A": "an interview overview",
    "B": "a pitfall guide",
    "C": "compile and distributed co-design",
}
UNSETTLED = "not yet settled here"


@dataclass(frozen=True)
class Place:
    """A page that settles a claim, and the number of the code cell that does."""

    key: str
    page: str
    cell: int


def ledger_markdown() -> str:
    """The filter and every claim, as one block of HTML in Markdown.

    A blank line would end the block for MyST, so there is none.
    """
    rows = claims.load()
    places = settled_in(book.read(key) for key in book.chapters())
    lines = [
        '<div class="ledger">',
        *_filter(list(rows.values())),
        f'<p class="ledger-count" role="status">{len(rows)} claims</p>',
        *(_row(claim, places.get(claim.id, [])) for claim in rows.values()),
        "</div>",
    ]
    return "\n".join(lines)


def settled_in(chapters: Iterator[Chapter]) -> dict[str, list[Place]]:
    """Where each claim is settled: by id, the cells that call `settle("ID", ...)`.

    Raises BookError for an id that is not written out, and for a claim that a page settles
    twice: its two cards would share one address.
    """
    found: dict[str, list[Place]] = {}
    for chapter in chapters:
        prose = (c.source for c in chapter.notebook.cells if c.cell_type == "markdown")
        page = title("\n\n".join(prose))
        for cell in chapter.cells:
            where = f"chapters/{chapter.key}.md, line {cell.line}"
            for claim_id in _settled_by(cell.source, where):
                places = found.setdefault(claim_id, [])
                if any(place.key == chapter.key for place in places):
                    raise BookError(f"{where}: {claim_id} is settled on this page before.")
                places.append(Place(chapter.key, page, cell.number))
    return found


def _settled_by(source: str, where: str) -> Iterator[str]:
    if "settle(" not in source:
        return
    # Turns magics into calls. What ranks run stays text: a card is shown by the notebook.
    from IPython.core.inputtransformer2 import TransformerManager

    for node in ast.walk(ast.parse(TransformerManager().transform_cell(source))):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "settle":
            continue
        claim_id = node.args[0] if node.args else None
        if not isinstance(claim_id, ast.Constant):
            raise BookError(
                f'{where}: settle("ID", ...) takes the id written out, so that the ledger can '
                "link to the cell. Call it once for each claim."
            )
        yield claim_id.value


def verdicts_markdown() -> str:
    """How many claims have which verdict: bars with the word, the sign and the number."""
    from matplotlib import rc_context  # half a second that only the site pays
    from matplotlib.figure import Figure

    from helpers import figures

    rows = claims.load().values()
    counts = Counter(claim.verdict for claim in rows).most_common()
    names = [f"{SYMBOLS[verdict]} {verdict}" for verdict, _ in counts]
    with rc_context():
        figures.style()
        fig = Figure(figsize=(4.6, 2.4))  # inches: on a phone hardly shrunk, so still legible
        ax = fig.subplots()
        color = figures.COLORS[0]
        bars = ax.barh(names, [n for _, n in counts], facecolor=(color, 0.55), edgecolor=color)
        ax.bar_label(bars, padding=4)
        ax.invert_yaxis()
        ax.set_xlabel("claims")
        alt = ", ".join(f"{n} {verdict}" for verdict, n in counts)
        return figures.as_html(fig, alt=f"Bars, one a verdict. Of {len(rows)} claims: {alt}.")


def _filter(rows: list[Claim]) -> Iterator[str]:
    """The controls, hidden until the script that makes them work has loaded."""
    yield '<form class="ledger-filter" aria-label="Filter the claims" hidden>'
    yield _choice("Subject", "subject", Counter(claim.subject for claim in rows))
    signs = {verdict: f"{sign} {verdict}" for verdict, sign in SYMBOLS.items()}
    yield _choice("Verdict", "verdict", Counter(claim.verdict for claim in rows), signs)
    articles = {letter: f"{letter}: {name}" for letter, name in ARTICLES.items()}
    yield _choice("Article", "article", Counter(claim.article for claim in rows), articles)
    yield '<label>Words <input type="search" name="words" autocomplete="off"></label>'
    yield '<button type="button">Show all</button></form>'


def _choice(label: str, name: str, counts: Counter, texts: dict[str, str] | None = None) -> str:
    texts = texts or {value: value for value in sorted(counts, key=str.lower)}
    options = "".join(
        f'<option value="{escape(value)}">{escape(text)} ({counts[value]})</option>'
        for value, text in texts.items()
    )
    return (
        f'<label>{label} <select name="{name}"><option value="">all</option>{options}</select>'
        "</label>"
    )


def _row(claim: Claim, places: list[Place]) -> str:
    facts = [("what happens", escape(claim.what_happens))]
    if claim.when:
        facts.append(("since, until", escape(claim.when)))
    facts.append(("settled", _settled(claim, places)))
    if not places and claim.needs != "documentation":
        facts.append(("how one would", escape(claim.check)))
    facts.append(("needs", escape(claim.needs)))
    facts.append(("subject", escape(claim.subject)))
    facts.append(("article", f"{claim.article}, {ARTICLES[claim.article]}"))
    terms = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    return (
        f'<details id="{claim_anchor(claim.id)}" data-subject="{escape(claim.subject)}" '
        f'data-verdict="{claim.verdict}" data-article="{claim.article}"><summary>'
        f'<span class="ledger-verdict claim-{claim.verdict}">'
        f'<span aria-hidden="true">{SYMBOLS[claim.verdict]}</span> {claim.verdict}</span> '
        f"<code>{escape(claim.id)}</code> {escape(claim.claim)}</summary>"
        f"<dl>{terms}</dl></details>"
    )


def _settled(claim: Claim, places: list[Place]) -> str:
    """Links to the cards that settle a claim, or why there is none."""
    if places:
        links = "; ".join(
            f'<a href="{place.key}.html#{claim_anchor(claim.id)}">'
            f"{escape(place.page)}, code cell {place.cell}</a>"
            for place in places
        )
        return f"on a GPU, by the check in {links}" if claim.verdict == "needs-gpu" else links
    if claim.needs == "documentation":
        return f"by documentation: {escape(claim.check)}"
    return UNSETTLED

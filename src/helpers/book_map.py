"""The map of the book and the count of claims, made from the chapters and the data.

A page asks for them by a marker of its own: `<!-- map -->`, `<!-- claims -->`. They are filled
in when pages are staged, so that neither can be older than what it describes. `<!-- ledger -->`,
`<!-- verdicts -->` and `<!-- runs -->` are filled in on the site alone.
"""

import re
from collections.abc import Callable

import yaml

from helpers import book, claims
from helpers.paths import BookError, read_data

MARKER = re.compile(r"<!-- (\w+) -->")
BACK = "At the back"
ON_THE_SITE = "(What stands here is made for the site. See the same page of `_build/html`.)"


def fill(text: str, **made_for_the_site: Callable[[], str]) -> str:
    """`text` of a page with its markers replaced; BookError for one that nothing fills."""
    known = {
        "map": map_markdown,
        "claims": claims_markdown,
        **dict.fromkeys(("ledger", "runs"), lambda: ON_THE_SITE),
        "verdicts": lambda: "",
        **made_for_the_site,
    }

    def filled(marker: re.Match) -> str:
        if marker[1] not in known:
            raise BookError(
                f"Nothing fills the marker <!-- {marker[1]} -->. Known: {', '.join(known)}."
            )
        return known[marker[1]]()

    return MARKER.sub(filled, text)


def claims_markdown() -> str:
    """One sentence: how many claims the ledger holds, and what became of them."""
    verdicts = [claim.verdict for claim in claims.load().values()]
    count = {verdict: verdicts.count(verdict) for verdict in claims.SYMBOLS}
    return (
        f"Of {len(verdicts)} claims tried, {count['false']} are false, {count['outdated']} were "
        f"true once, {count['conditional']} hold under conditions and {count['holds']} hold as "
        f"they stand; {count['needs-gpu']} need a GPU."
    )


def map_markdown() -> str:
    """Every page by part: its minutes, what it needs, its objectives; then what is to come."""
    plan = {part["folder"]: part for part in yaml.safe_load(read_data("plan.yml"))}
    written = [book.read(key) for key in book.pages()[1:]]  # the first holds the map
    by_folder: dict[str, list[book.Chapter]] = {}
    for page in written:
        by_folder.setdefault(page.key.rpartition("/")[0], []).append(page)
    sections = [_part(part, by_folder.pop(folder, [])) for folder, part in plan.items()]
    if back := by_folder.pop("", []):
        sections.append(_part({"title": BACK}, back))
    if by_folder:
        raise BookError(f"data/plan.yml names no part for chapters/{next(iter(by_folder))}/.")
    return "\n\n".join(sections)


def _part(part: dict, pages: list[book.Chapter]) -> str:
    keys = {page.key for page in pages}
    to_come = [
        title
        for stem, title in part.get("to_come", {}).items()
        if f"{part['folder']}/{stem}" not in keys
    ]
    lines = [f"### {part['title']}", "", *map(_entry, pages)]
    if to_come:
        lines += ["", f"To come: {' · '.join(to_come)}."]
    return "\n".join(lines)


def _entry(page: book.Chapter) -> str:
    """A list item: link, facts, and the objectives below it."""
    needs = page.front.get("needs", {})
    facts = []
    if minutes := page.front.get("teach_minutes"):
        facts.append(f"{minutes} minutes")
    if (ranks := needs.get("ranks", 1)) > 1:
        facts.append(f"{ranks} ranks")
    if earlier := needs.get("chapters", []):
        facts.append("after " + ", ".join(f"{{doc}}`{key}`" for key in earlier))
    head = ", ".join([f"{{doc}}`{page.key}`", *facts])
    return "\n".join([f"- {head}", *(f"  - {goal}" for goal in page.front.get("objectives", []))])

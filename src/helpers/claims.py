"""The ledger of claims, and the cells that settle them."""

import re
from collections import Counter
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from html import escape
from importlib.metadata import version

import yaml

from helpers import paths
from helpers.display import show_html
from helpers.paths import BookError, note_use

SYMBOLS = {"holds": "✓", "conditional": "◐", "outdated": "†", "false": "✗", "needs-gpu": "?"}


class ClaimMismatch(BookError):
    """A cell observed something other than the ledger's verdict."""


@dataclass(frozen=True)
class Claim:
    """One row of data/claims.yml. `when` says until when an outdated claim was true."""

    id: str
    article: str
    subject: str
    claim: str
    verdict: str
    what_happens: str
    check: str
    needs: str
    when: str = ""


def load() -> dict[str, Claim]:
    """All claims by id, read once for each version of the file. Errors name row and field."""
    path = paths.DATA / "claims.yml"
    if not path.is_file():
        raise BookError(
            "data/claims.yml does not exist; the claims that settle() compares with stand there."
        )
    # Deliberately no note of the whole file: a chapter depends on the rows that it settles,
    # so that changing one row does not run every chapter again.
    return _load(path, path.stat().st_mtime_ns)


def claim_anchor(claim_id: str) -> str:
    """Id of a claim's HTML element, its card and its row in the ledger: "claim-b-1a-prime2"."""
    primes = claim_id.count("'")
    slug = re.sub(r"[^a-z0-9]+", "-", claim_id.lower().rstrip("'"))
    return f"claim-{slug}" + (f"-prime{primes}" if primes else "")


def settle(
    claim_id: str, observed: bool | dict | None = None, *, until: str = "", needs_gpu: str = ""
) -> None:
    """Compare what this cell observed with the ledger's verdict, and show the claim as a card.

    `observed` is computed in the cell: True (holds), False (false, or outdated with `until`),
    or a dict of conditions to bools (mixed is conditional). `needs_gpu` is the exact check to
    run on a GPU; with it `observed` may be left out, and where it is given the card shows it.
    Raises ClaimMismatch when the verdict differs, BookError for an unknown id.
    """
    claims = load()
    if claim_id not in claims:
        near = ", ".join(get_close_matches(str(claim_id), claims, 5)) or "none"
        raise BookError(f"data/claims.yml has no claim {claim_id!r}. Near it: {near}.")
    claim = claims[claim_id]
    if observed is not None:
        found = verdict_of(observed, until)
    elif needs_gpu:
        found = ""
    else:
        raise BookError(
            f"settle({claim_id!r}, ...) needs what the cell observed, or needs_gpu= the check."
        )
    expected = "needs-gpu" if needs_gpu else found
    if claim.verdict != expected:
        raise ClaimMismatch(
            f"{claim_id}: the ledger says {claim.verdict!r}, this cell observed {expected!r}. "
            "Mend the check, or the row in data/claims.yml."
        )
    if found == "outdated" and until not in claim.when:
        raise ClaimMismatch(
            f"{claim_id}: until={until!r} does not stand in the row's when: {claim.when!r}."
        )
    note_use("claim", claim_id)
    _show_card(claim, observed if isinstance(observed, dict) else {}, found, until, needs_gpu)


def verdict_of(observed: bool | dict, until: str = "") -> str:
    """The verdict that an observation amounts to; see `settle`. Never "needs-gpu"."""
    results = list(observed.values()) if isinstance(observed, dict) else [observed]
    if not results or any(type(result) is not bool for result in results):
        raise BookError(
            f"What a cell observed is a bool, or a dict of conditions to bools, not {observed!r}."
        )
    if all(results):
        return "holds"
    if any(results):
        return "conditional"
    return "outdated" if until else "false"


def tally(*subjects: str) -> str:
    """A table of how many claims of each of `subjects` have which verdict; of several, also together.

    The chapter then depends on all these rows. Raises BookError for a subject that has no claim.
    """
    counts = {}
    for subject in subjects:
        rows = [claim for claim in load().values() if claim.subject == subject]
        if not rows:
            raise BookError(f"data/claims.yml has no claim on the subject {subject!r}.")
        for claim in rows:
            note_use("claim", claim.id)
        counts[subject] = Counter(claim.verdict for claim in rows)
    if len(subjects) > 1:
        counts["together"] = sum(counts.values(), Counter())
    width = max(map(len, counts))
    lines = [" ".join([" " * width, *(f"{verdict:>11}" for verdict in SYMBOLS)])]
    for subject, count in counts.items():
        lines.append(" ".join([f"{subject:{width}}", *(f"{count[v]:11}" for v in SYMBOLS)]))
    return "\n".join(lines)


def _show_card(claim: Claim, conditions: dict, found: str, until: str, needs_gpu: str) -> None:
    lines = [("what happens, by the ledger", claim.what_happens)]
    lines += [("✓ yes" if yes else "✗ no", text) for text, yes in conditions.items()]
    if found == "outdated":
        lines.append(("true until", until))
    if needs_gpu:
        lines.append(("to settle on a GPU", needs_gpu))
        lines.append(("on this machine", found or "not run"))
    text = "\n".join(
        [f"{claim.id}  {claim.verdict}: {claim.claim}"] + [f"  {k}: {v}" for k, v in lines]
    )
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in lines)
    show_html(
        f'<div class="claim-card claim-{claim.verdict}" id="{claim_anchor(claim.id)}">'
        f'<p class="claim-verdict">'
        f"<strong>{SYMBOLS[claim.verdict]} {claim.verdict}</strong> <code>{escape(claim.id)}</code></p>"
        f'<p class="claim-text">{escape(claim.claim)}</p><dl>{rows}</dl>'
        f'<p class="claim-version">torch {escape(version("torch"))}</p></div>',
        text,
    )


@cache
def _load(path, _mtime: int) -> dict[str, Claim]:
    try:
        rows = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise BookError(f"data/claims.yml is not YAML: {error}") from None
    if not isinstance(rows, list):
        raise BookError("data/claims.yml must be a list of claims, each starting with '- id: ...'.")
    claims: dict[str, Claim] = {}
    for number, row in enumerate(rows, 1):
        claim = _claim(row, number)
        if claim.id in claims:
            raise BookError(f"data/claims.yml, row {number}: the id {claim.id} stands there twice.")
        claims[claim.id] = claim
    return claims


def _claim(row: object, number: int) -> Claim:
    if not isinstance(row, dict):
        raise BookError(f"data/claims.yml, row {number} is not a set of fields.")
    where = f"data/claims.yml, row {number} ({row.get('id', 'without id')})"
    known = {field.name for field in fields(Claim)}
    required = known - {"when"} | ({"when"} if row.get("verdict") == "outdated" else set())
    for name in sorted(required - row.keys()):
        raise BookError(f"{where}: the field {name!r} is missing.")
    for name, value in row.items():
        if name not in known:
            raise BookError(f"{where}: unknown field {name!r}. Known: {', '.join(sorted(known))}.")
        if not isinstance(value, str) or not value.strip():
            raise BookError(f"{where}: {name} must be text; put it in quotes: {value!r}.")
    if row["verdict"] not in SYMBOLS:
        raise BookError(
            f"{where}: unknown verdict {row['verdict']!r}. Known: {', '.join(SYMBOLS)}."
        )
    if row["article"] not in ("A", "B", "C"):
        raise BookError(f"{where}: article is A, B or C, not {row['article']!r}.")
    return Claim(**row)

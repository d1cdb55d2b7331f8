import json
import random
import re
import time

import pytest
import yaml

from helpers import BookError, claims, paths, settle
from helpers.claims import ClaimMismatch, verdict_of

ROWS = {
    "T-1": ("holds", ""),
    "T-2": ("false", ""),
    "T-3": ("conditional", ""),
    "T-4": ("outdated", "removed in 2.4, July 2024"),
    "T-5": ("needs-gpu", ""),
}


def row(claim_id, verdict, when="", **changes):
    fields = {
        "id": claim_id,
        "article": "A",
        "subject": "capture",
        "claim": f"Claim <{claim_id}>",
        "verdict": verdict,
        "what_happens": "Something else.",
        "check": "assert x",
        "needs": "CPU, 1 process",
    } | ({"when": when} if when else {})
    return {name: value for name, value in (fields | changes).items() if value is not None}


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Write rows as data/claims.yml of a checkout of its own."""
    monkeypatch.setattr(paths, "DATA", tmp_path)

    def write(rows):
        (tmp_path / "claims.yml").write_text(
            rows if isinstance(rows, str) else yaml.safe_dump(rows)
        )

    write([row(claim_id, *rest) for claim_id, rest in ROWS.items()])
    return write


def settle_as(verdict):
    """A settle call that observes `verdict`."""
    return {
        "holds": lambda i: settle(i, True),
        "false": lambda i: settle(i, False),
        "conditional": lambda i: settle(i, {"batch 1": True, "batch 2": False}),
        "outdated": lambda i: settle(i, False, until="2.4"),
        "needs-gpu": lambda i: settle(i, needs_gpu="run it with nccl"),
    }[verdict]


@pytest.mark.parametrize("claim_id", ROWS)
@pytest.mark.parametrize("observed", claims.SYMBOLS)
def test_only_the_recorded_verdict_settles(ledger, claim_id, observed, capsys):
    verdict, _ = ROWS[claim_id]
    if observed == verdict:
        settle_as(observed)(claim_id)
        first = capsys.readouterr().out.splitlines()[0]
        assert first == f"{claim_id}  {verdict}: Claim <{claim_id}>"
    else:
        with pytest.raises(ClaimMismatch, match=f"{claim_id}.*{verdict!r}.*{observed!r}"):
            settle_as(observed)(claim_id)


def test_flipping_a_verdict_fails_the_cell_that_settled_it(ledger):
    settle("T-2", False)
    ledger([row("T-2", "holds")])
    with pytest.raises(ClaimMismatch):
        settle("T-2", False)


def test_card(ledger, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show_html", lambda html, text: shown.append((html, text)))
    settle("T-3", {"batch < 2": True, "batch 2": False})
    html, text = shown[0]
    assert text.splitlines() == [
        "T-3  conditional: Claim <T-3>",
        "  what happens, by the ledger: Something else.",
        "  ✓ yes: batch < 2",
        "  ✗ no: batch 2",
    ]
    assert 'class="claim-card claim-conditional"' in html and "◐ conditional" in html
    assert "Claim &lt;T-3&gt;" in html and "batch &lt; 2" in html
    assert re.search(r"torch \d+\.\d+\.\d+", html) and "torch 2" not in text
    assert "style=" not in html


def test_card_of_a_claim_that_needs_a_gpu_tells_the_check_and_what_this_machine_saw(ledger, capsys):
    settle("T-5", needs_gpu="run it with nccl")
    out = capsys.readouterr().out
    assert "to settle on a GPU: run it with nccl" in out and "on this machine: not run" in out
    settle("T-5", True, needs_gpu="run it with nccl")
    assert "on this machine: holds" in capsys.readouterr().out


def test_until_must_stand_in_the_row(ledger):
    with pytest.raises(ClaimMismatch, match=r"until='2\.1'.*removed in 2\.4"):
        settle("T-4", False, until="2.1")


def test_verdict_of():
    assert verdict_of({"a": True, "b": True}) == "holds"
    assert verdict_of({"a": False, "b": False}) == "false"
    assert verdict_of(True, until="2.4") == "holds"
    for bad in (1, "yes", {}, {"a": 1}, [True], None):
        with pytest.raises(BookError, match="is a bool, or a dict"):
            verdict_of(bad)


def test_settle_wants_an_observation(ledger):
    with pytest.raises(BookError, match="needs what the cell observed"):
        settle("T-1")


def test_unknown_id_names_near_ones(ledger):
    with pytest.raises(BookError, match=r"no claim 'T-6'.*T-1"):
        settle("T-6", True)


@pytest.mark.parametrize(
    "rows, message",
    [
        ([row("T-1", "holds"), row("T-1", "holds")], r"row 2: the id T-1 stands there twice"),
        ([row("T-1", "true")], r"T-1.*unknown verdict 'true'"),
        ([row("T-1", False)], r"T-1.*verdict must be text; put it in quotes: False"),
        ([row("T-1", "holds", claim=None)], r"T-1.*'claim' is missing"),
        ([row("T-1", "outdated")], r"T-1.*'when' is missing"),
        ([row("T-1", "holds", needs=" ")], r"T-1.*needs must be text"),
        ([row("T-1", "holds", whn="2.4")], r"T-1.*unknown field 'whn'"),
        ([row("T-1", "holds", article="D")], r"T-1.*article is A, B or C"),
        ([row(None, "holds")], r"row 1 \(without id\).*'id' is missing"),
        (["T-1"], r"row 1 is not a set of fields"),
        ({"T-1": {}}, r"must be a list of claims"),
        ("- id: [", r"is not YAML"),
    ],
)
def test_bad_rows_are_named(ledger, rows, message):
    ledger(rows)
    with pytest.raises(BookError, match=message):
        claims.load()


def test_missing_file(ledger, tmp_path):
    (tmp_path / "claims.yml").unlink()
    with pytest.raises(BookError, match="does not exist"):
        settle("T-1", True)


def test_a_chapter_depends_on_the_claims_it_settles_and_not_on_the_file(
    ledger, tmp_path, monkeypatch
):
    monkeypatch.setenv("BOOK_USES", str(tmp_path / "uses"))
    settle("T-1", True)
    settle("T-2", False)
    uses = [json.loads(line) for line in (tmp_path / "uses").read_text().splitlines()]
    assert uses == [{"kind": "claim", "name": "T-1"}, {"kind": "claim", "name": "T-2"}]


def test_tally_counts_the_verdicts_of_subjects_and_depends_on_their_rows(
    ledger, tmp_path, monkeypatch
):
    monkeypatch.setenv("BOOK_USES", str(tmp_path / "uses"))
    rows = [row("T-1", "false"), row("T-2", "holds", subject="b"), row("T-3", "false", subject="b")]
    ledger([*rows, row("T-4", "false", subject="c")])
    header, *lines = [line.split() for line in claims.tally("capture", "b").splitlines()]
    assert header == list(claims.SYMBOLS)
    assert lines == [
        ["capture", *"00010"],
        ["b", *"10010"],
        ["together", *"10020"],
    ]
    uses = [json.loads(line)["name"] for line in (tmp_path / "uses").read_text().splitlines()]
    assert uses == ["T-1", "T-2", "T-3"]
    assert claims.tally("b").splitlines()[1:] == ["b" + "".join(f"{n:>12}" for n in "10010")]
    with pytest.raises(BookError, match="no claim on the subject 'd'"):
        claims.tally("d")


def test_the_file_is_read_once_for_each_version(ledger):
    assert claims.load() is claims.load()
    before = claims.load()
    ledger([row("T-9", "holds")])
    assert claims.load() is not before and list(claims.load()) == ["T-9"]


def test_the_books_ledger_is_valid_and_quick():
    start = time.perf_counter()
    assert len(claims.load()) == 309
    print(f"309 claims in {time.perf_counter() - start:.3f} s")


def test_flipped_rows_of_the_books_ledger_are_caught(ledger, capsys):
    seed = random.randrange(10**6)
    print("seed", seed)
    real = yaml.load((paths.ROOT / "data/claims.yml").read_text(), yaml.SafeLoader)
    for original in random.Random(seed).sample(real, 3):
        until = original.get("when", "")
        verdict = original["verdict"]
        observe = {
            **{v: settle_as(v) for v in claims.SYMBOLS},
            "outdated": lambda i, until=until: settle(i, False, until=until),
        }[verdict]
        ledger([original])
        observe(original["id"])
        for other in claims.SYMBOLS.keys() - {verdict}:
            ledger([original | {"verdict": other, "when": until or "2.0"}])
            with pytest.raises(ClaimMismatch):
                observe(original["id"])


def test_observations_are_computed_in_the_chapters():
    value = r"(True|False|\{[^}]*:\s*(True|False)\s*[,}])"
    literal = re.compile(rf"settle\(\s*[^,()]+,\s*(observed\s*=\s*)?{value}")
    found = [path.name for path in paths.CHAPTERS.rglob("*.md") if literal.search(path.read_text())]
    assert not found, f"settle() is given a literal, not an observation, in: {found}"
    assert literal.search('settle("A-1", True)') and literal.search('settle("A-1", {"x": False})')
    assert not literal.search('settle("A-1", not torch.equal(a, b))')

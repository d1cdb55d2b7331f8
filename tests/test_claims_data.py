"""The ledger's data: complete, and in words that need no other text beside them."""

import re
from collections import Counter

import pytest
import yaml

from helpers.claims import load
from helpers.paths import DATA

FIELDS = ["id", "article", "subject", "claim", "verdict", "when", "what_happens", "check", "needs"]
VERDICTS = {"holds": 30, "conditional": 67, "outdated": 13, "false": 180, "needs-gpu": 19}
# Closed, because readers filter by it: a new subject is a decision about the ledger's page.
SUBJECTS = {
    "FSDP",
    "FSDP under compile",
    "ZeRO",
    "build and monitoring tools",
    "capture timing",
    "checkpoints",
    "collective costs",
    "collectives in the graph",
    "compile backends",
    "data parallel",
    "export and TorchScript",
    "graph breaks",
    "guards and recompiles",
    "hangs and diagnosis",
    "kernels and custom ops",
    "mixed precision",
    "the joint graph",
    "topology",
    "versions and APIs",
    "what ranks must agree on",
}
# Names of scripts that no reader has, labels of working notes, a pointer that nobody can follow.
SHORTHAND = re.compile(r"\b[a-z]\d\w*\.py\b|evidence/|Lesson:|\bsee [ABC]-\d|/tmp/")


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return yaml.safe_load((DATA / "claims.yml").read_text("utf-8"))


def test_all_claims_load(rows):
    assert len(rows) == len(load()) == 309


def test_rows_have_the_fields_in_one_order(rows):
    for row in rows:
        optional = () if row["verdict"] == "outdated" else ("when",)
        assert list(row) == [name for name in FIELDS if name not in optional], row["id"]


def test_rows_stand_in_order_of_article_and_id(rows):
    order = [(row["article"], row["id"]) for row in rows]
    assert order == sorted(set(order))
    assert all(row["id"].startswith(row["article"] + "-") for row in rows)


def test_no_verdict_was_lost_or_changed_by_hand(rows):
    assert Counter(row["verdict"] for row in rows) == VERDICTS


def test_subjects_are_the_closed_list(rows):
    assert {row["subject"] for row in rows} == SUBJECTS


def test_no_two_rows_make_the_same_claim(rows):
    assert [text for text, n in Counter(row["claim"] for row in rows).items() if n > 1] == []


def test_rows_are_plain_sentences_for_a_stranger(rows):
    for row in rows:
        for name in ("claim", "what_happens", "check"):
            assert not SHORTHAND.search(row[name]), (row["id"], name, SHORTHAND.search(row[name]))
        for name in ("claim", "what_happens"):
            assert row[name][-1] in '.!?"', (row["id"], name)


def test_a_row_by_documentation_names_the_document(rows):
    by_documentation = [row for row in rows if row["needs"] == "documentation"]
    tools = {row["id"] for row in rows if row["subject"] == "build and monitoring tools"}
    assert tools <= {row["id"] for row in by_documentation}
    names = re.compile(
        r"documentation|reference|specification|conventions|guide|README|package", re.I
    )
    assert [row["id"] for row in by_documentation if not names.search(row["check"])] == []


def test_what_needs_a_gpu_says_so(rows):
    assert [r["id"] for r in rows if r["verdict"] == "needs-gpu" and "GPU" not in r["needs"]] == []

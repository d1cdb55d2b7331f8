"""A verdict that is changed in data/claims.yml fails the build of the chapter that settles it."""

import random
import shutil

import yaml
from tiny_book import TinyBook

from helpers import book, ledger, paths


def test_a_flipped_verdict_fails_the_build(tmp_path):
    """One claim of one chapter, another in each run: a build of a chapter takes a minute."""
    places = ledger.settled_in(map(book.read, book.chapters()))
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    chapters = dice.sample(sorted({place.key for found in places.values() for place in found}), 1)
    flipped = {
        key: dice.choice([id for id, found in places.items() if any(p.key == key for p in found)])
        for key in chapters
    }
    copy = TinyBook(tmp_path)
    for folder in ("chapters", "data"):
        shutil.copytree(paths.ROOT / folder, tmp_path / folder, dirs_exist_ok=True)
    shutil.copy(paths.ROOT / "_toc.yml", tmp_path)
    rows = yaml.safe_load((tmp_path / "data/claims.yml").read_text("utf-8"))
    for row in rows:
        if row["id"] in flipped.values():
            row["verdict"] = "false" if row["verdict"] != "false" else "holds"
    (tmp_path / "data/claims.yml").write_text(yaml.safe_dump(rows, allow_unicode=True))
    code, output = copy.helpers("build", "--no-site", *chapters)
    print(output)
    assert code == 1 and f"1 of 1 failed: {chapters[0]}" in output
    for claim_id in flipped.values():
        assert f"ClaimMismatch: {claim_id}" in output

"""The rule of STRICT=1, and that a BookCopy is a checkout of its own."""

import os
import subprocess
import sys
from pathlib import Path

from helpers import paths

SKIPS = """
import pytest

def test_gpu(): pytest.skip("no GPU here")
def test_shared(): pytest.skip("no ../shared")
@pytest.mark.xfail(reason="known", strict=True)
def test_known(): assert False
def test_other(): pytest.skip("no compiler")
@pytest.mark.skipif(True, reason="no network")
def test_marked(): pass
"""
MODULE = 'import pytest\npytest.skip("no GPU: none", allow_module_level=True)\n'
MODULE_OTHER = 'import pytest\npytest.importorskip("surely_absent")\n'


def test_strict_permits_only_skips_that_ci_cannot_help(tmp_path):
    here = Path(__file__).parent
    (tmp_path / "conftest.py").write_text((here / "conftest.py").read_text())
    for name, text in {"a": SKIPS, "b": MODULE, "c": MODULE_OTHER}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    outcome = {}
    for strict in ("", "1"):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
        command += ["--continue-on-collection-errors"]
        env = {**os.environ, "STRICT": strict, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        outcome[strict] = done.returncode, done.stdout.strip().split("\n")[-1].split(" in ")[0]
    assert outcome[""] == (0, "6 skipped, 1 xfailed")
    assert outcome["1"] == (1, "1 failed, 3 skipped, 1 xfailed, 2 errors")
    assert "STRICT=1 forbids this skip: no network" in done.stdout
    assert "STRICT=1 forbids this skip: could not import 'surely_absent'" in done.stdout


def test_book_copy_stands_alone(book_copy):
    assert book_copy.root == paths.ROOT
    done = book_copy.run("from helpers import paths; print(paths.ROOT)")
    assert done.stdout == f"{book_copy.root}\n", done.stderr

"""What all tests share: a throw-away checkout, and the rule that STRICT=1 permits no silent skip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import paths

MAY_BE_ABSENT = ("no GPU", "no ../shared")
FRONT_MATTER = """---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
objectives: [Say what it does]
teach_minutes: 5
---
"""


def _strictly(report):
    """Under STRICT=1 a skip is a failure, unless its reason is one that CI cannot help."""
    if os.environ.get("STRICT") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(MAY_BE_ABSENT):
            report.outcome = "failed"
            report.longrepr = f"STRICT=1 forbids this skip: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _strictly((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _strictly((yield))


class BookCopy:
    """A checkout of its own in `root`: `src/`, and the pages that a test writes."""

    def __init__(self, root: Path):
        self.root = root
        (root / "chapters").mkdir()
        (root / "data").mkdir()

    def page(self, key: str, *blocks: str, front: str = FRONT_MATTER) -> Path:
        """Write chapters/<key>.md from blocks of Markdown, one blank line apart."""
        path = self.root / "chapters" / f"{key}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(front + "\n" + "\n\n".join(blocks) + "\n", encoding="utf-8")
        return path

    def toc(self, root: str, *keys: str) -> None:
        """Write _toc.yml: the page `root`, then one part with the pages `keys`."""
        entries = "".join(f"      - file: chapters/{key}\n" for key in keys)
        part = f"parts:\n  - caption: Part\n    chapters:\n{entries}" if keys else ""
        text = f"format: jb-book\nroot: chapters/{root}\n{part}"
        (self.root / "_toc.yml").write_text(text, encoding="utf-8")

    def run(self, code: str, **kwargs) -> subprocess.CompletedProcess:
        """Run Python `code` in a process that uses this checkout's helpers; output is captured."""
        if not (self.root / "src").exists():
            no_caches = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(Path(paths.__file__).parents[1], self.root / "src", ignore=no_caches)
        env = {**os.environ, "PYTHONPATH": str(self.root / "src"), **kwargs.pop("env", {})}
        command = [sys.executable, "-c", code]
        options = {"cwd": self.root, "capture_output": True, "text": True, "timeout": 120, **kwargs}
        return subprocess.run(command, env=env, check=False, **options)


def cell(code: str, *tags: str, fence: str = "```") -> str:
    """A code cell in MyST; `export` and other tags as wanted."""
    options = f":tags: [{', '.join(tags)}]\n\n" if tags else ""
    return f"{fence}{{code-cell}}\n{options}{code}\n{fence}"


@pytest.fixture
def book_copy(tmp_path, monkeypatch):
    """A BookCopy; while the test runs `helpers.paths` points there, in this process as well."""
    root = tmp_path / "book"
    root.mkdir()
    copy = BookCopy(root)
    folders = {"ROOT": "", "CHAPTERS": "chapters", "DATA": "data", "BUILD": "_build"}
    for name, folder in folders.items():
        monkeypatch.setattr(paths, name, root / folder)
    before = set(sys.modules)
    yield copy
    for name in set(sys.modules) - before:
        if name.startswith("helpers.lessons.") and not name.startswith("helpers.lessons._"):
            del sys.modules[name]


@pytest.fixture
def one_rank():
    """This process is a world of one rank."""
    import torch.distributed as dist  # most tests need no torch

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()

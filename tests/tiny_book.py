"""A book of a few cells, built in a folder of its own by a copy of `helpers`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import BookCopy, cell

from helpers import paths


class TinyBook(BookCopy):
    """Chapters are written with `chapter`, executed with `execute`; `ran()` says which were."""

    def __init__(self, root: Path):
        super().__init__(root)
        no_caches = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(paths.ROOT / "src", root / "src", ignore=no_caches)
        for name in ("_config.yml", "pyproject.toml", "tests/nbval_sanitize.cfg"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(paths.ROOT / name, root / name)
        for folder in filter(Path.is_dir, paths.CHAPTERS.glob("_*")):
            shutil.copytree(folder, root / "chapters" / folder.name)
        self.page("intro", "# A tiny book", "Hello.", front="")
        self.log = root / "ran.txt"
        self.keys: list[str] = []

    def chapter(self, key: str, *cells: str, prose: str = "") -> Path:
        """Write a chapter; a cell that starts with `#tags: a, b` has these tags."""
        blocks = [f"# Page {key}", prose]
        note = f"import os; open({str(self.log)!r}, 'a').write('{key}\\n')"
        for each in (note, *cells):
            first, _, rest = each.partition("\n")
            tagged = first.startswith("#tags: ")
            tags = first.removeprefix("#tags: ").split(", ") if tagged else []
            blocks += [cell(rest if tagged else each, *tags), "Words between cells."]
        if key not in self.keys:
            self.keys.append(key)
            self.toc("intro", *self.keys)
        return self.page(key, *blocks)

    def path(self, key: str) -> Path:
        return self.root / "chapters" / f"{key}.md"

    def edit(self, path: Path | str, old: str, new: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def environment(self, **variables: str) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("BOOK_", "PYTEST_"))}
        return clean | {"PYTHONPATH": str(self.root / "src")} | variables

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "helpers", *arguments],
            cwd=self.root,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def helpers(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Exit status and output of `python -m helpers ...`."""
        process = self.start(*arguments, **variables)
        output, _ = process.communicate(timeout=600)
        return process.returncode, output

    def execute(self, *names: str) -> list[str]:
        """Build without a site; the chapters that were really executed, in order."""
        code, output = self.helpers("build", "--no-site", *names)
        print(output)  # says why; pytest shows it when the test fails
        assert code == 0
        return self.ran()

    def ran(self) -> list[str]:
        """Chapters whose first cell ran since the last call."""
        keys = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return keys

    def run_file(self, key: str) -> Path:
        return self.root / "_build" / "run" / f"{key}.ipynb"

    def outputs(self, key: str) -> str:
        """All outputs of a chapter's stored run, as text."""
        cells = json.loads(self.run_file(key).read_text())["cells"]
        return json.dumps([cell.get("outputs") for cell in cells])

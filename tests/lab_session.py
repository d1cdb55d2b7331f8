"""`make lab` in a checkout of its own, as a reader sees it in a browser."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from helpers import paths

CHECKOUT = ("src", "chapters", "data", "_toc.yml", "_config.yml", "Makefile", "pyproject.toml")
MADE = ("lab", "_build", "__pycache__", ".ipynb_checkpoints")
MARK = "LAB_SESSION"  # every process of a session inherits it
TOKEN = "reader"
LIMIT = 300  # seconds; a session takes a tenth of it on a quiet machine


class LabServer:
    """A running `python -m helpers lab`. `root` is its checkout, `mark` names its processes."""

    def __init__(self, root: Path):
        self.root, self.mark = root, str(root)
        self.url = f"http://127.0.0.1:{_free_port()}"
        options = [
            *("--no-browser", f"--port={urlsplit(self.url).port}", "--ServerApp.port_retries=0"),
            *(f"--IdentityProvider.token={TOKEN}", "--LabApp.expose_app_in_browser=True"),
            *(["--allow-root"] if os.geteuid() == 0 else []),
        ]
        home = root.parent / "home"
        home.mkdir()
        ours = ("BOOK_", "JUPYTER", "PYTEST_", "XDG_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        env |= {"HOME": str(home), "PYTHONPATH": str(root / "src"), MARK: self.mark}
        self.log = root.parent / "server.log"
        with open(self.log, "w") as log:
            command = [sys.executable, "-m", "helpers", "lab", *options]
            self._process = subprocess.Popen(
                command, cwd=root, env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self._process.poll() is None, self.log.read_text()
            with suppress(urllib.error.URLError):
                return bool(urllib.request.urlopen(f"{self.url}/api/status?token={TOKEN}"))
            return False

        wait_for(ready, lambda: self.log.read_text())

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            for process in self.processes():
                process.kill()

    def processes(self, of_jobs: bool = False) -> list[psutil.Process]:
        """What this session started and is alive: torchrun and its ranks, or everything."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                env = process.environ()
                if env.get(MARK) == self.mark and ("BOOK_RUN" in env or not of_jobs):
                    found.append(process)
        return found


class Reader:
    """A browser's page that shows JupyterLab, and everything it complained about or fetched."""

    def __init__(self, browser, server: LabServer):
        self.server = server
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.page = browser.new_page(viewport={"width": 1400, "height": 900})
        self.page.set_default_timeout(1000 * LIMIT)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._note_request)
        self.page.goto(f"{server.url}/lab?token={TOKEN}&reset")

    def _note(self, message) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location['url']})")

    def _note_request(self, request) -> None:
        url = urlsplit(request.url)
        if url.scheme in ("http", "https", "ws", "wss") and url.hostname != "127.0.0.1":
            self.elsewhere.append(request.url)

    def open(self, name: str) -> None:
        """By a double click in the list of files; returns when a kernel is ready."""
        files = self.page.locator(".jp-DirListing-item")
        files.filter(has=self.page.get_by_text(name, exact=True)).dblclick()
        self.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()

    def run_all(self) -> None:
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text("Run", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()

    def press_stop(self) -> None:
        self.page.locator('[data-command="notebook:interrupt-kernel"]').first.click()

    def code_cells(self) -> list[dict]:
        """As the notebook is now, outputs included."""
        model = "jupyterapp.shell.currentWidget.content.model.toJSON()"
        cells = json.loads(self.page.evaluate(f"JSON.stringify({model})"))["cells"]
        return [cell for cell in cells if cell["cell_type"] == "code"]

    def finished(self) -> bool:
        """All cells ran, or one raised."""
        return bool(self.outputs("error")) or all(c["execution_count"] for c in self.code_cells())

    def outputs(self, kind: str) -> list[dict]:
        return [o for c in self.code_cells() for o in c["outputs"] if o["output_type"] == kind]

    def printed(self) -> str:
        return "".join("".join(output["text"]) for output in self.outputs("stream"))


def wait_for(condition: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Poll until `condition` holds; AssertionError with what `otherwise` says after LIMIT."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.2)


@contextmanager
def lab_server(folder: Path) -> Iterator[LabServer]:
    """`make lab` in a copy of this checkout below `folder`."""
    root = folder / "book"
    root.mkdir()
    for name in CHECKOUT:
        copy = shutil.copytree if (paths.ROOT / name).is_dir() else shutil.copy
        copy(paths.ROOT / name, root / name)
    server = LabServer(root)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def tracked(root: Path) -> dict[str, str]:
    """Hashes of all files of a checkout that Lab has no business with."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not set(MADE) & set(path.relative_to(root).parts)
    }


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]

"""Kernels for nbval: one that replays the last run, and one that really runs the cells.

With `nbreplay`, unmodified nbval compares the committed references with what will be
published, and no cell runs twice. With `nblive` the same comparison crosses a real kernel.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import nbformat
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from helpers import cache, paths
from helpers.execute import JUPYTER, chapter_environment, executed_cells
from helpers.outputs import REFERENCES, comparable

NAMES = {"nbreplay": "replay", "nblive": "live"}


def install_kernels() -> None:
    """Describe both kernels in `_build/jupyter`, and nowhere in the reader's home."""
    for name, mode in NAMES.items():
        argv = [sys.executable, "-m", "helpers.replay_kernel", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": name, "language": "python"}
        spec["env"] = {"BOOK_KERNEL": mode}
        cache.write_atomic(JUPYTER / "kernels" / name / "kernel.json", json.dumps(spec))


def tested_chapter() -> str:
    """Key of the chapter that nbval is at; pytest names the test in the environment."""
    path = Path(os.environ["PYTEST_CURRENT_TEST"].partition("::")[0])
    folder = REFERENCES.relative_to(paths.ROOT)
    return path.relative_to(folder).with_suffix("").as_posix()


class ReplayKernel(Kernel):
    """Answers each cell with the output stored by the last build."""

    implementation, implementation_version, banner = "nbreplay", "1", ""
    language_info = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"}  # noqa: RUF012

    def __init__(self, **options):
        super().__init__(**options)
        path = cache.run_path(tested_chapter())
        stored = nbformat.read(path, as_version=4) if path.exists() else None
        self.waiting = executed_cells(stored) if stored else []

    async def do_execute(self, code, silent, *args, **options):
        """Jupyter's protocol: publish the outputs, then return the reply."""
        cell = self.waiting.pop(0) if self.waiting else None
        if cell is None or cell.source.strip() != code.strip():
            self._send("error", _error("the last run executed other code here; run: make book"))
        else:
            for output in comparable(cell.outputs):
                content = dict(output)
                self._send(content.pop("output_type"), content)
        return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}

    def _send(self, kind: str, content: dict) -> None:
        self.send_response(self.iopub_socket, kind, content)


def _error(message: str) -> dict:
    return {"ename": "StaleRun", "evalue": message, "traceback": [message]}


def _live(app: IPKernelApp) -> None:
    """Make a real kernel run as the builder's does, and publish only what is compared."""
    key = tested_chapter()
    os.environ.update(chapter_environment(key))
    folder = paths.BUILD / "live" / key  # a build that runs beside it sweeps its own scratch folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    app.initialize()
    for channel in (app.shell.display_pub, app.shell.displayhook):
        channel.register_hook(_plain_text_only)


def _plain_text_only(message: dict) -> dict | None:
    data = message["content"].get("data")
    if data is not None:
        message["content"]["data"] = {k: v for k, v in data.items() if k == "text/plain"}
    return message if data is None or message["content"]["data"] else None


if __name__ == "__main__":
    if os.environ["BOOK_KERNEL"] == "live":
        app = IPKernelApp.instance()
        _live(app)
        app.start()
    else:
        IPKernelApp.launch_instance(kernel_class=ReplayKernel)

"""What ran, when, where and for how long: the table of "How this book is tested"."""

import platform
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from nbformat import NotebookNode

from helpers import devices
from helpers.book import Chapter

PACKAGES = ("torch", "numpy", "triton", "deepspeed", "papermill", "nbval", "jupyter-book")
ECHO = re.compile(r"^\$ torchrun .*# \d+ ranks?, (.+)$|^# ran with (.+)$", re.MULTILINE)
HEAD = """\
| page | code cells | of them distributed | ranks ran with | seconds | finished (UTC) |
|---|---:|---:|---|---:|---|"""
NO_GPU = (
    "**Not run on a GPU**: there was none. Every cell above ran on CPUs, and claims that need a "
    "GPU say what to run on one."
)


def this_machine() -> dict[str, str]:
    """What a run depends on here, in words: versions, system, compiler, cores, GPUs.

    Kept with each run, since the machine that makes the site may be another one.
    """
    found = devices.compiler()
    installed = ((name, _version(name)) for name in PACKAGES)
    return {
        "Python": platform.python_version(),
        **{name: number for name, number in installed if number},
        "system": f"{platform.system()} {platform.machine()}",
        "C++ compiler": found["version"] if found else "none",
        "cores": str(devices.cores()),
        "GPUs": ", ".join(devices.gpus()) or "none",
    }


def runs_markdown(chapters: dict[str, Chapter], runs: dict[str, NotebookNode]) -> str:
    """A table of all chapters and their runs, and below it the machines that they ran on.

    `runs` are the executed notebooks that the site shows; a chapter without one says so.
    """
    table = [HEAD, *(_row(chapter, runs.get(key)) for key, chapter in chapters.items())]
    machines = [run.metadata["ran_on"] for run in runs.values()]
    different = [facts for i, facts in enumerate(machines) if facts not in machines[:i]]
    parts = ["\n".join(table)]
    for facts in different:
        keys = [key for key, run in runs.items() if run.metadata["ran_on"] == facts]
        parts += [_where(keys, len(different) == 1), "\n".join(_facts(facts))]
    if all(facts["GPUs"] == "none" for facts in machines):
        parts.append(NO_GPU)
    return "\n\n".join(parts)


def _row(chapter: Chapter, run: NotebookNode | None) -> str:
    distributed = sum(cell.source.startswith("%%torchrun") for cell in chapter.cells)
    facts = [f"{{doc}}`{chapter.key}`", len(chapter.cells), distributed]
    if run is None:
        facts += ["not executed", "", ""]
    else:
        timed = run.metadata["papermill"]
        ended = datetime.fromisoformat(timed["end_time"]).astimezone(UTC)
        facts += [", ".join(_ran_with(run)) or "no ranks", f"{timed['duration']:.0f}"]
        facts.append(f"{ended:%Y-%m-%d %H:%M}")
    return f"| {' | '.join(map(str, facts))} |"


def _ran_with(run: NotebookNode) -> list[str]:
    """Backends and devices that the distributed cells printed, such as "gloo on cpu"."""
    found: dict[str, None] = {}
    for cell in run.cells:
        outputs = cell.get("outputs", [])
        text = "".join(output.get("text", "") for output in outputs)
        # The last line of a cell that says it: a rank may have chosen otherwise than announced.
        if said := ECHO.findall(text):
            found.update(dict.fromkeys([said[-1][0] or said[-1][1]]))
    return list(found)


def _where(keys: list[str], all_of_them: bool) -> str:
    if all_of_them:
        return "All ran on one kind of machine:"
    return ", ".join(f"{{doc}}`{key}`" for key in keys) + " ran on:"


def _facts(facts: dict[str, str]) -> Iterator[str]:
    yield "| | |\n|---|---|"
    for name, value in facts.items():
        yield f"| {name} | {value} |"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""

"""What ran, when, where and for how long: the table of "How this book is tested"."""

import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from nbformat import NotebookNode

from helpers import devices
from helpers.book import Chapter

PACKAGES = ("torch", "numpy", "triton", "deepspeed", "papermill", "nbval", "jupyter-book")
ECHO = re.compile(r"^\$ torchrun .*# \d+ ranks?, (.+)$|^# ran with (.+)$", re.MULTILINE)
HEAD = """\
| page | cells | distributed | ranks ran with | seconds | ended (UTC) |
|---|---:|---:|---|---:|---|"""
NO_GPU_FACT = ["GPUs", "none"]
NO_GPU = (
    "**Not run on a GPU**: there was none. Every cell above ran on CPUs, and claims that need a "
    "GPU say what to run on one."
)


def this_machine() -> list[list[str]]:
    """What a run depends on here, as pairs of words: versions, system, compiler, cores, GPUs.

    Kept with each run, since the machine that makes the site may be another one.
    """
    found = devices.compiler()
    gpus = devices.gpus()
    return [
        ["Python", platform.python_version()],
        *([name, number] for name in PACKAGES if (number := _version(name))),
        ["C++ compiler", found["version"] if found else "none"],
        ["system", f"{platform.system()} {platform.machine()}"],
        ["cores", str(devices.cores())],
        ["GPUs", ", ".join(gpus)] if gpus else NO_GPU_FACT,
    ]


def runs_markdown(chapters: dict[str, Chapter], runs: dict[str, NotebookNode]) -> str:
    """A table of all chapters and their runs, and below it the machines that they ran on.

    `runs` are the executed notebooks that the site shows; a chapter without one says so.
    """
    machines: dict[str, list[str]] = {}  # what they ran on, as a table's rows: keys of pages
    for key, run in runs.items():
        machines.setdefault(_facts(run.metadata["ran_on"]), []).append(key)
    parts = [
        "\n".join([HEAD, *(_row(chapter, runs.get(key)) for key, chapter in chapters.items())])
    ]
    for facts, keys in machines.items():
        pages = ", ".join(f"{{doc}}`{key}`" for key in keys)
        which = pages if len(machines) > 1 else "all that ran"
        parts.append(f"| ran on | {which} |\n|---|---|\n{facts}")
    if runs and all(NO_GPU_FACT in run.metadata["ran_on"] for run in runs.values()):
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


def _facts(ran_on: list[list[str]]) -> str:
    return "\n".join(f"| {name} | {value} |" for name, value in ran_on)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""

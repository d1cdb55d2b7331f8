"""Executes what changed, keeps what did not, and makes the site of the result."""

import functools
import sys

from helpers import book, cache, paths
from helpers.book import Chapter
from helpers.execute import run_chapter
from helpers.guard import build_lock, end_descendants, leave_no_process
from helpers.paths import BookError
from helpers.progress import Progress
from helpers.site import make_site


def build(names: list[str], parameters: dict, site: bool) -> None:
    """Execute the named chapters (default: all) where they are not cached, then make the site.

    Raises BookError when a chapter fails; all others were executed, and the old site stands.
    """
    with leave_no_process(), build_lock(paths.BUILD / "lock", _say):
        chapters = execute(names, parameters)
        if site:
            make_site(chapters, _valid_runs(chapters, parameters), _say)


def execute(names: list[str], parameters: dict) -> dict[str, Chapter]:
    """Bring the runs of the named chapters up to date; all pages with code, as read, by key."""
    wanted = book.chosen(names)
    chapters = {key: _read(key) for key in book.chapters()}
    cache.environment(), cache.inventory()  # as the world is before the first cell runs
    progress = Progress(len(wanted))
    try:
        failures = [key for key in wanted if not _refresh(chapters[key], parameters, progress)]
    finally:
        progress.close()
    if failures:
        raise BookError(f"{len(failures)} of {len(wanted)} failed: {', '.join(failures)}")
    return chapters


def _refresh(chapter: Chapter, parameters: dict, progress: Progress) -> bool:
    """Execute one chapter unless its last run stands. False: it failed, and was reported."""
    progress.chapter(chapter.key, len(chapter.cells))
    given = _parameters(chapter, parameters)
    try:
        parts = cache.key_parts(chapter, given, _read)
        reason = cache.why_stale(chapter.key, parts)
        if not reason:
            progress.note("cached")
            return True
        progress.note(f"executing {len(chapter.cells)} cells ({reason})")
        run = run_chapter(chapter, given, progress.cell)
        cache.store(chapter.key, run.notebook, parts, run.uses)
        progress.note(f"executed after {progress.elapsed()}")
        return True
    except BookError as error:
        progress.note("FAILED")
        progress.say(f"\n{error}\n")
        return False
    finally:
        end_descendants()


def _valid_runs(chapters: dict[str, Chapter], parameters: dict) -> dict:
    """Executed notebooks by key; a chapter whose last run no longer stands has none."""
    runs = {}
    for key, chapter in chapters.items():
        parts = cache.key_parts(chapter, _parameters(chapter, parameters), _read)
        if not cache.why_stale(key, parts):
            runs[key] = cache.load(key)
    return runs


def _parameters(chapter: Chapter, parameters: dict) -> dict:
    """Only a chapter with a cell tagged `parameters` takes any."""
    return parameters if any("parameters" in cell.tags for cell in chapter.cells) else {}


_read = functools.cache(book.read)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

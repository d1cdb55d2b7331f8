"""What a page may say of itself: front matter, options and tags of its cells."""

import re

from helpers.lessons import near_match
from helpers.paths import BookError

TAGS = (
    *("export", "parameters", "torchrun-setup", "nbval-check-output", "skip-lab"),
    *("solution", "exercise-check"),
    *("hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell"),
)
FRONT_MATTER = ("jupytext", "kernelspec", "objectives", "teach_minutes", "needs", "optional")
NEEDS = ("chapters", "ranks")
CELL_OPTIONS = ("tags", "mystnb")


def check_options(options: dict, tags: tuple[str, ...], where: str) -> None:
    """Raise BookError unless a code cell has known options and a list of known tags.

    `tags` are what a lesson's import sees, which reads no YAML: they must be the same.
    """
    _check_known(options, CELL_OPTIONS, f"{where}: unknown cell option")
    if options.get("tags", []) != list(tags):
        raise BookError(f"{where}: tags are a list of words. Write `:tags: [export]`.")
    _check_known(tags, TAGS, f"{where}: unknown tag")


def check_front_matter(front: dict, has_code: bool, name: str) -> None:
    """Raise BookError unless the fields are known, of their type, and complete for a chapter."""
    _check_known(front, FRONT_MATTER, f"{name}: unknown front-matter field")
    if has_code:
        kernelspec = front.get("kernelspec")
        if not isinstance(kernelspec, dict) or not {"name", "display_name"} <= set(kernelspec):
            raise BookError(
                f"{name} holds code cells, but its front matter has no kernelspec with "
                "display_name and name (python3)."
            )
        for field in ("objectives", "teach_minutes"):
            if field not in front:
                raise BookError(f"{name}: a chapter says its {field} in the front matter.")
    if not _is_list_of_words(front.get("objectives", ["-"])) or front.get("objectives") == []:
        raise BookError(f"{name}: objectives is a list of sentences that begin with a verb.")
    minutes = front.get("teach_minutes", 1)
    if type(minutes) is not int or minutes < 1:
        raise BookError(f"{name}: teach_minutes is a whole number of minutes, not {minutes!r}.")


def check_optional(optional: object, prose: str, name: str) -> None:
    """Raise BookError unless `optional` lists titles of sections of the page."""
    if not _is_list_of_words(optional):
        raise BookError(f"{name}: optional is a list of section titles, not {optional!r}.")
    headings = [title.strip() for title in re.findall(r"^#{1,6} +(.+?)#*$", prose, re.MULTILINE)]
    _check_known(optional, headings, f"{name}: `optional` names no section of this page:")


def check_needs(needs: object, pages: list[str], name: str) -> None:
    """Raise BookError unless `needs` is {chapters: [keys of pages], ranks: positive}."""
    if not isinstance(needs, dict):
        raise BookError(f"{name}: needs is written `needs: {{chapters: [...], ranks: 2}}`.")
    _check_known(needs, NEEDS, f"{name}: unknown field of needs")
    ranks, chapters = needs.get("ranks", 1), needs.get("chapters", [])
    if type(ranks) is not int or ranks < 1:
        raise BookError(f"{name}: ranks in needs is a positive whole number, not {ranks!r}.")
    if not _is_list_of_words(chapters):
        raise BookError(f"{name}: chapters in needs is a list of pages such as start/small_gpt.")
    _check_known(chapters, pages, f"{name}: needs a chapter that does not exist:")


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _check_known(words, known, complaint: str) -> None:
    for word in words:
        if word not in known:
            choices = ", ".join(sorted(known)) or "none"
            hint = near_match(str(word), known) or f" Known: {choices}."
            raise BookError(f"{complaint} {word!r}.{hint}")

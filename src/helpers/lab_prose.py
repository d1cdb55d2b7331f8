"""Prose for JupyterLab, whose MyST knows one notebook at a time: links lead to the other copies."""

import posixpath
import re
from collections.abc import Iterator

FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,}|:{3,})(.*)")
GLOSSARY = re.compile(r"^(`{3,})\{glossary\}\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
TERM = re.compile(r"^(\S.*)\n[ ]+(\S.*\n(?:[ ]+\S.*\n)*)", re.MULTILINE)
INLINE = re.compile(
    r"\{(?P<role>term|doc)\}`(?P<body>[^`]+)`"
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"  # code, in which nothing is a link
    r"|(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s:#]+)(?:#[^)\s]*)?\)",
    re.DOTALL,
)


class LabProse:
    """Rewrites the Markdown of any page.

    pages: the Markdown of every page by key. files: the name of every page's copy by key; all
    copies lie in one folder.
    """

    def __init__(self, pages: dict[str, str], files: dict[str, str]):
        self._files = files
        self._titles = {key: title(text) for key, text in pages.items()}
        self._terms, self._glossary = {}, ""
        for key, text in pages.items():
            for block in GLOSSARY.finditer(text):
                self._glossary = files[key]
                self._terms |= {t.lower(): d for t, d in TERM.findall(block[2])}

    def __call__(self, text: str, key: str) -> str:
        """`text` of page `key` as JupyterLab can show it."""
        text = GLOSSARY.sub(_as_definition_list, text)
        return "".join(
            INLINE.sub(lambda found: self._inline(found, key), block) if is_prose else block
            for is_prose, block in blocks(text)
        )

    def _inline(self, found: re.Match, key: str) -> str:
        if found["ticks"]:
            return found[0]
        if found["role"]:
            text, target = _text_and_target(found["body"])
            if found["role"] == "term":
                return self._term(text or target, target)
        else:
            text, target = found["text"], found["target"]
        return self._link(text, target, key)

    def _link(self, text: str, target: str, key: str) -> str:
        """A link to another page's copy. What only the site has stays as words."""
        stem = re.sub(r"\.(md|ipynb)$", "", target)
        folder = "" if stem.startswith("/") else posixpath.dirname(key)
        found = posixpath.normpath(posixpath.join(folder, stem.lstrip("/")))
        if found not in self._files:
            return text or target
        return f"[{text or self._titles[found]}]({self._files[found]})"

    def _term(self, text: str, term: str) -> str:
        """A link to the glossary, to which JupyterLab does not scroll; so the meaning on hover."""
        meaning = self._terms.get(term.lower())
        if meaning is None:
            return text
        plain = " ".join(INLINE.sub(self._plain, meaning).split())
        plain = plain.translate(str.maketrans("()", "[]"))  # abbr ends at the first parenthesis
        return f"[{{abbr}}`{text} ({plain})`]({self._glossary})"

    def _plain(self, found: re.Match) -> str:
        if not found["role"]:
            return found["text"] or found[0].strip("`")
        text, target = _text_and_target(found["body"])
        return text or self._titles.get(target, target)


def title(text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# +(.+?)[ \t]*$", text, re.MULTILINE)
    return found[1] if found else "this page"


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """(True, prose) and (False, code or the first and last line of a directive), in order."""
    open_fences: list[tuple[str, bool]] = []
    prose: list[str] = []
    for line in text.splitlines(keepends=True):
        fence = FENCE.match(line.rstrip())
        in_code = bool(open_fences) and open_fences[-1][1]
        closes = fence and open_fences and not fence[2] and fence[1].startswith(open_fences[-1][0])
        if closes:
            open_fences.pop()
        elif fence and not in_code:
            open_fences.append((fence[1], not fence[2].startswith("{")))
        elif not in_code:
            prose.append(line)
            continue
        if prose:
            yield True, "".join(prose)
            prose = []
        yield False, line
    if prose:
        yield True, "".join(prose)


def _text_and_target(body: str) -> tuple[str, str]:
    found = re.fullmatch(r"(.*?)\s*<(.+)>", body, re.DOTALL)
    return (found[1], found[2]) if found else ("", body)


def _as_definition_list(block: re.Match) -> str:
    """Sphinx indents a definition; JupyterLab's MyST wants a colon, and shows nothing without."""
    return f"{block[1]}{{glossary}}\n{TERM.sub(_definition, block[2])}{block[1]}"


def _definition(found: re.Match) -> str:
    return f"{found[1]}\n: {found[2]}"

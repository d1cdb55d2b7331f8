"""The last work on pages that jupyter-book has made: what is missing, and what it cannot say."""

import re
from html.parser import HTMLParser
from pathlib import Path

_CHINESE = re.compile(r"[\u3400-\u9fff]+")


def mark_chinese(html: Path) -> None:
    """Chinese words get lang="zh", so that a screen reader reads them as Chinese (WCAG 3.1.2).

    Markdown has no way to say it. Only text between tags is touched, no attribute and no script.
    """

    def marked(text: re.Match) -> str:
        return _CHINESE.sub(r'<span lang="zh">\g<0></span>', text[0])

    for page in html.rglob("*.html"):
        head, body, rest = page.read_text("utf-8").partition("<body")
        if _CHINESE.search(rest):
            page.write_text(head + body + re.sub(r">[^<]+<", marked, rest), "utf-8")


def page_faults(html: Path, pages: list[str]) -> list[str]:
    """Pages that are missing, and whatever a page would fetch from another host."""
    names = ["index.html", *(f"{key}.html" for key in pages)]
    faults = [f"missing page: {name}" for name in names if not (html / name).is_file()]
    for path in sorted(html.rglob("*.html")):
        finder = _Fetches()
        finder.feed(path.read_text("utf-8"))
        faults += [f"{path.relative_to(html)} fetches {url}" for url in finder.found]
    for path in sorted(html.rglob("*.css")):
        urls = re.findall(
            r"(?:url\(|@import\s)\s*[\"']?((?:https?:)?//[^\"')\s]+)", path.read_text()
        )
        faults += [f"{path.relative_to(html)} fetches {url}" for url in urls]
    return faults


class _Fetches(HTMLParser):
    """Collects addresses on other hosts that a browser loads without being asked."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        url = named.get("src") or (named.get("href") if tag == "link" else None) or ""
        if tag == "link" and named.get("rel") in ("canonical", "author", "license", "alternate"):
            return
        if re.match(r"(https?:)?//", url):
            self.found.append(url)

"""What is asked of a page of the site, in the browser (JavaScript) or in its HTML."""

from html.parser import HTMLParser
from pathlib import Path

# Colours are judged at rest: what unfolds fades in, and is pale meanwhile.
UNFOLD = """() => {
  const rest = document.createElement("style");
  rest.textContent = "* { animation: none !important; transition: none !important }";
  document.head.append(rest);
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
  for (const button of document.querySelectorAll("button.toggle-button-hidden")) button.click();
}"""
# What sticks out and is in no box that scrolls or cuts; empty where the page fits its window.
STICKS_OUT = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= innerWidth) return [];
  const boxed = (e) => e.parentElement && e.parentElement !== document.body &&
    (getComputedStyle(e.parentElement).overflowX !== "visible" || boxed(e.parentElement));
  return [`the page is ${root.scrollWidth} wide`, ...[...document.body.querySelectorAll("*")]
    .filter((e) => e.getBoundingClientRect().right > innerWidth && !boxed(e))
    .map((e) => e.outerHTML.slice(0, 120))];
}"""
NO_ALT = """() => [...document.images].filter((image) => !image.alt.trim())
  .map((image) => image.outerHTML.slice(0, 120))"""
# Axe computes the contrast of each coloured word of code and each claim: one of a kind will do.
ONE_OF_A_KIND = """() => {
  const seen = new Set();
  for (const word of document.querySelectorAll(".highlight pre span")) {
    if (seen.has(word.className)) word.replaceWith(...word.childNodes);
    seen.add(word.className);
  }
  for (const row of document.querySelectorAll(".ledger > details:nth-of-type(n + 13)")) row.remove();
}"""


def none(found: list[str]) -> bool:
    """True for no findings; else they are shown in full, one a line."""
    assert not found, "\n" + "\n".join(found)
    return True


class Links(HTMLParser):
    """What a page can be linked at, and where it leads."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors, self.links = {""}, []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.anchors |= {named.get("id"), named.get("name")}
        self.links += filter(None, (named.get("href"), named.get("src")))

"""One way to show a result: HTML for people, stable plain text for comparison."""

import sys


def show_html(html: str, text: str) -> None:
    """Show `html` in a notebook, with `text` as its plain twin; outside one, print `text`."""
    # IPython is looked up, not imported: a rank or a plain script must not pay for it.
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display({"text/html": html, "text/plain": text}, raw=True)
    else:
        print(text)

"""The system's Chromium, driven by Playwright, which is asked to download nothing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
QUIET = (  # no sandbox: containers have no namespaces for it; the rest keeps it off the network
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def chromium() -> str | None:
    """Path of a Chromium of this system."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_chromium = pytest.mark.skipif(
    chromium() is None, reason=f"no Chromium: none of {', '.join(NAMES)} is installed"
)


@contextmanager
def browser() -> Iterator:
    """A running browser of Playwright's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=list(QUIET))
        try:
            yield found
        finally:
            found.close()

"""The system's Chromium, driven by Playwright, and a server that publishes a folder."""

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # Nothing but this machine exists, so that a test cannot pass thanks to the network.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_chromium() -> str | None:
    """Path of the system's Chromium. Playwright's own is a download, so it is not looked for."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator:
    """A Playwright Browser; skips the test where the system has none."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: install the package chromium of your system")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def published(folder: Path, under: str = "/book/") -> Iterator[str]:
    """Serve `folder` as GitHub Pages would: below a path, and 404.html for what is not there.

    Yields the address of the folder. The port is one that is free.
    """

    class Pages(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # one connection for a page's many files

        def translate_path(self, path):
            if not path.startswith(under):
                return str(folder / "there is no such file")
            self.directory = str(folder)
            return super().translate_path("/" + path.removeprefix(under))

        def send_error(self, code, *_):
            body = (folder / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{under}"
    finally:
        server.shutdown()
        server.server_close()


class Tab:
    """A page of the browser that notes errors and requests that leave this machine."""

    def __init__(self, page):
        self.page = page
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def visit(self, address: str) -> int:
        """Load a page; its HTTP status. What was noted before is forgotten."""
        self.errors.clear(), self.elsewhere.clear()
        response = self.page.goto(address)
        # Formulas are set, and figures drawn, after the page has loaded.
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        return response.status

    def _console(self, message) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def _request(self, request) -> None:
        if not re.match(r"https?://127\.0\.0\.1[:/]|data:|blob:|about:", request.url):
            self.elsewhere.append(request.url)


@contextmanager
def watched(browser) -> Iterator[Tab]:
    """A Tab in a profile of its own."""
    context = browser.new_context()
    context.set_default_timeout(120_000)  # milliseconds: a busy machine is no failure
    yield Tab(context.new_page())
    context.close()


def tab_to(page, selector: str, presses: int = 500) -> None:
    """Press Tab until an element that fits `selector` has the focus."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the Tab key does not reach {selector}")

"""The site in `_build/html` as a reader's browser meets it. `make test` runs this after the build.

Every page of the table of contents is opened at two widths, in light and in dark.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium, published, tab_to, watched
from page_checks import NO_ALT, ONE_OF_A_KIND, STICKS_OUT, UNFOLD, Links, none

from helpers import book, paths

HTML = paths.BUILD / "html"
PAGES = [*book.pages(), "search"]
CHAPTER = "capture/capture_timing"
KINDS = ["intro", CHAPTER, "capture/claims", "ledger", "glossary", "teaching", "how_tested"]
MISSING = "no/such/page"
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
MODES = ["desktop, light", "phone, dark"]  # the other two pairs are axe's


@pytest.fixture(scope="module")
def site():
    """Address of the published site."""
    if not (HTML / "index.html").is_file():
        pytest.skip("no site in _build/html: make book builds it, and make test before this")
    with published(HTML) as address:
        yield address


@pytest.fixture(scope="module")
def tab(site):
    """The one tab of all tests: a window of its own would cost each test two seconds."""
    with chromium() as browser, watched(browser) as tab:
        yield tab


def show(tab, mode: str) -> None:
    """Give the tab the width and the colours of a mode."""
    width, scheme = mode.split(", ")
    tab.page.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))
    tab.page.emulate_media(color_scheme=scheme)


@pytest.fixture(scope="module", params=MODES)
def mode(request, tab):
    show(tab, request.param)
    return request.param


@pytest.fixture
def desktop(tab):
    show(tab, "desktop, light")
    return tab


@pytest.fixture(scope="module", params=PAGES)
def visit(request, tab, mode, site):
    """The tab with a page loaded, and the page's status."""
    return tab, tab.visit(f"{site}{request.param}.html")


def test_page_loads_without_an_error(visit):
    tab, status = visit
    assert status == 200
    assert none(tab.errors)


def test_page_fetches_nothing_from_another_host(visit):
    tab, _ = visit
    assert none(tab.elsewhere)


def test_page_never_scrolls_sideways(visit):
    tab, _ = visit
    assert none(tab.page.evaluate(STICKS_OUT))
    tab.page.evaluate(UNFOLD)
    assert none(tab.page.evaluate(STICKS_OUT))


def test_every_image_says_what_it_shows(visit):
    tab, _ = visit
    assert none(tab.page.evaluate(NO_ALT))


@pytest.mark.parametrize("page", [*KINDS, "search", MISSING])
@pytest.mark.parametrize("mode", ["desktop, dark", "phone, light"])
def test_no_serious_finding_of_axe(tab, site, mode, page):
    show(tab, mode)
    status = tab.visit(f"{site}{page}.html" + ("?q=guard" if page == "search" else ""))
    assert status == (404 if page == MISSING else 200)
    tab.page.evaluate(ONE_OF_A_KIND)
    tab.page.evaluate(UNFOLD)
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(tab.page, options=options).response["violations"]
    serious = [
        f"{finding['id']}: {node['html'][:150]} {node['failureSummary']}"
        for finding in found
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]
    assert none(serious)


def test_address_that_is_not_there(desktop, site):
    assert desktop.visit(f"{site}{MISSING}.html") == 404
    # The tab says "404" of the page itself, and of files asked for before the page found its base.
    assert none([error for error in desktop.errors if "404" not in error])
    assert none(desktop.elsewhere)
    link = desktop.page.locator("article nav a", has_text="ledger")
    assert link.evaluate("a => getComputedStyle(a).color") != "rgb(0, 0, 238)", "it has no style"
    with desktop.page.expect_navigation():
        link.click()
    assert desktop.page.url == f"{site}ledger.html"


def results(tab) -> list[str]:
    """Addresses that a search lists, once it has finished."""
    tab.page.wait_for_function(
        "document.querySelector('.search-summary')?.innerText.match(/\\d|did not/)"
    )
    return tab.page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")


def test_search_address_lists_a_page(desktop, site):
    desktop.visit(f"{site}search.html?q=guard")
    assert any(address.startswith(f"{site}glossary.html") for address in results(desktop))


@pytest.mark.parametrize("width", WIDTHS)
def test_search_typed_into_the_field(tab, site, width):
    show(tab, f"{width}, light")
    tab.visit(f"{site}teaching.html")
    tab.page.locator("button.search-button__button:visible").first.click()
    tab.page.keyboard.type("guard")
    with tab.page.expect_navigation():
        tab.page.keyboard.press("Enter")
    assert any(address.startswith(f"{site}glossary.html") for address in results(tab))


def test_ledger_is_filtered_with_the_keyboard_alone(desktop, site):
    desktop.visit(f"{site}ledger.html")
    page, rows = desktop.page, desktop.page.locator(".ledger > details:visible")

    def count() -> str:
        return page.locator(".ledger-count").inner_text()

    total = rows.count()
    assert count() == f"{total} claims"
    tab_to(page, "select[name=verdict]")
    page.keyboard.press("ArrowDown")
    shown = rows.count()
    assert 0 < shown < total and count() == f"{shown} of {total} claims"
    tab_to(page, "input[name=words]")
    page.keyboard.type("no such words")
    assert rows.count() == 0 and count() == f"0 of {total} claims"
    tab_to(page, ".ledger-filter button")
    page.keyboard.press("Enter")
    assert rows.count() == total and count() == f"{total} claims"
    tab_to(page, ".ledger > details > summary")
    page.keyboard.press("Enter")
    assert page.locator(".ledger > details[open] dl").is_visible()


def test_solution_and_answer_unfold_with_the_keyboard_alone(desktop, site):
    desktop.visit(f"{site}{CHAPTER}.html")
    page = desktop.page
    for button, inside in (
        (".solution button", "[id$=solution-content], #solution-content"),
        ("article details.sd-dropdown summary", "article details.sd-dropdown .sd-card-body"),
    ):
        content = page.locator(inside).first
        assert not content.is_visible()
        tab_to(page, button)
        page.keyboard.press("Enter")
        content.wait_for(state="visible")
        page.keyboard.press("Enter")
        content.wait_for(state="hidden")


def test_notebook_downloads(desktop, site, tmp_path):
    desktop.visit(f"{site}{CHAPTER}.html")
    page = desktop.page
    page.get_by_label("Download this page").click()
    with page.expect_download() as download:
        page.locator(".dropdown-menu a[href$='.ipynb']").click()
    assert download.value.suggested_filename == f"{Path(CHAPTER).name}.ipynb"
    saved = tmp_path / "downloaded.ipynb"
    download.value.save_as(saved)
    assert saved.read_bytes() == notebook(CHAPTER).read_bytes()


def notebook(key: str) -> Path:
    """The notebook that a chapter's page offers for download."""
    links = re.findall(r'href="([^"]*\.ipynb)"', (HTML / f"{key}.html").read_text("utf-8"))
    assert len(set(links)) == 1, links
    return (HTML / f"{key}.html").parent / links[0]


@pytest.mark.parametrize("key", book.chapters())
def test_notebook_of_each_chapter_opens_and_holds_its_outputs(site, key):
    read = nbformat.read(notebook(key), as_version=4)
    nbformat.validate(read)
    assert any(cell.get("outputs") for cell in read.cells)


def test_every_link_within_the_book_leads_somewhere(site):
    pages = {path.relative_to(HTML).as_posix(): Links(path) for path in HTML.rglob("*.html")}
    pages = {name: page for name, page in pages.items() if not name.startswith("_static/")}
    assert len(pages) > len(PAGES)
    lost = []
    for name, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            address, anchor = urldefrag(urljoin(name, link))
            target = unquote(urlsplit(address).path)
            anchors = pages[target].anchors if target in pages else {anchor}
            is_filter = target == "ledger.html" and "=" in anchor
            if not (HTML / target).is_file() or not (unquote(anchor) in anchors or is_filter):
                lost.append(f"{name} links to {link}")
    assert none(lost)

"""A real browser on the built site, served as it will be: from its own folder of a host.

`open_page("book/intro.html", width=390, dark=True)` opens a page, `from_disk=True` from `file://`,
in a tab that earlier tests may have used and in which nothing is stored; `open_fresh` does so in a
context of its own, for a test that counts what arrives or that changes what outlives a page: its
clock, its first script. `visit` opens one that a file may share among its tests.
`page.problems` lists every console error, failed request, breach of the page's policy and request
to another host since the page was opened. A test that leaves any fails; one that expects some
clears them.
"""

import gzip
import mimetypes
import threading
from collections import defaultdict
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.site.browsing import (
    COMPRESSED,
    DOCUMENTS,
    MODES,
    PARAMETERS,
    PREFIX,
    ROOT,
    SITE,
    SKIPPED,
    START_EXHIBITS,
    TELL_BREACHES,
    sampled,
)
from tools.chromium import NoChromium, launch


def pytest_generate_tests(metafunc):
    """Run a test that asks for one of the PARAMETERS once for each of its values.

    What holds for the text of a page is asked of every `page_name`; what its frame does, which all
    pages share, of a page of each `kind`. What asks a browser is `long` but for the samples.
    """
    slow = "browser" in metafunc.fixturenames
    for name, values in PARAMETERS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, sampled(name) if slow else values, scope="module")


@cache
def _content(path: Path) -> tuple[str, bytes]:
    """The type of a file and its bytes, compressed where a host does so."""
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    content = path.read_bytes()
    return kind, gzip.compress(content) if kind.startswith(COMPRESSED) else content


class _Handler(BaseHTTPRequestHandler):
    """Serve the site as GitHub Pages does: below its prefix, compressed, to be kept ten minutes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it holds a file back 40 ms after its headers

    def do_GET(self):
        path = urlsplit(self.path).path
        file = SITE / unquote(path.removeprefix(PREFIX))
        file = file / "index.html" if file.is_dir() else file
        found = path.startswith(PREFIX) and file.is_file()
        kind, content = _content(file if found else SITE / "404.html")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        if kind.startswith(COMPRESSED):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that leaves a page drops its connections; that is no news."""


@pytest.fixture(scope="session")
def site_dir() -> Path:
    """The built site; a missing one is a failure, since nothing else would be tested."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE.relative_to(ROOT)} is not built. Run `make book` first.")
    return SITE


@pytest.fixture(scope="session")
def axe():
    """The accessibility checker, which carries its own script."""
    return Axe()


@pytest.fixture(scope="session")
def site_url(site_dir):
    """The address of the site on this machine, with the prefix of its public address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for the whole run."""
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except NoChromium as error:
            pytest.skip(f"{SKIPPED} {error}")
        yield browser
        browser.close()


def _watch(page, site_url: str) -> list[str]:
    """Collect what a quiet page does not have: errors, failures, requests to other hosts."""
    problems = []

    def on_request(request):
        inside = request.url.startswith((site_url, "data:", "blob:"))
        if not inside:
            problems.append(f"request outside the site: {request.url}")

    def on_response(response):
        if response.status >= 400:
            problems.append(f"{response.status}: {response.url}")

    def on_failure(request):
        # A reload cuts short on a busy machine; without scripts none is fetched, and of a breach of
        # the policy the console tells.
        if request.failure not in ("net::ERR_ABORTED", "csp"):
            problems.append(f"failed: {request.url}")

    def on_console(message):
        if message.type in ("error", "warning"):
            problems.append(f"console {message.type}: {message.text}")

    page.on("request", on_request)
    page.on("response", on_response)
    page.on("requestfailed", on_failure)
    page.on("console", on_console)
    page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    return problems


def _open(browser, site_url, *, first="", **options):
    """Open an empty page in a fresh context, and run `first` before its own scripts."""
    page = browser.new_context(base_url=site_url, **options).new_page()
    page.set_default_timeout(60_000)
    page.problems = _watch(page, site_url)
    page.add_init_script(f"{TELL_BREACHES};\n{first}")
    return page


def _lead(page, address, *, width=1280, dark=False, scripts=True):
    """Lead an empty page to an address, at a width and in a mode; its fonts and exhibits come.

    Without an address it stays empty, and `page.goto("book/intro.html")` leads it on.
    """
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
    if address is None:
        return page
    page.goto(address, wait_until="load")
    if scripts:
        page.evaluate("() => document.fonts.ready.then(() => null)")
        page.evaluate(START_EXHIBITS)
    return page


def _refuse(*args, **options):
    raise AssertionError("The tab is used again after this test: open the page with open_fresh.")


class _Tabs:
    """Empty pages that one test after another uses, each as it would find one in a fresh context.

    A page opens in half the time in a tab that has shown one before. With options beside those of a
    phone, or of a reader without scripts, a tab is a fresh one.
    """

    def __init__(self, open_, origin="file://"):
        self.open, self.origin, self.kept = open_, origin, defaultdict(list)

    def take(self, **options):
        """Return an empty page with these options, which nobody else uses."""
        kept = self.kept[str(options)]
        page = kept.pop() if kept else self.open(**options)
        page.options = options
        if self.is_kept(page):
            page.add_init_script = _refuse
        return page

    @staticmethod
    def is_kept(page):
        """Whether another test may have the page after this one."""
        return page.options.keys() <= {"has_touch", "is_mobile", "java_script_enabled"}

    def give_back(self, page):
        """Empty a page and its store for another test, or close it with its context."""
        if page.is_closed() or not self.is_kept(page):
            page.context.close()
            return
        page.unroute_all()
        page.goto("about:blank")
        if page.evaluate("() => '__pwClock' in globalThis"):
            _refuse()
        page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
        session = page.context.new_cdp_session(page)
        stored = {"origin": self.origin, "storageTypes": "all"}
        session.send("Storage.clearDataForOrigin", stored)
        session.detach()
        page.problems.clear()
        self.kept[str(page.options)].append(page)


@pytest.fixture(scope="session")
def bases(site_url, site_dir):
    """Where the pages of the site are, served and from disk."""
    return {False: site_url, True: f"{site_dir.as_uri()}/"}


@pytest.fixture(scope="session")
def visit(browser, bases):
    """Open a page, which the caller closes: `visit("book/intro.html", from_disk=True)`."""

    def visit_(path="", *, from_disk=False, width=1280, dark=False, **options):
        base, scripts = bases[from_disk], options.get("java_script_enabled", True)
        address = None if path is None else base + path
        page = _open(browser, base, **options)
        return _lead(page, address, width=width, dark=dark, scripts=scripts)

    return visit_


@pytest.fixture
def open_fresh(visit):
    """Open pages as `visit` does; each is closed after the test."""
    opened = []

    def open_(path="", **options):
        opened.append(visit(path, **options))
        return opened[-1]

    yield open_
    problems = [problem for page in opened for problem in page.problems]
    for page in opened:
        page.context.close()
    assert problems == []


@pytest.fixture(scope="session")
def tabs(browser, bases):
    """The tabs of pages of the site, served and from disk."""
    served, disk = (partial(_open, browser, bases[from_disk]) for from_disk in (False, True))
    return {False: _Tabs(served, bases[False].removesuffix(PREFIX)), True: _Tabs(disk)}


@pytest.fixture
def open_page(tabs, bases):
    """Open pages, each in a tab in which nothing is stored."""
    used = []

    def open_(path="", *, from_disk=False, width=1280, dark=False, **options):
        page = tabs[from_disk].take(**options)
        used.append((tabs[from_disk], page))
        scripts = options.get("java_script_enabled", True)
        address = None if path is None else bases[from_disk] + path
        return _lead(page, address, width=width, dark=dark, scripts=scripts)

    yield open_
    problems = [problem for _, page in used for problem in page.problems]
    for kept, page in used:
        kept.give_back(page)
    assert problems == []


@pytest.fixture
def page(open_page):
    """A wide, light page at the book's first page; `page.goto(site_url + path)` moves it."""
    return open_page(f"{DOCUMENTS[0]}.html")


@pytest.fixture(scope="session")
def sheets(browser):
    """The tabs of pages that hold pieces of HTML; what they say and ask for is a problem."""

    def open_(**options):
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(60_000)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("request", lambda request: page.problems.append(request.url))
        return page

    return _Tabs(open_)


@pytest.fixture
def show(sheets, tmp_path):
    """Open a page that holds the given pieces of HTML; none may fail or ask the network."""
    used = []

    def show_(*pieces, mode="light", head="", width=800, **options):
        ink, paper = MODES[mode]
        style = f"body {{ margin: 16px; color: {ink}; background: {paper}; font: 16px sans-serif }}"
        viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        page_html = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{viewport}'
            f"<title>Elements</title><style>{style}</style>{head}</head>"
            f"<body><main><h1>Elements</h1>{''.join(pieces)}</main></body></html>"
        )
        path = tmp_path / "page.html"
        path.write_text(page_html, encoding="utf-8")
        page = sheets.take(**options)
        used.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        assert page.problems.pop(0) == path.as_uri()  # the only request
        return page

    yield show_
    problems = [problem for page in used for problem in page.problems]
    for page in used:
        sheets.give_back(page)
    assert problems == []


def pytest_terminal_summary(terminalreporter):
    """Say loudly when the browser was missing: a skipped site is a site nobody looked at."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr) for report in skipped if SKIPPED in str(report.longrepr)]
    if reasons:
        terminalreporter.section("site", sep="!", red=True)
        terminalreporter.line(reasons[0])

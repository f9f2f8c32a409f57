"""A real browser on the built site, served as it will be: from its own folder of a host.

`open_page("book/intro.html", width=390, dark=True)` opens a page of its own, `from_disk=True` from
`file://`; `visit` one that a file may share among its tests. `page.problems` lists
every console error, failed request, breach of the page's policy and request to another host since
the page was opened.
"""

import gzip
import mimetypes
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.site.browsing import (
    COMPRESSED,
    CONFIG,
    DOCUMENTS,
    MODES,
    PARAMETERS,
    PREFIX,
    ROOT,
    SITE,
    SKIPPED,
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
def config() -> dict:
    """What `_config.yml` says."""
    return CONFIG


@pytest.fixture(scope="session")
def page_names() -> list[str]:
    """Every page that the contents promise."""
    return PARAMETERS["page_name"]


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
        if request.failure != "net::ERR_ABORTED":  # what a reload cuts short on a busy machine
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


def _open(browser, site_url, path, *, width=1280, dark=False, first="", **options):
    """Open a page in a fresh context, run `first` before its own scripts, wait for its fonts.

    Without a path the page stays empty, and `page.goto("book/intro.html")` leads it on.
    """
    scheme = "dark" if dark else "light"
    viewport = {"width": width, "height": 900}
    context = browser.new_context(
        viewport=viewport,
        color_scheme=scheme,
        reduced_motion="reduce",
        base_url=site_url,
        **options,
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.problems = _watch(page, site_url)
    page.add_init_script(f"{TELL_BREACHES};\n{first}")
    if path is None:
        return page
    page.goto(site_url + path, wait_until="load")
    if options.get("java_script_enabled", True):
        page.evaluate("() => document.fonts.ready.then(() => null)")
    return page


@pytest.fixture(scope="session")
def visit(browser, site_url, site_dir):
    """Open a page, which the caller closes: `visit("book/intro.html", from_disk=True)`."""

    def visit_(path="", *, from_disk=False, **options):
        base = f"{site_dir.as_uri()}/" if from_disk else site_url
        return _open(browser, base, path, **options)

    return visit_


@pytest.fixture
def open_page(visit):
    """Open pages as `visit` does; each is closed after the test."""
    opened = []

    def open_(path="", **options):
        opened.append(visit(path, **options))
        return opened[-1]

    yield open_
    for page in opened:
        page.context.close()


@pytest.fixture
def page(open_page):
    """A wide, light page at the book's first page; `page.goto(site_url + path)` moves it."""
    return open_page(f"{DOCUMENTS[0]}.html")


@pytest.fixture
def show(browser, tmp_path):
    """Open a page that holds the given pieces of HTML; none may fail or ask the network."""
    contexts = []

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
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("request", lambda request: page.problems.append(request.url))
        page.goto(path.as_uri())
        assert page.problems.pop(0) == path.as_uri()  # the only request
        return page

    yield show_
    for context in contexts:
        problems = [p for page in context.pages for p in page.problems]
        context.close()
        assert problems == []


def pytest_terminal_summary(terminalreporter):
    """Say loudly when the browser was missing: a skipped site is a site nobody looked at."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr) for report in skipped if SKIPPED in str(report.longrepr)]
    if reasons:
        terminalreporter.section("site", sep="!", red=True)
        terminalreporter.line(reasons[0])

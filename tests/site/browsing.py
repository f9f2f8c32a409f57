"""What the tests of the site know of its pages: their names, the kinds, the reader's settings."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tools.chapters import ROOT, documents, pages

SITE = ROOT / "_build" / "html"
SKIPPED = "No test of the site in a browser has run."
# Runs before a page's own scripts; the console carries it to `page.problems`.
TELL_BREACHES = """addEventListener("securitypolicyviolation", (breach) =>
  console.error(`policy: ${breach.effectiveDirective} ${breach.blockedURI} ${breach.sample}`))"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
SCRIPT = {"Content-Type": "text/javascript"}
# How a browser fails to store, done before a page's own scripts: as where all cookies are blocked,
# and by filling it to the last byte.
STORES = {
    "refused": """for (const name of ["localStorage", "sessionStorage"]) {
      const get = () => { throw new DOMException("refused", "SecurityError"); };
      Object.defineProperty(window, name, {get, configurable: true});
    }""",
    "full": """for (const store of [localStorage, sessionStorage]) {
      for (let size = 2 ** 23; size >= 1; size /= 2) {
        try { store.setItem(`full ${size}`, "x".repeat(size)); } catch {}
      }
    }""",
}
COMPRESSED = ("text/", "application/javascript", "image/svg+xml")

# ink, paper: the site, then JupyterLab
MODES = {
    "light": ("#222832", "#ffffff"),
    "dark": ("#ced6dd", "#121212"),
    "light notebook": ("rgba(0, 0, 0, 0.87)", "#ffffff"),
    "dark notebook": ("rgba(255, 255, 255, 0.87)", "#111111"),
}

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
PUBLIC_URL = CONFIG["html"]["baseurl"]
PREFIX = urlsplit(PUBLIC_URL).path

DOCUMENTS = documents()
# One page of each kind: plain, with tables, with each sort of element, with Python, without.
KINDS = [
    *("book/intro.html", "book/notation.html", "notebooks/04_heads.html"),
    *("notebooks/06_output_projection.html", "notebooks/review_part_1.html"),
    *("search.html", "404.html"),
]
PARAMETERS = {
    "page_name": [f"{name}.html" for name in [*DOCUMENTS, "search", "genindex", "404"]],
    "kind": KINDS,
    "notebook": [page.name for page in pages()],
    "chapter": [page.name for page in pages() if not page.closes],
    "review": [page.name for page in pages() if page.closes],
    "mode": list(MODES),
}
# What a test in a browser is given of these in `make test`; `make test-all` gives it all.
SAMPLES = {
    "page_name": KINDS,
    "notebook": [Path(name).stem for name in KINDS],
    "mode": ["light", "dark notebook"],
}


def long(*values):
    """Return values of a parameter for `make test-all` alone."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def sampled(name):
    """Return the values of one of the PARAMETERS, those that are no samples marked as long."""
    values = PARAMETERS[name]
    rest = [value for value in values if value not in SAMPLES.get(name, values)]
    return [value if value not in rest else long(value)[0] for value in values]

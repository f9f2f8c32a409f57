"""The Content-Security-Policy of every page: which scripts may run in it, and whom it may ask.

A browser that keeps to it runs the site's own files and the few scripts that stand in the page as
they were built, and nothing that a link, a notebook's output or an extension's mistake brings in.
"""

import re
from base64 import b64encode
from hashlib import sha256

# In order; `script-src` gets the hashes of the page's own scripts besides.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
# A page that can run Python: compiled code, in a worker, with wheels from one folder of one host.
PYTHON = '<div class="tl-run"'
PYTHON_POLICY = {
    "script-src": "'wasm-unsafe-eval'",
    "worker-src": "'self'",
    "connect-src": "'self' https://cdn.jsdelivr.net/pyodide/",
}
INLINE_SCRIPT = r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>"
META = '\n    <meta http-equiv="Content-Security-Policy" content="{}" />'
FIRST = '<meta charset="utf-8" />'


def add_content_policies(site, pages):
    """State the policy at the head of every page; nothing in a page may change afterwards."""
    for path, page in pages.items():
        pages[path] = page.replace(FIRST, FIRST + META.format(content_policy(page)), 1)


def content_policy(page) -> str:
    """Return the policy of a page, by its text."""
    directives = {directive: [sources] for directive, sources in POLICY.items()}
    if PYTHON in page:
        for directive, sources in PYTHON_POLICY.items():
            directives.setdefault(directive, []).append(sources)
    directives["script-src"] += sorted(set(map(digest, re.findall(INLINE_SCRIPT, page, re.S))))
    return "; ".join(" ".join([name, *sources]) for name, sources in directives.items())


def digest(script) -> str:
    """Return the source expression that lets one inline script run."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"

"""What the tests of the site know of its pages: their names, the kinds, the reader's settings."""

import re
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.sampling import long
from tools.chapters import ROOT, documents, pages

SITE = ROOT / "_build" / "html"
SKIPPED = "No test of the site in a browser has run."
# Runs before a page's own scripts; the console carries it to `page.problems`.
TELL_BREACHES = """addEventListener("securitypolicyviolation", (breach) =>
  console.error(`policy: ${breach.effectiveDirective} ${breach.blockedURI} ${breach.sample}`))"""
# All exhibits of a page, which otherwise start when they come near.
START_EXHIBITS = """() => {
  const waiting = [...document.querySelectorAll("article :not(:defined)")];
  dispatchEvent(new HashChangeEvent("hashchange"));
  return Promise.all(waiting.map((e) => customElements.whenDefined(e.localName).then(() => null)));
}"""
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
    *("book/intro.html", "book/notation.html", "notebooks/04_multi_head_attention.html"),
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
# What a test in a browser is given of these in `make test`; `make test-all` gives it all. The
# playground's page costs as much as two others, and its tests use it there; what a review shows,
# chapter 04 shows, too.
LIGHT = [name for name in KINDS if not re.search("06_output|review", name)]
SAMPLES = {
    "page_name": LIGHT,
    "kind": LIGHT,
    "notebook": [Path(name).stem for name in LIGHT],
    "mode": ["light", "dark notebook"],
}


PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
# How an exhibit is looked at: the colours, and the width of the page.
LOOKS = [("light", 320), *long(("dark", 800), ("dark notebook", 390), ("light notebook", 800))]


def sampled(name):
    """Return the values of one of the PARAMETERS, those that are no samples marked as long."""
    values = PARAMETERS[name]
    rest = [value for value in values if value not in SAMPLES.get(name, values)]
    return [value if value not in rest else long(value)[0] for value in values]


# An exhibit, and a grid of pairs in it.
RECALL = "(exhibit, state) => exhibit.recall(state)"
SET = "(hash) => { location.hash = hash; }"
# `light` says how light paints are, one laid on the other, and `contrast` how far they stand apart.
CONTRAST = """
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const light = (...paints) => {
    const key = paints.join();
    if (!known.has(key)) {
      for (const paint of paints) {
        canvas.fillStyle = paint;
        canvas.fillRect(0, 0, 1, 1);
      }
      known.set(key, [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
        .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0));
    }
    return known.get(key);
  };
  const contrast = (...lights) => (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
"""
# How strongly the ink of each cell stands out from its tint on the paper of the page.
INKS = f"""(all) => {{{CONTRAST}
  const paper = getComputedStyle(document.body).backgroundColor;
  return all.map((cell) => {{
    const tint = getComputedStyle(cell).backgroundColor;
    const ink = getComputedStyle(cell.firstElementChild ?? cell).color;
    return contrast(light(paper, tint), light(paper, tint, ink));
  }});
}}"""


@contextmanager
def quiet(page):
    """Let the tests of a file share a page, and close it: it may have had no problems by then."""
    yield page
    problems = list(page.problems)
    page.context.close()
    assert problems == []


def said(exhibit):
    """Return what is spoken and shown."""
    assert exhibit.locator(":has(> [aria-live])").last.is_visible()
    return exhibit.locator("[aria-live]").text_content()


def focused(page):
    """Return the name of what has the focus."""
    return page.evaluate(
        "() => document.activeElement.ariaLabel ?? document.activeElement.innerText"
    )


def press(exhibit, *names):
    """Press buttons by their names."""
    for name in names:
        exhibit.get_by_role("button", name=name, exact=True).click()


def field(exhibit, name):
    """Return a field, or a list, by its name."""
    return exhibit.get_by_label(name, exact=True)


def write(exhibit, name, text):
    """Write into a field and press Enter."""
    field(exhibit, name).fill(text)
    field(exhibit, name).press("Enter")


def cell(exhibit, t, s):
    """Return the cell of a pair in the first grid."""
    grid = exhibit.locator(".tl-mask").first
    return grid.locator("tbody tr").nth(t).locator("td").nth(s)


def middle(exhibit, t, s):
    """Return where the middle of a cell is."""
    box = cell(exhibit, t, s).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


SWIPE = [("touchStart", 0), *[("touchMove", i / 8) for i in range(1, 9)]]


def swipe(exhibit, start, end):
    """Draw a finger from one pair to another."""
    draw_finger(exhibit.page, middle(exhibit, *start), middle(exhibit, *end))


def draw_finger(page, start, end, *, then="touchEnd"):
    """Draw a finger from one point of the window to another."""
    session = page.context.new_cdp_session(page)
    (x1, y1), (x2, y2) = start, end
    for kind, share in [*SWIPE, (then, 1)]:
        point = {"x": x1 + share * (x2 - x1), "y": y1 + share * (y2 - y1)}
        points = [] if kind == then else [point]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

"""What a page need not carry: repeated scripts, icons that none shows, files that none asks for.

A notebook's elements bring their style and their script with them, since alone in Colab they have
nothing else. On the site every page takes both from one file. The theme draws two dozen icons out
of two thousand; those stay, as fonts inside its style sheet, so that nothing is fetched for them
and nothing moves when they come.
"""

import gzip
import math
import re
import shutil
from base64 import b64encode
from functools import partial
from hashlib import sha256
from io import BytesIO

from fontTools import subset

from tutorial_lib.elements.sources import KINDS, script, style

ELEMENTS = ("elements.css", "elements.js")
ELEMENTS_STYLE = '    <link rel="stylesheet" href="{root}_static/elements.css" />\n'
ELEMENTS_SCRIPT = '<script src="{root}_static/elements.js?v={digest}"></script>\n    '
MODEL_BEGINS = "<script data-model="
LATER = "<script data-later data-model="  # of a model that a reader loads by a button
MODEL = r'<script( data-later)? data-model="(\w+)">\n(.*?)\n</script>\n?'
MODEL_SCRIPT = '<script src="{root}_static/model-{name}.js"></script>\n    '
WAITING = (
    '<button type="button" data-model="{root}_static/model-{name}.js" hidden>'
    "Load the model, {kb} kB</button>\n"
)
ICON_FONTS = "_static/vendor/fontawesome/webfonts"
ICON_SOURCE = r"src:url\(\.\./vendor/fontawesome/webfonts/([\w-]+)\.woff2\)[^}]*"
# An icon as a style sheet writes it: the character itself, or its number.
ICON = r"[\ue000-\uf8ff]|\\[ef][0-9a-f]{3}"
IDLE = (
    "_static/locales",
    "_static/vendor",
    "_static/scripts/fontawesome.js*",
    "_static/searchtools.js",
    "_static/language_data.js",
    "_static/sphinx_highlight.js",
    "_static/**/*.map",
    "_static/*webpack-macros.html",
)
# Sphinx's own search; `search.py` has another.
SEARCH_SCRIPT = (
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex|sphinx_highlight)\.js[^"]*">'
    "</script>"
)
# The markup without which a script, asked for on every page, has nothing to do.
NEEDED_BY = {
    "clipboard.min": 'class="highlight',
    "copybutton": 'class="highlight',
    "design-tabs": 'class="sd-tab-',
    "togglebutton": 'class="toggle',
    "fontawesome": "data-fa-",
    "bootstrap": 'data-bs-toggle="modal',  # site.js opens the menus
}
SCRIPT = r"\s*<(?:script|link)\b[^>]*/{}\.js[^>]*>(?:</script>)?"
TOGGLE_OPTION = r"\s*<script>(?:let|var) toggle\w+ = '[^']*';</script>"
# A script waits for the page, but for two: what scripts in the page add to, and the colour mode.
BLOCKING = r"<script(?=[^>]*\ssrc=)(?![^>]*\sdefer)(?![^>]*/(?:documentation_options|site)\.js)"


def fold_elements(site, pages):
    """Write the style and the script of all elements once, and take their copies from the pages.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    contents = style(*KINDS), script(*KINDS)
    for name, content in zip(ELEMENTS, contents, strict=True):
        (site / "_static" / name).write_text(content + "\n", encoding="utf-8")
    digest = sha256("".join(contents).encode()).hexdigest()[:8]
    copies = {f"<style>\n{style(kind)}\n</style>\n" for kind in KINDS}
    copies |= {f"<script>\n{script(kind)}\n</script>" for kind in KINDS}
    for path, page in pages.items():
        if "<tl-" not in page:
            continue
        for copy in copies:
            page = page.replace(copy, "")
        root = re.search(r'data-content_root="([^"]*)"', page)[1]
        page = page.replace("  </head>", ELEMENTS_STYLE.format(root=root) + "  </head>", 1)
        # Before the others, which may ask the elements.
        first = ELEMENTS_SCRIPT.format(root=root, digest=digest)
        pages[path] = page.replace('<script src="', first + '<script src="', 1)


def fold_models(site, pages):
    """Write the weights of each model into a script of its own, and take them from the pages.

    A script, and not data that a script asks for: the site may be opened from a disk. It is named
    by a digest of the weights. Where a reader is to load it, a button takes its place.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    written = {}
    for path, page in pages.items():
        found = re.search(r'data-content_root="([^"]*)"', page)
        root = found[1] if found else ""
        models = re.findall(MODEL, page, re.S)
        at_once = dict.fromkeys(name for later, name, _ in models if not later)
        scripts = "".join(MODEL_SCRIPT.format(root=root, name=name) for name in at_once)
        page = page.replace('<script src="', scripts + '<script src="', 1)
        pages[path] = re.sub(MODEL, partial(waiting, root), page, flags=re.S)
        written |= {name: content for _, name, content in models}
    for name, content in written.items():
        (site / f"_static/model-{name}.js").write_text(content + "\n", encoding="utf-8")


def waiting(root, model) -> str:
    """Return what stands where a model stood: the button that loads it, where there is one.

    Its size is that of the compressed file, in whole kB, rounded up.
    """
    later, name, content = model.groups()
    kb = math.ceil(len(gzip.compress(content.encode())) / 1000)
    return WAITING.format(root=root, name=name, kb=kb) if later else ""


def with_icons(site, css) -> str:
    """Return a style sheet with the fonts of its icons inside, of which it keeps what it draws."""
    icons = re.findall(ICON, css)
    codes = {int(i[1:], 16) if i.startswith("\\") else ord(i) for i in icons}

    def embedded(source):
        font = subset_font(site / ICON_FONTS / f"{source[1]}.ttf", codes)
        return f'src:url(data:font/woff;base64,{font}) format("woff")'

    return re.sub(ICON_SOURCE, embedded, css)


def subset_font(path, codes) -> str:
    """Return a font with these characters alone, as WOFF in base 64."""
    options = subset.Options(flavor="woff")
    font = subset.load_font(path, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    content = BytesIO()
    subset.save_font(font, content, options)
    return b64encode(content.getvalue()).decode()


def drop_scripts(site, pages):
    """Take from each page the scripts that it has no use for, and let the others wait for it.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    for path, page in pages.items():
        page = re.sub(SEARCH_SCRIPT, "", page)
        for name, markup in NEEDED_BY.items():
            if markup not in page:
                page = re.sub(SCRIPT.format(re.escape(name)), "", page)
        if "togglebutton.js" not in page:
            page = re.sub(TOGGLE_OPTION, "", page)
        pages[path] = re.sub(BLOCKING, "<script defer", page)
    scripts = {path: path.read_text(encoding="utf-8") for path in site.glob("_static/**/*.js")}
    for path in scripts:
        others = (text for other, text in [*pages.items(), *scripts.items()] if other != path)
        if not any(path.name in text for text in others):
            path.unlink()


def drop_idle(site, pages):
    """Remove the files that no page asks for.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    for pattern in IDLE:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

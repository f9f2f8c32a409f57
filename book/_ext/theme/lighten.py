"""What a page need not carry: repeated scripts, icons that none shows, files that none asks for.

A notebook's elements bring their style and their script with them, since alone in Colab they have
nothing else. On the site all take their style from one file, and each kind has a script of its own:
a page links those of its questions, and `site.js` loads that of an exhibit when it comes near, with
its model. What lies in a closed fold waits as text until the fold opens. The theme draws two dozen
icons out of two thousand; those stay, as fonts inside its style sheet, so that nothing is fetched
for them and nothing moves when they come.
"""

import re
import shutil
from base64 import b64encode
from hashlib import sha256
from html import unescape
from io import BytesIO
from unicodedata import normalize

from fontTools import subset
from fontTools.ttLib import TTFont

from tutorial_lib.elements.sources import KINDS, bare, is_exhibit, script, style

ELEMENTS_STYLE = '    <link rel="stylesheet" href="{root}_static/elements.css" />\n'
ELEMENT_SCRIPT = '<script src="{root}_static/tl-{kind}.js?v={digest}"></script>\n    '
MODEL = r'<script data-model="(\w+)">\n(.*?)\n</script>\n?'
MODEL_NEAR = r'<template data-model="{root}_static/model-\1.js"></template>\n'
# Where a fold begins or ends; an element, which may have folds of its own, is passed over whole.
FOLD = r"(<(tl-[\w-]+)\b[^>]*>.*?</\2>|</?details\b)"
PART = r"(<(pre|table|svg)\b[^>]*>)(.*?)(</\2>)"
TEXT = '<noscript class="book-folded">{}</noscript>'
LEAST_MARKUP = 20  # tags; less is no gain
FORMULA = r"<math\b.*?</math>"
FORMULA_FONT = "_static/formulas.woff"
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
    """Write the style of all elements once and the script of each; take the copies from pages."""
    scripts = {kind: script(kind) for kind in KINDS}
    (site / "_static/elements.css").write_text(style(*KINDS) + "\n", encoding="utf-8")
    for kind, content in scripts.items():
        (site / f"_static/tl-{kind}.js").write_text(content + "\n", encoding="utf-8")
    copies = {f"<style>\n{style(kind)}\n</style>\n" for kind in KINDS}
    copies |= {f"<script>\n{content}\n</script>" for content in scripts.values()}
    digests = {k: sha256(scripts[k].encode()).hexdigest()[:8] for k in KINDS if not is_exhibit(k)}
    for path, page in pages.items():
        if "<tl-" not in page:
            continue
        for copy in copies:
            page = page.replace(copy, "")
        root = re.search(r'data-content_root="([^"]*)"', page)[1]
        page = page.replace("  </head>", ELEMENTS_STYLE.format(root=root) + "  </head>", 1)
        # Before the others, which may ask the elements.
        first = "".join(
            ELEMENT_SCRIPT.format(root=root, kind=kind, digest=digest)
            for kind, digest in digests.items()
            if f"<tl-{kind} " in page
        )
        pages[path] = page.replace('<script src="', first + '<script src="', 1)


def fold_models(site, pages):
    """Write the weights of each model into a script of its own, and take them from the pages.

    A script, and not data that a script asks for: the site may be opened from a disk. It is named
    by a digest of the weights, and its address waits in the exhibit.
    """
    for path, page in pages.items():
        found = re.search(r'data-content_root="([^"]*)"', page)
        root = found[1] if found else ""
        for name, content in re.findall(MODEL, page, re.S):
            model = site / f"_static/model-{name}.js"
            model.write_text(content + "\n", encoding="utf-8")
        pages[path] = re.sub(MODEL, MODEL_NEAR.format(root=root), page, flags=re.S)


def fold_markup(site, pages):
    """Have code, tables and drawings in closed folds wait as text, which `site.js` makes markup.

    Where no script runs, a browser reads the text as markup itself.
    """
    for path, page in pages.items():
        texts = re.split(FOLD, page, flags=re.S)
        parts, depth = [], 0
        for text, mark in zip(texts[::3], [*texts[1::3], ""], strict=True):
            parts += [re.sub(PART, part_as_template, text, flags=re.S) if depth else text, mark]
            depth += {"<details": 1, "</details": -1}.get(mark, 0)
        pages[path] = "".join(parts)


def part_as_template(part) -> str:
    """Return a part of a fold as text; as it was, if it is short or an address leads to it."""
    whole, begins, kind, inside, ends = part.group(0, 1, 2, 3, 4)
    if inside.count("<") < LEAST_MARKUP or " id=" in begins:
        return whole
    if kind == "pre":  # stays, for the scripts that look for code
        return f"{begins}{TEXT.format(inside)}{ends}"
    return TEXT.format(whole)


def cut_formula_font(site, pages):
    """Leave in the font of formulas the signs that they have, upright and slanted."""
    formulas = "".join(re.findall(FORMULA, "".join(pages.values()), re.S))
    signs = set(normalize("NFKC", unescape(re.sub(r"<[^>]*>", "", formulas))))
    path = site / FORMULA_FONT
    codes = TTFont(path).getBestCmap()
    path.write_bytes(subset_font(path, {c for c in codes if normalize("NFKC", chr(c)) in signs}))


def inline_icon_fonts(site, stylesheet) -> str:
    """Return a style sheet with the fonts of its icons inside, of which it keeps what it draws."""
    icons = re.findall(ICON, stylesheet)
    codes = {int(i[1:], 16) if i.startswith("\\") else ord(i) for i in icons}

    def inline_font(source):
        font = b64encode(subset_font(site / ICON_FONTS / f"{source[1]}.ttf", codes)).decode()
        return f'src:url(data:font/woff;base64,{font}) format("woff")'

    return re.sub(ICON_SOURCE, inline_font, stylesheet)


def subset_font(path, codes) -> bytes:
    """Return a font with these characters alone, as WOFF."""
    options = subset.Options(flavor="woff")
    font = subset.load_font(path, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    content = BytesIO()
    subset.save_font(font, content, options)
    return content.getvalue()


def remove_unused_scripts(site, pages):
    """Take from each page the scripts that it has no use for; the others, bare, wait for it."""
    for path, page in pages.items():
        page = re.sub(SEARCH_SCRIPT, "", page)
        for name, markup in NEEDED_BY.items():
            if markup not in page:
                page = re.sub(SCRIPT.format(re.escape(name)), "", page)
        if "togglebutton.js" not in page:
            page = re.sub(TOGGLE_OPTION, "", page)
        pages[path] = re.sub(BLOCKING, "<script defer", page)
    scripts = {path: path.read_text(encoding="utf-8") for path in site.glob("_static/**/*.js")}
    for path, source in scripts.items():
        path.write_text(bare(source) + "\n", encoding="utf-8")
        others = (text for other, text in [*pages.items(), *scripts.items()] if other != path)
        # `site.js` loads that of an exhibit by the name of its tag.
        if not path.stem.startswith("tl-") and not any(path.name in text for text in others):
            path.unlink()


def remove_unused_files(site, pages):
    """Remove the files that no page asks for."""
    for pattern in IDLE:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

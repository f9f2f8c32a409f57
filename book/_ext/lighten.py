"""What a page need not carry: repeated scripts, icons that none shows, files that none asks for.

A notebook's elements bring their style and their script with them, since alone in Colab they have
nothing else. On the site every page takes both from one file. The theme draws two dozen icons out
of two thousand; those stay, as fonts inside its style sheet, so that nothing is fetched for them
and nothing moves when they come.
"""

import re
import shutil
from base64 import b64encode
from hashlib import sha256
from io import BytesIO

from fontTools import subset

from tutorial_lib.elements.sources import KINDS, script, style

ELEMENTS = ("elements.css", "elements.js")
ELEMENTS_IN_HEAD = """\
    <link rel="stylesheet" href="{root}_static/elements.css?v={digest}" />
    <script src="{root}_static/elements.js?v={digest}"></script>
"""
THEME_STYLE = "_static/styles/pydata-sphinx-theme.css"
ICON_FONTS = "_static/vendor/fontawesome/webfonts"
ICON_RULE = r'(?:\.fa-[\w-]+:before,?)+\{content:"[^"]+"\}'
ICON_SOURCE = r"src:url\(\.\./vendor/fontawesome/webfonts/([\w-]+)\.woff2\)[^}]*"
ICON_SCRIPT = r'\s*<script defer src="[^"]*fontawesome\.js[^"]*"></script>'
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
        head = ELEMENTS_IN_HEAD.format(root=root, digest=digest)
        pages[path] = page.replace("  </head>", head + "  </head>", 1)


def embed_icons(site, pages):
    """Keep the icons that a page or a style sheet shows; their fonts go into the style sheet.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    used = set(re.findall(r"\bfa-[a-z0-9-]+", "".join(pages.values())))

    def kept(rule):
        return rule[0] if used & set(re.findall(r"fa-[\w-]+", rule[0])) else ""

    sheet = site / THEME_STYLE
    css = re.sub(ICON_RULE, kept, sheet.read_text(encoding="utf-8"))
    others = set(site.glob("_static/**/*.css")) - {sheet}
    icons = re.findall(ICON, css + "".join(p.read_text(encoding="utf-8") for p in others))
    codes = {int(i[1:], 16) if i.startswith("\\") else ord(i) for i in icons}

    def embedded(source):
        font = subset_font(site / ICON_FONTS / f"{source[1]}.ttf", codes)
        return f'src:url(data:font/woff;base64,{font}) format("woff")'

    sheet.write_text(re.sub(ICON_SOURCE, embedded, css), encoding="utf-8")


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


def drop_idle(site, pages):
    """Remove files that no page asks for, and Sphinx's search from all pages.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    for pattern in IDLE:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path, page in pages.items():
        pages[path] = re.sub(f"{ICON_SCRIPT}|{SEARCH_SCRIPT}", "", page)

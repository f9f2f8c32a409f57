"""What the website needs beyond its theme.

A card for links that are shared, a start page, no thebe, the theme's markup mended where a screen
reader stumbles over it; then every page lightened and secured.
"""

import re
import textwrap
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes

from book._ext.theme.security import FIRST
from tools.release import ROOT, is_development, version_of
from tutorial_lib.records import SITE

SUMMARY = "Multi-head attention, built by hand in NumPy, one arrow at a time, every output checked."
SOCIAL_IMAGE = "_static/social.png"

MENDS = (
    # Where a number is from; the tests read it in the sources.
    (r"<!--(?:(?!-->).)*-->", ""),
    # Code in the colour of the text around it.
    (r'<span class="(?:n|nn|nx|p|w)">([^<]*)</span>', r"\1"),
    # The images of a figure, for viewers that show no other picture.
    (r'<style>[^<]*</style><div class="ahh-fallback">.*?</div>', ""),
    # A name that hides the visible text "Search Ctrl+K" from speech control.
    (r'(<button class="btn search-button-field[^>]*?) aria-label="Search"', r"\1"),
    # The search button and the book's contents stood in no landmark.
    (
        r'<div id="pst-primary-sidebar" class',
        '<div id="pst-primary-sidebar" role="complementary" aria-label="Book" class',
    ),
    # The name of the button that changes colours, in which site.js says which are on.
    (
        r'(<button class="[^"]*\btheme-switch-button\b[^"]*") aria-label="Color mode"'
        r' data-bs-title="Color mode"([^>]*>)',
        r'\1 data-bs-title="Colour mode"\2<span class="visually-hidden">Colour mode</span>',
    ),
    # Sphinx, docutils and the theme say the same, each in its words.
    (r'\s*<meta name="viewport" content="width=device-width, initial-scale=1"\s*/>', ""),
    # Roles that ARIA has withdrawn, and a list whose children are no list items.
    (r' role="doc-biblioentry"', ""),
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    # The empty corner of a table is a cell, not a heading.
    (r'<th class="head"><p></p></th>', "<td></td>"),
    # The number of a chapter stands large, its full stop for listeners alone.
    (r'(<h1><span class="section-number">\d+)(\. )', r"\1<span>\2</span>"),
    # The words of a title are one piece beside its number.
    (
        r'(<h1>(?:<span class="section-number">\d+<span>\. </span></span>)?)(.+?)'
        r'(?=<a class="headerlink")',
        r"\1<span>\2</span>",
    ),
    # What follows the colon of a title is a line below it, in smaller type.
    (
        r'(<h1>(?:<span class="section-number">\d+<span>\. </span></span>)?<span>[^<:]+)(: )'
        r'(.+?)(?=</span><a class="headerlink")',
        r'\1<span class="book-colon">\2</span><span class="book-subtitle">\3</span>',
    ),
    # A formula could end a line, and the full stop or bracket behind it begin the next.
    (
        r'(<span class="math notranslate nohighlight"><math>(?:(?!</math>).)*</math></span>'
        r"[.,:;?!)]+)",
        r'<span class="unbroken">\1</span>',
    ),
    # A notebook opened as text in a new tab; it is there to be saved.
    (r'target="_blank"(\s+class="btn btn-sm btn-download-source-button)', r"download\1"),
    # The number of a table is its link; Sphinx adds one of its own.
    (r'<a class="headerlink" href="#table-\d+"[^>]*>[^<]*</a>', ""),
    # Markdown's links to notebooks lead to pages; what an element links to is HTML already.
    (r'(Read again: <a href="\w+)\.ipynb#', r"\1.html#"),
    # What a policy without inline scripts refuses; site.js answers this button.
    (r'<button onclick="window\.print\(\)"', "<button"),
    # A menu stands below its button; nothing computes its place.
    (r'<ul class="dropdown-menu"', r'\g<0> data-bs-popper="static"'),
    # An address that a check prints is a link.
    (rf"(?<![\"'>]){re.escape(SITE)}(book/symptoms\.html#[\w-]+)", r'<a href="../\1">\g<0></a>'),
    # What goes deeper is found where it stands, not in the list of what is on the page.
    (
        r'<li class="toc-h\d nav-item toc-entry"><a [^>]*href="#deeper-[^>]*>(?:(?!</?li).)*</li>',
        "",
    ),
    # An icon stands beside a text or in a button with a name; its glyph is no letter.
    (r'(<(?:i|span)) (class="[^"]*\bfa-)', r'\1 aria-hidden="true" \2'),
)

# Numbers between brackets, in a cell of a table: a vector, which no line may tear.
CELL = r"<t[dh]\b.*?</t[dh]>"
NUMBER = r"[−+-]?[\d½⅓¼⅔¾./]+"
VECTOR = rf"\((?:{NUMBER}, )+{NUMBER}\)"
WHOLE = r'<span class="unbroken">\g<0></span>'

# Before every other script of a page. A browser may refuse to store, or have no room: then a theme
# that asks for its mode would stop, and with it menu, search and keys. What is kept meanwhile lasts
# as long as the page.
STORES = """
    <script>
      for (const name of ["localStorage", "sessionStorage"]) {
        try {
          window[name].setItem("?", "?".repeat(2000));
          window[name].removeItem("?");
        } catch {
          const kept = new Map();
          let store;
          try {
            store = window[name];
            for (const entry of Object.entries(store)) kept.set(...entry);
          } catch {}
          const value = {
            getItem: (key) => kept.get(String(key)) ?? null,
            setItem: (key, text) => void kept.set(String(key), String(text)),
            removeItem: (key) => void (kept.delete(String(key)), store?.removeItem(key)),
            key: (i) => [...kept.keys()][i] ?? null,
            clear: () => kept.clear(),
            get length() { return kept.size; },
          };
          Object.defineProperty(window, name, { value, configurable: true });
        }
      }
    </script>"""

START_PAGE = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>{title}</title>
{metatags}
    <link rel="canonical" href="{target_url}" />
    <link rel="icon" href="_static/favicon.svg" />
    <meta http-equiv="refresh" content="0; url={target}" />
  </head>
  <body><main><h1>{title}</h1><p><a href="{target}">Read the book</a></p></main></body>
</html>
"""


def state_version(app, config):
    """Say at the foot of each page which version of the book it is."""
    config.html_theme_options["extra_footer"] += f" Version {version_of(ROOT)}."


def link_to_tag(app, docname, source):
    """Let a release's links into the repository, and so to Colab, lead to its tag."""
    version = version_of(ROOT)
    if not is_development(version):
        source[0] = source[0].replace("/blob/main/", f"/blob/v{version}/")


def place_not_found_page(app, config):
    """Take the prefix of 404.html, whose addresses are absolute, from the site's own address."""
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path


def link_first_page(app, pagename, templatename, context, doctree):
    """Fill in where the page for what is not there leads to."""
    if pagename == app.config.notfound_pagename:
        prefix, address = app.config.notfound_urls_prefix, app.builder.get_target_uri
        context["body"] = context["body"].format(
            first_page=prefix + address(app.config.root_doc), search=prefix + address("search")
        )


def remove_thebe(app, config):
    """Disconnect thebe, which throws on every page and which no page of ours starts."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def describe(doctree) -> str:
    """Return a page's description: the first paragraph under *Goal*, or else of the page."""
    goals = [
        s for s in doctree.findall(nodes.section) if s.next_node(nodes.title).astext() == "Goal"
    ]
    for paragraph in (goals or [doctree])[0].findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) >= 40:
            return textwrap.shorten(text, width=200, placeholder=" …")
    return SUMMARY


def social_tags(config, title: str, description: str, url: str) -> str:
    """Return the meta tags that search engines and link previews read."""
    properties = {
        "og:site_name": config.html_title,
        "og:type": "article",
        "og:title": title,
        "og:description": description,
        "og:url": url,
        "og:image": config.html_baseurl + SOCIAL_IMAGE,
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": "The six steps of multi-head attention, drawn as blocks in two colours.",
    }
    names = {"description": description, "twitter:card": "summary_large_image"}
    lines = [f'<meta name="{key}" content="{escape(value)}" />' for key, value in names.items()]
    lines += [f'<meta property="{k}" content="{escape(v)}" />' for k, v in properties.items()]
    return "\n".join(f"    {line}" for line in lines)


def set_description_and_card(app, pagename, templatename, context, doctree):
    """Give a page its description and its card, and take thebe's style sheet from it."""
    title = re.sub(r"<[^>]+>", "", context.get("title", "")) or app.config.html_title
    description = describe(doctree) if doctree else SUMMARY
    url = app.config.html_baseurl + app.builder.get_target_uri(pagename)
    tags = social_tags(app.config, title, description, url)
    context["metatags"] = context.get("metatags", "") + "\n" + tags
    context["css_files"] = [f for f in context["css_files"] if "thebe" not in str(f.filename)]


def write_start_page(app, exception):
    """Write index.html: a card of its own and the way to the first page."""
    if exception:
        return
    target = app.builder.get_target_uri(app.config.root_doc)
    title, base = app.config.html_title, app.config.html_baseurl
    tags = social_tags(app.config, title, describe(app.env.get_doctree(app.config.root_doc)), base)
    page = START_PAGE.format(title=title, metatags=tags, target=target, target_url=base + target)
    (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def reread_all_pages(app, env, added, changed, removed):
    """Have every page written anew: what is made once for all is made from all of them."""
    return env.found_docs


def repair_theme_faults(site, pages):
    """Rewrite the theme's faults in every page; `tests/site` finds those that come back."""
    for fault, repair in MENDS:
        pages.update({path: re.sub(fault, repair, page) for path, page in pages.items()})
    for path, page in pages.items():
        pages[path] = re.sub(CELL, lambda cell: re.sub(VECTOR, WHOLE, cell[0]), page, flags=re.S)


def add_storage_fallback(site, pages):
    """Give every page what stands in for a store that the browser refuses or that is full."""
    for path, page in pages.items():
        if "<script" in page:
            pages[path] = page.replace(FIRST, FIRST + STORES, 1)

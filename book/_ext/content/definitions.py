"""Definitions where a word is read: the first use of a term on a page leads to the glossary.

Such a link, and one to a paper of the references, shows on hover, focus and tap what it leads to.
`definitions.js` does that, with the cards that are written here and fetched when one is shown.

Our own, since sphinx-hoverxref is no longer maintained and asks a server, and sphinx-tippy puts
16 kB of scripts and every card into each page, under a name that differs from build to build, and
links no word. The place of a card and its closing are the browser's own popover.
"""

import json
import re
from functools import cache
from html import escape

from tools.chapters import ROOT

GLOSSARY, REFERENCES = "book/glossary.html", "book/references.html"
# Here a kernel is Jupyter's, an id that of a cell or a student, or the page explains nothing new.
UNLINKED = {
    *(GLOSSARY, REFERENCES, "book/intro.html", "book/running.html", "book/teaching_grading.html"),
    *("book/exercises.html", "book/sheet.html", "book/teaching_institution.html"),
}
CARDS = "definitions-cards.js"
ENTRY = r'<dt id="(term-[^"]+)">(.*?)<a class="headerlink".*?</dt><dd>(.*?)</dd>'
PAPER = r'<div class="citation" id="[^"]+">\s*<span class="label">.*?</span>\s*<p>(.*?)</p>'
# The authors, the title, and what begins with a journal, a book or a year.
CITED = r"(?s)(.*?[^\W\d_]{2}\.) (.+?[.?!]) ((?:In )?<em>.*|\d{4}\. .*)"
HOSTS = {"url": "", "eprint": "https://arxiv.org/abs/", "doi": "https://doi.org/"}
ALSO = r"<em>Also called:</em> ([^<]*)"
# Terms that are everyday words too: linked only where a page sets them in bold.
EVERYDAY = """
block cache context heads hint mix page parameter period process project scale score shape state
task trace value view X Y
"""
# What is no text of a page, a fold that stays closed until it is asked, and the text itself.
PIECES = re.compile(
    r"<(?P<lump>tl-[\w-]+|table|figure|pre|svg|script|style|blockquote)\b.*?</(?P=lump)>"
    r"|<!--.*?-->|(?P<fold><details\b[^>]*>)|(?P<end></details>)|<p>(?P<text>.*?)</p>",
    re.S,
)
# Inside a text: what is no word of it, a word in bold, or a stretch of words.
INLINE = re.compile(
    r"<(?P<lump>a|code|math|svg|em)\b.*?</(?P=lump)>|<!--.*?-->|<strong>(?P<bold>[^<]*)</strong>"
    r"|<[^>]*>|(?P<words>[^<]+)",
    re.S,
)


def define_terms(site, pages):
    """Link the first use of each term on every page, and write the cards that its links show.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page; a build may hold only some
    """
    if site / GLOSSARY not in pages:
        return
    entries = re.findall(ENTRY, pages[site / GLOSSARY], re.S)
    papers = {}
    if site / REFERENCES in pages:
        pages[site / REFERENCES] = re.sub(PAPER, add_reason, pages[site / REFERENCES], flags=re.S)
        papers = read_papers(pages[site / REFERENCES])
    terms = {form: place for place, title, text in entries for form in term_forms(title, text)}
    for path, page in pages.items():
        before, article, rest = page.partition("<article")
        if not article or path.parent == site:
            continue
        text, end, foot = rest.partition("</article>")
        if path.relative_to(site).as_posix() not in UNLINKED:
            text = link_first_uses(text, terms)
        pages[path] = before + article + mark_links_with_cards(text, papers) + end + foot
    cards = {place: card_html(place, title, text) for place, title, text in entries} | papers
    source = json.dumps(cards, ensure_ascii=False, separators=(",", ":"))
    (site / "_static" / CARDS).write_text(f"window.bookCards = {source};\n", encoding="utf-8")


def term_forms(title, text) -> list[str]:
    """Return the words by which a term is found: its own, other names of it alone, and plurals."""
    others = re.search(ALSO, text)
    names = [name.strip(" .") for name in others[1].split(",")] if others else []
    names = [title, *(name for name in names if re.search(r"[A-Z]{2}|[ -]", name))]
    return [*names, *map(plural_of, names)]


def plural_of(name) -> str:
    """Return the plural of a term: queries, axes, heads."""
    return re.sub(r"(?<![aeiou])y$", "ie", re.sub("is$", "e", name)) + "s"


def link_first_uses(page, terms) -> str:
    """Return an article with a link at the first use of each term in what it shows at once."""
    words = sorted(terms, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(pattern_of_spellings, words))})(?![\w-])")
    places, linked = {normalised_form(form): place for form, place in terms.items()}, set()

    def link(found, bold=False):
        place = places[normalised_form(found[0])]
        if place in linked or (place.removeprefix("term-") in EVERYDAY.split() and not bold):
            return found[0]
        linked.add(place)
        return f'<a class="book-term" href="../{GLOSSARY}#{place}">{found[0]}</a>'

    def inline(piece):
        if piece["bold"]:
            found = pattern.fullmatch(piece["bold"])
            return f"<strong>{link(found, bold=True)}</strong>" if found else piece[0]
        return pattern.sub(link, piece["words"]) if piece["words"] else piece[0]

    return change_paragraphs(page, lambda text: INLINE.sub(inline, text))


def change_paragraphs(page, change) -> str:
    """Return an article with a change in the text of each paragraph that it shows at once."""
    folds = []

    def block(piece):
        if piece["fold"]:
            folds.append("book-deeper" not in piece["fold"])
        elif piece["end"]:
            folds.pop()
        elif piece["text"] and not any(folds):
            return f"<p>{change(piece['text'])}</p>"
        return piece[0]

    return PIECES.sub(block, page)


def pattern_of_spellings(term) -> str:
    """Return a pattern of a term: with a capital or not, with hyphens or spaces."""
    first, rest = term[0], re.escape(term[1:]).replace(r"\ ", r"[\s-]").replace(r"\-", r"[\s-]")
    first = f"[{first.upper()}{first}]" if first.islower() else re.escape(first)
    return first + rest


def normalised_form(form) -> str:
    """Return a form without what its spellings differ in."""
    return re.sub(r"[\s-]", " ", form if form[1:2].isupper() else form[0].lower() + form[1:])


def mark_links_with_cards(page, cards) -> str:
    """Return an article whose links to terms and to papers say that they have a card."""

    def name(link):
        classes, address = link["classes"], link["address"]
        if "headerlink" in classes or "book-term" in classes:
            return link[0]
        kind = "book-paper" if address in cards else "book-term" if "#term-" in address else ""
        return link[0].replace(classes, f"{classes} {kind}", 1) if kind else link[0]

    return re.sub(r'<a class="(?P<classes>[^"]*)" href="(?P<address>[^"]*)"', name, page)


def card_html(place, title, text) -> str:
    """Return what the card of a term shows: its definition, and the line of its shape and paper."""
    first, *others = re.findall(r"<p>.*?</p>", text, re.S)
    shown = first + (others[-1] if others and others[-1].startswith("<p><em>") else "")
    shown = re.sub(r'href="#', f'href="../{GLOSSARY}#', shown)
    more = f'<p><a href="../{GLOSSARY}#{place}">Glossary: {title}</a></p>'
    return re.sub("<a ", '<a tabindex="-1" ', shown + more)


def add_reason(paper) -> str:
    """Return an entry of the references with the sentence that says why the book cites it."""
    sentences = [reasons().get(address) for address in re.findall(r'href="([^"]+)"', paper[1])]
    sentence = next(filter(None, sentences), "")
    return paper[0].removesuffix("</p>") + f' <span class="book-why">{escape(sentence)}</span></p>'


@cache
def reasons() -> dict[str, str]:
    """Return why the book cites each paper, by its addresses."""
    source = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    found = {}
    for entry in source.split("\n@")[1:]:
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", entry, re.M))
        addresses = [start + fields[name] for name, start in HOSTS.items() if name in fields]
        found |= dict.fromkeys(addresses, fields.get("annote", ""))
    return found


def read_papers(page) -> dict[str, str]:
    """Return the cards of the references by the addresses of their papers."""
    found = {}
    for text in re.findall(PAPER, page, re.S):
        cited, why = text.split(' <span class="book-why">')
        authors, title, rest = re.fullmatch(CITED, cited).groups()
        shown = f"<p><strong>{title}</strong></p><p>{authors} {rest}</p>"
        shown = re.sub("<a ", '<a tabindex="-1" ', shown)
        shown += f"<p>{why.removesuffix('</span>')}</p>"
        found |= dict.fromkeys(re.findall(r'href="([^"]+)"', rest), shown)
    return found

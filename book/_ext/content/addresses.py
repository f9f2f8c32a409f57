"""Addresses of a section without its label, and of what is below a section.

The address of "Look: bytes of a cache" is `#look`, whatever the label. Below it are exercises,
predictions, figures, tables, questions and states. The numbers come from the chapter itself. An
exercise, a prediction and a question bear theirs; the figures and the tables of a page are counted
as they stand. Each gets an id, which Markdown can link to like a heading's, and a link to itself. A
link to a state, such as `06_output_projection.ipynb#playground=0&X.0.2.1=1.5`, leads to its page as
it is.
"""

import re
from pathlib import Path
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from tools import chapters

EXERCISE = r"Exercise (?P<number>\d+)(?=:)"
FIGURE = r'<figure (?P<beginning>class="ahh-figure".*?<figcaption[^>]*>)'
PREDICTION = (
    r'(?P<box><tl-predict-[^>]*-prediction-(?P<number>\d+)"[^>]*>\s*<(?:fieldset|div))>'
    r"(?P<beginning>\s*<(?:legend|label)[^>]*>)<b>Predict\.</b>"
)
QUESTION = r"<fieldset>(?P<beginning>\s*<legend>)<b>(?P<number>\d+)\.</b>"
TITLE = "Link to this {kind}"
LINK = '<a class="book-number" href="#{address}" title="Link to this {kind}">{text}</a>'
BOOK = "attention-head-by-head.pdf"  # tools/print_book.py prints it into the site
SITEMAP = """\
<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{lines}
</urlset>
"""


def self_link(address, kind, text):
    """Return the link of a number to itself."""
    link = nodes.reference("", text, refid=address, internal=True, classes=["book-number"])
    link["reftitle"] = TITLE.format(kind=kind)
    return link


class NumberPage(SphinxTransform):
    """Give everything of a chapter or a review that has a number its id and its link."""

    def apply(self, **kwargs):
        """Change the page in place."""
        page = chapters.page_of_document(self.env.docname)
        if not page:
            return
        self.chapter = f"{page.number}." if page.number else ""
        self.figures = self.tables = 0
        for node in [*self.document.findall()]:
            if isinstance(node, nodes.section):
                self.name_section(node)
            elif isinstance(node, nodes.paragraph):
                self.name_exercise(node)
            elif isinstance(node, nodes.table):
                self.count_table(node)
            elif isinstance(node, nodes.raw) and node.get("format") == "html":
                node[:] = [nodes.Text(self.number_html(node.astext()))]

    def register_id(self, kind, number, text):
        """Let Markdown link to an id as it links to a heading; return the id."""
        address = f"{kind}-{number}"
        self.document.myst_slugs[address] = (None, address, text)
        return address

    def name_section(self, section):
        """Give a section with a label the id that it would have without."""
        heading, slugs = section.next_node(nodes.title).astext(), self.document.myst_slugs
        if (name := chapters.section_of(heading)) != heading:
            section["ids"] = [nodes.make_id(name)]
            slugs[section["ids"][0]] = (None, section["ids"][0], heading)
            del slugs[section["slug"]]

    def name_exercise(self, paragraph):
        """Give an exercise, a paragraph that begins in bold, its id and its link."""
        bold = paragraph.next_node(nodes.strong)
        found = re.match(EXERCISE, paragraph.astext())
        if not found or bold is None:
            return
        address = self.register_id("exercise", found["number"], found[0])
        paragraph["ids"].append(address)
        begin = bold.next_node(nodes.Text)
        rest = nodes.Text(begin.removeprefix(found[0]))
        bold.replace(begin, [self_link(address, "exercise", found[0]), rest])

    def count_table(self, table):
        """Give a table a title with its id and its link."""
        self.tables += 1
        text = f"Table {self.chapter}{self.tables}"
        address = self.register_id("table", self.tables, text)
        table["ids"].append(address)
        table.insert(0, nodes.title("", "", self_link(address, "table", text)))

    def number_html(self, html):
        """Return the HTML of an output with the ids and the links of what it shows."""
        html = re.sub(FIGURE, self.count_figure, html, flags=re.S)
        html = re.sub(PREDICTION, self.name_prediction, html, flags=re.S)
        if "<tl-quiz" in html:
            html = re.sub(QUESTION, self.name_question, html)
        return html

    def link(self, kind, number, text):
        """Return an id and the link to it, as HTML."""
        address = self.register_id(kind, number, text)
        return address, LINK.format(address=address, kind=kind, text=text)

    def count_figure(self, match):
        """Return the beginning of a figure up to its caption, which names its number."""
        self.figures += 1
        address, link = self.link("figure", self.figures, f"Figure {self.chapter}{self.figures}")
        return f'<figure id="{address}" {match["beginning"]}{link} '

    def name_prediction(self, match):
        """Return the beginning of a prediction with its number in place of its first word."""
        number = match["number"]
        address, link = self.link("prediction", number, f"Prediction {number}")
        return f'{match["box"]} id="{address}">{match["beginning"]}<b>{link}.</b>'

    def name_question(self, match):
        """Return the beginning of a question of the quiz, its number a link."""
        address = self.register_id("quiz", match["number"], f"Question {match['number']}")
        link = LINK.format(address=address, kind="question", text=match["number"])
        return f'<fieldset id="{address}">{match["beginning"]}<b>{link}.</b>'


class LinkStates(SphinxPostTransform):
    """Resolve the links to states, which name no id: `PAGE#exhibit=0&cell=number`."""

    def run(self, **kwargs):
        """Change the page in place."""
        for link in [*self.document.findall(pending_xref)]:
            inside = link.get("refdomain") != "doc"
            state = link["reftarget" if inside else "reftargetid"] if "refdoc" in link else None
            if link.get("reftype") == "myst" and "=" in (state or ""):
                page = link["refdoc"] if inside else link["reftarget"]
                child = nodes.inline("", "", *link[0].children)
                link.replace_self(
                    make_refnode(self.app.builder, link["refdoc"], page, state, child)
                )


def write_sitemap(app, exception):
    """List the pages of the book for those who search, by their public addresses."""
    if exception:
        return
    base = app.config.html_baseurl
    places = sorted(base + app.builder.get_target_uri(name) for name in app.env.found_docs)
    lines = "\n".join(f"  <url><loc>{escape(place)}</loc></url>" for place in places)
    (Path(app.outdir) / "sitemap.xml").write_text(SITEMAP.format(lines=lines), encoding="utf-8")


def offer_book(app, pagename, templatename, context, doctree):
    """Offer the whole book as a PDF, at its public address: a local build need not have printed it.

    The theme calls its own entry, which prints one page, ".pdf".
    """
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"][-1]["text"] = "this page, .pdf"
            group["buttons"].append(
                {
                    "type": "link",
                    "url": app.config.html_baseurl + BOOK,
                    "text": "whole book, .pdf",
                    "icon": "fas fa-book",
                    "label": "download-book-button",
                }
            )


def leave_numbers_to_this_file(_app, config):
    """Leave the numbers to this file: Jupyter Book's part for LaTeX lets Sphinx write them too."""
    config["numfig"] = False

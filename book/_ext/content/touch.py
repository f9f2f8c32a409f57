"""The page of things to touch: each exhibit of the book as a small picture, with its places.

Which chapter has which exhibit is read from its cells. The picture is what the first of these cells
has stored, without what serves to change it.
"""

import re

from bs4 import BeautifulSoup
from docutils.parsers.rst import Directive

from book._ext.content.exhibits import cells, raw
from tools.chapters import FOLDER, pages
from tutorial_lib.elements import exhibits
from tutorial_lib.elements.markup import inline

CALL = re.compile(rf"^\s*({'|'.join(exhibits.__all__)})\(", re.MULTILINE)
FORM = re.compile("^tl-")
CONTROLS = (
    "details, button, input, select, legend, .tl-ask, .tl-said, .tl-row, .tl-legend, "
    "[style*='display:none']"
)
IDLE = {"id", "role", "tabindex", "data-given", "aria-label", "aria-live", "scope"}
THING = """\
<div class="book-thing">
<div class="book-picture" inert aria-hidden="true"><div>{picture}</div></div>
<p><a href="{first}"><b>{name}</b></a>: {sentence} <span>{places}</span></p>
</div>"""


def exhibit_places() -> dict[str, list]:
    """Return where each exhibit is shown, {its function: [(address, words, its form)]}."""
    start = exhibit_form(exhibits.live_map().html)
    found = {"live_map": [(f"intro.html#{start['id']}", "first page", start)]}
    for page in pages():
        for cell in cells(page.path):
            called = CALL.search("".join(cell["source"]))
            if not called or cell["cell_type"] != "code":
                continue
            for output in cell["outputs"]:
                shown = exhibit_form("".join(output.get("data", {}).get("text/html", "")))
                if shown:
                    address = f"../{FOLDER}{page.name}.html#{shown['id']}"
                    place = address, f"chapter {page.number:02}", shown
                    found.setdefault(called[1], []).append(place)
    return found


def exhibit_form(html):
    """Return the form of an exhibit; None where there is none."""
    return BeautifulSoup(html, "html.parser").find(FORM)


def exhibit_item_html(shown, sentence) -> str:
    """Return an exhibit with its picture, what one can find out, and the links to its places."""
    first, _, drawn = shown[0]
    name = drawn["aria-label"].partition(",")[0]
    for part in drawn.select(CONTROLS):
        part.decompose()
    for part in (drawn, *drawn.find_all(True)):
        part.attrs = {key: value for key, value in part.attrs.items() if key not in IDLE}
    drawn.name = "div"  # what no script wakes
    links = (f'<a href="{address}">{words}</a>' for address, words, _ in shown)
    return THING.format(
        picture=drawn, first=first, name=name, sentence=inline(sentence), places=" · ".join(links)
    )


class Things(Directive):
    """The directive `things`: a line for each exhibit, its function and what one can find out."""

    has_content = True

    def run(self):
        """Return the exhibits in the order of the book."""
        sentences = dict(line.split(": ", 1) for line in self.content)
        shown = exhibit_places()
        if unlike := sentences.keys() ^ shown.keys():
            raise self.error(f"Give each exhibit of the book a sentence; see {sorted(unlike)}.")
        things = "\n".join(exhibit_item_html(shown[name], sentences[name]) for name in shown)
        return [raw(f'<div class="book-things">{things}</div>')]

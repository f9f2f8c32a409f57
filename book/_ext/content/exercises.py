"""The index of all exercises: each a line with its chapter, steps, kind and length.

A link leads to the exercise in its chapter; `book.js` adds `?only=`, which shows it alone.
"""

import re

from sphinx.util.docutils import SphinxDirective

from book._ext.content.courses import short_name
from book._ext.content.exhibits import COMMENT, cells, raw
from tools.chapters import FOLDER, pages
from tools.minutes import TASKS, passages

HEADER = "| exercise | chapter | steps | kind | lines |\n|---|---|---|---|---|"
BEGINNING = re.compile(r"^(?=\*\*Exercise \d|## The task)", re.MULTILINE)
TITLE = re.compile(r"\*\*Exercise (\d+): (.+?)\.?\*\*,? *([^.?]*[.?])?", re.DOTALL)
FILTER = """<p class="cards-filter" hidden>
<label>Exercises with <input type="search" size="12"></label> <output>{} exercises</output></p>"""


def exercises(notebook) -> list:
    """Return (text, [(kind, code) of each cell]) of each exercise; of a review, of its task."""
    found, code = [], []
    for section, _, kind, passage in passages(notebook):
        if kind != "text":
            code.append((kind, passage))
        elif passage.startswith("### ") or section not in TASKS:
            code = []  # of no exercise: what uses the answer of a review
        else:
            for part in filter(BEGINNING.match, BEGINNING.split(passage)):
                code = []
                found.append((part, code))
    return found


def row(page, text, code) -> str:
    """Return the line of an exercise; its last entry is the number of lines of its solution."""
    title = TITLE.match(COMMENT.sub("", text)) or ("", "", page.title.partition(": ")[2], "")
    name = f"{title[2]}. {title[3]}" if title[2] == "order the lines" else title[2]
    address = f"../{FOLDER}{page.name}.ipynb"
    place = f"{address}#exercise-{title[1]}" if title[1] else f"{address}#the-task"
    chapter = (
        f"{short_name(page)} {page.title.partition(': ')[0]}" if page.number else short_name(page)
    )
    lines = sum(bool(line.strip()) for k, c in code if k == "folded" for line in c.split("\n"))
    is_puzzle = "parsons(" in str(code)
    parts = (
        f"[{name[0].upper()}{name[1:]}]({place})",
        f"[{chapter}]({address})",
        " · ".join(page.steps),
        "Parsons" if is_puzzle else "code",
        "–" if is_puzzle else f"{lines}",
    )
    return f"| {' | '.join(parts)} |"


class Exercises(SphinxDirective):
    """The directive `exercises`: the table of all exercises, and the field that filters it."""

    def run(self):
        """Return both; search leaves the table out, and a phone stacks its cells."""
        rows = [row(page, *each) for page in pages() for each in exercises(cells(page.path))]
        drawn = self.parse_text_to_nodes("\n".join([HEADER, *rows]))
        drawn[0]["classes"] += ["book-listing", "book-variants", "book-exercises"]
        return [raw(FILTER.format(len(rows))), *drawn]

"""The index of all exercises: each a line with its chapter, steps, minutes and kind.

All of it is read from the notebooks. A link leads to the exercise in its chapter; `book.js` adds
`?only=`, by which `kept.js` shows it alone.
"""

import re
from typing import NamedTuple

from sphinx.util.docutils import SphinxDirective

from book._ext.content.courses import short
from book._ext.content.exhibits import COMMENT, cells, raw
from tools.chapters import FOLDER, pages
from tools.minutes import LONG, SPECIFIED, TASKS, Counts, count_words, passages

HEADER = ["| exercise | chapter | steps | minutes | kind |", "|---|---|---|---|---|"]
BEGINNING = re.compile(r"^(?=\*\*Exercise \d|## The task)", re.MULTILINE)
TITLE = re.compile(r"\*\*Exercise (\d+): (.+?)\.?\*\*,? *([^.?]*[.?])?", re.DOTALL)
PARSONS = "order the lines"
FILTER = (
    '<p class="cards-filter" hidden><label>Exercises with <input type="search"></label> '
    "<output>{} exercises</output></p>"
)


class Exercise(NamedTuple):
    """The text of an exercise, and its cells of code, (whether it is shown, source) each."""

    text: str
    code: list

    @property
    def address(self):
        """Return its address on its page."""
        found = TITLE.match(self.text)
        return f"exercise-{found[1]}" if found else "the-task"

    @property
    def title(self):
        """Return its title; of lines to order, what they do, too."""
        found = TITLE.match(COMMENT.sub("", self.text))
        if not found:
            return "The task"
        title = f"{found[2]}. {found[3]}" if found[2] == PARSONS else found[2]
        return title[0].upper() + title[1:]

    @property
    def kind(self):
        """Return what is done in it."""
        return "Parsons" if any("parsons(" in source for _, source in self.code) else "code"

    @property
    def minutes(self):
        """Return the minutes of doing that the rule of a page gives for it alone."""
        lines = sum(bool(line.strip()) for shown, s in self.code if shown for line in s.split("\n"))
        words = count_words(SPECIFIED.sub(r"\1", self.text))
        return Counts(0, lines, exercises=1, further=max(0, words - LONG)).minutes[1]


def exercises(notebook) -> list[Exercise]:
    """Return the exercises of a notebook's cells; of a review, its task without what uses it."""
    found, text, code = [], None, []
    for section, _, kind, passage in passages(notebook):
        if kind != "text":
            code.append((kind == "code", passage))
            continue
        if passage.startswith("### ") or section not in TASKS:
            code = []  # of no exercise
        for part in BEGINNING.split(passage) if section in TASKS else ():
            if BEGINNING.match(part):
                code = []
                found.append(Exercise(part, code))
    return found


def row(page, exercise) -> str:
    """Return the line of an exercise in the table."""
    address, topic = f"../{FOLDER}{page.name}.ipynb", page.title.partition(": ")[0]
    return (
        f"| [{exercise.title}]({address}#{exercise.address}) | "
        f"[{short(page)} {topic if page.number else ''}]({address}) | "
        f"{' · '.join(page.steps)} | {exercise.minutes} | {exercise.kind} |"
    )


class Exercises(SphinxDirective):
    """The directive `exercises`: the table of all exercises, and the field that filters it."""

    def run(self):
        """Return both; search leaves the table out, and a phone stacks its cells."""
        rows = [row(page, each) for page in pages() for each in exercises(cells(page.path))]
        drawn = self.parse_text_to_nodes("\n".join([*HEADER, *rows]))
        drawn[0]["classes"] += ["book-listing", "book-variants", "book-exercises"]
        return [raw(FILTER.format(len(rows))), *drawn]

"""The calendars for courses: weeks are given, and what they cost and leave out is computed."""

import re
from itertools import chain

from sphinx.util.docutils import SphinxDirective

from book._ext.content.exhibits import cells
from tools.chapters import FOLDER, ROOT, pages
from tools.minutes import SAID, goal

HEADER = "| week | chapters | reading | doing | assignments |"
WEEK = re.compile(r"(\d+): (\S.*)")
ASSIGNMENT = re.compile(r"^\| `(\w+)` \| ([^|]+?) \|", re.MULTILINE)
TEACHING = ROOT / "book" / "teaching.md"


class CourseError(ValueError):
    """A calendar is out of form; says in one sentence what is wrong and what is expected."""


def short_name(page) -> str:
    """Return what a calendar calls a page: 03, or review 1."""
    return f"{page.number:02}" if page.number else page.name.replace("_part_", " ")


def minutes(page) -> tuple[int, int]:
    """Return the minutes of reading and of doing that a page's Goal gives for its main path.

    Raises
    ------
    CourseError : it gives none
    """
    found = SAID.search(page.head)
    if not found:
        raise CourseError(
            f"{page.name} does not say how long it takes; expected “{goal(cells(page.path))}” in "
            "its Goal. `python -m tools.minutes` gives the minutes of every page."
        )
    return int(found[1]), int(found[2])


def pages_by_week(lines) -> list:
    """Return the pages of each week.

    Raises
    ------
    CourseError : a line out of form, a page that is not there, comes twice or too early
    """
    known, found = {short_name(page): page for page in pages()}, []
    for line in lines:
        match = WEEK.fullmatch(line.strip())
        if not match or int(match[1]) != len(found) + 1:
            raise CourseError(
                f"{line!r} is no week {len(found) + 1}; expected its number, a colon and pages, "
                f"such as “{len(found) + 1}: 01, 02”."
            )
        names = match[2].split(", ")
        if unknown := [name for name in names if name not in known]:
            raise CourseError(f"{unknown[0]!r} is no page; expected one of {', '.join(known)}.")
        found.append([known[name] for name in names])
    order, planned = list(known.values()), list(chain(*found))
    places = [order.index(page) for page in planned]
    if places != sorted(set(places)):
        raise CourseError("A page stands twice or before an earlier one; expected them in order.")
    return found


def omitted_pages(pages_by_week) -> list:
    """Return the pages of the book that a course does without."""
    named = {page.name for page in chain(*pages_by_week)}
    return [page for page in pages() if page.name not in named]


def coursework(pages_by_week) -> list[list[str]]:
    """Return the assignments of each week: of its chapters, or of a part that ends in it."""
    last = {page.part: page.name for page in chain(*pages_by_week)}
    table = ASSIGNMENT.findall(TEACHING.read_text(encoding="utf-8"))
    given = []
    for week in pages_by_week:
        ends = {page.part for page in week if last[page.part] == page.name}
        names = {short_name(page) for page in week} | ends
        given.append([name for name, chapter in table if chapter in names])
    return given


def _page_links(found):
    return ", ".join(f"[{short_name(page)}](../{FOLDER}{page.name}.ipynb)" for page in found)


def table(planned) -> list[str]:
    """Return the lines of a calendar: a row for each week, then what is left out."""
    lines = [HEADER, "|---|---|---|---|---|"]
    for number, (week, given) in enumerate(zip(planned, coursework(planned), strict=True), 1):
        reading, doing = map(sum, zip(*map(minutes, week), strict=True))
        tasks = ", ".join(f"`{name}`" for name in given) or "–"
        lines.append(f"| {number} | {_page_links(week)} | {reading} | {doing} | {tasks} |")
    hours = sum(sum(minutes(page)) for page in chain(*planned)) / 60
    absent = omitted_pages(planned)
    said = f"Left out: {_page_links(absent)}." if absent else "Nothing is left out."
    spent = f"{hours:.0f} hours of reading and doing in all, assignments apart."
    return [*lines, "", f"{spent} {said}"]


class Course(SphinxDirective):
    """The directive `course`: a calendar, of the weeks that its content lists."""

    has_content = True

    def run(self):
        """Return the table; a calendar out of form ends the build."""
        try:
            lines = table(pages_by_week([line for line in self.content if line.strip()]))
        except CourseError as error:
            raise self.error(str(error)) from None
        return self.parse_text_to_nodes("\n".join(lines))

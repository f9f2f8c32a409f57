"""The calendars for courses: what they sum, give and leave out, and what is refused."""

import re

import pytest

from book._ext.content import courses
from book._ext.content.courses import (
    CourseError,
    coursework,
    minutes,
    omitted_pages,
    pages_by_week,
    table,
)
from tests.chapters.pages import written
from tools.chapters import ROOT, page, pages
from tools.minutes import count

TEXT = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
LISTED = [block.splitlines() for block in re.findall(r"```\{course\}\n(.*?)\n```", TEXT, re.DOTALL)]
CALENDARS = [pages_by_week(lines) for lines in LISTED]
WEEKS = [4, 8, 14]
EACH = pytest.mark.parametrize("planned", CALENDARS, ids=lambda planned: f"{len(planned)} weeks")


def rows_of(planned):
    """The cells of each week's row."""
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table(planned)[2:]]


def test_there_is_a_calendar_for_each_length_and_the_longest_leaves_nothing_out():
    assert [len(planned) for planned in CALENDARS] == WEEKS
    assert omitted_pages(CALENDARS[-1]) == []
    assert [name for week in CALENDARS[-1] for name in week] == list(pages())


@EACH
def test_minutes_of_a_week_are_those_of_its_chapters(planned):
    for row, week in zip(rows_of(planned), planned, strict=False):
        each = [count(written(one.name).cells, deeper=False).minutes for one in week]
        reading, doing = map(sum, zip(*each, strict=True))
        assert row[2:4] == [str(reading), str(doing)]


@EACH
def test_a_course_names_what_it_leaves_out(planned):
    named = {each.name for week in planned for each in week}
    absent = [each for each in pages() if each.name not in named]
    assert omitted_pages(planned) == absent


@EACH
def test_an_assignment_comes_in_the_week_of_its_chapter(planned):
    given = coursework(planned)
    rows = re.findall(r"^\| `(\w+)` \| (\d\d) \|", TEXT, re.MULTILINE)
    for name, chapter in rows:
        held = [any(each.number == int(chapter) for each in week) for week in planned]
        assert [name in week for week in given] == held
    whole = re.findall(r"^\| `(\w+)` \| Part I \|", TEXT, re.MULTILINE)
    assert {*whole} <= {*given[[page("review_part_1") in week for week in planned].index(True)]}


def test_a_chapter_without_its_minutes_is_named(monkeypatch):
    monkeypatch.setattr(type(page("01_embeddings")), "head", "About an afternoon.")
    with pytest.raises(CourseError, match="01_embeddings does not say how long it takes"):
        minutes(page("01_embeddings"))


WRONG = {
    "no week": (["01, 02"], "is no week 1"),
    "a week missing": (["1: 01", "3: 02"], "is no week 2"),
    "no such page": (["1: 01, 99"], "'99' is no page"),
    "twice": (["1: 01", "2: 01"], "stands twice"),
    "before an earlier one": (["1: 02, 01"], "before an earlier one"),
}


@pytest.mark.parametrize(("lines", "said"), WRONG.values(), ids=WRONG)
def test_a_calendar_out_of_form_is_refused(lines, said):
    with pytest.raises(CourseError, match=said):
        pages_by_week(lines)


def test_a_course_without_any_page_left_says_so():
    assert "Nothing is left out." in table(CALENDARS[-1])[-1]
    assert courses.table(CALENDARS[0])[-1].count("](") == len(omitted_pages(CALENDARS[0]))

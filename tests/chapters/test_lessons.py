"""Every lesson plan is that of a page, lasts as long as the others, and quotes its own checks."""

import re

import pytest

from tests.chapters.pages import NAMES
from tests.practice.rooms import ROOMS
from tools.chapters import ROOT, page

LESSON = 50  # minutes
PAGE = "book/teaching_lessons.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
PLANS = {
    part.partition(":")[0].partition("\n")[0]: part
    for part in TEXT.split("\n## ")[1:]
    if "| minutes | what |" in part
}
PLAN_OF = {
    name: f"Review of {page(name).part}" if page(name).closes else f"{page(name).number:02}"
    for name in NAMES
}
QUOTED = re.compile(r"^- .*: \*([^*]+ [^*]+)\*", re.MULTILINE)  # a sentence after a colon
STEP = re.compile(r"^\| (\d+)–(\d+) \|(.*)\|$", re.MULTILINE)


def test_every_page_has_a_plan_in_its_place_and_there_is_no_other():
    titles = list(PLAN_OF.values())
    assert list(PLANS) == titles, f"{PAGE}: order its headings ## so, and add what lacks: {titles}"


@pytest.mark.parametrize("name", NAMES)
def test_the_minutes_of_a_plan_follow_each_other_and_one_step_may_be_dropped(name):
    plan = PLANS[PLAN_OF[name]]
    steps = [(int(start), int(end), what) for start, end, what in STEP.findall(plan)]
    ends = [end for _, end, _ in steps]
    linked = set(re.findall(r"\.\./notebooks/(\w+)\.ipynb", plan))
    told = {
        "let each step begin where one has ended": [s for s, _, _ in steps] == [0, *ends[:-1]],
        f"let them rise to {LESSON} minutes": ends == sorted(ends) and ends[-1] == LESSON,
        "mark one step ◇, which may be dropped": sum("◇" in what for *_, what in steps) == 1,
        f"link to {name}.ipynb alone": linked == {name},
    }
    left = [edit for edit, done in told.items() if not done]
    assert not left, f"{PAGE}, the plan of {PLAN_OF[name]}: {'; '.join(left)}"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_plan_quotes_is_what_a_check_of_its_page_says(name):
    said = {mistake.says for wrong in ROOMS[name].MISTAKES.values() for mistake in wrong}
    quoted = QUOTED.findall(PLANS[PLAN_OF[name]])
    assert {*quoted} <= said, f"{PAGE}: quote what the room's mistakes.txt says, word by word"

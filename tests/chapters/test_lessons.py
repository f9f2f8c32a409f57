"""Every lesson plan is that of a page, lasts as long as the others, and leads to its own page."""

import re

import pytest

from tests.chapters.pages import NAMES
from tools.chapters import ROOT, page

LESSON = 50  # minutes
TEXT = (ROOT / "book" / "teaching_lessons.md").read_text(encoding="utf-8")
PLANS = {
    part.partition(":")[0].partition("\n")[0]: part
    for part in TEXT.split("\n## ")[1:]
    if "| minutes | what |" in part
}
PLAN_OF = {
    name: f"Review of {page(name).part}" if page(name).closes else f"{page(name).number:02}"
    for name in NAMES
}
STEP = re.compile(r"^\| (\d+)–(\d+) \|(.*)\|$", re.MULTILINE)


def test_every_page_has_a_plan_in_its_place_and_there_is_no_other():
    assert list(PLANS) == list(PLAN_OF.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_minutes_of_a_plan_follow_each_other_and_one_step_may_be_dropped(name):
    plan = PLANS[PLAN_OF[name]]
    steps = [(int(start), int(end), what) for start, end, what in STEP.findall(plan)]
    ends = [end for _, end, _ in steps]
    assert [start for start, _, _ in steps] == [0, *ends[:-1]], "each begins where one has ended"
    assert ends == sorted(ends)
    assert ends[-1] == LESSON
    assert sum("◇" in what for _, _, what in steps) == 1
    assert set(re.findall(r"\.\./notebooks/(\w+)\.ipynb", plan)) == {name}

"""The page of conventions: its facts are whole, name their proof, and are what it draws."""

import re

from book._ext.content.conventions import bug_lines, question_lines
from tests.conventions import CELLS, FACTS, QUESTIONS, VERSIONS, called
from tests.test_setup import ROOT, pins


def test_every_cell_is_asked_or_read_and_names_what_is_pinned():
    assert list(CELLS) == [f"{question}: {name}" for question in QUESTIONS for name in VERSIONS]
    assert len(CELLS) == 12 * 8
    read = [cell for name, cell in CELLS.items() if cell["source_kind"] == "source"]
    commit = r"https://github.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/\S+#L\d+(-L\d+)?"
    assert all(re.fullmatch(commit, cell["source"]) for cell in read)
    assert len(CELLS) == len(read) + len(called(VERSIONS))
    assert {bug["cell"] for bug in FACTS["bugs"]} <= set(CELLS)
    pinned = pins() | pins("requirements.peers")
    named = ", ".join(version for name, version in VERSIONS.items() if name != "flash")
    for library, version in (text.split() for text in named.split(", ")):
        assert pinned[library] == version


def test_the_page_draws_every_question_and_each_of_its_answers():
    page = (ROOT / "book" / "conventions.md").read_text(encoding="utf-8")
    assert re.findall(r"{conventions} (\w+)", page) == ["interfaces", *QUESTIONS, "bugs"]
    for question in QUESTIONS:
        _, _, *rows = question_lines(FACTS, question)
        answers = [CELLS[f"{question}: {interface}"]["answer"] for interface in VERSIONS]
        assert [re.search(r"\*\*(.*?)\*\*", row)[1] for row in rows] == answers
    assert len(bug_lines(FACTS)) == 22

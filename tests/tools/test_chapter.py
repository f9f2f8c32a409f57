"""One command for a chapter's author: each step is taken, and what is wrong is said at the end."""

import inspect
import re
import subprocess
import sys

import pytest

from tests.practice.rooms import BY_BEHAVIOUR, ROOMS, asked, checked_in
from tests.practice.variants import VARIANTS
from tools import build_page, chapter
from tools.chapter import format_bank_of_page, main
from tools.chapters import ROOT

NAME = "05_concatenation"
BANKS = sorted(chapter.ROOMS.glob("*/bank.json"))


@pytest.mark.parametrize("path", BANKS, ids=lambda path: path.parent.name)
def test_every_bank_has_the_one_layout(path):
    text, name = path.read_text(encoding="utf-8"), chapter.page_of_room(path.parent.name)
    one = chapter.format_bank(text) == text
    assert one, f"{path.relative_to(ROOT)} has another layout. Run: make chapter NB={name}"


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """A file for the only bank there is."""
    monkeypatch.setattr(chapter, "ROOT", tmp_path)
    monkeypatch.setattr(chapter, "ROOMS", tmp_path)
    (tmp_path / f"ch{NAME}").mkdir()
    return tmp_path / f"ch{NAME}" / "bank.json"


def test_a_bank_is_laid_out_where_it_stands_or_named_where_it_cannot_be_read(bank, capsys):
    assert format_bank_of_page(NAME) == "there is none yet"
    bank.write_text('{"quiz": ["½"], "parsons": null}', encoding="utf-8")
    assert [format_bank_of_page(NAME), format_bank_of_page(NAME)] == [
        "laid out anew",
        "already laid out",
    ]
    laid_out = '{\n  "quiz": [\n    "½"\n  ],\n  "parsons": null\n}\n'
    assert bank.read_text(encoding="utf-8") == laid_out
    bank.write_text('{"quiz": [\n  {"a": 1}\n  {"b": 2}]}', encoding="utf-8")
    assert main([NAME, "pytest"]) == 1
    told = capsys.readouterr().err
    assert re.match(rf"ch{NAME}/bank\.json: .* line 3 column 3 .*\. Correct the file", told)


@pytest.mark.parametrize("name", ["", "5", "05"])
def test_without_a_chapter_the_names_are_told_and_what_to_type(capsys, name):
    assert main([name, "pytest"]) == 2
    told = capsys.readouterr().err
    assert f" {NAME}, " in told
    assert told.endswith(f"make chapter NB={NAME}\n")


@pytest.mark.parametrize(
    ("wrong", "says"), [([], "is green"), (["a test", "the page"], "is red: a test, the page")]
)
def test_last_line_says_how_it_went_and_where_the_page_is(monkeypatch, capsys, wrong, says):
    steps = []
    monkeypatch.setattr(
        chapter, "format_bank_of_page", lambda name: steps.append("bank") or "laid out anew"
    )
    monkeypatch.setattr(chapter.run_notebooks, "main", lambda names: steps.append("cells"))
    monkeypatch.setattr(
        chapter, "run_chapter_tests", lambda *given: steps.append("checks") or wrong
    )
    assert main([NAME, "pytest"]) == bool(wrong)
    assert steps == ["bank", "cells", "checks"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert says in last
    assert f"_build/chapter/notebooks/{NAME}.html" in last


def is_of_a_room(name):
    """Whether the right function stands in a room, and so in no test of the library."""
    return ".practice." in inspect.unwrap(asked(name)[0]).__module__


@pytest.mark.parametrize("page", ROOMS)
def test_a_check_whose_right_function_is_its_own_has_seen_another(page):
    room = ROOMS[page]
    names = checked_in(room) - BY_BEHAVIOUR - {name for name, _, _ in VARIANTS}
    names = {name for name in names if is_of_a_room(name)}
    told = f"write one in tests/practice/variants/{room.__name__.split('.')[-2]}.py"
    assert not names, f"no right answer in another form is handed to {sorted(names)}: {told}"


def test_the_tests_of_a_chapter_are_those_of_its_page_and_of_the_functions_of_its_room():
    checked = checked_in(ROOMS[NAME])
    assert len(checked) > 3
    assert set(chapter.selection(NAME).split(" or ")) == {NAME} | {f"[{each}" for each in checked}


def test_a_warning_of_the_build_names_its_cell():
    warning = f"\x1b[91m{ROOT}/notebooks/{NAME}.ipynb:40006: WARNING: target not found\x1b[0m"
    assert (
        chapter.readable_warnings(warning)
        == f"notebooks/{NAME}.ipynb, cell 4: WARNING: target not found"
    )


def test_style_is_red_where_ruff_finds_something(tmp_path, monkeypatch):
    monkeypatch.setattr(chapter, "ROOT", tmp_path)
    (tmp_path / "one.py").write_text("import os\n", encoding="utf-8")
    assert chapter.run_ruff()[0].startswith("style (run: make format")
    (tmp_path / "one.py").write_text('alt = "x"\n', encoding="utf-8")
    assert chapter.run_ruff() == []


@pytest.mark.long
def test_page_of_one_chapter_is_that_of_the_book():
    subprocess.run([sys.executable, "-m", "tools.build_page", NAME], cwd=ROOT, check=True)
    built = [build_page.SITE, ROOT / "_build" / "html"]
    pages = [(site / "notebooks" / f"{NAME}.html").read_text(encoding="utf-8") for site in built]
    one, whole = (re.sub(r"site\.css\?v=\w+", "site.css", page) for page in pages)
    is_equal = one == whole
    assert is_equal, "compare _build/chapter with _build/html, which `make book` has built"

"""One command for a chapter's author: each step is taken, and what is wrong is said at the end."""

import inspect
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.practice.rooms import BY_BEHAVIOUR, ROOMS, asked, checked_in
from tests.practice.variants import VARIANTS
from tools import build_page, chapter
from tools.chapter import laid_out, lay_out, main
from tools.chapters import ROOT

NAME = "05_concatenation"
BANKS = sorted(chapter.ROOMS.glob("*/bank.json"))
BANK = {"quiz": [{"question": "½ · √4?", "from": None, "options": []}], "parsons": None}
LAYOUT = """\
{
  "quiz": [
    {
      "question": "½ · √4?",
      "from": null,
      "options": []
    }
  ],
  "parsons": null
}
"""


@pytest.mark.parametrize("path", BANKS, ids=lambda path: path.parent.name)
def test_every_bank_has_the_one_layout(path):
    text, name = path.read_text(encoding="utf-8"), chapter.page_of_room(path.parent.name)
    one = laid_out(text) == text
    assert one, f"{path.relative_to(ROOT)} has another layout. Run: make chapter NB={name}"


@pytest.mark.parametrize(
    "options", [{}, {"indent": 4}, {"indent": "\t", "ensure_ascii": False}, {"separators": ",:"}]
)
def test_a_bank_written_in_any_way_has_one_layout_and_all_of_its_text(options):
    assert laid_out(json.dumps(BANK, **options)) == LAYOUT


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """A file for the only bank there is."""
    monkeypatch.setattr(chapter, "ROOT", tmp_path)
    monkeypatch.setattr(chapter, "ROOMS", tmp_path)
    (tmp_path / f"ch{NAME}").mkdir()
    return tmp_path / f"ch{NAME}" / "bank.json"


def test_a_bank_is_laid_out_where_it_stands(bank):
    assert lay_out(NAME) == "there is none yet"
    bank.write_text(json.dumps(BANK), encoding="utf-8")
    assert [lay_out(NAME), lay_out(NAME)] == ["laid out anew", "already laid out"]
    assert bank.read_text(encoding="utf-8") == LAYOUT


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"quiz": [\n  {"a": 1}\n  {"b": 2}]}', r"line 3 column 3 .*\. Correct the file"),
        ('{"why": "one", "why": "two"}', r"has \['why'\] twice, of which only the last would stay"),
    ],
)
def test_a_bank_that_cannot_be_read_is_told_by_its_file_and_left(bank, capsys, text, says):
    bank.write_text(text, encoding="utf-8")
    assert main([NAME, "pytest"]) == 1
    assert re.match(rf"ch{NAME}/bank\.json: .*{says}", capsys.readouterr().err)
    assert bank.read_text(encoding="utf-8") == text


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
    monkeypatch.setattr(chapter, "lay_out", lambda name: steps.append("bank") or "laid out anew")
    monkeypatch.setattr(chapter.run_notebooks, "main", lambda names: steps.append("cells"))
    monkeypatch.setattr(chapter.readme, "main", lambda: steps.append("README"))
    monkeypatch.setattr(chapter, "check", lambda *given: steps.append("checks") or wrong)
    assert main([NAME, "pytest"]) == bool(wrong)
    assert steps == ["bank", "cells", "README", "checks"]
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


LONG = "E501 Line too long (126 > 100)\n --> notebooks/05.ipynb:cell 12:18:101"
UNUSED = "F401 [*] `os` imported but unused\n --> tools/chapter.py:1:8"
PYTEST = "........F [100%]\n==== FAILURES ====\nthe text says 10\n"
WARNING = f"{ROOT}/notebooks/{NAME}.ipynb:40006: WARNING: target not found: 'nope' [myst]"


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        ((0, 0, ""), []),
        ((1, 0, ""), ["a test"]),
        ((0, 1, ""), ["the page"]),
        ((0, 0, "check"), ["style (edit by hand what ruff names)"]),
        ((0, 0, "--check"), ["style (run: make format)"]),
    ],
)
def test_tests_page_and_style_are_asked_and_what_the_build_warns_of_is_shown(
    monkeypatch, capsys, codes, says
):
    red, built, styled = codes
    page = SimpleNamespace(communicate=lambda: ("", f"\x1b[91m{WARNING}\x1b[0m"), returncode=built)
    ran = []

    def run(command, **options):
        ran.append(command)
        if "ruff" not in command:
            return SimpleNamespace(returncode=red, stdout=PYTEST * red, stderr="")
        stdout = f"{LONG}\n" * (styled in command and "--check" not in command)
        return SimpleNamespace(returncode=int(styled in command), stdout=stdout, stderr="")

    monkeypatch.setattr(chapter.subprocess, "Popen", lambda *given, **options: page)
    monkeypatch.setattr(chapter.subprocess, "run", run)
    assert chapter.check(NAME, ["pytest"]) == says
    assert ran[0] == ["pytest", "-k", NAME, *chapter.TESTS, f"notebooks/{NAME}.ipynb"]
    warned = f"notebooks/{NAME}.ipynb, cell 4: WARNING: target not found: 'nope' [myst]\n"
    printed = capsys.readouterr().out
    assert (warned in printed) is bool(built)
    assert printed.startswith("==== FAILURES ====\nthe text says 10" if red else printed[:1])
    assert ".F" not in printed


@pytest.mark.parametrize(
    ("ruff", "says"),
    [
        ((0, "", 0), []),
        ((1, LONG, 0), ["style (edit by hand what ruff names)"]),
        ((1, UNUSED, 0), ["style (run: make format)"]),
        ((0, "", 1), ["style (run: make format)"]),
        (
            (1, f"{UNUSED}\n\n{LONG}", 0),
            ["style (run: make format, then edit by hand what ruff names)"],
        ),
        ((1, LONG, 1), ["style (run: make format, then edit by hand what ruff names)"]),
    ],
)
def test_style_says_what_a_command_mends_and_what_only_a_hand_does(monkeypatch, capsys, ruff, says):
    code, found, unformatted = ruff

    def run(command, **options):
        if "format" in command:
            return SimpleNamespace(returncode=unformatted, stdout="", stderr="")
        return SimpleNamespace(returncode=code, stdout=found, stderr="")

    monkeypatch.setattr(chapter.subprocess, "run", run)
    assert chapter.style() == says
    told = capsys.readouterr().out
    assert found in told
    assert ("Write it as two strings" in told) is ("E501" in found)


def test_ruff_writes_its_findings_as_they_are_read_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(chapter, "ROOT", tmp_path)
    long = "x" * 120
    settings = '[lint]\nselect = ["E", "F"]\n'
    (tmp_path / "ruff.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "long.py").write_text(f'alt = "{long}"\n', encoding="utf-8")
    assert chapter.style() == ["style (edit by hand what ruff names)"]
    assert chapter.LONG_LINES in capsys.readouterr().out
    (tmp_path / "long.py").write_text("import os\n", encoding="utf-8")
    assert chapter.style() == ["style (run: make format)"]
    (tmp_path / "long.py").write_text("alt = 'x'\n", encoding="utf-8")
    assert chapter.style() == ["style (run: make format)"]
    (tmp_path / "long.py").write_text('alt = "x"\n', encoding="utf-8")
    assert chapter.style() == []


@pytest.mark.long
def test_page_of_one_chapter_is_that_of_the_book():
    subprocess.run([sys.executable, "-m", "tools.build_page", NAME], cwd=ROOT, check=True)
    built = [build_page.SITE, ROOT / "_build" / "html"]
    pages = [(site / "notebooks" / f"{NAME}.html").read_text(encoding="utf-8") for site in built]
    one, whole = (re.sub(r"site\.css\?v=\w+", "site.css", page) for page in pages)
    is_equal = one == whole
    assert is_equal, "compare _build/chapter with _build/html, which `make book` has built"

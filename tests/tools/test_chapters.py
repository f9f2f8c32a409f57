"""Contents and notebooks agree; contents out of form get a sentence that says what to do."""

import json
import re

import pytest
import yaml

from tests.chapters.rules import in_browser
from tools.chapters import (
    FOLDER,
    ROOT,
    ContentsError,
    Page,
    documents,
    main,
    pages,
)

PARTS = [
    {"caption": "Before you start", "chapters": ["book/running"]},
    {"caption": "Part I: By hand", "chapters": ["notebooks/01_embed", "notebooks/02_score"]},
    {"chapters": ["notebooks/review_part_1"]},
    {"caption": "Part II: In PyTorch", "chapters": ["notebooks/03_torch"]},
    {"chapters": ["notebooks/review_part_2"]},
    {"caption": "Part III: Variants", "chapters": ["notebooks/04_cache"]},
    {"caption": "Look things up", "chapters": ["book/glossary"]},
]


@pytest.fixture
def plant(tmp_path):
    """Write contents, with a line replaced, and all notebooks of the unbroken ones."""

    def write(old="", new=""):
        parts = [part | {"chapters": [{"file": f} for f in part["chapters"]]} for part in PARTS]
        text = yaml.safe_dump({"root": "book/intro", "parts": parts}, sort_keys=False)
        (tmp_path / "_toc.yml").write_text(text.replace(old, new), encoding="utf-8")
        for name in re.findall(rf"{FOLDER}\S+", text):
            (tmp_path / f"{name}.ipynb").parent.mkdir(exist_ok=True)
            (tmp_path / f"{name}.ipynb").touch()
        return tmp_path

    return write


def test_every_notebook_is_in_the_contents():
    left = {path.stem for path in (ROOT / FOLDER).glob("*.ipynb")} - {p.name for p in pages()}
    assert not left, f"add a line to _toc.yml for each of {left}, or take it away"


def test_pages_have_their_order_part_number_and_rule(plant):
    found = [
        (p.name, p.part, p.number, p.runs_in_browser, p.may_import_torch) for p in pages(plant())
    ]
    assert found == [
        ("01_embed", "Part I", 1, True, False),
        ("02_score", "Part I", 2, True, False),
        ("review_part_1", "Part I", None, True, False),
        ("03_torch", "Part II", 3, False, True),
        ("review_part_2", "Part II", None, False, True),
        ("04_cache", "Part III", 4, True, False),
    ]
    real = Page(ROOT / "05_real.ipynb", "Part V: A real model")
    assert (real.runs_in_browser, real.may_import_torch) == (False, False)
    closed = [p.closes for p in pages(plant()) if p.closes]
    assert closed == [("01_embed", "02_score"), ("03_torch",)]
    assert documents(plant())[:3] == ["book/intro", "book/running", "notebooks/01_embed"]


@pytest.mark.parametrize("head", ["# Keep them\n\n## Goal", "# Keep them\n\nembed · unembed"])
def test_a_chapter_that_shows_no_steps_is_told_what_to_write(plant, head):
    chapter = pages(plant())[-1]
    chapter.path.write_text(json.dumps({"cells": [{"source": [head]}]}), encoding="utf-8")
    with pytest.raises(ContentsError, match=r"04_cache does not show its steps: write the map"):
        assert chapter.steps


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("01_embed", "embed", "embed has no number: name a chapter 01_embed, and list a review"),
        ("02_score", "03_score", "03_score is chapter 2 in _toc.yml: renumber it, or move"),
        ("04_cache", "04_caches", "no 04_caches.ipynb, which _toc.yml lists: write it, or take"),
    ],
)
def test_contents_out_of_form_get_a_sentence_that_says_what_to_do(plant, old, new, says):
    with pytest.raises(ContentsError, match=says):
        pages(plant(old, new))


def test_what_runs_in_the_browser_has_numpy_and_no_torch():
    assert all(map(in_browser, ("json", "numpy.linalg", "matplotlib", "tutorial_lib.elements")))
    assert not any(map(in_browser, ("torch", "scipy", "tutorial_lib.pytorch.MultiHeadAttention")))


def test_make_is_told_the_notebooks_of_a_part_or_which_parts_there_are(capsys):
    last = pages()[-1].part
    assert main([last]) == 0
    told = capsys.readouterr().out.split()
    assert told == [f"{FOLDER}{p.name}.ipynb" for p in pages() if p.part == last]
    assert main(["Part X"]) == 1
    assert capsys.readouterr().err.startswith("There is no 'Part X' in _toc.yml. Choose one of: ")

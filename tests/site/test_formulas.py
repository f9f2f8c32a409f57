"""Formulas are set at build: all of them, in signs that their font has, without a script."""

import re
from html import unescape
from pathlib import Path

import pytest
from docutils import nodes
from fontTools.ttLib import TTFont

from book._ext.content import formulas
from tests.site.browsing import PARAMETERS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ITALICS = {letter: chr(0x1D44E + i) for i, letter in enumerate(LETTERS)} | {"h": "ℎ"}
ITALICS |= {letter.upper(): chr(0x1D434 + i) for i, letter in enumerate(LETTERS)}
MATH = r"<math\b.*?</math>"


def signs(formula) -> set[str]:
    """Return the signs of a formula as a browser draws them: a name of one letter is slanted."""
    names = re.findall(r"<mi>([^<]*)</mi>", formula)
    shown = [ITALICS.get(name, name) for name in names]
    rest = re.sub(r"<mi>[^<]*</mi>|<[^>]*>", "", formula)
    return set(unescape("".join([*shown, rest]))) - {"\n"}


@pytest.fixture(scope="module")
def font(site_dir) -> set[str]:
    """The signs of the font of formulas, as the site has it."""
    return set(map(chr, TTFont(site_dir / "_static/formulas.woff").getBestCmap()))


def test_font_has_every_sign_of_a_formula(site_dir, font, page_name):
    page = (site_dir / page_name).read_text(encoding="utf-8")
    found = set().union(*map(signs, re.findall(MATH, page, re.S)))
    assert found <= font


def test_every_formula_of_a_page_is_set(site_dir, page_name):
    page = (site_dir / page_name).read_text(encoding="utf-8")
    set_ = re.findall(r'class="math [^"]*"><math[^>]*>(?!</math>)', page)
    assert len(set_) == len(re.findall(r'class="math ', page)) == page.count("<math")
    assert set_ or Path(page_name).stem not in PARAMETERS["chapter"]
    assert (
        re.search(
            r"\\[(\[]|\$\$|<merror", re.sub(r"<(pre|code|script).*?</\1>", "", page, flags=re.S)
        )
        is None
    )


@pytest.mark.parametrize("display", [False, True])
def test_formula_says_whether_it_stands_by_itself(display):
    formula = formulas.mathml(nodes.math("", r"\frac{1}{2}"), display=display)
    assert ('<math display="block">' in formula) == display
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in formula


def test_prime_stands_beside_its_letter_and_not_above_it():
    formula = formulas.mathml(nodes.math("", "a' = b^2"), display=False)
    assert '<mi>a</mi><mo form="postfix" lspace="0" rspace="0">′</mo>' in formula
    assert formula.count("<msup>") == 1


def test_formula_that_cannot_be_set_is_told_with_its_place(caplog):
    node = nodes.math("", r"\frac{1")
    node.source, node.line = "chapter.md", 7
    assert formulas.mathml(node, display=False) == ""
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "this formula cannot be set" in record.getMessage()
    assert record.location is node

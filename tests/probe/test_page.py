"""The page and the README show what their code prints, and the page names every claim."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tutorial_lib.probe.claims import WORDS

ROOT = Path(__file__).resolve().parents[2]
TEXT, README = (ROOT.joinpath(name).read_text("utf-8") for name in ("book/probe.md", "README.md"))


@pytest.mark.parametrize(("text", "outputs"), [(TEXT, 8), (README, 1)], ids=["page", "README"])
def test_each_block_prints_what_stands_below_it(text, outputs):
    names, printed, compared = {}, "", 0
    for language, block in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if language == "text":
            assert block == printed
            compared += 1
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(block, names)
        printed = out.getvalue()
    assert compared == outputs


def test_the_table_of_claims_is_that_of_the_library():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", TEXT, re.MULTILINE))
    assert rows == WORDS

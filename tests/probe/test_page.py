"""The page shows what its code prints, and names every claim."""

import contextlib
import io
import re
from pathlib import Path

from tutorial_lib.probe.claims import WORDS

PAGE = Path(__file__).resolve().parents[2] / "book/probe.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_each_block_prints_what_stands_below_it():
    names, printed, compared = {}, "", 0
    for language, block in re.findall(r"```(python|text)\n(.*?)```", TEXT, re.DOTALL):
        if language == "text":
            assert block == printed
            compared += 1
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(block, names)
        printed = out.getvalue()
    assert compared == 8
    names["probe"](names["whole"], d_model=16, causal=True).raise_if_wrong()


def test_the_table_of_claims_is_that_of_the_library():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", TEXT, re.MULTILINE))
    assert rows == WORDS

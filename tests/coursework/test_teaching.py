"""The pages for teachers: the grader understands every command that they show."""

import re
import shlex

import pytest

from coursework.__main__ import _argument_parser
from tools.chapters import ROOT

BLOCKS = [
    block
    for path in sorted(ROOT.glob("book/teaching*.md"))
    for block in re.findall(r"^```\w+\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.M)
]
WRITTEN = [
    words
    for block in BLOCKS
    for words in re.findall(r"python -m coursework (.*)", re.sub(r"\\?\n +(?=--)", " ", block))
]


@pytest.mark.parametrize("words", WRITTEN)
def test_a_command_of_the_pages_is_understood(words):
    assert _argument_parser().parse_args(shlex.split(words)).command == words.split()[0]

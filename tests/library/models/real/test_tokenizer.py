"""Byte pair encoding: merges in their order, every text comes back, and words keep their blank."""

import pytest

from tests.library.models.real import small
from tutorial_lib.models.real.tokenizer import Tokenizer

TEXTS = ("the sat", " 42 cats' hat\n\n  they'll", "Zürich — 東京 🙂\t", "a_b __c", "", "   ")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(small.TOKENS, small.MERGES)


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (" the", ["Ġthe"]),
        (" sat", ["Ġsat"]),
        ("the", ["t", "he"]),
        (" hating", ["Ġ", "h", "at", "ing"]),
        (" 12", ["Ġ", "1", "2"]),
        ("   the", ["Ġ", "Ġ", "Ġthe"]),  # the last blank of a run belongs to the word
    ],
)
def test_the_earliest_merge_goes_first(tokenizer, text, tokens):
    assert [small.TOKENS[n] for n in tokenizer.encode(text)] == tokens

"""Rules as a walk: what they are compiled to, and what is refused, each by name in a sentence."""

import numpy as np
import pytest

from tutorial_lib.models.rules import Grammar, compile_rules

WORDS = ("the", "dog", "dogs", "that", "sleep", "sleeps", "barks")
RULES = {
    "text": "3 the dog>one end | 1 dogs sleep text",
    "end": "1 that sleeps<one text | 1 barks<one text",
}


def test_a_walk_has_the_chances_of_the_rules():
    found = compile_rules(RULES, WORDS)
    assert isinstance(found, Grammar)
    assert found.names == ("one", "")
    text, dog, sleep, end, sleeps = range(5)  # the states, in the order in which they are reached
    by_hand = np.zeros((5, 7))
    by_hand[text, 0], by_hand[text, 2] = 3 / 4, 1 / 4
    by_hand[dog, 1] = by_hand[sleep, 4] = by_hand[sleeps, 5] = 1
    by_hand[end, 3] = by_hand[end, 6] = 1 / 2
    np.testing.assert_array_equal(found.chances, by_hand)
    steps = {(text, 0): dog, (text, 2): sleep, (dog, 1): end, (sleep, 4): text}
    steps |= {(end, 3): sleeps, (end, 6): text, (sleeps, 5): text}
    assert {
        place: found.follows[place] for place in zip(*np.nonzero(by_hand), strict=True)
    } == steps


def test_marks_are_with_their_words():
    found = compile_rules(RULES, WORDS)
    assert list(zip(*np.nonzero(found.notes == 0), strict=True)) == [(1, 1)]  # dog
    assert list(zip(*np.nonzero(found.decides == 0), strict=True)) == [(3, 6), (4, 5)]


def test_marks_of_a_symbol_go_to_its_first_word():
    rules = {"text": "1 animal>one barks<one text", "animal": "1 dog | 1 dogs"}
    found = compile_rules(rules, WORDS)
    assert list(zip(*np.nonzero(found.notes == 0), strict=True)) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(("symbol", "word"), [("text", "dogs"), ("end", "barks")])
def test_an_ambiguous_grammar_is_refused_by_name(symbol, word):
    ambiguous = RULES | {symbol: f"{RULES[symbol]} | 1 {word} sleep text"}
    with pytest.raises(
        ValueError, match=f"^two alternatives of '{symbol}' can begin with '{word}'"
    ):
        compile_rules(ambiguous, WORDS)


def test_alternatives_that_hide_their_first_word_behind_a_symbol_are_refused_too():
    rules = {"text": "1 end | 1 barks text", "end": "1 the barks text | 1 barks text"}
    with pytest.raises(ValueError, match="'text' can begin with 'barks'"):
        compile_rules(rules, WORDS)


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        ({"text": "1 the unicorn text"}, "'text' holds 'unicorn', which is no symbol and no word"),
        ({"text": "1 text dog | 1 the text"}, "'text' can begin with itself"),
        ({"text": "1 end dog", "end": "1 text | 1 the text"}, "'text' can begin with itself"),
        ({"text": "1 dog text | 1"}, "of '1 dog text [|] 1' is '1'; expected a weight above 0"),
        ({"text": "1 dog text | "}, "an alternative of '1 dog text [|] ' is ''; expected a weight"),
        ({"text": "dog text"}, "an alternative of 'dog text' is 'dog text'; expected a weight"),
        ({"text": "0 dog text | 1 the text"}, "of '0 dog text .*' is '0 dog text'; expected a w"),
        ({"text": "1 dog<one text"}, "decided by <one, which no word notes"),
        ({"text": "1 dog text | 1 the dogs"}, "the text ends after 'dogs'"),
        ({"begin": "1 dog begin"}, "'the start' holds 'text', which is no symbol"),
    ],
)
def test_what_is_no_grammar_is_refused_in_a_sentence(faulty, said):
    with pytest.raises(ValueError, match=said) as refusal:
        compile_rules(faulty, WORDS)
    assert str(refusal.value).count(". ") == 1  # what is wrong, and how to mend it

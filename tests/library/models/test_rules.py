"""Rules as a walk: what they are compiled to, and what is refused, each by name in a sentence."""

import numpy as np
import pytest

from tutorial_lib.models.rules import compile_rules

WORDS = ("the", "dog", "dogs", "that", "sleep", "sleeps", "barks")
RULES = {
    "text": "3 the dog>one end | 1 dogs sleep text",
    "end": "1 that sleeps<one text | 1 barks<one text",
}


def entries(table):
    """The state and the word of each entry that is True."""
    return list(zip(*np.nonzero(table), strict=True))


def test_a_walk_has_the_chances_of_the_rules_and_marks_with_their_words():
    grammar = compile_rules(RULES, WORDS)
    text, dog, sleep, end, sleeps = range(5)  # the states, in the order in which they are reached
    chances = np.zeros((5, 7))
    chances[text, 0], chances[text, 2] = 3 / 4, 1 / 4
    chances[dog, 1] = chances[sleep, 4] = chances[sleeps, 5] = 1
    chances[end, 3] = chances[end, 6] = 1 / 2
    np.testing.assert_array_equal(grammar.chances, chances)
    steps = {(text, 0): dog, (text, 2): sleep, (dog, 1): end, (sleep, 4): text}
    steps |= {(end, 3): sleeps, (end, 6): text, (sleeps, 5): text}
    assert {table_entry: grammar.follows[table_entry] for table_entry in entries(chances)} == steps
    assert grammar.names == ("one", "")
    assert entries(grammar.notes == 0) == [(dog, 1)]
    assert entries(grammar.decides == 0) == [(end, 6), (sleeps, 5)]


def test_marks_of_a_symbol_go_to_its_first_word():
    rules = {"text": "1 animal>one barks<one text", "animal": "1 dog | 1 dogs"}
    assert entries(compile_rules(rules, WORDS).notes == 0) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RULES | {"text": "1 dogs end | 1 dogs text"}, "^two .* of 'text' can begin with 'dogs'"),
        (RULES | {"end": "1 barks text | 1 barks the text"}, "^two .* of 'end' .* 'barks'"),
        ({"text": "1 end | 1 barks text", "end": "1 the text | 1 barks text"}, "'text' .* 'barks'"),
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
def test_what_is_no_grammar_is_refused_in_a_sentence(rules, message):
    with pytest.raises(ValueError, match=message) as refusal:
        compile_rules(rules, WORDS)
    assert str(refusal.value).count(". ") == 1  # what is wrong, and how to mend it

"""The text whose truth is known: its floor, its marks, and what refuses to be a grammar."""

import inspect
import itertools
import tokenize
from collections import defaultdict

import numpy as np
import pytest

from tutorial_lib.models import grammar
from tutorial_lib.models.grammar import (
    CLASSES,
    FORMS,
    ID,
    TASKS,
    WORDS,
    draw_documents,
    read_documents,
    rules,
)

MOST_CODE = 120  # lines without docstrings, comments and blank ones
TINY = {
    "text": "3 the dog end | 1 dogs sleep text",
    "end": "1 that sleeps text | 1 barks text",
}


def ids_of(sentences):
    """Ids of a text, behind <bos>: (1, length + 1)."""
    return np.array([[0, *(ID[word] for word in sentences.split())]])


@pytest.fixture(scope="module")
def documents():
    """Six hundred documents."""
    return draw_documents(np.random.default_rng(3), 600)


def test_a_hundred_words_with_those_of_the_running_example():
    assert len(WORDS) == len(set(WORDS)) == 100
    assert {"dogs", "that", "bark", "cats", "sleep"} <= set(WORDS)
    text = "the dogs that the cat sees ( often [ never ] ) bark . they help themselves ."
    read_documents(ids_of(f"{text} Anna Kern sleeps ."))


def test_exact_floor_is_the_mean_surprise_of_drawn_text():
    drawn = draw_documents(np.random.default_rng(0), 4000)
    means = drawn.surprise.mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert error < 2e-3
    assert abs(means.mean() - expected_surprise().mean()) < 3 * error
    by_place = drawn.surprise.std(axis=0, ddof=1) / np.sqrt(len(means))
    standardised = (drawn.surprise.mean(axis=0) - expected_surprise()) / by_place
    assert np.abs(standardised).max() < 4  # of 64 places
    assert 0.7 < standardised.std() < 1.3


def test_floor_of_a_tiny_grammar_is_the_count_by_hand():
    # "the dog that sleeps", "the dog barks" or "dogs sleep", and again from the beginning
    begin = -(3 / 4 * np.log(3 / 4) + 1 / 4 * np.log(1 / 4))
    by_hand = [begin, 0, 3 / 4 * np.log(2) + 1 / 4 * begin]
    # the fourth word: "sleeps" (3/8) says nothing; behind "barks" (3/8) a text begins; behind
    # "dogs sleep the" or "dogs sleep dogs" (1/4) nothing is open
    by_hand.append(3 / 8 * begin)
    found = expected_surprise(length=4, grammar=compile_rules(TINY, WORDS))
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_first_words_of_the_text_are_counted_by_hand():
    first = -(3 / 5 * np.log(3 / 5) + 2 / 5 * np.log(2 / 5 / 6))
    second = 3 / 5 * np.log(24) + 2 / 5 * np.log(12)
    np.testing.assert_allclose(expected_surprise(length=2), [first, second], rtol=1e-12)


def test_expectation_is_the_sum_over_all_texts():
    def texts(state, length, chance=1.0, surprise=(), seen=(), before=None):
        if not length:
            yield chance, surprise
            return
        row = grammar.GRAMMAR.chances[state]
        known = dict(seen).get(before)
        for word in np.flatnonzero(row) if known is None else [known]:
            share = row[word] if known is None else 1.0
            now = (*seen, (before, word)) if grammar.SURNAME[word] else seen
            follow = grammar.GRAMMAR.follows[state, word]
            more = (*surprise, -np.log(share))
            yield from texts(follow, length - 1, chance * share, more, now, word)

    every = list(texts(0, 4))
    assert sum(chance for chance, _ in every) == pytest.approx(1)
    by_hand = sum(chance * np.array(surprise) for chance, surprise in every)
    np.testing.assert_allclose(expected_surprise(length=4), by_hand, rtol=1e-10)


def test_a_surname_surprises_only_when_its_given_name_is_new(documents):
    for ids, surprise in zip(documents.ids, documents.surprise, strict=True):
        family = {}
        for t in np.flatnonzero(grammar.SURNAME[ids]):
            given = ids[t - 1]
            new = given not in family
            assert family.setdefault(given, ids[t]) == ids[t]
            assert surprise[t - 1] == pytest.approx(np.log(12) if new else 0)


def test_surprise_is_minus_log_of_the_choices_of_a_sentence():
    found = read_documents(ids_of("the dogs ( often ) bark . they help themselves ."))
    quarter = [3 / 5, 1 / 24, 1 / 2 / 4, 1 / 10, 4 / 6, 1 / 2 / 8, 1, 4 / 16, 1 / 2 / 8, 1 / 3, 1]
    np.testing.assert_allclose(found.surprise[0], -np.log(quarter), atol=1e-12)


@pytest.mark.parametrize("symbol", ["text", "end"])
def test_an_ambiguous_grammar_is_refused_by_name(symbol):
    word = {"text": "dogs", "end": "barks"}[symbol]
    ambiguous = TINY | {symbol: f"{TINY[symbol]} | 1 {word} sleeps text"}
    with pytest.raises(ValueError, match=f"^two alternatives of '{symbol}' can begin with '{word}'"):
        compile_rules(ambiguous, WORDS)


def test_alternatives_that_hide_their_first_word_behind_a_symbol_are_refused_too():
    with pytest.raises(ValueError, match="'text' can begin with 'barks'"):
        compile_rules({"text": "1 end | 1 barks text", "end": "1 barks text"}, WORDS)


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        ({"text": "1 the unicorn text"}, "'unicorn'.*one of WORDS"),
        ({"text": "1 text dog | 1 the text"}, "'text' begins with itself"),
        ({"text": "1 dog text | 1"}, "'text'.*no word"),
        ({"text": "1 dog<unknown text"}, "'unknown'"),
        ({"begin": "1 dog begin"}, "'text'"),
    ],
)
def test_what_is_no_grammar_is_refused_in_a_sentence(faulty, said):
    with pytest.raises(ValueError, match=said):
        compile_rules(faulty, WORDS)


def test_each_choice_of_the_text_is_told_by_its_word():
    assert isinstance(grammar.GRAMMAR, Grammar)
    np.testing.assert_allclose(grammar.GRAMMAR.chances.sum(axis=1), 1)
    grammar.require_unambiguous(rules())


def test_drawn_text_can_be_read_again(documents):
    again = read_documents(documents.ids)
    for name, values in vars(documents).items():
        np.testing.assert_array_equal(getattr(again, name), values)


def test_text_that_the_rules_forbid_is_refused_by_word_and_place():
    with pytest.raises(ValueError, match="document 0 has 'bark' at place 5; expected one of"):
        read_documents(ids_of("the dog that barks bark ."))
    with pytest.raises(ValueError, match="document 0 has 'Lang' at place 6; expected one of.*Kern"):
        read_documents(ids_of("Anna Kern sleeps . Anna Lang ."))


def rival_of(word):
    """The words that a word is one form among."""
    return [other for other in range(100) if FORMS[other] == FORMS[word] and other != word]


def allowed(ids):
    """Whether the rules give this text."""
    try:
        read_documents(ids[None])
    except ValueError:
        return False
    return True


def test_the_right_form_is_the_only_one_of_its_set(documents):
    counts = defaultdict(int)
    for i, t in zip(*np.nonzero(documents.task >= 0), strict=True):
        task = documents.task[i, t]
        counts[task] += 1
        if counts[task] > 12:
            continue
        begun = documents.ids[i, : t + 2]
        for rival in rival_of(begun[-1]):
            assert not allowed(np.r_[begun[:-1], rival])
    assert set(counts) == set(range(len(TASKS)))


def other_number(word):
    """The word of another number or shape: dogs of dog, it of they, ] of [."""
    pairs = [("noun:s", "noun:p")]
    swaps = {"(": "[", "[": "(", "it": "they", "they": "it", "she": "he", "he": "she"}
    for one, other in pairs:
        swaps |= dict(zip(CLASSES[one].split(), CLASSES[other].split(), strict=True))
        swaps |= dict(zip(CLASSES[other].split(), CLASSES[one].split(), strict=True))
    swaps |= dict(zip(CLASSES["given:f"].split(), CLASSES["given:m"].split(), strict=True))
    swaps |= dict(zip(CLASSES["given:m"].split(), CLASSES["given:f"].split(), strict=True))
    surnames = CLASSES["surname"].split()
    swaps |= dict(zip(surnames, surnames[1:] + surnames[:1], strict=True))
    return ID[swaps[WORDS[word]]]


NUMBER_TELLS = TASKS[:5]  # of a verb


def test_another_word_at_the_deciding_place_makes_another_form_right(documents):
    """Other marked words that the same place decides are left out, so that they do not object."""
    tried = defaultdict(int)
    for i, t in zip(*np.nonzero(documents.task >= 0), strict=True):
        task, place = TASKS[documents.task[i, t]], documents.decided_by[i, t]
        if tried[task] > 20:
            continue
        word, decider = WORDS[documents.ids[i, t + 1]], WORDS[documents.ids[i, place]]
        if task in NUMBER_TELLS and decider not in CLASSES["noun:s"] + CLASSES["noun:p"]:
            continue  # he and she take one verb
        begun, other = documents.ids[i, : t + 2].copy(), other_number(documents.ids[i, place])
        between = documents.decided_by[i, :t] == place
        if between.any() or (task == "surname" and (begun[: t + 1] == begun[t]).sum() > 2):
            continue
        begun[place] = other
        if task != "surname" and not allowed(begun[:-1]):
            continue  # the pronoun before it had another reason
        assert not allowed(begun), (task, word, decider)
        right = [rival for rival in rival_of(begun[-1]) if allowed(np.r_[begun[:-1], rival])]
        assert len(right) == 1, (task, word, decider)
        tried[task] += 1
    assert min(tried[task] for task in TASKS) >= 3, dict(tried)


def test_no_other_word_before_it_decides_an_attracted_verb(documents):
    attracted = documents.task == TASKS.index("attractor")
    for i, t in list(zip(*np.nonzero(attracted), strict=True))[:20]:
        begun = documents.ids[i, : t + 2]
        nouns = [s for s in range(t + 1) if WORDS[begun[s]] in CLASSES["noun:s"].split()]
        for place in set(nouns) - {documents.decided_by[i, t]}:
            changed = begun.copy()
            changed[place] = other_number(begun[place])
            if allowed(changed[:-1]):
                assert allowed(changed)


def test_marks_of_a_sentence_are_those_of_a_reader():
    text = "the dogs that the cat sees ( often [ never ] ) bark . they help themselves . the cat "
    text += "that sees Anna Kern sleeps . the owl that hears the cats ( now ) calls Anna Kern . it"
    found, words = read_documents(ids_of(text)), ["<bos>", *text.split()]
    marks = [
        (word, TASKS[task], words[place], place)
        for word, task, place in zip(words[1:], found.task[0], found.decided_by[0], strict=True)
        if task >= 0
    ]
    assert marks == [
        ("sees", "inside clause", "cat", 5),
        ("]", "bracket", "[", 9),
        (")", "outer bracket", "(", 7),
        ("bark", "attractor", "dogs", 2),
        ("they", "pronoun", "dogs", 2),
        ("help", "agreement", "they", 15),
        ("themselves", "reflexive", "they", 15),
        ("sees", "inside clause", "cat", 20),
        ("sleeps", "across clause", "cat", 20),
        ("hears", "inside clause", "owl", 28),
        (")", "bracket", "(", 33),
        ("calls", "attractor", "owl", 28),
        ("Kern", "surname", "Kern", 24),
        ("it", "pronoun", "owl", 28),
    ]


def test_words_without_a_task_have_no_place_that_decides_them(documents):
    np.testing.assert_array_equal(documents.task < 0, documents.decided_by < 0)
    places = np.arange(documents.task.shape[1])
    assert (documents.decided_by <= places).all()


def test_accuracy_compares_the_right_form_with_the_others_of_its_set_alone(documents):
    targets, rng = documents.ids[:, 1:], np.random.default_rng(0)
    logits = rng.standard_normal((*targets.shape, 100))
    by_hand = defaultdict(list)
    for i, t in zip(*np.nonzero(documents.task >= 0), strict=True):
        word = targets[i, t]
        best = max([word, *rival_of(word)], key=lambda form: logits[i, t, form])
        by_hand[TASKS[documents.task[i, t]]].append(best == word)
    found = accuracy(logits, documents)
    assert list(found) == list(TASKS)
    assert found == pytest.approx({task: np.mean(right) for task, right in by_hand.items()})
    assert set(accuracy(np.eye(100)[targets], documents).values()) == {1.0}


def test_a_model_that_knows_the_rules_loses_nothing_above_the_floor():
    ids = draw_documents(np.random.default_rng(5), 40).ids
    found = read_documents(ids)
    logits = np.full((*found.surprise.shape, 100), -50.0)
    rows, places = np.indices(found.surprise.shape)
    chance = np.exp(-found.surprise)
    logits[rows, places, ids[:, 1:]] = np.log(chance)
    logits[rows, places, 0] = np.log(np.maximum(1 - chance, 1e-20))
    np.testing.assert_allclose(above_floor(logits, found), 0, atol=1e-12)
    uniform = above_floor(np.zeros_like(logits), found)
    np.testing.assert_allclose(uniform, np.log(100) - found.surprise, rtol=1e-12)


def test_code_is_short_enough_to_be_read_at_once():
    source = inspect.getsource(grammar)
    kinds = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines, statement = set(), []
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type not in kinds and token.type != tokenize.ENDMARKER:
            statement.append(token)
        if token.type == tokenize.NEWLINE:
            docstring = len(statement) == 1 and statement[0].type == tokenize.STRING
            spans = [range(s.start[0], s.end[0] + 1) for s in statement]
            lines |= set() if docstring else set(itertools.chain(*spans))
            statement = []
    assert len(lines) <= MOST_CODE

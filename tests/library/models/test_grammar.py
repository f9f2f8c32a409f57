"""The known text: its surprisals, its targets, and what refuses to be a grammar."""

import re
from collections import Counter

import numpy as np
import pytest

from tutorial_lib.models import grammar
from tutorial_lib.models.grammar import FORMS, ID, TASKS, WORDS, read_documents, sample_documents


def ids_of(sentences):
    """Ids of a document, after <bos>: (1, length + 1)."""
    return np.array([[0, *(ID[word] for word in sentences.split())]])


@pytest.fixture(scope="module")
def documents():
    """Six hundred documents."""
    return sample_documents(np.random.default_rng(3), 600)


def test_a_hundred_words_with_those_of_the_running_example():
    assert len(WORDS) == len(set(WORDS)) == 100
    assert {"dogs", "that", "bark", "cats", "sleep"} <= set(WORDS)
    text = "the dogs that the cat sees ( often [ never ] ) bark . they help themselves ."
    read_documents(ids_of(f"{text} Anna Kern sleeps ."))


def test_a_surname_has_a_surprisal_only_when_its_given_name_is_new(documents):
    for ids, surprisal in zip(documents.ids, documents.surprisal, strict=True):
        family = {}
        for t in np.flatnonzero(grammar.SURNAME[ids]):
            given_name = ids[t - 1]
            is_new = given_name not in family
            assert family.setdefault(given_name, ids[t]) == ids[t]
            assert surprisal[t - 1] == pytest.approx(np.log(12) if is_new else 0)


def test_surprisal_is_minus_log_of_the_choices_of_a_sentence():
    document = read_documents(ids_of("the dogs ( often ) bark . they help themselves ."))
    chances = [3 / 5, 1 / 24, 1 / 2 / 4, 1 / 10, 4 / 6, 1 / 2 / 8, 1, 4 / 16, 1 / 2 / 8, 1 / 3, 1]
    np.testing.assert_allclose(document.surprisal[0], -np.log(chances), atol=1e-12)


def test_chances_sum_to_1_and_words_are_forms_of_sets_of_1_2_4_and_12():
    np.testing.assert_allclose(grammar.GRAMMAR.chances.sum(axis=1), 1)
    assert Counter(Counter(FORMS).values()) == {1: 46, 2: 17, 4: 2, 12: 1}


def test_sampled_documents_can_be_read_again(documents):
    reread_documents = read_documents(documents.ids)
    for name, values in vars(documents).items():
        np.testing.assert_array_equal(getattr(reread_documents, name), values)


def rivals(word):
    """The words that a word is one form among."""
    return [word_id for word_id in range(100) if FORMS[word_id] == FORMS[word] and word_id != word]


def is_allowed(ids):
    """Whether the rules give this text."""
    try:
        read_documents(ids[None])
    except ValueError:
        return False
    return True


def test_the_right_form_is_the_only_one_of_its_set(documents):
    for task in range(len(TASKS)):
        for n, t in np.argwhere(documents.task == task)[:12]:
            *prefix, word = documents.ids[n, : t + 2]
            assert rivals(word)
            assert not any(is_allowed(np.array([*prefix, rival])) for rival in rivals(word))


def word_swaps():
    """Nouns of one number to the other, opening brackets, surnames: what may decide other words."""
    kinds = "noun:s", "noun:p", "surname"
    singular_nouns, plural_nouns, surnames = (grammar.CLASSES[kind].split() for kind in kinds)
    words = ["(", "[", *singular_nouns, *plural_nouns, *surnames]
    swapped_words = ["[", "(", *plural_nouns, *singular_nouns, *surnames[1:], surnames[0]]
    return {ID[word]: ID[other] for word, other in zip(words, swapped_words, strict=True)}


def repaired_ids(ids):
    """The text, each word that the rules refuse replaced, from the left, by the right form."""
    ids = ids.copy()
    while not is_allowed(ids):
        with pytest.raises(ValueError, match="at position") as refusal:
            read_documents(ids[None])
        position = int(re.search(r"at position (\d+)", str(refusal.value))[1])
        forms = [form for form in rivals(ids[position]) if is_allowed(np.r_[ids[:position], form])]
        assert len(forms) == 1
        ids[position] = forms[0]
    return ids


def test_another_word_at_a_position_changes_just_what_it_is_said_to_decide(documents):
    swap_table, tasks = word_swaps(), set()
    for n in range(8):
        ids, decided_by = documents.ids[n], documents.decided_by[n]
        free_positions = [p for p in range(1, 60) if ids[p] in swap_table and decided_by[p - 1] < 0]
        for position in free_positions:
            edited_ids = ids.copy()
            edited_ids[position] = swap_table[ids[position]]
            dependents = {position}
            for t, decider in enumerate(decided_by):  # what it decides, decides others
                dependents |= {t + 1} if decider in dependents else set()
            assert set(np.flatnonzero(repaired_ids(edited_ids) != ids)) == dependents
            tasks |= {documents.task[n, t - 1] for t in dependents}
    assert tasks - {-1} == set(range(len(TASKS)))


def test_marks_of_a_sentence_are_those_of_a_reader():
    text = "the dogs that the cat sees ( often [ never ] ) bark . they help themselves . the cat "
    text += "that sees the owl sleeps . Anna Kern likes herself . the owl that hears the cats "
    text += "[ now ] calls Anna Kern . it"
    marks, words = read_documents(ids_of(text)), ["<bos>", *text.split()]
    assert [
        (word, TASKS[task], words[position], position)
        for word, task, position in zip(words[1:], marks.task[0], marks.decided_by[0], strict=True)
        if task >= 0
    ] == [
        ("sees", "inside clause", "cat", 5),
        ("]", "bracket", "[", 9),
        (")", "outer bracket", "(", 7),
        ("bark", "attractor", "dogs", 2),
        ("they", "pronoun", "dogs", 2),
        ("help", "agreement", "they", 15),
        ("themselves", "reflexive", "they", 15),
        ("sees", "inside clause", "cat", 20),
        ("sleeps", "across clause", "cat", 20),
        ("likes", "agreement", "Anna", 27),
        ("herself", "reflexive", "Anna", 27),
        ("hears", "inside clause", "owl", 33),
        ("]", "bracket", "[", 38),
        ("calls", "attractor", "owl", 33),
        ("Kern", "surname", "Kern", 28),
        ("it", "pronoun", "owl", 33),
    ]


def test_targets_of_a_task_are_those_of_its_words_only_and_come_before_them(documents):
    for task, name in enumerate(TASKS):
        target, is_of_task = documents.target_of(name), documents.task == task
        np.testing.assert_array_equal(target[is_of_task], documents.decided_by[is_of_task])
        assert (target[~is_of_task] == -1).all()
        assert (target <= np.arange(target.shape[1])).all()
        assert is_of_task.any()
    np.testing.assert_array_equal(documents.task < 0, documents.decided_by < 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the dog that barks bark .", "document 0 has 'bark' at position 5; expected one of"),
        ("Anna Kern sleeps . Anna Lang .", r"document 0 has 'Lang' at position 6; .*Kern"),
    ],
)
def test_text_that_the_rules_forbid_is_refused_by_word_and_position(text, message):
    with pytest.raises(ValueError, match=message):
        read_documents(ids_of(text))


def test_text_without_its_beginning_and_an_unknown_task_are_refused(documents):
    with pytest.raises(ValueError, match="does not begin with <bos>"):
        read_documents(documents.ids[:, 1:])
    with pytest.raises(ValueError, match=r"^task is 'plural'; expected one of \('agreement', .*Ch"):
        documents.target_of("plural")

"""The entropy of the known text: against samples, against counts by hand; and the excess loss."""

from collections import defaultdict

import numpy as np
import pytest

from tutorial_lib import ShapeError
from tutorial_lib.models import grammar
from tutorial_lib.models.entropy import accuracy, excess_loss, expected_surprisal, form_loss
from tutorial_lib.models.grammar import FORMS, TASKS, WORDS, sample_documents
from tutorial_lib.models.rules import compile_rules


@pytest.fixture(scope="module")
def documents():
    """Documents of an uncommon length."""
    return sample_documents(np.random.default_rng(3), 200, length=50)


def test_exact_entropy_is_the_mean_surprisal_of_sampled_documents():
    surprisal = sample_documents(np.random.default_rng(0), 4000).surprisal
    difference = surprisal - expected_surprisal()
    standard_error = difference.mean(axis=1).std(ddof=1) / np.sqrt(len(surprisal))
    assert standard_error < 1.5e-3
    assert abs(difference.mean()) < 3 * standard_error
    standard_errors = difference.std(axis=0, ddof=1) / np.sqrt(len(surprisal))
    standard_scores = difference.mean(axis=0) / standard_errors
    assert np.abs(standard_scores).max() < 4  # of 64 positions
    assert 0.7 < standard_scores.std() < 1.3


def texts(length, state=0, previous_word=0, known_surnames=()):
    """Every text of the grammar by plain recursion: its chance, and the surprisal of each word."""
    if not length:
        yield 1.0, ()
        return
    chances, surname = grammar.GRAMMAR.chances[state], dict(known_surnames).get(previous_word)
    chances = {w: chances[w] for w in np.flatnonzero(chances)} if surname is None else {surname: 1}
    for word, chance in chances.items():
        new = (*known_surnames, (previous_word, word)) if grammar.SURNAME[word] else known_surnames
        for tail_p, surprisal in texts(length - 1, grammar.GRAMMAR.follows[state, word], word, new):
            yield chance * tail_p, (-np.log(chance), *surprisal)


def test_expectation_is_the_sum_over_all_texts():
    expected = sum(chance * np.array(surprisal) for chance, surprisal in texts(4))
    np.testing.assert_allclose(expected_surprisal(length=4), expected, rtol=1e-10)


def names_grammar(text="1 given surname text", given="1 Anna | 1 Mira | 1 Nora | 1 Emil"):
    """A grammar of names only, in which every second surname can be known."""
    rules = {"text": text, "given": given, "surname": "1 Kern | 1 Adler | 1 Busch"}
    return compile_rules(rules, WORDS)


@pytest.mark.parametrize("n", [1, 4, 6])
def test_a_given_name_comes_back_with_the_chance_of_uniform_samples(n):
    given = " | ".join(f"1 {name}" for name in ("Anna", "Mira", "Nora", "Emil", "Karl", "Paul")[:n])
    surprisal = expected_surprisal(length=8, grammar=names_grammar(given=given))
    np.testing.assert_allclose(surprisal[::2], np.log(n), rtol=1e-12)
    unseen_fraction = (1 - 1 / n) ** np.arange(4)
    np.testing.assert_allclose(surprisal[1::2], np.log(3) * unseen_fraction, rtol=1e-12)


@pytest.mark.parametrize(
    ("fault", "rules"),
    [
        ("uneven names", {"given": "2 Anna | 1 Mira"}),
        ("uneven names", {"text": "1 given surname Paul surname text"}),
        ("names and surnames apart", {"text": "1 given surname the surname text"}),
        ("names and surnames apart", {"text": "1 given sleeps text"}),
        ("names and surnames apart", {"text": "1 given surname text | 1 surname text"}),
    ],
)
def test_a_grammar_of_other_names_is_refused(fault, rules):
    with pytest.raises(ValueError, match=f"the grammar has {fault}; expected one chance"):
        expected_surprisal(grammar=names_grammar(**rules))


def test_a_model_that_knows_the_rules_has_no_excess_loss(documents):
    rows, positions = np.indices(documents.surprisal.shape)
    true_chance = np.exp(-documents.surprisal)
    logits = np.full((*true_chance.shape, 100), -800.0)
    logits[rows, positions, 0] = np.log(np.maximum(1 - true_chance, 1e-300))  # what could have come
    logits[rows, positions, documents.ids[:, 1:]] = np.log(true_chance)
    np.testing.assert_allclose(excess_loss(logits, documents), 0, atol=1e-12)
    uniform_loss = excess_loss(np.zeros_like(logits), documents)
    np.testing.assert_allclose(uniform_loss, np.log(100) - documents.surprisal, rtol=1e-12)


def test_accuracy_and_loss_compare_the_right_form_with_the_others_of_its_set_only(documents):
    words, rng = documents.ids[:, 1:], np.random.default_rng(0)
    logits = 3 * rng.standard_normal((*words.shape, 100))
    hits, form_losses = defaultdict(list), defaultdict(list)
    for n, t in np.argwhere(documents.task >= 0):
        word, task = words[n, t], TASKS[documents.task[n, t]]
        forms = np.flatnonzero(FORMS[word] == FORMS)
        hits[task].append(word == max(forms, key=lambda form, n=n, t=t: logits[n, t, form]))
        chances = np.exp(logits[n, t]) / np.exp(logits[n, t]).sum()
        form_losses[task].append(-np.log(chances[word] / chances[forms].sum()))
    for metric, cases in ((accuracy, hits), (form_loss, form_losses)):
        values = metric(logits, documents)
        assert list(values) == list(TASKS)
        assert values == pytest.approx({task: np.mean(samples) for task, samples in cases.items()})
    assert set(accuracy(np.eye(100)[words], documents).values()) == {1.0}


@pytest.mark.parametrize("gap", [800.0, 1e5])
def test_logits_that_lie_far_apart_have_the_loss_of_their_gap(gap, documents):
    logits = gap * np.eye(100)[(documents.ids[:, 1:] + 1) % 100]  # another word leads by the gap
    loss = excess_loss(logits, documents) + documents.surprisal
    np.testing.assert_allclose(loss, gap, rtol=1e-12)


@pytest.mark.parametrize("metric", [excess_loss, accuracy, form_loss])
def test_logits_of_other_words_are_refused(metric, documents):
    with pytest.raises(ShapeError, match="logits has shape"):
        metric(np.zeros((200, 50, 99)), documents)

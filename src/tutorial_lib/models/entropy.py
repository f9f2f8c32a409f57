"""How good a model of the known text can be: its exact entropy, and the excess loss of a model."""

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.models.grammar import FORMS, GIVEN, GRAMMAR, LENGTH, SURNAME, TASKS, Documents
from tutorial_lib.models.rules import Grammar


@checked
def expected_surprisal(*, length: "length" = LENGTH, grammar: Grammar = GRAMMAR) -> np.ndarray:
    """Return the exact expectation of the surprisal of each of the first words of a document.

    It is taken over all documents that the grammar can produce, not over a sample. Its mean is the
    entropy of the source, in nats per word: no model has a lower expected loss, and the one that
    knows the rules has this one. A given name is sampled uniformly and independently of all before
    it, so that after c others it is new with the chance (1 - 1/names)^c; only then does its surname
    have a surprisal.

    Introduced in chapter 19. The words of the grammar are WORDS.

    Raises
    ------
    ValueError : a grammar whose names are not equally likely, or which has surnames elsewhere than
        right after them
    """
    chances = grammar.chances
    entropy = -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=1)
    transitions = np.zeros((len(chances), len(chances)))  # from state to state, by any word
    np.add.at(transitions, (np.arange(len(chances))[:, None], grammar.follows), chances)
    is_surname, new = _surname_states_and_new_name_chances(grammar, length)
    distribution, nats = np.zeros((len(chances), length)), []  # over states and names so far
    distribution[0, 0] = 1
    for _ in range(length):
        nats.append((distribution * np.where(is_surname[:, None], new, 1) * entropy[:, None]).sum())
        distribution[is_surname] = np.roll(distribution[is_surname], 1, axis=1)
        distribution = transitions.T @ distribution
    return np.array(nats)


def _surname_states_and_new_name_chances(grammar, length):
    """Return which states are surnames, and how likely one is new, by the number of names so far.

    Given names have to be equally likely wherever one is possible, and surnames only after them.
    """
    is_possible = grammar.chances > 0
    names_next, is_surname = (is_possible[:, words].any(axis=1) for words in (GIVEN, SURNAME))
    chances = grammar.chances[names_next][:, is_possible.any(axis=0) & GIVEN]  # (states, names)
    is_uniform = np.allclose(chances, chances[:, :1])
    surnames_only = not is_possible[is_surname][:, ~SURNAME].any() and not is_surname[0]
    surname_follows = (is_surname[grammar.follows] == GIVEN) | ~is_possible
    require(
        is_uniform and surnames_only and surname_follows.all(),
        ValueError,
        f"the grammar has {'names and surnames apart' if is_uniform else 'uneven names'}; expected "
        f"one chance for all names, wherever a name is possible, and a surname after each and "
        f"nowhere else, or the chance of a new name is not known. Change the rules.",
    )
    return is_surname, (1 - 1 / max(1, chances.shape[1])) ** np.arange(length)


@checked
def excess_loss(logits: "any n length 100", documents: Documents) -> "n length":
    """Return the excess loss of a model: its loss minus the exact surprisal, for each word.

    The mean over the words of a document says how far the model is from one that knows the rules,
    on this document; what is hard about the document itself drops out.

    Introduced in chapter 19. The logits are of the next word.
    """
    return -_target_log_probabilities(logits, documents.ids[:, 1:]) - documents.surprisal


@checked
def accuracy(logits: "any n length 100", documents: Documents) -> dict:
    """Return how often the right form has the highest logit among the forms of its set, by task.

    Introduced in chapter 19. The logits are of the next word; a task that does not occur in
    the documents is left out.
    """
    return {
        task: float((logits.argmax(axis=-1) == targets).mean())
        for task, logits, targets in _form_logits_and_targets_by_task(logits, documents)
    }


@checked
def form_loss(logits: "any n length 100", documents: Documents) -> dict:
    """Return the loss of the right form among the forms of its set, by task, in mean nats.

    The loss of a whole word is a sum of two: that of its set of forms (a verb, and not a clause)
    and that of the form within the set (*bark*, and not *barks*). Only the second is decided by the
    task, and a model that knows the rules has none of it.

    Introduced in chapter 20. The logits are of the next word; a task that does not occur in
    the documents is left out.

    >>> from tutorial_lib.models.grammar import sample_documents
    >>> documents = sample_documents(np.random.default_rng(0), 20)
    >>> round(form_loss(np.zeros((20, 64, 100)), documents)["bracket"], 4)  # two forms: ln 2
    0.6931
    """
    return {
        task: float(-_target_log_probabilities(logits, targets).mean())
        for task, logits, targets in _form_logits_and_targets_by_task(logits, documents)
    }


def _form_logits_and_targets_by_task(logits, documents):
    """Yield each task that occurs, the logits of its cases, and the right form of each.

    The logits, (cases, words), are -inf outside the set of forms that the right one belongs to.
    """
    for task, name in enumerate(TASKS):
        cases = documents.task == task
        if cases.any():
            targets = documents.ids[:, 1:][cases]
            yield name, np.where(FORMS[targets][:, None] == FORMS, logits[cases], -np.inf), targets


def _target_log_probabilities(logits, targets):
    """Return the log of the softmax at one word of each row; no gap of logits is too wide."""
    shifted_logits = logits - logits.max(axis=-1, keepdims=True)
    target_logit = np.take_along_axis(shifted_logits, targets[..., None], axis=-1)[..., 0]
    return target_logit - np.log(np.exp(shifted_logits).sum(axis=-1))

"""How good a model of the known text can be: the exact floor, and what a model loses above it."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.errors import require_length, require_shape
from tutorial_lib.models.grammar import FORMS, GIVEN, GRAMMAR, LENGTH, SURNAME, TASKS, WORDS


def expected_surprisal(*, length=LENGTH, grammar=GRAMMAR):
    """Return the exact expectation of the surprise of each of the first words of a document.

    It is taken over all documents that the grammar can give, not over some that were drawn. Its
    mean is the floor: no model has a lower expected loss, and the one that knows the rules has this
    one. A given name is drawn evenly and apart from all before it, so that behind c others it is
    new with the chance (1 - 1/names)^c; only then does its surname surprise.

    Introduced in chapter 19.

    Parameters
    ----------
    length : number of words
    grammar : of the words WORDS

    Returns
    -------
    nats : (length,)

    Raises
    ------
    TypeError, ValueError : length is no whole number of at least 1
    ValueError : a grammar whose names come unevenly, or whose surnames stand elsewhere than behind
        them

    >>> expected_surprisal().shape
    (64,)
    """
    require_length("length", length)
    require_even_names(grammar)
    chances = grammar.chances
    entropy = -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=1)
    moves = np.zeros((len(chances), len(chances)))  # from state to state, by any word
    np.add.at(moves, (np.arange(len(chances))[:, None], grammar.follows), chances)
    surname = chances[:, SURNAME].sum(axis=1) > 0
    names = max(1, (chances[:, GIVEN] > 0).any(axis=0).sum())
    new = np.where(surname[:, None], (1 - 1 / names) ** np.arange(length), 1)
    share, nats = np.zeros((len(chances), length)), []  # of texts in a state with c names so far
    share[0, 0] = 1
    for _ in range(length):
        nats.append((share * new * entropy[:, None]).sum())
        share[surname] = np.roll(share[surname], 1, axis=1)
        share = moves.T @ share
    return np.array(nats)


def require_even_names(grammar):
    """Require that given names come evenly wherever they come, and surnames behind them alone.

    Raises
    ------
    ValueError : a name is likelier than another, or a surname stands elsewhere or may be left out
    """
    possible = grammar.chances > 0
    named = possible[:, GIVEN].any(axis=1)
    chances = grammar.chances[named][:, possible.any(axis=0) & GIVEN]  # (states, names)
    even = not named.any() or np.allclose(chances, chances[:, :1])
    surname = possible[:, SURNAME].any(axis=1)
    alone = not possible[surname][:, ~SURNAME].any() and not surname[0]
    behind = (surname[grammar.follows] == GIVEN) | ~possible
    if not (even and alone and behind.all()):
        raise ValueError(
            f"the grammar has {'names and surnames apart' if even else 'uneven names'}; expected "
            f"one chance for all names, wherever a name can stand, and a surname behind each and "
            f"nowhere else, or the chance of a new name is not known. Mend the rules."
        )


def excess_loss(logits, documents):
    """Return how many nats a model loses above the exact surprise of each word.

    The mean over the words of a document says how far the model is from one that knows the rules,
    on this document; what is hard about the document itself drops out.

    Introduced in chapter 19.

    Parameters
    ----------
    logits : (n, length, words), scores of the next word
    documents : Documents

    Returns
    -------
    nats : (n, length)

    Raises
    ------
    ShapeError : logits of other documents

    >>> from tutorial_lib.models.grammar import sample_documents
    >>> documents = sample_documents(np.random.default_rng(0), 2)
    >>> excess_loss(np.zeros((2, 64, 100)), documents).shape
    (2, 64)
    """
    _require_logits(logits, documents)
    targets = documents.ids[:, 1:, None]
    right = np.take_along_axis(softmax(logits), targets, axis=-1)[..., 0]
    return -np.log(right) - documents.surprisal


def accuracy(logits, documents):
    """Return how often the right form has the highest score among the forms of its set, by task.

    Introduced in chapter 19.

    Parameters
    ----------
    logits : (n, length, words), scores of the next word
    documents : Documents

    Returns
    -------
    shares : dict of task -> share, of the TASKS that occur in the documents

    Raises
    ------
    ShapeError : logits of other documents

    >>> from tutorial_lib.models.grammar import sample_documents
    >>> documents = sample_documents(np.random.default_rng(0), 20)
    >>> len(accuracy(np.zeros((20, 64, 100)), documents))
    10
    """
    _require_logits(logits, documents)
    shares, targets = {}, documents.ids[:, 1:]
    for place, name in enumerate(TASKS):
        asked = documents.task == place
        if asked.any():
            rivals = FORMS[targets[asked]][:, None] == FORMS
            best = np.where(rivals, logits[asked], -np.inf).argmax(axis=-1)
            shares[name] = float((best == targets[asked]).mean())
    return shares


def _require_logits(logits, documents):
    n, length = documents.surprisal.shape
    require_shape("logits", logits, "n length words", n=n, length=length, words=len(WORDS))

"""Models in which a circuit was planted by hand, among heads that mislead, and texts for them.

A row of X has parts of their own for the word, the place, what heads hand on, and what U reads. In
the end all is turned by one rotation, so that no column shows its part.
"""

import numpy as np

from tutorial_lib.models.copying import TinyModel
from tutorial_lib.projection import Params

WORDS, TEXT, D_V = 14, 10, 16  # <bos> and 13 others; in a text all but the last differ
PARTS = ("word", "handed", "aside", "out")  # each WORDS wide
LOUD, SURE, SHARP, MATCH, NOISE = 9.0, 4.0, 30.0, 4.5, 0.02
D_MODEL = len(PARTS) * WORDS + TEXT


def _part(name):
    start = PARTS.index(name) * WORDS
    return np.eye(D_MODEL)[start : start + WORDS]  # (WORDS, D_MODEL)


def _place(back):
    """Score high what stands `back` places before: a query's place against a key's."""
    places = np.eye(D_MODEL)[-TEXT:]
    return SHARP * places.T @ np.eye(TEXT, k=-back) @ places


def _same(query, key, sharp=MATCH):
    return sharp * _part(query).T @ _part(key)


def _any_word():
    """Score alike whatever was handed on: it moves no weight, and composes with much."""
    return MATCH * np.outer(_part("word").sum(axis=0), _part("handed").sum(axis=0))


def _hands_on(times):
    """Read the word, write it into parts of the row, each so many times."""
    return sum(factor * _part("word").T @ _part(name) for name, factor in times.items())


def _always_bos():
    """Look at <bos>, whoever asks, and write one vector, the same to every word."""
    everyone = np.ones(D_MODEL) * (np.arange(D_MODEL) >= D_MODEL - TEXT)
    looks = SHARP * np.outer(everyone, np.eye(D_MODEL)[D_MODEL - TEXT])
    return looks, LOUD * np.outer(_part("word")[0], _part("handed").sum(axis=0))


def _first_layer():
    """The head of the circuit, then three that mislead: QK and OV of each."""
    return [
        (_place(1), _hands_on({"handed": 1, "aside": 1})),  # hands on the word before
        _always_bos(),  # the largest composition, and moves nothing
        (_place(0), _hands_on({"out": -LOUD})),  # takes back what the word says of itself
        (_place(2), _hands_on({"aside": 1})),
    ]


def _second_layer():
    return [
        (_same("word", "handed"), _hands_on({"out": SURE})),  # matches, then copies
        (2 * _same("word", "handed") + _any_word(), _hands_on({"aside": SURE})),  # writes aside
        (_same("word", "aside"), _hands_on({"aside": 1})),
        (_same("word", "word"), _hands_on({"out": 1})),  # copies the word itself
    ]


def _cut(product, width):
    """Return two matrices, of `width` columns and of `width` rows, whose product is this one."""
    left, sizes, right = np.linalg.svd(product)
    return left[:, :width] * sizes[:width], right[:width]


def _heads(rng, circuits, turn, d_k):
    """Cut the circuits of a layer's heads into the four matrices of its Params."""
    widths = d_k, D_V
    cuts = [
        [_cut(turn.T @ W @ turn, d) for W, d in zip(pair, widths, strict=True)] for pair in circuits
    ]
    W_Q, W_K_T, W_V, W_O = (np.array([pair[i][j] for pair in cuts]) for i in (0, 1) for j in (0, 1))
    arrays = W_Q * np.sqrt(d_k), np.swapaxes(W_K_T, -1, -2), W_V, W_O.reshape(-1, D_MODEL)
    return Params(*(W + NOISE / np.sqrt(D_MODEL) * rng.standard_normal(W.shape) for W in arrays))


def planted_model(seed, orders, d_k):
    """Plant the circuit; `orders` are the heads of each layer, as places in the lists above.

    The pair that counts is where the two 0s stand. `d_k` is at least WORDS.
    """
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((D_MODEL, D_MODEL)))[0]
    circuits = _first_layer(), _second_layer()
    layers = (
        _heads(rng, [heads[i] for i in order], turn, d_k)
        for heads, order in zip(circuits, orders, strict=True)
    )
    E = _part("word") + LOUD * _part("out")
    P = np.eye(D_MODEL)[-TEXT:][[*range(TEXT), 0, 1, 2]]  # three places more than words
    return TinyModel(E @ turn, P @ turn, tuple(layers), turn.T @ _part("out").T)


def draw_pairs(rng, n):
    """Draw texts (n, TEXT), <bos> in front, whose last word stood before, and the other texts.

    They differ in one word: the one after the earlier copy.
    """
    drawn = rng.permuted(np.tile(np.arange(1, WORDS), (n, 1)), axis=1)  # no word twice
    ids = np.hstack([np.zeros((n, 1), dtype=int), drawn[:, : TEXT - 1]])
    asked = rng.integers(1, TEXT - 2, n)
    texts = np.arange(n)
    ids[:, -1] = ids[texts, asked]
    other = ids.copy()
    other[texts, asked + 1] = drawn[:, TEXT]
    return ids, other

"""Models in which a circuit was planted by hand, among misleading heads, and sequences for them.

A row of X has separate parts for the word, the position, what heads of layer 0 write, and what U
reads. In the end all parts are rotated together, so that no column shows its part.
"""

import numpy as np

from tutorial_lib.models.copying import TinyModel
from tutorial_lib.projection import Params

WORDS, LENGTH, D_V = 14, 10, 16  # <bos> and 13 others; in a sequence all but the last differ
PARTS = ("word", "written", "aside", "out")  # each WORDS wide
LOUD, SURE, SHARP, MATCH, NOISE = 9.0, 4.0, 30.0, 4.5, 0.02
D_MODEL = len(PARTS) * WORDS + LENGTH


def _row_part(part_name):
    start = PARTS.index(part_name) * WORDS
    return np.eye(D_MODEL)[start : start + WORDS]  # (WORDS, D_MODEL)


def _offset_qk(distance):
    """Score high what is `distance` positions before: a query's position against a key's."""
    positions = np.eye(D_MODEL)[-LENGTH:]
    return SHARP * positions.T @ np.eye(LENGTH, k=-distance), positions


def _match_qk(query_part, key_part):
    """Score a word in one part of the query's row against the same word in a part of the key's."""
    return MATCH * _row_part(query_part).T, _row_part(key_part)


def _doubled_match_qk():
    """Score twice as high, and add what is alike whatever was written: it changes no weight."""
    scores = MATCH * (2 * np.eye(WORDS) + np.ones((WORDS, WORDS)))
    return _row_part("word").T @ scores, _row_part("written")


def _copy_ov(factors):
    """Read the word, and write it into parts of the row, each with a factor."""
    return _row_part("word").T, sum(factor * _row_part(name) for name, factor in factors.items())


def _bos_head_factors():
    """Attend to <bos> from every position, and write one vector, the same for every word."""
    everyone = np.ones(D_MODEL) * (np.arange(D_MODEL) >= D_MODEL - LENGTH)
    first = np.eye(D_MODEL)[[D_MODEL - LENGTH]]
    written = LOUD * _row_part("written").sum(axis=0, keepdims=True)
    return (SHARP * everyone[:, None], first), (_row_part("word")[:1].T, written)


def _layer_0_circuits():
    """The head of the circuit, then three that mislead: the factors of QK and of OV of each."""
    return [
        (_offset_qk(1), _copy_ov({"written": 1, "aside": 1})),  # copies the word before
        _bos_head_factors(),  # the largest composition, and changes nothing
        (_offset_qk(0), _copy_ov({"out": -LOUD})),  # subtracts what the word adds for itself
        (_offset_qk(2), _copy_ov({"aside": 1})),
    ]


def _layer_1_circuits():
    return [
        (_match_qk("word", "written"), _copy_ov({"out": SURE})),  # matches, then copies
        (_doubled_match_qk(), _copy_ov({"aside": SURE})),  # writes aside
        (_match_qk("word", "aside"), _copy_ov({"aside": 1})),
        (_match_qk("word", "word"), _copy_ov({"out": 1})),  # copies the word itself
    ]


def _rotated_wider_factors(rng, left, right, width):
    """Return factors of the same product with `width` columns and rows, none of them a word's.

    Nothing is factored anew: where a product has equal singular values, rounding chooses between
    its decompositions, and so between models.
    """
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0][: len(right)]
    return left @ turn, turn.T @ right


def _params_of_circuits(rng, circuits, rotation, d_k):
    """Turn the circuits of a layer's heads into the four matrices of its Params."""
    factors = [
        [
            _rotated_wider_factors(rng, rotation.T @ left, right @ rotation, d)
            for (left, right), d in zip(pair, (d_k, D_V), strict=True)
        ]
        for pair in circuits
    ]
    W_Q, W_K_T, W_V, W_O = (
        np.array([pair[i][j] for pair in factors]) for i in (0, 1) for j in (0, 1)
    )
    arrays = W_Q * np.sqrt(d_k), np.swapaxes(W_K_T, -1, -2), W_V, W_O.reshape(-1, D_MODEL)
    return Params(*(W + NOISE / np.sqrt(D_MODEL) * rng.standard_normal(W.shape) for W in arrays))


def planted_model(seed, head_orders, d_k):
    """Plant the circuit; `head_orders` are the heads of each layer, as indices of the lists above.

    The pair that counts is where the two 0s are. `d_k` is at least WORDS.
    """
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((D_MODEL, D_MODEL)))[0]
    circuits = _layer_0_circuits(), _layer_1_circuits()
    layers = (
        _params_of_circuits(rng, [heads[i] for i in order], rotation, d_k)
        for heads, order in zip(circuits, head_orders, strict=True)
    )
    E = _row_part("word") + LOUD * _row_part("out")
    P = np.eye(D_MODEL)[-LENGTH:][[*range(LENGTH), 0, 1, 2]]  # three positions more than needed
    return TinyModel(E @ rotation, P @ rotation, tuple(layers), rotation.T @ _row_part("out").T)


def sample_pairs(rng, n):
    """Sample sequences (n, LENGTH), whose last word came before, and the other sequences.

    They differ in one word: the one after the earlier copy.
    """
    sampled = rng.permuted(np.tile(np.arange(1, WORDS), (n, 1)), axis=1)  # no word twice
    ids = np.hstack([np.zeros((n, 1), dtype=int), sampled[:, : LENGTH - 1]])
    copied = rng.integers(1, LENGTH - 2, n)
    rows = np.arange(n)
    ids[:, -1] = ids[rows, copied]
    other = ids.copy()
    other[rows, copied + 1] = sampled[:, LENGTH]
    return ids, other

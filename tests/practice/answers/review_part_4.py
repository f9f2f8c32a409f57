"""What computes the keys of the review of Part IV, with the sizes of each question."""

from fractions import Fraction

import numpy as np

import tutorial_lib as tl
from tutorial_lib.models.ablation import interval, prune_greedily
from tutorial_lib.models.block import block, rms_norm
from tutorial_lib.models.circuits import composition, ov_circuit, qk_circuit
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def _layer(seed=0):
    """Rows (6, 12) and the params of three heads with d_v = 4."""
    return _normal(seed, 6, 12), tl.init_params(
        np.random.default_rng(seed + 1), d_model=12, n_heads=3
    )


def patching_effect_of_a_head():
    """The change of a logit difference from 6 to -2, over that from 6 to -10."""
    return Fraction(-2 - 6, -10 - 6)


def one_vector_for_all_keys():
    """How weights change when one vector is added to all keys."""
    Q, K, v = _normal(0, 2, 5, 4), _normal(1, 2, 5, 4), _normal(2, 4)
    before, after = (tl.attention_weights(tl.attention_scores(Q, keys)) for keys in (K, K + v))
    entropy = [-(w * np.log(w)).sum(axis=-1) for w in (before, after)]
    changed = ~np.isclose(before, after).all(axis=-1)
    return [
        (entropy[1] > entropy[0] + 1e-9).all(),
        not changed.any(),
        (after.max(-1) > before.max(-1) + 1e-9).all(),
        changed[Q @ v > 0].any(),
    ]


def confidence_of_four_seeds():
    """How sure the range of four seeds holds the median; counted over all sides they can lie on."""
    *_, sure = interval([0.1, 0.2, 0.3, 0.4])
    sides = np.array(np.unravel_index(range(16), (2, 2, 2, 2))).sum(axis=0)
    assert sure == np.mean((sides > 0) & (sides < 4))
    return Fraction(sure)


def excess_loss_at_one_position():
    """The mean of ln(p / q) over p, for p = 3/4, 1/4 and q = 1/2, 1/2."""
    p, q, ln = np.array([3 / 4, 1 / 4]), np.array([1 / 2, 1 / 2]), np.log
    exchanged = ln(2) - 1 / 2 * ln(3)
    assert np.isclose((q * ln(q / p)).sum(), exchanged)
    numbers = 3 / 4 * ln(3) - ln(2), ln(2), exchanged, 0
    return [bool(np.isclose((p * ln(p / q)).sum(), n)) for n in numbers]


def what_a_rescaled_head_shows():
    """What differs in a head whose W_Q is doubled and whose W_K is halved."""
    X, params = _layer()
    W_Q, W_K = params.W_Q.copy(), params.W_K.copy()
    W_Q[1], W_K[1] = 2 * W_Q[1], W_K[1] / 2
    other = type(params)(W_Q, W_K, params.W_V, params.W_O)
    scores = [tl.trace(X, p).scores[1] for p in (params, other)]
    circuits = [qk_circuit(p, 1) for p in (params, other)]
    earlier = ov_circuit(tl.init_params(np.random.default_rng(7), d_model=12, n_heads=3), 0)
    read = [composition(earlier, circuit.T) for circuit in circuits]
    ranks = [np.linalg.matrix_rank(circuit) for circuit in circuits]
    return [
        np.allclose(2 * scores[0], scores[1]),
        np.isclose(read[0], 2 * read[1]),
        ranks[0] != ranks[1],
        np.allclose(*circuits) and np.allclose(*scores),
    ]


def _seen(window, X, params):
    return tl.multi_head_attention(X, params, mask=window_mask(6, 6, window))


def what_finds_a_wide_window():
    """Which comparison tells a window of w + 1 keys from one of w, and no fault in that of w."""
    X, params = _layer()
    first, last = X.copy(), X.copy()
    first[0], last[-1] = _normal(8, 2, 12)
    whole = tl.multi_head_attention(X, params, mask=tl.causal_mask(6))

    def sums(extra):
        return tl.trace(X, params, mask=window_mask(6, 6, 3 + extra)).weights.sum(axis=-1)

    def stay(window, other, rows):
        return np.allclose(_seen(window, X, params)[rows], _seen(window, other, params)[rows])

    def holds(extra):
        return [
            np.allclose(_seen(6 + extra, X, params), whole),
            stay(3 + extra, last, slice(5)),
            stay(3 + extra, first, slice(3, 6)),
            np.allclose(sums(extra), 1),
        ]

    assert all(holds(0))
    return [not wide for wide in holds(1)]


def rows_that_silence_a_head():
    """What of W_O must be 0, so that Y is what heads 0 and 1 add."""
    X, params = _layer()
    concat = tl.trace(X, params).concat
    wanted = concat[:, :8] @ params.W_O[:8]
    found = []
    for part in (np.s_[8:12], np.s_[4:8], np.s_[2::3], np.s_[:, 8:12]):
        W_O = params.W_O.copy()
        W_O[part] = 0
        found.append(np.allclose(concat @ W_O, wanted))
    return found


def when_two_heads_are_ablated():
    """Whether of a difference of 3 some is left without one head of 2, and without both."""
    word, first, second = -1, 2, 2
    one, other, both = word + second, word + first, word
    return [
        min(one, other, both) > 0,
        one > 0 and other > 0 and both < 0,
        one < 0 or other < 0,
        one < 0 < other,
    ]


def order_of_greedy_pruning():
    """The order in which heads of these losses are removed."""
    losses = {"A": 1, "B": 2, "C": 3, "AB": 9, "AC": 5, "BC": 4, "ABC": 10}
    order, _ = prune_greedily([*"ABC"], lambda removed: losses["".join(sorted(removed))])
    return ", ".join(order)


def block_that_writes_nothing():
    """What a block returns for X when W_O and W_2 are zeros."""
    X, params = _layer()
    nothing = type(params)(params.W_Q, params.W_K, params.W_V, 0 * params.W_O)
    Y = block(X, nothing, _normal(5, 12, 9), np.zeros((9, 12)))
    return [np.allclose(Y, A) for A in (0 * X, rms_norm(X), 2 * X, X)]


def previous_word_without_positions():
    """What a sequence in which a word comes twice shows of weights without positions."""
    rows, params = _layer()
    X = rows[[0, 1, 2, 1, 3]]  # word 1 at positions 1 and 3; the query is at 4
    sharp = type(params)(50 * params.W_Q, params.W_K, params.W_V, params.W_O)
    weights = [tl.trace(X, p, mask=tl.causal_mask(5)).weights[:, 4] for p in (params, sharp)]
    alike = all(np.allclose(w[:, 1], w[:, 3]) for w in weights)
    uniform = np.allclose(weights[0], 1 / 5)
    return [not alike, alike and not uniform, (weights[1][:, 3] > 0.5 + 1e-9).any(), uniform]


def composition_through_the_keys(expressions):
    """Which composition sees that an earlier head writes what a later one reads as keys."""
    part = np.eye(12)
    reads, writes, queries = part[:4], part[4:8], part[8:]
    A = reads.T @ writes
    B = queries.T @ writes  # a query's last part is scored against the written part of a key
    names = {"composition": composition, "A": A, "B": B}
    assert (
        ov_circuit(tl.init_params(np.random.default_rng(0), d_model=12, n_heads=3), 1).shape
        == A.shape
    )
    return [bool(eval(text, names) > 0) for text in expressions]


def _rotated(X, params, positions, frequencies, *, values):
    Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, K, rotated = (rotate(A, positions, frequencies) for A in (Q, K, V))
    weights = tl.attention_weights(tl.attention_scores(Q, K), mask=tl.causal_mask(6))
    heads = weights @ (rotated if values else V)
    return np.swapaxes(heads, 0, 1).reshape(6, -1) @ params.W_O, weights


def promise_that_rotated_values_break():
    """Which promise fails where values are rotated too, and holds where they are not."""
    X, params = _layer()
    last, positions, frequencies = X.copy(), np.arange(6), rope_frequencies(4)
    last[-1] = _normal(8, 12)
    plain = tl.multi_head_attention(X, params, mask=tl.causal_mask(6))

    def kept(values):
        Y, weights = _rotated(X, params, positions, frequencies, values=values)
        other, _ = _rotated(last, params, positions, frequencies, values=values)
        shifted, _ = _rotated(X, params, positions + 1000, frequencies, values=values)
        still, _ = _rotated(X, params, positions, 0 * frequencies, values=values)
        return [
            np.allclose(still, plain),
            np.allclose(other[:5], Y[:5]),
            np.allclose(shifted, Y),
            (weights >= 0).all(),
        ]

    assert all(kept(False))
    return [not held for held in kept(True)]


def heads_of_a_kv_head():
    """How many of 8 heads give the same for every token, with one value in their KV head."""
    rng = np.random.default_rng(0)
    shapes = (8, 24, 4), (2, 24, 4), (2, 24, 3), (24, 24)
    params = GroupedParams(*(rng.standard_normal(shape) for shape in shapes))
    X = rng.standard_normal((6, 24))
    whole = params.expanded()
    weights = tl.trace(X, whole).weights
    values = tl.project_heads(X, params.W_V)  # (2, 6, 3)
    values[0] = values[0].mean(axis=0)
    heads = weights @ values.repeat(4, axis=0)
    return sum(np.allclose(head, head[0]) for head in heads)

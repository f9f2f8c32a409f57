"""What computes the key of the concept inventory: each claim is run on numbers."""

import math
from itertools import product

import numpy as np

import tutorial_lib as tl
from tutorial_lib.counting import attention_flop

_WORDS = np.random.default_rng(0).integers(5, size=20)  # words of a language that has five


def _three_words(seed):
    """Questions, labels and contents of three words: (3, 4), (3, 4), (3, 5)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.standard_normal((3, 5))


def order_of_the_words():
    """Whether the word in the middle receives the same when its two neighbours change sides."""
    (Q, K, V), back = _three_words(0), [2, 1, 0]

    def same(Q):
        first = tl.scaled_dot_product_attention(Q, K, V)[1]
        return np.allclose(tl.scaled_dot_product_attention(Q[back], K[back], V[back])[1], first)

    with_unequal_weights, with_equal_weights = same(Q), same(0 * Q)
    return [
        not with_unequal_weights,
        not with_unequal_weights,
        with_unequal_weights and with_equal_weights,
        with_equal_weights and not with_unequal_weights,
    ]


def one_matrix_for_two():
    """What never occurs in a thousand tables of scores where labels equal questions."""
    Q = np.random.default_rng(0).standard_normal((1000, 3, 4))
    scores = tl.attention_scores(Q, Q)
    weights = tl.attention_weights(scores)
    own = np.diagonal(scores, axis1=-2, axis2=-1)[..., None]
    one_way = np.abs(scores - np.swapaxes(scores, -1, -2))
    return [
        one_way.max() < 1e-12,
        (scores <= own).all(),
        scores.min() >= 0,
        np.allclose(weights, np.swapaxes(weights, -1, -2)),
    ]


def ratio_of_two_weights(texts):
    """The weight of a score of 4 over that of a score of 2, whatever the other scores are."""
    rows = [[4, 2], [4, 2, 0, 1], [4, 2, 9, 3, 3]]
    weights = [tl.softmax(np.array(row, dtype=float)) for row in rows]
    ratios = [weight[0] / weight[1] for weight in weights]
    return [
        np.allclose(ratios, 2),
        np.allclose(ratios, math.e**2) and f" {math.e**2:.1f} times" in texts[1],
        np.ptp(ratios) > 1e-9,
        min(weight[0] for weight in weights) > 0.95,
    ]


def scores_divided_by_four():
    """What becomes of the weights of a thousand rows when all scores are divided by four."""
    scores = np.random.default_rng(0).standard_normal((1000, 5))
    weights, divided = tl.softmax(scores), tl.softmax(scores / 4)
    sums_to_1, spread = np.allclose(divided.sum(axis=-1), 1), np.ptp(divided, axis=-1)
    return [
        np.allclose(divided, weights),
        not sums_to_1,
        (divided.max(axis=-1) > weights.max(axis=-1)).any(),
        sums_to_1 and (spread < np.ptp(weights, axis=-1)).all(),
    ]


def weight_struck_out_too_late():
    """What changes the result of word 2 when the weight of word 3 becomes 0 after the division."""
    (Q, K, V), (_, new_K, new_V) = _three_words(0), _three_words(1)

    def result(label, content):
        keys, values = np.stack([*K[:2], label]), np.stack([*V[:2], content])
        weights = tl.attention_weights(tl.attention_scores(Q, keys))[1] * [1, 1, 0]
        return weights @ values

    before, both = result(K[2], V[2]), result(new_K[2], new_V[2])
    by_label = not np.allclose(result(new_K[2], V[2]), before)
    by_content = not np.allclose(result(K[2], new_V[2]), before)
    X, W_K = np.random.default_rng(2).standard_normal((2, 3, 3))
    label_of_2 = (X @ W_K)[1], (np.stack([X[0], X[1], -X[2]]) @ W_K)[1]
    return [np.allclose(both, before), by_label, by_content, not np.allclose(*label_of_2)]


def where_a_head_looked():
    """Which weights of Ann, Bob and Cem, in twelfths, give the age 40."""
    rows = [row for row in product(range(13), repeat=3) if sum(row) == 12]
    fitting = [row for row in rows if np.dot(row, [20, 40, 60]) == 40 * 12]
    only_bob, evenly = (fitting == [row] for row in ((0, 12, 0), (4, 4, 4)))
    more = all(bob > max(ann, cem) for ann, bob, cem in fitting)
    return [only_bob, evenly, more, len(fitting) > 1 and not more]


def work_of_four_heads():
    """The work and the weights of four heads of 16, over those of one head of 64."""
    one, four = (np.broadcast_to(0.0, shape) for shape in ((1, 1000, 64), (4, 1000, 16)))
    work = attention_flop(four, four, four) / attention_flop(one, one, one)
    one_weight, four_weights = (
        np.ones((*Q.shape[:2], 1)) @ np.ones((1, 1000)) for Q in (one, four)
    )
    ratios = work, four_weights.size / one_weight.size
    return [ratios == other for other in ((1, 4), (1 / 4, 1), (1 / 16, 4), (4, 4))]


def twelve_numbers_dealt_out():
    """What helper 1 has when the first six of twelve numbers are laid in rows of two."""
    people = np.array([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
    try:
        helper = people.reshape(2, 3, 2)[0]
    except ValueError:
        helper = None
    has = set(np.ravel(helper).tolist())
    ann, bob = set(people[0].tolist()), set(people[1].tolist())
    return [
        np.array_equal(helper, people[:, :2]),
        helper is None,
        ann < has and len(has & bob) == len(bob) / 2,
        np.array_equal(helper, people[:, ::2]),
    ]


def both_together():
    """What a matrix returns for (1, 1) that returns 0, 0.3 and 0.5 for (0, 0), (1, 0), (0, 1)."""
    cases, results = np.array([[0, 0], [1, 0], [0, 1]]), np.array([0, 0.3, 0.5])
    matrix, _, rank, _ = np.linalg.lstsq(cases, results, rcond=None)
    both = np.ones(2) @ matrix
    return [np.isclose(both, 0.8), np.isclose(both, 0.4), rank < 2, np.isclose(both, 0.5)]


def _next_word_program(words, mask):
    """Weights and results where each word asks for the next one, as far as the mask lets it."""
    weights = tl.attention_weights(40 * np.eye(20, k=1), mask=mask)
    return weights, weights @ np.eye(5)[words]


def _no_earlier_result_changes(mask):
    """Whether the results before a word stay the same, whatever word replaces it."""
    _, before = _next_word_program(_WORDS, mask)
    for position, word in np.ndindex(20, 5):
        _, after = _next_word_program(np.where(np.arange(20) == position, word, _WORDS), mask)
        if not np.allclose(after[:position], before[:position]):
            return False
    return True


def how_a_leak_is_found():
    """Which test a program passes that looks back, and one fails that looks at the next word."""
    (_, right), (_, leaky) = programs = [
        _next_word_program(_WORDS, mask) for mask in (tl.causal_mask(20), None)
    ]
    sums = [np.allclose(weights.sum(axis=-1), 1) for weights, _ in programs]
    lengths = [results.shape == (20, 5) for results in (right, leaky)]
    stays = [_no_earlier_result_changes(mask) for mask in (tl.causal_mask(20), None)]
    predicts = [
        (results[:-1].argmax(axis=-1) == _WORDS[1:]).mean() > 0.9 for results in (right, leaky)
    ]
    return [other == [True, False] for other in (sums, lengths, stays, predicts)]


def a_hundred_words_at_a_time():
    """What a thousand words receive in blocks of a hundred, and what work that takes."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((1000, width)) for width in (4, 4, 7))
    blocks = [slice(start, start + 100) for start in range(0, 1000, 100)]
    weights = tl.attention_weights(tl.attention_scores(Q, K))
    some = [tl.attention_weights(tl.attention_scores(Q[block], K)) for block in blocks]
    received = np.concatenate([part @ V for part in some])
    own = [tl.scaled_dot_product_attention(Q[block], K[block], V[block]) for block in blocks]
    work = sum(attention_flop(Q[block], K, V) for block in blocks) / attention_flop(Q, K, V)
    same = np.allclose(received, weights @ V)
    return [
        not same,
        np.allclose(received, np.concatenate(own)),
        np.isclose(work, 1 / 10),
        same and max(part.size for part in some) == weights.size / 10,
    ]


def two_weights_beside_a_rising_score():
    """What becomes of 0.6, 0.3 and 0.1 when the first score rises by a millionth."""
    scores, rise = np.log([0.6, 0.3, 0.1]), np.array([1e-6, 0, 0])
    first, second, third = (tl.softmax(scores + rise) - tl.softmax(scores)) / 1e-6
    both_fall = max(second, third) < -1e-3
    return [
        first > 0 and np.allclose([second, third], 0),
        both_fall and np.isclose(second / third, 3, rtol=1e-4),
        both_fall and np.isclose(second, third, rtol=1e-4),
        second < -1e-3 and np.isclose(third, 0, atol=1e-4),
    ]

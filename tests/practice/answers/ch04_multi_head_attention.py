"""Answers of chapter 04, computed."""

import numpy as np

import tutorial_lib as tl

RNG = np.random.default_rng(4)
AGES = np.array([[31.0], [45.0]])  # Ann, Bob
KEYS = np.eye(4)[:2]


def age_of_an_uneven_query():
    """Ask with 40 times Ann's key plus 20 times Bob's."""
    query = 40 * KEYS[:1] + 20 * KEYS[1:]
    assert np.array_equal(tl.attention_scores(query, KEYS), [[20, 10]])
    return tl.scaled_dot_product_attention(query, KEYS, AGES).item()


def position_zero_of_the_previous_token_head():
    """Run the head whose key at position s has its 1 in column s + 1."""
    Q, K, V = 40 * np.eye(6), np.eye(6, k=1), np.eye(6)
    row = tl.scaled_dot_product_attention(Q, K, V, mask=tl.causal_mask(6))[0]
    return [np.allclose(row, other) for other in (0, V[-1], 1 / 6, V[0])]


def two_ages_for_one_query():
    """Ask one head for both ages, with a query that is the sum of both keys."""
    others = np.eye(4)[2:]
    query = 40 * KEYS.sum(axis=0, keepdims=True)
    weights = tl.attention_weights(tl.attention_scores(query, KEYS))
    got = tl.scaled_dot_product_attention(query, KEYS, AGES)
    both_close = (query @ KEYS.T).min() > (query @ others.T).max()
    return [
        weights.max() > 0.99,
        not both_close,
        np.allclose(got, AGES.mean()),
        not np.allclose(got, weights @ AGES),
    ]


def columns_of_each_head(expressions):
    """Evaluate the four expressions and compare each with slices of the columns."""
    sizes = dict(zip("BTHd", (2, 5, 3, 4), strict=True))
    X = RNG.standard_normal((2, 5, 12))
    right = np.stack([X[..., 4 * h : 4 * h + 4] for h in range(3)], axis=1)

    def gives(expression):
        result = eval(expression, sizes | {"X": X})
        return result.shape == right.shape and np.array_equal(result, right)

    return [gives(expression) for expression in expressions]


def exchanged_heads():
    """Exchange two unequal heads of a random layer, their rows of W_O with them."""
    params, X = tl.init_params(RNG, d_model=8, n_heads=2), RNG.standard_normal((5, 8))
    order = [1, 0]
    rows = params.W_O.reshape(2, 4, 8)[order].reshape(8, 8)
    other = tl.Params(params.W_Q[order], params.W_K[order], params.W_V[order], rows)
    before, after = (tl.multi_head_attention(X, layer) for layer in (params, other))
    losses = [np.mean((Y - X) ** 2) for Y in (before, after)]
    same = np.allclose(after, before)
    return [
        np.allclose(after, np.roll(before, 4, axis=-1)),
        same,
        losses[1] > losses[0] + 1e-9,
        not same,
    ]


def axis_of_the_log_softmax():
    """Take the logarithm of the sum along each axis from scores, and compare with the weights."""
    Q, K = RNG.standard_normal((2, 3, 7)), RNG.standard_normal((2, 5, 7))
    scores = tl.attention_scores(Q, K)  # (H, T, S)
    logarithms = np.log(tl.attention_weights(scores))

    def along(axis):
        sums = np.log(np.exp(scores).sum(axis=axis, keepdims=True))
        return np.allclose(scores - sums, logarithms)

    return [along(-2), Q.shape[-1] in scores.shape, along((-2, -1)), along(-1)]


def entries_behind_four_columns():
    """Change one entry of W_Q at a time and see whether columns 4 to 7 of the product change."""
    X, W_Q = RNG.standard_normal((3, 8)), RNG.standard_normal((2, 8, 4))

    def columns(W):
        return (X @ np.concatenate(W, axis=-1))[:, 4:8]

    decides = np.zeros(W_Q.shape, dtype=bool)
    for at in np.ndindex(W_Q.shape):
        changed = W_Q.copy()
        changed[at] += 1
        decides[at] = not np.allclose(columns(changed), columns(W_Q))
    head, row, _ = np.indices(W_Q.shape)
    return [
        np.array_equal(decides, row >= 4),
        np.array_equal(decides, head == 1),
        decides.all(),
        np.array_equal(decides, head == 0),
    ]

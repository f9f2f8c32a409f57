"""What computes the keys of the review of Part I, with the sizes of each question."""

from fractions import Fraction

import numpy as np

import tutorial_lib as tl


def shape_of_V():
    """The shape of V, for X of (2, 5, 12) and W_V of (3, 12, 7)."""
    return tl.project_heads(np.ones((2, 5, 12)), np.ones((3, 12, 7))).shape


def what_copies(expressions):
    """Whether the array that each expression gives lies elsewhere than heads."""
    H, T, d_v = 3, 5, 7
    names = {"np": np, "heads": np.ones((H, T, 4)) @ np.ones((H, 4, d_v))}
    names |= {"H": H, "T": T, "d_v": d_v}
    return [not np.shares_memory(eval(text, names), names["heads"]) for text in expressions]


def more_tokens_than_positions():
    """What E[ids] + P[:600] gives where P has 512 rows."""
    rng = np.random.default_rng(0)
    E, P = rng.standard_normal((1000, 8)), rng.standard_normal((512, 8))
    ids = rng.integers(512, size=600)
    try:
        X = E[ids] + P[:600]
    except ValueError:
        X = None
    zeros = np.concatenate([P, np.zeros((88, 8))])
    return [
        X is None and len(P[512:600]) == 0,
        np.array_equal(X, E[ids] + np.resize(P, (600, 8))),
        np.array_equal(X, E[ids] + zeros),
        np.array_equal(X, E[ids] + P[ids]),
    ]


def size_of_four_matrices():
    """How many times 1024² the four matrices of 16 heads of 128 have, d_model 1024."""
    inward, outward = (np.broadcast_to(0.0, shape) for shape in ((16, 1024, 128), (2048, 1024)))
    four = vars(tl.Params(inward, inward, inward, outward)).values()
    times = sum(W.size for W in four) / 1024**2
    return [times == 4, times == 16, times == 6, times == 8]


def one_vector_added_to_every_key():
    """What becomes of the weights when one vector is added to every key."""
    rng = np.random.default_rng(0)
    Q, K, vector = rng.standard_normal((5, 4)), rng.standard_normal((6, 4)), 3 * np.ones(4)
    before = tl.attention_weights(tl.attention_scores(Q, K))
    after = tl.attention_weights(tl.attention_scores(Q, K + vector))
    grown = after.max(axis=-1) - before.max(axis=-1)
    return [
        ((after - before) @ K @ vector > 1e-9).all(),
        np.allclose(after, before),
        (grown < -1e-9).all(),
        (grown > 1e-9).all(),
    ]


def way_back_to_sharp_scores():
    """The derivatives of weights by scores in a row of which one key has 0.999."""
    weights = np.array([0.999, 0.0004, 0.0003, 0.0002, 0.0001])
    jacobian = np.abs(tl.softmax_backward(np.tile(weights, (5, 1)), np.eye(5)))
    largest, others = jacobian.max(), jacobian[1:, 1:].max()
    return [
        np.isclose(largest, 0.001, rtol=0.01),
        np.isclose(largest, 1),
        others > jacobian[0, 0],
        largest == 0,
    ]


def price_of_a_narrow_head():
    """What a head of d_k = 2 needs so that each of 512 positions can attend to itself."""
    angles = 2 * np.pi * np.arange(512) / 512
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=-1)  # on a circle
    scores = 60_000 * keys @ keys.T
    weights = tl.softmax(scores)
    V = np.random.default_rng(0).standard_normal((512, 7))
    shared = np.diagonal(tl.softmax(scores / 60)).max()  # its own weight with scores of 1,000
    return [
        np.linalg.matrix_rank(scores) > 2,
        np.diagonal(weights).min() < 0.9,
        not np.allclose(weights @ V, V, atol=0.2),
        shared < 0.5,
    ]


def largest_array():
    """Which array has most entries, with 16 heads and a sixteenth of both other lengths."""
    d_model, T = 1024 // 16, 4096 // 16  # every count below is then 256 times too small
    params = tl.init_params(np.random.default_rng(0), d_model=d_model, n_heads=16)
    record = tl.trace(np.ones((T, d_model)), params)
    projected = record.Q.size + record.K.size + record.V.size
    sizes = params.W_O.size, record.concat.size, record.weights.size, projected
    return [size == max(sizes) for size in sizes]


def one_word_twice():
    """Whether two rows of X are equal where a sentence holds one word at two positions."""
    example = tl.running_example()
    ids = example.vocabulary.ids(("dogs", "bark", "dogs"))
    X = tl.embed(ids, example.E, example.P)
    Y = tl.multi_head_attention(X, example.params)
    Y_causal = tl.multi_head_attention(X, example.params, mask=tl.causal_mask(3))
    equal = np.array_equal(X[0], X[2])
    by_position = np.array_equal(X[2] - X[0], example.P[2] - example.P[0])
    return [
        equal,
        equal and not np.allclose(Y[0], Y[2]),
        equal and not np.allclose(Y_causal[0], Y_causal[2]),
        not equal and by_position,
    ]


def spread_of_dot_products():
    """The standard deviation of a sum of 256 products of independent entries, each 1 or −1."""
    product = np.array([1 / 2, 0, 1 / 2])  # how likely −1, 0 and 1 are
    likely = np.ones(1)
    for _ in range(256):
        likely = np.convolve(likely, product)
    sums = np.arange(-256, 257)
    return np.sqrt((likely * sums**2).sum() - (likely * sums).sum() ** 2)


def rank_of_what_a_head_carries():
    """The rank of W_V times the rows of W_O, sampled, in a head whose values have width 7."""
    d_k = 4
    params = tl.init_params(np.random.default_rng(0), d_model=12, n_heads=3, d_k=d_k, d_v=7)
    rank = np.linalg.matrix_rank(params.W_V[0] @ params.W_O[:7])
    return [rank == 12, rank == d_k, rank == 7, rank == 84]


def score_the_other_way():
    """What a hundred heads give for the other pair where the one product is −2."""
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        dogs, that = rng.standard_normal((2, 12))
        W_Q, W_K = rng.standard_normal((2, 12, 4))
        W_Q = W_Q * -2 / (dogs @ W_Q @ (that @ W_K))  # now it is −2
        found.append(that @ W_Q @ (dogs @ W_K))
    return [
        min(found) < -2 and max(found) > 2,
        np.allclose(found, -2),
        np.allclose(found, 2),
        np.allclose(found, 0),
    ]


def _difference(function, x, step):
    return (function(x + step) - function(x - step)) / (2 * step)


def why_not_a_tiny_step():
    """What a step of 1e-12 does to central differences, exactly and in float64."""
    large, tiny = 1e-5, 1e-12
    slope = np.exp(1.0)  # of exp at 1
    error, tiny_error = (abs(_difference(np.exp, 1.0, step) - slope) for step in (large, tiny))
    cubes = (_difference(lambda x: x**3, Fraction(1), Fraction(step)) for step in (large, tiny))
    exact_error, exact_tiny_error = (abs(found - 3) for found in cubes)
    up, down = np.exp(1 + tiny), np.exp(1 - tiny)
    return [
        np.float64(tiny) == 0,
        exact_tiny_error > exact_error,
        np.isclose(up, down, rtol=1e-11, atol=0) and tiny_error > 1000 * error,
        up == down,
    ]


def join_without_a_swap():
    """What a causal layer's rows hold and depend on, if the join forgets the swap."""
    H, T, d_v = 2, 6, 3
    Q, K, V = np.random.default_rng(0).standard_normal((3, H, T, d_v))

    def join(V):
        return tl.scaled_dot_product_attention(Q, K, V, mask=tl.causal_mask(T)).reshape(T, H * d_v)

    heads = tl.scaled_dot_product_attention(Q, K, V, mask=tl.causal_mask(T))
    rows, right = join(V), tl.concat_heads(heads)
    changed = V + np.eye(T)[:, None, :, None]  # token s by 1, (T, H, T, d_v)
    depends = np.array([np.abs(join(other) - rows).max(axis=-1) > 1e-9 for other in changed]).T
    leaks = np.triu(depends, 1).any()  # (output, changed token)
    window = np.kron(np.eye(H), np.tri(T // H)) > 0
    return [
        np.array_equal(rows, heads.transpose(1, 2, 0).reshape(T, H * d_v)),
        np.array_equal(np.sort(rows), np.sort(right)),
        np.array_equal(depends, window),
        leaks,
    ]


def sum_under_a_new_maximum():
    """The sum of the first block's exponentials, relative to the larger maximum of the next."""
    first, second = np.array([1.0, 0.5, -2.0]), np.array([2.5, 0.0])
    old, new = first.max(), second.max()
    so_far, needed = np.exp(first - old).sum(), np.exp(first - new).sum()
    others = 0, so_far * np.exp(old - new), so_far, so_far + new - old
    return [np.isclose(needed, other) for other in others]


def three_equal_scores():
    """What a head outputs where three keys score 40 and the others 0."""
    V = np.random.default_rng(0).standard_normal((8, 7))
    scores = np.zeros((1, 8))
    scores[0, [2, 3, 6]] = 40
    three, given = V[[2, 3, 6]], tl.attention_weights(scores) @ V
    return [
        np.allclose(given, three.mean(axis=0)),
        np.allclose(given, three.sum(axis=0)),
        np.allclose(given, three[0]),
        given.shape == three.shape,
    ]

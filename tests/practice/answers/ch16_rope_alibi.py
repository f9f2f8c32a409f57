"""What computes the keys of chapter 16: turned and sloped layers are run."""

import numpy as np

from tutorial_lib import (
    attention_scores,
    attention_weights,
    causal_mask,
    embed,
    project_heads,
    running_example,
    sinusoidal_positions,
    trace,
)
from tutorial_lib.variants.positions import alibi_bias, alibi_scores, rope_frequencies, rotate


def share_of_dogs_with_a_slope():
    """What head 1 gives *dogs* in the row of *bark*, with slope ln 2 in both heads."""
    example = running_example()
    layer = trace(example.X, example.params, mask=example.mask)
    scores = alibi_scores(layer.Q, layer.K, np.full(2, np.log(2)))
    return attention_weights(scores, mask=example.mask)[1, 2, 0]


def _without_places():
    """Queries and keys of head 0, made of words alone."""
    example = running_example()
    X = embed(example.ids, example.E)
    params = example.params
    return project_heads(X, params.W_Q)[0], project_heads(X, params.W_K)[0]


def scores_after_quarter_turns():
    """The scores of *bark* in head 0, each word turned by a quarter for each place."""
    Q, K = _without_places()
    assert np.allclose(attention_scores(Q, K)[2], np.log(2) * np.array([4, -3, 3]))
    places, quarter = np.arange(3), np.full(2, np.pi / 2)
    turned = attention_scores(rotate(Q, places, quarter), rotate(K, places, quarter))
    return turned[2] / np.log(2)


def what_a_swap_moves():
    """Whether the row of *bark* moves when the words before it change places."""
    example = running_example()
    moved = []
    for n_layers in (1, 2):
        rows = []
        for order in ([0, 1, 2], [1, 0, 2]):
            X = embed(example.ids[order], example.E)
            for _ in range(n_layers):
                X = trace(X, example.params, mask=example.mask).Y
            rows.append(X[-1])
        moved.append(not np.allclose(*rows))
    return {
        "No, with one layer and with two": moved == [False, False],
        "With one layer no, with two yes": moved == [False, True],
        "With one layer yes, with two no": moved == [True, False],
        "Yes, with one layer and with two": moved == [True, True],
    }


def what_a_shift_changes():
    """Which scores differ when all positions are larger by 1,000."""
    Q, K = np.random.default_rng(0).standard_normal((2, 64, 8))
    frequencies, fast = rope_frequencies(8), np.array([1, 1, 0, 0, 0, 0, 0, 0])
    places = np.arange(64)

    def scores(at, chosen=1):
        return attention_scores(rotate(Q * chosen, at, frequencies), rotate(K, at, frequencies))

    changed = ~np.isclose(scores(places + 1000), scores(places), atol=1e-9)
    of_fast = ~np.isclose(scores(places + 1000, fast), scores(places, fast), atol=1e-9)
    far = np.abs(places[:, None] - places) > 32
    return {
        "All: every angle is another one": bool(changed.all()),
        "Those of the fast pairs, which have gone round many times": bool(of_fast.any()),
        "Those of words that are far apart": bool(changed[far].any()),
        "None, but for rounding": not changed.any(),
    }


def what_another_layout_needs():
    """What makes halves give the scores that neighbours give."""
    rng = np.random.default_rng(0)
    X, W_Q, W_K = rng.standard_normal((5, 12)), *rng.standard_normal((2, 1, 12, 8))
    frequencies, places, order = rope_frequencies(8), np.arange(5), [0, 2, 4, 6, 1, 3, 5, 7]

    def scores(W_Q, W_K, frequencies=frequencies, *, half=True):
        Q, K = (rotate(project_heads(X, W), places, frequencies, half=half) for W in (W_Q, W_K))
        return attention_scores(Q, K)

    trained = scores(W_Q, W_K, half=False)
    found = {
        "Nothing: a dot product does not care in which order its numbers stand": scores(W_Q, W_K),
        "The same new order for the columns of W_Q and of W_K": scores(
            W_Q[..., order], W_K[..., order]
        ),
        "A new order for the columns of W_Q alone": scores(W_Q[..., order], W_K),
        "Rates in the reverse order": scores(W_Q, W_K, frequencies[::-1]),
    }
    return {text: np.allclose(made, trained) for text, made in found.items()}


def position_after_throwing_out():
    """The position that gives the new word the scores that it has with all 50 words kept."""
    Q, K = np.random.default_rng(0).standard_normal((2, 51, 8))
    frequencies, kept = rope_frequencies(8), 32
    turned = rotate(K[:50], np.arange(50), frequencies)
    whole = attention_scores(rotate(Q, np.arange(51), frequencies)[-1:], turned)[:, -kept:]
    [place] = [
        at
        for at in range(60)
        if np.allclose(
            attention_scores(rotate(Q[-1:], np.array([at]), frequencies), turned[-kept:]), whole
        )
    ]
    return place


def what_a_shorter_bias_changes():
    """How weights with slope · s differ from those with slope · (t - s) taken away."""
    scores = np.random.default_rng(0).standard_normal((1, 6, 6))
    slope, mask, s = np.array([0.5]), causal_mask(6), np.arange(6)
    shorter = attention_weights(scores + slope * s, mask=mask)
    alibi = attention_weights(scores + alibi_bias(6, 6, slope), mask=mask)
    rises = attention_weights(np.zeros((1, 6, 6)) + slope * s, mask=mask)[0, -1]
    moved = ~np.isclose(shorter, alibi)
    return {
        "The order: far keys get more": rises[0] > rises[-1],
        "The weights of the first queries, which have few keys": bool(moved[0, :2].any()),
        "No weight: all scores of a row are larger by slope · t": not moved.any(),
        "Every weight, since the scores are no longer negative": bool(moved.all()),
    }


def slowest_hand_of_eight_columns():
    """The angle of the last pair of columns at place 1."""
    sine, cosine = sinusoidal_positions(2, 8)[1, -2:]
    return np.arctan2(sine, cosine)

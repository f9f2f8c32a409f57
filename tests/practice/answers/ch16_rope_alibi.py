"""What computes the keys of chapter 16: layers with RoPE and with ALiBi are run."""

import numpy as np

import tutorial_lib as tl
from tutorial_lib.variants.positions import alibi_bias, rope_frequencies, rotate


def what_a_swap_changes():
    """Whether the row of *bark* changes when the words before it swap positions."""
    example = tl.running_example()
    changed = []
    for n_layers in (1, 2):
        rows = []
        for order in ([0, 1, 2], [1, 0, 2]):
            X = tl.embed(example.ids[order], example.E)
            for _ in range(n_layers):
                X = tl.trace(X, example.params, mask=example.mask).Y
            rows.append(X[-1])
        changed.append(not np.allclose(*rows))
    others = [False, False], [False, True], [True, False], [True, True]
    return [changed == other for other in others]


def what_a_shift_changes():
    """Which scores differ when all positions are larger by 1,000."""
    Q, K = np.random.default_rng(0).standard_normal((2, 64, 8))
    frequencies, fast = rope_frequencies(8), np.array([1, 1, 0, 0, 0, 0, 0, 0])
    positions = np.arange(64)

    def scores(at, chosen=1):
        return tl.attention_scores(rotate(Q * chosen, at, frequencies), rotate(K, at, frequencies))

    changed = ~np.isclose(scores(positions + 1000), scores(positions), atol=1e-9)
    of_fast = ~np.isclose(scores(positions + 1000, fast), scores(positions, fast), atol=1e-9)
    far = np.abs(positions[:, None] - positions) > 32
    return [bool(changed.all()), bool(of_fast.any()), bool(changed[far].any()), not changed.any()]


def what_another_layout_needs():
    """What makes halves give the scores that interleaved pairs give."""
    rng = np.random.default_rng(0)
    X, W_Q, W_K = rng.standard_normal((5, 12)), *rng.standard_normal((2, 1, 12, 8))
    frequencies, positions, order = rope_frequencies(8), np.arange(5), [0, 2, 4, 6, 1, 3, 5, 7]

    def scores(W_Q, W_K, frequencies=frequencies, *, half=True):
        Q, K = (
            rotate(tl.project_heads(X, W), positions, frequencies, half=half) for W in (W_Q, W_K)
        )
        return tl.attention_scores(Q, K)

    trained = scores(W_Q, W_K, half=False)
    found = [
        scores(W_Q, W_K),
        scores(W_Q[..., order], W_K[..., order]),
        scores(W_Q[..., order], W_K),
        scores(W_Q, W_K, frequencies[::-1]),
    ]
    return [np.allclose(scored, trained) for scored in found]


def position_after_eviction():
    """The position that gives the new token the scores that it has with all 50 tokens cached."""
    Q, K = np.random.default_rng(0).standard_normal((2, 51, 8))
    frequencies, cached = rope_frequencies(8), 32
    rotated = rotate(K[:50], np.arange(50), frequencies)
    whole = tl.attention_scores(rotate(Q, np.arange(51), frequencies)[-1:], rotated)[:, -cached:]
    [position] = [
        at
        for at in range(60)
        if np.allclose(
            tl.attention_scores(rotate(Q[-1:], np.array([at]), frequencies), rotated[-cached:]),
            whole,
        )
    ]
    return position


def what_a_shorter_bias_changes():
    """How weights with slope · s differ from those with slope · (t - s) subtracted."""
    scores = np.random.default_rng(0).standard_normal((1, 6, 6))
    slope, mask, s = np.array([0.5]), tl.causal_mask(6), np.arange(6)
    shorter = tl.attention_weights(scores + slope * s, mask=mask)
    alibi = tl.attention_weights(scores + alibi_bias(6, 6, slope), mask=mask)
    rises = tl.attention_weights(np.zeros((1, 6, 6)) + slope * s, mask=mask)[0, -1]
    changed = ~np.isclose(shorter, alibi)
    return [
        rises[0] > rises[-1],
        bool(changed[0, :2].any()),
        not changed.any(),
        bool(changed.all()),
    ]


def slowest_hand_of_eight_columns():
    """The angle of the last pair of columns at position 1."""
    sine, cosine = tl.sinusoidal_positions(2, 8)[1, -2:]
    return np.arctan2(sine, cosine)

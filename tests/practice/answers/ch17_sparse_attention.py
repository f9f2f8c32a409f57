"""What computes the keys of chapter 17: windows, sinks and choices are run."""

import numpy as np

import tutorial_lib as tl
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.entropy import excess_loss
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.records import checkpoint
from tutorial_lib.variants.patterns import (
    attention_with_sink,
    global_mask,
    receptive_field,
    top_k_mask,
    window_mask,
)

SELECTIONS = (  # the last 8; the first and the last 7; the best 8
    lambda scores: window_mask(64, 64, 8),
    lambda scores: window_mask(64, 64, 7) | global_mask(64, [0]) & tl.causal_mask(64),
    lambda scores: top_k_mask(scores, 8, mask=tl.causal_mask(64)),
)


def cheapest_selection():
    """Which selection of 8 keys loses least: in both trained models, the same."""
    losses = [_losses(checkpoint(name)) for name in ("known_text", "look_less")]
    known, slow = map(np.argmin, losses)
    assert known == slow
    return [*(n == known for n in range(len(SELECTIONS))), np.ptp(losses[0]) < 1e-3]


def _losses(arrays):
    model, documents = TinyModel.of(arrays), sample_documents(_rng(), 50)
    losses = []
    for choose in SELECTIONS:
        X = tl.embed(documents.ids[:, :-1], model.E, model.P)
        for params in model.layers:
            X = X + tl.trace(X, params, mask=choose(tl.trace(X, params).scores)).Y
        losses.append(excess_loss(X @ model.U, documents).mean())
    return losses


def _rng():
    return np.random.default_rng(1)


def what_a_shift_does_with_a_sink():
    """How the weights of rows change when their scores grow by 1 and the sink stays."""
    scores, sink = np.random.default_rng(0).standard_normal((3, 5, 6)), np.array([-1.0, 0, 1])
    before, after = (attention_with_sink(scores + by, sink) for by in (0, 1))
    grown = after / before
    largest = before == before.max(axis=-1, keepdims=True)
    return [
        np.allclose(grown, 1),
        bool((grown[largest] > 1).all() and (grown[~largest] < 1).all()),
        bool((grown > 1).all() and np.allclose(grown, grown[..., :1])),
        bool((grown < 1).all()),
    ]


def keys_to_cache():
    """The fewest old keys with which chunks of any length are processed as in one pass."""
    rng, window, S = np.random.default_rng(0), 128, 300
    Q, K, V = rng.standard_normal((3, 1, S, 4))
    whole = tl.scaled_dot_product_attention(Q, K, V, mask=window_mask(S, S, window))
    enough = []
    for cached in range(120, 135):
        same = []
        for T in (1, 2, 150):
            q, k, v = Q[:, -T:], K[:, -T - cached :], V[:, -T - cached :]
            mask = window_mask(T, T + cached, window)
            heads = tl.scaled_dot_product_attention(q, k, v, mask=mask)
            same.append(np.allclose(heads, whole[:, -T:]))
        enough += [cached] if all(same) else []
    return min(enough)


def what_a_causal_global_token_adds():
    """What a global first token adds to the receptive field of a decoder's two layers."""
    T, window = 64, 8
    near = window_mask(T, T, window)
    more = near | global_mask(T, [0]) & tl.causal_mask(T)
    added = receptive_field(more, 2) & ~receptive_field(near, 2)
    return [
        np.array_equal(receptive_field(more, 2), tl.causal_mask(T)),
        bool(added[-1].sum() == window),
        not added.any(),
        bool(added[:, 0].any() and not added[:, 1:].any()),
    ]


def weights_of_a_fully_masked_row():
    """The weights of a row that may see nothing."""
    mask = np.ones((3, 5), dtype=bool)
    mask[1] = False
    row = tl.attention_weights(np.random.default_rng(0).standard_normal((3, 5)), mask=mask)[1]
    return [bool((row == 0).all()), bool(np.isnan(row).any()), np.allclose(row, 1 / 5), row[1] == 1]


def sink_weight_of_two_blocks():
    """What a sink of 0 takes from a row whose exponentials sum to 3 in one block, 5 in another."""
    scores = np.log([[[1.0, 2.0, 4.0, 1.0]]])  # sums of 3 and of 5
    return 1 - attention_with_sink(scores, np.zeros(1)).sum()

"""Scores of heads: where they look, against a known truth; what they bring; what depends on it."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import run
from tutorial_lib.multihead import trace


def score_head(weights, truth):
    """Return the mean weight of each head on the place that decides, (H,).

    Built in chapter 20. weights : (n, H, T, T), truth : (n, T), a place or -1 for none.
    """
    n, t = np.nonzero(truth >= 0)
    return weights[n, :, t, truth[n, t]].mean(axis=0)


def best_offset(truth):
    """Return how far back the deciding word stands most often.

    Built in chapter 20. truth : (n, T), a place or -1 for none.
    """
    n, t = np.nonzero(truth >= 0)
    return np.bincount(t - truth[n, t]).argmax()


def fixed_offset_score(truth, offset):
    """Return how often the deciding word stands that far back: what a fixed look would score.

    Built in chapter 20. truth : (n, T), a place or -1 for none.
    """
    n, t = np.nonzero(truth >= 0)
    return (t - truth[n, t] == offset).mean()


def paths(model, ids):
    """Return the parts of the logits, each (..., T, vocabulary): the word itself, then each head.

    Built in chapter 20. They sum to the logits of `copying.run`.
    """
    _, records = run(model, ids)
    parts = [records[0].X @ model.U]
    for record in records:
        for head, W in zip(
            np.moveaxis(record.heads, -3, 0),
            np.split(record.params.W_O, record.heads.shape[-3]),
            strict=True,
        ):
            parts.append(head @ W @ model.U)
    return parts


def run_with(model, ids, layer, head, output):
    """Return the logits when one head gives `output`, broadcastable to (..., T, d_v), instead.

    Built in chapter 20.
    """
    X = embed(ids, model.E, model.P)
    for place, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        if place == layer:
            heads[..., head, :, :] = output
        X = X + concat_heads(heads) @ params.W_O
    return X @ model.U


def patch(model, ids, other, layer, head):
    """Return the logits of `ids` when one head gives what it gives for `other`.

    Built in chapter 20. other : ids of the same shape.
    """
    _, records = run(model, other)
    return run_with(model, ids, layer, head, records[layer].heads[..., head, :, :])

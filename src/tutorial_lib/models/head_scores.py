"""Scores of heads: where they attend, against known targets; what they add; what needs them."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.contract import checked, require
from tutorial_lib.embedding import embed, require_position_table
from tutorial_lib.errors import (
    ShapeError,
    broadcasts_to,
    require_array,
    require_ids,
    require_wide_dtype_and_finite,
)
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.layers import require_heads
from tutorial_lib.multihead import trace


@checked
def score_head(weights: "n H T T", target: "int n T") -> "H":
    """Return the mean weight of each head on the target positions.

    Built in chapter 20. The mean is over the queries that have a target: the position of the key
    that decides the next word, -1 for none.

    Raises
    ------
    TypeError, ValueError : unsigned positions; one outside the sequence or after its query; none

    >>> weights = np.full((2, 3, 5, 5), 0.2)
    >>> score_head(weights, np.array([[-1, 0, -1, -1, 3], [-1] * 5])).tolist()
    [0.2, 0.2, 0.2]
    """
    require_target_positions(target)
    n, t = np.nonzero(target >= 0)
    return weights[n, :, t, target[n, t]].mean(axis=0)


@checked
def best_offset(target: "int n T") -> np.integer:
    """Return the most frequent distance from a query back to its target; of a tie the smaller.

    Built in chapter 20. 0 is the query's own position, 1 the position before it. Choose it on one
    set of documents, and report `fixed_offset_score` on another. `target` is as of `score_head`,
    with -1 where there is none.

    >>> int(best_offset(np.array([[-1, 0, 1, -1, 1]])))
    1
    """
    require_target_positions(target)
    n, t = np.nonzero(target >= 0)
    return np.bincount(t - target[n, t]).argmax()


@checked
def fixed_offset_score(target: "int n T", offset: "integer") -> float:
    """Return how often the target is that far back: the score of a fixed-offset baseline.

    Built in chapter 20. A head that puts all of its weight that many positions back has this
    `score_head`. `target` is as there, with -1 where there is none; the offset 0 is the query's
    own position.

    Raises
    ------
    TypeError, ValueError : as `score_head`; an offset below 0

    >>> float(fixed_offset_score(np.array([[-1, 0, 1, -1, 1]]), 3))
    0.3333333333333333
    """
    require_target_positions(target)
    require(
        offset >= 0,
        ValueError,
        f"offset={offset}; expected 0 or more, since a query sees nothing that comes after it. "
        f"Count backwards: 1 is the position before it.",
    )
    n, t = np.nonzero(target >= 0)
    return (t - target[n, t] == offset).mean()


@checked
def logit_terms(model: TinyModel, ids: "int ... T") -> list:
    """Return the terms of the logits: that of the words themselves, then one for each head.

    Built in chapter 20. They sum to the logits of `copying.run`; a model with norms or an MLP has
    no such sum. Each of the 1 + layers·H arrays is (..., T, vocabulary); layer 0 before layer 1.

    Source: Elhage et al. (2021), for the logits as a sum of paths.

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> len(logit_terms(model, np.array([2, 0, 1])))
    7
    """
    _, records = run(model, ids)
    parts = [records[0].X @ model.U]  # (..., T, vocabulary)
    for record in records:
        H, d_v = record.params.n_heads, record.params.d_v
        W_O = record.params.W_O.reshape(H, d_v, -1)  # each head's own rows
        from_heads = record.heads @ W_O @ model.U  # (..., H, T, vocabulary)
        parts += list(np.moveaxis(from_heads, -3, 0))
    return parts


@checked
def run_with(model: TinyModel, ids: "int ... T", outputs: dict) -> "... T vocabulary":
    """Return the logits when some heads have the given `outputs`; later layers are recomputed.

    Built in chapter 20. `outputs` is a dict from (layer, head), both counted from 0, to an array
    that broadcasts to (..., T, d_v). With the means of the heads' outputs over other documents this
    is mean ablation, with zeros zero ablation.

    Raises
    ------
    TypeError : a head that is no pair, an output that is no array of numbers
    ShapeError, ValueError : an output of another shape, or with NaN; a head that is not there; ids
        as `embed`

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> run_with(model, np.array([2, 0, 1]), {(1, 0): np.zeros(4), (1, 2): np.ones(4)}).shape
    (3, 7)
    """
    require_head_outputs(model.layers, ids, outputs)
    X = embed(ids, model.E, model.P)
    for layer, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        for (in_layer, head), output in outputs.items():
            if in_layer == layer:
                heads[..., head, :, :] = output
        X = X + concat_heads(heads) @ params.W_O
    return X @ model.U


@checked
def patch(
    model: TinyModel, ids: "int ... T", other: "int ... T", layer: "integer", head: "integer"
) -> "... T vocabulary":
    """Return the logits of `ids` when one head has the output that it has for `other`.

    Built in chapter 20: activation patching. Layer and head are counted from 0.

    Raises
    ------
    ShapeError, ValueError : ids and other of different shapes; a head that is not there; as `embed`

    Source: Wang et al. (2023), who patch the outputs of heads of GPT-2.

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> patch(model, np.array([2, 0, 1]), np.array([3, 0, 1]), 1, 0).shape
    (3, 7)
    """
    require_ids_of_model(model, ids, other)
    require_heads(model.layers, (layer, head))
    _, records = run(model, other)
    output = records[layer].heads[..., head, :, :]
    return run_with(model, ids, {(layer, head): output})


@checked
def attribution_patch(
    model: TinyModel, ids: "int ... T", other: "int ... T", dlogits: "gradient ... T vocabulary"
) -> "... heads":
    """Estimate what `patch` would change, for every head at once, from one backward pass.

    Introduced in chapter 20. `dlogits` is the derivative of a measure with respect to the logits of
    `ids`; the estimate is that with respect to the head's output times the change of this output,
    (..., layers·H), layer 0 before layer 1. For heads of the last layer it is exact where the
    measure is linear in the logits; before a saturated softmax it can miss everything.

    Raises
    ------
    ShapeError, ValueError : ids and other of different shapes; as `embed`

    Source: Nanda (2023), https://www.neelnanda.io/mechanistic-interpretability/attribution-patching
    """
    require_ids_of_model(model, ids, other)
    (_, traces), (_, other_traces) = run(model, ids), run(model, other)
    dX, estimates = dlogits @ model.U.T, []
    for base_trace, other_trace in zip(traces[::-1], other_traces[::-1], strict=True):
        H, d_v = base_trace.params.n_heads, base_trace.params.d_v
        dY = (other_trace.heads - base_trace.heads) @ base_trace.params.W_O.reshape(H, d_v, -1)
        estimates.append((dY * dX[..., None, :, :]).sum(axis=(-2, -1)))  # (..., H)
        dX = dX + multi_head_attention_backward(base_trace, dX).dX
    return np.concatenate(estimates[::-1], axis=-1)


def require_target_positions(target):
    """Require target positions that are not after their query, or -1, and at least one of them."""
    require(
        target.dtype.kind == "i",
        TypeError,
        f"target is an array of {target.dtype}; expected positions, signed whole numbers, "
        f"or -1 for none. Convert it first: target.astype(int).",
    )
    for doc, t in np.argwhere((target < -1) | (target > np.arange(target.shape[1]))):
        raise ValueError(
            f"target is {target[doc, t]} at ({doc}, {t}); expected a position from 0 to {t}, which "
            f"query {t} can see, or -1 for none."
        )
    require(
        (target >= 0).any(),
        ValueError,
        "no position has a target: target is -1 throughout; expected a position at least once. "
        "Take more documents, or another task.",
    )


def require_ids_of_model(model, ids, *others):
    """Require ids that the model has words and positions for, and others of the same shape."""
    for sequence in (ids, *others):
        require_ids(sequence, len(model.E))
        require_position_table(model.P, sequence.shape[-1], model.d_model)
        require(
            sequence.shape == ids.shape,
            ShapeError,
            f"ids has shape {ids.shape} and the others {sequence.shape}; expected the same, since "
            f"position t gets the output at position t. Give as many sentences, and as long.",
        )


def require_head_outputs(layers, ids, outputs):
    """Require an output for heads that are there: finite numbers that broadcast to their own."""
    require_heads(layers, *outputs)
    for (layer, _), output in outputs.items():
        require_array("output", output)
        shape = (*ids.shape, layers[layer].d_v)
        require(
            broadcasts_to(output.shape, shape),
            ShapeError,
            f"output has shape {output.shape}; expected what broadcasts to {shape}, (..., T, d_v). "
            f"A mean over documents and positions has shape ({shape[-1]},).",
        )
        require_wide_dtype_and_finite("output", output)

"""Scores of heads: where they attend, against known targets; what they add; what needs them."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed, require_positions
from tutorial_lib.errors import (
    ShapeError,
    require_array,
    require_finite,
    require_gradient,
    require_ids,
    require_operand,
    require_shape,
    require_whole,
)
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.doors import require_head, require_kind, require_pair
from tutorial_lib.multihead import trace


def score_head(weights, target):
    """Return the mean weight of each head on the target positions.

    Built in chapter 20.

    Parameters
    ----------
    weights : (n, H, T, T)
    target : (n, T) whole numbers, for each query the position of the key that decides the next
        word, -1 for none

    Returns
    -------
    scores : (H,), means over the queries that have a target

    Raises
    ------
    TypeError : no arrays of numbers, or a target that is not of whole numbers
    ShapeError : shapes that do not fit
    ValueError : a target outside the sequence or after its query, no target at all, NaN in weights

    >>> weights = np.full((2, 3, 5, 5), 0.2)
    >>> score_head(weights, np.array([[-1, 0, -1, -1, 3], [-1] * 5])).tolist()
    [0.2, 0.2, 0.2]
    """
    require_weights(weights, target)
    n, t = np.nonzero(target >= 0)
    return weights[n, :, t, target[n, t]].mean(axis=0)


def best_offset(target):
    """Return the most frequent distance from a query back to its target; of a tie the smaller.

    Built in chapter 20. Choose it on one set of documents, and report `fixed_offset_score` on
    another.

    Parameters
    ----------
    target : (n, T) whole numbers, for each query the position of the key that decides the next
        word, -1 for none

    Returns
    -------
    offset : 0 for the query's own position, 1 for the position before it

    Raises
    ------
    TypeError, ShapeError, ValueError : as `score_head`

    >>> int(best_offset(np.array([[-1, 0, 1, -1, 1]])))
    1
    """
    require_target(target)
    n, t = np.nonzero(target >= 0)
    return np.bincount(t - target[n, t]).argmax()


def fixed_offset_score(target, offset):
    """Return how often the target is that far back: the score of a fixed-offset baseline.

    Built in chapter 20. A head that puts all of its weight that many positions back has this
    `score_head`.

    Parameters
    ----------
    target : (n, T) whole numbers, for each query the position of the key that decides the next
        word, -1 for none
    offset : 0 for the query's own position, 1 for the position before it

    Returns
    -------
    score : a fraction of the queries that have a target

    Raises
    ------
    TypeError, ShapeError, ValueError : as `score_head`; an offset that is no whole number from 0 on

    >>> float(fixed_offset_score(np.array([[-1, 0, 1, -1, 1]]), 3))
    0.3333333333333333
    """
    require_target(target)
    require_offset(offset)
    n, t = np.nonzero(target >= 0)
    return (t - target[n, t] == offset).mean()


def logit_terms(model, ids):
    """Return the terms of the logits: that of the words themselves, then one for each head.

    Built in chapter 20. They sum to the logits of `copying.run`.

    Parameters
    ----------
    model : TinyModel
    ids : (..., T)

    Returns
    -------
    parts : list of 1 + layers·H arrays, each (..., T, vocabulary); layer 0 before layer 1

    Raises
    ------
    TypeError : no TinyModel, since only its logits are such a sum; ids that are no whole numbers
    ShapeError, ValueError : as `embed`

    Source: Elhage et al. (2021), for the logits as a sum of paths.

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> len(logit_terms(model, np.array([2, 0, 1])))
    7
    """
    require_kind(model, TinyModel)
    _, records = run(model, ids)
    parts = [records[0].X @ model.U]  # (..., T, vocabulary)
    for record in records:
        H, d_v = record.params.n_heads, record.params.d_v
        W_O = record.params.W_O.reshape(H, d_v, -1)  # each head's own rows
        from_heads = record.heads @ W_O @ model.U  # (..., H, T, vocabulary)
        parts += list(np.moveaxis(from_heads, -3, 0))
    return parts


def run_with(model, ids, outputs):
    """Return the logits when some heads have the given `outputs`; later layers are recomputed.

    Built in chapter 20. With the means of the heads' outputs over other documents this is mean
    ablation, with zeros zero ablation.

    Parameters
    ----------
    model : TinyModel
    ids : (..., T)
    outputs : dict from (layer, head), both counted from 0, to an array that broadcasts to
        (..., T, d_v)

    Returns
    -------
    logits : (..., T, vocabulary)

    Raises
    ------
    TypeError : no TinyModel, no whole numbers, no dict, an output that is no array of numbers
    ShapeError : an output of another shape; ids as `embed`
    ValueError : a layer or a head that is not there, NaN in an output; ids as `embed`

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> run_with(model, np.array([2, 0, 1]), {(1, 0): np.zeros(4), (1, 2): np.ones(4)}).shape
    (3, 7)
    """
    require_kind(model, TinyModel)
    require_ids_of(model, "ids", ids)
    require_outputs(model, ids, outputs)
    X = embed(ids, model.E, model.P)
    for layer, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        for (in_layer, head), output in outputs.items():
            if in_layer == layer:
                heads[..., head, :, :] = output
        X = X + concat_heads(heads) @ params.W_O
    return X @ model.U


def patch(model, ids, other, layer, head):
    """Return the logits of `ids` when one head has the output that it has for `other`.

    Built in chapter 20: activation patching.

    Parameters
    ----------
    model : TinyModel
    ids, other : (..., T), of one shape
    layer, head : both counted from 0

    Returns
    -------
    logits : (..., T, vocabulary)

    Raises
    ------
    TypeError, ValueError : as `run_with`
    ShapeError : ids and other of different lengths

    Source: Wang et al. (2023), who patch the outputs of heads of GPT-2.

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> patch(model, np.array([2, 0, 1]), np.array([3, 0, 1]), 1, 0).shape
    (3, 7)
    """
    require_kind(model, TinyModel)
    require_ids_of(model, "ids", ids)
    require_ids_of(model, "other", other)
    require_same_length(ids, other)
    require_head(model, layer, head)
    _, records = run(model, other)
    output = records[layer].heads[..., head, :, :]
    return run_with(model, ids, {(layer, head): output})


def attribution_patch(model, ids, other, dlogits):
    """Estimate what `patch` would change, for every head at once, from one backward pass.

    Introduced in chapter 20. The estimate is the derivative with respect to the head's output
    times the change of this output. For heads of the last layer it is exact where the measure is
    linear in the logits; before a saturated softmax it can miss everything.

    Parameters
    ----------
    model : TinyModel
    ids, other : (..., T), of one shape
    dlogits : (..., T, vocabulary), the derivative of a measure with respect to the logits of `ids`

    Returns
    -------
    changes : (..., layers*H), of the measure; layer 0 before layer 1

    Raises
    ------
    TypeError, ValueError : as `patch`; NaN in dlogits
    ShapeError : ids and other of different lengths, dlogits of another shape

    Source: Nanda (2023), https://www.neelnanda.io/mechanistic-interpretability/attribution-patching

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> ids, other = np.array([[2, 0, 1], [3, 0, 1]])
    >>> attribution_patch(model, ids, other, np.ones((3, 7))).shape
    (6,)
    """
    require_kind(model, TinyModel)
    require_ids_of(model, "ids", ids)
    require_ids_of(model, "other", other)
    require_same_length(ids, other)
    logits, records = run(model, ids)
    require_gradient("dlogits", dlogits, logits.shape)
    dX, changes = dlogits @ model.U.T, []
    for here, there in zip(records[::-1], run(model, other)[1][::-1], strict=True):
        H, d_v = here.params.n_heads, here.params.d_v
        moved = (there.heads - here.heads) @ here.params.W_O.reshape(H, d_v, -1)
        changes.append((moved * dX[..., None, :, :]).sum(axis=(-2, -1)))  # (..., H)
        dX = dX + multi_head_attention_backward(here, dX).dX
    return np.concatenate(changes[::-1], axis=-1)


def require_weights(weights, target):
    """Require weights of heads, (n, H, T, T), and targets for them, (n, T).

    Raises
    ------
    TypeError, ShapeError, ValueError : as `score_head`
    """
    require_shape("weights", weights, "n H T S")
    n, _, T, _ = weights.shape
    require_shape("weights", weights, "n H T S", S=T)
    require_finite("weights", weights)
    require_target(target)
    require_shape("target", target, "n T", n=n, T=T)


def require_target(target):
    """Require target positions that are not after their query, or -1, and at least one of them.

    The targets of a gallery have a check of their own: it draws a sentence in which no query needs
    a target, under any mask, and takes unsigned positions, since it does not subtract them.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `score_head`
    """
    require_shape("target", target, "n T")
    if target.dtype.kind != "i":
        raise TypeError(
            f"target is an array of {target.dtype}; expected positions, signed whole numbers, "
            f"or -1 for none. Convert it first: target.astype(int)."
        )
    wrong = np.argwhere((target < -1) | (target > np.arange(target.shape[1])))
    if len(wrong):
        n, t = map(int, wrong[0])
        raise ValueError(
            f"target is {target[n, t]} at ({n}, {t}); expected a position from 0 to {t}, which "
            f"query {t} can see, or -1 for none."
        )
    if not (target >= 0).any():
        raise ValueError(
            "no position has a target: target is -1 throughout; expected a position at least once. "
            "Take more documents, or another task."
        )


def require_offset(offset):
    """Require a whole number from 0 on.

    Raises
    ------
    TypeError : no whole number
    ValueError : below 0
    """
    require_whole("offset", offset)
    if offset < 0:
        raise ValueError(
            f"offset={offset}; expected 0 or more, since a query sees nothing that comes after it. "
            f"Count backwards: 1 is the position before it."
        )


def require_ids_of(model, name, ids):
    """Require ids that the model has words and positions for.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `embed`
    """
    require_array(name, ids)
    require_ids(ids, len(model.E))
    require_positions(model.P, ids.shape[-1], model.E.shape[-1])


def require_same_length(ids, other):
    """Require two sequences, or batches of them, of the same shape.

    Raises
    ------
    ShapeError : they differ
    """
    if ids.shape != other.shape:
        lengths = f"{ids.shape[-1]} positions and other {other.shape[-1]}"
        shapes = f"shape {ids.shape} and other {other.shape}"
        raise ShapeError(
            f"ids has {lengths if ids.shape[:-1] == other.shape[:-1] else shapes}; expected the "
            f"same. Give sentences with as many words."
        )


def require_outputs(model, ids, outputs):
    """Require a dict from heads that are there to an output for each.

    Raises
    ------
    TypeError : no dict, a head that is no pair, an output that is no array of numbers
    ShapeError : an output of another shape
    ValueError : a layer or a head that is not there, NaN or infinity
    """
    if not isinstance(outputs, dict):
        raise TypeError(
            f"outputs is a {type(outputs).__name__}; expected a dict from (layer, head) to the "
            f"output of that head. Write {{(1, 0): output}}."
        )
    for pair, output in outputs.items():
        require_pair(model, pair)
        require_output(output, (*ids.shape, model.layers[pair[0]].d_v))


def require_output(output, shape):
    """Require finite numbers that broadcast to the output of a head.

    Raises
    ------
    TypeError : no array of numbers
    ShapeError : does not broadcast to `shape`
    ValueError : NaN or infinity
    """
    require_array("output", output)
    try:
        fits = np.broadcast_shapes(output.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"output has shape {output.shape}; expected what broadcasts to {shape}, (..., T, d_v). "
            f"A mean over documents and positions has shape ({shape[-1]},)."
        )
    require_operand("output", output)

"""Ablation and pruning of heads: by zero, mean or resampling, one by one, together, or by gates."""

from dataclasses import replace

import numpy as np

from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.contract import checked, require, require_instance, require_value_fits_annotation
from tutorial_lib.embedding import embed
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import form_loss
from tutorial_lib.models.grammar import FORMS, Documents
from tutorial_lib.models.head_scores import require_head_outputs, require_ids_of_model, run_with
from tutorial_lib.models.layers import require_heads
from tutorial_lib.multihead import trace

REPLACEMENTS = ("zero", "mean", "resample")
ONCE = "expected each head once, since a removed head cannot be removed again. Drop the duplicate."


@checked
def replacement_outputs(
    model: TinyModel, heads: list[tuple], others: "int n T", how: str = "mean"
) -> dict:
    """Return what replaces the outputs of ablated heads: zeros, their mean, or a resampled output.

    Built in chapter 22. Returns a dict from (layer, head), both counted from 0, to an output of
    shape (d_v,), or (n, T, d_v) for "resample".

    Parameters
    ----------
    others : ids of other documents
    how : "zero"; "mean", of the head's outputs over all positions of others; "resample", its
        output at the same position of another document

    Raises
    ------
    TypeError, ValueError : a head twice or not there, another way; others as `embed`

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> replacement_outputs(model, [(1, 0)], np.array([[2, 0, 1]]))[1, 0].shape
    (4,)
    """
    require(len(set(heads)) == len(heads), ValueError, f"heads is {heads}; {ONCE}")
    require_heads(model.layers, *heads)
    require(
        how in REPLACEMENTS,
        ValueError,
        f"how is {how!r}; expected one of {REPLACEMENTS}. Take 'mean' for mean ablation.",
    )
    _, traces = run(model, others)
    own = {(layer, head): traces[layer].heads[:, head] for layer, head in heads}  # (n, T, d_v)
    if how == "resample":
        return own
    scale = 1 if how == "mean" else 0
    return {head: scale * output.mean(axis=(0, 1)) for head, output in own.items()}


@checked
def ablate(
    model: TinyModel, ids: "int ... T", heads: list[tuple], others: "int n S", *, how: str = "mean"
) -> "... T vocabulary":
    """Return the logits with these heads ablated, all in one run, so that later heads see it.

    Built in chapter 22. `heads` and `how` are as of `replacement_outputs`. `others` are the ids of
    other documents, for "resample" as many and as long.

    Raises
    ------
    TypeError, ValueError : as `replacement_outputs`; all heads of the model at once
    ShapeError : to resample, others that do not have the shape of ids

    Source: Michel et al. (2019), who ablate heads after training.

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> ablate(model, np.array([[2, 0, 1]]), [(0, 1), (1, 0)], np.array([[3, 0, 1]])).shape
    (1, 3, 7)
    """
    require(
        len(set(heads)) < sum(params.n_heads for params in model.layers),
        ValueError,
        f"all {len(heads)} heads are ablated, so no word can depend on another; expected fewer. "
        f"Keep one, or replace all outputs: run_with(model, ids, outputs).",
    )
    require_ids_of_model(model, ids, *([others] if how == "resample" else []))
    return run_with(model, ids, replacement_outputs(model, heads, others, how))


@checked
def prune_greedily(heads: list[object], loss: callable) -> tuple:
    """Remove one head after the other, always the one whose removal raises the loss least by then.

    Built in chapter 22. `loss` is a function of a list of removed heads. Returns the heads, the
    first removed first, and the loss after each.

    Source: Michel et al. (2019), who order heads once, by a first-order estimate.

    >>> order, losses = prune_greedily([(0, 0), (0, 1)], lambda s: len(s) + ((0, 0) in s))
    >>> order, losses
    ([(0, 1), (0, 0)], [1, 3])
    """
    require(len(set(heads)) == len(heads), ValueError, f"heads is {heads}; {ONCE}")
    order, losses = [], []
    while left := [head for head in heads if head not in order]:
        found = {head: loss([*order, head]) for head in left}
        order.append(min(found, key=found.get))
        losses.append(found[order[-1]])
    return order, losses


@checked
def gated(model: TinyModel, ids: "int ... T", gates: dict, outputs: dict) -> "... T vocabulary":
    """Return the logits when each head outputs gate · its own output + (1 - gate) · another one.

    Built in chapter 22. A gate of 1 is the whole head; with gates of 0 this is `run_with`.

    Parameters
    ----------
    gates : dict from (layer, head) to a number from 0 to 1; a head without a gate stays whole
    outputs : dict as of `replacement_outputs`, with every head that has a gate

    Raises
    ------
    TypeError, ShapeError, ValueError : outputs and ids as `run_with`; a gate outside 0 to 1, or of
        a head that has no output

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> gated(model, np.array([2, 0, 1]), {(1, 0): 0.5}, {(1, 0): np.zeros(4)}).shape
    (3, 7)
    """
    require_head_outputs(model.layers, ids, outputs)
    require_gates_with_outputs(gates, outputs)
    X = embed(ids, model.E, model.P)
    for layer, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        for (at, head), gate in gates.items():
            if at == layer:
                own, other = heads[..., head, :, :], outputs[at, head]
                heads[..., head, :, :] = gate * own + (1 - gate) * other
        X = X + concat_heads(heads) @ params.W_O
    return X @ model.U


@checked
def gate_gradients(
    model: TinyModel, documents: Documents, task: object, gates: dict, outputs: dict
) -> tuple:
    """Return the loss of the form at one task, and its derivative with respect to each gate.

    Introduced in chapter 22. The loss is that of `form_loss`: the mean of -log of the right form's
    probability among the forms of its set. `task` is one of TASKS; `gates` and `outputs` are as of
    `gated`. The derivatives are a dict with the keys of `gates`.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `gated`; as `Documents.target_of`; a task without words
    """
    ids, target = documents.ids, documents.target_of(task)
    require_head_outputs(model.layers, ids[:, :-1], outputs)
    require_gates_with_outputs(gates, outputs)
    message = f"no word of the documents belongs to {task!r}; expected at least one. Sample more."
    require((target >= 0).any(), ValueError, message)
    logits, records = _gated_logits_and_traces(model, ids[:, :-1], gates, outputs)
    n, query = np.nonzero(target >= 0)
    right_word = ids[n, query + 1]
    is_form = FORMS[right_word][:, None] == FORMS
    chances, dlogits = softmax(np.where(is_form, logits[n, query], -np.inf)), np.zeros(logits.shape)
    dlogits[n, query] = (chances - np.eye(len(model.E))[right_word]) / len(n)
    dX, gradients = dlogits @ model.U.T, dict.fromkeys(gates)
    for layer in reversed(range(len(model.layers))):
        for head in [head for head in gates if head[0] == layer]:
            difference = records[layer].heads[:, head[1]] - outputs[head]
            gradients[head] = float((difference @ _output_weight_rows(model, head) * dX).sum())
        dX = dX + multi_head_attention_backward(records[layer], dX).dX
    return form_loss(logits, documents)[task], gradients


def _gated_logits_and_traces(model, ids, gates, outputs):
    """Return the logits of `gated`, and traces with the rows of W_O times their head's gate."""
    X, records = embed(ids, model.E, model.P), []
    for layer, params in enumerate(model.layers):
        head_gates = np.array([gates.get((layer, head), 1.0) for head in range(params.n_heads)])
        W_O = np.repeat(head_gates, params.d_v)[:, None] * params.W_O
        records.append(trace(X, replace(params, W_O=W_O), mask=causal_mask(ids.shape[-1])))
        X = X + records[-1].Y
        for head, gate in gates.items():
            if head[0] == layer:
                X = X + (1 - gate) * outputs[head] @ _output_weight_rows(model, head)
    return X @ model.U, records


def _output_weight_rows(model, head):
    """Return the rows of W_O that belong to a head, (d_v, d_model)."""
    layer_params = model.layers[head[0]]
    return layer_params.W_O[head[1] * layer_params.d_v : (head[1] + 1) * layer_params.d_v]


@checked
def learn_gates(gates: dict, gradients: callable, *, price: float, steps: "integer" = 25) -> dict:
    """Move gates downhill, within 0 to 1: long steps first, then shorter ones.

    Introduced in chapter 22. A gate whose gradient is only its price moves by a whole step; no
    gate moves by more, however large its gradient.

    Parameters
    ----------
    gates : dict from (layer, head) to a number from 0 to 1, where to begin
    gradients : function of gates, returns a dict: the derivative of what is to be minimised with
        respect to each gate, its price included
    price : of a gate, above 0: the gradient from which on a step is a whole one

    >>> learn_gates({(0, 0): 1.0, (0, 1): 1.0}, lambda g: {(0, 0): 0.1, (0, 1): -3.0}, price=0.1)
    {(0, 0): 0.0, (0, 1): 1.0}
    """
    require_gates_with_outputs(gates, gates)
    expectation = "expected more than 0, or a gate that nothing needs does not move"
    require(price > 0, ValueError, f"price is {price}; {expectation}. Take 0.3 nats.")
    for step_size in np.linspace(0.2, 0.02, steps):
        derivatives = gradients(gates)
        head_steps = {head: step_size * np.clip(derivatives[head] / price, -1, 1) for head in gates}
        gates = {head: float(np.clip(gates[head] - head_steps[head], 0, 1)) for head in gates}
    return gates


@checked
def interval(values: object) -> tuple:
    """Return the smallest and the largest value of some seeds, and the confidence of this range.

    Built in chapter 22. The median of all seeds lies outside the range of n of them only if all n
    are on one side of it: with a probability of 2 / 2^n, whatever their distribution. `values` is a
    list or an array, with one number for each seed.

    Raises
    ------
    TypeError, ShapeError : no numbers, more than one axis
    ValueError : fewer than two seeds, NaN or infinity

    >>> interval([0.2, 0.5, 0.1, 0.4, 0.3])
    (0.1, 0.5, 0.9375)
    """
    require(
        np.size(values) > 1,
        ValueError,
        f"values has {np.size(values)} entries; expected one for each of two seeds or more, since "
        f"one seed does not show how far others are from it. Train again with another seed.",
    )
    require_value_fits_annotation("values", np.asarray(values), "seeds")
    return min(values), max(values), 1 - 2 / 2 ** len(values)


def require_gates_with_outputs(gates, outputs):
    """Require gates, one at least, from 0 to 1, each of a head with a replacement output."""
    require(gates, ValueError, "gates is empty; expected at least one gate. Write {(1, 0): 0.5}.")
    for head, gate in gates.items():
        require_instance(f"the gate of {head}", gate, float)
        require(
            0 <= gate <= 1,
            ValueError,
            f"the gate of {head} is {gate}; expected 0, closed, to 1, open. "
            f"Bring it back: np.clip(gate, 0, 1).",
        )
        require(
            head in outputs,
            ValueError,
            f"head {head} has a gate and no replacement output; expected one for each gate. "
            f"Make them with replacement_outputs(model, list(gates), others).",
        )

"""Ablation and pruning of heads: by zero, mean or resampling, one by one, together, or by gates."""

import numpy as np

from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.embedding import embed
from tutorial_lib.errors import ShapeError, require_operand, require_shape
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.doors import require_kind, require_pair, require_sequence
from tutorial_lib.models.entropy import form_loss
from tutorial_lib.models.grammar import FORMS
from tutorial_lib.models.head_scores import require_ids_of, require_outputs, run_with
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params

HOW = ("zero", "mean", "resample")


def replacement_outputs(model, heads, others, how="mean"):
    """Return what replaces the outputs of ablated heads: zeros, their mean, or a resampled output.

    Built in chapter 22.

    Parameters
    ----------
    model : TinyModel
    heads : list of (layer, head), both counted from 0
    others : (n, T) ids of other documents
    how : "zero"; "mean", of the head's outputs over all positions of others; "resample", its
        output at the same position of another document

    Returns
    -------
    outputs : dict from (layer, head) to (d_v,), or (n, T, d_v) for "resample"

    Raises
    ------
    TypeError : no TinyModel, no list of heads, a head that is no tuple, no whole numbers
    ShapeError : others that do not have two axes
    ValueError : no head, a head twice or not there, how is none of the three; others as `embed`

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> replacement_outputs(model, [(1, 0)], np.array([[2, 0, 1]]))[1, 0].shape
    (4,)
    """
    require_heads(model, heads)
    require_others(model, others)
    require_how(how)
    _, traces = run(model, others)
    own = {(layer, head): traces[layer].heads[:, head] for layer, head in heads}  # (n, T, d_v)
    if how == "resample":
        return own
    scale = 1 if how == "mean" else 0
    return {head: scale * output.mean(axis=(0, 1)) for head, output in own.items()}


def ablate(model, ids, heads, others, *, how="mean"):
    """Return the logits with these heads ablated, all in one run, so that later heads see it.

    Built in chapter 22.

    Parameters
    ----------
    model : TinyModel
    ids : (n, T)
    heads : list of (layer, head), both counted from 0
    others : (n, T) ids of other documents; for "resample" as many and as long
    how : "zero", "mean" or "resample"

    Returns
    -------
    logits : (n, T, vocabulary)

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
    require_heads(model, heads)
    require_a_rest(model, heads)
    require_ids_of(model, ids)
    require_fitting(ids, others, how)
    return run_with(model, ids, replacement_outputs(model, heads, others, how))


def prune_greedily(heads, loss):
    """Remove one head after the other, always the one whose removal raises the loss least by then.

    Built in chapter 22.

    Parameters
    ----------
    heads : list of (layer, head)
    loss : function of a list of removed heads, returns a number

    Returns
    -------
    order, losses : list of heads, the first removed first; the loss after each

    Raises
    ------
    TypeError : heads that are no list, a loss that cannot be called
    ValueError : no head, or a head twice

    Source: Michel et al. (2019), who order heads once, by a first-order estimate.

    >>> order, losses = prune_greedily([(0, 0), (0, 1)], lambda s: len(s) + ((0, 0) in s))
    >>> order, losses
    ([(0, 1), (0, 0)], [1, 3])
    """
    require_each_once(heads)
    require_function("loss", loss)
    order, losses = [], []
    while left := [head for head in heads if head not in order]:
        found = {head: loss([*order, head]) for head in left}
        order.append(min(found, key=found.get))
        losses.append(found[order[-1]])
    return order, losses


def gated(model, ids, gates, outputs):
    """Return the logits when each head outputs gate · its own output + (1 - gate) · another one.

    Built in chapter 22. A gate of 1 is the whole head; with gates of 0 this is `run_with`.

    Parameters
    ----------
    model : TinyModel
    ids : (..., T)
    gates : dict from (layer, head) to a number from 0 to 1; a head without a gate stays whole
    outputs : dict as of `replacement_outputs`, with every head that has a gate

    Returns
    -------
    logits : (..., T, vocabulary)

    Raises
    ------
    TypeError : no TinyModel, no dicts, no whole numbers
    ShapeError : an output that does not fit its head; ids as `embed`
    ValueError : a gate outside 0 to 1, a head that is not there or has no output; ids as `embed`

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> gated(model, np.array([2, 0, 1]), {(1, 0): 0.5}, {(1, 0): np.zeros(4)}).shape
    (3, 7)
    """
    require_gates(model, ids, gates, outputs)
    X = embed(ids, model.E, model.P)
    for layer, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        for (at, head), gate in gates.items():
            if at == layer:
                own, other = heads[..., head, :, :], outputs[at, head]
                heads[..., head, :, :] = gate * own + (1 - gate) * other
        X = X + concat_heads(heads) @ params.W_O
    return X @ model.U


def gate_gradients(model, documents, task, gates, outputs):
    """Return the loss of the form at one task, and its derivative with respect to each gate.

    Introduced in chapter 22. The loss is that of `form_loss`: the mean of -log of the right form's
    probability among the forms of its set.

    Parameters
    ----------
    model : TinyModel
    documents : Documents
    task : one of TASKS, of which the documents have a word
    gates, outputs : as of `gated`

    Returns
    -------
    loss, gradients : a number; dict from (layer, head) to dloss/dgate

    Raises
    ------
    TypeError, ShapeError, ValueError : as `gated`; as `Documents.target_of`; a task without words

    >>> from tutorial_lib.models.grammar import sample_documents
    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((100, 12)), np.ones((64, 12)), (layer,) * 2, np.ones((12, 100)))
    >>> documents, output = sample_documents(np.random.default_rng(0), 9), {(1, 0): np.zeros(4)}
    >>> list(gate_gradients(model, documents, "surname", {(1, 0): 0.5}, output)[1])
    [(1, 0)]
    """
    ids, target = documents.ids, documents.target_of(task)
    require_gates(model, ids[:, :-1], gates, outputs)
    require_cases(target, task)
    logits, records = _gated_records(model, ids[:, :-1], gates, outputs)
    n, t = np.nonzero(target >= 0)
    right = np.eye(len(model.E))[ids[n, t + 1]]  # (cases, vocabulary)
    in_set = FORMS[ids[n, t + 1]][:, None] == FORMS
    chances, dlogits = softmax(np.where(in_set, logits[n, t], -np.inf)), np.zeros(logits.shape)
    dlogits[n, t] = (chances - right) / len(n)
    dX, gradients = dlogits @ model.U.T, {}
    for layer in reversed(range(len(model.layers))):
        changes = _changes(model, records[layer].heads, layer, gates, outputs)
        gradients |= {head: float((change * dX).sum()) for head, change in changes.items()}
        dX = dX + multi_head_attention_backward(records[layer], dX).dX
    return form_loss(logits, documents)[task], {h: gradients[h] for h in gates}


def _changes(model, heads, layer, gates, outputs):
    """Return the derivative of X with respect to each gate of a layer, (n, T, d_model)."""
    params = model.layers[layer]
    rows = params.W_O.reshape(params.n_heads, params.d_v, -1)  # of each head
    own = {(i, head): heads[:, head] for i, head in gates if i == layer}
    return {head: (own[head] - outputs[head]) @ rows[head[1]] for head in own}


def _gated_records(model, ids, gates, outputs):
    """Return the logits of `gated`, and traces with the rows of W_O times their head's gate."""
    X, records = embed(ids, model.E, model.P), []
    for layer, params in enumerate(model.layers):
        H, d_v = params.n_heads, params.d_v
        own = np.array([gates.get((layer, head), 1.0) for head in range(H)])
        W_O = np.repeat(own, d_v)[:, None] * params.W_O
        scaled = Params(params.W_Q, params.W_K, params.W_V, W_O)
        records.append(trace(X, scaled, mask=causal_mask(ids.shape[-1])))
        X = X + records[-1].Y
        for (at, head), gate in gates.items():
            if at == layer:
                rows = params.W_O[head * d_v : (head + 1) * d_v]
                X = X + (1 - gate) * outputs[at, head] @ rows
    return X @ model.U, records


def learn_gates(gates, gradients, *, price, steps=25):
    """Move gates downhill, within 0 to 1: long steps first, then shorter ones.

    Introduced in chapter 22. A gate whose gradient is only its price moves by a whole step; no
    gate moves by more, however large its gradient.

    Parameters
    ----------
    gates : dict from (layer, head) to a number from 0 to 1, where to begin
    gradients : function of gates, returns a dict: the derivative of what is to be minimised with
        respect to each gate, its price included
    price : of a gate, above 0: the gradient from which on a step is a whole one
    steps : how many

    Returns
    -------
    gates : dict from (layer, head) to a number from 0 to 1

    Raises
    ------
    TypeError : no dict, no function, no number
    ValueError : a gate outside 0 to 1, a price that is not above 0

    >>> learn_gates({(0, 0): 1.0, (0, 1): 1.0}, lambda g: {(0, 0): 0.1, (0, 1): -3.0}, price=0.1)
    {(0, 0): 0.0, (0, 1): 1.0}
    """
    require_open(gates)
    require_price(price)
    require_function("gradients", gradients)
    for step in np.linspace(0.2, 0.02, steps):
        found = gradients(gates)
        moves = {head: step * np.clip(found[head] / price, -1, 1) for head in gates}
        gates = {head: float(np.clip(gates[head] - moves[head], 0, 1)) for head in gates}
    return gates


def interval(values):
    """Return the smallest and the largest value of some seeds, and the confidence of this range.

    Built in chapter 22. The median of all seeds lies outside the range of n of them only if all n
    are on one side of it: with a probability of 2 / 2^n, whatever their distribution.

    Parameters
    ----------
    values : one number for each seed, in a list or an array

    Returns
    -------
    smallest, largest, confidence

    Raises
    ------
    TypeError, ShapeError : no numbers, more than one axis
    ValueError : fewer than two seeds, NaN or infinity

    >>> interval([0.2, 0.5, 0.1, 0.4, 0.3])
    (0.1, 0.5, 0.9375)
    """
    require_seeds(values)
    return min(values), max(values), 1 - 2 / 2 ** len(values)


def require_each_once(heads):
    """Require a list of at least one head, none of them twice.

    Raises
    ------
    TypeError : no list
    ValueError : no head, or a head twice
    """
    require_sequence("heads", heads, "(layer, head), such as [(1, 0), (1, 3)]")
    if not heads:
        raise ValueError(
            "heads is empty: nothing is ablated; expected at least one head. "
            "Name them, such as [(1, 0)]; run(model, ids) is the whole model."
        )
    again = [head for i, head in enumerate(heads) if head in heads[:i]]
    if again:
        raise ValueError(
            f"head {again[0]} is in heads twice; expected each once, since a removed head cannot "
            f"be removed again. Drop one."
        )


def require_heads(model, heads):
    """Require heads of the model, each once, and at least one.

    Raises
    ------
    TypeError : no TinyModel, no list, a head that is no tuple of two whole numbers
    ValueError : no head, a head twice or not there
    """
    require_kind(model, TinyModel)
    require_each_once(heads)
    for head in heads:
        require_pair(model, head)


def require_a_rest(model, heads):
    """Require that at least one head remains.

    Raises
    ------
    ValueError : all heads are ablated
    """
    total = sum(params.n_heads for params in model.layers)
    if len(heads) == total:
        raise ValueError(
            f"all {total} heads are ablated, so no word can depend on another; expected at most "
            f"{total - 1}. Keep one, or replace all outputs: run_with(model, ids, outputs)."
        )


def require_how(how):
    """Require one of the three ablation baselines.

    Raises
    ------
    ValueError : anything else
    """
    if how not in HOW:
        raise ValueError(f"how is {how!r}; expected one of {HOW}. Take 'mean' for mean ablation.")


def require_others(model, others):
    """Require other documents that the model can process.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `replacement_outputs`
    """
    require_shape("others", others, "n T")
    require_ids_of(model, others)


def require_fitting(ids, others, how):
    """Require, to resample, equally many other documents of the same length.

    Raises
    ------
    TypeError : others is no array
    ShapeError : they do not have the same shape
    """
    require_shape("others", others, "n T")
    if how == "resample" and others.shape != ids.shape:
        raise ShapeError(
            f"others has shape {others.shape} and ids {ids.shape}; expected the same to resample, "
            f"where position t gets the output at position t of other documents. Sample as many, "
            f"and as long."
        )


def require_open(gates):
    """Require a dict of gates from 0, closed, to 1, open.

    Raises
    ------
    TypeError : no dict, a gate that is no number
    ValueError : a gate outside 0 to 1, or none
    """
    if not isinstance(gates, dict):
        raise TypeError(
            f"gates is a {type(gates).__name__}; expected a dict from (layer, head) to a number "
            f"from 0 to 1. Write {{(1, 0): 0.5}}."
        )
    if not gates:
        raise ValueError("gates is empty; expected at least one gate. Write {(1, 0): 0.5}.")
    for head, gate in gates.items():
        if isinstance(gate, bool) or not isinstance(gate, int | float | np.number):
            raise TypeError(
                f"the gate of {head} is a {type(gate).__name__}; expected a number from 0 to 1. "
                f"0 is closed, 1 is open."
            )
        if not 0 <= gate <= 1:
            raise ValueError(
                f"the gate of {head} is {gate}; expected 0, closed, to 1, open. "
                f"Bring it back: np.clip(gate, 0, 1)."
            )


def require_gates(model, ids, gates, outputs):
    """Require gates of heads that the model has, and a replacement output for each.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `gated`
    """
    require_kind(model, TinyModel)
    require_ids_of(model, ids)
    require_outputs(model, ids, outputs)
    require_open(gates)
    for head in gates:
        require_pair(model, head)
        if head not in outputs:
            raise ValueError(
                f"head {head} has a gate and no replacement output; expected one for each gate. "
                f"Make them with replacement_outputs(model, list(gates), others)."
            )


def require_cases(target, task):
    """Require that the documents have a word of the task.

    Raises
    ------
    ValueError : none
    """
    if not (target >= 0).any():
        raise ValueError(
            f"no word of the documents belongs to {task!r}; expected at least one. Sample more."
        )


def require_function(name, value):
    """Require something that can be called.

    Raises
    ------
    TypeError : it cannot
    """
    if not callable(value):
        raise TypeError(
            f"{name} is a {type(value).__name__}; expected a function. Write def, or lambda."
        )


def require_price(price):
    """Require a price above 0.

    Raises
    ------
    TypeError : no number
    ValueError : 0 or below, NaN
    """
    if isinstance(price, bool) or not isinstance(price, int | float | np.number):
        raise TypeError(f"price is a {type(price).__name__}; expected a number. Take 0.3 nats.")
    if not price > 0:
        raise ValueError(
            f"price is {price}; expected more than 0, or a gate that nothing needs does not move. "
            f"Take 0.3 nats."
        )


def require_seeds(values):
    """Require one finite number for each of two seeds or more.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `interval`
    """
    given = np.asarray(values)
    if given.ndim == 1 and len(given) < 2:
        raise ValueError(
            f"values has {len(given)} entries; expected one for each of two seeds or more, since "
            f"one seed does not show how far others are from it. Train again with another seed."
        )
    require_shape("values", given, "seeds")
    require_operand("values", given)

"""Right answers of chapter 25 in other ways, and too narrow ones."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from tests import oracle
from tutorial_lib.attention import causal_mask
from tutorial_lib.models.real.heads import head_logits, run_real_with
from tutorial_lib.models.real.model import RealTrace, rms_norm_with_gain, run_real, swiglu
from tutorial_lib.projection import Params
from tutorial_lib.variants.positions import rope_frequencies, rotate


def outputs_by_partial(model, ids, outputs):
    def put(output, own):
        return 0 * own + output

    return run_real(model, ids, hooks={head: partial(put, o) for head, o in outputs.items()})


def outputs_block_by_block(model, ids, outputs):
    X, steps = model.E[ids], []
    for n, block in enumerate(model.blocks):
        weights, heads = _attended(rms_norm_with_gain(X, block.gain_1, model.epsilon), model, block)
        for head in range(block.params.n_heads):
            if (n, head) in outputs:
                heads[..., head, :, :] = outputs[n, head]
        rows = np.swapaxes(heads, -2, -3)
        Y = X + rows.reshape(*X.shape[:-1], -1) @ block.params.W_O
        normed = rms_norm_with_gain(Y, block.gain_2, model.epsilon)
        feed = swiglu(normed, block.W_gate, block.W_up, block.W_down)
        steps.append((X, weights, heads, feed))
        X = Y + feed
    normed = rms_norm_with_gain(X, model.gain, model.epsilon)
    return RealTrace(*map(np.stack, zip(*steps, strict=True)), normed, model.E)


def _attended(normed, model, block):
    params = block.params.expanded()
    Q, K, V = (oracle.project_heads(normed, W) for W in (params.W_Q, params.W_K, params.W_V))
    frequencies = rope_frequencies(params.d_k, base=model.base)
    Q, K = (rotate(rows, np.arange(Q.shape[-2]), frequencies) for rows in (Q, K))
    scores = np.einsum("...td,...sd->...ts", Q, K) / math.sqrt(params.d_k)
    exponentials = np.exp(scores) * causal_mask(Q.shape[-2])
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights, weights @ V


def terms_by_einsum(model, trace, tokens):
    end = trace.X[-1, ..., -1, :] + trace.feeds[-1, ..., -1, :]
    W_O = np.stack([block.params.W_O for block in model.blocks])
    W_O = W_O.reshape(len(W_O), -1, trace.heads.shape[-1], end.shape[-1])  # (L, H, d_v, d_model)
    added = np.einsum("l...hv,lhvm->l...hm", trace.heads[..., -1, :], W_O)
    end = end + added[-1].sum(axis=-2)
    divisor = np.sqrt((end**2).mean(axis=-1) + model.epsilon)
    added = added * model.gain / divisor[..., None, None]
    return np.einsum("l...hm,nm->l...hn", added, model.E[tokens])


def terms_by_difference(model, trace, tokens):
    """What a head adds to the sum of all, with the divisor that the logits of the run have."""
    parts = []
    for block, heads in zip(model.blocks, trace.heads, strict=True):
        for h in range(block.params.n_heads):
            only = np.zeros(heads.shape)
            only[..., h, :, :] = heads[..., h, :, :]
            rows = np.swapaxes(only, -2, -3).reshape(*trace.X.shape[1:-1], -1)
            parts.append((rows @ block.params.W_O)[..., -1, :])
    ends = (trace.X[0] + trace.feeds.sum(axis=0))[..., -1, :] + sum(parts)
    size = np.sqrt(np.mean(ends * ends, axis=-1, keepdims=True) + model.epsilon)
    terms = [part / size * model.gain @ model.E.T[:, tokens] for part in parts]
    H = model.blocks[0].params.n_heads
    layers = [np.stack(terms[n : n + H], axis=-2) for n in range(0, len(terms), H)]
    return np.stack(layers)


def gains_by_einsum(block):
    params, copies = block.params, block.params.n_heads // block.params.n_kv_heads
    W_K, W_V = (
        np.stack([W[h // copies] for h in range(params.n_heads)]) for W in (params.W_K, params.W_V)
    )
    W_Q, W_K, W_V = (np.einsum("m,hmd->hmd", block.gain_1, W) for W in (params.W_Q, W_K, W_V))
    return Params(W_Q, W_K, W_V, params.W_O)


def gains_first(block):
    gain = np.diag(block.gain_1)
    W = {name: gain @ getattr(block.params, name) for name in ("W_Q", "W_K", "W_V")}
    return replace(block.params, **W).expanded()


def effect_by_sums(whole, patched, other):
    return (np.sum(whole) - np.sum(patched)) / (np.sum(whole) - np.sum(other))


def effect_by_what_is_left(whole, patched, other):
    return 1 - np.mean(patched - other) / np.mean(whole - other)


def below_row_by_row(logits, tokens):
    if logits.ndim > 2:
        return np.array([below_row_by_row(*rows) for rows in zip(logits, tokens, strict=True)])
    pairs = zip(logits, tokens, strict=True)
    return np.array([sum(row < row[token]) / len(row) for row, token in pairs])


def below_by_sorting(logits, tokens):
    ordered = np.sort(logits.reshape(-1, logits.shape[-1]), axis=-1)
    flat = zip(ordered, logits.reshape(ordered.shape), tokens.ravel(), strict=True)
    found = [np.searchsorted(rows, own[token]) for rows, own, token in flat]
    return np.array(found).reshape(tokens.shape) / logits.shape[-1]


def sums_of_a_split(probabilities, digit):
    earlier, later = np.split(probabilities, [digit])
    return np.array([sum(earlier), sum(later[1:])])


def sums_by_masks(probabilities, digit):
    digits = np.arange(10)
    return np.stack([digits < digit, digits > digit]) @ probabilities


def _in_pairs(block):
    grouped, heads = block.params, np.arange(block.params.n_heads) // 2
    W_Q, W_K, W_V = grouped.W_Q, grouped.W_K[heads % 3], grouped.W_V[heads % 3]
    return Params(*(block.gain_1[:, None] * W for W in (W_Q, W_K, W_V)), grouped.W_O)


VARIANTS = [
    ("run_real_with", "partial", outputs_by_partial),
    ("run_real_with", "block by block", outputs_block_by_block),
    ("head_logits", "einsum", terms_by_einsum),
    ("head_logits", "difference", terms_by_difference),
    ("fold_gain", "einsum", gains_by_einsum),
    ("fold_gain", "gains first", gains_first),
    ("patching_effect", "sums", effect_by_sums),
    ("patching_effect", "what is left", effect_by_what_is_left),
    ("fraction_below", "row by row", below_row_by_row),
    ("fraction_below", "sorting", below_by_sorting),
    ("earlier_and_later", "split", sums_of_a_split),
    ("earlier_and_later", "masks", sums_by_masks),
]


NARROW = [
    (
        "run_real_with",
        "one epsilon",
        lambda model, *given: run_real_with(replace(model, epsilon=1e-5), *given),
    ),
    (
        "run_real_with",
        "only layer 0",
        lambda model, ids, outputs: run_real_with(
            model, ids, {head: o for head, o in outputs.items() if head[0] == 0}
        ),
    ),
    (
        "head_logits",
        "one epsilon",
        lambda model, *given: head_logits(replace(model, epsilon=1e-5), *given),
    ),
    (
        "head_logits",
        "without a batch",
        lambda model, trace, n: head_logits(model, trace, n) if trace.logits.ndim == 2 else 0 * n,
    ),
    ("fold_gain", "pairs of heads", _in_pairs),
    (
        "patching_effect",
        "a head that carries",
        lambda *differences: max(0, effect_by_sums(*differences)),
    ),
    (
        "fraction_below",
        "ranks without ties",
        lambda logits, tokens: (
            np.take_along_axis(
                logits.argsort(axis=-1).argsort(axis=-1), tokens[..., None], axis=-1
            )[..., 0]
            / logits.shape[-1]
        ),
    ),
    (
        "fraction_below",
        "without a batch",
        lambda logits, tokens: (
            (logits < logits[np.arange(len(tokens)), tokens][..., None]).mean(axis=-1)
            if tokens.ndim == 1
            else 0 * tokens
        ),
    ),
    (
        "earlier_and_later",
        "not the first digit",
        lambda p, digit: np.array([p[: digit or None].sum(), p[digit + 1 :].sum()]),
    ),
    (
        "earlier_and_later",
        "the rest of 1",
        lambda p, digit: np.array([p[:digit].sum(), 1 - p[: digit + 1].sum()]),
    ),
]

"""Right answers of chapter 25 in other ways, and edits that make it too narrow."""

from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.models.real.model import run_real


def outputs_by_partial(model, ids, outputs):
    def put(output, own):
        return 0 * own + output

    return run_real(model, ids, hooks={head: partial(put, o) for head, o in outputs.items()})


def terms_by_einsum(model, trace, tokens):
    end = trace.X[-1, ..., -1, :] + trace.feeds[-1, ..., -1, :]
    W_O = np.stack([block.params.W_O for block in model.blocks])
    W_O = W_O.reshape(len(W_O), -1, trace.heads.shape[-1], end.shape[-1])  # (L, H, d_v, d_model)
    added = np.einsum("l...hv,lhvm->l...hm", trace.heads[..., -1, :], W_O)
    end = end + added[-1].sum(axis=-2)
    divisor = np.sqrt((end**2).mean(axis=-1) + model.epsilon)
    added = added * model.gain / divisor[..., None, None]
    return np.einsum("l...hm,nm->l...hn", added, model.E[tokens])


def gains_first(block):
    gain = np.diag(block.gain_1)
    W = {name: gain @ getattr(block.params, name) for name in ("W_Q", "W_K", "W_V")}
    return replace(block.params, **W).expanded()


def effect_by_sums(whole, patched, other):
    return (np.sum(whole) - np.sum(patched)) / (np.sum(whole) - np.sum(other))


def below_by_sorting(logits, tokens):
    ordered = np.sort(logits.reshape(-1, logits.shape[-1]), axis=-1)
    flat = zip(ordered, logits.reshape(ordered.shape), tokens.ravel(), strict=True)
    found = [np.searchsorted(rows, own[token]) for rows, own, token in flat]
    return np.array(found).reshape(tokens.shape) / logits.shape[-1]


def sums_by_masks(probabilities, digit):
    digits = np.arange(10)
    return np.stack([digits < digit, digits > digit]) @ probabilities


VARIANTS = [
    ("run_real_with", "partial", outputs_by_partial),
    ("head_logits", "einsum", terms_by_einsum),
    ("fold_gain", "gains first", gains_first),
    ("patching_effect", "sums", effect_by_sums),
    ("fraction_below", "sorting", below_by_sorting),
    ("earlier_and_later", "masks", sums_by_masks),
]


NARROW = [
    ("run_real_with", "only layer 0", "outputs.items()}", "outputs.items() if head[0] == 0}"),
    (
        "fold_gain",
        "pairs of heads",
        "params.W_K, params.W_V",
        "*(W[np.arange(params.n_heads) // 2 % 3] for W in (block.params.W_K, block.params.W_V))",
    ),
    (
        "patching_effect",
        "a head that carries",
        "(whole - patched).mean() / (whole - other).mean()",
        "max(0, (whole - patched).mean() / (whole - other).mean())",
    ),
    (
        "fraction_below",
        "ranks without ties",
        "(logits < own).mean(axis=-1)",
        "((logits <= own).sum(axis=-1) - 1) / logits.shape[-1]",
    ),
    ("earlier_and_later", "not the first digit", "[:digit]", "[: digit or None]"),
    (
        "earlier_and_later",
        "the rest of 1",
        "probabilities[digit + 1 :].sum()",
        "1 - probabilities[: digit + 1].sum()",
    ),
]

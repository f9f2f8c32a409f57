"""Right answers of chapter 25 in other ways, and edits that make it too narrow."""

import numpy as np


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

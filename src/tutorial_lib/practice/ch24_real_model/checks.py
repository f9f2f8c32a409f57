"""Checks for chapter 24."""

import numpy as np

from tutorial_lib.models.real.model import rms_norm_with_gain, swiglu
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_MODEL, WIDE, B, T, normal

MISTAKES, check = room(__file__)
D_FEED = 19


def check_rms_norm_with_gain(function):
    """Check `rms_norm_with_gain(X, gain, epsilon)` of chapter 24. Prints an account."""
    small = normal(242, T, D_MODEL) / 1000 * (np.arange(T) != 1)[:, None]
    cases = (
        Case("three rows", _normed(3 + normal(240, 3, D_MODEL), 1e-6)),
        Case("a batch of wider rows", _normed(10 * normal(241, B, T, WIDE), 1e-5)),
        Case("small rows, among them one of zeros", _normed(small, 1e-5)),
        Case("a large epsilon", _normed(normal(243, T, D_MODEL), 0.1)),
    )
    check("rms_norm_with_gain", function, rms_norm_with_gain, cases)


def _normed(X, epsilon):
    return {"X": X, "gain": 1 + normal(244, X.shape[-1]), "epsilon": epsilon}


def check_swiglu(function):
    """Check `swiglu(X, W_gate, W_up, W_down)` of chapter 24. Prints an account."""
    far = _feed(248)
    far |= {"W_gate": 300 * far["W_gate"], "W_up": far["W_up"] / 300}
    cases = (
        Case("five rows", {"X": normal(245, T, D_MODEL)} | _feed(246)),
        Case("a batch of wider rows", {"X": normal(247, B, T, WIDE)} | _feed(249, WIDE)),
        Case("gates near 1,000 and -1,000", {"X": normal(250, T, D_MODEL)} | far),
    )
    check("swiglu", function, swiglu, cases)


def _feed(seed, d_model=D_MODEL):
    W_gate, W_up = normal(seed, 2, d_model, D_FEED)
    return {"W_gate": W_gate, "W_up": W_up, "W_down": normal(seed + 20, D_FEED, d_model)}


def _dequantise(scale, minimum, nibbles):
    codes = np.concatenate((nibbles & 15, nibbles >> 4), axis=1)  # (n, 32)
    return (minimum[:, None] + scale[:, None] * codes).ravel()


def check_dequantise(function):
    """Check `dequantise(scale, minimum, nibbles)`, exercise of chapter 24."""
    single = _blocks(253, 7)
    for name in ("scale", "minimum"):  # as in a file: float32 holds every result exactly
        single[name] = single[name].astype(np.float16).astype(np.float32)
    cases = (
        Case("one block", _blocks(251, 1)),
        Case("five blocks", _blocks(252, 5)),
        Case("seven blocks in single precision", single),
    )
    check("dequantise", function, _dequantise, cases)


def _blocks(seed, n):
    nibbles = np.random.default_rng(seed).integers(0, 256, (n, 16), dtype=np.uint8)
    return {
        "scale": 0.1 + np.abs(normal(seed + 10, n)),
        "minimum": -1 - np.abs(normal(seed + 20, n)),
        "nibbles": nibbles,
    }


def _first_and_last(T, width):
    rows, keys = np.arange(T)[:, None], np.arange(T)
    recent = keys > rows - (width - 1)
    return (keys <= rows) & (recent | (keys == 0))


def check_first_and_last(function):
    """Check `first_and_last(T, width)`, exercise of chapter 24."""
    cases = (
        Case("7 tokens, width 4", {"T": 7, "width": 4}),
        Case("5 tokens, width 2", {"T": 5, "width": 2}),
        Case("a width above the number of tokens", {"T": 4, "width": 11}),
    )
    check("first_and_last", function, _first_and_last, cases)


def _copy_row(feed, source, target):
    changed = feed.copy()
    changed[..., target, :] = feed[..., source, :]
    return changed


def check_copy_row(function):
    """Check `copy_row(feed, source, target)`, exercise of chapter 24."""
    cases = (
        Case("row 0 into a later row", _copied(254, 0, 3)),
        Case("a later row into an earlier one", _copied(255, 4, 2)),
        Case("a batch", _copied(256, 0, 1, B)),
    )
    check("copy_row", function, _copy_row, cases)


def _copied(seed, source, target, *batch):
    return {"feed": normal(seed, *batch, T, D_MODEL), "source": source, "target": target}

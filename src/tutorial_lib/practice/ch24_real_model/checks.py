"""Checks for chapter 24."""

import numpy as np

from tutorial_lib.models.real.model import rms_norm_with_gain, swiglu
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_MODEL, WIDE, B, T, normal

MISTAKES, cases_of = read_room(__file__)
D_FEED = 19


@cases_of(rms_norm_with_gain)
def check_rms_norm_with_gain():
    small = normal(242, T, D_MODEL) / 1000 * (np.arange(T) != 1)[:, None]
    yield "three rows", _norm_case(3 + normal(240, 3, D_MODEL), 1e-6)
    yield "a batch of wider rows", _norm_case(10 * normal(241, B, T, WIDE), 1e-5)
    yield "small rows, among them one of zeros", _norm_case(small, 1e-5)
    yield "a large epsilon", _norm_case(normal(243, T, D_MODEL), 0.1)


def _norm_case(X, epsilon):
    return {"X": X, "gain": 1 + normal(244, X.shape[-1]), "epsilon": epsilon}


@cases_of(swiglu)
def check_swiglu():
    far = _swiglu_weights(248)
    far |= {"W_gate": 300 * far["W_gate"], "W_up": far["W_up"] / 300}
    yield "five rows", {"X": normal(245, T, D_MODEL)} | _swiglu_weights(246)
    yield "a batch of wider rows", {"X": normal(247, B, T, WIDE)} | _swiglu_weights(249, WIDE)
    yield "gates near 1,000 and -1,000", {"X": normal(250, T, D_MODEL)} | far


def _swiglu_weights(seed, d_model=D_MODEL):
    W_gate, W_up = normal(seed, 2, d_model, D_FEED)
    return {"W_gate": W_gate, "W_up": W_up, "W_down": normal(seed + 20, D_FEED, d_model)}


def _dequantise(scale, minimum, nibbles):
    codes = np.concatenate((nibbles & 15, nibbles >> 4), axis=1)  # (n, 32)
    return (minimum[:, None] + scale[:, None] * codes).ravel()


@cases_of(_dequantise)
def check_dequantise():
    single = _q4_blocks(253, 7)
    for name in ("scale", "minimum"):  # as in a file: float32 holds every result exactly
        single[name] = single[name].astype(np.float16).astype(np.float32)
    yield "one block", _q4_blocks(251, 1)
    yield "five blocks", _q4_blocks(252, 5)
    yield "seven blocks in single precision", single


def _q4_blocks(seed, n):
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


@cases_of(_first_and_last)
def check_first_and_last():
    yield "7 tokens, width 4", {"T": 7, "width": 4}
    yield "5 tokens, width 2", {"T": 5, "width": 2}
    yield "a width above the number of tokens", {"T": 4, "width": 11}


def _copy_row(feed, source, target):
    changed = feed.copy()
    changed[..., target, :] = feed[..., source, :]
    return changed


@cases_of(_copy_row)
def check_copy_row():
    yield "row 0 into a later row", _copy_case(254, 0, 3)
    yield "a later row into an earlier one", _copy_case(255, 4, 2)
    yield "a batch", _copy_case(256, 0, 1, B)


def _copy_case(seed, source, target, *batch):
    return {"feed": normal(seed, *batch, T, D_MODEL), "source": source, "target": target}

"""Checks for chapter 25."""

import numpy as np

from tutorial_lib.models.real import heads
from tutorial_lib.models.real.model import BlockParams, RealModel, run_real
from tutorial_lib.models.real.tokenizer import Tokenizer
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_MODEL, normal
from tutorial_lib.variants.grouped import GroupedParams

MISTAKES, cases_of = read_room(__file__)
NO_TEXTS = Tokenizer((), ())  # the models of the checks get ids


def _block(seed, sizes):
    n_heads, n_kv_heads, d_k, d_v, d_feed = sizes
    shapes = [(n_heads, D_MODEL, d_k), (n_kv_heads, D_MODEL, d_k), (n_kv_heads, D_MODEL, d_v)]
    shapes += [(n_heads * d_v, D_MODEL), (D_MODEL, d_feed), (D_MODEL, d_feed), (d_feed, D_MODEL)]
    drawn = [normal(seed + i, *shape) / np.sqrt(shape[-2]) for i, shape in enumerate(shapes)]
    gains = np.random.default_rng(seed + 7).uniform(0.5, 2, (2, D_MODEL))
    return BlockParams(gains[0], GroupedParams(*drawn[:4]), gains[1], *drawn[4:])


def _model(seed, sizes, *, n_layers, vocabulary, **rest):
    blocks = [_block(seed + 10 * n, sizes) for n in range(n_layers)]
    E, gain = normal(seed + 8, vocabulary, D_MODEL), 1 + 0.5 * np.abs(normal(seed + 9, D_MODEL))
    return RealModel(E, blocks, gain, tokenizer=NO_TEXTS, **rest)


PAIRS, THREES = (4, 2, 16, 9, 19), (9, 3, 14, 17, 23)  # heads, KV heads, d_k, d_v, d_feed


def _three_layers(seed):
    """A model, and ids of one sequence."""
    rest = {"n_layers": 3, "vocabulary": 29, "epsilon": 1e-5, "base": 500.0}
    ids = np.random.default_rng(seed + 50).integers(0, 29, 7)
    return {"model": _model(seed, PAIRS, **rest), "ids": ids}


def _two_layers(seed):
    """A model of another kind, and ids of four sequences."""
    rest = {"n_layers": 2, "vocabulary": 24, "epsilon": 1e-2, "base": 10_000.0}
    ids = np.random.default_rng(seed + 50).integers(0, 24, (4, 11))
    return {"model": _model(seed, THREES, **rest), "ids": ids}


@cases_of(heads.run_real_with)
def check_run_real_with():
    one, other = _three_layers(0), _two_layers(100)
    mean, each = {(0, 1): normal(200, 9)}, {(1, 7): normal(201, 4, 11, 17)}
    apart, beside = {(0, 1): normal(202, 17)} | each, each | {(1, 0): normal(203, 11, 17)}
    yield "one vector for all tokens, layer 0", one | {"outputs": mean}
    yield "a vector for each token, the last layer", other | {"outputs": each}
    yield "a head of each layer", other | {"outputs": apart}
    yield "two heads of one layer", other | {"outputs": beside}


@cases_of(heads.head_logits)
def check_head_logits():
    yield "one sequence, three layers", _traced(**_three_layers(300)) | {"tokens": _five_ids(29)}
    yield "four sequences, two layers", _traced(**_two_layers(400)) | {"tokens": _five_ids(24)}


def _traced(model, ids):
    return {"model": model, "trace": run_real(model, ids)}


def _five_ids(vocabulary):
    """Five different ids."""
    return np.random.default_rng(vocabulary).permutation(vocabulary)[:5]


@cases_of(heads.fold_gain)
def check_fold_gain():
    yield "pairs of heads share keys", {"block": _block(500, PAIRS)}
    yield "three heads share keys", {"block": _block(520, THREES)}


def _patching_effect(whole, patched, other):
    return (whole - patched).mean() / (whole - other).mean()


@cases_of(_patching_effect)
def check_patching_effect():
    same = _differences(545, 11)
    same["other"][3] = same["whole"][3]
    yield "seven pairs", _differences(540, 7)
    yield "a head that votes for the other word", _differences(541, 5, effect=-0.3)
    yield "a pair whose two texts have one difference", same


def _differences(seed, n, *, effect=0.6):
    whole, noise, other = 3 + normal(seed, n), normal(seed + 10, n), -2 + normal(seed + 20, n)
    return {"whole": whole, "patched": whole - effect * (whole - other) + noise / 5, "other": other}


def _fraction_below(logits, tokens):
    own = np.take_along_axis(logits, tokens[..., None], axis=-1)  # (..., 1)
    return (logits < own).mean(axis=-1)


@cases_of(_fraction_below)
def check_fraction_below():
    ties = _logits_and_ids(562, 5, 19)
    ties["logits"] = np.floor(ties["logits"])
    yield "seven positions", _logits_and_ids(560, 7, 23)
    yield "a batch", _logits_and_ids(561, 3, 5, 29)
    yield "equal logits", ties


def _logits_and_ids(seed, *shape):
    tokens = np.random.default_rng(seed + 10).integers(0, shape[-1], shape[:-1])
    return {"logits": 3 * normal(seed, *shape), "tokens": tokens}


def _earlier_and_later(probabilities, digit):
    return np.array([probabilities[:digit].sum(), probabilities[digit + 1 :].sum()])


@cases_of(_earlier_and_later)
def check_earlier_and_later():
    yield from (
        (label, {"probabilities": _ten_probabilities(580 + digit), "digit": digit})
        for label, digit in (("the digit 6", 6), ("0, before all others", 0), ("9, the last", 9))
    )


def _ten_probabilities(seed):
    """Probabilities of ten tokens among more, so their sum is below 1."""
    exponentials = np.exp(normal(seed, 17))
    return exponentials[:10] / exponentials.sum()

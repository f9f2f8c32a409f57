"""Checks for chapter 19."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models.block import block, mlp, rms_norm
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, B, H, S, T, masks, normal
from tutorial_lib.projection import init_params

MISTAKES, cases_of = read_room(__file__)
D_FEED = 19


@cases_of(rms_norm)
def check_rms_norm():
    zeros = normal(149, T, D_MODEL) * (np.arange(T) != 1)[:, None]
    yield "five rows", {"X": 3 + normal(150, T, D_MODEL)}
    yield "a batch of wider rows", {"X": 10 * normal(151, B, T, WIDE)}
    yield "a row of zeros", {"X": zeros}


def _mlp_weights(seed, d_model=D_MODEL):
    return {"W_1": normal(seed, d_model, D_FEED), "W_2": normal(seed + 1, D_FEED, d_model)}


@cases_of(mlp)
def check_mlp():
    yield "five rows", {"X": normal(152, T, D_MODEL)} | _mlp_weights(153)
    yield "a batch", {"X": normal(155, B, T, D_MODEL)} | _mlp_weights(156)


def _block_inputs(seed, *batch, d_model=D_MODEL, d_k=D_K):
    rng = np.random.default_rng(seed)
    params = init_params(rng, d_model=d_model, n_heads=H, d_k=d_k, d_v=D_V)
    X = 2 + normal(seed + 1, *batch, T, d_model)
    return {"X": X, "params": params} | _mlp_weights(seed + 2, d_model)


@cases_of(block)
def check_block():
    batch = _block_inputs(166, B)
    own = {
        label: mask[..., -T:] for label, mask in masks(empty=False).items()
    }  # of the last T keys
    yield "five rows", _block_inputs(158)
    yield "wider rows, narrower heads", _block_inputs(162, d_model=WIDE, d_k=S)
    yield from ((label, batch, {"mask": mask}) for label, mask in own.items())


def _sentence_entropy(clause, again):
    def choice(p):
        return -p * np.log(p) - (1 - p) * np.log(1 - p)

    return np.log(2) * (1 + clause) + choice(clause) + choice(again) / (1 - again)


@cases_of(_sentence_entropy)
def check_sentence_entropy():
    yield "both at 1/2", {"clause": 0.5, "again": 0.5}
    yield "few clauses, many words", {"clause": 0.2, "again": 0.75}
    yield "many clauses, few words", {"clause": 0.9, "again": 0.1}


def _next_words(logits, luck):
    ends = np.cumsum(softmax(logits[:, -1]), axis=-1)
    return (ends <= luck[:, None]).sum(axis=-1)


@cases_of(_next_words)
def check_next_words():
    even = np.zeros((4, T, 8))  # segments that end at 1/8, 1/4, …, 1
    yield "six sequences", {"logits": normal(170, 6, T, 9), "luck": np.linspace(0.05, 0.95, 6)}
    yield "large logits", {"logits": 900 + normal(171, 3, T, 7), "luck": np.full(3, 0.7)}
    yield "on the edge", {"logits": even, "luck": np.array([0, 0.25, 0.5, 0.75])}


def _widest(parameters, *, words, length, layers):
    d_model, tables, blocks = 0, 2 * words + length, 12 * layers
    while tables * (d_model + 1) + blocks * (d_model + 1) ** 2 <= parameters:
        d_model += 1
    return d_model


@cases_of(_widest)
def check_widest():
    yield "this model", {"parameters": 49_664}, {"words": 100, "length": 64, "layers": 2}
    yield "many words", {"parameters": 900_000}, {"words": 5_000, "length": 600, "layers": 3}
    yield "it fits exactly", {"parameters": 9_922}, {"words": 10, "length": 90, "layers": 6}

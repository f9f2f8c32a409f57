"""Checks for chapter 21."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models import circuits
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, H, normal
from tutorial_lib.projection import Params

MISTAKES, cases_of = read_room(__file__)
N, WORDS = 4, 7  # sequences, words there are


def _params(seed, *, d_k=D_K):
    wide = [normal(seed + i, H, D_MODEL, d) for i, d in enumerate((d_k, d_k, D_V))]
    return Params(*wide, normal(seed + 3, H * D_V, D_MODEL))


def _head_cases(seed):
    return (
        ("the first head", {"params": _params(seed), "head": 0}),
        ("the last head", {"params": _params(seed + 4, d_k=WIDE), "head": H - 1}),
    )


@cases_of(circuits.qk_circuit)
def check_qk_circuit():
    yield from _head_cases(0)


@cases_of(circuits.ov_circuit)
def check_ov_circuit():
    yield from _head_cases(10)


@cases_of(circuits.composition)
def check_composition():
    square = {"first": normal(20, D_MODEL, D_MODEL), "second": 3 * normal(21, D_MODEL, D_MODEL)}
    narrow = {"first": normal(22, D_MODEL, D_K), "second": normal(23, D_K, D_V)}
    yield "square matrices", square
    yield "factors of a head", narrow


def _match_case(seed, n_words=WORDS):
    pair = {
        name: normal(seed + i, D_MODEL, D_MODEL) / D_MODEL
        for i, name in enumerate(("W_QK", "W_OV"))
    }
    return {"E": normal(seed + 2, n_words, D_MODEL)} | pair


@cases_of(circuits.match_scores)
def check_match_scores():
    yield "seven words", _match_case(30)
    yield "two words", _match_case(33, 2)


def _match_through_queries(E, W_QK, W_OV):
    return E @ W_OV @ W_QK @ E.T


@cases_of(_match_through_queries)
def check_match_through_queries():
    yield "seven words", _match_case(36)
    yield "two words", _match_case(39, 2)


def _weights(seed, period):
    scores = 2 * normal(seed, N, H, 2 * period, 2 * period)
    return softmax(np.where(np.tri(2 * period, dtype=bool), scores, -np.inf))


def _beyond_positions(twice, fresh, p):
    t = np.arange(p, 2 * p)
    both = [weights[:, :, t, t - p + 1].mean(axis=(0, 2)) for weights in (twice, fresh)]
    return both[0] - both[1]


@cases_of(_beyond_positions)
def check_beyond_positions():
    yield from (
        (f"blocks of {p}", {"twice": _weights(seed, p), "fresh": _weights(seed + 1, p), "p": p})
        for seed, p in ((42, 5), (44, 7))
    )


def _score_terms(params, head, query, key):
    return query @ circuits.qk_circuit(params, head) @ key.T / np.sqrt(params.d_k)


@cases_of(_score_terms)
def check_score_terms():
    rows = {"query": normal(50, 2, D_MODEL), "key": normal(51, 2, D_MODEL)}
    yield "the second head", {"params": _params(52), "head": 1} | rows
    yield "the last head, wider", {"params": _params(56, d_k=WIDE), "head": H - 1} | rows

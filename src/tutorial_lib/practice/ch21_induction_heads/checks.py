"""Checks for chapter 21."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models import circuits
from tutorial_lib.practice.account import room
from tutorial_lib.practice.calls import Case
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, WIDE, H, normal
from tutorial_lib.projection import Params

MISTAKES, check = room(__file__)
N, WORDS = 4, 7  # sequences, words there are


def _params(seed, *, d_k=D_K):
    wide = [normal(seed + i, H, D_MODEL, d) for i, d in enumerate((d_k, d_k, D_V))]
    return Params(*wide, normal(seed + 3, H * D_V, D_MODEL))


def _heads(seed):
    return (
        Case("the first head", {"params": _params(seed), "head": 0}),
        Case("the last head", {"params": _params(seed + 4, d_k=WIDE), "head": H - 1}),
    )


def check_qk_circuit(function):
    """Check `qk_circuit(params, head)` of chapter 21. Prints an account."""
    check("qk_circuit", function, circuits.qk_circuit, _heads(0))


def check_ov_circuit(function):
    """Check `ov_circuit(params, head)` of chapter 21. Prints an account."""
    check("ov_circuit", function, circuits.ov_circuit, _heads(10))


def check_composition(function):
    """Check `composition(first, second)` of chapter 21. Prints an account."""
    square = {"first": normal(20, D_MODEL, D_MODEL), "second": 3 * normal(21, D_MODEL, D_MODEL)}
    narrow = {"first": normal(22, D_MODEL, D_K), "second": normal(23, D_K, D_V)}
    cases = (Case("square matrices", square), Case("factors of a head", narrow))
    check("composition", function, circuits.composition, cases)


def _words(seed, n=WORDS):
    pair = {
        name: normal(seed + i, D_MODEL, D_MODEL) / D_MODEL
        for i, name in enumerate(("W_QK", "W_OV"))
    }
    return {"E": normal(seed + 2, n, D_MODEL)} | pair


def check_match_scores(function):
    """Check `match_scores(E, W_QK, W_OV)` of chapter 21. Prints an account."""
    cases = (Case("seven words", _words(30)), Case("two words", _words(33, 2)))
    check("match_scores", function, circuits.match_scores, cases)


def _match_through_queries(E, W_QK, W_OV):
    return E @ W_OV @ W_QK @ E.T


def check_match_through_queries(function):
    """Check `match_through_queries(E, W_QK, W_OV)`, exercise of chapter 21."""
    cases = (Case("seven words", _words(36)), Case("two words", _words(39, 2)))
    check("match_through_queries", function, _match_through_queries, cases)


def _weights(seed, p):
    scores = 2 * normal(seed, N, H, 2 * p, 2 * p)
    return softmax(np.where(np.tri(2 * p, dtype=bool), scores, -np.inf))


def _beyond_positions(twice, fresh, p):
    t = np.arange(p, 2 * p)
    both = [weights[:, :, t, t - p + 1].mean(axis=(0, 2)) for weights in (twice, fresh)]
    return both[0] - both[1]


def check_beyond_positions(function):
    """Check `beyond_positions(twice, fresh, p)`, exercise of chapter 21."""
    cases = tuple(
        Case(f"blocks of {p}", {"twice": _weights(seed, p), "fresh": _weights(seed + 1, p), "p": p})
        for seed, p in ((42, 5), (44, 7))
    )
    check("beyond_positions", function, _beyond_positions, cases)


def _score_terms(params, head, query, key):
    return query @ circuits.qk_circuit(params, head) @ key.T / np.sqrt(params.d_k)


def check_score_terms(function):
    """Check `score_terms(params, head, query, key)`, exercise of chapter 21."""
    rows = {"query": normal(50, 2, D_MODEL), "key": normal(51, 2, D_MODEL)}
    cases = (
        Case("the second head", {"params": _params(52), "head": 1} | rows),
        Case("the last head, wider", {"params": _params(56, d_k=WIDE), "head": H - 1} | rows),
    )
    check("score_terms", function, _score_terms, cases)

"""Right answers of chapter 21, written in other ways."""

import numpy as np


def through_queries_by_einsum(E, W_QK, W_OV):
    return np.einsum("ia,ab,bc,jc->ij", E, W_OV, W_QK, E)


def beyond_by_loops(twice, fresh, p):
    found = np.zeros(twice.shape[1])
    for t in range(p, 2 * p):
        found += (twice[:, :, t, t - p + 1] - fresh[:, :, t, t - p + 1]).mean(axis=0)
    return found / p


def terms_one_by_one(params, head, query, key):
    terms = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        terms[i, j] = (query[i] @ params.W_Q[head]) @ (key[j] @ params.W_K[head])
    return terms / params.d_k**0.5


VARIANTS = [
    ("match_through_queries", "einsum", through_queries_by_einsum),
    ("beyond_positions", "loops", beyond_by_loops),
    ("score_terms", "one by one", terms_one_by_one),
]


NARROW = [
    ("composition", "square matrices", "norms =", "assert first.shape == second.shape\nnorms ="),
    ("match_scores", "seven words", "return", "assert len(E) == 7\nreturn"),
]

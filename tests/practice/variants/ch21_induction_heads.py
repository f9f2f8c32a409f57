"""Right answers of chapter 21, written in other ways."""

import numpy as np


def qk_by_einsum(params, head):
    return np.einsum("ik,jk->ij", params.W_Q[head], params.W_K[head])


def ov_by_reshape(params, head):
    W_O = params.W_O.reshape(params.n_heads, params.d_v, -1)
    return params.W_V[head] @ W_O[head]


def composition_of_directions(first, second):
    lengths = [np.sqrt((matrix**2).sum()) for matrix in (first, second)]
    return np.linalg.norm((first / lengths[0]) @ (second / lengths[1]))


def match_by_one_matrix(E, W_QK, W_OV):
    return E @ (W_QK @ W_OV.T) @ E.T


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
    ("qk_circuit", "einsum", qk_by_einsum),
    ("ov_circuit", "reshape", ov_by_reshape),
    ("composition", "directions", composition_of_directions),
    ("match_scores", "one matrix", match_by_one_matrix),
    ("match_through_queries", "einsum", through_queries_by_einsum),
    ("beyond_positions", "loops", beyond_by_loops),
    ("score_terms", "one by one", terms_one_by_one),
]


NARROW = [
    ("composition", "square matrices", "norms =", "assert first.shape == second.shape\nnorms ="),
    ("match_scores", "seven words", "return", "assert len(E) == 7\nreturn"),
]

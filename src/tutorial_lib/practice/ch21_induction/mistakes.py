"""Wrong forms of the functions of chapter 21."""

import numpy as np

from tutorial_lib.models import circuits
from tutorial_lib.practice.mistake import Mistake

_QK_CIRCUIT = (
    Mistake(
        "keys_first",
        "queries and keys are exchanged: it is the matrix of y W_QK xᵀ",
        "The query's row stands on the left: W_Q before W_K.",
        lambda params, head: params.W_K[head] @ params.W_Q[head].T,
    ),
    Mistake(
        "narrow",
        "it multiplies over d_model, so its shape is (d_k, d_k)",
        "A row of X meets W_Q first and W_K last: W_Q @ W_K.T, over the d_k numbers between.",
        lambda params, head: params.W_Q[head].T @ params.W_K[head],
    ),
    Mistake(
        "root_inside",
        "it is divided by the root of d_k",
        "The circuit gives products; the score divides them by the root.",
        lambda params, head: params.W_Q[head] @ params.W_K[head].T / np.sqrt(params.d_k),
    ),
    Mistake(
        "queries_twice",
        "it uses W_Q for the keys too",
        "The keys have their own matrix: W_Q[head] @ W_K[head].T.",
        lambda params, head: params.W_Q[head] @ params.W_Q[head].T,
    ),
)


def _fitting_rows(params, head):
    """The rows of a head, if heads lay one number after the other."""
    return params.W_O[head :: params.n_heads]


_OV_CIRCUIT = (
    Mistake(
        "rows_of_the_first",
        "it takes the first d_v rows of W_O for every head",
        "Head h has rows h * d_v to (h + 1) * d_v of W_O, since concat lays heads side by side.",
        lambda params, head: params.W_V[head] @ params.W_O[: params.d_v],
    ),
    Mistake(
        "rows_by_d_k",
        "it counts rows of W_O in steps of d_k",
        "A head is d_v wide after the weights: count in steps of d_v.",
        lambda params, head: (
            params.W_V[head] @ params.W_O[head * params.d_k : head * params.d_k + params.d_v]
        ),
    ),
    Mistake(
        "interleaved_rows",
        "it takes every H-th row of W_O",
        "Heads lie side by side in concat, not number by number: take d_v rows in one piece.",
        lambda params, head: params.W_V[head] @ _fitting_rows(params, head),
    ),
    Mistake(
        "output_first",
        "it is transposed: rows of X would meet W_O before W_V",
        "A row of X meets W_V first: W_V[head] @ its rows of W_O.",
        lambda params, head: circuits.ov_circuit(params, head).T,
    ),
)


def _length(matrix):
    return np.linalg.norm(matrix)


_COMPOSITION = (
    Mistake(
        "one_length",
        "it divides by the length of the first matrix alone",
        "Divide by both lengths, or a matrix of large numbers seems to read more.",
        lambda first, second: _length(first @ second) / _length(first),
    ),
    Mistake(
        "no_length",
        "it divides by no length",
        "Divide by the lengths of both matrices: a share has no scale.",
        lambda first, second: _length(first @ second),
    ),
    Mistake(
        "largest_stretch",
        "its lengths are the largest singular values",
        "The length of a matrix here is the root of the sum of all squares: np.linalg.norm(A).",
        lambda first, second: (
            np.linalg.norm(first @ second, 2)
            / (np.linalg.norm(first, 2) * np.linalg.norm(second, 2))
        ),
    ),
    Mistake(
        "squared",
        "its lengths are sums of squares, without the root",
        "Take the root of each sum of squares.",
        lambda first, second: (
            _length(first @ second) ** 2 / (_length(first) ** 2 * _length(second) ** 2)
        ),
    ),
)

_MATCH_SCORES = (
    Mistake(
        "through_the_query",
        "the word that asks was handed on, and not the word that is asked",
        "The earlier head wrote into the key's row: (E @ W_OV) stands right, transposed.",
        lambda E, W_QK, W_OV: E @ W_OV @ W_QK @ E.T,
    ),
    Mistake(
        "turned",
        "rows and columns are exchanged",
        "Row: the word that asks, E @ W_QK. Column: the word handed on.",
        lambda E, W_QK, W_OV: circuits.match_scores(E, W_QK, W_OV).T,
    ),
    Mistake(
        "not_handed_on",
        "W_OV is not used: the keys are the words themselves",
        "The key's row holds what the earlier head made of the word: E @ W_OV.",
        lambda E, W_QK, W_OV: E @ W_QK @ E.T,
    ),
    Mistake(
        "ov_turned",
        "W_OV is transposed: a row of X would leave by the way it comes in",
        "What is handed on is E @ W_OV; transpose it as a whole, (E @ W_OV).T.",
        lambda E, W_QK, W_OV: E @ W_QK @ (E @ W_OV.T).T,
    ),
)

_MATCH_THROUGH_QUERIES = (
    Mistake(
        "through_the_keys",
        "the key was handed on, as in match_scores",
        "Here the query's row holds what was handed on: E @ W_OV stands on the left.",
        circuits.match_scores,
    ),
    Mistake(
        "both_handed_on",
        "both query and key were handed on",
        "The key holds its own word: E on the right.",
        lambda E, W_QK, W_OV: E @ W_OV @ W_QK @ (E @ W_OV).T,
    ),
    Mistake(
        "turned",
        "rows and columns are exchanged",
        "Row: the word that was handed on to the query. Column: the key's word.",
        lambda E, W_QK, W_OV: (E @ W_OV @ W_QK @ E.T).T,
    ),
    Mistake(
        "qk_turned",
        "W_QK is transposed: the query's row meets W_K",
        "The query stands left of W_QK: E @ W_OV @ W_QK.",
        lambda E, W_QK, W_OV: E @ W_OV @ W_QK.T @ E.T,
    ),
)


def _looked(weights, p, *, shift=1):
    t = np.arange(p, 2 * p)
    return weights[:, :, t, t - p + shift].mean(axis=(0, 2))


def _whole_text(weights, p):
    t = np.arange(2 * p)
    return weights[:, :, t, t - p + 1].mean(axis=(0, 2))


_BEYOND_PLACES = (
    Mistake(
        "no_control",
        "it is the usual score alone: fresh is not taken away",
        "Take the same mean of `fresh`, and subtract it.",
        lambda twice, fresh, p: _looked(twice, p),
    ),
    Mistake(
        "on_the_copy",
        "it takes the weight on the earlier copy itself",
        "A token after the copy stands at t - p + 1.",
        lambda twice, fresh, p: _looked(twice, p, shift=0) - _looked(fresh, p, shift=0),
    ),
    Mistake(
        "whole_text",
        "it asks the first copy of the block too, which has no earlier one",
        "Queries are the places p to 2 * p - 1.",
        lambda twice, fresh, p: _whole_text(twice, p) - _whole_text(fresh, p),
    ),
    Mistake(
        "ratio",
        "it divides by the control",
        "Subtract: of a head with no weight there a ratio says anything.",
        lambda twice, fresh, p: _looked(twice, p) / _looked(fresh, p),
    ),
)


def _terms(params, head, query, key):
    return query @ circuits.qk_circuit(params, head) @ key.T / np.sqrt(params.d_k)


_SCORE_TERMS = (
    Mistake(
        "no_root",
        "its terms are products, not yet divided by the root of d_k",
        "A score is a product by np.sqrt(params.d_k).",
        lambda params, head, query, key: _terms(params, head, query, key) * np.sqrt(params.d_k),
    ),
    Mistake(
        "root_of_d_model",
        "its terms are divided by the root of d_model",
        "Queries and keys are d_k wide: divide by np.sqrt(params.d_k).",
        lambda params, head, query, key: (
            _terms(params, head, query, key) * np.sqrt(params.d_k / params.d_model)
        ),
    ),
    Mistake(
        "turned",
        "rows are the key's parts, columns the query's",
        "Row 0 is the query's word, column 0 the key's.",
        lambda params, head, query, key: _terms(params, head, query, key).T,
    ),
    Mistake(
        "key_asks",
        "the key asks and the query is asked",
        "The query's rows stand left of W_QK.",
        lambda params, head, query, key: _terms(params, head, key, query).T,
    ),
)

MISTAKES = {
    "qk_circuit": _QK_CIRCUIT,
    "ov_circuit": _OV_CIRCUIT,
    "composition": _COMPOSITION,
    "match_scores": _MATCH_SCORES,
    "match_through_queries": _MATCH_THROUGH_QUERIES,
    "beyond_places": _BEYOND_PLACES,
    "score_terms": _SCORE_TERMS,
}

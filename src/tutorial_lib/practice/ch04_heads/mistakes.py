"""Wrong forms of the functions of chapter 04."""

import math

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.practice.wrong import SPLIT_HEADS, masked


def _same(ids, strength, *, k=0, future=False):
    same = strength * (ids == ids[:, None])
    allowed = np.ones(same.shape, dtype=bool) if future else np.tril(np.ones(same.shape, bool), k=k)
    return masked(same, allowed)


_SAME_TOKEN_WEIGHTS = (
    Mistake(
        "sees_the_future",
        "it looks at later copies too",
        "Use causal_mask(T).",
        lambda ids, n_tokens, strength: _same(ids, strength, future=True),
    ),
    Mistake(
        "hides_the_diagonal",
        "a token may not look at itself",
        "The causal mask contains the diagonal.",
        lambda ids, n_tokens, strength: _same(ids, strength, k=-1),
    ),
    Mistake(
        "strength_squared",
        "the strength is in W_Q and in W_K, so it counts squared",
        "Put it into one of the two.",
        lambda ids, n_tokens, strength: _same(ids, strength**2),
    ),
    Mistake(
        "scaled",
        "the scores are divided by a square root once more",
        "Here the score of two equal tokens is `strength` itself.",
        lambda ids, n_tokens, strength: _same(ids, strength / math.sqrt(n_tokens)),
    ),
)


def _work(T, d_model, H, d_k):
    return 4 * T * d_model * H * d_k + 2 * T * T * H * d_k


_MULTIPLY_ADDS = (
    Mistake(
        "flop",
        "it counts flop, two for each multiply-add",
        "Count each multiply-add once.",
        lambda T, d_model, H, d_k: 2 * _work(T, d_model, H, d_k),
    ),
    Mistake(
        "one_head",
        "one head is counted instead of H",
        "Every head scores and mixes for itself.",
        lambda T, d_model, H, d_k: _work(T, d_model, 1, d_k),
    ),
    Mistake(
        "full_width",
        "scores and mixing are counted with d_model instead of d_k",
        "A dot product of one head adds up d_k products.",
        lambda T, d_model, H, d_k: _work(T, d_model, H, d_k) + 2 * T * T * H * (d_model - d_k),
    ),
    Mistake(
        "out_forgotten",
        "the output projection is not counted",
        "Add the product of (T, H*d_k) with W_O, (H*d_k, d_model).",
        lambda T, d_model, H, d_k: _work(T, d_model, H, d_k) - T * H * d_k * d_model,
    ),
    Mistake(
        "mixing_forgotten",
        "mixing the values is not counted",
        "Scores and mixing cost the same: T·T·d_k each, for each head.",
        lambda T, d_model, H, d_k: _work(T, d_model, H, d_k) - T * T * H * d_k,
    ),
)


def _ranks(M):
    return np.linalg.matrix_rank(M)


_SCORE_RANKS = (
    Mistake(
        "always_d_k",
        "it answers d_k, which is only the most that a rank can be",
        "Compute: np.linalg.matrix_rank of Q Kᵀ, head by head.",
        lambda Q, K: np.full(len(Q), Q.shape[-1]),
    ),
    Mistake(
        "rank_of_weights",
        "it is the rank of the weights; a softmax raises the rank",
        "Stop at the scores.",
        lambda Q, K: _ranks(softmax(Q @ np.swapaxes(K, -1, -2))),
    ),
    Mistake(
        "smaller_length",
        "it answers the smaller of T and S",
        "The inner width d_k limits the rank as well.",
        lambda Q, K: np.full(len(Q), min(Q.shape[-2], K.shape[-2])),
    ),
)


MISTAKES = {
    "split_heads": SPLIT_HEADS,
    "same_token_weights": _SAME_TOKEN_WEIGHTS,
    "multiply_adds": _MULTIPLY_ADDS,
    "score_ranks": _SCORE_RANKS,
}

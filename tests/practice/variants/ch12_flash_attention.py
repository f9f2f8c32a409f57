"""Right answers of chapter 12 in other ways, and edits that make it too narrow."""

import math

import numpy as np

import tutorial_lib as tl


def fold_of_two_states(state, scores, V):
    top = np.maximum(scores.max(axis=-1, keepdims=True), -1e30)
    exponentials = np.exp(scores - top)
    mixed = np.einsum("...ts,...sv->...tv", exponentials, V)
    own = top, exponentials.sum(axis=-1, keepdims=True), mixed
    raised = np.maximum(state[0], top)
    factors = np.exp(state[0] - raised), np.exp(top - raised)
    return [raised, *(factors[0] * state[i] + factors[1] * own[i] for i in (1, 2))]


def rows_at_once(Q, K, V, last, block):
    seen = np.arange(K.shape[-2]) <= last
    scores = np.where(seen, Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1]), -np.inf)
    heads = tl.scaled_dot_product_attention(Q, K, V, mask=seen)
    return heads, np.logaddexp.reduce(scores, axis=-1, keepdims=True, initial=np.finfo(V.dtype).min)


def flash_backward_at_once(trace, dheads, block=64):
    T, S = trace.Q.shape[-2], trace.K.shape[-2]
    seen = np.tri(T, S, S - T, dtype=bool) if trace.causal else np.ones((T, S), dtype=bool)
    scores = trace.Q @ np.swapaxes(trace.K, -1, -2) / math.sqrt(trace.Q.shape[-1])
    weights = tl.attention_weights(scores, mask=seen)
    return list(tl.attention_backward(trace.Q, trace.K, trace.V, weights, dheads))


def parts_one_after_the_other(heads, logsumexp):
    merged, so_far = heads[0], logsumexp[0]
    for part, log in zip(heads[1:], logsumexp[1:], strict=True):
        both = np.logaddexp(so_far, log)
        merged = np.exp(so_far - both) * merged + np.exp(log - both) * part
        so_far = both
    return merged, so_far


def tiles_by_pairs(T, window, block):
    back = np.arange(T)[:, None] - np.arange(T)
    starts = np.arange(0, T, block)
    seen = np.logical_or.reduceat((back >= 0) & (back < window), starts, axis=0)
    return np.logical_or.reduceat(seen, starts, axis=1)


VARIANTS = [
    ("fold_block", "the block's own state, then both", fold_of_two_states),
    ("attend_rows", "all keys at once", rows_at_once),
    ("flash_backward", "all keys at once", flash_backward_at_once),
    ("merge_parts", "one after the other", parts_one_after_the_other),
    ("tiles_to_score", "pairs, and then tiles", tiles_by_pairs),
    (
        "weights_on",
        "einsum, and one exponential",
        lambda Q, K, log: np.exp(np.einsum("...td,...sd->...ts", Q, K) * Q.shape[-1] ** -0.5 - log),
    ),
]


NARROW = [
    (
        "merge_parts",
        "two parts only",
        "top =",
        "heads, logsumexp = heads[:2], logsumexp[:2]\ntop =",
    ),
    ("tiles_to_score", "blocks that divide T", "(0, T, block)", "(0, T // block * block, block)"),
    ("flash_backward", "self-attention only", "S =", "assert trace.Q.shape == trace.K.shape\nS ="),
]

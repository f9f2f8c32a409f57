"""Right answers of the review of Part I in other ways."""

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch01_embeddings import embed_by_take, embed_in_place, embed_one_hot
from tests.practice.variants.ch03_attention_weights import (
    attention_scaled_before,
    causal_mask_by_comparing,
)
from tests.practice.variants.ch06_output_projection import layer_by_einsum


def sentence_by_heads(ids, E, P, params):
    X, mask = embed_one_hot(ids, E, P), causal_mask_by_comparing(ids.shape[-1])
    arrays = params.W_Q, params.W_K, params.W_V, np.split(params.W_O, params.n_heads)
    return sum(
        attention_scaled_before(X @ W_Q, X @ W_K, X @ W_V, mask=mask) @ rows
        for W_Q, W_K, W_V, rows in zip(*arrays, strict=True)
    )


def sentence_by_growing_lists(ids, E, P, params):
    X = embed_by_take(ids, E, P)
    rows = [
        tl.multi_head_attention(X[..., t : t + 1, :], params, context=X[..., : t + 1, :])
        for t in range(ids.shape[-1])
    ]
    return np.concatenate(rows, axis=-2)


def sentence_by_einsum(ids, E, P, params):
    mask = np.tri(ids.shape[-1], dtype=bool)
    return layer_by_einsum(embed_in_place(ids, E, P), params, mask=mask)


VARIANTS = [
    ("attend_to_sentence", "head by head", sentence_by_heads),
    ("attend_to_sentence", "word by word", sentence_by_growing_lists),
    ("attend_to_sentence", "einsum", sentence_by_einsum),
]

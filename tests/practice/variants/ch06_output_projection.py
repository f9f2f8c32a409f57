"""Right answers of chapter 06 in other ways, and edits that make it too narrow."""

import numpy as np

import tutorial_lib as tl
from tests.practice.variants.ch02_queries_keys_values import (
    project_wide,
)
from tests.practice.variants.ch03_attention_weights import (
    attention_scaled_before,
)


def mask_of_each(axis, length, mask):
    """The masks along an axis of heads or of sentences, as many as there are."""
    shape = list(mask.shape)
    shape[axis] = length
    return np.moveaxis(np.broadcast_to(mask, shape), axis, 0)


def layer_by_loop(X, params, *, context=None, mask=None):
    source = X if context is None else context
    H, blocks = params.n_heads, np.split(params.W_O, params.n_heads)
    masks = [mask] * H if mask is None or mask.ndim < 3 else mask_of_each(-3, H, mask)
    Y = np.zeros_like(X)
    for h, block in enumerate(blocks):
        Q, K, V = X @ params.W_Q[h], source @ params.W_K[h], source @ params.W_V[h]
        Y = Y + attention_scaled_before(Q, K, V, mask=masks[h]) @ block
    return Y


def layer_by_einsum(X, params, *, context=None, mask=None):
    source = X if context is None else context
    Q, K, V = (
        project_wide(x, W) for x, W in ((X, params.W_Q), (source, params.W_K), (source, params.W_V))
    )
    heads = attention_scaled_before(Q, K, V, mask=mask)
    blocks = params.W_O.reshape(params.n_heads, params.d_v, -1)
    return np.einsum("...htv,hvm->...tm", heads, blocks)


def layer_by_sequence(X, params, *, context=None, mask=None):
    if X.ndim == 2:
        return tl.multi_head_attention(X, params, context=context, mask=mask)
    contexts = [None] * len(X) if context is None else context
    masks = [mask] * len(X) if mask is None or mask.ndim < 4 else mask_of_each(0, len(X), mask)
    layer = tl.multi_head_attention
    triples = zip(X, contexts, masks, strict=True)
    return np.stack([layer(x, params, context=c, mask=m) for x, c, m in triples])


def shares_by_einsum(heads, W_O):
    parts = np.einsum("...htv,hvm->...htm", heads, W_O.reshape(heads.shape[-3], -1, W_O.shape[1]))
    along = np.einsum("...htm,...gtm->...ht", parts, parts)
    return along / along.sum(axis=-2, keepdims=True)


VARIANTS = [
    ("multi_head_attention", "loop over heads", layer_by_loop),
    ("head_contributions", "each part with every part", shares_by_einsum),
    *(
        ("my_layer", label, lambda X, params, mask, layer=layer: layer(X, params, mask=mask))
        for label, layer in (("einsum", layer_by_einsum), ("by sentence", layer_by_sequence))
    ),
    ("layer_parameters", "float", lambda d, H, k, kv: 2.0 * d * k * (H + kv)),
]


NARROW = [
    ("multi_head_attention", "a batch alone", "return trace", "assert X.ndim == 3\nreturn trace"),
    ("trace", "a batch alone", "concat =", "assert X.ndim == 3\nconcat ="),
    ("trace", "a context as long as X", "else context", "else context.reshape(X.shape)"),
]

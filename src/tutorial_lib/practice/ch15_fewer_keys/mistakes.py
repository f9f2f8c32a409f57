"""Wrong forms of the functions of chapter 15."""

import math

import numpy as np

from tutorial_lib.attention import attention_weights, scaled_dot_product_attention
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.grouped import GroupedParams, attend_by_layer, group_params
from tutorial_lib.variants.latent import absorbed_attention


def _copied(Q, kept, orders, mask):
    """Attention to copied heads of keys and of values, in two orders of their numbers."""
    K, V = (array[..., order, :, :] for array, order in zip(kept, orders, strict=True))
    return scaled_dot_product_attention(Q, K, V, mask=mask)


def _orders(Q, K):
    """The key head of each query head: copied as it should be, and tiled."""
    H, G = Q.shape[-3], K.shape[-3]
    return np.repeat(np.arange(G), H // G), np.arange(H) % G


def _tiled(Q, K, V, *, mask=None):
    tiled = _orders(Q, K)[1]
    return _copied(Q, (K, V), (tiled, tiled), mask)


def _values_tiled(Q, K, V, *, mask=None):
    right, tiled = _orders(Q, K)
    return _copied(Q, (K, V), (right, tiled), mask)


def _first_group(Q, K, V, *, mask=None):
    first = 0 * _orders(Q, K)[0]
    return _copied(Q, (K, V), (first, first), mask)


def _words_first(Q, K, V, *, mask=None):
    *batch, H, T, d_k = Q.shape
    rows = np.swapaxes(Q, -3, -2).reshape(*batch, K.shape[-3], -1, d_k)
    scores = rows @ np.swapaxes(K, -1, -2) / math.sqrt(d_k)
    weights = attention_weights(scores.reshape(*batch, H, T, -1), mask=mask)
    return (weights.reshape(scores.shape) @ V).reshape(*batch, H, T, V.shape[-1])


def _root_of_group(Q, K, V, *, mask=None):
    right = _orders(Q, K)[0]
    members = Q.shape[-3] // K.shape[-3]
    return _copied(Q / math.sqrt(members), (K, V), (right, right), mask)


_GROUPED_ATTENTION = (
    Mistake(
        "tiled",
        "the key heads are tiled, 0 1 0 1, so most heads look at another group's keys",
        "Heads g·H/G to (g+1)·H/G − 1 belong to key head g: 0 0 1 1, as np.repeat copies.",
        _tiled,
    ),
    Mistake(
        "values_tiled",
        "keys and values belong to different groups",
        "Key and value of a group go together: the same heads share both.",
        _values_tiled,
    ),
    Mistake(
        "first_group",
        "all heads look at key head 0",
        "Head h looks at key head h // (H / G).",
        _first_group,
    ),
    Mistake(
        "words_first",
        "words and heads are stacked in the wrong order, so a group holds queries of other groups",
        "Split the head axis into (G, H/G) and merge H/G with the words: swap nothing.",
        _words_first,
    ),
    Mistake(
        "root_of_group",
        "the scores are divided once more, by the root of the number of heads in a group",
        "Stacking adds rows, no width: divide by math.sqrt(d_k) alone.",
        _root_of_group,
    ),
)


def _pooled(params, n_kv_heads, pool, *, group=None):
    """Params whose key heads are made by `pool` of (G, H/G, d_model, d)."""

    def contiguous(W):
        return W.reshape(n_kv_heads, -1, *W.shape[1:])

    W_K, W_V = (pool((group or contiguous)(W)) for W in (params.W_K, params.W_V))
    return GroupedParams(params.W_Q, W_K, W_V, params.W_O)


def _strided(n_kv_heads):
    return lambda W: np.swapaxes(W.reshape(-1, n_kv_heads, *W.shape[1:]), 0, 1)


def _queries_pooled(params, n_kv_heads):
    right = group_params(params, n_kv_heads)
    groups = params.W_Q.reshape(n_kv_heads, -1, *params.W_Q.shape[1:])
    mean = np.repeat(groups.mean(axis=1), groups.shape[1], axis=0)
    return GroupedParams(mean, right.W_K, right.W_V, params.W_O)


def _values_kept(params, n_kv_heads):
    members = params.n_heads // n_kv_heads
    right = group_params(params, n_kv_heads)
    return GroupedParams(params.W_Q, right.W_K, params.W_V[::members], params.W_O)


_GROUP_PARAMS = (
    Mistake(
        "first_head",
        "each group gets the keys and values of its first head, not the mean of all",
        "Average over the heads of a group.",
        lambda params, n_kv_heads: _pooled(params, n_kv_heads, lambda W: W[:, 0]),
    ),
    Mistake(
        "summed",
        "the heads of a group are added, not averaged, so scores grow with the group",
        "Divide by the number of heads in the group: mean, not sum.",
        lambda params, n_kv_heads: _pooled(params, n_kv_heads, lambda W: W.sum(axis=1)),
    ),
    Mistake(
        "interleaved",
        "every G-th head forms a group, where neighbours should",
        "Group g is heads g·H/G to (g+1)·H/G − 1: split the head axis as (G, H/G).",
        lambda params, n_kv_heads: _pooled(
            params, n_kv_heads, lambda W: W.mean(axis=1), group=_strided(n_kv_heads)
        ),
    ),
    Mistake(
        "queries_pooled",
        "the queries of a group are averaged too, so its heads all ask the same",
        "Leave W_Q as it is: heads share what is kept, not what they ask.",
        _queries_pooled,
    ),
    Mistake(
        "values_of_first_head",
        "the keys are averaged, but the values are those of each group's first head",
        "Treat W_V as W_K.",
        _values_kept,
    ),
)


def _scores_of(Q, C, latent, *, up=None, width=None):
    up = np.swapaxes(latent.W_UK, -1, -2) if up is None else up
    scores = Q @ up @ np.swapaxes(C, -1, -2)[..., None, :, :]
    return scores / math.sqrt(Q.shape[-1] if width is None else width)


def _absorbed(Q, C, latent, mask, **changes):
    weights = attention_weights(_scores_of(Q, C, latent, **changes), mask=mask)
    return weights @ C[..., None, :, :] @ latent.W_UV


def _not_transposed(Q, C, latent, *, mask=None):
    H, rank, d_k = latent.W_UK.shape
    return _absorbed(Q, C, latent, mask, up=latent.W_UK.reshape(H, d_k, rank))


def _root_of_rank(Q, C, latent, *, mask=None):
    return _absorbed(Q, C, latent, mask, width=C.shape[-1])


def _values_forgotten(Q, C, latent, *, mask=None):
    weights = attention_weights(_scores_of(Q, C, latent), mask=mask)
    return weights @ C[..., None, :, :]


def _one_head_s_up(Q, C, latent, *, mask=None):
    return _absorbed(Q, C, latent, mask, up=np.swapaxes(latent.W_UK[:1], -1, -2))


def _mask_forgotten(Q, C, latent, *, mask=None):
    return absorbed_attention(Q, C, latent)


_ABSORBED_ATTENTION = (
    Mistake(
        "not_transposed",
        "W_UK is reshaped where it should be transposed",
        "A query meets each row of W_UK: Q @ np.swapaxes(W_UK, -1, -2).",
        _not_transposed,
    ),
    Mistake(
        "root_of_rank",
        "the scores are divided by the root of the rank instead of d_k",
        "The score is the old number, summed another way: divide by math.sqrt(d_k).",
        _root_of_rank,
    ),
    Mistake(
        "values_forgotten",
        "the mixed latents are returned: W_UV is forgotten",
        "What is mixed is no value yet: multiply by W_UV at the end.",
        _values_forgotten,
    ),
    Mistake(
        "one_head_for_all",
        "every head asks with the W_UK of head 0",
        "C is shared, W_UK is not: each query goes through its own head's matrix.",
        _one_head_s_up,
    ),
    Mistake(
        "mask_forgotten",
        "the mask is not used",
        "Hand it to attention_weights, when the scores are (..., H, T, S) again.",
        _mask_forgotten,
    ),
)


def _all_own(X, layers, sources, *, mask=None):
    return attend_by_layer(X, layers, range(len(layers)), mask=mask)


def _layers_run(X, layers, sources, mask, *, borrow):
    """Layers on top of each other; `borrow` gives keys and values from what came in so far."""
    inputs = []
    for n, (params, source) in enumerate(zip(layers, sources, strict=True)):
        inputs.append(X)
        heads = scaled_dot_product_attention(
            project_heads(X, params.W_Q), *borrow(inputs, layers, n, source), mask=mask
        )
        X = X + concat_heads(heads) @ params.W_O
    return X


def _keys_of_here(X, layers, sources, *, mask=None):
    def borrow(inputs, layers, n, source):
        return [project_heads(inputs[n], W) for W in (layers[source].W_K, layers[source].W_V)]

    return _layers_run(X, layers, sources, mask, borrow=borrow)


def _first_layer(X, layers, sources, *, mask=None):
    def borrow(inputs, layers, n, source):
        source = n if source == n else 0
        return [project_heads(inputs[source], getattr(layers[source], W)) for W in ("W_K", "W_V")]

    return _layers_run(X, layers, sources, mask, borrow=borrow)


def _keys_alone(X, layers, sources, *, mask=None):
    def borrow(inputs, layers, n, source):
        K = project_heads(inputs[source], layers[source].W_K)
        return K, project_heads(inputs[n], layers[n].W_V)

    return _layers_run(X, layers, sources, mask, borrow=borrow)


def _layer_before(X, layers, sources, *, mask=None):
    def borrow(inputs, layers, n, source):
        source = n if source == n else n - 1
        return [project_heads(inputs[source], getattr(layers[source], W)) for W in ("W_K", "W_V")]

    return _layers_run(X, layers, sources, mask, borrow=borrow)


_ATTEND_BY_LAYER = (
    Mistake(
        "all_own",
        "every layer makes keys and values of its own; the list of sources is not used",
        "Keep K and V of each layer that has its own, and look at kept[source].",
        _all_own,
    ),
    Mistake(
        "matrices_alone",
        "a layer borrows the matrices of the earlier one, but projects its own input",
        "Borrow the keys and values themselves, as they were made from the earlier input.",
        _keys_of_here,
    ),
    Mistake(
        "keys_alone",
        "a layer borrows the keys and makes values of its own",
        "A borrower keeps nothing: keys and values come from the same layer.",
        _keys_alone,
    ),
    Mistake(
        "layer_before",
        "a borrower looks at the layer right before it, whatever the list says",
        "sources[n] is the number of the layer whose keys and values layer n looks at.",
        _layer_before,
    ),
    Mistake(
        "first_layer",
        "every borrower looks at layer 0, whatever the list says",
        "sources[n] is the number of the layer whose keys and values layer n looks at.",
        _first_layer,
    ),
)


def _reordered(params, order, *, queries=True, outputs=True, cut=None):
    """Params with their heads in another order, in W_Q, in W_O or in both."""
    H, d_v, d_model = params.n_heads, params.d_v, params.d_model
    blocks = params.W_O.reshape(H, d_v, d_model) if cut is None else cut(params.W_O)
    W_O = blocks[order].reshape(params.W_O.shape) if outputs else params.W_O
    return GroupedParams(params.W_Q[order] if queries else params.W_Q, params.W_K, params.W_V, W_O)


def _group_order(params):
    H, G = params.n_heads, params.n_kv_heads
    return np.arange(H).reshape(H // G, G).T.ravel()


def _inside_exchanged(params):
    table = np.arange(params.n_heads).reshape(-1, params.n_kv_heads)
    return _reordered(params, table[::-1].T.ravel())


def _copies_keys(params):
    H, G = params.n_heads, params.n_kv_heads
    W_K, W_V = (np.tile(W, (H // G, 1, 1)) for W in (params.W_K, params.W_V))
    return GroupedParams(params.W_Q, W_K, W_V, params.W_O)


def _rows_interleaved(params):
    H, d_v, d_model = params.n_heads, params.d_v, params.d_model
    return _reordered(
        params,
        _group_order(params),
        cut=lambda W_O: np.swapaxes(W_O.reshape(d_v, H, d_model), 0, 1),
    )


_FROM_TILED = (
    Mistake(
        "output_forgotten",
        "the rows of W_O stay where they were, so each head's output meets another head's rows",
        "A head that moves takes its d_v rows of W_O along.",
        lambda params: _reordered(params, _group_order(params), outputs=False),
    ),
    Mistake(
        "queries_forgotten",
        "the rows of W_O move and the queries do not",
        "Move W_Q and W_O by the same order.",
        lambda params: _reordered(params, _group_order(params), queries=False),
    ),
    Mistake(
        "undone",
        "the heads are moved in the opposite direction",
        "order[i] is the old number of the head that comes to place i: W_Q[order].",
        lambda params: _reordered(params, np.argsort(_group_order(params))),
    ),
    Mistake(
        "as_given",
        "nothing is moved",
        "Heads 0, G, 2G, … of the other library are group 0 here.",
        lambda params: params,
    ),
    Mistake(
        "inside_exchanged",
        "each group has its heads, but the last comes first: Y is right, the order is not kept",
        "Inside a group keep the order of the numbers: 0, 2, 4 and then 1, 3, 5.",
        _inside_exchanged,
    ),
    Mistake(
        "keys_copied",
        "the key heads are copied until each head has its own: Y is right, and nothing is shared",
        "Move the queries to their keys; the key heads stay as they are.",
        _copies_keys,
    ),
    Mistake(
        "rows_interleaved",
        "W_O is cut as (d_v, H): the rows of a head do not lie H apart",
        "Head h owns rows h·d_v to (h+1)·d_v − 1: cut W_O as (H, d_v, d_model).",
        _rows_interleaved,
    ),
)


def _blocks(latent):
    return latent.W_O.reshape(latent.n_heads, latent.d_v, latent.d_model)


def _first_rows(latent):
    return (latent.W_UV @ latent.W_O[: latent.d_v]).reshape(-1, latent.d_model)


def _output_interleaved(latent):
    blocks = latent.W_O.reshape(latent.d_v, latent.n_heads, latent.d_model)
    return (latent.W_UV @ np.swapaxes(blocks, 0, 1)).reshape(-1, latent.d_model)


def _ranks_first(latent):
    return np.swapaxes(latent.W_UV @ _blocks(latent), 0, 1).reshape(-1, latent.d_model)


_ABSORBED_OUTPUT = (
    Mistake(
        "first_rows",
        "every head goes through the rows of W_O that belong to head 0",
        "Head h owns rows h·d_v to (h+1)·d_v − 1 of W_O.",
        _first_rows,
    ),
    Mistake(
        "interleaved",
        "W_O is cut as (d_v, H): the rows of a head do not lie H apart",
        "Concat lays head 0 first: cut W_O as (H, d_v, d_model).",
        _output_interleaved,
    ),
    Mistake(
        "ranks_first",
        "its rows are sorted by the latent's number first and by head second",
        "Head 0's rank rows come first, then head 1's: merge H and rank as they stand.",
        _ranks_first,
    ),
    Mistake(
        "summed",
        "the heads are added up; each has mixed latents of its own",
        "Lay the products of all heads below each other: H · rank rows.",
        lambda latent: (latent.W_UV @ _blocks(latent)).sum(axis=0),
    ),
)


def _bytes(name, says, mend, function):
    """A mistake of the count, from a function of positional arguments."""

    def count(*, n_layers, n_heads, rank, turned, itemsize):
        return function(n_layers, n_heads, rank, turned, itemsize)

    return Mistake(name, says, mend, count)


_LATENT_CACHE_BYTES = (
    _bytes(
        "doubled",
        "it counts the latent twice, for keys and for values",
        "One latent serves both: rank + turned numbers a layer.",
        lambda layers, heads, rank, turned, size: layers * (2 * rank + turned) * size,
    ),
    _bytes(
        "no_turned_part",
        "the turned part is forgotten",
        "It cannot be made from the latent, so it is kept too.",
        lambda layers, heads, rank, turned, size: layers * rank * size,
    ),
    _bytes(
        "a_head_each",
        "it keeps a latent and a turned part for each head",
        "All heads look at one row: the number of heads does not count.",
        lambda layers, heads, rank, turned, size: layers * heads * (rank + turned) * size,
    ),
    _bytes(
        "turned_by_head",
        "it keeps a turned part for each head",
        "The turned key is the same for all heads.",
        lambda layers, heads, rank, turned, size: layers * (rank + heads * turned) * size,
    ),
    _bytes(
        "one_layer",
        "it counts a single layer",
        "Every layer keeps a row of its own.",
        lambda layers, heads, rank, turned, size: (rank + turned) * size,
    ),
)


MISTAKES = {
    "grouped_attention": _GROUPED_ATTENTION,
    "group_params": _GROUP_PARAMS,
    "absorbed_attention": _ABSORBED_ATTENTION,
    "attend_by_layer": _ATTEND_BY_LAYER,
    "from_tiled": _FROM_TILED,
    "absorbed_output": _ABSORBED_OUTPUT,
    "latent_cache_bytes": _LATENT_CACHE_BYTES,
}

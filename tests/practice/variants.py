"""Right answers written in other ways, which a check must accept, and too narrow ones."""

import dataclasses
import math

import numpy as np

import tutorial_lib as tl
from tutorial_lib.checks import heads


def softmax_by_loop(scores, axis=-1):
    moved = np.moveaxis(scores, axis, -1)
    weights = np.empty(moved.shape)
    for index in np.ndindex(moved.shape[:-1]):
        powers = [math.exp(score - moved[index].max()) for score in moved[index]]
        weights[index] = [power / math.fsum(powers) for power in powers]
    return np.moveaxis(weights, -1, axis)


def softmax_by_logarithm(scores, axis=-1):
    top = scores.max(axis, keepdims=True)
    return np.exp(scores - (top + np.log(np.exp(scores - top).sum(axis, keepdims=True))))


def softmax_minus_less(scores, axis=-1):
    positive = np.exp(scores - scores.max(axis, keepdims=True) + 3)
    return np.divide(positive, positive.sum(axis, keepdims=True))


def weights_by_multiplying(scores, *, mask=None):
    mask = np.ones(scores.shape, dtype=bool) if mask is None else mask
    positive = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
    total = positive.sum(axis=-1, keepdims=True)
    return np.divide(positive, total, out=np.zeros_like(positive), where=total > 0)


def weights_by_adding(scores, *, mask=None):
    added = scores if mask is None else scores + np.where(mask, 0, -1e30)
    weights = softmax_by_logarithm(added)
    return weights if mask is None else weights * mask


def weights_by_nan(scores, *, mask=None):
    hidden = scores if mask is None else np.where(mask, scores, -np.inf)
    positive = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return np.nan_to_num(positive / positive.sum(axis=-1, keepdims=True))


def attention_by_einsum(Q, K, V, *, mask=None):
    scores = np.einsum("...td,...sd->...ts", Q, K) * Q.shape[-1] ** -0.5
    return np.einsum("...ts,...sv->...tv", weights_by_multiplying(scores, mask=mask), V)


def attention_scaled_before(Q, K, V, *, mask=None):
    scaled = Q / math.sqrt(Q.shape[-1])
    return weights_by_adding(scaled @ np.swapaxes(K, -1, -2), mask=mask) @ V


def attention_divided_after(Q, K, V, *, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / math.sqrt(Q.shape[-1])
    positive = np.exp(scores) * (1 if mask is None else mask)
    total = positive.sum(axis=-1, keepdims=True)
    return positive @ V / np.where(total == 0, 1, total)


def project_by_stack(X, W):
    return np.stack([X @ matrix for matrix in W], axis=-3)


def project_by_einsum(X, W):
    return np.einsum("...ti,hid->...htd", X, W)


def project_wide(X, W):
    wide = X @ np.concatenate(list(W), axis=-1)
    return tl.split_heads(wide, len(W))


def embed_one_hot(ids, E, P=None):
    X = (ids[..., None] == np.arange(len(E))) @ E
    return X if P is None else X + P[np.arange(ids.shape[-1])]


def embed_by_take(ids, E, P=None):
    return np.take(E, ids, axis=0) + (0 if P is None else P[: ids.shape[-1]])


def embed_in_place(ids, E, P=None):
    X = E[ids]
    if P is not None:
        X += P[: ids.shape[-1]]
    return X


def sinusoids_by_loop(T, d_model, *, base=10_000.0):
    rows = [[t / base ** (2 * (i // 2) / d_model) for i in range(d_model)] for t in range(T)]
    return np.array([[(math.sin, math.cos)[i % 2](a) for i, a in enumerate(row)] for row in rows])


def sinusoids_complex(T, d_model, *, base=10_000.0):
    rates = np.exp(-np.log(base) * np.arange(0, d_model, 2) / d_model)
    turns = np.exp(1j * np.outer(np.arange(T), rates))
    return np.stack([turns.imag, turns.real], axis=2).reshape(T, d_model)


def layer_by_loop(X, params, *, context=None, mask=None):
    source = X if context is None else context
    blocks = np.split(params.W_O, params.n_heads)
    masks = [mask] * params.n_heads if mask is None or mask.ndim < 3 else np.moveaxis(mask, -3, 0)
    Y = np.zeros_like(X)
    for h, block in enumerate(blocks):
        Q, K, V = X @ params.W_Q[h], source @ params.W_K[h], source @ params.W_V[h]
        Y = Y + attention_by_einsum(Q, K, V, mask=masks[h]) @ block
    return Y


def layer_by_einsum(X, params, *, context=None, mask=None):
    source = X if context is None else context
    Q, K, V = (
        project_by_einsum(x, W)
        for x, W in ((X, params.W_Q), (source, params.W_K), (source, params.W_V))
    )
    heads = attention_scaled_before(Q, K, V, mask=mask)
    blocks = params.W_O.reshape(params.n_heads, params.d_v, -1)
    return np.einsum("...htv,hvm->...tm", heads, blocks)


def layer_by_sequence(X, params, *, context=None, mask=None):
    if X.ndim == 2:
        return tl.multi_head_attention(X, params, context=context, mask=mask)
    return layer_of_a_batch(X, params, context=context, mask=mask)


def layer_of_a_batch(X, params, *, context=None, mask=None):
    contexts = [None] * len(X) if context is None else context
    pairs = zip(X, contexts, strict=True)
    return np.stack([tl.multi_head_attention(x, params, context=c, mask=mask) for x, c in pairs])


def layer_without_mask_axes(X, params, *, context=None, mask=None):
    kept = mask if mask is None else mask[(0,) * (mask.ndim - 2)]
    return tl.multi_head_attention(X, params, context=context, mask=kept)


def trace_of_a_batch(X, params, *, context=None, mask=None):
    record = tl.trace(X, params, context=context, mask=mask)
    B, H, T, d_v = record.heads.shape
    concat = record.heads.swapaxes(1, 2).reshape(B, T, H * d_v)
    return dataclasses.replace(record, concat=concat)


def trace_without_mask_axes(X, params, *, context=None, mask=None):
    kept = mask if mask is None else mask[(0,) * (mask.ndim - 2)]
    return tl.trace(X, params, context=context, mask=kept)


def concat_of_a_batch(heads):
    B, H, T, d_v = heads.shape
    return heads.swapaxes(1, 2).reshape(B, T, H * d_v)


def concat_with_and_without_batch(heads):
    if heads.ndim == 3:
        return np.concatenate(list(heads), axis=-1)
    return np.stack([np.concatenate(list(sentence), axis=-1) for sentence in heads])


def tokens_first_of_a_batch(heads):
    B, T, H, d_v = heads.shape
    return heads.reshape(B, T, H * d_v)


def tokens_first_with_and_without_batch(heads):
    if heads.ndim == 3:
        return np.stack([row.ravel() for row in heads])
    return np.stack([[row.ravel() for row in sentence] for sentence in heads])


def round_trip_at(part):
    """A round trip that looks at some heads and rows of (..., H, T), or at some sentences."""

    def passes(split, concat, X, n_heads):
        tokens = np.arange(X[..., 0].size).reshape(X.shape[:-1])
        marks = split(np.broadcast_to(tokens[..., None], X.shape), n_heads)
        right = (marks == tokens[..., None, :, None]).all(axis=-1)
        first = right[(0,) * (right.ndim - 2)]
        seen = first if part == "first sentence" else right[part]
        return bool(seen.all()) and np.array_equal(concat(split(X, n_heads)), X)

    return passes


def trace_by_einsum(X, params, *, context=None, mask=None):
    source = X if context is None else context
    Q = project_by_stack(X, params.W_Q)
    K, V = project_wide(source, params.W_K), project_by_stack(source, params.W_V)
    scores = np.einsum("...td,...sd->...ts", Q, K) * params.d_k**-0.5
    weights = weights_by_multiplying(scores, mask=mask)
    heads = np.einsum("...ts,...sv->...tv", weights, V)
    concat = np.concatenate(list(np.moveaxis(heads, -3, 0)), axis=-1)
    Y = layer_by_loop(X, params, context=context, mask=mask)
    return tl.Trace(X, context, Q, K, V, scores, weights, heads, concat, Y)


def shares_by_loop(heads, W_O):
    blocks = np.split(W_O, heads.shape[-3])
    parts = [heads[..., h, :, :] @ block for h, block in enumerate(blocks)]
    Y = sum(parts)
    return np.stack([np.einsum("...m,...m->...", part, Y) for part in parts], axis=-2) / (
        np.linalg.norm(Y, axis=-1)[..., None, :] ** 2
    )


def shares_by_einsum(heads, W_O):
    parts = np.einsum("...htv,hvm->...htm", heads, W_O.reshape(heads.shape[-3], -1, W_O.shape[1]))
    along = np.einsum("...htm,...gtm->...ht", parts, parts)
    return along / along.sum(axis=-2, keepdims=True)


def summed_axis_by_errors(weights):
    errors = [abs(weights.sum(axis=axis) - 1).max() for axis in range(weights.ndim)]
    return np.argmin(errors) - weights.ndim


def padded_by_where(ids, E, P, pad_id):
    return np.where((ids == pad_id)[..., None], 0, embed_by_take(ids, E, P))


def padded_in_place(ids, E, P, pad_id):
    X = tl.embed(ids, E, P)
    X[ids == pad_id] = 0
    return X


def count_by_matrices(d_model, n_heads, d_k, d_v, *, bias):
    inputs = [(d_model + bias) * d for d in (d_k, d_k, d_v)]
    return n_heads * sum(inputs) + (n_heads * d_v + bias) * d_model


def rank_by_singular_values(Q, K):
    values = np.linalg.svd(Q @ K.transpose(0, 2, 1), compute_uv=False)
    return [int((v > 1e-9 * v[0]).sum()) for v in values]


def causal_mask_by_comparing(T, S=None):
    S = S or T
    return np.arange(S)[None, :] - (S - T) <= np.arange(T)[:, None]


def same_token_by_loop(ids, n_tokens, strength):
    weights = np.zeros((len(ids), len(ids)))
    for t in range(len(ids)):
        powers = np.exp(strength * (ids[: t + 1] == ids[t]))
        weights[t, : t + 1] = powers / powers.sum()
    return weights


def round_trip_by_changes(split, concat, X, n_heads):
    there, fine = split(X, n_heads).copy(), np.array_equal(concat(split(X, n_heads)), X)
    for *sentence, t in np.ndindex(X.shape[:-1]):
        changed = X.copy()
        changed[*sentence, t] += 1
        moved = (split(changed, n_heads) != there).any(axis=-1)
        fine = fine and moved[*sentence, :, t].all() and moved.sum() == n_heads
    return bool(fine)


def round_trip_by_sets(split, concat, X, n_heads):
    places = split(np.arange(X.size).reshape(X.shape), n_heads)
    for *sentence, h, t in np.ndindex(places.shape[:-1]):
        found = {np.unravel_index(place, X.shape)[:-1] for place in places[*sentence, h, t]}
        if found != {(*sentence, t)}:
            return np.False_
    return np.bool_(np.array_equal(concat(split(X, n_heads)), X))


def packed_by_transpose(packed, n_heads):
    B, T, width = packed.shape
    Q, K, V = packed.reshape(B, T, 3, n_heads, -1).transpose(2, 0, 3, 1, 4)
    mixed = attention_by_einsum(Q, K, V)
    return mixed.transpose(0, 2, 1, 3).reshape(B, T, width // 3)


def packed_by_slices(packed, n_heads):
    width = packed.shape[-1] // 3
    d = width // n_heads
    starts = [range(i * width, (i + 1) * width, d) for i in range(3)]
    heads = [
        attention_scaled_before(*(packed[..., s : s + d] for s in places))
        for places in zip(*starts, strict=True)
    ]
    return np.concatenate(heads, axis=-1)


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


def softmax_backward_by_table(weights, dweights):
    table = (
        np.eye(weights.shape[-1]) * weights[..., None] - weights[..., None] * weights[..., None, :]
    )
    return (table @ dweights[..., None])[..., 0]


def sum_copies_by_einsum(gradient, shape):
    summed = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    axes = tuple(n for n, length in enumerate(shape) if length == 1)
    return summed.sum(axis=axes, keepdims=True)


def attention_backward_by_head(Q, K, V, weights, dheads):
    batch, d = weights.shape[:-2], [np.zeros(x.shape) for x in (Q, K, V)]
    for index in np.ndindex(batch):
        here = [index[len(batch) - (x.ndim - 2) :] for x in (Q, K, V)]
        q, k, v = (x[i] for x, i in zip((Q, K, V), here, strict=True))
        scores = softmax_backward_by_table(weights[index], dheads[index] @ v.T) * q.shape[1] ** -0.5
        parts = scores @ k, scores.T @ q, weights[index].T @ dheads[index]
        for total, i, part in zip(d, here, parts, strict=True):
            total[i] += part
    return tuple(d)


def linear_backward_by_einsum(X, W, dY):
    return [np.einsum("...o,io->...i", dY, W), np.einsum("ti,to->io", *map(flatten, (X, dY)))]


def flatten(array):
    return array.reshape(-1, array.shape[-1])


def heads_backward_by_einsum(X, W, dprojected):
    dX = np.einsum("...htd,hid->...ti", dprojected, W)
    share = np.swapaxes(X, -1, -2)[..., None, :, :] @ dprojected  # (..., H, d_model, d)
    return dX, share.reshape(-1, *W.shape).sum(axis=0)


def layer_backward_by_sequence(trace, params, dY):
    source = trace.X if trace.context is None else trace.context
    totals = {name: np.zeros(W.shape) for name, W in vars(params).items()}
    dX, dsource = np.zeros(trace.X.shape), np.zeros(source.shape)
    for at in np.ndindex(dY.shape[:-2]):
        there = at[len(at) - (source.ndim - 2) :]
        picked = {"X": trace.X[at], "context": source[there], "K": trace.K[there]}
        picked |= {"V": trace.V[there], **{n: getattr(trace, n)[at] for n in ALONE}}
        one = tl.multi_head_attention_backward(tl.Trace(**picked), params, dY[at])
        dX[at] += one.dX
        dsource[there] += one.dcontext
        for name in totals:
            totals[name] += getattr(one, f"d{name}")
    inputs = (dX + dsource, None) if trace.context is None else (dX, dsource)
    return tl.Gradients(*inputs, *totals.values())


ALONE = ("Q", "scores", "weights", "heads", "concat", "Y")


def input_gradients_by_head(params, dQ, dK, dV):
    heads = range(params.n_heads)
    dX = sum(dQ[..., h, :, :] @ params.W_Q[h].T for h in heads)
    keys = sum(dK[..., h, :, :] @ params.W_K[h].T for h in heads)
    return [dX, keys + sum(dV[..., h, :, :] @ params.W_V[h].T for h in heads)]


def input_gradients_by_keepers(params, dQ, dK, dV):
    X, context = np.zeros((*dQ.shape[:-3], dQ.shape[-2], 12)), np.zeros((*dK.shape[:-3], 6, 12))
    by_keys, _ = tl.project_heads_backward(context, params.W_K, dK)
    by_values, _ = tl.project_heads_backward(context, params.W_V, dV)
    return tl.project_heads_backward(X, params.W_Q, dQ)[0], by_keys + by_values


def scale_gradients_by_einsum(Q, K, weights, dweights):
    total = np.zeros(Q.shape[-3])
    for at in np.ndindex(Q.shape[:-3]):
        dscores = softmax_backward_by_table(weights[at], dweights[at])
        total += np.einsum("hts,htd,hsd->h", dscores, Q[at], K[at])
    return total


def scale_gradients_by_copies(Q, K, weights, dweights):
    terms = tl.softmax_backward(weights, dweights) * (Q @ np.swapaxes(K, -1, -2))
    return tl.sum_copies(terms, (len(weights[..., :, 0, 0].T), 1, 1))[:, 0, 0]


def wrong_entries_in_place(step):
    def wrong_entries(function, X, gradient):
        X, found = X.copy(), np.empty(X.shape)
        for index in np.ndindex(X.shape):
            kept = X[index]
            X[index] = kept + step
            above = function(X)
            X[index] = kept - step
            found[index] = (above - function(X)) / step / 2
            X[index] = kept
        return ~np.isclose(found, gradient, rtol=0, atol=1e-6 * np.abs(found).max())

    return wrong_entries


def block_by_rows(Q, K_T, V, *, causal=False):
    rows, S = Q.shape[-2], K_T.shape[-1]
    stops = [S - rows + t + 1 if causal else S for t in range(rows)]
    parts = [
        softmax_by_logarithm(Q[..., t : t + 1, :] @ K_T[..., :stop]) @ V[..., :stop, :]
        for t, stop in enumerate(stops)
    ]
    return np.concatenate(parts, axis=-2)


def block_by_masking(Q, K_T, V, *, causal=False):
    mask = tl.causal_mask(Q.shape[-2], K_T.shape[-1]) if causal else None
    Q = Q * math.sqrt(Q.shape[-1])
    return attention_scaled_before(Q, np.swapaxes(K_T, -1, -2), V, mask=mask)


def block_with_a_column_of_ones(Q, K_T, V, *, causal=False):
    scores = np.einsum("...td,...ds->...ts", Q, K_T)
    if causal:
        scores[..., ~tl.causal_mask(*scores.shape[-2:])] = -1e30
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    both = powers @ np.concatenate([V, np.ones_like(V[..., :1])], axis=-1)
    return both[..., :-1] / both[..., -1:]


def blocks_head_by_head(Q, K_T, V, *, causal, block):
    heads = []
    for q, k_T, v in zip(Q, K_T, V, strict=True):
        tiles = [slice(start, start + block) for start in range(0, len(q), block)]
        parts = [
            block_by_masking(
                q[rows],
                k_T[:, : rows.stop if causal else None],
                v[: rows.stop if causal else None],
                causal=causal,
            )
            for rows in tiles
        ]
        heads.append(np.concatenate(parts))
    return np.stack(heads)


def tiled_for_the_whole_batch(X, params, *, causal=False, block=128):
    Q, K, V = (project_wide(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    Q, T = Q / np.asarray(params.d_k**0.5, dtype=X.dtype), X.shape[-2]
    parts = []
    for start in range(0, T, block):
        stop = min(start + block, T) if causal else T
        tile = Q[..., start : start + block, :], np.swapaxes(K, -1, -2)[..., :stop]
        parts.append(block_by_rows(*tile, V[..., :stop, :], causal=causal))
    return tl.concat_heads(np.concatenate(parts, axis=-2)) @ params.W_O


def across_heads_by_loop(Q, K):
    pairs = [
        [Q[..., g, :, :] @ np.swapaxes(K[..., h, :, :], -1, -2) for h in range(K.shape[-3])]
        for g in range(Q.shape[-3])
    ]
    return np.stack([np.stack(row, axis=-3) for row in pairs], axis=-4)


def window_masks_by_loop(T, widths):
    masks = np.zeros((len(widths), T, T), dtype=bool)
    for h, width in enumerate(widths):
        for t in range(T):
            masks[h, t, max(0, t - width + 1) : t + 1] = True
    return masks


def norms_by_loop(weights, V):
    norms = np.zeros(weights.shape)
    for index in np.ndindex(weights.shape):
        *lead, h, _, s = index
        norms[index] = weights[index] * math.hypot(*V[(*lead, h, s)])
    return norms


def bytes_of_arrays(Q, K, V, *, fused):
    scores = Q @ np.swapaxes(K, -1, -2)
    arrays = [Q, K, V, scores @ V] + [scores] * (0 if fused else 4)
    return sum(array.nbytes for array in arrays)


def sorted_times(gpu, call, repeats, warm_up):
    spent = []
    for _ in range(warm_up + repeats):
        gpu.synchronize()
        spent.append(-gpu.clock)
        call()
        gpu.synchronize()
        spent[-1] += gpu.clock
    return np.median(spent[warm_up:])


def times_from_rates(Q, K, V, peak, bandwidth):
    flop = 2 * (np.einsum("...td,...sd->...ts", Q, K).size) * (Q.shape[-1] + V.shape[-1])
    moved = [bytes_of_arrays(Q, K, V, fused=fused) for fused in (False, True)]
    return [flop / min(peak, bandwidth * flop / size) for size in moved]


def shard_by_slices(params, rank, world_size):
    H = params.n_heads // world_size
    heads, rows = (slice(rank * size, (rank + 1) * size) for size in (H, H * params.d_v))
    return tl.Params(params.W_Q[heads], params.W_K[heads], params.W_V[heads], params.W_O[rows])


def uneven_by_loop(params, rank, world_size):
    counts = [params.n_heads // world_size] * world_size
    for extra in range(params.n_heads % world_size):
        counts[extra] += 1
    heads = range(sum(counts[:rank]), sum(counts[: rank + 1]))
    W_Q, W_K, W_V = (np.stack([W[h] for h in heads]) for W in (params.W_Q, params.W_K, params.W_V))
    blocks = [params.W_O[h * params.d_v : (h + 1) * params.d_v] for h in heads]
    return tl.Params(W_Q, W_K, W_V, np.concatenate(blocks))


def uneven_for_one_left(params, rank, world_size):
    fewest = params.n_heads // world_size
    first = rank * fewest + min(rank, params.n_heads % world_size > 0)
    last = first + fewest + (rank == 0 and params.n_heads % world_size > 0)
    rows = slice(first * params.d_v, last * params.d_v)
    own = (W[first:last] for W in (params.W_Q, params.W_K, params.W_V))
    return tl.Params(*own, params.W_O[rows])


def pairs_of_equal_shares(owner, n):
    T = len(owner)
    places = np.arange(T).reshape(n, -1) if owner[0] == owner[1] else np.arange(T).reshape(-1, n).T
    return (places + 1).sum(axis=1)


def middle_time(gpu, call, repeats, warm_up):
    for _ in range(warm_up):
        call()
    spent = []
    for _ in range(repeats):
        gpu.synchronize()
        start = gpu.clock
        call()
        gpu.synchronize()
        spent.append(gpu.clock - start)
    return sorted(spent)[repeats // 2]


def parts_of_times(Q, K, V, peak, bandwidth):
    flop = 2 * math.prod(Q.shape[:-1]) * K.shape[-2] * (Q.shape[-1] + V.shape[-1])
    moved = [bytes_of_arrays(Q, K, V, fused=fused) / bandwidth for fused in (False, True)]
    return [(size, flop / peak, max(size, flop / peak)) for size in moved]


def times_by_place(first, second):
    def least_times(Q, K, V, peak, bandwidth):
        step, whole = parts_of_times(Q, K, V, peak, bandwidth)
        return step[first], whole[second]

    return least_times


def times_by_the_fused(Q, K, V, peak, bandwidth):
    step, whole = parts_of_times(Q, K, V, peak, bandwidth)
    place = int(whole[1] > whole[0])
    return step[place], whole[place]


def rounding_below(most):
    return lambda result, exact, eps: bool(
        (np.abs(result - exact) <= 4 * eps * min(most, np.abs(exact).max())).all()
    )


VARIANTS = [
    ("attend_block", "row by row", block_by_rows),
    ("attend_block", "a mask of all keys", block_by_masking),
    ("attend_block", "sums from a column of ones", block_with_a_column_of_ones),
    ("attend_in_blocks", "head by head", blocks_head_by_head),
    (
        "attend_in_blocks",
        "without blocks",
        lambda Q, K_T, V, causal, block: block_by_masking(Q, K_T, V, causal=causal),
    ),
    ("tiled_multi_head_attention", "the whole batch at once", tiled_for_the_whole_batch),
    ("score_across_heads", "loop", across_heads_by_loop),
    (
        "score_across_heads",
        "matmul",
        lambda Q, K: Q[..., :, None, :, :] @ np.swapaxes(K, -1, -2)[..., None, :, :, :],
    ),
    ("window_masks", "loop", window_masks_by_loop),
    (
        "window_masks",
        "two triangles",
        lambda T, widths: np.stack(
            [np.tril(np.triu(np.ones((T, T), bool), 1 - w)) for w in widths]
        ),
    ),
    ("weighted_norms", "loop", norms_by_loop),
    (
        "weighted_norms",
        "einsum",
        lambda weights, V: np.einsum(
            "...ts,...s->...ts", weights, np.sqrt(np.einsum("...d,...d->...", V, V))
        ),
    ),
    ("softmax", "loop", softmax_by_loop),
    ("softmax", "logarithm", softmax_by_logarithm),
    ("softmax", "another shift", softmax_minus_less),
    ("attention_weights", "mask multiplied in", weights_by_multiplying),
    ("attention_weights", "mask added in", weights_by_adding),
    ("attention_weights", "NaN to zero", weights_by_nan),
    (
        "attention_weights",
        "positional mask",
        lambda scores, mask=None: weights_by_nan(scores, mask=mask),
    ),
    ("scaled_dot_product_attention", "einsum", attention_by_einsum),
    ("scaled_dot_product_attention", "scaled before", attention_scaled_before),
    ("scaled_dot_product_attention", "divided after", attention_divided_after),
    ("project_heads", "stack", project_by_stack),
    ("project_heads", "einsum", project_by_einsum),
    ("project_heads", "one wide matrix", project_wide),
    ("project_with_bias", "stack", lambda X, W, b: project_by_stack(X, W) + b[..., None, :]),
    (
        "project_with_bias",
        "a feature of ones",
        lambda X, W, b: project_by_einsum(
            np.concatenate([X, np.ones((*X.shape[:-1], 1))], axis=-1),
            np.concatenate([W, b[:, None]], axis=1),
        ),
    ),
    (
        "project_sliced_input",
        "list of heads",
        lambda X, W: np.stack([x @ w for x, w in zip(np.split(X, len(W), -1), W, strict=True)], -3),
    ),
    ("count_parameters", "matrix by matrix", count_by_matrices),
    (
        "count_parameters",
        "np.int64",
        lambda *sizes, bias: np.int64(count_by_matrices(*sizes, bias=bias)),
    ),
    ("count_parameters", "float", lambda *sizes, bias: float(count_by_matrices(*sizes, bias=bias))),
    ("embed", "one-hot product", embed_one_hot),
    ("embed", "take", embed_by_take),
    ("embed", "added in place to its own copy", embed_in_place),
    ("embed_padded", "where", padded_by_where),
    ("embed_padded", "in place on its own copy", padded_in_place),
    ("sinusoidal_positions", "loop", sinusoids_by_loop),
    ("sinusoidal_positions", "complex turns", sinusoids_complex),
    ("is_equivariant", "np.bool_", lambda f, X, o: np.allclose(f(X[o]) - f(X)[o], 0) & np.True_),
    ("is_equivariant", "array", lambda f, X, o: np.array(np.allclose(f(X[o]), f(X)[o]))),
    ("causal_mask", "comparison", causal_mask_by_comparing),
    (
        "causal_mask",
        "triu turned round",
        lambda T, S=None: ~np.triu(np.ones((T, S or T)), (S or T) - T + 1).astype(bool),
    ),
    (
        "causal_padding_mask",
        "product",
        lambda is_token: np.tril(np.ones((is_token.shape[1],) * 2, bool)) * is_token[:, None, None],
    ),
    ("summed_axis", "np.int64", summed_axis_by_errors),
    ("summed_axis", "0-d array", lambda weights: np.array(summed_axis_by_errors(weights))),
    (
        "log_softmax",
        "logaddexp",
        lambda scores: scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True),
    ),
    ("split_heads", "list of heads", lambda X, n: np.stack(np.split(X, n, axis=-1), axis=-3)),
    ("split_heads", "moveaxis", lambda X, n: np.moveaxis(X.reshape(*X.shape[:-1], n, -1), -2, -3)),
    (
        "concat_heads",
        "list of heads",
        lambda heads: np.concatenate(list(np.moveaxis(heads, -3, 0)), axis=-1),
    ),
    (
        "concat_heads",
        "column by column",
        lambda heads: np.stack(
            [heads[..., h, :, j] for h in range(heads.shape[-3]) for j in range(heads.shape[-1])],
            axis=-1,
        ),
    ),
    ("concat_tokens_first", "minus one", lambda heads: heads.reshape(*heads.shape[:-2], -1)),
    (
        "concat_tokens_first",
        "list of heads",
        lambda heads: np.concatenate(list(np.moveaxis(heads, -2, 0)), axis=-1),
    ),
    (
        "concat_tokens_first",
        "swapped twice",
        lambda heads: tl.concat_heads(np.swapaxes(heads, -3, -2)),
    ),
    ("passes_round_trip", "one token changed at a time", round_trip_by_changes),
    ("passes_round_trip", "sets of places, and np.bool_", round_trip_by_sets),
    ("attend_packed", "one transpose", packed_by_transpose),
    ("attend_packed", "slices and loops", packed_by_slices),
    ("attend_to_sentence", "head by head", sentence_by_heads),
    ("attend_to_sentence", "word by word", sentence_by_growing_lists),
    ("attend_to_sentence", "einsum", sentence_by_einsum),
    ("same_token_weights", "loop", same_token_by_loop),
    (
        "multiply_adds",
        "head by head",
        lambda T, d, H, k: sum(4 * T * d * k + 2 * T * T * k for _ in range(H)),
    ),
    (
        "multiply_adds",
        "np.int64",
        lambda *sizes: np.int64(heads._multiply_adds(*sizes)),
    ),
    ("score_ranks", "singular values", lambda Q, K: np.array(rank_by_singular_values(Q, K))),
    ("score_ranks", "floats", lambda Q, K: np.array(rank_by_singular_values(Q, K), dtype=float)),
    ("multi_head_attention", "loop over heads", layer_by_loop),
    ("multi_head_attention", "einsum", layer_by_einsum),
    ("multi_head_attention", "sequence by sequence", layer_by_sequence),
    ("trace", "einsum", trace_by_einsum),
    ("head_shares", "loop over heads", shares_by_loop),
    ("head_shares", "each part with every part", shares_by_einsum),
    ("length_factor", "norm", lambda W: np.linalg.norm(W) / len(W) ** 0.5),
    ("length_factor", "trace", lambda W: np.sqrt(np.trace(W @ W.T) / W.shape[0])),
    (
        "length_factor",
        "lengths of rows",
        lambda W: math.sqrt(np.mean(np.linalg.norm(W, axis=1) ** 2)),
    ),
    ("layer_parameters", "matrix by matrix", lambda d, H, k, kv: 2 * d * H * k + 2 * d * kv * k),
    (
        "layer_parameters",
        "np.int64",
        lambda *sizes: np.int64(sizes[0] * sizes[2]) * 2 * sum(sizes[1::2]),
    ),
    ("layer_parameters", "float", lambda d, H, k, kv: 2.0 * d * k * (H + kv)),
]

VARIANTS += [
    ("softmax_backward", "table of derivatives", softmax_backward_by_table),
    (
        "softmax_backward",
        "product taken apart",
        lambda w, d: w * d - w * np.einsum("...s,...s->...", w, d)[..., None],
    ),
    ("sum_copies", "in two steps", sum_copies_by_einsum),
    ("attention_backward", "head by head", attention_backward_by_head),
    ("linear_backward", "einsum, in a list", linear_backward_by_einsum),
    ("project_heads_backward", "einsum", heads_backward_by_einsum),
    ("multi_head_attention_backward", "sequence by sequence", layer_backward_by_sequence),
    ("input_gradients", "head by head", input_gradients_by_head),
    ("input_gradients", "by the keepers", input_gradients_by_keepers),
    ("scale_gradients", "einsum", scale_gradients_by_einsum),
    ("scale_gradients", "copies added up", scale_gradients_by_copies),
    ("wrong_entries", "in place on its own copy", wrong_entries_in_place(1e-5)),
    ("wrong_entries", "a larger step", wrong_entries_in_place(1e-4)),
    ("wrong_entries", "a smaller step", wrong_entries_in_place(1e-6)),
]


def fold_of_two_states(state, scores, V):
    top = np.maximum(scores.max(axis=-1, keepdims=True), -1e30)
    powers = np.exp(scores - top)
    own = top, powers.sum(axis=-1, keepdims=True), np.einsum("...ts,...sv->...tv", powers, V)
    raised = np.maximum(state[0], top)
    factors = np.exp(state[0] - raised), np.exp(top - raised)
    return [raised, *(factors[0] * state[i] + factors[1] * own[i] for i in (1, 2))]


def fold_with_a_column_of_ones(state, scores, V):
    raised = np.maximum(state[0], scores.max(axis=-1, keepdims=True))
    V1 = np.concatenate([np.ones_like(V[..., :1]), V], axis=-1)
    before = np.concatenate([state[1] + 0 * raised, state[2] + 0 * raised * V[..., :1, :]], axis=-1)
    both = before * np.exp(state[0] - raised) + np.exp(scores - raised) @ V1
    return raised, both[..., :1], both[..., 1:]


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


def two_parts(heads, logsumexp):
    share = 1 / (1 + np.exp(logsumexp[1] - logsumexp[0]))
    both = np.logaddexp(logsumexp[0], logsumexp[1])
    return share * heads[0] + (1 - share) * heads[1], both


VARIANTS += [
    ("fold_block", "the block's own state, then both", fold_of_two_states),
    ("fold_block", "sums from a column of ones", fold_with_a_column_of_ones),
    ("attend_rows", "all keys at once", rows_at_once),
    ("flash_backward", "all keys at once", flash_backward_at_once),
    ("merge_parts", "one after the other", parts_one_after_the_other),
    (
        "merge_parts",
        "a softmax over the parts",
        lambda heads, log: (
            (softmax_by_logarithm(log, axis=0) * heads).sum(axis=0),
            np.logaddexp.reduce(log, axis=0),
        ),
    ),
    ("tiles_to_score", "pairs, and then tiles", tiles_by_pairs),
    (
        "weights_on",
        "einsum, and one power",
        lambda Q, K, log: np.exp(np.einsum("...td,...sd->...ts", Q, K) * Q.shape[-1] ** -0.5 - log),
    ),
]
VARIANTS += [
    ("attention_bytes", "arrays made and asked", bytes_of_arrays),
    ("median_time", "np.median, warm-up cut off", sorted_times),
    ("least_times", "from the rate under the roof, in a list", times_from_rates),
    (
        "within_rounding",
        "np.allclose",
        lambda result, exact, eps: np.allclose(
            result, exact, rtol=0, atol=4 * eps * max(exact.max(), -exact.min())
        ),
    ),
    (
        "within_rounding",
        "the largest error alone",
        lambda result, exact, eps: (
            np.max(np.abs(result - exact)) <= 4 * eps * np.linalg.norm(exact.ravel(), np.inf)
        ),
    ),
    (
        "attention_flop",
        "sums over heads",
        lambda Q, K, V: sum(
            2 * len(q) * (k.size + v.size)
            for q, k, v in zip(*(A.reshape(-1, *A.shape[-2:]) for A in (Q, K, V)), strict=True)
        ),
    ),
    ("shard_params", "slices of heads and rows", shard_by_slices),
    ("shard_unevenly", "head after head", uneven_by_loop),
    (
        "bytes_sent",
        "whole numbers, send after send",
        lambda shape, n_layers, world_size, itemsize: (
            n_layers
            * 2
            * 2
            * sum(math.prod(shape) // world_size * itemsize for _ in range(2 * (world_size - 1)))
        ),
    ),
    (
        "pairs_seen",
        "pair after pair",
        lambda owner, n: np.array(
            [
                sum(owner[t] == rank for t in range(len(owner)) for _ in range(t + 1))
                for rank in range(n)
            ]
        ),
    ),
    (
        "pairs_seen",
        "a column of a mask",
        lambda owner, n: (np.arange(n)[:, None] == owner) @ tl.causal_mask(len(owner)).sum(axis=1),
    ),
]
NARROW = [
    ("merge_parts", "two parts alone", two_parts),
    (
        "tiles_to_score",
        "blocks that divide T",
        lambda T, window, block: tiles_by_pairs(T // block * block, window, block),
    ),
    ("weights_on", "without a batch", lambda Q, K, log: np.exp(Q[-1] @ K[-1].T / 2 - log)),
    (
        "flash_backward",
        "self-attention alone",
        lambda trace, dheads, block=64: (
            flash_backward_at_once(trace, dheads) if trace.Q.shape == trace.K.shape else None
        ),
    ),
    ("shard_unevenly", "one head left over", uneven_for_one_left),
    ("pairs_seen", "blocks or in turn", lambda owner, n: pairs_of_equal_shares(owner, n)),
    (
        "attention_flop",
        "as many keys as queries in all heads",
        lambda Q, K, V: 2 * Q.size * K.shape[-2] + 2 * V.size * Q.shape[-2] * (Q.ndim < 4),
    ),
    (
        "attention_bytes",
        "no half precision",
        lambda Q, K, V, *, fused: bytes_of_arrays(
            *(A.astype(np.promote_types(A.dtype, np.float32)) for A in (Q, K, V)), fused=fused
        ),
    ),
    ("median_time", "an odd number of repeats", middle_time),
    (
        "median_time",
        "two calls of warm-up",
        lambda gpu, call, repeats, warm_up: sorted_times(gpu, call, repeats, 2),
    ),
    ("least_times", "memory first, arithmetic second", times_by_place(0, 1)),
    ("least_times", "memory never holds the fused form back", times_by_place(2, 1)),
    ("least_times", "memory always holds the first form back", times_by_place(0, 2)),
    ("least_times", "judged by the fused form alone", times_by_the_fused),
    ("within_rounding", "no large numbers", rounding_below(10)),
    (
        "attend_block",
        "heads alone, no batch",
        lambda Q, K_T, V, causal=False: (
            block_by_rows(Q, K_T, V, causal=causal) if Q.ndim < 4 else V[..., : Q.shape[-2], :]
        ),
    ),
    (
        "tiled_multi_head_attention",
        "a batch alone",
        lambda X, params, causal=False, block=128: np.stack(
            [tiled_for_the_whole_batch(x, params, causal=causal, block=block) for x in X]
        ),
    ),
    ("score_across_heads", "without a batch", lambda Q, K: np.einsum("gtd,hsd->ghts", Q, K)),
    (
        "weighted_norms",
        "without a batch",
        lambda weights, V: weights * np.linalg.norm(V, axis=2)[:, None, :],
    ),
    (
        "softmax_backward",
        "rows that sum to 1",
        lambda w, d: w * (d - (w * d).sum(axis=-1, keepdims=True) / w.sum(axis=-1, keepdims=True)),
    ),
    ("sum_copies", "leading axes", lambda g, shape: g.sum(axis=tuple(range(g.ndim - len(shape))))),
    (
        "linear_backward",
        "without a batch",
        lambda X, W, dY: (dY @ W.T, np.swapaxes(X, -1, -2) @ dY),
    ),
    (
        "scale_gradients",
        "without a batch",
        lambda Q, K, w, d: (tl.softmax_backward(w, d) * (Q @ np.swapaxes(K, -1, -2))).sum((-2, -1)),
    ),
    ("concat_heads", "without a batch", lambda heads: np.concatenate(list(heads), axis=-1)),
    ("concat_heads", "a batch alone", concat_of_a_batch),
    ("concat_heads", "no batch or one", concat_with_and_without_batch),
    ("concat_tokens_first", "without a batch", lambda heads: heads.reshape(len(heads), -1)),
    ("concat_tokens_first", "a batch alone", tokens_first_of_a_batch),
    ("concat_tokens_first", "no batch or one", tokens_first_with_and_without_batch),
    ("multi_head_attention", "a batch alone", layer_of_a_batch),
    ("multi_head_attention", "one mask for all heads", layer_without_mask_axes),
    ("trace", "a batch alone", trace_of_a_batch),
    ("trace", "one mask for all heads", trace_without_mask_axes),
    ("passes_round_trip", "head 0 alone", round_trip_at(np.s_[..., 0, :])),
    ("passes_round_trip", "row 0 alone", round_trip_at(np.s_[..., 0])),
    ("passes_round_trip", "the last row alone", round_trip_at(np.s_[..., -1])),
    ("passes_round_trip", "the first sentence alone", round_trip_at("first sentence")),
]

"""The layer once more, number by number: what the library's values are compared with.

Plain loops over heads, tokens and features that take no shortcut and import nothing from `src`.
Slow on purpose, and short enough to be checked by reading.
"""

import math

import numpy as np


def each(shape):
    """Every index of an array of this shape."""
    return np.ndindex(*shape)


def dot(a, b):
    """The sum of the products of two vectors, one product after the other."""
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def embed(ids, E, P=None):
    """ids (..., T) → X (..., T, d_model)."""
    X = np.zeros((*ids.shape, E.shape[1]))
    for index in each(X.shape):
        *_, t, column = index
        place = 0.0 if P is None else P[t, column]
        X[index] = E[ids[index[:-1]], column] + place
    return X


def sinusoidal_positions(T, d_model, base=10_000.0):
    """P (T, d_model): sine in even columns, cosine in odd ones."""
    P = np.zeros((T, d_model))
    for t in range(T):
        for pair in range(d_model // 2):
            angle = t / math.pow(base, 2 * pair / d_model)
            P[t, 2 * pair] = math.sin(angle)
            P[t, 2 * pair + 1] = math.cos(angle)
    return P


def project_heads(X, W):
    """X (..., T, d_model), W (H, d_model, d) → (..., H, T, d)."""
    *batch, T, _ = X.shape
    H, _, d = W.shape
    projected = np.zeros((*batch, H, T, d))
    for index in each(projected.shape):
        *at, h, t, column = index
        projected[index] = dot(X[(*at, t)], W[h, :, column])
    return projected


def softmax_row(row):
    """A list of scores → a list of weights; a score of -inf gives 0."""
    top = max(row)
    powers = [math.exp(score - top) for score in row]
    return [power / math.fsum(powers) for power in powers]


def softmax(scores, axis=-1):
    """Rows along `axis` that sum to 1."""
    moved = np.moveaxis(scores, axis, -1)
    weights = np.zeros(moved.shape)
    for index in each(moved.shape[:-1]):
        weights[index] = softmax_row([float(score) for score in moved[index]])
    return np.moveaxis(weights, -1, axis)


def causal_mask(T, S=None):
    """(T, S): query t is token S - T + t and sees every key up to itself."""
    S = T if S is None else S
    return np.array([[s <= S - T + t for s in range(S)] for t in range(T)])


def drawn_masks(shape):
    """Two boolean masks of a shape: in the first every query sees a key, in the second not all."""
    some = np.random.default_rng(7).random(shape) < 0.5
    some[..., 0] = True
    empty = some.copy()
    empty[..., -1, :] = False  # the last query of every head
    empty[..., 0, 0, :] = False  # and the first of head 0
    return some, empty


def attention_weights(scores, mask=None):
    """scores (..., T, S): a softmax over the keys that a query may look at, 0 for all others."""
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for index in each(scores.shape[:-1]):
        seen = [s for s in range(scores.shape[-1]) if mask[index][s]]
        shares = softmax_row([float(scores[index][s]) for s in seen]) if seen else []
        for s, share in zip(seen, shares, strict=True):
            weights[index][s] = share
    return weights


def scores(Q, K):
    """Q (..., T, d_k), K (..., S, d_k) → (..., T, S), divided by the square root of d_k."""
    batch = np.broadcast_shapes(Q.shape[:-2], K.shape[:-2])
    T, S, d_k = Q.shape[-2], K.shape[-2], Q.shape[-1]
    Q, K = np.broadcast_to(Q, (*batch, T, d_k)), np.broadcast_to(K, (*batch, S, d_k))
    products = np.zeros((*batch, T, S))
    for index in each(products.shape):
        *at, t, s = index
        products[index] = dot(Q[(*at, t)], K[(*at, s)]) / d_k**0.5
    return products


def mix(weights, V):
    """weights (..., T, S), V (..., S, d_v) → (..., T, d_v)."""
    batch = np.broadcast_shapes(weights.shape[:-2], V.shape[:-2])
    T, S, d_v = *weights.shape[-2:], V.shape[-1]
    weights, V = np.broadcast_to(weights, (*batch, T, S)), np.broadcast_to(V, (*batch, S, d_v))
    mixed = np.zeros((*batch, T, d_v))
    for index in each(mixed.shape):
        *at, t, column = index
        mixed[index] = dot(weights[(*at, t)], V[(*at, slice(None), column)])
    return mixed


def scaled_dot_product_attention(Q, K, V, mask=None):
    """Q, K, V → heads (..., T, d_v)."""
    return mix(attention_weights(scores(Q, K), mask), V)


def split_heads(X, n_heads):
    """X (..., T, H*d) → (..., H, T, d): head h holds columns h*d to (h+1)*d."""
    *batch, T, width = X.shape
    d = width // n_heads
    heads = np.zeros((*batch, n_heads, T, d), dtype=X.dtype)
    for index in each(heads.shape):
        *at, h, t, column = index
        heads[index] = X[(*at, t, h * d + column)]
    return heads


def concat_heads(heads):
    """(..., H, T, d_v) → (..., T, H*d_v): head 0 first."""
    *batch, H, T, d_v = heads.shape
    concat = np.zeros((*batch, T, H * d_v), dtype=heads.dtype)
    for index in each(heads.shape):
        *at, h, t, column = index
        concat[(*at, t, h * d_v + column)] = heads[index]
    return concat


def project_out(concat, W_O):
    """concat (..., T, H*d_v), W_O (H*d_v, d_model) → (..., T, d_model)."""
    return project_heads(concat, W_O[None])[..., 0, :, :]


def trace(X, params, context=None, mask=None):
    """Every array of the layer after X and context, by name."""
    source = X if context is None else context
    arrays = {"Q": project_heads(X, params.W_Q)}
    arrays["K"] = project_heads(source, params.W_K)
    arrays["V"] = project_heads(source, params.W_V)
    arrays["scores"] = scores(arrays["Q"], arrays["K"])
    arrays["weights"] = attention_weights(arrays["scores"], mask)
    arrays["heads"] = mix(arrays["weights"], arrays["V"])
    arrays["concat"] = concat_heads(arrays["heads"])
    arrays["Y"] = project_out(arrays["concat"], params.W_O)
    return arrays


def mha(X, params, context=None, mask=None):
    """X (..., T, d_model) → Y (..., T, d_model)."""
    return trace(X, params, context, mask)["Y"]


def central_differences(function, array, step=1e-5):
    """The derivative of a number, function(array), by each entry of the array."""
    gradient = np.zeros(array.shape)
    for index in each(array.shape):
        above, below = array.copy(), array.copy()
        above[index] += step
        below[index] -= step
        gradient[index] = (function(above) - function(below)) / (2 * step)
    return gradient


def softmax_backward(weights, dweights):
    """Row by row with all derivatives: that of weight j by score i is w_j (1 - w_i) or -w_j w_i."""
    dscores = np.zeros(weights.shape)
    for index in each(weights.shape):
        *at, i = index
        row = weights[tuple(at)]
        slopes = [w * ((j == i) - row[i]) for j, w in enumerate(row)]
        dscores[index] = dot(np.array(slopes), dweights[tuple(at)])
    return dscores


def matmul_backward(A, B, dC):
    """The product rule for C = A @ B, each product of two numbers for itself: dA, dB."""
    dA, dB = np.zeros(A.shape), np.zeros(B.shape)
    for i, k, j in each((*A.shape, B.shape[1])):
        dA[i, k] += dC[i, j] * B[k, j]
        dB[k, j] += dC[i, j] * A[i, k]
    return dA, dB


def mha_backward(X, params, dY, context=None, mask=None):
    """The gradients by name, one sequence and one head after the other."""
    source = X if context is None else context
    batch = np.broadcast_shapes(X.shape[:-2], source.shape[:-2])
    scores = (*batch, params.n_heads, X.shape[-2], source.shape[-2])
    mask = np.broadcast_to(True if mask is None else mask, scores)
    d = {name: np.zeros(getattr(params, name).shape) for name in ("W_Q", "W_K", "W_V", "W_O")}
    d |= {"X": np.zeros(X.shape), "context": np.zeros(source.shape)}
    for at in each(batch):
        here, there = own_place(at, X), own_place(at, source)
        arrays = trace(X[here], params, source[there], mask[at])
        dconcat, dW_O = matmul_backward(arrays["concat"], params.W_O, dY[at])
        d["W_O"] += dW_O
        for h in range(params.n_heads):
            dQ, dK, dV = head_backward(arrays, h, split_heads(dconcat, params.n_heads)[h])
            for name, place, dprojected in (("Q", here, dQ), ("K", there, dK), ("V", there, dV)):
                x, W = (X if name == "Q" else source)[place], getattr(params, f"W_{name}")[h]
                dx, dW = matmul_backward(x, W, dprojected)
                d["X" if name == "Q" or context is None else "context"][place] += dx
                d[f"W_{name}"][h] += dW
    return d | {"context": None if context is None else d["context"]}


def own_place(at, array):
    """Where the sequence of a batch lies in an array with fewer, or shorter, batch axes."""
    axes = array.ndim - 2
    return tuple(min(i, array.shape[n] - 1) for n, i in enumerate(at[len(at) - axes :]))


def head_backward(arrays, h, dhead):
    """One head of one sequence: dQ, dK, dV."""
    Q, K, V, weights = (arrays[name][h] for name in ("Q", "K", "V", "weights"))
    dweights, dV = matmul_backward(weights, V, dhead)
    dscores = softmax_backward(weights, dweights)
    dQ, dK_T = matmul_backward(Q, K.T, dscores / Q.shape[1] ** 0.5)
    return dQ, dK_T.T, dV


def rotate(X, positions, frequencies, half=False):
    """X (..., T, d) as complex numbers: pair i of token t times e^(i · positions[t] · rates[i])."""
    positions = np.broadcast_to(positions, X.shape[:-1])
    turned = X.astype(float)
    for index in each(X.shape[:-1]):
        for i, rate in enumerate(frequencies.tolist()):
            a, b = (i, i + len(frequencies)) if half else (2 * i, 2 * i + 1)
            angle = float(positions[index]) * rate
            product = complex(X[index][a], X[index][b]) * complex(math.cos(angle), math.sin(angle))
            turned[index][a], turned[index][b] = product.real, product.imag
    return turned


def alibi_slopes(n_heads):
    """(H,) by recursion: 2^(-8/H), its square, ...; between powers of two, from the next power."""
    power = 1
    while 2 * power <= n_heads:
        power *= 2
    slopes = [math.pow(2, -8 * h / power) for h in range(1, power + 1)]
    if power < n_heads:
        slopes += alibi_slopes(2 * power)[::2].tolist()[: n_heads - power]
    return np.array(slopes)


def alibi_bias(T, S, slopes):
    """(H, T, S): minus slope times the distance of key s from query t, which is token S - T + t."""
    bias = np.zeros((len(slopes), T, S))
    for h, t, s in each(bias.shape):
        bias[h, t, s] = -slopes[h] * abs(S - T + t - s)
    return bias


def grouped_attention(Q, K, V, mask=None):
    """Q (..., H, T, d_k), K, V (..., G, S, ...) → heads: head h looks at key head h // (H / G)."""
    H, G = Q.shape[-3], K.shape[-3]
    owners = [h // (H // G) for h in range(H)]
    each_own = [np.stack([array[..., g, :, :] for g in owners], axis=-3) for array in (K, V)]
    return scaled_dot_product_attention(Q, *each_own, mask)


def pooled_heads(W, n_groups):
    """W (H, d_model, d) → (G, d_model, d): each number the mean of its group's heads."""
    members = len(W) // n_groups
    pooled = np.zeros((n_groups, *W.shape[1:]))
    for g, i, j in each(pooled.shape):
        group = [float(W[g * members + n, i, j]) for n in range(members)]
        pooled[g, i, j] = math.fsum(group) / members
    return pooled


def latent_attention(Q, C, W_UK, W_UV, mask=None):
    """Q (..., H, T, d_k), C (..., S, rank) → heads, from keys and values made for each head."""
    return scaled_dot_product_attention(Q, project_heads(C, W_UK), project_heads(C, W_UV), mask)


def cross_layer_attention(X, layers, sources, mask=None):
    """Layers on top of each other; layer n looks at the keys and values of layer sources[n]."""
    outputs = [X]
    for n, params in enumerate(layers):
        owner = layers[sources[n]]
        Q = project_heads(outputs[n], params.W_Q)
        K, V = (project_heads(outputs[sources[n]], W) for W in (owner.W_K, owner.W_V))
        heads = scaled_dot_product_attention(Q, K, V, mask)
        outputs.append(outputs[n] + project_out(concat_heads(heads), params.W_O))
    return outputs[-1]


def window_mask(T, S, window):
    """(T, S): query t is token S - T + t; it sees itself and the window - 1 keys before."""
    return np.array([[0 <= S - T + t - s < window for s in range(S)] for t in range(T)])


def strided_mask(T, stride):
    """(T, T): query t sees t, t - stride, t - 2 * stride, …"""
    return np.array([[s in range(t, -1, -stride) for s in range(T)] for t in range(T)])


def global_mask(T, tokens):
    """(T, T): a pair is seen where one of the two is global."""
    return np.array([[t in tokens or s in tokens for s in range(T)] for t in range(T)])


def receptive_field(mask, n_layers):
    """(T, T): whether token s comes to row t, a step to a row that sees it, or none, a layer."""
    T = len(mask)
    reached = np.zeros((T, T), dtype=bool)
    for s in range(T):
        rows = {s}
        for _ in range(n_layers):
            rows |= {t for t in range(T) if any(mask[t][u] for u in rows)}
        reached[sorted(rows), s] = True
    return reached


def attention_with_sink(scores, sink, mask=None):
    """A softmax over the keys that a query sees and its head's sink, whose weight is left out."""
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for index in each(scores.shape[:-1]):
        seen = [s for s in range(scores.shape[-1]) if mask[index][s]]
        row = [*(float(scores[index][s]) for s in seen), float(sink[index[-2]])]
        shares = softmax_row(row)[:-1] if seen else []
        for s, share in zip(seen, shares, strict=True):
            weights[index][s] = share
    return weights


def gate_heads(heads, X, W_G):
    """heads (..., H, T, d_v), each number times 1 / (1 + e to the minus its gate)."""
    gates = project_heads(X, W_G)
    gated = np.zeros(heads.shape)
    for index in each(heads.shape):
        gated[index] = heads[index] / (1 + math.exp(-gates[index]))
    return gated


def top_k_mask(scores, k, mask):
    """(..., T, S): the k keys of a row with the largest scores, of those it sees, earlier first."""
    mask, chosen = np.broadcast_to(mask, scores.shape), np.zeros(scores.shape, dtype=bool)
    for index in each(scores.shape[:-1]):
        seen = [s for s in range(scores.shape[-1]) if mask[index][s]]
        best = sorted(seen, key=lambda s, row=scores[index]: (-row[s], s))
        chosen[index][best[:k]] = True
    return chosen


def linear_attention(Q, K, V):
    """Q, K (..., T, d_k), V (..., T, d_v) → each value times its score, none of a later token."""
    heads = np.zeros((*Q.shape[:-1], V.shape[-1]))
    for index in each(heads.shape):
        *lead, t, j = index
        terms = [
            math.fsum(Q[(*lead, t, i)] * K[(*lead, s, i)] for i in range(Q.shape[-1]))
            * float(V[(*lead, s, j)])
            for s in range(t + 1)
        ]
        heads[index] = math.fsum(terms)
    return heads


def delta_step(state, k, v, beta, decay):
    """state (d_k, d_v), k, decay (d_k,), v (d_v,), beta a number → the state behind one write."""
    d_k, d_v = state.shape
    faded = np.array([[decay[i] * state[i, j] for j in range(d_v)] for i in range(d_k)])
    written = np.zeros((d_k, d_v))
    for i, j in each(written.shape):
        read = math.fsum(k[n] * faded[n, j] for n in range(d_k))
        written[i, j] = faded[i, j] + beta * k[i] * (v[j] - read)
    return written


def rms_norm(X):
    """X (..., d_model), each row divided by the root of the mean of its squares; zeros stay."""
    normed = np.zeros(X.shape)
    for index in each(X.shape[:-1]):
        row = [float(x) for x in X[index]]
        root = math.sqrt(math.fsum(x * x for x in row) / len(row))
        normed[index] = [x / root if root else 0.0 for x in row]
    return normed


def mlp(X, W_1, W_2):
    """X (..., T, d_model) → the same shape: what is negative between two products counts as 0."""
    between = project_out(X, W_1)
    for index in each(between.shape):
        between[index] = between[index] if between[index] > 0 else 0.0
    return project_out(between, W_2)


def block(X, params, feed, mask=None):
    """The residual stream behind a block: attention of the normed, then the MLP of the normed."""
    X = X + mha(rms_norm(X), params, mask=mask)
    return X + mlp(rms_norm(X), *feed)


def blocks(model, ids):
    """Scores of the next word, (..., T, vocabulary), of a model with layers and feeds."""
    X = embed(ids, model.E, model.P)
    for params, feed in zip(model.layers, model.feeds, strict=True):
        X = block(X, params, feed, causal_mask(ids.shape[-1]))
    return project_out(rms_norm(X), model.U)


def logit_terms(model, ids, instead=None):
    """Parts of the logits: of the words, then of each head; `instead`: {(layer, head): output}."""
    X = embed(ids, model.E, model.P)
    parts = [project_out(X, model.U)]
    for layer, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1]))["heads"]
        for h in range(params.n_heads):
            output = heads[..., h, :, :]
            if instead and (layer, h) in instead:
                output = np.broadcast_to(instead[layer, h], output.shape)
            brought = project_out(output, params.W_O[h * params.d_v : (h + 1) * params.d_v])
            X = X + brought
            parts.append(project_out(brought, model.U))
    return parts


def asked(target):
    """Every query that a place decides: its document, its place, the place that decides."""
    return [(n, t, int(target[n, t])) for n, t in each(target.shape) if target[n, t] >= 0]


def score_head(weights, target):
    """(H,): the mean weight of each head on the place that decides."""
    rows = asked(target)
    heads = range(weights.shape[1])
    return np.array([math.fsum(weights[n, h, t, s] for n, t, s in rows) / len(rows) for h in heads])


def offsets(target):
    """How far back the deciding place stands, of every query that asks."""
    return [t - s for _, t, s in asked(target)]

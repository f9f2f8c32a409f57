"""Forward and back through one layer: NumPy by hand against torch's autograd, interleaved.

The size is that of performance tables for a book's model: 8 sequences of 128 tokens, d_model 256,
8 heads, causal, float32, one thread. Three ways to the same gradients:

torch     one packed projection, F.scaled_dot_product_attention, autograd
chapter   trace and multi_head_attention_backward, as the book builds them
in place  the same products written for speed with the means of chapter 07: one wide matrix, large
          arrays rewritten in place, a few heads' worth at a time, nothing above the diagonal

Then, in float64: how far the hand-written gradients are from torch's, and how far central
differences are from them, step by step. Writes src/tutorial_lib/data/results/gradients.json.
"""

import math
from functools import partial

import numpy as np
import torch

import tutorial_lib as tl
from experiments import measuring
from experiments.measuring import ratio, summary, time_in_rounds
from experiments.torch_attention import bare

SEED = [0, 1]  # of the layer that is timed, of the one whose entries are nudged
SIZE = {"B": 8, "T": 128, "d_model": 256, "H": 8}
NAMES = ("X", "W_Q", "W_K", "W_V", "W_O")
BLOCK = 64  # queries
FULL, QUICK = 100, 2  # rounds


def draw(kind):
    """Return X, params and dY of the size above, in one precision."""
    rng = np.random.default_rng(SEED[0])
    params = tl.init_params(rng, d_model=SIZE["d_model"], n_heads=SIZE["H"])
    X, dY = rng.standard_normal((2, SIZE["B"], SIZE["T"], SIZE["d_model"])).astype(kind)
    return X, tl.Params(*(W.astype(kind) for W in vars(params).values())), dY


def by_chapter(X, params, dY):
    """Return the gradients of X and of the four matrices, as the book computes them."""
    record = tl.trace(X, params, mask=tl.causal_mask(X.shape[-2]))
    found = tl.multi_head_attention_backward(record, dY)
    return tuple(getattr(found, f"d{name}") for name in NAMES)


def wide_matrix(params):
    """Lay W_Q / sqrt(d_k), W_K and W_V side by side: (d_model, 3*H*d_k)."""
    W_Q = params.W_Q / np.asarray(math.sqrt(params.d_k), params.W_Q.dtype)
    return np.concatenate([tl.concat_heads(W) for W in (W_Q, params.W_K, params.W_V)], axis=-1)


def cut(wide, shape):
    """Cut (B*T, 3*H*d) into three arrays of heads, (B, H, T, d), without a copy."""
    B, T, H = shape
    return wide.reshape(B, T, 3, H, -1).transpose(2, 0, 3, 1, 4)


def tiles(B, T):
    """List (sequence, rows of queries, keys they see), the last rows of a sequence first."""
    starts = range(0, T, BLOCK)[::-1]
    return [(b, slice(s, s + BLOCK), slice(0, s + BLOCK)) for b in range(B) for s in starts]


def forward_in_place(X, params):
    """Return what the way back needs: the wide matrix, Q, K, V, powers, sums, heads; and Y."""
    (B, T, d_model), H, wide = X.shape, params.n_heads, wide_matrix(params)
    Q, K, V = cut(X.reshape(-1, d_model) @ wide, (B, T, H))
    concat, powers = np.empty((B, T, H, params.d_v), X.dtype), {}
    heads, sums = concat.swapaxes(1, 2), np.empty((B, H, T, 1), X.dtype)
    later, ones = ~tl.causal_mask(BLOCK), np.ones((T, 1), X.dtype)
    for b, rows, seen in tiles(B, T):
        scores = Q[b, :, rows] @ np.swapaxes(K[b, :, seen], -1, -2)
        np.copyto(scores[..., -BLOCK:], -np.inf, where=later)
        scores -= scores.max(axis=-1, keepdims=True)
        powers[b, rows.start] = np.exp(scores, out=scores)
        np.matmul(scores, ones[seen], out=sums[b, :, rows])
        np.divide(scores @ V[b, :, seen], sums[b, :, rows], out=heads[b, :, rows])
    concat = concat.reshape(B * T, -1)
    Y = (concat @ params.W_O).reshape(X.shape)
    return wide, (Q, K, V), (powers, sums, heads), concat, Y


def backward_in_place(X, params, dY, record):
    """Return the gradients of X and of the four matrices.

    With powers p, their sum r and the mean m of a row, p/r * (dweights - m) is
    p * (dweights/r - m/r): dividing dheads by r, which is small, divides the large array too.
    """
    wide, (Q, K, V), (powers, sums, heads), concat, _ = record
    (B, T, d_model), H, dY = X.shape, params.n_heads, dY.reshape(-1, X.shape[-1])
    dheads = tl.split_heads((dY @ params.W_O.T).reshape(B, T, -1), H) / sums
    means = (dheads * heads).sum(axis=-1, keepdims=True)  # sum of weights * dweights, over r
    dwide = np.empty((B * T, wide.shape[1]), X.dtype)
    dQ, dK, dV = cut(dwide, (B, T, H))
    for b, rows, seen in tiles(B, T):
        power, dhead = powers[b, rows.start], dheads[b, :, rows]
        dscores = dhead @ np.swapaxes(V[b, :, seen], -1, -2)
        dscores -= means[b, :, rows]
        dscores *= power
        np.matmul(dscores, K[b, :, seen], out=dQ[b, :, rows])
        put = np.copyto if seen.stop == T else add_to
        put(dK[b, :, seen], np.swapaxes(dscores, -1, -2) @ Q[b, :, rows])
        put(dV[b, :, seen], np.swapaxes(power, -1, -2) @ dhead)
    dW = np.split(X.reshape(-1, d_model).T @ dwide, 3, axis=-1)
    dW_Q, dW_K, dW_V = (tl.split_heads(part, H) for part in dW)
    dX = (dwide @ wide.T).reshape(X.shape)
    return dX, dW_Q / math.sqrt(params.d_k), dW_K, dW_V, concat.T @ dY


def add_to(total, part):
    """Add in place."""
    total += part


def by_hand_in_place(X, params, dY):
    """Return the same gradients, by the two functions above."""
    return backward_in_place(X, params, dY, forward_in_place(X, params))


def by_torch(X, params, dY):
    """Return two calls of the layer in torch: its output, and the same gradients by autograd."""
    X, dY = torch.tensor(X, requires_grad=True), torch.tensor(dY)
    layer = bare(X, params)

    def gradients():
        dX, dW, dW_O = torch.autograd.grad(layer.run(X), [X, *layer.module.parameters()], dY)
        split = (tl.split_heads(part.T, params.n_heads) for part in np.split(dW.numpy(), 3))
        return dX.numpy(), *split, dW_O.numpy().T

    return partial(layer.run, X), gradients


def largest_differences(found, expected):
    """Return, for each gradient, its largest difference over the largest entry."""
    pairs = zip(NAMES, found, expected, strict=True)
    return {n: float(f"{np.abs(a - b).max() / np.abs(b).max():.2g}") for n, a, b in pairs}


def measure_speed(rounds):
    """Time the three ways, and each half of NumPy's, in interleaved rounds."""
    X, params, dY = draw(np.float32)
    forward, gradients = by_torch(X, params, dY)
    record, mask = tl.trace(X, params, mask=tl.causal_mask(SIZE["T"])), tl.causal_mask(SIZE["T"])
    calls = {
        "torch": gradients,
        "chapter": lambda: by_chapter(X, params, dY),
        "in place": lambda: by_hand_in_place(X, params, dY),
        "torch, forward only": forward,
        "chapter, forward only": lambda: tl.trace(X, params, mask=mask),
        "chapter, backward only": lambda: tl.multi_head_attention_backward(record, dY),
    }
    times_ms = time_in_rounds(calls, rounds=rounds, title="gradients")
    expected = gradients()
    differences = {name: largest_differences(calls[name](), expected) for name in list(calls)[1:3]}
    return {
        name: {"time_ms": summary(spent), "over_torch": ratio(spent, times_ms["torch"])}
        | ({"differences_from_torch": differences[name]} if name in differences else {})
        for name, spent in times_ms.items()
    }


def compare_with_torch():
    """Compare the book's gradients with torch's in float64."""
    X, params, dY = draw(np.float64)
    _, gradients = by_torch(X, params, dY)
    return largest_differences(by_chapter(X, params, dY), gradients())


def compare_with_differences():
    """Return the largest error of central differences of W_Q, over its largest entry, by step."""
    rng = np.random.default_rng(SEED[1])
    params = tl.init_params(rng, d_model=12, n_heads=3, d_k=4, d_v=7)
    X, dY = rng.standard_normal((2, 5, 12))
    mask = tl.causal_mask(5)
    exact = tl.multi_head_attention_backward(tl.trace(X, params, mask=mask), dY).dW_Q

    def loss(W_Q):
        moved = tl.Params(W_Q, params.W_K, params.W_V, params.W_O)
        return (tl.multi_head_attention(X, moved, mask=mask) * dY).sum()

    errors = {}
    for step in 10.0 ** -np.arange(1, 13):
        found = np.zeros(exact.shape)
        for index in np.ndindex(exact.shape):
            nudge = np.zeros(exact.shape)
            nudge[index] = step
            found[index] = loss(params.W_Q + nudge) - loss(params.W_Q - nudge)
        error = np.abs(found / (2 * step) - exact).max() / np.abs(exact).max()
        errors[f"{step:.0e}"] = float(f"{error:.2g}")
    return errors


def main(rounds, record):
    """Measure the speed and print it, and compare the gradients."""
    record |= {"size": SIZE, "speed": measure_speed(rounds)}
    measuring.print_table("gradients", record["speed"])
    record["differences_from_torch_in_float64"] = compare_with_torch()
    record["errors_of_central_differences_of_W_Q"] = compare_with_differences()

"""Compare the gradients of one layer by hand with torch's autograd and with central differences.

The size is that of a book's model: 8 sequences of 128 tokens, d_model 256, 8 heads, causal. Writes
src/tutorial_lib/data/results/gradients.json.
"""

import numpy as np
import torch

import tutorial_lib as tl
from experiments.torch_attention import bare

SEED = [0, 1]  # of the layer of SIZE, of the one whose entries are nudged
SIZE = {"B": 8, "T": 128, "d_model": 256, "H": 8}
NAMES = ("X", "W_Q", "W_K", "W_V", "W_O")


def sample_inputs():
    """Return X, params and dY of the size above."""
    rng = np.random.default_rng(SEED[0])
    params = tl.init_params(rng, d_model=SIZE["d_model"], n_heads=SIZE["H"])
    X, dY = rng.standard_normal((2, SIZE["B"], SIZE["T"], SIZE["d_model"]))
    return X, params, dY


def by_chapter(X, params, dY):
    """Return the gradients of X and of the four matrices, as the book computes them."""
    record = tl.trace(X, params, mask=tl.causal_mask(X.shape[-2]))
    found = tl.multi_head_attention_backward(record, dY)
    return tuple(getattr(found, f"d{name}") for name in NAMES)


def by_torch(X, params, dY):
    """Return the same gradients by autograd, of one packed projection and SDPA."""
    X, dY = torch.tensor(X, requires_grad=True), torch.tensor(dY)
    layer = bare(X, params)
    dX, dW, dW_O = torch.autograd.grad(layer.run(X), [X, *layer.module.parameters()], dY)
    split = (tl.split_heads(part.T, params.n_heads) for part in np.split(dW.numpy(), 3))
    return dX.numpy(), *split, dW_O.numpy().T


def compare_with_torch():
    """Return, for each gradient, its largest difference from torch's over the largest entry."""
    layer = sample_inputs()
    pairs = zip(NAMES, by_chapter(*layer), by_torch(*layer), strict=True)
    return {n: float(f"{np.abs(a - b).max() / np.abs(b).max():.2g}") for n, a, b in pairs}


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


def main(record):
    """Compare the gradients, and print it."""
    record["size"] = SIZE
    record["differences_from_torch_in_float64"] = compare_with_torch()
    record["errors_of_central_differences_of_W_Q"] = compare_with_differences()
    print(record)

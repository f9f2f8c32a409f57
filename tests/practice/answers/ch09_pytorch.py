"""The answers of chapter 09, computed."""

import math

import numpy as np

from tests.lazy import torch
from tutorial_lib import Params, concat_heads, init_params, multi_head_attention, trace

HEADS, WIDTH, D_MODEL = 3, 4, 12
ALIKE = 0.04  # two spreads of a few hundred thousand samples are equal up to this fraction


def first_number_of_linear():
    """Run nn.Linear with the rows (1, 2) and (3, 4) on x = (2, 1)."""
    linear = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        return linear(torch.tensor([2.0, 1.0]))[0].item()


def blocks_read_head_first():
    """Write the nine blocks kind by kind, and read them as head, kind, width."""
    made = [[[kind + head] * WIDTH for head in "012"] for kind in "QKV"]
    rows = np.array(made).reshape(-1)  # the packed matrix, each row with its block's name
    read = rows.reshape(HEADS, 3, WIDTH)
    taken = list(read[0, :, 0])
    return [
        taken == ["Q0", "K0", "V0"],
        taken == ["Q0", "Q1", "Q2"],
        taken == ["Q0", "V1", "K2"],
        read.shape != np.shape(made),
    ]


def sum_of_a_dropped_row():
    """Sample a thousand rows of sixteen weights of 1/16, drop 10 % of them, and add up each row."""
    survives = np.random.default_rng(0).random((1000, 16)) >= 0.1
    sums = (survives / 16 / 0.9).sum(axis=-1)
    return [
        np.allclose(sums, 1),
        bool((sums <= 1).all()),
        np.allclose(sums, survives.sum(axis=-1) / 14.4),
        np.allclose(sums, 0.9),
    ]


def shape_of_out_proj():
    """Build the module, and return the shape of its `out_proj.weight`."""
    from tutorial_lib.pytorch import MultiHeadAttention

    return tuple(MultiHeadAttention(20, 4, d_k=8, d_v=8).out_proj.weight.shape)


def how_another_order_shows():
    """Load blocks in the order head by head into our module, run it, and train it for one step."""
    from tutorial_lib.pytorch import MultiHeadAttention, attention_trace

    torch.manual_seed(0)
    module, X = MultiHeadAttention(D_MODEL, HEADS).double(), torch.randn(5, D_MODEL).double()
    packed = module.qkv_proj.weight.detach().clone()
    expected = module(X).detach()
    file = packed.unflatten(0, (3, HEADS, WIDTH)).transpose(0, 1).flatten(0, 2)
    refused = _refuses(module.qkv_proj, file)
    found = attention_trace(module, X)
    sums = found.weights.sum(dim=-1)
    return [
        refused,
        not torch.allclose(sums, torch.ones_like(sums)),
        not torch.allclose(found.Y, expected),
        math.isnan(_loss_after_a_step(module, X, expected)),
    ]


def _refuses(linear, weight):
    """Load a matrix into a submodule, and tell whether that raised an error."""
    try:
        linear.load_state_dict({"weight": weight})
    except RuntimeError:
        return True
    return False


def _loss_after_a_step(module, X, target):
    """Train the module for one step toward a target, and return its loss after that."""
    steps = torch.optim.SGD(module.parameters(), lr=0.1)
    (module(X) - target).square().mean().backward()
    steps.step()
    return (module(X) - target).square().mean().item()


def what_packing_does_to_scores():
    """Sample packed and separate matrices by Xavier's rule; compare entries, queries, scores."""
    torch.manual_seed(0)
    d = 512
    X = torch.randn(d, d)
    packed = torch.nn.init.xavier_uniform_(torch.empty(3 * d, d))
    apart = [torch.nn.init.xavier_uniform_(torch.empty(d, d)) for _ in "QK"]
    entry, *_ = together = _spreads(X, *packed.split(d)[:2])
    _, query, product, score = together / _spreads(X, *apart)
    root = 0.5**0.5
    return [
        _near(query, root) and _near(score, query**2),
        _near(score, root),
        _near(entry**2, 2 / (2 * d + d)),
        _near(product, root),
    ]


def _spreads(X, W_Q, W_K):
    """Measure the spread of the entries, the queries, their products with keys, and the scores."""
    Q, K = X @ W_Q.T, X @ W_K.T
    products = Q @ K.T
    return np.array([A.std().item() for A in (W_Q, Q, products, products / len(W_Q) ** 0.5)])


def _near(a, b):
    """Tell whether two measured spreads are equal, up to the noise of sampling."""
    return abs(a - b) <= ALIKE * b


def line_that_concatenates(lines):
    """Run each line, and compare with chapter 05's `concat_heads`."""
    B, H, T, d_v = 2, 3, 5, 7
    heads = torch.from_numpy(np.random.default_rng(0).standard_normal((B, H, T, d_v)))
    names = {"heads": heads, "B": B, "H": H, "T": T, "d_v": d_v}
    expected = concat_heads(heads.numpy())
    return [np.array_equal(eval(line, names).numpy(), expected) for line in lines]


def what_w_o_must_do():
    """Swap two heads, do to W_O what each option says, and compare Y."""
    rng = np.random.default_rng(0)
    params = init_params(rng, d_model=12, n_heads=2, d_k=4, d_v=6)
    X = rng.standard_normal((5, 12))
    W_O, order = params.W_O, [1, 0]
    swapped = [W[order] for W in (params.W_Q, params.W_K, params.W_V)]
    columns = W_O.reshape(12, 2, 6)[:, order].reshape(12, 12)
    rows = W_O.reshape(2, 6, 12)[order].reshape(12, 12)
    expected = trace(X, params).Y

    def same(W_O):
        return np.allclose(multi_head_attention(X, Params(*swapped, W_O)), expected)

    return [same(W_O), same(columns), same(rows), same(W_O.T)]

"""The answers of chapter 11, computed."""

import numpy as np

import tutorial_lib as tl
from tests.lazy import F, torch
from tutorial_lib.counting import attention_bytes, attention_flop
from tutorial_lib.tiled import attend_in_blocks


def _intensity(T, S, *, fused, d=64):
    """Flop per byte of attention in float16."""
    Q, (K, V) = np.empty((T, d), np.float16), np.empty((2, S, d), np.float16)
    return attention_flop(Q, K, V) / attention_bytes(Q, K, V, fused=fused)


def flop_per_byte_of_a_long_sequence():
    """Count flop and bytes of 16,384 tokens, step by step, by the library's two functions."""
    return _intensity(16_384, 16_384, fused=False)


def where_a_sum_in_bfloat16_ends():
    """Add 1 to a number of bfloat16 a thousand times."""
    assert torch.finfo(torch.bfloat16).eps == 2.0 ** (1 - 8)  # 8 significant binary digits
    total = torch.tensor(0, dtype=torch.bfloat16)
    for _ in range(1000):
        total += 1
    return total.item()


def what_is_memory_bound():
    """Count flop per byte of each of the three, and compare with 12."""
    n = 4096
    product = 2 * n**3 / (3 * n**2 * np.dtype(np.float32).itemsize)
    fused, one_query = (_intensity(T, 2048, fused=True) for T in (2048, 1))
    return [product < 12, fused < 12, max(product, fused, one_query) < 12, one_query < 12]


def half_precision_for_large_scores():
    """Store scores of 70,000 and less in both half precisions, and take the softmax."""

    def works(dtype):
        return bool(scores.to(dtype).softmax(dim=-1).isfinite().all())

    scores = torch.tensor([70_000.0, 60_000.0, 0.0])
    wide, fine = works(torch.bfloat16), works(torch.float16)
    stored = scores.to(torch.bfloat16)[0].item()
    return [
        wide and not fine and stored == 70_144,
        fine and not wide,
        not (wide or fine),
        wide and fine,
    ]


def why_a_block_may_be_forgotten():
    """Spoil a block's scores when its outputs are written; look at its scores, outputs, digits."""
    Q, K, V = np.random.default_rng(0).standard_normal((3, 3, 50, 4))  # (H, T, d)
    exact, scores = tl.scaled_dot_product_attention(Q, K, V), tl.attention_scores(Q, K)
    heads = np.empty_like(exact)
    for start in range(0, 50, 10):
        rows = np.s_[:, start : start + 10]
        heads[rows] = tl.attention_weights(scores[rows]) @ V
        scores[rows] = 1e6  # forgotten
    hidden = tl.attention_scores(Q, K)[:, ~tl.causal_mask(50)]
    sums = np.concatenate([V[0], np.ones((50, 1))], axis=1)  # what is known of a row of weights
    in_blocks = attend_in_blocks(Q / 2, K.swapaxes(-1, -2), V, causal=False, block=10)
    return [
        np.allclose(hidden, 0),
        np.allclose(heads, exact),
        np.linalg.matrix_rank(sums) == 50,
        in_blocks.dtype == np.float16,
    ]


def how_the_weights_are_read():
    """Try SDPA in each way, and compare with `attention_trace` of the same module."""
    from tutorial_lib.pytorch import MultiHeadAttention, attention_trace

    torch.manual_seed(0)
    module, X = MultiHeadAttention(12, 3).double(), torch.randn(4, 12).double()
    steps = attention_trace(module, X)
    heads = F.scaled_dot_product_attention(steps.Q, steps.K, steps.V)
    quotients = (heads / steps.V).detach()  # (H, T, d_v), by chance of the shape of the weights
    same = torch.allclose(steps.Y, module(X)) and torch.allclose(steps.weights @ steps.V, heads)
    return [
        isinstance(heads, tuple),
        hasattr(F.scaled_dot_product_attention, "register_forward_hook"),
        same,
        torch.allclose(quotients, steps.weights),
    ]

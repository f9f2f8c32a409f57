"""What chapter 10 says of scores and of masks, computed."""

import numpy as np

from tests.chapters.named import printed_under
from tests.lazy import torch
from tutorial_lib import causal_mask


def scores_of_bark_are_ln_2_minus_ln_2_and_0():
    """In chapter 03 the scores of *bark* in head 0 are 1, −1 and 0 times ln 2."""
    scores = printed_under("03_attention_weights", "scores / ln 2")
    return (scores[0, 2] == [1, -1, 0]).all()


def minus_1e9_added_gives_the_weights_without_a_mask():
    """In float64 the scores survive the sum with −10⁹, so the weights are those of no mask."""
    *_, added = printed_under("10_masks", "all are hidden")
    return np.allclose(added.astype(float), np.array([4, 1, 2]) / 7, atol=1e-4)


def a_query_sees_the_keys_up_to_its_own():
    """Query t of T, aligned at the bottom right, sees the keys s ≤ S − T + t of S."""
    T, S = 2, 5
    seen = [[s <= S - T + t for s in range(S)] for t in range(T)]
    return (causal_mask(T, S) == seen).all()


def mask_beside_is_causal_gives_the_first_table():
    """SDPA of this version takes both and gives what the mask gives with top-left alignment."""
    from torch.nn.functional import scaled_dot_product_attention

    keys, values = torch.zeros(1, 1, 5, 5), torch.eye(5)[None, None]
    both = {"attn_mask": torch.from_numpy(causal_mask(2, 5)), "is_causal": True}
    heads = scaled_dot_product_attention(keys[..., :2, :], keys, values, **both)
    first = printed_under("10_masks", "our mask and a top-left one")
    return np.allclose(heads[0, 0], first.astype(float))

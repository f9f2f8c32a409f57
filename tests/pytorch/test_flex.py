"""FlexAttention's form of each mask, as chapter 17 prints it, is ours.

The chapter's fence is text, since the page has no PyTorch: here it runs. The comment behind each
`def` is the call of NumPy that it stands beside, and runs too.
"""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import (
    AuxRequest,
    create_block_mask,
    create_mask,
    flex_attention,
)

from tutorial_lib import attention_scores, causal_mask
from tutorial_lib.variants import patterns

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "17_sparse_attention.ipynb"
B, H, T, D = 2, 3, 11, 8
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def gaussian_qkv(seed):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((3, B, H, T, D)))


def chapter_fence(start):
    cells = json.loads(CHAPTER.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    fences = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [fence] = [fence for fence in fences if fence.startswith(start)]
    return fence


MASKS = chapter_fence("# FlexAttention, in PyTorch\n")


def function_pairs(fence):
    """Each function of the fence, beside the mask that the comment behind its `def` gives."""
    Q, K, _ = gaussian_qkv(0).numpy()
    namespace = vars(patterns) | {"rng": np.random.default_rng(0), "T": T, "n": 3, "k": 4}
    namespace |= {"scores": attention_scores(Q, K), "mask": causal_mask(T)}
    fence_masks = {}
    exec(compile(fence, "chapter 17", "exec"), fence_masks)
    for node in ast.parse(fence).body:
        if isinstance(node, ast.FunctionDef):
            comment = fence.splitlines()[node.lineno - 1].partition(":  # ")[2]
            table, _, call = comment.rpartition(" = ") if " = " in comment else ("", "", comment)
            expected = torch.from_numpy(eval(call, namespace | fence_masks))
            fence_masks[table] = expected  # a table that the function reads, where it has a name
            yield node.name, fence_masks[node.name], expected


def wrong_names(fence):
    """The functions of the fence that are not what stands beside them."""
    masks = ((name, flex_mask_of(function), mask) for name, function, mask in function_pairs(fence))
    return [name for name, mask, ours in masks if not torch.equal(mask, ours.expand(B, H, T, T))]


def flex_mask_of(function):
    """The mask of a function of positions, for all heads of all sequences."""
    return create_mask(function, B, H, T, T, device="cpu")


def test_each_mask_of_the_chapter_is_the_one_that_stands_beside_it():
    names = [name for name, _, _ in function_pairs(MASKS)]
    assert {"window", "strided", "global_tokens", "random_keys"} <= set(names)
    assert wrong_names(MASKS) == []


CODE_CHANGES = {
    "window": ("q_idx - kv_idx < w", "q_idx - kv_idx <= w"),
    "strided": ("% stride == 0", "% stride == 1"),
    "global_tokens": ("(q_idx == first) | (kv_idx == first)", "kv_idx == first"),
    "random_keys": ("sampled[q_idx, kv_idx]", "sampled[kv_idx, q_idx]"),
    "chosen": ("best[b, h, q_idx, kv_idx]", "best[0, h, q_idx, kv_idx]"),
}


@pytest.mark.parametrize("name", CODE_CHANGES)
def test_a_mask_that_is_changed_is_named(name):
    old_code, new_code = CODE_CHANGES[name]
    assert old_code in MASKS
    assert wrong_names(MASKS.replace(old_code, new_code)) == [name]


def test_call_of_the_chapter_gives_the_heads_of_a_window_and_counts_behind_a_cache():
    fence = chapter_fence("from torch.nn.attention.flex")
    (Q, K, V), S = gaussian_qkv(3), T + 4
    namespace = {"torch": torch, "Q": Q, "K": K, "V": V, "T": T, "S": S}
    exec(compile(MASKS, "chapter 17", "exec"), namespace)
    uncompiled_fence = fence.replace("torch.compile(flex_attention)", "flex_attention")
    assert uncompiled_fence != fence
    exec(compile(uncompiled_fence, "chapter 17", "exec"), namespace)
    mask = torch.from_numpy(patterns.window_mask(T, T, namespace["w"]))
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    torch.testing.assert_close(namespace["heads"], heads, rtol=1e-12, atol=1e-12)
    cached_mask = create_mask(namespace["after_cache"], B, H, T, S, device="cpu")
    expected = torch.from_numpy(patterns.window_mask(T, S, namespace["w"]))
    assert torch.equal(cached_mask, expected.expand(B, H, T, S))


@pytest.mark.long
def test_heads_are_those_of_the_call_with_a_table():
    Q, K, V = gaussian_qkv(1)
    for name, function, mask in function_pairs(MASKS):
        block_mask = create_block_mask(function, B, H, T, T, device="cpu")
        heads = flex_attention(Q, K, V, block_mask=block_mask)
        expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask).nan_to_num()
        torch.testing.assert_close(heads, expected, rtol=1e-12, atol=1e-12, msg=name)


def window_block_mask(w, T):
    return create_block_mask(lambda b, h, t, s: (s <= t) & (t - s < w), None, None, T, T, "cpu")


def test_a_sink_is_a_gate_behind_the_kernel():
    Q, K, V = gaussian_qkv(2)
    sink = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = {"block_mask": window_block_mask(4, T), "return_aux": AuxRequest(lse=True)}
    heads, aux_output = flex_attention(Q, K, V, **options)
    heads = heads * torch.sigmoid(aux_output.lse - sink[:, None])[..., None]
    scores, mask = attention_scores(Q.numpy(), K.numpy()), patterns.window_mask(T, T, 4)
    expected = patterns.attention_with_sink(scores, sink.detach().numpy(), mask=mask) @ V.numpy()
    np.testing.assert_allclose(heads.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def test_blocks_of_a_window_are_few():
    dense_blocks = window_block_mask(128, 4_096).to_dense()
    assert (int(dense_blocks.sum()), dense_blocks.numel()) == (63, 1_024)

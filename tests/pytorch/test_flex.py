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


def normal(seed):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((3, B, H, T, D)))


def fence_of(start):
    cells = json.loads(CHAPTER.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    fences = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [fence] = [fence for fence in fences if fence.startswith(start)]
    return fence


MASKS = fence_of("# FlexAttention, in PyTorch\n")


def pairs(fence):
    """Each function of the fence, beside the mask that the comment behind its `def` gives."""
    Q, K, _ = normal(0).numpy()
    names = vars(patterns) | {"rng": np.random.default_rng(0), "T": T, "n": 3, "k": 4}
    names |= {"scores": attention_scores(Q, K), "mask": causal_mask(T)}
    ours = {}
    exec(compile(fence, "chapter 17", "exec"), ours)
    for node in ast.parse(fence).body:
        if isinstance(node, ast.FunctionDef):
            comment = fence.splitlines()[node.lineno - 1].partition(":  # ")[2]
            table, _, call = comment.rpartition(" = ") if " = " in comment else ("", "", comment)
            expected = torch.from_numpy(eval(call, names | ours))
            ours[table] = expected  # a table that the function reads, where it has a name
            yield node.name, ours[node.name], expected


def differing(fence):
    """The functions of the fence that are not what stands beside them."""
    masks = ((name, of(function), mask) for name, function, mask in pairs(fence))
    return [name for name, mask, ours in masks if not torch.equal(mask, ours.expand(B, H, T, T))]


def of(function):
    """The mask of a function of positions, for all heads of all sequences."""
    return create_mask(function, B, H, T, T, device="cpu")


def test_each_mask_of_the_chapter_is_the_one_that_stands_beside_it():
    names = [name for name, _, _ in pairs(MASKS)]
    assert {"window", "strided", "global_tokens", "random_keys"} <= set(names)
    assert differing(MASKS) == []


CHANGES = {
    "window": ("q_idx - kv_idx < w", "q_idx - kv_idx <= w"),
    "strided": ("% stride == 0", "% stride == 1"),
    "global_tokens": ("(q_idx == first) | (kv_idx == first)", "kv_idx == first"),
    "random_keys": ("sampled[q_idx, kv_idx]", "sampled[kv_idx, q_idx]"),
    "chosen": ("best[b, h, q_idx, kv_idx]", "best[0, h, q_idx, kv_idx]"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_mask_that_is_changed_is_named(name):
    old, new = CHANGES[name]
    assert old in MASKS
    assert differing(MASKS.replace(old, new)) == [name]


def test_call_of_the_chapter_gives_the_heads_of_a_window_and_counts_behind_a_cache():
    fence = fence_of("from torch.nn.attention.flex")
    (Q, K, V), S = normal(3), T + 4
    names = {"torch": torch, "Q": Q, "K": K, "V": V, "T": T, "S": S}
    exec(compile(MASKS, "chapter 17", "exec"), names)
    whole = fence.replace("torch.compile(flex_attention)", "flex_attention")
    assert whole != fence
    exec(compile(whole, "chapter 17", "exec"), names)
    mask = torch.from_numpy(patterns.window_mask(T, T, names["w"]))
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    torch.testing.assert_close(names["heads"], heads, rtol=1e-12, atol=1e-12)
    behind = create_mask(names["after_cache"], B, H, T, S, device="cpu")
    expected = torch.from_numpy(patterns.window_mask(T, S, names["w"]))
    assert torch.equal(behind, expected.expand(B, H, T, S))


@pytest.mark.long
def test_heads_are_those_of_the_call_with_a_table():
    Q, K, V = normal(1)
    for name, function, mask in pairs(MASKS):
        block_mask = create_block_mask(function, B, H, T, T, device="cpu")
        heads = flex_attention(Q, K, V, block_mask=block_mask)
        expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask).nan_to_num()
        torch.testing.assert_close(heads, expected, rtol=1e-12, atol=1e-12, msg=name)


def window_blocks(w, T):
    return create_block_mask(lambda b, h, t, s: (s <= t) & (t - s < w), None, None, T, T, "cpu")


def test_a_sink_is_a_gate_behind_the_kernel():
    Q, K, V = normal(2)
    sink = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    options = {"block_mask": window_blocks(4, T), "return_aux": AuxRequest(lse=True)}
    heads, aux = flex_attention(Q, K, V, **options)
    heads = heads * torch.sigmoid(aux.lse - sink[:, None])[..., None]
    scores, mask = attention_scores(Q.numpy(), K.numpy()), patterns.window_mask(T, T, 4)
    expected = patterns.attention_with_sink(scores, sink.detach().numpy(), mask=mask) @ V.numpy()
    np.testing.assert_allclose(heads.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def test_blocks_of_a_window_are_few():
    blocks = window_blocks(128, 4_096).to_dense()
    assert (int(blocks.sum()), blocks.numel()) == (63, 1_024)

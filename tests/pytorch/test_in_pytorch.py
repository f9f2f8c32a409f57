"""The fences under *In PyTorch*: each runs, and gives what the chapter builds in NumPy.

They are text, since the page has no PyTorch. The fences of a section run in one namespace, with the
names that the section's row brings; the row's function then compares. `torch.compile` traces here,
and does not need a C++ compiler.
"""

import json
import re
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_mask

from tests.pytorch.layers import draw
from tools.chapters import pages
from tutorial_lib import (
    attention_scores,
    causal_mask,
    concat_heads,
    project_heads,
    scaled_dot_product_attention,
)
from tutorial_lib.models.real.gguf import read_gguf
from tutorial_lib.models.real.model import real_file, real_model
from tutorial_lib.pytorch import DecoderAttention, Rotation
from tutorial_lib.variants import patterns
from tutorial_lib.variants.grouped import grouped_attention
from tutorial_lib.variants.positions import rope_frequencies, rotate
from tutorial_lib.variants.state import linear_attention

B, H, G, T, D = 2, 6, 3, 11, 8
HEADING, FENCE = "#### In PyTorch\n", re.compile(r"```python\n(.*?)```", re.DOTALL)


def section(path):
    """The text under the heading, up to the next one outside a fence; None: it has none."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    _, found, after = text.partition(HEADING)
    return re.split(r"^#{2,4} (?!.*in PyTorch)", after, flags=re.MULTILINE)[0] if found else None


SECTIONS = {page.path.stem: section(page.path) for page in pages()}
SECTIONS = {name: text for name, text in SECTIONS.items() if text}


def run(name, brought, change=lambda code: code):
    """Run the fences of a section one after the other: the names that they bind."""
    bound = dict(brought)
    for fence in FENCE.findall(SECTIONS[name]):
        exec(compile(change(fence), name, "exec"), bound)
    return bound


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    """`torch.compile` without code for the processor; a break of the graph is an error."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager", fullgraph=True))
    torch.compiler.reset()


def assert_same(actual, expected):
    torch.testing.assert_close(actual, torch.as_tensor(expected), rtol=1e-10, atol=1e-10)


def cache_of_fixed_length(change):
    """14: token by token in a buffer of 20 rows; and three prompts one behind the other."""
    bound, (Q, K, V) = run("14_kv_cache", {}, change), draw(3, B, H, T, D)
    buffers = torch.zeros(2, B, H, 20, D, dtype=torch.float64)
    rows = [
        bound["step"](*(A[:, :, t : t + 1] for A in (Q, K, V)), *buffers, torch.tensor([t]))
        for t in range(T)
    ]
    expected = scaled_dot_product_attention(*(A.numpy() for A in (Q, K, V)), mask=causal_mask(T))
    assert_same(torch.cat(rows, dim=2), expected)
    assert bound["offsets"].tolist() == [0, 2, 7, 11]


def shared_keys(change):
    """15: the option, copies in the order of np.repeat, and in that of np.tile."""
    Q, (K, V) = draw(B, H, T, D), draw(2, B, G, T, D, seed=2)
    bound = run("15_mqa_gqa_mla", {"Q": Q, "K": K, "V": V, "H": H, "G": G}, change)
    arrays, mask = [A.numpy() for A in (Q, K, V)], causal_mask(T)
    assert_same(bound["heads"], grouped_attention(*arrays, mask=mask))
    assert_same(bound["same"], bound["heads"])
    tiled = [np.tile(A, (1, H // G, 1, 1)) for A in arrays[1:]]
    assert_same(bound["wrong"], scaled_dot_product_attention(arrays[0], *tiled, mask=mask))


def rotations(change):
    """16: both layouts; and the position at which whole numbers in bfloat16 begin to be equal."""
    frequencies = rope_frequencies(D)
    bound = run("16_rope_alibi", {"T": T, "frequencies": torch.from_numpy(frequencies)}, change)
    Q = draw(B, H, T, D).float()
    for half in (False, True):
        expected = rotate(Q.double().numpy(), np.arange(T), frequencies, half=half)
        np.testing.assert_allclose(bound["rotate"](Q, half), expected, rtol=0, atol=1e-5)
    positions = torch.arange(300).bfloat16()
    assert int((positions.diff() == 0).nonzero()[0]) + 1 == 257
    assert bound["angles"].dtype == torch.float32
    assert bound["rotate"](Q.bfloat16()).dtype == torch.bfloat16


def masks_of_positions(change):
    """17: each function beside its call in NumPy; a sink; queries behind a cache; single steps."""
    (Q, K, V), S = draw(3, B, H, T, D), T + 4
    sink = draw(H, seed=3)
    names = vars(patterns) | {"rng": np.random.default_rng(0), "T": T, "n": 3, "k": 4}
    names |= {"scores": attention_scores(Q.numpy(), K.numpy()), "mask": causal_mask(T)}
    brought = {"Q": Q, "K": K, "V": V, "T": T, "S": S, "sink": sink}
    bound = run("17_sparse_attention", brought, lambda code: change(uncompiled(code)))
    for name, comment in re.findall(r"def (\w+)\(b, h, q_idx, kv_idx\):  # (.*)", first_fence()):
        table, _, call = comment.rpartition(" = ")
        expected = torch.from_numpy(eval(call, names | bound))
        bound[table] = expected  # a table that the function reads, where it has a name
        actual = create_mask(bound[name], B, H, T, T, device="cpu")
        assert torch.equal(actual, expected.expand(B, H, T, T)), name
    scores, mask = names["scores"], patterns.window_mask(T, T, bound["w"])
    weights = patterns.attention_with_sink(scores, sink.numpy(), mask=mask)
    assert_same(bound["with_sink"], weights @ V.numpy())
    cached = create_mask(bound["after_cache"], B, H, T, S, device="cpu")
    behind = torch.from_numpy(patterns.window_mask(T, S, bound["w"]))
    assert torch.equal(cached, behind.expand(B, H, T, S))
    single_steps(change)


def single_steps(change):
    """17: each step gives its row of the whole pass, and lists the blocks of all keys that it sees.

    The blocks are compared by themselves, since an uncompiled call ignores them.
    """
    (Q, K, V), T = draw(3, 1, 1, 140, D), 140  # more than one block of 128
    brought = {"Q": Q, "K": K, "V": V, "T": T, "S": T, "sink": draw(1, seed=3)}
    bound = run("17_sparse_attention", brought, lambda code: change(uncompiled(code)))
    visible = patterns.window_mask(T, T, bound["w"])
    attend = bound["fast"]
    for t in (0, 5, 127, 128, 139):
        given = Q[:, :, t : t + 1], K, V, torch.tensor([t])
        bound["fast"] = attend
        assert_same(bound["step"](*given), bound["heads"][:, :, t : t + 1])
        bound["fast"] = lambda q, K, V, block_mask: block_mask
        row = bound["step"](*given)
        blocks = row.to_dense()[0, 0, 0].nonzero().flatten()
        assert set(visible[t].nonzero()[0] // row.BLOCK_SIZE[1]) <= set(blocks.tolist()), t


def uncompiled(code):
    return code.replace("torch.compile(flex_attention)", "flex_attention")


def first_fence():
    return FENCE.findall(SECTIONS["17_sparse_attention"])[0]


def chunks(change):
    """18: linear attention in chunks of any size."""
    Q, K, V = draw(3, B, H, T, D)
    expected = linear_attention(*(A.numpy() for A in (Q, K, V)))
    for size in (1, 4, T):
        assert_same(
            run("18_linear_attention", {}, change)["linear_attention"](Q, K, V, size), expected
        )


def real_layer(change):
    """24: the first layer of the real model, on random rows."""
    try:
        path = real_file()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    brought = {"Rotation": Rotation, "DecoderAttention": DecoderAttention, "np": np, "torch": torch}
    brought |= {"rope_frequencies": rope_frequencies, "file": read_gguf(path)}
    layer = run("24_real_model", brought, change)["layer"].requires_grad_(False)
    model, X = real_model(path), draw(1, T, 576)
    params = model.blocks[0].params
    Q, K, V = (project_heads(X.numpy(), W) for W in (params.W_Q, params.W_K, params.W_V))
    frequencies = rope_frequencies(64, base=model.base)
    Q, K = (rotate(A, np.arange(T), frequencies) for A in (Q, K))
    expected = concat_heads(grouped_attention(Q, K, V, mask=causal_mask(T))) @ params.W_O
    np.testing.assert_allclose(
        layer(X.float()), expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


COMPARISONS = {
    "14_kv_cache": cache_of_fixed_length,
    "15_mqa_gqa_mla": shared_keys,
    "16_rope_alibi": rotations,
    "17_sparse_attention": masks_of_positions,
    "18_linear_attention": chunks,
    "24_real_model": real_layer,
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", SECTIONS)
def test_the_fences_of_a_section_give_what_the_chapter_gives(name):
    COMPARISONS[name](lambda code: code)


CHANGES = [
    ("14_kv_cache", "<= t", "< t"),
    ("14_kv_cache", "(2, t, k)", "(2, t + 1, k)"),
    ("15_mqa_gqa_mla", "is_causal=True, enable", "enable"),
    ("15_mqa_gqa_mla", "[A.repeat_interleave(H // G, dim=1)", "[A.repeat(1, H // G, 1, 1)"),
    ("16_rope_alibi", "(Q[..., ::2], Q[..., 1::2])", "(Q[..., 1::2], Q[..., ::2])"),
    ("17_sparse_attention", "q_idx - kv_idx < w", "q_idx - kv_idx <= w"),
    ("17_sparse_attention", "% stride == 0", "% stride == 1"),
    ("17_sparse_attention", "sampled[q_idx, kv_idx]", "sampled[kv_idx, q_idx]"),
    ("17_sparse_attention", "best[b, h, q_idx, kv_idx]", "best[0, h, q_idx, kv_idx]"),
    ("17_sparse_attention", "sigmoid(aux.lse", "sigmoid(-aux.lse"),
    ("17_sparse_attention", "q_idx + S - T", "q_idx"),
    ("18_linear_attention", ".tril()", ".tril(-1)"),
    ("24_real_model", "100_000.0", "10_000.0"),
]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(("name", "right", "wrong"), CHANGES)
def test_a_fence_that_is_changed_is_noticed(name, right, wrong):
    assert right in SECTIONS[name]
    with pytest.raises(AssertionError):
        COMPARISONS[name](lambda code: code.replace(right, wrong))


@pytest.mark.parametrize("size", [2, T])
def test_prompts_one_behind_the_other_are_raised_on_a_cpu(size):
    bound = run("14_kv_cache", {})
    with pytest.raises(NotImplementedError, match="_flash_attention_forward"):
        bound["prompts"](*draw(3, T, size, 16).float())


@pytest.mark.gpu
def test_prompts_one_behind_the_other_are_the_prompts_one_by_one():
    bound = run("14_kv_cache", {})
    bound["offsets"] = bound["offsets"].cuda()
    Q, K, V = draw(3, T, H, 64).cuda().bfloat16()
    heads = bound["prompts"](Q, K, V)
    for start, n in zip((0, 2, 7), (2, 5, 4), strict=True):
        piece = [A[start : start + n].transpose(0, 1) for A in (Q, K, V)]
        expected = F.scaled_dot_product_attention(*piece, is_causal=True).transpose(0, 1)
        torch.testing.assert_close(heads[start : start + n], expected, rtol=0, atol=0.02)

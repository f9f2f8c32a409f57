"""What book/notation.md says of PyTorch, row by row: each makes the calls that it speaks of.

Run on the CPU. The page says what the version of requirements.txt does. A row of the page without a
test, or with other words than those that were compared with it, is red; so is a version of PyTorch
that behaves otherwise. Where a newer one is known to, the page says so, and the test asks which is
there.
"""

import contextlib
import hashlib
import inspect
import itertools
import json
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, flex_attention, sdpa_kernel

from tutorial_lib import causal_mask, init_params, multi_head_attention, trace
from tutorial_lib.errors import ShapeError
from tutorial_lib.pytorch import MultiHeadAttention, attention_trace, bridge

ROOT = Path(__file__).resolve().parents[2]
PAGE, PINNED = ((ROOT / p).read_text("utf-8") for p in ("book/notation.md", "requirements.txt"))
TABLE, HINT = "question", "call with `is_causal=True`"  # the first heading of each table
B, T, S, H, D = 2, 5, 6, 4, 12  # an even number of heads, which the fast path wants
PRECISIONS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
PARAMS = init_params(np.random.default_rng(0), d_model=D, n_heads=H)
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
NOTHING_HIDDEN = torch.zeros(T, T, dtype=torch.bool)
STEP_MODES = "training", "evaluation"  # the modes in which the layer takes its steps one by one
LAST_TOKEN = torch.arange(T) == T - 1
FAST_PROGRAM = "_native_multi_head_attention"  # the program of the fast path
REFUSED = "Explicit attn_mask should not be set when is_causal=True"
REFUSES = tuple(map(int, torch.__version__.split(".")[:2])) > (2, 13)  # a mask beside is_causal

ROWS, SILENT = {}, {}  # (table, the row's first cell) → its calls; name of a paragraph → its calls
COMPARED = "67b7901a"  # the seal of both tables as they are, each row read beside its calls


def table_row(first_cell, table=TABLE):
    """Register the calls behind a row of a table."""
    return lambda calls: ROWS.setdefault((table, first_cell), calls)


def paragraph(name):
    """Register the calls behind a paragraph that begins with a bold name."""
    return lambda calls: SILENT.setdefault(name, calls)


def numbers(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def torch_layer(*, n_heads=H, **options):
    """Return PyTorch's layer in float64, with the same numbers each time and biases that show."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.MultiheadAttention(D, n_heads, **{"batch_first": True} | options).double()
        if layer.out_proj.bias is not None:
            nn.init.normal_(layer.out_proj.bias)
    return layer


@contextlib.contextmanager
def layer_mode(layer, mode):
    """Set "training", "evaluation" (with gradients) or "fast path" (without them)."""
    layer.train(mode == "training")
    program_patch = mock.patch.object(torch, FAST_PROGRAM, wraps=getattr(torch, FAST_PROGRAM))
    with torch.set_grad_enabled(mode != "fast path"), program_patch as native_mock:
        yield
    assert native_mock.called == (mode == "fast path")


def output(layer, X, mode, **options):
    with layer_mode(layer, mode):
        return layer(X, X, X, **options)[0].detach()


def book_layer(X, mask):
    """Return Y of the book's layer in NumPy, as a tensor."""
    return torch.from_numpy(multi_head_attention(X.numpy(), PARAMS, mask=mask.numpy()))


def heads_of(X):
    return X.unflatten(-1, (H, -1)).transpose(1, 2)


def sight(call, X):
    """Return (T, T): does output t move when token s changes? `call` takes (1, T, D)."""
    Y, columns = call(X), []
    for s in range(X.shape[1]):
        changed_X = X.clone()
        changed_X[:, s] = numbers(100 + s, D)
        is_equal = (call(changed_X) - Y).abs().amax(dim=-1)[0] <= 1e-9
        columns.append(~is_equal)  # NaN is not equal
    return torch.stack(columns, dim=1)


def layer_looks(mode, **options):
    """Return (T, T): which tokens PyTorch's layer looks at, in a mode."""
    layer = torch_layer()
    return sight(lambda X: output(layer, X, mode, **options), numbers(0, 1, T, D))


def sdpa_weights(queries, keys, **options):
    """Return the weights of SDPA, (queries, keys), on its fused path: values are the identity."""
    Q, K = numbers(1, 1, 1, queries, keys), numbers(2, 1, 1, keys, keys)
    identity = torch.eye(keys, dtype=torch.float64)[None, None]
    return F.scaled_dot_product_attention(Q, K, identity, **options)[0, 0]


def table(heading):
    """Return the rows of a table of the page, each a tuple of cells, by its first heading."""
    rows = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.M)[1]
    cells = (line.strip("|").split(" | ") for line in rows.splitlines())
    return [tuple(cell.strip() for cell in line) for line in cells]


def test_every_row_and_silent_difference_of_the_page_has_its_calls():
    for heading in (TABLE, HINT):
        rows = [row for name, row in ROWS if name == heading]
        assert [first_cell for first_cell, *_ in table(heading)] == rows
    page_section = PAGE.partition("## Where PyTorch does otherwise")[2]
    assert set(re.findall(r"^\*\*The ([\w ]+)\.\*\*", page_section, re.M)) == set(SILENT)
    [version] = re.findall(r"^torch==([\d.]+)$", PINNED, re.M)
    assert f"torch {version} " in PAGE


def test_the_words_of_the_rows_are_those_that_were_compared_with_their_calls():
    text = json.dumps([table(TABLE), table(HINT)]).encode()
    seal = hashlib.sha256(text).hexdigest()[:8]
    told = f"a row has other words: compare it with its calls, then write COMPARED = {seal!r}"
    assert seal == COMPARED, told


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_the_page_names_what_else_torch_has():
    from torch.nn.attention import varlen  # loads the compiler, in every worker that collects it

    assert callable(flex_attention.flex_attention)
    ends, A = torch.tensor([0, 2, 5], dtype=torch.int32), numbers(0, T, H, 8, dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="CPU"):
        varlen.varlen_attn(A, A, A, ends, ends, 3, 3)
    assert {"FlexAttention", "`torch.nn.attention.varlen`"} <= set(re.split(r"[ ;,]", PAGE))
    assert "changes each score or says which keys are seen. `torch.nn.attention.varlen`," in PAGE
    A = numbers(0, 1, H, T, 8)
    flex_options = {
        "score_mod": lambda score, b, h, query, key: score - 1e9 * (key > query),
        "block_mask": flex_attention.create_block_mask(
            lambda b, h, query, key: query >= key, 1, H, T, T, device="cpu"
        ),
    }
    expected = F.scaled_dot_product_attention(A, A, A, is_causal=True)
    for name, function in flex_options.items():
        heads = flex_attention.flex_attention(A, A, A, **{name: function})
        torch.testing.assert_close(heads, expected)


@paragraph("mask")
@table_row("True in a boolean mask")
def _():
    X = numbers(0, 1, T, D)
    assert torch.equal(sight(lambda X: book_layer(X, CAUSAL), X), CAUSAL)
    assert torch.equal(layer_looks("training", attn_mask=~CAUSAL), CAUSAL)
    pairs = layer_looks("training", key_padding_mask=LAST_TOKEN[None])
    assert not pairs[:-1, -1].any(), "the key of the last token is hidden"
    assert pairs[:, :-1].all()
    assert torch.equal(sdpa_weights(T, T, attn_mask=CAUSAL) > 0, CAUSAL)
    future_pairs = layer_looks("training", attn_mask=CAUSAL, need_weights=False)
    assert torch.equal(future_pairs & ~torch.eye(T, dtype=torch.bool), ~CAUSAL)
    assert torch.equal(sdpa_weights(T, T, attn_mask=~CAUSAL) > 0, ~CAUSAL)


@table_row("shape of the mask")
def _():
    layer, X = torch_layer(), numbers(0, B, T, D)
    heads = heads_of(X)
    calls = {
        "book": lambda mask: book_layer(X, mask),
        "SDPA": lambda mask: F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask),
        "layer": lambda mask: layer(X, X, X, attn_mask=~mask),
    }
    shapes = (1, T, T), (H, T, T), (B, 1, 1, T), (B, 1, T, T), (B, H, T, T)
    expected = {shape: {"book", "SDPA"} for shape in shapes}
    expected |= {(T, T): {"book", "SDPA", "layer"}, (B * H, T, T): {"layer"}}
    accepted_by = {shape: set() for shape in expected}
    for shape, (name, call) in itertools.product(expected, calls.items()):
        with contextlib.suppress(RuntimeError, AssertionError, ShapeError):
            call(torch.ones(shape, dtype=torch.bool))
            accepted_by[shape].add(name)
    assert accepted_by == expected
    layer(X, X, X, key_padding_mask=torch.zeros(B, T, dtype=torch.bool))


def padding_masks(n_texts):
    """Return (n_texts, T, T): text b may look at its first b + 1 tokens, in every row."""
    is_real = torch.arange(T) <= torch.arange(n_texts)[:, None]
    return is_real[:, None].expand(n_texts, T, T)


@paragraph("axis of heads")
@table_row("a mask `(B, T, S)`")
def _():
    X, mask = numbers(0, 1, T, D), CAUSAL[None]
    torch.testing.assert_close(book_layer(X, mask), book_layer(X, CAUSAL))
    A = [heads_of(X)] * 3
    masked_heads = [F.scaled_dot_product_attention(*A, attn_mask=m) for m in (mask, CAUSAL)]
    torch.testing.assert_close(*masked_heads)
    X, layer = numbers(0, 2, T, D), torch_layer(n_heads=1)
    Y = layer(X, X, X, attn_mask=~padding_masks(2))[0]
    for text, text_mask in enumerate(padding_masks(2)):
        alone = X[text : text + 1]
        torch.testing.assert_close(Y[text], layer(alone, alone, alone, attn_mask=~text_mask)[0][0])
    with pytest.raises(RuntimeError, match="3D attn_mask"):
        torch_layer()(X[:1], X[:1], X[:1], attn_mask=~CAUSAL[None])
    for n_texts in (2, H):
        X, mask = numbers(0, n_texts, T, D), padding_masks(n_texts)
        A = [heads_of(X)] * 3
        with pytest.raises(RuntimeError, match="3D attn_mask"):
            torch_layer()(X, X, X, attn_mask=~mask)
        if n_texts != H:
            with pytest.raises(ShapeError, match="needs a head axis"):
                book_layer(X, mask)
            with pytest.raises(RuntimeError, match="must match the size"):
                F.scaled_dot_product_attention(*A, attn_mask=mask)
    per_head, text_weights = (
        trace(X.numpy(), PARAMS, mask=m.numpy()).weights for m in (mask, mask[:, None])
    )
    assert ((per_head > 0) == mask[None].numpy()).all(), "head h has the mask of text h"
    assert ((text_weights > 0) == mask[:, None].numpy()).all()
    assert (text_weights[0, ..., 1:] == 0).all(), "text 0 has one token"
    assert (per_head[0, H - 1, :, 1:H] > 0).all(), "and in the last head sees the padding behind it"
    masked_heads = [F.scaled_dot_product_attention(*A, attn_mask=m) for m in (mask, mask[None])]
    torch.testing.assert_close(*masked_heads)


@table_row("a mask of floats")
def _():
    X, bias = numbers(0, 1, T, D), numbers(3, T, T)
    with pytest.raises(TypeError, match="booleans"):
        book_layer(X, bias)
    scores = numbers(1, 1, 1, T, T)
    identity = torch.eye(T, dtype=torch.float64)[None, None]
    weights = F.scaled_dot_product_attention(scores, identity, identity, attn_mask=bias, scale=1.0)
    torch.testing.assert_close(weights, (scores + bias).softmax(dim=-1))
    layer = torch_layer(n_heads=1)
    weights, biased_weights = layer(X, X, X)[1], layer(X, X, X, attn_mask=bias)[1]
    torch.testing.assert_close(biased_weights, (weights.log() + bias).softmax(dim=-1))


@paragraph("fully masked row")
@table_row("a fully masked row")
def _():
    X, hidden = numbers(0, 1, T, D), NOTHING_HIDDEN.clone()
    hidden[2] = True
    layer = torch_layer()
    assert not book_layer(X, ~hidden)[0, 2].any()
    for mode in (*STEP_MODES, "fast path"):
        assert output(layer, X, mode, attn_mask=hidden)[0, 2].isnan().all()
    options = {"attn_mask": hidden, "need_weights": False}
    for mode in STEP_MODES:
        assert torch.equal(output(layer, X, mode, **options)[0, 2], layer.out_proj.bias)
        assert not output(torch_layer(bias=False), X, mode, **options)[0, 2].any()
    assert output(layer, X, "fast path", **options)[0, 2].isnan().all()
    for dtype in PRECISIONS:
        assert empty_rows_of_sdpa(hidden, dtype) == 0
        with sdpa_kernel(SDPBackend.MATH):
            assert empty_rows_of_sdpa(hidden, dtype) == 0


def empty_rows_of_sdpa(hidden, dtype):
    """Return the largest number in what SDPA makes of row 2, with both kinds of mask."""
    A = numbers(4, 1, 2, T, 8, dtype=dtype)
    added = torch.zeros(T, T, dtype=dtype).masked_fill(hidden, -torch.inf)
    rows = [
        F.scaled_dot_product_attention(A, A, A, attn_mask=m)[..., 2, :] for m in (~hidden, added)
    ]
    return float(torch.stack(rows).abs().max())


@table_row("causal")
def _():
    assert torch.equal(torch.from_numpy(causal_mask(T)), CAUSAL)
    assert torch.equal(sdpa_weights(T, T, is_causal=True) > 0, CAUSAL)
    assert "provides a hint" in inspect.getdoc(nn.MultiheadAttention.forward)


@table_row("causal beside a mask")
def _():
    assert "An error is thrown if both attn_mask and is_causal are set" in (
        F.scaled_dot_product_attention.__doc__
    )
    mask = torch.from_numpy(np.random.default_rng(5).random((T, S)) < 0.7)
    mask[:, 0] = True
    for queries, keys in ((T, T), (T, S), (3, S)):
        assert both_hold_from_the_first_corner_or_are_refused(mask[:queries, :keys])
    with pytest.raises(RuntimeError, match=REFUSED):
        sdpa_weights(T, S, attn_mask=mask, is_causal=True, dropout_p=0.1)
    for dtype in PRECISIONS:
        A = numbers(6, 1, 2, T, 8, dtype=dtype)
        for fused_mask in (CAUSAL, CAUSAL[None, None], bias := torch.zeros(T, T, dtype=dtype)):
            with refusal():
                F.scaled_dot_product_attention(A, A, A, attn_mask=fused_mask, is_causal=True)
    transposed_A = A.mT.contiguous().mT
    for QKV, attn_mask in (
        ((A[0], A[0], A[0]), CAUSAL),
        ((A[None], A[None], A[None]), CAUSAL),
        ((transposed_A, A, A), CAUSAL),
        ((A, transposed_A, A), CAUSAL),
        ((A, A, transposed_A), CAUSAL),
        ((A, A, A[..., :4]), CAUSAL),
        ((A, A, A), CAUSAL[None]),
        ((A, A, A), bias.requires_grad_()),
    ):
        with pytest.raises(RuntimeError, match=REFUSED):
            F.scaled_dot_product_attention(*QKV, attn_mask=attn_mask, is_causal=True)
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(RuntimeError, match=REFUSED):
        sdpa_weights(T, S, attn_mask=mask, is_causal=True)
    book_layer, X, context = MultiHeadAttention(D, H).double(), numbers(0, T, D), numbers(1, S, D)
    book_trace = attention_trace(book_layer, X, context=context, mask=mask, is_causal=True)
    assert torch.equal(book_trace.weights[0] > 0, mask & torch.from_numpy(causal_mask(T, S)))


def refusal():
    """Expect PyTorch's error, where its version raises it of every call."""
    return pytest.raises(RuntimeError, match=REFUSED) if REFUSES else contextlib.nullcontext()


def both_hold_from_the_first_corner_or_are_refused(mask):
    """Return whether a mask beside `is_causal` does what this version of PyTorch is known for."""
    sight = None
    with refusal():
        sight = sdpa_weights(*mask.shape, attn_mask=mask, is_causal=True) > 0
    return sight is None if REFUSES else torch.equal(sight, mask & torch.ones_like(mask).tril())


@table_row("causal, T ≠ S")
def _():
    top_left_mask = torch.ones(2, T, dtype=torch.bool).tril()
    corner_mask = torch.from_numpy(causal_mask(2, T))
    assert torch.equal(corner_mask, torch.ones(2, T, dtype=torch.bool).tril(T - 2))
    assert torch.equal(sdpa_weights(2, T, is_causal=True) > 0, top_left_mask)
    layer, X, context = torch_layer(n_heads=1), numbers(0, 1, 2, D), numbers(1, 1, T, D)
    weights = layer(X, context, context, attn_mask=~corner_mask)[1]
    assert torch.equal(weights[0] > 0, corner_mask)
    Y = layer(X, context, context, attn_mask=~corner_mask, is_causal=True, need_weights=False)[0]
    torch.testing.assert_close(Y, layer(X, context, context, attn_mask=~top_left_mask)[0])


@table_row("a stored matrix")
def _():
    params = init_params(np.random.default_rng(0), d_model=D, n_heads=3)
    layer = bridge.torch_mha_from_params(params)
    assert layer.in_proj_weight.shape == (3 * D, D)
    queries = torch.from_numpy(np.concatenate(params.W_Q, axis=-1).T)
    assert torch.equal(layer.in_proj_weight[:D], queries)
    assert torch.equal(layer.out_proj.weight, torch.from_numpy(params.W_O.T))
    X = numbers(0, B, T, D)
    expected = torch.from_numpy(multi_head_attention(X.numpy(), params))
    torch.testing.assert_close(layer(X, X, X)[0], expected, rtol=1e-10, atol=1e-12)


@paragraph("axes")
@table_row("axes of the input")
def _():
    X = numbers(0, B, T, D)
    assert not nn.MultiheadAttention(D, H).batch_first
    Y = torch_layer(batch_first=False)(*[X.transpose(0, 1)] * 3)[0]
    torch.testing.assert_close(Y.transpose(0, 1), torch_layer()(X, X, X)[0])
    layer, changed_X = torch_layer(batch_first=False), X.clone()
    changed_X[1] = numbers(9, T, D)
    Y, changed_Y = (layer(A, A, A)[0] for A in (X, changed_X))
    assert Y.shape == X.shape
    assert not torch.isclose(Y[0], changed_Y[0]).any(), "sentence 0 sees sentence 1"
    A = numbers(1, B, 3, H, T, 8)
    assert F.scaled_dot_product_attention(A, A, A).shape == A.shape


@table_row("weights returned")
def _():
    X, layer = numbers(0, 1, T, D), torch_layer(dropout=0.5)
    layer.eval()
    mean_weights, heads = layer(X, X, X)[1], layer(X, X, X, average_attn_weights=False)[1]
    assert mean_weights.shape == (1, T, T)
    assert heads.shape == (1, H, T, T)
    torch.testing.assert_close(mean_weights, heads.mean(dim=1))
    dropped_weights = layer.train()(X, X, X, average_attn_weights=False)[1]
    assert (dropped_weights == 0).any()
    book_layer = MultiHeadAttention(D, H, dropout=0.5).double().train()
    row_sums = attention_trace(book_layer, X).weights.sum(dim=-1)
    torch.testing.assert_close(row_sums, torch.ones_like(row_sums))
    assert isinstance(F.scaled_dot_product_attention(X, X, X), torch.Tensor)


@table_row("scale")
def _():
    Q, K = numbers(1, 1, 1, T, 7), numbers(2, 1, 1, S, 7)
    identity, products = torch.eye(S, dtype=torch.float64)[None, None], Q @ K.transpose(-1, -2)
    for options, scale in (({}, 7**-0.5), ({"scale": 0.3}, 0.3)):
        weights = F.scaled_dot_product_attention(Q, K, identity, **options)
        torch.testing.assert_close(weights, (scale * products).softmax(dim=-1))
    params = init_params(np.random.default_rng(0), d_model=D, n_heads=3)
    X = numbers(0, T, D)
    weights = bridge.torch_mha_from_params(params)(X, X, X, average_attn_weights=False)[1]
    record = trace(X.numpy(), params)
    torch.testing.assert_close(weights, torch.from_numpy(record.weights), rtol=1e-10, atol=1e-12)


@paragraph("dropout")
@table_row("dropout")
def _():
    X, torch_mha = numbers(0, 1, T, D), torch_layer(dropout=0.5)
    book_module = MultiHeadAttention(D, H, dropout=0.5).double()
    for layer, inputs in ((torch_mha, (X, X, X)), (book_module, (X,))):
        for training in (True, False):
            outputs = [layer.train(training)(*inputs) for _ in range(2)]
            outputs = [Y[0] for Y in outputs] if layer is torch_mha else outputs
            assert torch.equal(*outputs) != training
    with torch.no_grad():
        dropped_weights = sdpa_weights(T, T, dropout_p=0.5)
    assert (dropped_weights == 0).any(), "though nothing is in training"
    assert (sdpa_weights(T, T, dropout_p=0.0) > 0).all()


@table_row("`attn_mask`, `need_weights=False`, no `key_padding_mask`", table=HINT)
def _():
    for mode, mask in itertools.product(STEP_MODES, (~CAUSAL, CAUSAL, NOTHING_HIDDEN)):
        pairs = layer_looks(mode, attn_mask=mask, is_causal=True, need_weights=False)
        assert torch.equal(pairs, CAUSAL)


@table_row("`attn_mask`, `need_weights=True`", table=HINT)
def _():
    for mode in STEP_MODES:
        assert layer_looks(mode, attn_mask=NOTHING_HIDDEN, is_causal=True).all()


@table_row("`attn_mask` and `key_padding_mask`", table=HINT)
def _():
    options = {"attn_mask": NOTHING_HIDDEN, "key_padding_mask": LAST_TOKEN[None], "is_causal": True}
    for mode, need_weights in itertools.product((*STEP_MODES, "fast path"), (True, False)):
        pairs = layer_looks(mode, need_weights=need_weights, **options)
        assert pairs[:, :-1].all()
        assert not pairs[:-1, -1].any()


@paragraph("hint")
@table_row("`attn_mask`, on the fast path", table=HINT)
def _():
    for need_weights in (True, False):
        options = {"is_causal": True, "need_weights": need_weights}
        assert layer_looks("fast path", attn_mask=NOTHING_HIDDEN, **options).all()
        assert torch.equal(layer_looks("fast path", attn_mask=~CAUSAL, **options), CAUSAL)


@table_row("no `attn_mask`", table=HINT)
def _():
    X, layer = numbers(0, 1, T, D), torch_layer()
    for training in (True, False):
        with pytest.raises(RuntimeError, match="Need attn_mask"):
            layer.train(training)(X, X, X, is_causal=True, need_weights=False)


@table_row("no `attn_mask`, on the fast path", table=HINT)
def _():
    for need_weights in (True, False):
        assert layer_looks("fast path", is_causal=True, need_weights=need_weights).all()


@paragraph("corner")
def _():
    mask_lines = re.search(r"```text\n(.*?)```", PAGE, re.S)[1].splitlines()
    halves = [[half.split() for half in line.split("       ")] for line in mask_lines]
    left, right = (torch.tensor([[c == "✓" for c in line[i]] for line in halves]) for i in (0, 1))
    corner_mask = torch.from_numpy(causal_mask(2, 5))
    assert torch.equal(left, corner_mask)
    assert torch.equal(right, sdpa_weights(2, 5, is_causal=True) > 0)
    assert both_hold_from_the_first_corner_or_are_refused(corner_mask)
    assert torch.equal(left, sdpa_weights(2, 5, attn_mask=corner_mask) > 0)


OFF_THE_PATH = {"bias": False, "n_heads": 3, "batch_first": False, "batch": False}
OFF_THE_PATH |= {"cross": True, "training": True, "gradients": True, "attn_mask": numbers(3, T, T)}


@pytest.mark.parametrize("option", OFF_THE_PATH)
def test_each_named_condition_keeps_the_layer_off_the_fast_path(option):
    assert not takes_fast_path(**{option: OFF_THE_PATH[option]})


def takes_fast_path(
    *, attn_mask=None, batch=True, cross=False, training=False, gradients=False, **options
):
    """Return whether PyTorch's layer takes the fast path, by default where it may."""
    X = numbers(0, 1, T, D) if batch else numbers(0, T, D)
    layer, context = torch_layer(**options).train(training), X.clone() if cross else X
    with torch.set_grad_enabled(gradients), mock.patch.object(torch, FAST_PROGRAM) as native_mock:
        layer(X, context, context, attn_mask=attn_mask)
    return native_mock.called


def empty_row(mode, *, need_weights):
    """Return Y of PyTorch's layer where no token may look at anything."""
    X, hidden = numbers(0, 1, T, D), ~NOTHING_HIDDEN
    return output(torch_layer(), X, mode, attn_mask=hidden, need_weights=need_weights)


NAMES = {calls: name for name, calls in SILENT.items()}
NAMES |= {calls: row for (_, row), calls in ROWS.items()}


@pytest.mark.parametrize("calls", NAMES, ids=NAMES.get)
def test_what_the_page_says_is_what_happens(calls):
    calls()

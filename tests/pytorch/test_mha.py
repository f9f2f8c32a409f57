"""The PyTorch layer: two paths, masks, dropout, precisions, compiling, saving.

That its numbers are right is the subject of test_parity.py, its errors are that of test_tensors.py.
"""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.pytorch.layers import D_K, D_MODEL, PATHS, B, H, S, T, coins, draw, make
from tutorial_lib import multi_head_attention_backward
from tutorial_lib.pytorch import MultiHeadAttention, attention_trace


@pytest.fixture(params=PATHS.values(), ids=PATHS)
def forward_path(request):
    """The fused path or the explicit one: `path(module, X, ...)`."""
    return request.param


def assert_close(actual, expected, rtol=1e-11, atol=1e-12):
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


def test_in_float16_scores_beyond_its_range_are_right_only_on_the_fused_path():
    module, X = make(torch.float64).eval(), draw(B, T, D_MODEL)
    with torch.no_grad():
        module.qkv_proj.weight[: H * 2 * D_K] *= 500  # queries and keys
        scores = attention_trace(module, X).scores.abs().max()
        assert 65_504 < scores < 40 * 65_504
        module, X = module.half(), X.half()
        expected = copy.deepcopy(module).double()(X.double())
        assert torch.isnan(module.explicit(X)).any()
        assert_close(module(X).double(), expected, rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("arguments", "options", "d_k", "d_v"),
    [
        ((12, 3), {}, 4, 4),
        ((12, 3), {"d_k": 2}, 2, 2),
        ((12, 5), {"d_k": 2, "d_v": 3, "bias": True, "dropout": 0.1}, 2, 3),
        ((np.int64(12), np.int32(3)), {"d_v": np.int8(100)}, 4, 100),
    ],
)
def test_widths_are_those_of_the_paper_unless_given(arguments, options, d_k, d_v):
    module, (d_model, n_heads) = MultiHeadAttention(*arguments, **options), map(int, arguments)
    sizes = module.d_model, module.n_heads, module.d_k, module.d_v
    assert sizes == (d_model, n_heads, d_k, d_v)
    assert {type(size) for size in sizes} == {int}
    assert module.qkv_proj.weight.shape == (n_heads * (2 * d_k + d_v), d_model)
    assert module.out_proj.weight.shape == (d_model, n_heads * d_v)
    assert (
        (module.qkv_proj.bias is None) == (module.out_proj.bias is None) == ("bias" not in options)
    )
    assert module.dropout == options.get("dropout", 0.0)


@pytest.mark.parametrize(
    ("size_change", "message"),
    [
        ({"n_heads": 5}, "d_model=12 does not split into n_heads=5 equal parts"),
        *(({"dropout": p}, f"dropout={p}; expected .* below 1") for p in (1.0, -0.1, math.nan)),
    ],
)
def test_heads_of_unequal_widths_and_a_dropout_of_all_weights_are_refused(size_change, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**{"d_model": 12, "n_heads": 3} | size_change)


@pytest.mark.parametrize("n_keys", [None, S])
def test_biases_are_those_of_torchs_layer(forward_path, n_keys):
    torch_mha = torch.nn.MultiheadAttention(D_MODEL, H, batch_first=True, dtype=torch.float64)
    module = make(d_v=D_K)  # the widths that torch's layer has, and the layout of its rows
    name_map = {"in_proj_weight": "qkv_proj.weight", "in_proj_bias": "qkv_proj.bias"}
    state = {name: module.state_dict()[name_map.get(name, name)] for name in torch_mha.state_dict()}
    torch_mha.load_state_dict(state)
    X, context = draw(B, T, D_MODEL), None if n_keys is None else draw(B, n_keys, D_MODEL, seed=2)
    key_input = X if context is None else context
    assert_close(forward_path(module, X, context=context), torch_mha(X, key_input, key_input)[0])


@pytest.mark.parametrize("options", [{"is_causal": True}, {"mask": torch.tensor([False] * 3)}])
def test_no_gradient_of_a_fully_masked_row_is_nan_on_its_way(forward_path, options):
    module = make()
    X, context = draw(B, T, D_MODEL).requires_grad_(), draw(B, 3, D_MODEL, seed=2).requires_grad_()
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        forward_path(module, X, context=context, **options).square().sum().backward()
    for tensor in (X, context, *module.parameters()):
        assert tensor.grad.isfinite().all()
    assert (X.grad[:, :2] == 0).all(), "queries 0 and 1 are fully masked, so they change nothing"
    assert (X.grad[:, 2:] != 0).any() == ("mask" not in options)


@pytest.mark.parametrize("mask_shape", [(), (S,), (T, S), (H, T, S), (B, H, T, S), (8, B, H, T, S)])
def test_mask_of_every_shape_that_broadcasts(forward_path, mask_shape):
    module, X, context = make(), draw(8, B, T, D_MODEL), draw(8, B, S, D_MODEL, seed=2)
    for shape in itertools.product(*((1, n) for n in mask_shape)):
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.6
        expected = forward_path(module, X, context=context, mask=mask.expand(8, B, H, T, S).clone())
        assert_close(forward_path(module, X, context=context, mask=mask), expected)


@pytest.mark.parametrize(
    "batches", [((), (2,)), ((2,), ()), ((2,), (1,)), ((1,), (2,)), ((8, 1), (2,)), ((2,), (8, 1))]
)
def test_batch_axes_of_a_context_broadcast(forward_path, batches):
    module, batch = make(), torch.broadcast_shapes(*batches)
    X, context = draw(*batches[0], T, D_MODEL), draw(*batches[1], S, D_MODEL, seed=2)
    wide = X.expand(*batch, T, D_MODEL).clone(), context.expand(*batch, S, D_MODEL).clone()
    for mask in (None, coins(*batch, H, T, S), coins(H, T, S)):
        Y = forward_path(module, X, context=context, mask=mask)
        assert Y.shape == (*batch, T, D_MODEL)
        assert_close(Y, forward_path(module, wide[0], context=wide[1], mask=mask))


def test_empty_batch_stays_empty(forward_path):
    module, X = make(), draw(0, T, D_MODEL)
    for mask in (None, coins(T, T), torch.ones(0, 1, T, T, dtype=torch.bool)):
        assert forward_path(module, X, mask=mask, is_causal=True).shape == (0, T, D_MODEL)


def test_input_of_any_layout_gives_the_same(forward_path):
    module, X, mask = make(), draw(B, T, D_MODEL), coins(H, T, T)
    expected = forward_path(module, X, mask=mask)
    transposed_X = X.mT.contiguous().mT
    strided_X = X.repeat_interleave(2, dim=1)[:, ::2]
    assert not transposed_X.is_contiguous()
    assert not strided_X.is_contiguous()
    for equal_X in (transposed_X, strided_X):
        assert_close(forward_path(module, equal_X, mask=mask.mT.contiguous().mT), expected)


def test_fast_kernels_get_four_axes_and_causality_as_a_flag(monkeypatch):
    calls, real_sdpa = [], F.scaled_dot_product_attention

    def logged_sdpa(Q, K, V, **options):
        calls.append((Q.ndim, K.ndim, V.ndim, options.get("attn_mask"), options.get("is_causal")))
        return real_sdpa(Q, K, V, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", logged_sdpa)
    for batch in ((), (B,), (8, B)):
        make()(draw(*batch, T, D_MODEL), is_causal=True)
        make()(draw(*batch, T, D_MODEL))
        assert calls == [(4, 4, 4, None, True), (4, 4, 4, None, None)]
        calls.clear()


@pytest.mark.parametrize("options", [{"is_causal": True}, {"mask": coins(H, T, 3) & False}])
def test_no_kernel_gets_a_fully_masked_row_which_some_turn_into_nan(monkeypatch, options):
    def naive_sdpa(Q, K, V, *, attn_mask, dropout_p):
        scores = (Q @ K.mT / Q.shape[-1] ** 0.5).masked_fill(~attn_mask, -torch.inf)
        return scores.softmax(dim=-1) @ V

    module, X, context = make(), draw(B, T, D_MODEL), draw(B, 3, D_MODEL, seed=2)
    expected = module(X, context=context, **options)
    monkeypatch.setattr(F, "scaled_dot_product_attention", naive_sdpa)
    Y = module(X.requires_grad_(), context=context, **options)
    assert_close(Y, expected)
    Y.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (X, *module.parameters()))


def test_self_attention_projects_once_and_a_context_past_the_hooks_of_the_projection(forward_path):
    module, calls = make(), []
    module.qkv_proj.register_forward_hook(lambda *_: calls.append("qkv_proj"))
    forward_path(module, draw(B, T, D_MODEL))
    assert calls == ["qkv_proj"]
    forward_path(module, draw(B, T, D_MODEL), context=draw(B, S, D_MODEL, seed=2))
    assert calls == ["qkv_proj"]


COMPILED_CALLS = {
    "nothing": {},
    "causal": {"is_causal": True},
    "mask": {"mask": coins(H, T, T)},
    "mask and causal": {"mask": coins(B, 1, T, T), "is_causal": True},
    "context": {"context": draw(B, S, D_MODEL, seed=2)},
    "context, mask and causal": {
        "context": draw(3, D_MODEL, seed=2),
        "mask": coins(T, 3),
        "is_causal": True,
    },
}


@pytest.fixture
def compile_whole():
    """`compiler(function)`: traced as a whole, in a graph of its own; a break is an error."""
    torch.compiler.reset()
    yield lambda function: torch.compile(function, fullgraph=True, backend="eager")
    torch.compiler.reset()


@pytest.mark.parametrize("call_name", COMPILED_CALLS)
def test_compiles_without_a_graph_break(forward_path, compile_whole, call_name):
    path_results = []
    for call in (forward_path, compile_whole(forward_path)):
        module, X = make(), draw(B, T, D_MODEL).requires_grad_()
        Y = call(module, X, **COMPILED_CALLS[call_name])
        Y.square().sum().backward()
        path_results.append((Y, X.grad, module.qkv_proj.weight.grad))
    assert_close(*path_results)


def test_printed_layer_names_its_sizes():
    layer_repr = repr(make(dropout=0.1))
    assert "d_model=12, n_heads=3, d_k=4, d_v=7, dropout=0.1" in layer_repr
    assert "(qkv_proj): Linear(in_features=12, out_features=45, bias=True)" in layer_repr


def test_trace_keeps_the_graph_which_the_backward_pass_of_numpy_refuses():
    record = attention_trace(make(), draw(B, T, D_MODEL), context=draw(B, S, D_MODEL, seed=2))
    names = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")
    assert all(getattr(record, name).grad_fn is not None for name in names)
    with pytest.raises(TypeError, match="params is a MultiHeadAttention; expected Params"):
        multi_head_attention_backward(record, record.Y.detach().numpy())


def test_weights_are_those_before_dropout_and_heads_come_from_those_after():
    torch.manual_seed(3)
    module, X, context = make(dropout=0.25), draw(200, T, D_MODEL), draw(200, S, D_MODEL, seed=2)
    record = attention_trace(module, X, context=context, mask=coins(H, T, S))
    assert_close(record.weights.sum(-1), torch.ones(200, H, T, dtype=torch.float64))
    assert torch.equal(record.weights == 0, ~coins(H, T, S).expand(200, H, T, S))
    dropped = record.heads @ torch.linalg.pinv(record.V)  # can be solved: d_v is more than S
    is_kept, allowed = dropped.abs() > 1e-9, record.weights > 1e-6
    expected = record.weights[is_kept & allowed] / 0.75
    assert_close(dropped[is_kept & allowed], expected, rtol=1e-6, atol=1e-8)
    dropped_fraction = 1 - is_kept[allowed].double().mean().item()
    std = (0.25 * 0.75 / int(allowed.sum())) ** 0.5  # another machine samples other numbers
    assert dropped_fraction == pytest.approx(0.25, abs=5 * std)


def test_dropout_ends_with_training_and_keeps_a_fully_masked_row_zero(forward_path):
    module, X, mask = make(dropout=0.5), draw(B, T, D_MODEL), torch.arange(T)[:, None] != 2
    expected = forward_path(make(), X, mask=mask)
    for training in (True, False, True):
        module.train(training)
        outputs = [forward_path(module, X, mask=mask) for _ in range(2)]
        for first_Y, second_Y in itertools.combinations([*outputs, expected], 2):
            assert torch.allclose(first_Y, second_Y, rtol=1e-11, atol=1e-12) != training
            assert_close(first_Y[:, 2], module.out_proj.bias.expand(B, D_MODEL))


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": coins(H, T, T)}])
def test_dropout_keeps_the_mean_and_spreads_both_paths_alike(options):
    module, X, output_stds = make(dropout=0.25).requires_grad_(False), draw(T, D_MODEL), []
    expected = module.eval()(X, **options)
    for forward_path in PATHS.values():
        Y = forward_path(module.train(), X.expand(8000, T, D_MODEL), **options)
        output_std = Y.std(dim=0)
        assert ((Y.mean(dim=0) - expected).abs() < 5 * output_std / 8000**0.5).all()
        output_stds.append(output_std)
    assert (output_stds[0] > 0).all()
    assert_close(*output_stds, rtol=0.1, atol=0)


MASK_OPTIONS = {"nothing": {}, "causal": {"is_causal": True}, "mask": {"mask": coins(H, T, T)}}


@pytest.mark.parametrize("options", MASK_OPTIONS.values(), ids=MASK_OPTIONS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float16, 0.01), (torch.bfloat16, 0.05)]
)
def test_precision_of_the_module_is_that_of_the_result(forward_path, dtype, tolerance, options):
    expected = forward_path(make(), draw(B, T, D_MODEL), **options)
    Y = forward_path(make(dtype), draw(B, T, D_MODEL).to(dtype), **options)
    assert Y.dtype == dtype
    assert_close(Y.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("options", MASK_OPTIONS.values(), ids=MASK_OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_lowers_the_precision_and_leaves_that_of_the_weights(forward_path, dtype, options):
    module, X = make(torch.float32), draw(B, T, D_MODEL).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Y = forward_path(module, X, **options)
    assert Y.dtype == torch.bfloat16
    assert_close(Y.double(), forward_path(make(), X.double(), **options), rtol=0, atol=0.05)
    Y.sum().backward()
    assert {parameter.grad.dtype for parameter in module.parameters()} == {torch.float32}


def test_layer_leaves_its_inputs_alone(forward_path):
    module, mask = make(), coins(B, H, T, S)
    mask[0, :, 1] = False
    inputs = draw(B, T, D_MODEL), draw(B, S, D_MODEL, seed=2), mask, *module.parameters()
    input_copies = [tensor.detach().clone() for tensor in inputs]
    forward_path(module, inputs[0], context=inputs[1], mask=mask, is_causal=True).sum().backward()
    assert all(map(torch.equal, input_copies, inputs))

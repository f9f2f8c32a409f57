"""Heads, and a sequence, over real processes.

A process takes seconds to import torch, so each run settles many claims. The functions that run in
the new processes stand first: those import this file.
"""

from multiprocessing import active_children

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    parallelize_module,
)
from torch.multiprocessing import ProcessRaisedException

import tutorial_lib as tl
from tests import oracle
from tests.pytorch.launching import backend
from tutorial_lib.pytorch import packed_weight, parallel
from tutorial_lib.pytorch.parallel import (
    CommunicationLog,
    parallelize_heads,
    run_layer,
    run_ring,
    shard_params,
)
from tutorial_lib.pytorch.processes import run_parallel

B, T, H, D_MODEL, D_K, D_V = 5, 6, 4, 9, 3, 7
TIMEOUT_S = 600  # for a run of seconds, so that a slow machine changes no result
ONE_ALL_REDUCE = [("all_reduce", B * T * D_MODEL)]


def process_results(mesh, params, X, dY, heads):
    """Run the layer in several ways, then the ring, and return what a test can compare."""
    results = {"rank": mesh.get_local_rank(), "threads": torch.get_num_threads()}
    results |= {causal: run_layer(mesh, X, params, dY, causal) for causal in (False, True)}
    results |= {f"ring {c}": run_ring(mesh, *heads, c) for c in (False, True)}
    layer, X = parallelize_heads(params, mesh), torch.tensor(X, device=mesh.device_type)
    mask = torch.tensor(striped_mask(), device=X.device)
    results["shapes"] = [tuple(layer.qkv_proj.weight.shape), tuple(layer.out_proj.weight.shape)]
    results["mask"] = layer(X, mask=mask).detach().cpu().numpy()
    results["one token"] = layer(X[0, :1]).detach().cpu().numpy()
    results["float32"] = parallelize_heads(params, mesh, dtype=torch.float32)(X.float()).dtype
    Y, replicated = layer(X.clone().requires_grad_()), (Replicate(),)
    marked = {"": PrepareModuleInput(input_layouts=replicated, desired_input_layouts=replicated)}
    results["counts"] = {
        "forward": counted_by_torch(lambda: layer(X)),
        "backward": counted_by_torch(Y.sum().backward),
        "three modules": three_module_backward(mesh, X),
        "three modules, X marked once": three_module_backward(mesh, X, marked),
    }
    int_ones, leaf = np.ones((2, T, D_K), dtype=int), torch.ones(2, 3, requires_grad=True)
    int_dY = np.ones(dY.shape, dtype=int)
    refused_calls = {  # by every process, before it waits for another
        "attends only to X": lambda: layer(X, context=X),
        "X is an array of int64; expected floats": lambda: run_layer(mesh, int_dY, params, dY),
        "dY has shape (5, 5, 9); expected": lambda: run_layer(mesh, dY, params, dY[:, 1:]),
        "Q is int64, K is int64, V is": lambda: run_ring(mesh, int_ones, int_ones, int_ones),
        "Q, K or V asks for gradients": lambda: parallel.ring_attention(leaf, leaf, leaf),
    }
    results["refused"] = {fragment: error_text(call) for fragment, call in refused_calls.items()}
    results["backend"] = dist.get_backend()
    return results


def counted_by_torch(call):
    """How often each collective ran in a call, by torch's own counter; and what was sent."""
    from torch.distributed.tensor.debug import CommDebugMode

    with CommDebugMode() as counter, CommunicationLog() as log:
        call()
    return list(counter.get_comm_counts().values()), log.calls


class ThreeModules(torch.nn.Module):
    """Queries, keys and values from a module each, joined by something that needs all three."""

    def __init__(self):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self, name, torch.nn.Linear(D_MODEL, 2 * D_K, bias=False))

    def forward(self, X):
        return self.q_proj(X) * self.k_proj(X) * self.v_proj(X)


def three_module_backward(mesh, X, plan=()):
    """What is sent in the backward pass when each of three modules is split, counted twice."""
    plan = dict(plan) | {name: ColwiseParallel() for name in ("q_proj", "k_proj", "v_proj")}
    layer = parallelize_module(ThreeModules().to(X), mesh, plan)
    return counted_by_torch(layer(X.clone().requires_grad_()).sum().backward)


def error_text(call):
    """The text of the ValueError or TypeError that a call raises."""
    with pytest.raises((ValueError, TypeError)) as refusal:
        call()
    return str(refusal.value)


def striped_mask():
    """A mask with an empty row, another in each sequence."""
    t = np.arange(T)
    mask = (t[:, None] + t + np.arange(B)[:, None, None, None]) % 3 > 0
    mask[:, :, 2] = False
    return mask


@pytest.fixture(scope="module")
def params():
    """A layer in which all lengths differ, and four heads."""
    return tl.init_params(np.random.default_rng(0), d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=D_V)


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(1)
    X, dY = rng.standard_normal((2, B, T, D_MODEL))
    heads = [rng.standard_normal((2, T, d)) * 3 for d in (D_K, D_K, D_V)]
    return X, dY, heads


@pytest.fixture(scope="module", params=[1, 2])
def world_results(request, params, inputs):
    """(the number of processes, the results of each)."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMP_NUM_THREADS", "2")
        arguments = process_results, request.param, params, *inputs
        results = run_parallel(*arguments, timeout_s=TIMEOUT_S)
    return request.param, results


def assert_close(actual, expected):
    assert actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_every_process_has_the_output_and_its_gradients_and_sends_one_all_reduce_each_way(
    world_results, params, inputs, causal
):
    (n, results), (X, dY, _) = world_results, inputs
    trace = tl.trace(X, params, mask=tl.causal_mask(T) if causal else None)
    expected = tl.multi_head_attention_backward(trace, dY)
    param_gradients = tl.Params(expected.dW_Q, expected.dW_K, expected.dW_V, expected.dW_O)
    Y = oracle.mha(X, params, mask=oracle.causal_mask(T) if causal else None)
    all_reduce = ONE_ALL_REDUCE if n > 1 else []
    for rank, result in enumerate(each[causal] for each in results):
        shard = shard_params(param_gradients, rank, n)
        assert_close(result.Y, Y)
        assert_close(result.dX, expected.dX)
        assert_close(result.dW_qkv, packed_weight(shard))
        assert_close(result.dW_out, shard.W_O.T)
        assert (result.forward, result.backward) == (all_reduce, all_reduce)


def test_the_log_counts_as_torch_does_and_three_modules_send_backward_three_times(world_results):
    n, results = world_results
    single_counts, thrice = (([k], k * ONE_ALL_REDUCE) if n > 1 else ([], []) for k in (1, 3))
    expected = {"forward": single_counts, "backward": single_counts, "three modules": thrice}
    expected |= {"three modules, X marked once": single_counts}
    assert [result["counts"] for result in results] == [expected] * n


def test_masks_single_tokens_and_shapes_are_as_in_one_process(world_results, params, inputs):
    X, shapes = inputs[0], [(H * (2 * D_K + D_V), D_MODEL), (D_MODEL, H * D_V)]
    for result in world_results[1]:
        assert_close(result["mask"], oracle.mha(X, params, mask=striped_mask()))
        assert_close(result["one token"], oracle.mha(X[0, :1], params))
        assert (result["float32"], result["shapes"]) == (torch.float32, shapes)


def test_results_come_in_the_order_of_ranks_from_one_thread_each(world_results):
    n, results = world_results
    names = "rank", "threads", "backend"
    expected = [(rank, 1, backend(n)) for rank in range(n)]
    assert [tuple(result[name] for name in names) for result in results] == expected


@pytest.mark.parametrize("causal", [False, True])
def test_ring_is_attention_over_the_whole_sequence(world_results, inputs, causal):
    n, results = world_results
    mask = oracle.causal_mask(T) if causal else None
    blocks, logs = zip(*(result[f"ring {causal}"] for result in results), strict=True)
    expected = oracle.scaled_dot_product_attention(*inputs[2], mask=mask)
    assert_close(np.concatenate(blocks, axis=-2), expected)
    sends = [("send", 2 * T // n * D_K), ("send", 2 * T // n * D_V)]
    assert list(logs) == [sends * (n - 1)] * n, "keys and values go to all others"


def test_what_does_not_fit_is_refused_before_a_process_waits_for_another(world_results):
    for result in world_results[1]:
        for fragment, text in result["refused"].items():
            assert fragment in text


@pytest.mark.long
def test_heads_that_do_not_split_give_one_clear_error(inputs):
    X, dY, _ = inputs
    params = tl.init_params(np.random.default_rng(0), d_model=D_MODEL, n_heads=3)
    with pytest.raises(ProcessRaisedException, match="n_heads=3 does not split into world_size=2"):
        run_parallel(run_layer, 2, X, params, dY, timeout_s=TIMEOUT_S)
    assert not active_children()


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_shards_side_by_side_are_the_layer_and_their_answers_add_up_to_its(
    params, inputs, world_size
):
    shards = [shard_params(params, rank, world_size) for rank in range(world_size)]
    assert {shard.n_heads for shard in shards} == {H // world_size}
    for name, W in vars(params).items():
        np.testing.assert_array_equal(np.concatenate([vars(shard)[name] for shard in shards]), W)
    shard_outputs = [tl.multi_head_attention(inputs[0], shard) for shard in shards]
    assert_close(sum(shard_outputs), oracle.mha(inputs[0], params))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 3), "n_heads=4 does not split into world_size=3 equal parts"),
        ((2, 2), "rank=2; expected 0 to 1"),
        ((-1, 2), "rank=-1; expected 0 to 1"),
    ],
)
def test_shards_that_cannot_be_are_refused(params, arguments, words):
    with pytest.raises(ValueError, match=words):
        shard_params(params, *arguments)

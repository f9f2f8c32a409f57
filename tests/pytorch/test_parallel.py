"""Heads, and a sequence, over real processes.

A process takes seconds to import torch, so each run settles many claims. The functions that run in
the new processes stand first: those import this file.
"""

import dataclasses
import os
import socket
import sys

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

import tutorial_lib as tl
from tests import oracle
from tests.pytorch.launching import backend, children, free_port, start_and_wait, torchrun
from tutorial_lib.pytorch import packed_weight, parallel, processes
from tutorial_lib.pytorch.parallel import (
    CommunicationLog,
    parallelize_heads,
    run_layer,
    run_ring,
    shard_params,
)
from tutorial_lib.pytorch.processes import run_parallel

B, T, H, D_MODEL, D_K, D_V = 5, 6, 4, 9, 3, 7
MOST_S = 600  # for a run of seconds, so that a slow machine changes no result
ONE_ALL_REDUCE = [("all_reduce", B * T * D_MODEL)]


def everything(mesh, params, X, dY, heads):
    """Run the layer in several ways, then the ring, and tell what a test can compare."""
    found = {"rank": mesh.get_local_rank(), "threads": torch.get_num_threads()}
    found |= {causal: run_layer(mesh, X, params, dY, causal) for causal in (False, True)}
    found |= {f"ring {c}": run_ring(mesh, *heads, c) for c in (False, True)}
    layer, X = parallelize_heads(params, mesh), torch.tensor(X, device=mesh.device_type)
    mask = torch.tensor(stripes(), device=X.device)
    found["shapes"] = [tuple(layer.qkv_proj.weight.shape), tuple(layer.out_proj.weight.shape)]
    found["mask"] = layer(X, mask=mask).detach().cpu().numpy()
    found["one token"] = layer(X[0, :1]).detach().cpu().numpy()
    found["float32"] = parallelize_heads(params, mesh, dtype=torch.float32)(X.float()).dtype
    found["counts"] = counted_by_torch(lambda: layer(X))
    Y = layer(X.clone().requires_grad_())
    found["counts back"] = counted_by_torch(Y.sum().backward)
    found["three modules"] = backward_of_three(mesh, X)
    shared = (Replicate(),)
    marked = {"": PrepareModuleInput(input_layouts=shared, desired_input_layouts=shared)}
    found["three modules, X marked once"] = backward_of_three(mesh, X, marked)
    found["context"] = message(lambda: layer(X, context=X))
    found["refused"] = [message(call) for call in refused(mesh, params)]
    found["told by torchrun"] = sorted(processes.TORCHRUN & os.environ.keys())
    found["backend"] = dist.get_backend()
    print("never shown")
    return found


def refused(mesh, params):
    """Calls that every process must turn down before it waits for another."""
    X, whole = np.ones((B, T, D_MODEL)), np.ones((2, T, D_K), dtype=int)
    wants = torch.ones(2, 3, requires_grad=True)
    return [
        lambda: run_layer(mesh, X.astype(int), params, X),
        lambda: run_layer(mesh, X, params, X[:, 1:]),
        lambda: run_ring(mesh, whole, whole, whole),
        lambda: parallel.ring_attention(wants, wants, wants),
    ]


REFUSED = (
    *("X is an array of int64; expected floats", "dY has shape (5, 5, 9); expected (5, 6, 9)"),
    *("Q is int64, K is int64, V is int64; expected float32", "Q, K or V asks for gradients; exp"),
)


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
        """Multiply all three."""
        return self.q_proj(X) * self.k_proj(X) * self.v_proj(X)


def backward_of_three(mesh, X, plan=()):
    """What is sent in the backward pass when each of three modules is split, counted twice."""
    plan = dict(plan) | {name: ColwiseParallel() for name in ("q_proj", "k_proj", "v_proj")}
    layer = parallelize_module(ThreeModules().to(X), mesh, plan)
    return counted_by_torch(layer(X.clone().requires_grad_()).sum().backward)


def message(call):
    """The text of the ValueError or TypeError that a call raises."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return str(error)


def stripes():
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
    """X, dY, and a sequence of Q, K, V for the ring."""
    rng = np.random.default_rng(1)
    X, dY = rng.standard_normal((2, B, T, D_MODEL))
    heads = [rng.standard_normal((2, T, d)) * 3 for d in (D_K, D_K, D_V)]
    return X, dY, heads


@pytest.fixture(scope="module", params=[1, 2])
def world(request, params, inputs):
    """(the number of processes, what each found); two meet on a port, one at a file."""
    X, dY, heads = inputs
    port = free_port() if request.param == 2 else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        for name in processes.TORCHRUN:
            patch.setenv(name, "1")
        given = params, X, dY, heads
        results = run_parallel(everything, request.param, *given, port=port, timeout_s=MOST_S)
    return request.param, results


def assert_close(actual, expected):
    """Compare float64."""
    assert actual.dtype == np.float64
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_every_process_has_the_whole_output(world, params, inputs, causal):
    mask = oracle.causal_mask(T) if causal else None
    expected = oracle.mha(inputs[0], params, mask=mask)
    for found in world[1]:
        assert_close(found[causal].Y, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_one_process(world, params, inputs, causal):
    X, dY, _ = inputs
    trace = tl.trace(X, params, mask=tl.causal_mask(T) if causal else None)
    expected = tl.multi_head_attention_backward(trace, dY)
    whole = tl.Params(expected.dW_Q, expected.dW_K, expected.dW_V, expected.dW_O)
    n, results = world
    for rank, found in enumerate(results):
        mine = shard_params(whole, rank, n)
        assert_close(found[causal].dX, expected.dX)
        assert_close(found[causal].dW_qkv, packed_weight(mine))
        assert_close(found[causal].dW_out, mine.W_O.T)


def test_one_all_reduce_goes_forward_and_one_back(world):
    n, results = world
    expected = ONE_ALL_REDUCE if n > 1 else []
    for found in results:
        for causal in (False, True):
            assert found[causal].forward == expected
            assert found[causal].backward == expected


def test_three_modules_send_three_times_backward_what_one_sends_once(world):
    n, results = world
    expected = ([3], 3 * ONE_ALL_REDUCE) if n > 1 else ([], [])
    assert all(found["three modules"] == expected for found in results)


def test_three_modules_send_once_backward_where_their_input_is_marked_in_front_of_all(world):
    n, results = world
    expected = ([1], ONE_ALL_REDUCE) if n > 1 else ([], [])
    assert all(found["three modules, X marked once"] == expected for found in results)


def test_the_wire_counts_as_often_as_torch_does(world):
    n, results = world
    expected = ([1], ONE_ALL_REDUCE) if n > 1 else ([], [])
    for way in ("counts", "counts back"):
        assert all(found[way] == expected for found in results)


def test_masks_and_single_tokens_work_as_in_one_process(world, params, inputs):
    X = inputs[0]
    for found in world[1]:
        assert_close(found["mask"], oracle.mha(X, params, mask=stripes()))
        assert_close(found["one token"], oracle.mha(X[0, :1], params))
        assert found["float32"] == torch.float32


def test_weights_are_shards_of_the_whole(world):
    whole = [(H * (2 * D_K + D_V), D_MODEL), (D_MODEL, H * D_V)]
    assert all(found["shapes"] == whole for found in world[1])


def test_a_context_is_refused(world):
    assert all("attends only to X" in found["context"] for found in world[1])


def test_results_come_in_the_order_of_ranks_from_one_thread_each(world):
    n, results = world
    assert [found["rank"] for found in results] == list(range(n))
    assert {found["threads"] for found in results} == {1}
    assert {found["backend"] for found in results} == {backend(n)}


@pytest.mark.parametrize("causal", [False, True])
def test_ring_is_attention_over_the_whole_sequence(world, inputs, causal):
    mask = oracle.causal_mask(T) if causal else None
    blocks = [found[f"ring {causal}"][0] for found in world[1]]
    expected = oracle.scaled_dot_product_attention(*inputs[2], mask=mask)
    assert_close(np.concatenate(blocks, axis=-2), expected)


def test_what_does_not_fit_is_refused_before_a_process_waits_for_another(world):
    for found in world[1]:
        for said, words in zip(found["refused"], REFUSED, strict=True):
            assert said.startswith(words)


def test_what_torchrun_told_the_starter_is_not_told_to_the_workers(world):
    assert [found["told by torchrun"] for found in world[1]] == [[]] * world[0]


def test_ring_sends_keys_and_values_to_all_others(world):
    n, results = world
    once = [("send", 2 * T // n * D_K), ("send", 2 * T // n * D_V)]
    for found in results:
        for causal in (False, True):
            assert found[f"ring {causal}"][1] == once * (n - 1)


@pytest.mark.long
def test_three_processes_started_by_the_module_say_what_they_found_and_no_more():
    command = [sys.executable, "-W", "error", "-m", "tutorial_lib.pytorch.parallel"]
    run = start_and_wait([*command, "--processes", "3", "--heads", "3"])
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        f"3 heads over 3 processes by {backend(3)}",
        "Y as in one process within 1e-12: True",
        "dX as in one process within 1e-12: True",
        "forward: all_reduce of 84 entries",
        "backward: all_reduce of 84 entries",
    ]


@pytest.mark.long
def test_heads_that_do_not_split_give_one_clear_error(inputs):
    (X, dY, _), before = inputs, children()
    params = tl.init_params(np.random.default_rng(0), d_model=D_MODEL, n_heads=3)
    with pytest.raises(tl.ShapeError, match="n_heads=3 does not split into world_size=2") as caught:
        run_parallel(run_layer, 2, X, params, dY, timeout_s=MOST_S)
    assert caught.value.__notes__[0].startswith("Raised in rank ")
    assert "Traceback" in caught.value.__notes__[0]
    assert children() == before


@pytest.mark.long
def test_torchrun_gives_the_same():
    run = torchrun("--standalone", "-m", "tutorial_lib.pytorch.parallel")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        f"4 heads over 2 processes by {backend(2)}",
        "Y as in one process within 1e-12: True",
        "dX as in one process within 1e-12: True",
        "forward: all_reduce of 84 entries",
        "backward: all_reduce of 84 entries",
    ]


def test_heads_that_do_not_split_end_the_module_with_one_line(monkeypatch, capsys):
    monkeypatch.setattr(dist, "is_torchelastic_launched", lambda: True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit):
        parallel.main(["--heads", "3"])
    assert "error: heads=3 does not split into processes=2 equal" in capsys.readouterr().err


@pytest.mark.long
def test_torchrun_fails_at_a_taken_port():
    with socket.create_server(("", 0)) as server:
        port = str(server.getsockname()[1])
        run = torchrun("--master-port", port, "-m", "tutorial_lib.pytorch.parallel")
    assert run.returncode == 1
    assert "EADDRINUSE" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_the_shards_answers_add_up_to_the_layers(params, inputs, world_size):
    shards = [shard_params(params, rank, world_size) for rank in range(world_size)]
    assert {shard.n_heads for shard in shards} == {H // world_size}
    parts = [tl.multi_head_attention(inputs[0], shard) for shard in shards]
    assert_close(sum(parts), oracle.mha(inputs[0], params))


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


def test_shards_side_by_side_are_the_layer(params):
    shards = [shard_params(params, rank, 2) for rank in range(2)]
    for field in dataclasses.fields(tl.Params):
        pieces = [getattr(shard, field.name) for shard in shards]
        np.testing.assert_array_equal(np.concatenate(pieces), getattr(params, field.name))

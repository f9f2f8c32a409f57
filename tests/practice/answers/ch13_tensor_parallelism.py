"""The answers of chapter 13, computed: in one process, which plays each of several in turn."""

import numpy as np

import tutorial_lib as tl
from tests import oracle
from tests.lazy import torch
from tutorial_lib.gradients import attention_backward, project_heads_backward
from tutorial_lib.heads import split_heads

T, D_MODEL = 7, 12
MATRICES = ("dW_Q", "dW_K", "dW_V", "dW_O")


def _layer(n_heads=4, d_k=3, d_v=5):
    """Sample a layer, a sequence, and the gradient of its output."""
    rng = np.random.default_rng(0)
    params = tl.init_params(rng, d_model=D_MODEL, n_heads=n_heads, d_k=d_k, d_v=d_v)
    return params, *rng.standard_normal((2, T, D_MODEL))


def _shards(params, n):
    """Split a layer into the heads of n processes."""
    from tutorial_lib.pytorch.parallel import shard_params

    return [shard_params(params, rank, n) for rank in range(n)]


def halves_of_heads():
    """Split both heads of width 4 into two columns for each process, and add up the results."""
    params, X, _ = _layer(n_heads=2, d_k=4, d_v=4)
    W_O = params.W_O.reshape(2, 4, D_MODEL)

    def part(half, scale=1.0):
        W_Q, W_K, W_V = (W[..., half] for W in (params.W_Q, params.W_K, params.W_V))
        return tl.Params(scale * W_Q, W_K, W_V, W_O[:, half].reshape(-1, D_MODEL))

    halves = np.s_[:2], np.s_[2:]
    whole, parts = tl.trace(X, params), [tl.trace(X, part(half)) for half in halves]
    corrected = [
        tl.trace(X, part(half, (2 / 4) ** 0.5)) for half in halves
    ]  # divide by the root of 4
    adds_up = np.allclose(sum(steps.Y for steps in parts), whole.Y)
    corrected_adds_up = np.allclose(sum(steps.Y for steps in corrected), whole.Y)
    parts_of_scores = np.allclose(sum(steps.scores for steps in corrected), whole.scores)
    return [
        adds_up,
        parts_of_scores and not (adds_up or corrected_adds_up),
        corrected_adds_up,
        any(steps.Y.shape != whole.Y.shape for steps in parts),
    ]


def gradients_that_are_added():
    """Run the backward pass in two shards, and name what only the sum of both gives."""
    params, X, dY = _layer()
    whole = tl.multi_head_attention_backward(tl.trace(X, params), dY)
    own = [tl.multi_head_attention_backward(tl.trace(X, shard), dY) for shard in _shards(params, 2)]
    added = []
    for name in ("dX", *MATRICES):
        parts, expected = [getattr(part, name) for part in own], getattr(whole, name)
        side_by_side = np.concatenate(parts)
        finished = side_by_side.shape == expected.shape and np.allclose(side_by_side, expected)
        if not finished and np.allclose(sum(parts), expected):
            added.append(name)
    return [added == ["dX"], added == ["dX", *MATRICES], added == list(MATRICES), not added]


def _messages(n_heads):
    """Run one of two processes, the other one faked by PyTorch; list its messages, both ways."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from tutorial_lib.pytorch.parallel import run_layer

    params, X, dY = _layer(n_heads)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        result = run_layer(init_device_mesh("cpu", (2,)), X, params, dY)
    finally:
        dist.destroy_process_group()
    return result.forward, result.backward


def all_reduces_of_the_backward_pass():
    """Run the layer's part in one of two processes, and count its messages in the backward pass."""
    _, backward = _messages(n_heads=4)
    return [name for name, _ in backward].count("all_reduce")


def what_two_processes_send():
    """Run one of two processes with six heads of twelve, and see which array its message is."""
    ((operation, entries),), _ = _messages(n_heads=12)
    params, X, _ = _layer(n_heads=12)
    steps = [tl.trace(X, shard) for shard in _shards(params, 2)]
    adds_up = np.allclose(sum(part.Y for part in steps), tl.trace(X, params).Y)
    own = steps[0]
    return [
        entries == own.K.size + own.V.size,
        entries == own.heads.size,
        (operation, entries) == ("all_reduce", own.Y.size) and adds_up,
        entries == own.scores.size,
    ]


def four_biases():
    """Add the bias in each of four processes, and then their partial sums."""
    params, X, dY = _layer()
    Y, bias = tl.multi_head_attention(X, params), dY[0]
    parts = [tl.multi_head_attention(X, shard) for shard in _shards(params, 4)]
    total = sum(part + bias for part in parts)
    return [
        np.allclose(total, Y + 4 * bias),
        np.allclose(total, Y + bias),
        np.allclose(total, Y + bias / 4),
        parts[0].shape[-1:] != bias.shape,
    ]


def _arrays_sent(n):
    """Send chunks round a ring until all of n processes have the sum; count those of rank 0."""
    chunks = np.random.default_rng(0).standard_normal((n, n, 3))  # rank, chunk, entries
    total, sent = chunks.sum(axis=0), 0
    for step in range(2 * (n - 1)):
        for rank in range(n):
            chunk, following = (rank - step) % n, (rank + 1) % n
            complete = step >= n - 1
            chunks[following, chunk] *= not complete
            chunks[following, chunk] += chunks[rank, chunk]
        sent += chunks[0, -step % n].size
    assert np.allclose(chunks, total), "the ring does not add up: fix _arrays_sent"
    return sent / total.size


def what_eight_processes_send():
    """Let four processes and eight add up an array in a ring, and count what each sends."""
    four, eight = map(_arrays_sent, (4, 8))
    return [
        eight == four / 2,
        eight == 2 * four,
        (four, eight) == (3, 7),
        (four, eight) == (1.5, 1.75),
    ]


def what_dx_is():
    """Go back through queries, keys and values apart, and compare with central differences."""
    params, X, dY = _layer()
    steps = tl.trace(X, params)
    dheads = split_heads(dY @ params.W_O.T, params.n_heads)
    behind = attention_backward(steps.Q, steps.K, steps.V, steps.weights, dheads)
    matrices = params.W_Q, params.W_K, params.W_V
    paths = [project_heads_backward(X, W, d)[0] for W, d in zip(matrices, behind, strict=True)]
    dX = oracle.central_differences(lambda X: (tl.multi_head_attention(X, params) * dY).sum(), X)

    def is_it(gradient):
        return np.allclose(gradient, dX, rtol=1e-6, atol=1e-8)  # differences are no better

    others = max(paths, key=np.linalg.norm), np.mean(paths, axis=0), paths[2], sum(paths)
    return [is_it(other) for other in others]


def what_computes_the_first_entry():
    """Find the entries of an `nn.Linear` that its first output depends on."""
    linear = torch.nn.Linear(5, 3)
    (gradient,) = torch.autograd.grad(linear(torch.ones(5))[0], linear.weight)
    used = gradient != 0
    row, column = torch.from_numpy(np.indices(used.shape) == 0)
    return [
        torch.equal(used, column),
        torch.equal(used, row),
        bool(used.all()),
        torch.equal(used, row & column),
    ]

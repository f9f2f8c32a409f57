"""Checks for chapter 13. Torch is loaded when a check is called."""

import numpy as np

from tutorial_lib import projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_MODEL

MISTAKES, cases_of = read_room(__file__)


def _params(seed, n_heads):
    sizes = {"d_model": D_MODEL, "n_heads": n_heads, "d_k": 30, "d_v": 42}  # 2 and 3 divide them
    return projection.init_params(np.random.default_rng(seed), **sizes)


def _shard_cases(*heads_processes_ranks):
    """Return a case for each (heads, processes, rank)."""
    return tuple(
        (
            f"{heads} heads over {n} process{'es' * (n > 1)}, rank {rank}",
            {"params": _params(80 + heads, heads), "rank": rank, "world_size": n},
        )
        for heads, n, rank in heads_processes_ranks
    )


@cases_of("tutorial_lib.pytorch.parallel.shard_params")
def check_shard_params():
    """Check `shard_params(params, rank, world_size)`: → Params. Prints an account."""
    yield from _shard_cases((6, 2, 1), (6, 2, 0), (6, 3, 1), (3, 1, 0))


def _shard_unevenly(params, rank, world_size):
    fewest, left = divmod(params.n_heads, world_size)
    first, n_own = rank * fewest + min(rank, left), fewest + (rank < left)
    heads = slice(first, first + n_own)
    W_O = params.W_O.reshape(params.n_heads, params.d_v, params.d_model)[heads]
    own = (W[heads] for W in (params.W_Q, params.W_K, params.W_V))
    return projection.Params(*own, W_O.reshape(-1, params.d_model))


@cases_of(_shard_unevenly)
def check_shard_unevenly():
    yield from _shard_cases((5, 2, 1), (5, 2, 0), (7, 3, 1), (8, 3, 1), (8, 3, 2), (6, 3, 1))


def _bytes_sent(shape, n_layers, world_size, itemsize):
    B, T, d_model = shape
    array = B * T * d_model * itemsize
    sent = 2 * (world_size - 1) * array / world_size  # for one all-reduce
    return 4 * n_layers * sent


@cases_of(_bytes_sent)
def check_bytes_sent():
    yield "3 processes, bfloat16", ((5, 11, 24), 7, 3, 2)
    yield "5 processes, float32", ((3, 7, 30), 11, 5, 4)
    yield "8 processes", ((3, 5, 56), 11, 8, 2)
    yield "one process", ((3, 7, 10), 13, 1, 2)


def _pairs_seen(owner, n):
    seen = np.arange(1, len(owner) + 1)  # token t attends to t + 1 tokens
    return np.bincount(owner, weights=seen, minlength=n).astype(int)


@cases_of(_pairs_seen)
def check_pairs_seen():
    owners = {
        "blocks": (np.arange(12) // 4, 3),
        "in turn": (np.arange(12) % 3, 3),
        "in any order": (np.array([2, 0, 2, 1, 1, 0, 2]), 3),
        "two processes have no tokens": (np.array([3, 0, 0, 1, 3, 1, 0]), 5),
    }
    yield from ((label, {"owner": owner, "n": n}) for label, (owner, n) in owners.items())

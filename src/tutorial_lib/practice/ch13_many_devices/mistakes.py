"""Wrong forms of the functions of chapter 13."""

from dataclasses import replace

import numpy as np

from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import Params


def _shard(choose, rows=None):
    """Choose heads by number: choose(H, rank, n); `rows` likewise, for W_O alone."""

    def shard(params, rank, world_size):
        own = (params.n_heads, rank, world_size)
        heads = choose(*own)
        W_O = params.W_O.reshape(params.n_heads, params.d_v, params.d_model)
        W_O = W_O[(rows or choose)(*own)].reshape(-1, params.d_model)
        return Params(params.W_Q[heads], params.W_K[heads], params.W_V[heads], W_O)

    return shard


def _even(H, rank, n):
    return np.arange(H).reshape(n, -1)[rank]


def _in_turn(H, rank, n):
    return np.arange(rank, H, n)


def _averaged(choose):
    def shard(params, rank, world_size):
        cut = _shard(choose)(params, rank, world_size)
        return replace(cut, W_O=cut.W_O / world_size)

    return shard


def _pieces_of_heads(params, rank, world_size):
    def own(W):
        return np.split(W, world_size, axis=-1)[rank]

    W_O = params.W_O.reshape(params.n_heads, params.d_v, params.d_model)
    rows = np.split(W_O, world_size, axis=1)[rank].reshape(-1, params.d_model)
    return Params(own(params.W_Q), own(params.W_K), own(params.W_V), rows)


SHARD_PARAMS = (
    Mistake(
        "heads_in_turn",
        "it deals the heads out in turn, 0, n, 2n, … to rank 0",
        "Neighbouring heads stay together: np.split(W, world_size)[rank].",
        _shard(_in_turn),
    ),
    Mistake(
        "rows_of_other_heads",
        "it deals the heads out in turn and cuts W_O in blocks, so heads meet rows of others",
        "Cut all four arrays alike.",
        _shard(_in_turn, rows=_even),
    ),
    Mistake(
        "everything",
        "every rank gets the whole layer, so the parts add up to n times Y",
        "Cut each array in world_size parts and take one.",
        lambda params, rank, world_size: params,
    ),
    Mistake(
        "averaged",
        "it divides W_O by the number of processes, so the sum is an average",
        "Y is the sum of the parts: leave W_O as it is.",
        _averaged(_even),
    ),
    Mistake(
        "pieces_of_heads",
        "it gives every rank a piece of every head",
        "The heads are on the first axis: split that one. A piece of a score is no score.",
        _pieces_of_heads,
    ),
)


def _more_first(H, rank, n):
    return np.array_split(np.arange(H), n)[rank]


def _rest_dropped(H, rank, n):
    return np.arange(H)[: H - H % n].reshape(n, -1)[rank]


def _rest_to_the_last(H, rank, n):
    return np.arange(rank * (H // n), H if rank == n - 1 else (rank + 1) * (H // n))


def _rows_by_the_shortest(H, rank, n):
    return rank * (H // n) + np.arange(len(_more_first(H, rank, n)))


SHARD_UNEVENLY = (
    Mistake(
        "rest_dropped",
        "it drops the heads that are left over",
        "Every head has its part in Y: hand all of them out.",
        _shard(_rest_dropped),
    ),
    Mistake(
        "rest_to_the_last",
        "the last process gets all heads that are left over",
        "While any are left over, the first processes get one more each.",
        _shard(_rest_to_the_last),
    ),
    Mistake(
        "in_turn",
        "it deals the heads out in turn",
        "The heads stay in order: np.array_split(np.arange(H), world_size)[rank].",
        _shard(_in_turn),
    ),
    Mistake(
        "rows_as_if_even",
        "its rows of W_O begin where they would if every rank had H // n heads",
        "Earlier ranks may have one head more: index W_O with the same heads.",
        _shard(_more_first, rows=_rows_by_the_shortest),
    ),
    Mistake(
        "averaged",
        "it divides W_O by the number of processes, so the sum is an average",
        "Y is the sum of the parts: leave W_O as it is.",
        _averaged(_more_first),
    ),
)


def _sent(*, reduces=4, arrays=lambda n: 2 * (n - 1) / n, bytes_of=lambda itemsize: itemsize):
    def bytes_sent(shape, n_layers, world_size, itemsize):
        numbers = shape[0] * shape[1] * shape[2]
        return reduces * n_layers * arrays(world_size) * numbers * bytes_of(itemsize)

    return bytes_sent


BYTES_SENT = (
    Mistake(
        "half",
        "it counts half: the way forward alone, one block of two, or one round of the ring",
        "A layer has 4 all-reduces, and each sends 2 (n - 1) / n arrays.",
        _sent(reduces=2),
    ),
    Mistake(
        "one_for_a_layer",
        "it counts one all-reduce in each layer",
        "Attention has one and the MLP has one, forward, and the same again backward.",
        _sent(reduces=1),
    ),
    Mistake(
        "to_everyone",
        "it lets each process send its whole array to every other",
        "In a ring each sends 2 (n - 1) / n arrays.",
        _sent(arrays=lambda n: n - 1),
    ),
    Mistake(
        "two_whole_arrays",
        "it lets each process send two whole arrays, also when it is alone",
        "Its own piece stays where it is: 2 (n - 1) / n.",
        _sent(arrays=lambda n: 2),
    ),
    Mistake(
        "numbers",
        "it counts numbers, not bytes",
        "Multiply by itemsize.",
        _sent(bytes_of=lambda itemsize: 1),
    ),
    Mistake(
        "all_together",
        "it counts what all processes send together",
        "Asked is what one of them sends: 2 (n - 1) / n arrays.",
        _sent(arrays=lambda n: 2 * (n - 1)),
    ),
    Mistake(
        "a_part_for_each",
        "it takes the array to be cut among the processes",
        "Each process has a part of Y of the whole shape: a term of the sum, not a piece.",
        _sent(arrays=lambda n: 2 * (n - 1) / n**2),
    ),
)


def _count(seen):
    def pairs_seen(owner, n):
        each = seen(np.arange(len(owner)))
        return np.array([each[owner == rank].sum() for rank in range(n)])

    return pairs_seen


def _own_pairs(owner, n):
    mine = [(owner == rank).sum() for rank in range(n)]
    return np.array([count * (count + 1) // 2 for count in mine])


def _equal_shares(owner, n):
    pairs = len(owner) * (len(owner) + 1) / 2
    return np.array([pairs * (owner == rank).mean() for rank in range(n)])


PAIRS_SEEN = (
    Mistake(
        "not_itself",
        "no token looks at itself",
        "Token t looks at t + 1 tokens, itself included.",
        _count(lambda places: places),
    ),
    Mistake(
        "not_causal",
        "every query sees every key",
        "Token t looks at tokens 0 to t: at t + 1 of them.",
        _count(lambda places: np.full(places.shape, len(places))),
    ),
    Mistake(
        "keys_of_the_owner",
        "it counts, for each key that a process holds, the queries that see it",
        "The queries stay and the keys go round: count by the owner of the query.",
        _count(lambda places: len(places) - places),
    ),
    Mistake(
        "own_keys_alone",
        "it counts pairs of which the process holds both",
        "The keys of all others come round too.",
        _own_pairs,
    ),
    Mistake(
        "equal_shares",
        "it shares all pairs out by the number of tokens, as if each saw equally many",
        "Later tokens see more: add up t + 1 over the tokens of each owner.",
        _equal_shares,
    ),
)

MISTAKES = {
    "shard_params": SHARD_PARAMS,
    "shard_unevenly": SHARD_UNEVENLY,
    "bytes_sent": BYTES_SENT,
    "pairs_seen": PAIRS_SEEN,
}

"""Wrong forms of the functions of chapter 13."""

import numpy as np

from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import Params


def _of_heads(params, heads, rows=None):
    """The layer of some heads; `rows` are the heads whose rows of W_O it gets."""
    W_O = params.W_O.reshape(params.n_heads, params.d_v, params.d_model)
    W_O = W_O[heads if rows is None else rows].reshape(-1, params.d_model)
    return Params(params.W_Q[heads], params.W_K[heads], params.W_V[heads], W_O)


def _shard(choose, rows=None, scale=1):
    """Choose heads by number: choose(H, rank, n); `rows` likewise, for W_O alone."""

    def shard(params, rank, world_size):
        own = (params.n_heads, rank, world_size)
        cut = _of_heads(params, choose(*own), None if rows is None else rows(*own))
        return Params(cut.W_Q, cut.W_K, cut.W_V, scale * cut.W_O)

    return shard


def _even(H, rank, n):
    return np.arange(H).reshape(n, -1)[rank]


def _in_turn(H, rank, n):
    return np.arange(rank, H, n)


def _first(H, rank, n):
    return _even(H, 0, n)


def _averaged(cut):
    return lambda params, rank, world_size: _shard(cut, scale=1 / world_size)(
        params, rank, world_size
    )


def _pieces_of_heads(params, rank, world_size):
    def own(W):
        return np.split(W, world_size, axis=-1)[rank]

    W_O = params.W_O.reshape(params.n_heads, params.d_v, params.d_model)
    rows = np.split(W_O, world_size, axis=1)[rank].reshape(-1, params.d_model)
    return Params(own(params.W_Q), own(params.W_K), own(params.W_V), rows)


def _rows_in_turn(params, rank, world_size):
    cut = _shard(_even)(params, rank, world_size)
    return Params(cut.W_Q, cut.W_K, cut.W_V, params.W_O[rank::world_size])


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
        "rows_in_turn",
        "it takes every n-th row of W_O",
        "A head's rows lie together: the first d_v rows are head 0's.",
        _rows_in_turn,
    ),
    Mistake(
        "always_the_first",
        "every rank gets the heads of rank 0",
        "Take part number rank.",
        _shard(_first),
    ),
    Mistake(
        "first_rows_for_all",
        "every rank gets the rows of W_O that belong to rank 0",
        "Cut W_O as the other three, and take part number rank.",
        _shard(_even, rows=_first),
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


def _more_last(H, rank, n):
    return H - 1 - _more_first(H, n - 1 - rank, n)[::-1]


def _rest_dropped(H, rank, n):
    return np.arange(H)[: H - H % n].reshape(n, -1)[rank]


def _rest_to_the_last(H, rank, n):
    return np.arange(rank * (H // n), H if rank == n - 1 else (rank + 1) * (H // n))


def _rest_to_the_first(H, rank, n):
    ends = H % n + np.arange(1, n + 1) * (H // n)
    return np.arange(0 if rank == 0 else ends[rank - 1], ends[rank])


def _rows_from_the_start(H, rank, n):
    return np.arange(len(_more_first(H, rank, n)))


def _rows_by_the_shortest(H, rank, n):
    mine = len(_more_first(H, rank, n))
    return np.arange(rank * (H // n), rank * (H // n) + mine)


SHARD_UNEVENLY = (
    Mistake(
        "more_to_the_last",
        "the last processes get one more, not the first",
        "np.array_split gives the first parts one more.",
        _shard(_more_last),
    ),
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
        "rest_to_the_first",
        "the first process gets all heads that are left over",
        "Not more than one of them for each process.",
        _shard(_rest_to_the_first),
    ),
    Mistake(
        "in_turn",
        "it deals the heads out in turn",
        "The heads stay in order: np.array_split(np.arange(H), world_size)[rank].",
        _shard(_in_turn),
    ),
    Mistake(
        "rows_from_the_start",
        "every rank gets the first rows of W_O",
        "Index W_O, as (H, d_v, d_model), with the same heads.",
        _shard(_more_first, rows=_rows_from_the_start),
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
        "one_array",
        "it lets each process send its array once, also when it is alone",
        "In a ring each sends 2 (n - 1) / n arrays.",
        _sent(arrays=lambda n: 1),
    ),
    Mistake(
        "numbers",
        "it counts numbers, not bytes",
        "Multiply by itemsize.",
        _sent(bytes_of=lambda itemsize: 1),
    ),
    Mistake(
        "always_float32",
        "it takes every number to have 4 bytes",
        "Multiply by itemsize.",
        _sent(bytes_of=lambda itemsize: 4),
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


def _count(seen=lambda places: places + 1, total=lambda seen: seen.sum()):
    def pairs_seen(owner, n):
        each = seen(np.arange(len(owner)))
        return np.array([total(each[owner == rank]) for rank in range(n)])

    return pairs_seen


def _by_keys(owner, n):
    return _count(lambda places: len(places) - places)(owner, n)


def _own_pairs(owner, n):
    mine = [(owner == rank).sum() for rank in range(n)]
    return np.array([count * (count + 1) // 2 for count in mine])


def _with_others(owner, n):
    return _count()(owner, n) - _own_pairs(owner, n)


def _equal_shares(owner, n):
    pairs = len(owner) * (len(owner) + 1) / 2
    return np.array([pairs * (owner == rank).mean() for rank in range(n)])


def _by_rank(owner, n):
    counts = np.bincount(owner, minlength=n)
    before = np.cumsum(counts) - counts
    return counts * before + counts * (counts + 1) // 2


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
        "tokens",
        "it counts the tokens that each process holds",
        "Add up the keys that these tokens see.",
        _count(lambda places: np.ones(places.shape, dtype=int)),
    ),
    Mistake(
        "keys_of_the_owner",
        "it counts, for each key that a process holds, the queries that see it",
        "The queries stay and the keys go round: count by the owner of the query.",
        _by_keys,
    ),
    Mistake(
        "own_keys_alone",
        "it counts pairs of which the process holds both",
        "The keys of all others come round too.",
        _own_pairs,
    ),
    Mistake(
        "others_keys_alone",
        "it leaves out pairs of which the process holds both",
        "The first block that it works on is its own.",
        _with_others,
    ),
    Mistake(
        "equal_shares",
        "it shares all pairs out by the number of tokens, as if each saw equally many",
        "Later tokens see more: add up t + 1 over the tokens of each owner.",
        _equal_shares,
    ),
    Mistake(
        "as_if_in_blocks",
        "it takes the tokens of each process to be a block, in the order of the ranks",
        "Ask the array: owner == rank says which tokens they are.",
        _by_rank,
    ),
)

MISTAKES = {
    "shard_params": SHARD_PARAMS,
    "shard_unevenly": SHARD_UNEVENLY,
    "bytes_sent": BYTES_SENT,
    "pairs_seen": PAIRS_SEEN,
}

"""Checks for chapter 14."""

import numpy as np

from tutorial_lib.practice import cache_tests
from tutorial_lib.practice.account import lay_out, read_room, remedy
from tutorial_lib.practice.mistake import mistake_by_name

MISTAKES, cases_of = read_room(__file__)


def check_cached(step, empty, *, d_model=12):
    """Check a layer that caches keys and values: several chunks must give what one gives.

    The layer may be any: it is tested from outside, and compared only with itself. It processes 24
    tokens in even and in uneven chunks: a mistake with a window of more than 20 keys need not show.
    Prints an account.

    Parameters
    ----------
    step : step(X, cache) → (Y, cache), for X (..., T, d_model) of any length T
    empty : empty(capacity, batch=(), pad=None) → the layer's empty cache; pad: how many tokens at
        the left of each sequence are padding
    d_model : width of X
    """
    try:
        cache_tests.test_layer(cache_tests.Layer(step, empty, d_model))
    except cache_tests.Failure as failure:
        print(_failure_feedback(failure))
    else:
        tokens, widest = cache_tests.T, cache_tests.WIDEST
        cases = f"{tokens} tokens in even and uneven chunks; windows of up to {widest} keys;"
        rest = "capacity to spare; a batch; padding at the left."
        print(f"✓ cached: right on\n  {cases}\n  {rest}")


def _failure_feedback(failure):
    if failure.mistake == cache_tests.NOT_DONE:
        return "○ cached: not done yet (it returns None)."
    if not failure.mistake:
        return lay_out(f"✗ cached: {failure.evidence}")
    mistake = mistake_by_name(MISTAKES["cached"], failure.mistake)
    return lay_out(f"✗ cached: {mistake.says}", failure.evidence, *remedy(mistake))


def _buffer_mask(length, T, capacity):
    """Let T new tokens attend in a buffer of `capacity` rows, after `length` cached ones."""
    own = length + np.arange(T)[:, None]  # each query's own key
    return np.arange(capacity) <= own


@cases_of(_buffer_mask)
def check_buffer_mask():
    yield "a chunk of 3 after 4, capacity 11", {"length": 4, "T": 3, "capacity": 11}
    yield "one token", {"length": 2, "T": 1, "capacity": 5}
    yield "an empty cache", {"length": 0, "T": 4, "capacity": 7}
    yield "a buffer filled to its end", {"length": 5, "T": 3, "capacity": 8}


def _users_that_fit(free, tokens, model, bits):
    entries = model["layers"] * model["kv_heads"] * (model["d_k"] + model["d_v"])
    return free * 8 // (tokens * entries * bits)


@cases_of(_users_that_fit)
def check_users_that_fit():
    shared = {"layers": 7, "d_model": 90, "heads": 15, "kv_heads": 3, "d_k": 22, "d_v": 13}
    wider = {"layers": 6, "d_model": 70, "heads": 10, "kv_heads": 2, "d_k": 23, "d_v": 41}
    both = {"free": 10**8, "tokens": 710, "model": wider, "bits": 8}
    yield "16 bits", {"free": 10**9, "tokens": 1000, "model": shared, "bits": 16}
    yield "4 bits", {"free": 10**9, "tokens": 1000, "model": shared, "bits": 4}
    yield "8 bits, a different model", both
    yield "the last user does not fit whole", {**both, "free": 2 * 10**7}


def _positions_of_new(is_token, T):
    """Number the real tokens from 0, without padding at the left, and return the last T."""
    return np.maximum(np.cumsum(is_token, axis=-1) - 1, 0)[..., -T:]


@cases_of(_positions_of_new)
def check_positions_of_new():
    padded = np.arange(7) >= np.array([2, 0, 4])[:, None]
    yield "the first chunk, with padding", {"is_token": padded[:, :5], "T": 5}
    yield "a chunk after it", {"is_token": padded, "T": 2}
    yield "one token", {"is_token": padded[:2], "T": 1}
    yield "no padding", {"is_token": padded[1:2], "T": 4}

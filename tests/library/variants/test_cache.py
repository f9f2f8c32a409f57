"""The cache: chunks of any length give the layer back, and bad input changes nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, ShapeError, causal_mask, running_example, trace
from tutorial_lib.onepass import attend_rows, last_keys
from tutorial_lib.variants.cache import (
    KVCache,
    decode_step,
    gather_pages,
    merge_heads,
    quantise,
    write_rows,
)

SHAPES = (3, 12, 4), (3, 12, 4), (3, 12, 7), (21, 12)
PIECES = [(1,) * 5, (2, 2, 1), (3, 2), (5,), (1, 4)]


@pytest.fixture
def layer(normal):
    """Parameters of 3 heads, d_k 4, d_v 7, d_model 12."""
    return Params(*(normal(40 + n, *shape) / 3 for n, shape in enumerate(SHAPES)))


def fed(X, params, cache, pieces):
    """The rows of all steps, and the last cache."""
    rows, start = [], 0
    for n in pieces:
        Y, cache = decode_step(X[..., start : start + n, :], params, cache)
        rows.append(Y)
        start += n
    return np.concatenate(rows, axis=-2), cache


@pytest.mark.parametrize("batch", [(), (2,), (8, 2)])
@pytest.mark.parametrize("pieces", PIECES)
def test_chunks_of_any_length_give_the_layer_back(normal, layer, batch, pieces, assert_close):
    X = normal(1, *batch, 5, 12)
    Y, cache = fed(X, layer, KVCache.empty(layer, 6, batch=batch), pieces)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5)))
    assert_close(cache.K, oracle.project_heads(X, layer.W_K))
    assert_close(cache.V, oracle.project_heads(X, layer.W_V))
    assert (cache.length, cache.batch, cache.capacity) == (5, batch, 6)


def test_three_words_of_the_running_example_come_one_by_one(assert_close):
    example = running_example()
    Y, _ = fed(example.X, example.params, KVCache.empty(example.params, 3), (1, 1, 1))
    right = trace(example.X, example.params, mask=example.mask).Y
    assert_close(Y, right)


@pytest.mark.parametrize("pieces", PIECES)
def test_padding_at_the_left_changes_no_row_of_a_word(normal, layer, pieces, assert_close):
    X, pad = normal(2, 2, 5, 12), np.array([2, 0])
    Y, cache = fed(X, layer, KVCache.empty(layer, 5, batch=(2,), pad=pad), pieces)
    assert_close(Y[0, 2:], oracle.mha(X[0, 2:], layer, mask=causal_mask(3)))
    assert_close(Y[1], oracle.mha(X[1], layer, mask=causal_mask(5)))
    assert not Y[0, :2].any()  # padding has nothing to look at
    assert cache.mask(1).shape == (2, 1, 1, 6)


def test_positions_count_tokens_and_no_padding():
    padded = KVCache.empty(layer_of_zeros(), 9, batch=(2,), pad=[2, 0])
    np.testing.assert_array_equal(padded.positions(4), [[0, 0, 0, 1], [0, 1, 2, 3]])
    longer = padded.append(np.zeros((2, 3, 4, 4)), np.zeros((2, 3, 4, 7)))
    np.testing.assert_array_equal(longer.positions(2), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(KVCache.empty(layer_of_zeros(), 5).positions(3), [0, 1, 2])


def test_a_cache_keeps_numbers_of_padding_of_its_own():
    pad = np.array([2, 0], np.uint64)
    cache = KVCache.empty(layer_of_zeros(), 9, batch=(2,), pad=pad)
    pad[:] = 7
    np.testing.assert_array_equal(cache.positions(3), [[0, 0, 0], [0, 1, 2]])
    assert cache.positions(3).dtype == int


@pytest.mark.parametrize("ask", [KVCache.mask, KVCache.positions])
@pytest.mark.parametrize(
    ("error", "T"), [(TypeError, 2.5), (ValueError, -1), (ValueError, 0), (TypeError, True)]
)
def test_a_number_of_tokens_that_cannot_be_is_refused(ask, error, T):
    with pytest.raises(error, match=r"^T"):
        ask(KVCache.empty(layer_of_zeros(), 9), T)


@pytest.mark.parametrize("name", ["K", "V"])
def test_cached_rows_are_read_only(normal, layer, name):
    _, cache = decode_step(normal(1, 2, 12), layer, KVCache.empty(layer, 6))
    with pytest.raises(ValueError, match="read-only"):
        getattr(cache, name)[...] = 0
    decode_step(normal(1, 2, 12), layer, cache)


def layer_of_zeros(*, groups=3, d_k=4, d_v=7):
    """What a cache reads of a layer: the shapes of W_K and W_V."""
    return SimpleNamespace(W_K=np.zeros((groups, 12, d_k)), W_V=np.zeros((groups, 12, d_v)))


def test_no_step_copies_the_cache(normal, layer):
    cache = KVCache.empty(layer, 6)
    _, first = decode_step(normal(1, 2, 12), layer, cache)
    before = first.K.copy()
    _, second = decode_step(normal(2, 3, 12), layer, first)
    for old, new in ((first.K, second.K), (first.V, second.V)):
        assert np.shares_memory(old, new)
    np.testing.assert_array_equal(first.K, before)  # the shorter view shows what it showed
    buffer = np.zeros((3, 6, 4))
    assert np.shares_memory(write_rows(buffer, 2, np.ones((3, 1, 4))), buffer)


def test_a_cache_is_as_precise_as_its_layer(normal, layer):
    single = Params(*(W.astype(np.float32) for W in vars(layer).values()))
    X = normal(1, 5, 12).astype(np.float32)
    Y, cache = decode_step(X, single, KVCache.empty(single, 5))
    assert Y.dtype == cache.K.dtype == np.float32
    with pytest.raises(TypeError, match=r"^X is of float64, and the cache of float32 would round"):
        decode_step(normal(1, 5, 12), single, KVCache.empty(single, 5))


@pytest.mark.parametrize(("groups", "d_k", "d_v"), [(1, 4, 7), (2, 4, 7), (1, 0, 7), (1, 3, 0)])
def test_fewer_heads_and_only_a_latent_are_cached_as_well(normal, groups, d_k, d_v):
    cache = KVCache.empty(layer_of_zeros(groups=groups, d_k=d_k, d_v=d_v), 6, batch=(2,))
    K, V = normal(1, 2, groups, 5, d_k), normal(2, 2, groups, 5, d_v)
    for start, end in ((0, 3), (3, 5)):
        cache = cache.append(K[..., start:end, :], V[..., start:end, :])
    np.testing.assert_array_equal(cache.K, K)
    np.testing.assert_array_equal(cache.V, V)


def changed(X, at, value):
    """The same with one number replaced."""
    X = X.copy()
    X[at] = value
    return X


def other(params):
    """A layer of the same shapes with another W_V."""
    return Params(params.W_Q, params.W_K, params.W_V + 1, params.W_O)


@pytest.mark.parametrize(
    ("error", "says", "call"),
    [
        (
            ShapeError,
            r"^X has shape \(1, 5, 12\), a batch of \(1,\)",
            lambda X, p, c: decode_step(X[None], p, c),
        ),
        (
            ValueError,
            "^the cache was made for another layer",
            lambda X, p, c: decode_step(X, other(p), c),
        ),
        (
            ValueError,
            "^5 new tokens after 2 make 7, more than capacity=6; expected 4 at most",
            lambda X, p, c: decode_step(X, p, c),
        ),
        (TypeError, "^K is a list", lambda X, p, c: c.append([1], c.V)),
        (
            ShapeError,
            r"^K has shape \(2, 2, 4\); expected \(3, T, 4\)",
            lambda X, p, c: c.append(c.K[:2], c.V),
        ),
        (
            ShapeError,
            r"^V has shape \(3, 2, 4\); expected \(3, T, 7\)",
            lambda X, p, c: c.append(c.K, c.K),
        ),
        (
            ShapeError,
            r"^K has shape \(3, 1, 4\); expected",
            lambda X, p, c: c.append(c.K[:, :1], c.V),
        ),
        (
            ShapeError,
            r"^K has shape \(3, 0, 4\); expected",
            lambda X, p, c: c.append(c.K[:, :0], c.V[:, :0]),
        ),
        (
            ValueError,
            "^V is inf at position",
            lambda X, p, c: c.append(c.K, changed(c.V, (0, 0, 0), np.inf)),
        ),
    ],
)
def test_bad_input_is_told_and_the_cache_stays_as_it_was(normal, layer, error, says, call):
    _, cache = decode_step(normal(3, 2, 12), layer, KVCache.empty(layer, 6))
    before = [buffer.copy() for buffer in cache.buffers]
    with pytest.raises(error, match=says):
        call(normal(1, 5, 12), layer, cache)
    for buffer, was in zip(cache.buffers, before, strict=True):
        np.testing.assert_array_equal(buffer, was)
    assert cache.written == cache.length == 2
    decode_step(normal(1, 4, 12), layer, cache)  # and can go on


def test_a_cache_is_continued_once(normal, layer):
    _, first = decode_step(normal(3, 2, 12), layer, KVCache.empty(layer, 6))
    _, second = decode_step(normal(4, 1, 12), layer, first)
    kept = second.K.copy()
    says = "^this cache of 2 tokens was continued already, to 3"
    with pytest.raises(ValueError, match=says):
        decode_step(normal(5, 1, 12), layer, first)
    with pytest.raises(ValueError, match=says):
        first.append(first.K[:, :1], first.V[:, :1])
    np.testing.assert_array_equal(second.K, kept)


@pytest.mark.parametrize("pad", [None, [1, 0]])
def test_a_fork_goes_on_by_itself_from_any_view(normal, layer, pad, assert_close):
    X, Z = normal(3, 2, 5, 12), normal(4, 2, 2, 12)
    start = KVCache.empty(layer, 6, batch=(2,), pad=pad)
    _, short = decode_step(X[:, :3], layer, start)
    fork = short.fork()
    right, long = decode_step(X[:, 3:], layer, short)
    kept = long.K.copy()
    other, _ = decode_step(Z, layer, fork)
    again, _ = decode_step(X[:, 3:], layer, short.fork())  # behind a view that has gone on
    assert_close(again, right)
    fresh = KVCache.empty(layer, 6, batch=(2,), pad=pad)
    alone, _ = fed(np.concatenate([X[:, :3], Z], axis=1), layer, fresh, (3, 2))
    assert_close(other, alone[:, 3:])
    np.testing.assert_array_equal(long.K, kept)
    assert (fork.written, short.written, fork.capacity) == (5, 5, 6)
    with pytest.raises(ValueError, match=r"or with a copy of this one: cache\.fork\(\)"):
        decode_step(Z, layer, short)


def test_a_step_that_fails_behind_the_append_can_be_taken_again(normal, layer, assert_close):
    X = normal(3, 5, 12)
    _, first = decode_step(X[:2], layer, KVCache.empty(layer, 6))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"inf|nan"):
        decode_step(1e200 * X[2:], layer, first)  # finite, and its scores are not
    assert first.written == first.length == 2
    Y, second = decode_step(X[2:], layer, first)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5))[2:])
    with pytest.raises(ValueError, match="continued already, to 5"):
        decode_step(X[2:], layer, first)
    assert second.written == 5


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (TypeError, "^params.W_K is missing", {"params": 3}),
        (
            ShapeError,
            "^params.W_K has 3 heads and params.W_V 2",
            {"params": SimpleNamespace(W_K=np.ones((3, 12, 4)), W_V=np.ones((2, 12, 7)))},
        ),
        (TypeError, "^capacity is 2.5", {"capacity": 2.5}),
        (ValueError, "^capacity=0", {"capacity": 0}),
        (TypeError, "^batch is a int; expected a tuple", {"batch": 2}),
        (TypeError, "^pad is of type float64", {"batch": (2,), "pad": [0.0, 1.0]}),
        (ShapeError, r"^pad has shape \(3,\); expected \(2,\)", {"batch": (2,), "pad": [0, 1, 1]}),
        (ValueError, "^pad goes from -1 to 1", {"batch": (2,), "pad": [-1, 1]}),
        (ValueError, "^pad goes from 0 to 6", {"batch": (2,), "pad": [0, 6]}),
    ],
)
def test_a_cache_that_cannot_be_is_refused(layer, error, says, arguments):
    given = {"params": layer, "capacity": 6, **arguments}
    with pytest.raises(error, match=says):
        KVCache.empty(given.pop("params"), given.pop("capacity"), **given)


@pytest.mark.parametrize(
    ("error", "says", "shape", "length", "rows"),
    [
        (ShapeError, "^rows has shape", (3, 6, 4), 2, (2, 3, 1, 4)),
        (ValueError, "^length=-1", (3, 6, 4), -1, (3, 1, 4)),
        (ValueError, "^3 new tokens after 4 make 7", (3, 6, 4), 4, (3, 3, 4)),
    ],
)
def test_rows_that_do_not_fit_are_refused(error, says, shape, length, rows):
    reserved = np.zeros(shape)
    with pytest.raises(error, match=says):
        write_rows(reserved, length, np.ones(rows))
    assert not reserved.any()


@pytest.mark.parametrize(
    ("error", "says", "dtype", "rows"),
    [
        (TypeError, "^rows is of float64, and a buffer of int64", int, np.full((2, 4), 1.9)),
        (TypeError, "^rows is of int64, and a buffer of int8", np.int8, np.full((2, 4), 300)),
    ],
)
def test_rows_that_a_buffer_would_change_are_refused(error, says, dtype, rows):
    reserved = np.zeros((6, 4), dtype)
    with pytest.raises(error, match=says):
        write_rows(reserved, 2, rows)
    assert not reserved.any()


@pytest.mark.parametrize("length", [1, 4, 5, 6, 8])
def test_pages_in_any_order_give_the_layer_back(normal, layer, length, assert_close):
    pools = [np.full((9, 3, 4, d), 1e9) for d in (4, 7)]  # what others have left
    X, table = normal(1, length, 12), np.array([5, 0])
    kept = [oracle.project_heads(X, W) for W in (layer.W_K, layer.W_V)]
    for pool, rows in zip(pools, kept, strict=True):
        for t in range(length):
            pool[table[t // 4], :, t % 4] = rows[:, t]
    K, V = (gather_pages(pool, table[: -(-length // 4)], length) for pool in pools)
    for got, rows in zip((K, V), kept, strict=True):
        np.testing.assert_array_equal(got, rows)
    Q = oracle.project_heads(X, layer.W_Q)
    heads = oracle.scaled_dot_product_attention(Q, K, V, causal_mask(length))
    Y = oracle.project_out(oracle.concat_heads(heads), layer.W_O)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(length)))


@pytest.mark.parametrize(
    ("error", "says", "table", "length"),
    [
        (ValueError, "^table points to page 9; expected 0 to 8", [5, 9], 6),
        (ValueError, "^table points to page -1", [-1, 5], 6),
        (ValueError, "^length=9, and 2 pages of 4 hold 8", [5, 0], 9),
    ],
)
def test_a_page_table_that_points_outside_is_refused(error, says, table, length):
    with pytest.raises(error, match=says):
        gather_pages(np.ones((9, 3, 4, 7)), np.array(table), length)


@pytest.mark.parametrize("ends", [(6,), (2, 6), (1, 2, 3, 6), (5, 6)])
def test_parts_of_the_keys_give_the_layers_heads(normal, ends, assert_close):
    Q, K, V = 30 * normal(1, 3, 5, 4), normal(2, 3, 6, 4), normal(3, 3, 6, 7)
    last, starts = last_keys(5, 6, causal=True), (0, *ends[:-1])
    parts = [
        attend_rows(Q, K[:, a:b], V[:, a:b], last - a, 64)
        for a, b in zip(starts, ends, strict=True)
    ]
    merged = merge_heads(*map(np.stack, zip(*parts, strict=True)))
    assert_close(merged, oracle.scaled_dot_product_attention(Q, K, V, causal_mask(5, 6)))


def test_parts_of_another_batch_are_refused():
    with pytest.raises(ShapeError, match=r"^heads has shape .* Stack the parts"):
        merge_heads(np.ones((2, 3, 5, 7)), np.ones((2, 1, 5, 1)))


def test_a_part_that_a_query_does_not_see_counts_nothing(normal, assert_close):
    heads, sums = normal(1, 2, 3, 5, 7), normal(2, 2, 3, 5, 1).copy()
    sums[1, 0, 4] = -np.inf
    assert_close(merge_heads(heads, sums)[0, 4], heads[0, 0, 4])
    for value, says in ((np.inf, "^logsumexp is inf"), (np.nan, "^logsumexp is nan")):
        with pytest.raises(ValueError, match=says):
            merge_heads(heads, changed(sums, (0, 0, 0, 0), value))
    sums[0, 0, 4] = -np.inf
    with pytest.raises(ValueError, match=r"^logsumexp is -inf in all parts for the query at"):
        merge_heads(heads, sums)


@pytest.mark.parametrize(("bits", "axis"), [(1, -1), (2, -2), (4, -1), (8, -2), (8, 0)])
def test_an_entry_is_off_by_half_a_step_at_most(normal, bits, axis):
    A = normal(1, 3, 6, 4)
    codes, low, step = quantise(A, bits, axis=np.int64(axis))
    assert (codes.dtype, codes.min(), codes.max()) == (np.uint8, 0, 2**bits - 1)
    assert low.shape == step.shape == np.min(A, axis=axis, keepdims=True).shape
    assert (np.abs(low + step * codes - A) <= step / 2 * (1 + 1e-9)).all()


@pytest.mark.parametrize("axis", [-1, -2])
def test_numbers_on_the_levels_give_the_layers_heads(normal, axis, assert_close):
    levels = np.random.default_rng(5).integers(0, 16, (3, 6, 4)).astype(float)
    levels[:, :2], levels[:, 2:, :2] = [0, 15, 0, 15], [0, 15]  # both ends along either axis
    levels[:, 1] = [15, 0, 15, 0]
    codes, low, step = quantise(levels / 8 - 1, 4, axis=axis)
    Q, V = normal(1, 3, 5, 4), normal(3, 3, 6, 7)
    exact = oracle.scaled_dot_product_attention(Q, levels / 8 - 1, V)
    assert_close(oracle.scaled_dot_product_attention(Q, low + step * codes, V), exact)


def test_entries_that_are_all_equal_come_back(normal):
    codes, low, step = quantise(np.full((5, 4), 3.25), 2)
    assert (low + step * codes == 3.25).all()
    assert low.shape == (5, 1), "by token, unless another axis is given"


@pytest.mark.parametrize(
    ("error", "says", "A", "bits", "axis"),
    [
        (TypeError, "^A is an array of int64", np.ones((5, 4), int), 4, -1),
        (ValueError, "^A goes from -6", np.array([[-60000, 60000]], np.float16), 4, -1),
        (ValueError, "^bits=9", np.ones((5, 4)), 9, -1),
        (ShapeError, r"^A has shape \(5, 4\); expected an axis 2", np.ones((5, 4)), 4, 2),
    ],
)
def test_what_cannot_be_rounded_is_refused(error, says, A, bits, axis):
    with pytest.raises(error, match=says):
        quantise(A, bits, axis=axis)


LIMITS = {
    "KV cache": test_chunks_of_any_length_give_the_layer_back,
    "Pages": test_pages_in_any_order_give_the_layer_back,
    "Split keys": test_parts_of_the_keys_give_the_layers_heads,
    "Quantised cache": test_numbers_on_the_levels_give_the_layers_heads,
}

"""The cache: chunks of any length give the layer back, and bad input changes nothing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, ShapeError, causal_mask
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


def decode(X, params, cache, pieces):
    """The rows of all steps, and the last cache."""
    rows = []
    for piece in np.split(X, np.cumsum(pieces)[:-1], axis=-2):
        Y, cache = decode_step(piece, params, cache)
        rows.append(Y)
    return np.concatenate(rows, axis=-2), cache


@pytest.mark.parametrize("pieces", PIECES)
def test_chunks_of_any_length_give_the_layer_back(normal, layer, batch, pieces, assert_close):
    X = normal(1, *batch, 5, 12)
    Y, cache = decode(X, layer, KVCache.empty(layer, 6, batch=batch), pieces)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5)))
    assert_close(cache.K, oracle.project_heads(X, layer.W_K))
    assert_close(cache.V, oracle.project_heads(X, layer.W_V))
    assert (cache.length, cache.batch, cache.capacity) == (5, batch, 6)


@pytest.mark.parametrize("pieces", PIECES)
def test_padding_at_the_left_changes_no_row_of_a_word(normal, layer, pieces, assert_close):
    X, pad = normal(2, 2, 5, 12), np.array([2, 0])
    Y, cache = decode(X, layer, KVCache.empty(layer, 5, batch=(2,), pad=pad), pieces)
    assert_close(Y[0, 2:], oracle.mha(X[0, 2:], layer, mask=causal_mask(3)))
    assert_close(Y[1], oracle.mha(X[1], layer, mask=causal_mask(5)))
    assert not Y[0, :2].any()  # padding has nothing to look at
    assert cache.mask(1).shape == (2, 1, 1, 6)


def layer_of_zeros(*, groups=3, d_k=4, d_v=7):
    """What a cache reads of a layer: the shapes of W_K and W_V."""
    return SimpleNamespace(W_K=np.zeros((groups, 12, d_k)), W_V=np.zeros((groups, 12, d_v)))


def test_positions_count_tokens_and_no_padding():
    pad = np.array([2, 0], np.uint64)
    padded = KVCache.empty(layer_of_zeros(), 9, batch=(2,), pad=pad)
    pad[:] = 7  # the cache has numbers of its own
    np.testing.assert_array_equal(padded.positions(4), [[0, 0, 0, 1], [0, 1, 2, 3]])
    assert padded.positions(4).dtype == int
    longer = padded.append(np.zeros((2, 3, 4, 4)), np.zeros((2, 3, 4, 7)))
    np.testing.assert_array_equal(longer.positions(2), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(KVCache.empty(layer_of_zeros(), 5).positions(3), [0, 1, 2])


@pytest.mark.parametrize("method", [KVCache.mask, KVCache.positions])
@pytest.mark.parametrize(("error", "T"), [(TypeError, 2.5), (ValueError, 0)])
def test_a_number_of_tokens_that_cannot_be_is_refused(method, error, T):
    with pytest.raises(error, match=r"^T"):
        method(KVCache.empty(layer_of_zeros(), 9), T)


def test_no_step_copies_the_cache(normal, layer):
    cache = KVCache.empty(layer, 6)
    _, prompt = decode_step(normal(1, 2, 12), layer, cache)
    before = prompt.K.copy()
    _, longer_cache = decode_step(normal(2, 3, 12), layer, prompt)
    for shorter, longer in ((prompt.K, longer_cache.K), (prompt.V, longer_cache.V)):
        assert np.shares_memory(shorter, longer)
        with pytest.raises(ValueError, match="read-only"):
            longer[...] = 0
    np.testing.assert_array_equal(prompt.K, before)  # the shorter view shows what it showed
    buffer = np.zeros((3, 6, 4))
    assert np.shares_memory(write_rows(buffer, 2, np.ones((3, 1, 4))), buffer)


def test_a_cache_is_as_precise_as_its_layer(normal, layer):
    single = Params(*(W.astype(np.float32) for W in vars(layer).values()))
    X = normal(1, 5, 12).astype(np.float32)
    Y, cache = decode_step(X, single, KVCache.empty(single, 5))
    assert Y.dtype == cache.K.dtype == np.float32
    with pytest.raises(TypeError, match=r"^K is of float64, and a cache of float32 would change"):
        decode_step(normal(1, 5, 12), single, KVCache.empty(single, 5))
    with pytest.raises(TypeError, match=r"^V is of float64, and a cache of float32 would change"):
        KVCache.empty(single, 5).append(cache.K, cache.V.astype(float))


@pytest.mark.parametrize(("groups", "d_k", "d_v"), [(1, 4, 7), (2, 4, 7), (1, 0, 7), (1, 3, 0)])
def test_fewer_heads_and_only_a_latent_are_cached_as_well(normal, groups, d_k, d_v):
    cache = KVCache.empty(layer_of_zeros(groups=groups, d_k=d_k, d_v=d_v), 6, batch=(2,))
    K, V = normal(1, 2, groups, 5, d_k), normal(2, 2, groups, 5, d_v)
    for start, end in ((0, 3), (3, 5)):
        cache = cache.append(K[..., start:end, :], V[..., start:end, :])
    np.testing.assert_array_equal(cache.K, K)
    np.testing.assert_array_equal(cache.V, V)


BAD_STEPS = [
    (lambda X, p, c: decode_step(X[None], p, c), ShapeError, r"^X has shape \(1, 5, 12\), a batch"),
    (lambda X, p, c: decode_step(X, replace(p, W_V=-p.W_V), c), ValueError, "^the cache was made"),
    (decode_step, ValueError, "^5 new tokens after 2 make 7, more than capacity=6; expected 4 at"),
    (lambda X, p, c: c.append([1], c.V), TypeError, "^K is a list"),
    (lambda X, p, c: c.append(c.K[:2], c.V), ShapeError, r"^K .* \(2, 2, 4\); exp.* \(3, T, 4\)"),
    (lambda X, p, c: c.append(c.K, c.K), ShapeError, r"^V .* \(3, 2, 4\); expected \(3, T, 7\)"),
    (lambda X, p, c: c.append(c.K[:, :1], c.V), ShapeError, r"^K has shape \(3, 1, 4\); expected"),
    (lambda X, p, c: c.append(c.K[:, :0], c.V[:, :0]), ShapeError, r"^K has shape \(3, 0, 4\); e"),
    (lambda X, p, c: c.append(c.K, c.V + np.inf), ValueError, "^V is inf at position"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_STEPS)
def test_bad_input_is_refused_and_the_cache_stays_as_it_was(normal, layer, call, error, message):
    _, cache = decode_step(normal(3, 2, 12), layer, KVCache.empty(layer, 6))
    before = [buffer.copy() for buffer in cache.buffers]
    with pytest.raises(error, match=message):
        call(normal(1, 5, 12), layer, cache)
    for buffer, copy in zip(cache.buffers, before, strict=True):
        np.testing.assert_array_equal(buffer, copy)
    assert cache.written == cache.length == 2
    decode_step(normal(1, 4, 12), layer, cache)  # and can go on


@pytest.mark.parametrize("pad", [None, [1, 0]])
def test_a_cache_is_continued_once_and_its_forks_by_themselves(normal, layer, pad, assert_close):
    X, Z = normal(3, 2, 5, 12), normal(4, 2, 2, 12)
    _, prompt = decode_step(X[:, :3], layer, KVCache.empty(layer, 6, batch=(2,), pad=pad))
    fork = prompt.fork()
    expected, longer_cache = decode_step(X[:, 3:], layer, prompt)
    before = longer_cache.K.copy()
    branch, _ = decode_step(Z, layer, fork)
    repeated, _ = decode_step(X[:, 3:], layer, prompt.fork())  # behind a view that has gone on
    assert_close(repeated, expected)
    fresh = KVCache.empty(layer, 6, batch=(2,), pad=pad)
    separate, _ = decode(np.concatenate([X[:, :3], Z], axis=1), layer, fresh, (3, 2))
    assert_close(branch, separate[:, 3:])
    assert (fork.written, prompt.written, fork.capacity) == (5, 5, 6)
    message = r"^this cache of 3 tokens was continued already, to 5.* copy of this one: cache\.fork"
    with pytest.raises(ValueError, match=message):
        decode_step(Z, layer, prompt)
    with pytest.raises(ValueError, match=message):
        prompt.append(prompt.K[..., :1, :], prompt.V[..., :1, :])
    np.testing.assert_array_equal(longer_cache.K, before)


def test_a_step_that_fails_behind_the_append_can_be_taken_again(normal, layer, assert_close):
    X = normal(3, 5, 12)
    _, prompt = decode_step(X[:2], layer, KVCache.empty(layer, 6))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"inf|nan"):
        decode_step(1e200 * X[2:], layer, prompt)  # finite, and its scores are not
    assert prompt.written == prompt.length == 2
    Y, longer_cache = decode_step(X[2:], layer, prompt)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5))[2:])
    with pytest.raises(ValueError, match="continued already, to 5"):
        decode_step(X[2:], layer, prompt)
    assert longer_cache.written == 5


TWO, FLAT = {"batch": (2,)}, SimpleNamespace(W_K=np.eye(3))
UNEVEN = SimpleNamespace(W_K=np.ones((3, 12, 4)), W_V=np.ones((2, 12, 7)))
NO_CACHE = [
    (TypeError, "^params.W_K is missing", {"params": 3}),
    (TypeError, "^params.W_K is ndarray; .* three axes", {"params": FLAT}),
    (ShapeError, "^params.W_K has 3 heads and params.W_V 2", {"params": UNEVEN}),
    (TypeError, "^capacity is 2.5", {"capacity": 2.5}),
    (TypeError, "^batch is a int; expected a tuple", {"batch": 2}),
    (ValueError, "^a length of batch=0", {"batch": (0,)}),
    (TypeError, "^pad is of type float64", {"pad": [0.0, 1.0], **TWO}),
    (ShapeError, r"^pad has shape \(3,\); expected \(2,\)", {"pad": [0, 1, 1], **TWO}),
    (ValueError, "^pad goes from -1 to 1", {"pad": [-1, 1], **TWO}),
    (ValueError, "^pad goes from 0 to 6", {"pad": [0, 6], **TWO}),
]


@pytest.mark.parametrize(("error", "message", "arguments"), NO_CACHE)
def test_a_cache_that_cannot_be_is_refused(layer, error, message, arguments):
    options = {"params": layer, "capacity": 6, **arguments}
    with pytest.raises(error, match=message):
        KVCache.empty(**options)


BUFFER, BYTES, POOL = np.zeros((3, 6, 4)), np.zeros((6, 4), np.int8), np.ones((9, 3, 4, 7))
HEADS, WIDE = np.ones((2, 3, 5, 7)), np.float16([[60000, 60000], [-60000, -60000]])


def paged(length, *table):
    """The rows of a sequence in a pool of 9 pages."""
    return gather_pages(POOL, np.array(table), length)


REFUSED = [
    (lambda: write_rows(BUFFER, 2, np.ones((2, 3, 1, 4))), ShapeError, "^rows has shape"),
    (lambda: write_rows(BUFFER, -1, np.ones((3, 1, 4))), ValueError, "^length=-1"),
    (lambda: write_rows(BUFFER, 4, np.ones((3, 3, 4))), ValueError, "^3 new tokens after 4 make 7"),
    (lambda: write_rows(BYTES, 2, np.full((2, 4), 300)), TypeError, "^rows is of int64, and a b"),
    (lambda: paged(6, 5, 9), ValueError, "^table goes from page 5 to 9; expected 0 to 8"),
    (lambda: paged(6, -1, 5), ValueError, "^table goes from page -1 to 5"),
    (lambda: paged(9, 5, 0), ValueError, "^length=9, and 2 pages of 4 tokens are 8"),
    (
        lambda: merge_heads(HEADS, np.ones((2, 1, 5, 1))),
        ShapeError,
        "^heads has .* Stack the parts",
    ),
    (lambda: quantise(np.ones((5, 4), int), 4), TypeError, "^A is an array of int64"),
    (lambda: quantise(np.ones((5, 4)), 9), ValueError, "^bits=9"),
    (lambda: quantise(np.ones((5, 4)), 4, axis=2), ShapeError, "^A has .* expected an axis 2"),
    (lambda: quantise(np.ones((5, 4)), 4, axis=-3), ShapeError, "^A has .* expected an axis -3"),
    (lambda: quantise(WIDE, 4, axis=-2), ValueError, "^A goes from -60000.0 to 60000.0, a range"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input_is_refused_and_no_buffer_written(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert not BUFFER.any()
    assert not BYTES.any()


@pytest.mark.parametrize("length", [1, 4, 5, 6, 8])
def test_pages_in_any_order_give_the_layer_back(normal, layer, length, assert_close):
    pools = [np.full((9, 3, 4, d), 1e9) for d in (4, 7)]  # what others have left
    X, table = normal(1, length, 12), np.array([5, 0])
    projected = [oracle.project_heads(X, W) for W in (layer.W_K, layer.W_V)]
    for pool, rows in zip(pools, projected, strict=True):
        for t in range(length):
            pool[table[t // 4], :, t % 4] = rows[:, t]
    K, V = (gather_pages(pool, table[: -(-length // 4)], length) for pool in pools)
    np.testing.assert_array_equal(K, projected[0])
    np.testing.assert_array_equal(V, projected[1])
    Q = oracle.project_heads(X, layer.W_Q)
    heads = oracle.scaled_dot_product_attention(Q, K, V, causal_mask(length))
    Y = oracle.project_out(oracle.concat_heads(heads), layer.W_O)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(length)))


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


def test_a_part_that_a_query_does_not_see_counts_nothing(normal, assert_close):
    heads, sums = normal(1, 2, 3, 5, 7), normal(2, 2, 3, 5, 1).copy()
    sums[1, 0, 4] = -np.inf
    assert_close(merge_heads(heads, sums)[0, 4], heads[0, 0, 4])
    sums[0, 0, 4] = -np.inf
    with pytest.raises(ValueError, match=r"^logsumexp is -inf in all parts .* at \[\[0, 4\]\]"):
        merge_heads(heads, sums)
    for value in (np.inf, np.nan):
        sums[0, 0, 0] = value
        with pytest.raises(ValueError, match=f"^logsumexp is {value} at position"):
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


def test_entries_that_are_all_equal_come_back():
    for A in (np.full((3, 5, 4), 3.25), WIDE):
        codes, low, step = quantise(A, 2)
        assert (low + step * codes == A).all()
        assert low.shape == (*A.shape[:-1], 1), "by token, unless another axis is given"


LIMITS = {
    "KV cache": test_chunks_of_any_length_give_the_layer_back,
    "Pages": test_pages_in_any_order_give_the_layer_back,
    "Split keys": test_parts_of_the_keys_give_the_layers_heads,
    "Quantised cache": test_numbers_on_the_levels_give_the_layers_heads,
}

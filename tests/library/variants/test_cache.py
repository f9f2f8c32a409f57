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
CHUNK_LENGTHS = [(1,) * 5, (2, 2, 1), (3, 2), (5,), (1, 4)]


@pytest.fixture
def layer(normal):
    """Parameters of 3 heads, d_k 4, d_v 7, d_model 12."""
    return Params(*(normal(40 + n, *shape) / 3 for n, shape in enumerate(SHAPES)))


def decode(X, params, cache, chunk_lengths):
    """The rows of all steps, and the last cache."""
    rows = []
    for chunk in np.split(X, np.cumsum(chunk_lengths)[:-1], axis=-2):
        Y, cache = decode_step(chunk, params, cache)
        rows.append(Y)
    return np.concatenate(rows, axis=-2), cache


@pytest.mark.parametrize("chunk_lengths", CHUNK_LENGTHS)
def test_chunks_of_any_length_give_the_layer_back(
    normal, layer, batch, chunk_lengths, assert_close
):
    X = normal(1, *batch, 5, 12)
    Y, cache = decode(X, layer, KVCache.empty(layer, 6, batch=batch), chunk_lengths)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5)))
    assert_close(cache.K, oracle.project_heads(X, layer.W_K))
    assert_close(cache.V, oracle.project_heads(X, layer.W_V))
    assert (cache.length, cache.batch, cache.capacity) == (5, batch, 6)


@pytest.mark.parametrize("chunk_lengths", CHUNK_LENGTHS)
def test_padding_at_the_left_changes_no_row_of_a_word(normal, layer, chunk_lengths, assert_close):
    X, pad = normal(2, 2, 5, 12), np.array([2, 0])
    Y, cache = decode(X, layer, KVCache.empty(layer, 5, batch=(2,), pad=pad), chunk_lengths)
    assert_close(Y[0, 2:], oracle.mha(X[0, 2:], layer, mask=causal_mask(3)))
    assert_close(Y[1], oracle.mha(X[1], layer, mask=causal_mask(5)))
    assert not Y[0, :2].any()  # padding has nothing to look at
    assert cache.mask(1).shape == (2, 1, 1, 6)


def layer_of_zeros(*, n_kv_heads=3, d_k=4, d_v=7):
    """What a cache reads of a layer: the shapes of W_K and W_V."""
    return SimpleNamespace(W_K=np.zeros((n_kv_heads, 12, d_k)), W_V=np.zeros((n_kv_heads, 12, d_v)))


def test_positions_count_tokens_and_no_padding():
    pad = np.array([2, 0], np.uint64)
    padded_cache = KVCache.empty(layer_of_zeros(), 9, batch=(2,), pad=pad)
    pad[:] = 7  # the cache has numbers of its own
    np.testing.assert_array_equal(padded_cache.positions(4), [[0, 0, 0, 1], [0, 1, 2, 3]])
    assert padded_cache.positions(4).dtype == int
    longer_cache = padded_cache.append(np.zeros((2, 3, 4, 4)), np.zeros((2, 3, 4, 7)))
    np.testing.assert_array_equal(longer_cache.positions(2), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(KVCache.empty(layer_of_zeros(), 5).positions(3), [0, 1, 2])
    unpadded_cache = KVCache.empty(layer_of_zeros(), 1, batch=(2,), pad=[0, 0])
    np.testing.assert_array_equal(unpadded_cache.positions(1), [[0], [0]])


@pytest.mark.parametrize("cache_method", [KVCache.mask, KVCache.positions])
@pytest.mark.parametrize(("error", "T"), [(TypeError, 2.5), (ValueError, 0)])
def test_a_number_of_tokens_that_cannot_be_is_refused(cache_method, error, T):
    with pytest.raises(error, match=r"^T"):
        cache_method(KVCache.empty(layer_of_zeros(), 9), T)


def test_no_step_copies_the_cache(normal, layer):
    cache = KVCache.empty(layer, 6)
    _, prompt_cache = decode_step(normal(1, 2, 12), layer, cache)
    K_copy = prompt_cache.K.copy()
    _, longer_cache = decode_step(normal(2, 3, 12), layer, prompt_cache)
    for prompt_view, longer_view in (
        (prompt_cache.K, longer_cache.K),
        (prompt_cache.V, longer_cache.V),
    ):
        assert np.shares_memory(prompt_view, longer_view)
        with pytest.raises(ValueError, match="read-only"):
            longer_view[...] = 0
    np.testing.assert_array_equal(prompt_cache.K, K_copy)  # the shorter view shows what it showed
    buffer = np.zeros((3, 6, 4))
    assert np.shares_memory(write_rows(buffer, 2, np.ones((3, 1, 4))), buffer)


def test_a_cache_is_as_precise_as_its_layer(normal, layer):
    float32_layer = Params(*(W.astype(np.float32) for W in vars(layer).values()))
    X = normal(1, 5, 12).astype(np.float32)
    Y, cache = decode_step(X, float32_layer, KVCache.empty(float32_layer, 5))
    assert Y.dtype == cache.K.dtype == np.float32
    with pytest.raises(TypeError, match=r"^K is of float64, and a cache of float32 would change"):
        decode_step(normal(1, 5, 12), float32_layer, KVCache.empty(float32_layer, 5))
    with pytest.raises(TypeError, match=r"^V is of float64, and a cache of float32 would change"):
        KVCache.empty(float32_layer, 5).append(cache.K, cache.V.astype(float))


@pytest.mark.parametrize(("n_kv_heads", "d_k", "d_v"), [(1, 4, 7), (2, 4, 7), (1, 0, 7), (1, 3, 0)])
def test_fewer_heads_and_only_a_latent_are_cached_as_well(normal, n_kv_heads, d_k, d_v):
    cache = KVCache.empty(layer_of_zeros(n_kv_heads=n_kv_heads, d_k=d_k, d_v=d_v), 6, batch=(2,))
    K, V = normal(1, 2, n_kv_heads, 5, d_k), normal(2, 2, n_kv_heads, 5, d_v)
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
    previous_buffers = [buffer.copy() for buffer in cache.buffers]
    with pytest.raises(error, match=message):
        call(normal(1, 5, 12), layer, cache)
    for buffer, buffer_copy in zip(cache.buffers, previous_buffers, strict=True):
        np.testing.assert_array_equal(buffer, buffer_copy)
    assert cache.written == cache.length == 2
    decode_step(normal(1, 4, 12), layer, cache)  # and can go on


@pytest.mark.parametrize("pad", [None, [1, 0]])
def test_a_cache_is_continued_once_and_its_forks_by_themselves(normal, layer, pad, assert_close):
    X, branch_X = normal(3, 2, 5, 12), normal(4, 2, 2, 12)
    _, prefix = decode_step(X[:, :3], layer, KVCache.empty(layer, 6, batch=(2,), pad=pad))
    forked_cache = prefix.fork()
    expected, longer_cache = decode_step(X[:, 3:], layer, prefix)
    previous_K = longer_cache.K.copy()
    branch_Y, _ = decode_step(branch_X, layer, forked_cache)
    repeated_Y, _ = decode_step(X[:, 3:], layer, prefix.fork())  # behind a view that has gone on
    assert_close(repeated_Y, expected)
    fresh_cache = KVCache.empty(layer, 6, batch=(2,), pad=pad)
    separate_Y, _ = decode(np.concatenate([X[:, :3], branch_X], axis=1), layer, fresh_cache, (3, 2))
    assert_close(branch_Y, separate_Y[:, 3:])
    assert (forked_cache.written, prefix.written, forked_cache.capacity) == (5, 5, 6)
    message = r"^this cache of 3 tokens was continued already, to 5.* copy of this one: cache\.fork"
    with pytest.raises(ValueError, match=message):
        decode_step(branch_X, layer, prefix)
    with pytest.raises(ValueError, match=message):
        prefix.append(prefix.K[..., :1, :], prefix.V[..., :1, :])
    np.testing.assert_array_equal(longer_cache.K, previous_K)


def test_a_step_that_fails_behind_the_append_can_be_taken_again(normal, layer, assert_close):
    X = normal(3, 5, 12)
    _, prompt_cache = decode_step(X[:2], layer, KVCache.empty(layer, 6))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"inf|nan"):
        decode_step(1e200 * X[2:], layer, prompt_cache)  # finite, and its scores are not
    assert prompt_cache.written == prompt_cache.length == 2
    Y, longer_cache = decode_step(X[2:], layer, prompt_cache)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(5))[2:])
    with pytest.raises(ValueError, match="continued already, to 5"):
        decode_step(X[2:], layer, prompt_cache)
    assert longer_cache.written == 5


PAIR_BATCH, FLAT_LAYER = {"batch": (2,)}, SimpleNamespace(W_K=np.eye(3))
UNEVEN_LAYER = SimpleNamespace(W_K=np.ones((3, 12, 4)), W_V=np.ones((2, 12, 7)))
BAD_CACHES = [
    (TypeError, "^params.W_K is missing", {"params": 3}),
    (TypeError, "^params.W_K is ndarray; .* three axes", {"params": FLAT_LAYER}),
    (ShapeError, "^params.W_K has 3 heads and params.W_V 2", {"params": UNEVEN_LAYER}),
    (TypeError, "^capacity is 2.5", {"capacity": 2.5}),
    (TypeError, "^batch is a int; expected a tuple", {"batch": 2}),
    (ValueError, "^a length of batch=0", {"batch": (0,)}),
    (TypeError, "^pad is of type float64", {"pad": [0.0, 1.0], **PAIR_BATCH}),
    (ShapeError, r"^pad has shape \(3,\); expected \(2,\)", {"pad": [0, 1, 1], **PAIR_BATCH}),
    (ValueError, "^pad goes from -1 to 1", {"pad": [-1, 1], **PAIR_BATCH}),
    (ValueError, "^pad goes from 0 to 6", {"pad": [0, 6], **PAIR_BATCH}),
]


@pytest.mark.parametrize(("error", "message", "arguments"), BAD_CACHES)
def test_a_cache_that_cannot_be_is_refused(layer, error, message, arguments):
    options = {"params": layer, "capacity": 6, **arguments}
    with pytest.raises(error, match=message):
        KVCache.empty(**options)


BUFFER, INT8, POOL = np.zeros((3, 6, 4)), np.zeros((6, 4), np.int8), np.ones((9, 3, 4, 7))
PART_HEADS, WIDE = np.ones((2, 3, 5, 7)), np.float16([[60000, 60000], [-60000, -60000]])


def paged_rows(length, *table):
    """The rows of a sequence in a pool of 9 pages."""
    return gather_pages(POOL, np.array(table), length)


REFUSED = [
    (lambda: write_rows(BUFFER, 2, np.ones((2, 3, 1, 4))), ShapeError, "^rows has shape"),
    (lambda: write_rows(BUFFER, -1, np.ones((3, 1, 4))), ValueError, "^length=-1"),
    (lambda: write_rows(BUFFER, 4, np.ones((3, 3, 4))), ValueError, "^3 new tokens after 4 make 7"),
    (lambda: write_rows(INT8, 2, np.full((2, 4), 300)), TypeError, "^rows is of int64, and a b"),
    (lambda: paged_rows(6, 5, 9), ValueError, "^table goes from page 5 to 9; expected 0 to 8"),
    (lambda: paged_rows(6, -1, 5), ValueError, "^table goes from page -1 to 5"),
    (lambda: paged_rows(9, 5, 0), ValueError, "^length=9, and 2 pages of 4 tokens are 8"),
    (
        lambda: merge_heads(PART_HEADS, np.ones((2, 1, 5, 1))),
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
    assert not INT8.any()


@pytest.mark.parametrize("length", [1, 4, 5, 6, 8])
def test_pages_in_any_order_give_the_layer_back(normal, layer, length, assert_close):
    page_pools = [np.full((9, 3, 4, d), 1e9) for d in (4, 7)]  # what others have left
    X, table = normal(1, length, 12), np.array([5, 0])
    projected_rows = [oracle.project_heads(X, W) for W in (layer.W_K, layer.W_V)]
    for page_pool, rows in zip(page_pools, projected_rows, strict=True):
        for t in range(length):
            page_pool[table[t // 4], :, t % 4] = rows[:, t]
    K, V = (gather_pages(page_pool, table[: -(-length // 4)], length) for page_pool in page_pools)
    np.testing.assert_array_equal(K, projected_rows[0])
    np.testing.assert_array_equal(V, projected_rows[1])
    Q = oracle.project_heads(X, layer.W_Q)
    heads = oracle.scaled_dot_product_attention(Q, K, V, causal_mask(length))
    Y = oracle.project_out(oracle.concat_heads(heads), layer.W_O)
    assert_close(Y, oracle.mha(X, layer, mask=causal_mask(length)))


@pytest.mark.parametrize("part_ends", [(6,), (2, 6), (1, 2, 3, 6), (5, 6)])
def test_parts_of_the_keys_give_the_layers_heads(normal, part_ends, assert_close):
    Q, K, V = 30 * normal(1, 3, 5, 4), normal(2, 3, 6, 4), normal(3, 3, 6, 7)
    last_seen, part_starts = last_keys(5, 6, causal=True), (0, *part_ends[:-1])
    parts = [
        attend_rows(Q, K[:, a:b], V[:, a:b], last_seen - a, 64)
        for a, b in zip(part_starts, part_ends, strict=True)
    ]
    merged_heads = merge_heads(*map(np.stack, zip(*parts, strict=True)))
    assert_close(merged_heads, oracle.scaled_dot_product_attention(Q, K, V, causal_mask(5, 6)))


def test_a_part_that_a_query_does_not_see_counts_nothing(normal, assert_close):
    heads, logsumexps = normal(1, 2, 3, 5, 7), normal(2, 2, 3, 5, 1).copy()
    logsumexps[1, 0, 4] = -np.inf
    assert_close(merge_heads(heads, logsumexps)[0, 4], heads[0, 0, 4])
    logsumexps[0, 0, 4] = -np.inf
    with pytest.raises(ValueError, match=r"^logsumexp is -inf in all parts .* at \[\[0, 4\]\]"):
        merge_heads(heads, logsumexps)
    for value in (np.inf, np.nan):
        logsumexps[0, 0, 0] = value
        with pytest.raises(ValueError, match=f"^logsumexp is {value} at position"):
            merge_heads(heads, logsumexps)


@pytest.mark.parametrize(("bits", "axis"), [(1, -1), (2, -2), (4, -1), (8, -2), (8, 0)])
def test_an_entry_is_off_by_half_a_step_at_most(normal, bits, axis):
    A = normal(1, 3, 6, 4)
    codes, zero_point, step = quantise(A, bits, axis=np.int64(axis))
    assert (codes.dtype, codes.min(), codes.max()) == (np.uint8, 0, 2**bits - 1)
    assert zero_point.shape == step.shape == np.min(A, axis=axis, keepdims=True).shape
    assert (np.abs(zero_point + step * codes - A) <= step / 2 * (1 + 1e-9)).all()


@pytest.mark.parametrize("axis", [-1, -2])
def test_numbers_on_the_levels_give_the_layers_heads(normal, axis, assert_close):
    codes_in = np.random.default_rng(5).integers(0, 16, (3, 6, 4)).astype(float)
    codes_in[:, :2], codes_in[:, 2:, :2] = [0, 15, 0, 15], [0, 15]  # both ends along either axis
    codes_in[:, 1] = [15, 0, 15, 0]
    codes, zero_point, step = quantise(codes_in / 8 - 1, 4, axis=axis)
    Q, V = normal(1, 3, 5, 4), normal(3, 3, 6, 7)
    exact_heads = oracle.scaled_dot_product_attention(Q, codes_in / 8 - 1, V)
    assert_close(oracle.scaled_dot_product_attention(Q, zero_point + step * codes, V), exact_heads)


def test_entries_that_are_all_equal_come_back():
    for A in (np.full((3, 5, 4), 3.25), WIDE):
        codes, zero_point, step = quantise(A, 2)
        assert (zero_point + step * codes == A).all()
        assert zero_point.shape == (*A.shape[:-1], 1), "by token, unless another axis is given"


LIMITS = {
    "KV cache": test_chunks_of_any_length_give_the_layer_back,
    "Pages": test_pages_in_any_order_give_the_layer_back,
    "Split keys": test_parts_of_the_keys_give_the_layers_heads,
    "Quantised cache": test_numbers_on_the_levels_give_the_layers_heads,
}

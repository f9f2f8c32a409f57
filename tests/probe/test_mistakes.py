"""Each mistake that the probe can name is found and named; layers without one are right."""

import itertools
from functools import partial

import numpy as np
import pytest

from tests.probe import layers
from tests.probe.layers import D_MODEL, PARAMS, attention, band, chunks, full, layer
from tutorial_lib.probe import Cache, probe
from tutorial_lib.probe.dependence import Pattern
from tutorial_lib.probe.report import PLACES

CAUSAL = {"d_model": D_MODEL, "causal": True}
PADDED = CAUSAL | {"keep": "keep", "positions": "positions"}
HEADS = {"heads": (4, 2), "causal": True, "scale": "1/sqrt(d_k)"}


def ignoring(word, rotary=False):
    """Return a layer that takes an argument and does not use it."""

    def call(X, **given):
        given.pop(word, None)
        return layer(rotary=rotary)(X, **given)

    return call


def numbered(X, keep=None, positions=None):
    """A layer that adds a row of its own at each position."""
    rows = np.random.default_rng(2).normal(size=(99, D_MODEL))
    places = np.arange(X.shape[1])[None] if positions is None else positions
    return layer()(X + rows[places], keep)


def in_chunks(mistake):
    return layer(rotary=True), CAUSAL | {"positions": "positions", "cache": chunks(mistake)}


MISTAKES = {
    "no_mask": (layer(full), CAUSAL),
    "mask_reversed": (layer(lambda T: np.tri(T, dtype=bool).T), CAUSAL),
    "mask_one_ahead": (layer(band(ahead=1)), CAUSAL),
    "mask_not_low_enough": (layer(hidden=-1e3), CAUSAL),
    "window_one_wide": (layer(band(5)), CAUSAL | {"window": 4}),
    "window_one_narrow": (layer(band(3)), CAUSAL | {"window": 4}),
    "window_missing": (layer(), CAUSAL | {"window": 4}),
    "heads_split_without_transpose": (
        layer(full, split=layers.split_by_reshape, join=True),
        CAUSAL | {"causal": False},
    ),
    "heads_joined_without_transpose": (layer(join=True), CAUSAL),
    "batch_as_tokens": (lambda X: np.swapaxes(layer()(np.swapaxes(X, 0, 1)), 0, 1), CAUSAL),
    "padding_seen": (ignoring("keep"), PADDED),
    "padding_polarity": (layer(), CAUSAL | {"keep": "~keep"}),
    "padding_of_first_sequence": (layers.first_of("keep"), PADDED),
    "positions_of_first_sequence": (layers.first_of("positions"), PADDED),
    "random_in_evaluation": (layers.random_layer(), CAUSAL),
    "state_between_calls": (layers.remembering(), CAUSAL),
    **{
        name: in_chunks(name)
        for name in (
            "positions_restart",
            "cache_not_read",
            "mask_first_corner",
            "mask_dropped_in_chunks",
            "unwritten_rows_seen",
            "rewind_ignored",
            "positions_offset_in_chunks",
            "cached_keys_rotated_twice",
            "cached_keys_unrotated",
            "cache_of_other_sequence",
        )
    },
    "mask_after_softmax": (attention(after=True), HEADS),
    "softmax_over_queries": (attention(axis=-2), HEADS),
    "softmax_over_heads": (attention(axis=1), HEADS),
    "mask_without_itself": (attention(mask=lambda T: np.tri(T, k=-1, dtype=bool)), HEADS),
    "mask_polarity": (attention(mask=full), {"heads": (4, 2), "mask": "~given"}),
    "key_heads_tiled": (attention(order=np.tile), HEADS),
    "key_heads_repeated": (attention(), HEADS | {"key_heads": "tiled"}),
    "scale_missing": (attention(scale=lambda d: 1.0), HEADS),
    "scale_without_root": (attention(scale=lambda d: 1 / d), HEADS),
    "scale_multiplied": (attention(scale=lambda d: d**0.5), HEADS),
    "maximum_not_subtracted": (attention(shift=False), HEADS),
    "empty_row_mean": (
        lambda Q, K, V, given=None: attention(mask=full, empty=1 / K.shape[2])(Q, K, V, given),
        {"heads": (4, 2), "mask": "given", "empty_row": "zero"},
    ),
    "empty_row_nan": (
        attention(mask=full, empty=np.nan),
        {"heads": (4, 2), "mask": "given", "empty_row": "zero"},
    ),
}
MISTAKES |= {
    "positions_missing": (layer(), CAUSAL | {"position": "relative"}),
    "padding_shifts_positions": (numbered, CAUSAL | {"keep": "keep"}),
    "padding_of_other_sequences": (
        lambda X, keep=None: layer(full)(X, keep if keep is None else np.roll(keep, 1, axis=0)),
        {"d_model": D_MODEL, "keep": "keep"},
    ),
    "mask_dropped_with_padding": (
        lambda X, keep=None: layer(band() if keep is None else full)(X, keep),
        CAUSAL | {"keep": "keep"},
    ),
    "padding_on_queries": (
        lambda X, keep=None: layer(full)(X) * (1.0 if keep is None else keep[..., None]),
        {"d_model": D_MODEL, "keep": "keep"},
    ),
    "hidden_score_zero": (layer(hidden=0.0), CAUSAL),
    "weights_transposed": (
        lambda Q, K, V: np.swapaxes(layers.weights_of(Q, K), -1, -2) @ np.repeat(V, 2, axis=1),
        HEADS,
    ),
    "mask_added_as_number": (
        lambda Q, K, V, given=0.0: layers.weights_of(Q, K, given, full) @ np.repeat(V, 2, axis=1),
        {"heads": (4, 2), "mask": "given"},
    ),
    "scale_of_d_model": (attention(scale=lambda d: (4 * d) ** -0.5), HEADS),
    "scale_not_used": (attention(), HEADS | {"scale": "1"}),
}
WITH_TORCH = {"mask_dropped_in_training", "gradient_cut"}
WITH_TORCH |= {"scores_overflow_in_half", "mask_value_overflows_in_half", "scores_lost_in_single"}
WITH_TORCH |= {"parameter_unused"}
WITH_TORCH |= {"mask_lost_in_single", "mask_lost_in_half", "dropout_lost_after_evaluation"}
WITH_TORCH |= {"dropout_without_effect"}
HINTS = {"positions_ignored": (ignoring("positions", rotary=True), PADDED)}
MISTAKES["mask_dropped_in_batch"] = (
    lambda X: np.stack([layer(full if b else band())(x[None])[0] for b, x in enumerate(X)]),
    CAUSAL,
)
MISTAKES["positions_ignored"] = (HINTS["positions_ignored"][0], PADDED | {"position": "relative"})
MISTAKES["window_dropped_in_chunks"] = (
    layer(band(4), rotary=True),
    CAUSAL | {"positions": "positions", "cache": chunks()},
)
MISTAKES["softmax_over_batch"] = (attention(axis=0), HEADS)
MISTAKES["key_heads_of_another_group"] = (
    lambda Q, K, V: attention()(Q, *(np.repeat(x, 2, axis=1)[:, [1, 2, 3, 0]] for x in (K, V))),
    HEADS,
)


def both_ways(T):
    """A window to both sides."""
    return band(4)(T) | band(4)(T).T


def attending_over_heads(X):
    """Score the heads of one token against each other."""
    Q, K, V = (np.swapaxes(Y, 1, 2) for Y in layers.projected(X))
    weights = layers.softmax(Q @ np.swapaxes(K, -1, -2) / 2)
    return (weights @ V).reshape(*X.shape[:2], -1) @ layers.PARAMS.W_O


def counted_padding(X, keep=None):
    """Set padding to 0 and leave it in the softmax."""
    return layer(full)(X if keep is None else X * keep[..., None])


def one_longer(X, keep=None):
    """Take one token of padding for a real one."""
    return layer(full)(X, keep if keep is None else keep | np.roll(keep, 1, axis=1))


def overwriting(*arrays):
    """Write into the last array before it is used."""
    arrays[-1][:] *= 2
    return layer()(*arrays) if len(arrays) == 1 else attention()(*arrays)


def with_slopes_of_the_other_sign(Q, K, V):
    """Give farther keys larger weights."""
    T, S = Q.shape[2], K.shape[2]
    distance = np.arange(T)[:, None] + S - T - np.arange(S)
    scores = Q @ np.swapaxes(np.repeat(K, 2, axis=1), -1, -2) * Q.shape[-1] ** -0.5
    scores = np.where(distance >= 0, scores + 0.1 * distance, -np.inf)
    return layers.softmax(scores) @ np.repeat(V, 2, axis=1)


def with_bias_from_0(Q, K, V):
    """Count queries from 0, whatever the number of keys."""
    T, S = Q.shape[2], K.shape[2]
    bias = -0.1 * np.abs(np.arange(T)[:, None] - np.arange(S))
    return layers.weights_of(Q, K, bias) @ np.repeat(V, 2, axis=1)


def with_slopes(slopes):
    """Return attention with a bias by distance of these slopes, a function of H."""

    def attend(Q, K, V):
        T, S = Q.shape[2], K.shape[2]
        distance = np.arange(T)[:, None] + S - T - np.arange(S)
        scores = Q @ np.swapaxes(K, -1, -2) * Q.shape[-1] ** -0.5
        scores = scores - slopes(Q.shape[1])[:, None, None] * distance
        return layers.hiding(scores, distance >= 0) @ V

    return attend


def with_a_low_start(Q, K, V):
    """Begin the running maximum at a finite number."""
    scores = Q @ np.swapaxes(np.repeat(K, 2, axis=1), -1, -2) * Q.shape[-1] ** -0.5
    powers = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -5e4))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total) @ np.repeat(V, 2, axis=1)


def windowed_chunks():
    """Return a cache of four keys that counts positions by the keys it keeps."""

    def step(X, state):
        start = 0 if state is None else state[0].shape[2]
        Q, K, V = layers.projected(X)
        places = start + np.arange(X.shape[1])[None]
        Q, K = layers.rotated(Q, places), layers.rotated(K, places)
        if state is not None:
            K, V = (np.concatenate(pair, axis=2) for pair in zip(state, (K, V), strict=True))
        mask = band(4)(K.shape[2])[-X.shape[1] :]
        weights = layers.softmax(np.where(mask, Q @ np.swapaxes(K, -1, -2) / 2, -np.inf))
        Y = np.swapaxes(weights @ V, 1, 2).reshape(*X.shape[:2], -1) @ layers.PARAMS.W_O
        return Y, (K[:, :, -3:], V[:, :, -3:])

    return Cache(step, lambda: None)


def rotary(X):
    """A layer of a window with rotary positions that nobody hands over."""
    return layer(band(4), rotary=True)(X)


def shared_out(keys, values):
    """Return attention whose KV heads serve the query heads in these two orders."""
    return lambda Q, K, V: attention()(Q, K[:, keys], V[:, values])


def padded_chunks(seen):
    """Return a layer with padding, and its cache, which hides it or not."""
    attend = layer(rotary=False)

    def step(X, state, keep=None):
        X = X if state is None else np.concatenate([state, X], axis=1)
        t = X.shape[1] - (0 if state is None else state.shape[1])
        return attend(X, None if seen else keep)[:, -t:], X

    return attend, {"keep": "keep", "cache": Cache(step, lambda: None)}


WINDOW = CAUSAL | {"window": 4}
HALVES = {
    "softmax_twice": lambda s, d, sees: layers.hiding(layers.hiding(s * d**-0.5, sees), sees),
    "scale_after_softmax": lambda s, d, sees: layers.hiding(s, sees) * d**-0.5,
    "softmax_missing": lambda s, d, sees: s * d**-0.5 * sees,
    "softmax_not_normalised": lambda s, d, sees: np.exp(s * d**-0.5) * sees,
    "sigmoid_for_softmax": lambda s, d, sees: sees / (1 + np.exp(-s * d**-0.5)),
}
ARGUMENT = {"heads": (4, 2), "mask": "given"}
MISTAKES |= {
    **{name: (layers.of_formula(formula), HEADS) for name, formula in HALVES.items()},
    "attention_over_heads": (attending_over_heads, CAUSAL),
    "softmax_over_one": (layers.of_formula(lambda s, d, sees: 1.0 * sees + 0 * s), HEADS),
    "only_itself_seen": (layer(lambda T: np.eye(T, dtype=bool)), CAUSAL),
    "mask_both_ways": (layer(both_ways), CAUSAL),
    "sinks_missing": (layer(band(4)), WINDOW | {"sinks": 2}),
    "blocks_missing": (layer(), CAUSAL | {"block": 4}),
    "batch_as_one_sequence": (
        lambda X: layer()(X.reshape(1, -1, D_MODEL)).reshape(X.shape),
        CAUSAL,
    ),
    "input_overwritten": (overwriting, CAUSAL),
    "padding_off_by_one": (one_longer, {"d_model": D_MODEL, "keep": "keep", "sides": ("right",)}),
    "padding_keeps_weight": (counted_padding, {"d_model": D_MODEL, "keep": "keep"}),
    "padding_seen_in_chunks": (lambda p: (p[0], CAUSAL | p[1]))(padded_chunks(True)),
    "window_dropped_with_padding": (
        lambda X, keep=None: layer(band(4) if keep is None else band())(X, keep),
        WINDOW | {"keep": "keep", "sides": ("right",)},
    ),
    "window_another_in_chunks": (
        layer(band(4), rotary=True),
        CAUSAL | {"positions": "positions", "cache": chunks("window_another_in_chunks")},
    ),
    "values_not_used": (lambda Q, K, V: attention()(Q, K, np.sin(K)), HEADS),
    "heads_in_another_order": (lambda Q, K, V: attention()(Q, K, V)[:, [1, 0, 3, 2]], HEADS),
    "first_key_head_for_all": (shared_out([0, 0], [0, 0]), HEADS),
    "keys_and_values_in_other_orders": (shared_out([0, 0, 1, 1], [0, 1, 0, 1]), HEADS),
    "bias_to_farther_keys": (with_slopes_of_the_other_sign, HEADS | {"bias": "nearer"}),
    "mask_dropped_for_fewer_queries": (
        lambda Q, K, V: attention(mask=band() if Q.shape[2] == K.shape[2] else full)(Q, K, V),
        HEADS,
    ),
    "mask_argument_ignored": (lambda Q, K, V, given=None: attention(mask=full)(Q, K, V), ARGUMENT),
    "mask_argument_transposed": (
        lambda Q, K, V, given=None: attention(mask=full)(
            Q, K, V, given if given is None else given.T
        ),
        ARGUMENT,
    ),
    "mask_replaces_causal": (attention(), ARGUMENT | {"causal": True}),
}


def capped(scores, sees):
    """Mask before the soft cap."""
    return layers.softmax(5 * np.tanh(np.where(sees, scores, -np.inf) / 5))


def logarithms(scores, sees):
    """Return the logarithms of the weights."""
    return np.log(np.where(sees, layers.hiding(scores, sees), 1.0))


def plus_one(scores, sees):
    """Add 1 to the sum of the exponentials."""
    powers = np.exp(np.where(sees, scores, -np.inf))
    return powers / (1 + powers.sum(axis=-1, keepdims=True))


def of_all_pairs(scores, sees):
    return layers.softmax(np.where(sees, scores, -np.inf), (-1, -2))


def masked(which):
    """Return attention that takes a mask for each sequence and uses one of these."""

    def attend(Q, K, V, given=None):
        if given is not None and given.ndim == 4:
            given = given[:1] if which == "first" else np.tile(given[None, :, 0], (1, 2, 1, 1))
        return attention(mask=full)(Q, K, V, given)

    return attend


def joined_along_tokens(Q, K, V):
    K, V = (np.repeat(x, 2, axis=2).reshape(len(x), 4, -1, x.shape[-1]) for x in (K, V))
    return attention()(Q, K, V)


def shifted_blocks(T):
    block = (np.arange(T) + 1) // 4
    return band()(T) & (block[:, None] == block)


EXPLAINED = {
    "mask_before_soft_cap": layers.of_scores(capped),
    "softmax_in_logarithms": layers.of_scores(logarithms),
    "softmax_with_one_more": layers.of_scores(plus_one),
    "softmax_over_all_pairs": layers.of_scores(of_all_pairs),
    "softmax_in_base_2": layers.of_scores(lambda s, sees: layers.hiding(s * np.log(2), sees)),
    "scores_transposed": layers.of_scores(
        lambda s, sees: layers.hiding(np.swapaxes(s, -1, -2), sees)
    ),
    "key_heads_along_tokens": joined_along_tokens,
    "queries_added": lambda Q, K, V: attention()(Q, K, V) + Q,
    "keys_of_first_sequence": lambda Q, K, V: attention()(Q, K[:1] + 0 * K, V),
    "values_of_first_sequence": lambda Q, K, V: attention()(Q, K, V[:1] + 0 * V),
    "scale_of_length": lambda Q, K, V: attention(scale=lambda d: Q.shape[2] ** -0.5)(Q, K, V),
    "scale_of_fixed_width": attention(scale=lambda d: 1 / 7),
    "mask_ahead": attention(mask=band(ahead=3)),
    "mask_by_blocks": attention(mask=lambda T: full(T) & (band()(T) | Pattern(block=4).mask(T))),
    "first_tokens_unmasked": attention(mask=lambda T: band()(T) | (np.arange(T) < 3)),
}
ARRAYS = {
    "keys_and_values_exchanged": lambda Q, K, V: (Q, V, K),
    "keys_as_queries": lambda Q, K, V: (K, K, V),
    "queries_as_keys": lambda Q, K, V: (Q, Q, V),
    "keys_as_values": lambda Q, K, V: (Q, K, K),
    "queries_as_values": lambda Q, K, V: (Q, K, Q),
}
EXPLAINED |= {name: layers.of_scores(layers.hiding, arrays) for name, arrays in ARRAYS.items()}
MISTAKES |= {name: (function, HEADS | {"row_sum": 1}) for name, function in EXPLAINED.items()}
MISTAKES |= {
    "mask_of_first_sequence": (masked("first"), ARGUMENT),
    "mask_of_batch_on_heads": (masked("heads"), ARGUMENT),
    "later_tokens_unmasked": (layer(lambda T: ~np.tri(T, k=-4, dtype=bool)), WINDOW),
    "mask_causal": (layer(), CAUSAL | {"causal": False}),
    "window_by_mistake": (layer(Pattern(window=4).mask), CAUSAL | {"causal": False}),
    "window_another": (layer(band(7)), WINDOW),
    "blocks_shifted": (layer(shifted_blocks), CAUSAL | {"block": 4}),
    "rounded_in_chunks": in_chunks("rounded_in_chunks"),
}
MEMORY = {"d_model": D_MODEL, "memory": (7, 9)}
MISTAKES |= {
    "memory_masked_as_causal": (
        lambda X, M: layers.crossing(X, M, mask=np.tri(X.shape[1], M.shape[1], dtype=bool)),
        MEMORY,
    ),
    "positions_first_corner": (with_bias_from_0, {"heads": (4, 2), "causal": True}),
}
RING = CAUSAL | {"window": 4, "cache": windowed_chunks()}
HINTS["positions_offset_in_chunks"] = (rotary, RING)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_and_named(name):
    function, options = MISTAKES[name]
    report = probe(function, **options)
    assert not report.ok, report
    assert report.names == (name,), report


def over_the_batch(X):
    """Subtract the mean of the batch."""
    return layer()(X - X.mean(axis=0))


def undefined_without_tokens(X, keep=None):
    """Return NaN everywhere if one text is padding alone."""
    empty = keep is not None and not keep.any(axis=1).all()
    return layer()(X, keep) * (np.nan if empty else 1.0)


def changing(values):
    """Return a layer whose outputs are changed by a function of X and of the padding mask."""
    return lambda X, keep=None: layer()(X, keep) + values(X, keep)


def refusing_a_batch(X, keep=None):
    """Refuse padding in a batch of several."""
    if keep is not None and len(X) > 1:
        raise ValueError("a mask of one sequence")
    return layer()(X, keep)


def refusing(X, state):
    """Refuse any chunk."""
    raise ValueError("no cache of this length")


def counted(calls=itertools.count()):  # noqa: B008
    return lambda X: layer()(X) + next(calls)


def with_memory(change):
    """Return a layer whose memory is changed before it is read."""
    return lambda X, M, keep=None: layers.crossing(X, change(M), keep)


class Cached:
    """A cache of a layer that attends to a memory, its own or that of the first call."""

    def __init__(self, stale):
        self.stale, self.first = stale, None

    def step(self, X, state, memory):
        """Attend to one of the two."""
        self.first = memory if self.first is None else self.first
        return layers.crossing(X, self.first[: len(X)] if self.stale else memory), state


def test_a_memory_has_a_length_and_scores_of_its_own():
    def mixed(X, M):
        return layers.softmax(X[..., :9] @ np.swapaxes(M, 1, 2)) @ X

    def sharp(X, M):
        Q, K = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (X[..., :9], M))
        return layers.softmax(100 * Q @ np.swapaxes(K, 1, 2)) @ M

    assert probe(mixed, **MEMORY).names == ("memory_refused",)
    assert probe(sharp, **MEMORY).ok
    report = probe(lambda X, M: layers.crossing(X, M) + X.mean(axis=0), **MEMORY)
    assert report.names == ("sequences_mixed",)


def test_a_memory_of_the_text_before_is_found():
    for stale in (False, True):
        options = MEMORY | {"cache": Cache(Cached(stale).step, tuple)}
        report = probe(layers.crossing, **options)
        assert report.names == ("state_between_calls",) * stale, report


def with_weights(weights):
    """Return a layer whose weights are a function of the scores, and which adds its input."""

    def attend(X):
        Q, K, V = layers.projected(X)
        heads = weights(Q @ np.swapaxes(K, -1, -2) / 2) @ V
        return X + np.swapaxes(heads, 1, 2).reshape(*X.shape[:2], -1) @ layers.PARAMS.W_O

    return attend


def test_what_weights_do_with_scores_shows_in_hidden_states():
    of_queries, options = partial(layers.softmax, axis=-2), CAUSAL | {"causal": False}
    assert probe(with_weights(lost_in_single), **CAUSAL).names == ("scores_lost_in_single",)
    means = probe(lambda X: X + np.cumsum(X, 1) / np.arange(1, 1 + X.shape[1])[:, None], **CAUSAL)
    assert means.ok
    assert "weights do not depend on scores" in str(means)
    (found,) = probe(with_weights(of_queries), **options).wrong
    assert found.hints == ("softmax_over_queries", "weights_transposed")
    assert probe(with_weights(layers.softmax), **options).ok
    transposed = with_weights(lambda s: np.swapaxes(layers.hiding(s, band()(s.shape[-1])), 2, 3))
    assert probe(transposed, **CAUSAL).names == ("hidden_keys_seen",)
    for weights in (np.exp, partial(layers.softmax, axis=1)):
        assert "row_sum_not_one" in probe(with_weights(weights), **options).names
    assert probe(layers.of_scores(unrescaled), **HEADS).names == ("row_sum_not_one",)
    assert "row_sum_not_one" in probe(partial(pooled, axis=1), d_model=D_MODEL).names


def packed(X, keep=None, positions=None):
    """Keep texts apart whose positions begin anew, but beside no padding mask."""
    apart = np.ones((X.shape[1],) * 2, bool)
    if positions is not None and keep is None:
        text = np.cumsum(np.diff(positions[0], prepend=0) < 0)
        apart = text[:, None] == text
    return layer(lambda T: band()(T) & apart)(X, keep)


def lost_in_single(scores):
    """Add -1e9 to what is seen, which single precision rounds."""
    added = np.where(band()(scores.shape[-1]), -1e9, -np.inf)
    return layers.softmax((scores + added).astype(np.float32))


def pooled(X, keep=None, *, axis=-1, hides=False):
    scores = PARAMS.W_Q[0, :, :3].T @ np.swapaxes(X, 1, 2)
    keep = True if keep is None else keep[:, None] ^ hides
    return layers.softmax(np.where(keep, scores, -1e9), axis) @ X


def sorted_by_length(X, keep=None, *, back=False):
    assert keep is None or keep.any(axis=1).all()
    order = np.arange(len(X)) if keep is None else np.argsort(-keep.sum(axis=1), kind="stable")
    Y = layer()(X[order], keep if keep is None else keep[order])
    return Y[np.argsort(order)] if back else Y


def of_squares(X, window=4):
    assert round(X.shape[1] ** 0.5) ** 2 == X.shape[1]
    return layer(band(window))(X)


def unrescaled(scores, sees):
    scores = np.where(sees, scores, -np.inf)
    top = np.maximum.accumulate(scores, axis=-1)
    powers = np.exp(scores - top[..., -1:])
    return powers / np.exp(scores - top, where=sees, out=0 * top).sum(axis=-1, keepdims=True)


def test_layers_with_outputs_of_another_number_or_of_one_length_are_asked():
    options = {"d_model": D_MODEL, "keep": "keep"}
    assert probe(pooled, **options).ok
    assert probe(partial(pooled, hides=True), **options).names == ("padding_polarity",)
    assert probe(of_squares, d_model=D_MODEL, like=of_squares, causal=True, window=4).ok
    assert probe(partial(sorted_by_length, back=True), **options, causal=True).ok
    other = probe(partial(of_squares, window=None), d_model=D_MODEL, like=of_squares)
    assert other.names == ("window_missing",), other


def test_a_soft_cap_beside_a_mistake_is_no_name():
    unscaled = layers.of_formula(lambda s, d, sees: layers.hiding(30 * np.tanh(s / 30), sees))
    assert str(probe(unscaled, **HEADS)).startswith("WRONG")


def sunk(Q, K, V, mask=True, *, hides_first=False, rows=1.0):
    """Attention with a sink whose size may grow by rows; what is hidden may count in the sum."""
    scores = Q @ np.swapaxes(K, -1, -2) / Q.shape[-1] ** 0.5
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    counted = powers * mask if hides_first else powers
    sink = rows ** np.arange(Q.shape[2])[:, None] * np.exp(-scores.max(axis=-1, keepdims=True))
    return powers * mask / (counted.sum(axis=-1, keepdims=True) + sink) @ V


SUNK = {"heads": (3, 3), "row_sum": None, "mask": "mask"}
PLACED = {
    "hidden_keys_in_the_sum": (sunk, SUNK),
    "sink_not_in_every_row": (partial(sunk, hides_first=True, rows=1.1), SUNK),
    "memory_not_read": (lambda X, M: layer(full)(X), MEMORY),
    "memory_not_seen": (with_memory(lambda M: M[:, :5]), MEMORY),
    "memory_refused": (with_memory(lambda M: M + np.zeros((7, 9))), MEMORY),
    "mask_another_with_padding": (packed, PADDED),
    "padding_mixed_in_batch": (sorted_by_length, CAUSAL | {"keep": "keep"}),
    "memory_length_changes_outputs": (with_memory(lambda M: M * M.shape[1] / 7), MEMORY),
    "not_finite": (lambda X: layer()(X) + np.where(X[..., :1] > 0, np.inf, 0), CAUSAL),
    "bias_of_other_slopes": (
        with_slopes(lambda H: 2.0 ** -np.arange(1, H + 1)),
        {"heads": (6, 6), "causal": True, "bias": "alibi"},
    ),
    "mask_argument_misread": (
        lambda Q, K, V, given=None: attention(mask=full)(
            Q, K, V, given if given is None or given.ndim < 4 or given.shape[2] > 1 else given[::-1]
        ),
        ARGUMENT,
    ),
    "sequence_changes_in_batch": (
        lambda X: layer()(X) * np.arange(1, 1 + len(X))[:, None, None],
        CAUSAL,
    ),
    "sequences_mixed": (over_the_batch, CAUSAL),
    "values_not_mixed_by_weights": (lambda Q, K, V: attention()(Q, K, np.tanh(V)), HEADS),
    "padding_alone_spoils_others": (undefined_without_tokens, CAUSAL | {"keep": "keep"}),
    "positions_used": (layer(rotary=True), PADDED | {"position": "none"}),
    "positions_only_relative": (layer(rotary=True), PADDED | {"position": "absolute"}),
    "positions_not_relative": (
        numbered,
        PADDED | {"position": "relative"},
    ),
    "mask_another_corner": (attention(), HEADS | {"corner": "first"}),
    "hidden_keys_seen": (lambda X: layer()(X - X.mean(axis=1, keepdims=True)), CAUSAL),
    "keys_not_seen": (layer(lambda T: band()(T) & (np.arange(T) != 2)), WINDOW | {"window": None}),
    "row_sum_lost_at_large_scores": (with_a_low_start, {"heads": (4, 2)}),
    "row_sum_not_one": (layers.of_scores(lambda s, sees: 2 * layers.hiding(s, sees)), HEADS),
    "softmax_of_other_scores": (layers.of_scores(lambda s, m: layers.hiding(np.sin(s), m)), HEADS),
    "scale_another": (attention(scale=lambda d: 0.1 + d**-0.5), HEADS),
    "heads_mixed": (lambda Q, K, V: attention()(Q + Q[:, ::-1] / 2, K, V), HEADS),
    "key_heads_mixed": (lambda Q, K, V: attention()(Q, K + K[:, ::-1] / 2, V), HEADS),
    "wrong_for_longer_texts": (layers.in_tiles(64), HEADS),
    "queries_change_with_their_number": (
        lambda Q, K, V: attention(mask=full, scale=lambda d: d**-0.5 * max(1, 14 / Q.shape[2]))(
            Q, K, V
        ),
        {"heads": (4, 2)},
    ),
    "not_finite_at_large_scores": (changing(lambda X, keep: np.exp(X**2) * 0), CAUSAL),
    "length_changes_outputs": (changing(lambda X, keep: 0.1 * X.shape[1]), CAUSAL),
    "calls_depend_on_calls": (counted(), CAUSAL),
    "padding_counted": (
        changing(lambda X, keep: 0.0 if keep is None else keep.sum(-1)[:, None, None]),
        CAUSAL | {"keep": "keep"},
    ),
    "padding_seen_on_the_right": (
        changing(lambda X, keep: 0 if keep is None or keep.all() else X.mean(1, keepdims=True)),
        CAUSAL | {"keep": "keep"},
    ),
    "padding_refused_in_batch": (refusing_a_batch, CAUSAL | {"keep": "keep"}),
    "padding_refused": (lambda X: layer()(X), CAUSAL | {"keep": "keep"}),
    "cache_refused": (layer(), CAUSAL | {"cache": Cache(refusing, tuple)}),
    **{
        name: in_chunks(name)
        for name in (
            "weights_differ_in_chunks",
            "later_tokens_seen_in_chunks",
            "cached_rows_altered",
            "fewer_seen_in_chunks",
        )
    },
}


def undefined(layer):
    """Return a layer or function in which a row without a key is undefined."""

    def call(*arrays):
        Y = layer(*arrays)
        return np.where(np.abs(Y).max(axis=-1, keepdims=True) == 0, np.nan, Y)

    return call


def upside_down(T):
    return ~band()(T)


def strictly(T):
    return np.tri(T, k=-1, dtype=bool)


@pytest.mark.parametrize("mask", [upside_down, strictly])
def test_a_mask_that_leaves_a_row_undefined_is_named(mask):
    name = {upside_down: "mask_reversed", strictly: "mask_without_itself"}[mask]
    assert probe(undefined(layer(mask)), **CAUSAL).names == (name,)
    assert probe(undefined(attention(mask=mask)), **HEADS).names == (name,)


def in_half(Q, K, V, *, scaled_first=False):
    """Compute in half precision, and scale the scores or the queries."""
    Q, K, V = (x.astype(np.float16) for x in (Q, np.repeat(K, 2, axis=1), np.repeat(V, 2, axis=1)))
    scale, KT = np.float16(Q.shape[-1] ** -0.5), np.swapaxes(K, -1, -2)
    with np.errstate(all="ignore"):
        scores = (Q * scale) @ KT if scaled_first else (Q @ KT) * scale
        sees = np.tri(Q.shape[2], K.shape[2], K.shape[2] - Q.shape[2], dtype=bool)
        return layers.softmax(np.where(sees, scores, np.float16(-np.inf))) @ V


def test_only_the_most_basic_place_keeps_its_name():
    report = probe(lambda Q, K, V: attention()(Q + K.mean(), K, V), **HEADS)
    assert len(report.wrong) > 1, report
    assert report.names == ("sequences_mixed",), report


def test_a_function_in_half_precision_is_asked_in_its_range():
    assert probe(partial(in_half, scaled_first=True), **HEADS).ok
    assert probe(in_half, **HEADS).names == ("scores_overflow_in_half",)


def test_heads_joined_by_a_reshape_show_though_every_token_is_seen():
    options = CAUSAL | {"causal": False}
    report = probe(layer(full, join=True), **options)
    assert report.names == ("heads_joined_without_transpose",), report


def test_what_is_right_for_the_fewest_tokens_alone_is_found():
    assert probe(layers.in_tiles(16), **HEADS).names == ("wrong_for_longer_texts",)


def test_a_sink_that_is_the_same_in_every_row_is_right():
    assert probe(partial(sunk, hides_first=True), **SUNK).ok


@pytest.mark.parametrize("name", PLACED)
def test_the_place_of_a_mistake_is_named(name):
    function, options = PLACED[name]
    report = probe(function, **options)
    assert not report.ok, report
    assert name in report.names, report
    assert set(report.names) <= set(PLACES), report


def without_rest(size, mask):
    """Return a layer in which keys behind the last whole tile are seen by themselves alone."""

    def whole_tiles(T):
        return mask(T) & (np.arange(T) < T // size * size) | np.eye(T, dtype=bool)

    return layer(whole_tiles)


def ring(X, state):
    """Attend to the last 16 tokens before a chunk, and to the chunk."""
    text = X if state is None else np.concatenate([state, X], axis=1)
    return layer()(text)[:, -X.shape[1] :], text[:, -16:]


def by_a_low_number(X):
    """Hide keys by -100, which only a token shows whose score with itself is lower."""
    signs = np.where(np.isin(np.arange(D_MODEL), (3, 4, 5)), -1, 1)
    scores = (X * signs) @ np.swapaxes(X, -1, -2) / 4
    return layers.softmax(np.where(band()(X.shape[1]), scores, -100)) @ X


LONG = [
    ("keys_not_seen", without_rest(14, full), CAUSAL | {"causal": False}),
    ("length_changes_outputs", without_rest(4, band()), CAUSAL),
    ("fewer_seen_in_chunks", layer(), CAUSAL | {"cache": Cache(ring, lambda: None)}),
    ("mask_not_low_enough", by_a_low_number, CAUSAL),
    (
        "mask_not_low_enough",
        layers.of_scores(lambda s, sees: layers.softmax(np.where(sees, s, -4e3))),
        HEADS,
    ),
]


@pytest.mark.parametrize(("name", "function", "options"), LONG)
def test_what_short_texts_and_small_scores_do_not_show(name, function, options):
    report = probe(function, **options)
    assert report.names == (name,), report


@pytest.mark.parametrize("limit", [20, 100])
def test_a_layer_that_remembers_its_longest_text_is_found(limit):
    longest, right = [0], layer(band())

    def scaled_later(X):
        longest[0] = max(longest[0], X.shape[1])
        return right(X) * (1 + (longest[0] > limit))

    assert probe(scaled_later, **CAUSAL).names == ("state_between_calls",)

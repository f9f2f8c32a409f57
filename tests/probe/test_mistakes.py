"""Each mistake that the probe can name is found and named; layers without one are right."""

import numpy as np
import pytest

from tests.probe import layers
from tests.probe.layers import D_MODEL, attention, band, full, layer, pieces
from tutorial_lib.probe import Cache, probe

CAUSAL = {"d_model": D_MODEL, "causal": True}
PADDED = CAUSAL | {"keep": "keep", "positions": "positions"}
HEADS = {"heads": (4, 2), "causal": True, "scale": "1/sqrt(d_k)"}


def ignoring(word, rotary=False):
    """Return a layer that takes an argument and does not use it."""

    def call(X, **given):
        given.pop(word, None)
        return layer(rotary=rotary)(X, **given)

    return call


def numbered(X, keep=None):
    """A layer that adds a row of its own at each position."""
    rows = np.random.default_rng(2).normal(size=(99, D_MODEL))
    return layer()(X + rows[: X.shape[1]], keep)


def in_pieces(mistake):
    return layer(rotary=True), CAUSAL | {"positions": "positions", "cache": pieces(mistake)}


MISTAKES = {
    "no_mask": (layer(full), CAUSAL),
    "mask_transposed": (layer(lambda T: np.tri(T, dtype=bool).T), CAUSAL),
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
        name: in_pieces(name)
        for name in (
            "positions_restart",
            "cache_not_read",
            "mask_first_corner",
            "mask_dropped_in_pieces",
            "unwritten_rows_seen",
            "rewind_ignored",
            "positions_offset_in_pieces",
            "cached_keys_rotated_twice",
            "cached_keys_unrotated",
            "cached_keys_lost",
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
WITH_TORCH = {"mask_dropped_in_training", "gradient_cut", "gradient_without_mask"}
WITH_TORCH |= {"gradient_of_shared_heads", "gradient_without_scale", "gradient_without_row_sum"}
WITH_TORCH |= {"scores_overflow_in_half", "mask_value_overflows_in_half", "scores_lost_in_single"}
WITH_TORCH |= {"parameter_unused"}
HINTS = {"positions_ignored": (ignoring("positions", rotary=True), PADDED)}
MISTAKES["positions_ignored"] = (HINTS["positions_ignored"][0], PADDED | {"position": "relative"})
MISTAKES["window_dropped_in_pieces"] = (
    layer(band(4), rotary=True),
    CAUSAL | {"positions": "positions", "cache": pieces()},
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


def joined_across_the_batch(X):
    """Read heads that come as (H, B, T, d) as (B, H, T, d)."""
    B, T, _ = X.shape
    Q, K, V = layers.projected(X)
    heads = layers.softmax(Q @ np.swapaxes(K, -1, -2) / 2) @ V
    heads = np.swapaxes(heads, 0, 1).reshape(heads.shape)
    return np.swapaxes(heads, 1, 2).reshape(B, T, -1) @ layers.PARAMS.W_O


def with_a_low_start(Q, K, V):
    """Begin the running maximum at a finite number."""
    scores = Q @ np.swapaxes(np.repeat(K, 2, axis=1), -1, -2) * Q.shape[-1] ** -0.5
    powers = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -5e4))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total) @ np.repeat(V, 2, axis=1)


def windowed_pieces():
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


def rounded(X, keep=None, positions=None):
    """Rotate by angles of few digits."""
    places = np.arange(X.shape[1])[None] if positions is None else positions
    return layer(rotary=True)(X, keep, places * (1 + 1e-3 * np.sin(7.0 * places)))


def shared_out(keys, values):
    """Return attention whose KV heads serve the query heads in these two orders."""
    return lambda Q, K, V: attention()(Q, K[:, keys], V[:, values])


def padded_pieces(seen):
    """Return a layer with padding, and its cache, which hides it or not."""
    attend = layer(rotary=False)

    def step(X, state, keep=None):
        X = X if state is None else np.concatenate([state, X], axis=1)
        t = X.shape[1] - (0 if state is None else state.shape[1])
        return attend(X, None if seen else keep)[:, -t:], X

    return attend, {"keep": "keep", "cache": Cache(step, lambda: None, None, step)}


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
    "heads_joined_across_batch": (joined_across_the_batch, CAUSAL | {"causal": False}),
    "maximum_starts_too_high": (with_a_low_start, {"heads": (4, 2)}),
    "softmax_over_one": (layers.of_formula(lambda s, d, sees: 1.0 * sees + 0 * s), HEADS),
    "scale_of_heads": (attention(scale=lambda d: 0.5), HEADS),
    "not_finite": (lambda X: layer()(X) + np.where(X[..., :1] > 0, np.inf, 0), CAUSAL),
    "positions_rounded": (rounded, PADDED | {"position": "relative"}),
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
    "padding_seen_in_pieces": (lambda p: (p[0], CAUSAL | p[1]))(padded_pieces(True)),
    "window_dropped_with_padding": (
        lambda X, keep=None: layer(band(4) if keep is None else band())(X, keep),
        WINDOW | {"keep": "keep", "sides": ("right",)},
    ),
    "window_another_in_pieces": (
        layer(band(4), rotary=True),
        CAUSAL | {"positions": "positions", "cache": pieces("window_another_in_pieces")},
    ),
    "values_not_used": (lambda Q, K, V: attention()(Q, K, K), HEADS),
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


RING = CAUSAL | {"window": 4, "cache": windowed_pieces()}
HINTS["positions_offset_in_pieces"] = (rotary, RING)


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


WITHOUT_A_NAME = {
    "batch": (over_the_batch, CAUSAL),
    "batch of a function": (lambda Q, K, V: attention()(Q, K, V + 0.1 * V.mean(axis=0)), HEADS),
    "values": (lambda Q, K, V: attention()(Q, K, V) + V.mean() * 0.1, HEADS),
    "padding alone": (undefined_without_tokens, CAUSAL | {"keep": "keep"}),
    "positions": (layer(rotary=True), PADDED | {"position": "none"}),
    "corner": (
        attention(),
        HEADS | {"corner": "first"},
    ),
}


@pytest.mark.parametrize("name", WITHOUT_A_NAME)
def test_a_mistake_without_a_name_is_found(name):
    function, options = WITHOUT_A_NAME[name]
    report = probe(function, **options)
    assert not report.ok, report
    assert not report.names, report


def refusing(X, state):
    """Refuse any piece."""
    raise ValueError("no cache of this length")


NOT_ASKED = {
    "cache": (layer(), CAUSAL | {"cache": Cache(refusing, tuple)}),
    "padding": (lambda X: layer()(X), CAUSAL | {"keep": "keep"}),
    "positions": (layer(rotary=True), CAUSAL | {"position": "none"}),
}


@pytest.mark.parametrize("question", NOT_ASKED)
def test_what_is_claimed_or_handed_over_and_cannot_be_asked_is_not_right(question):
    function, options = NOT_ASKED[question]
    report = probe(function, **options)
    assert report.wrong, report
    assert all(found.question.startswith(question) for found in report.wrong), report

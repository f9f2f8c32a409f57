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
WITH_TORCH |= {"gradient_of_shared_heads"}
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


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_and_named(name):
    function, options = MISTAKES[name]
    report = probe(function, **options)
    assert not report.ok, report
    assert report.names == (name,), report


def overwriting(*arrays):
    """Write into the last array before it is used."""
    arrays[-1][:] *= 2
    return layer()(*arrays) if len(arrays) == 1 else attention()(*arrays)


def over_the_batch(X):
    """Subtract the mean of the batch."""
    return layer()(X - X.mean(axis=0))


def with_heads_rolled(Q, K, V):
    """Let each head use the query of the head before."""
    return attention()(np.roll(Q, 1, axis=1), K, V)


def with_slopes_of_the_other_sign(Q, K, V):
    """Give farther keys larger weights."""
    T, S = Q.shape[2], K.shape[2]
    distance = np.arange(T)[:, None] + S - T - np.arange(S)
    scores = Q @ np.swapaxes(np.repeat(K, 2, axis=1), -1, -2) * Q.shape[-1] ** -0.5
    scores = np.where(distance >= 0, scores + 0.1 * distance, -np.inf)
    return layers.softmax(scores) @ np.repeat(V, 2, axis=1)


def undefined_without_tokens(X, keep=None):
    """Return NaN everywhere if one text is padding alone."""
    empty = keep is not None and not keep.any(axis=1).all()
    return layer()(X, keep) * (np.nan if empty else 1.0)


WITHOUT_A_NAME = {
    "input": (overwriting, CAUSAL),
    "input of a function": (overwriting, HEADS),
    "batch": (over_the_batch, CAUSAL),
    "batch of a function": (lambda Q, K, V: attention()(Q, K, V + 0.1 * V.mean(axis=0)), HEADS),
    "heads": (with_heads_rolled, HEADS),
    "values": (lambda Q, K, V: attention()(Q, K, V) + V.mean() * 0.1, HEADS),
    "bias": (with_slopes_of_the_other_sign, HEADS | {"bias": "nearer"}),
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

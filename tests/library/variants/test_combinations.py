"""Cached equals uncached under every combination of the variants that makes sense.

A sequence is fed in pieces of 1, 2, 3 and all, left-padded and not; each real token must give the
row that it gives in its sequence alone, in one pass of plain loops without a cache. A mistake is
planted in each combination that can make it, and must be found there.
"""

from dataclasses import fields
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tests.library.variants.compositions import (
    D_MODEL,
    GROUPS,
    LAYERS,
    PADS,
    PIECES,
    ROOM,
    Grouped,
    H,
    TurnedLatent,
    expected,
    fed,
)
from tutorial_lib import attention_scores, attention_weights, causal_mask, checks
from tutorial_lib.practice.ch14_kv_cache.checks import MISTAKES as KNOWN
from tutorial_lib.practice.mistake import named
from tutorial_lib.variants.grouped import grouped_attention
from tutorial_lib.variants.latent import absorbed_attention
from tutorial_lib.variants.patterns import attention_with_sink, gate_heads, window_mask
from tutorial_lib.variants.positions import rotate


@pytest.mark.parametrize("n", PIECES)
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", LAYERS)
def test_every_piece_gives_the_rows_of_one_pass_without_a_cache(name, pad, n):
    rows = fed(LAYERS[name], pad, n)
    np.testing.assert_allclose(rows, expected(name, pad), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_check_of_the_chapter_finds_nothing_in_any_combination(name, capsys):
    checks.check_cached(LAYERS[name].step, LAYERS[name].empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


# --- what people do instead, each in a method of the layer ---


def real(kept, T):
    """The mask of the padding alone: booleans that broadcast to (B, 1, T, S)."""
    keys = np.arange(kept.length + T)
    return True if kept.pad is None else keys >= kept.pad[:, None, None, None]


def causal(kept, T, offset):
    """A mask whose diagonal begins at some key of the first row, and padding hidden."""
    return np.tri(T, kept.length + T, offset, dtype=bool) & real(kept, T)


def all_places(self, kept):
    """The positions of all tokens that are kept, with an axis for the heads."""
    start = self.empty(kept.capacity, batch=kept.batch, pad=kept.pad)
    return start.positions(kept.length)[..., None, :]


def places_after_a_padded_prompt(self, kept, T):
    """Right in the prompt; then the length of the cache, which counts the padding too."""
    if kept.length == 0:
        return kept.positions(T)[..., None, :]
    return np.arange(kept.length, kept.length + T)


def one_side(turns_queries):
    """Turn the queries alone, or the keys alone."""

    def project(self, X, places):
        still = np.zeros_like(places)
        Q, _ = type(self).__mro__[1].project(self, X, places if turns_queries else still)
        _, kept = type(self).__mro__[1].project(self, X, still if turns_queries else places)
        return Q, kept

    return project


def turned_again(self, X, kept):
    """At each step all that is kept is turned with the new tokens, and kept so."""
    if kept.length:
        kept.buffers[0][..., : kept.length, :] = self.turn(kept.K, all_places(self, kept))
    return type(self).__mro__[1].step(self, X, kept)


def whole_room(self, Q, kept, mask):
    """The reserved room is looked at too."""
    mask = np.broadcast_to(mask, (*mask.shape[:-1], kept.length))
    free = np.ones((*mask.shape[:-1], kept.capacity - kept.length), dtype=bool)
    every = SimpleNamespace(K=kept.buffers[0], V=kept.buffers[1])
    return type(self).__mro__[1].attend(self, Q, every, np.concatenate([mask, free], axis=-1))


def slopes_of_the_piece(self, Q, kept, mask):
    """The first query of each piece stands at place 0."""
    T, S = Q.shape[-2], kept.length
    distances = np.abs(np.arange(T)[:, None] - np.arange(S))
    scores = attention_scores(Q, self.own(kept.K)) - self.slopes[:, None, None] * distances
    return attention_weights(scores, mask=mask) @ self.own(kept.V)


def absorbed(self, Q, kept, mask):
    """W_UK is moved to the other side of the turn."""
    return absorbed_attention(Q, kept.K[..., 0, :, :], self.params, mask=mask)


def turns(layer):
    """Whether a layer turns its queries and keys."""
    return layer.frequencies is not None and len(layer.frequencies) > 0


def turns_what_it_keeps(layer):
    """Whether what stands in the cache is turned."""
    return turns(layer) and not isinstance(layer, TurnedLatent)


def windowed(layer):
    """Whether a layer has a window, and looks at all of its keys."""
    return getattr(layer, "window", ROOM) < ROOM and not chooses(layer)


def chooses(layer):
    """Whether a layer looks at some keys alone, which no one mask tells."""
    return getattr(layer, "k", None) is not None


def has(part):
    """Whether a layer has a part."""
    return lambda layer: getattr(layer, part, None) is not None


def looks_back(layer):
    """Whether a layer looks at every key before."""
    return not windowed(layer) and not chooses(layer)


def in_window(self, kept, T, width):
    """A window of another width behind a cache."""
    width = width if kept.length else self.window
    return kept.mask(T) & window_mask(T, kept.length + T, width)


def window_of_places(self, kept, T):
    """Queries counted by their places, without padding, and keys with it."""
    near = kept.positions(T)[..., None] - np.arange(kept.length + T) < self.window
    return kept.mask(T) & (near if kept.pad is None else near[:, None])


def chosen_before_the_mask(self, scores, mask):
    """The best keys of all in a piece, some of which the mask hides then."""
    ranks = np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    return (ranks < self.k) & mask


# what the check of chapter 14 calls them; it takes what is wrong in every piece alike for a layer
NAMES = {
    "mask without offset": "no_offset",
    "no mask": "no_mask",
    "no mask behind a cache": "no_mask_behind_a_cache",
    "mask one ahead": "one_ahead",
    "mask one behind": "itself_hidden",
    "padding seen": "padding_seen",
    "reserved room seen": "buffer_seen",
    "positions that restart": "positions_restart",
    "positions that count padding from the first step on": "positions_count_padding",
    "window forgotten behind a cache": "window_forgotten",
    "window wider by one behind a cache": "window_off_by_one",
    "window that counts padding": "window_counts_padding",
}
UNNAMED = "keys turned again at each step", "slopes of the piece"  # no one shift explains them
# what is done: (method, what stands in its place, which layers can do so)
MISTAKES = {
    "mask without offset": ("mask", lambda self, kept, T: causal(kept, T, 0), looks_back),
    "no mask": ("mask", lambda self, kept, T: causal(kept, T, ROOM), looks_back),
    "no mask behind a cache": (
        "mask",
        lambda self, kept, T: causal(kept, T, ROOM if kept.length else 0),
        looks_back,
    ),
    "mask one ahead": ("mask", lambda self, kept, T: causal(kept, T, kept.length + 1), looks_back),
    "mask one behind": ("mask", lambda self, kept, T: causal(kept, T, kept.length - 1), looks_back),
    "padding seen": ("mask", lambda self, kept, T: causal_mask(T, kept.length + T), looks_back),
    "reserved room seen": (
        "attend",
        whole_room,
        lambda layer: isinstance(layer, Grouped) and looks_back(layer),
    ),
    "positions that restart": ("places", lambda self, kept, T: np.arange(T), turns_what_it_keeps),
    "positions that count padding from the first step on": (
        "places",
        places_after_a_padded_prompt,
        turns_what_it_keeps,
    ),
    "queries turned alone": ("project", one_side(True), turns_what_it_keeps),
    "keys turned alone": ("project", one_side(False), turns_what_it_keeps),
    "keys turned again at each step": ("step", turned_again, turns_what_it_keeps),
    "the other layout": (
        "turn",
        lambda self, A, places: rotate(A, places, self.frequencies, half=not self.half),
        lambda layer: isinstance(layer, Grouped) and turns(layer),
    ),
    "group tiled": (
        "attend",
        lambda self, Q, kept, mask: grouped_attention(
            Q, *(np.concatenate([A] * 2, axis=-3) for A in (kept.K, kept.V)), mask=mask
        ),
        lambda layer: isinstance(layer, Grouped) and 1 < layer.params.n_kv_heads < H,
    ),
    "slopes of the piece": (
        "attend",
        slopes_of_the_piece,
        lambda layer: getattr(layer, "slopes", None) is not None,
    ),
    "window forgotten behind a cache": (
        "mask",
        lambda self, kept, T: in_window(self, kept, T, ROOM),
        windowed,
    ),
    "window wider by one behind a cache": (
        "mask",
        lambda self, kept, T: in_window(self, kept, T, self.window + 1),
        windowed,
    ),
    "window that counts padding": ("mask", window_of_places, windowed),
    "keys chosen before the mask": ("chosen", chosen_before_the_mask, chooses),
    "a sink in single tokens alone": (
        "weigh",
        lambda self, scores, mask: attention_with_sink(
            scores, np.where(scores.shape[-2] == 1, self.sink, -np.inf), mask=mask
        ),
        has("sink"),
    ),
    "gates of the piece's first token": (
        "finish",
        lambda self, heads, X: gate_heads(heads, X[..., :1, :] + 0 * X, self.W_G),
        has("W_G"),
    ),
    "absorbed after the turn": ("attend", absorbed, lambda layer: isinstance(layer, TurnedLatent)),
}
PLANTED = [
    (mistake, name)
    for mistake, (_, _, can) in MISTAKES.items()
    for name, layer in LAYERS.items()
    if can(layer)
]


def wrong(layer, mistake):
    """The layer with a mistake in it."""
    method, instead, _ = MISTAKES[mistake]
    kind = type("Wrong", (type(layer),), {method: instead})
    return kind(**{field.name: getattr(layer, field.name) for field in fields(layer)})


def differs(layer, name):
    """Whether some piece of a padded or unpadded sequence gives another row of a token."""
    for pad, n in product(PADS, PIECES):
        found, right = fed(layer, pad, n), expected(name, pad)
        if np.abs(found - right)[right != 0].max() > 1e-3:
            return True
    return False


@pytest.mark.parametrize(("mistake", "name"), PLANTED)
def test_a_planted_mistake_is_found_in_every_combination_that_can_make_it(mistake, name):
    assert differs(wrong(LAYERS[name], mistake), name)


@pytest.mark.parametrize(
    ("mistake", "name"),
    [(m, name) for m, name in PLANTED if m in NAMES and name[0] in f"{GROUPS[1]}l"],
)
def test_check_of_the_chapter_names_the_mistake_in_any_combination(mistake, name, capsys):
    layer = wrong(LAYERS[name], mistake)
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    told = " ".join(capsys.readouterr().out.split())
    assert f"✗ cached: {named(KNOWN['cached'], NAMES[mistake]).says}" in told


@pytest.mark.parametrize(
    ("mistake", "name"),
    [(m, name) for m, name in PLANTED if m in UNNAMED and name[0] in f"{GROUPS[1]}l"],
)
def test_check_of_the_chapter_tells_the_row_where_no_mistake_explains_it(mistake, name, capsys):
    layer = wrong(LAYERS[name], mistake)
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("✗ cached: chunks of 1: the row of token ")
    assert told.endswith("it attends to the right tokens, but its output differs.")


def test_every_mistake_is_planted_somewhere_and_every_layer_holds_some():
    assert {mistake for mistake, _ in PLANTED} == set(MISTAKES)
    assert {name for _, name in PLANTED} == set(LAYERS)


@pytest.mark.parametrize("places", ["neighbours rotated", "halves rotated in part"])
def test_padding_that_counts_everywhere_changes_nothing_since_a_turn_sees_distances(places):
    layer = LAYERS[f"2 KV heads, {places}"]
    kind = type("Wrong", (Grouped,), {"places": lambda self, kept, T: kept.length + np.arange(T)})
    counting = kind(**{field.name: getattr(layer, field.name) for field in fields(layer)})
    for n in PIECES:
        np.testing.assert_allclose(
            fed(counting, "padded", n), fed(layer, "padded", n), rtol=1e-10, atol=1e-12
        )

"""Cached equals uncached under every combination of the variants that makes sense.

A sequence is fed in chunks of 1, 2, 3 and all, left-padded and not; each real token must give the
row that it gives in its sequence by itself, in one pass of plain loops without a cache. A mistake
is planted in each combination that can make it, and must be found there.
"""

from dataclasses import fields
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tests.library.variants.compositions import (
    CAPACITY,
    CHUNKS,
    D_MODEL,
    GROUPS,
    LAYERS,
    PADS,
    Grouped,
    H,
    RotatedLatent,
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


@pytest.mark.parametrize("n", CHUNKS)
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", LAYERS)
def test_every_chunk_gives_the_rows_of_one_pass_without_a_cache(name, pad, n):
    rows = fed(LAYERS[name], pad, n)
    np.testing.assert_allclose(rows, expected(name, pad), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_check_of_the_chapter_finds_nothing_in_any_combination(name, capsys):
    checks.check_cached(LAYERS[name].step, LAYERS[name].empty, d_model=D_MODEL)
    assert capsys.readouterr().out.startswith("✓ cached: right on")


# --- what people do instead, each in a method of the layer ---


def real(kept, T):
    """The mask of only the padding: booleans that broadcast to (B, 1, T, S)."""
    keys = np.arange(kept.length + T)
    return True if kept.pad is None else keys >= kept.pad[:, None, None, None]


def causal(kept, T, offset):
    """A mask whose diagonal begins at some key of the first row, and padding hidden."""
    return np.tri(T, kept.length + T, offset, dtype=bool) & real(kept, T)


def all_positions(self, kept):
    """The positions of all cached tokens, with an axis for the heads."""
    start = self.empty(kept.capacity, batch=kept.batch, pad=kept.pad)
    return start.positions(kept.length)[..., None, :]


def positions_after_a_padded_prompt(self, kept, T):
    """Right in the prompt; then the length of the cache, which counts the padding too."""
    if kept.length == 0:
        return kept.positions(T)[..., None, :]
    return np.arange(kept.length, kept.length + T)


def one_side(rotates_queries):
    """Rotate only the queries, or only the keys."""

    def project(self, X, positions):
        still = np.zeros_like(positions)
        Q, _ = type(self).__mro__[1].project(self, X, positions if rotates_queries else still)
        _, new = type(self).__mro__[1].project(self, X, still if rotates_queries else positions)
        return Q, new

    return project


def rotated_again(self, X, kept):
    """At each step all cached keys are rotated with the new ones, and cached so."""
    if kept.length:
        kept.buffers[0][..., : kept.length, :] = self.with_rope(kept.K, all_positions(self, kept))
    return type(self).__mro__[1].step(self, X, kept)


def whole_buffer(self, Q, kept, mask):
    """Tokens attend to the empty rows of the buffer too."""
    mask = np.broadcast_to(mask, (*mask.shape[:-1], kept.length))
    free = np.ones((*mask.shape[:-1], kept.capacity - kept.length), dtype=bool)
    every = SimpleNamespace(K=kept.buffers[0], V=kept.buffers[1])
    return type(self).__mro__[1].attend(self, Q, every, np.concatenate([mask, free], axis=-1))


def slopes_of_the_chunk(self, Q, kept, mask):
    """The first query of each chunk is at position 0."""
    T, S = Q.shape[-2], kept.length
    distances = np.abs(np.arange(T)[:, None] - np.arange(S))
    scores = attention_scores(Q, self.own(kept.K)) - self.slopes[:, None, None] * distances
    return attention_weights(scores, mask=mask) @ self.own(kept.V)


def absorbed(self, Q, kept, mask):
    """W_UK is moved to the other side of the rotation."""
    return absorbed_attention(Q, kept.K[..., 0, :, :], self.params, mask=mask)


def rotates(layer):
    """Whether a layer rotates its queries and keys."""
    return layer.frequencies is not None and len(layer.frequencies) > 0


def caches_rotated(layer):
    """Whether the cached rows are rotated."""
    return rotates(layer) and not isinstance(layer, RotatedLatent)


def windowed(layer):
    """Whether a layer has a window, and attends to all of its keys."""
    return getattr(layer, "window", CAPACITY) < CAPACITY and not chooses(layer)


def chooses(layer):
    """Whether a layer attends only to some keys, which depend on the scores."""
    return getattr(layer, "k", None) is not None


def has(part):
    """Whether a layer has a part."""
    return lambda layer: getattr(layer, part, None) is not None


def looks_back(layer):
    """Whether a layer attends to every key before."""
    return not windowed(layer) and not chooses(layer)


def in_window(self, kept, T, width):
    """A window of a different width behind a cache."""
    width = width if kept.length else self.window
    return kept.mask(T) & window_mask(T, kept.length + T, width)


def window_of_positions(self, kept, T):
    """Queries counted by their positions, without padding, and keys with it."""
    near = kept.positions(T)[..., None] - np.arange(kept.length + T) < self.window
    return kept.mask(T) & (near if kept.pad is None else near[:, None])


def chosen_before_the_mask(self, scores, mask):
    """The best keys of all in a chunk, some of which the mask hides then."""
    ranks = np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    return (ranks < self.k) & mask


# what the check of chapter 14 calls them; it takes what is wrong in every chunk alike for a layer
NAMES = {
    "mask without offset": "no_offset",
    "no mask": "no_mask",
    "no mask behind a cache": "no_mask_behind_a_cache",
    "mask one ahead": "one_ahead",
    "mask one behind": "itself_hidden",
    "padding seen": "padding_seen",
    "reserved buffer seen": "buffer_seen",
    "positions that restart": "positions_restart",
    "positions that count padding from the first step on": "positions_count_padding",
    "window forgotten behind a cache": "window_forgotten",
    "window wider by one behind a cache": "window_off_by_one",
    "window that counts padding": "window_counts_padding",
}
UNNAMED = "keys rotated again at each step", "slopes of the chunk"  # no one shift explains them
# what is done: (method, what replaces it, which layers can do so)
MISTAKES = {
    "mask without offset": ("mask", lambda self, kept, T: causal(kept, T, 0), looks_back),
    "no mask": ("mask", lambda self, kept, T: causal(kept, T, CAPACITY), looks_back),
    "no mask behind a cache": (
        "mask",
        lambda self, kept, T: causal(kept, T, CAPACITY if kept.length else 0),
        looks_back,
    ),
    "mask one ahead": ("mask", lambda self, kept, T: causal(kept, T, kept.length + 1), looks_back),
    "mask one behind": ("mask", lambda self, kept, T: causal(kept, T, kept.length - 1), looks_back),
    "padding seen": ("mask", lambda self, kept, T: causal_mask(T, kept.length + T), looks_back),
    "reserved buffer seen": (
        "attend",
        whole_buffer,
        lambda layer: isinstance(layer, Grouped) and looks_back(layer),
    ),
    "positions that restart": ("positions", lambda self, kept, T: np.arange(T), caches_rotated),
    "positions that count padding from the first step on": (
        "positions",
        positions_after_a_padded_prompt,
        caches_rotated,
    ),
    "only queries rotated": ("project", one_side(True), caches_rotated),
    "only keys rotated": ("project", one_side(False), caches_rotated),
    "keys rotated again at each step": ("step", rotated_again, caches_rotated),
    "the other layout": (
        "with_rope",
        lambda self, A, positions: rotate(A, positions, self.frequencies, half=not self.half),
        lambda layer: isinstance(layer, Grouped) and rotates(layer),
    ),
    "group tiled": (
        "attend",
        lambda self, Q, kept, mask: grouped_attention(
            Q, *(np.concatenate([A] * 2, axis=-3) for A in (kept.K, kept.V)), mask=mask
        ),
        lambda layer: isinstance(layer, Grouped) and 1 < layer.params.n_kv_heads < H,
    ),
    "slopes of the chunk": (
        "attend",
        slopes_of_the_chunk,
        lambda layer: getattr(layer, "slopes", None) is not None,
    ),
    "window forgotten behind a cache": (
        "mask",
        lambda self, kept, T: in_window(self, kept, T, CAPACITY),
        windowed,
    ),
    "window wider by one behind a cache": (
        "mask",
        lambda self, kept, T: in_window(self, kept, T, self.window + 1),
        windowed,
    ),
    "window that counts padding": ("mask", window_of_positions, windowed),
    "keys chosen before the mask": ("chosen", chosen_before_the_mask, chooses),
    "a sink only for single tokens": (
        "weigh",
        lambda self, scores, mask: attention_with_sink(
            scores, np.where(scores.shape[-2] == 1, self.sink, -np.inf), mask=mask
        ),
        has("sink"),
    ),
    "gates of the chunk's first token": (
        "finish",
        lambda self, heads, X: gate_heads(heads, X[..., :1, :] + 0 * X, self.W_G),
        has("W_G"),
    ),
    "absorbed after the rotation": (
        "attend",
        absorbed,
        lambda layer: isinstance(layer, RotatedLatent),
    ),
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
    """Whether some chunk of a padded or unpadded sequence gives a different row of a token."""
    for pad, n in product(PADS, CHUNKS):
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


@pytest.mark.parametrize("encoding", ["interleaved pairs rotated", "halves rotated in part"])
def test_padding_that_counts_everywhere_changes_nothing_since_only_distances_count(encoding):
    layer = LAYERS[f"2 KV heads, {encoding}"]
    kind = type(
        "Wrong", (Grouped,), {"positions": lambda self, kept, T: kept.length + np.arange(T)}
    )
    counting = kind(**{field.name: getattr(layer, field.name) for field in fields(layer)})
    for n in CHUNKS:
        np.testing.assert_allclose(
            fed(counting, "padded", n), fed(layer, "padded", n), rtol=1e-10, atol=1e-12
        )

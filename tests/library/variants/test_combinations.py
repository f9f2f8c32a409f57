"""Cached equals uncached under every combination of the variants that makes sense.

A sequence is processed in chunks of 1, 2, 3 and all, left-padded and not; each real token must give
the row that it gives in its sequence by itself, in one chunk. What one chunk gives is compared with
loops in the tests of each variant. A mistake is planted in each combination that can make it, and
must be found there.
"""

from itertools import product

import numpy as np
import pytest

from tests.library.variants.compositions import (
    CAPACITY,
    CHUNKS,
    D_MODEL,
    LAYERS,
    PADS,
    RotatedLatent,
    rows_in_chunks,
    whole_rows,
)
from tutorial_lib import attention_scores, attention_weights, causal_mask, checks
from tutorial_lib.practice.ch14_kv_cache.checks import MISTAKES as KNOWN
from tutorial_lib.practice.mistake import mistake_by_name
from tutorial_lib.variants.latent import absorbed_attention
from tutorial_lib.variants.patterns import window_mask


@pytest.mark.parametrize("chunk_length", CHUNKS)
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("name", LAYERS)
def test_every_chunk_gives_the_rows_of_one_pass(name, pad, chunk_length):
    rows = rows_in_chunks(LAYERS[name], pad, chunk_length)
    np.testing.assert_allclose(rows, whole_rows(name, pad), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_check_of_the_chapter_finds_nothing_in_any_combination(name, capsys):
    assert feedback(LAYERS[name], capsys).startswith("✓ cached: right on")


def feedback(layer, capsys):
    """What the check of chapter 14 prints about a layer, on one line."""
    checks.check_cached(layer.step, layer.empty, d_model=D_MODEL)
    return " ".join(capsys.readouterr().out.split())


# --- what people do instead, each in a method of the layer ---


def mask_without_offset(self, cache, T):
    """Query i of a chunk sees the first i + 1 keys of all, but for its padding."""
    S = cache.length + T
    n_hidden = 0 if cache.pad is None else cache.pad[:, None, None, None]
    return np.tri(T, S, dtype=bool) & (np.arange(S) >= n_hidden)


def no_window_behind_cache(self, cache, T):
    window = CAPACITY if cache.length else self.window
    return cache.mask(T) & window_mask(T, cache.length + T, window)


def window_of_positions(self, cache, T):
    """Queries counted by their positions, without padding, and keys with it."""
    in_window = cache.positions(T)[..., None] - np.arange(cache.length + T) < self.window
    return cache.mask(T) & (in_window if cache.pad is None else in_window[:, None])


def padding_seen(self, cache, T):
    return causal_mask(T, cache.length + T)


def positions_from_0(self, cache, T):
    return np.arange(T)


def padded_positions(self, cache, T):
    return cache.length + np.arange(T)


def prompt_positions(self, cache, T):
    """Right in the prompt; then the length of the cache, which counts the padding too."""
    if cache.length == 0:
        return cache.positions(T)[..., None, :]
    return padded_positions(self, cache, T)


def rotated_again(self, X, cache):
    """At each step all cached keys are rotated with the new ones, and cached so."""
    if cache.length:
        empty_cache = self.empty(cache.capacity, batch=cache.batch, pad=cache.pad)
        positions = empty_cache.positions(cache.length)[..., None, :]
        cache.buffers[0][..., : cache.length, :] = self.with_rope(cache.K, positions)
    return type(self).__mro__[1].step(self, X, cache)


def slopes_of_the_chunk(self, Q, cache, mask):
    """The first query of each chunk is at position 0."""
    distances = np.abs(np.arange(Q.shape[-2])[:, None] - np.arange(cache.length))
    scores = attention_scores(Q, self.per_head(cache.K)) - self.slopes[:, None, None] * distances
    return attention_weights(scores, mask=mask) @ self.per_head(cache.V)


def top_k_before_the_mask(self, scores, mask):
    """The best keys of all in a chunk, some of which the mask hides then."""
    key_ranks = np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    return (key_ranks < self.k) & mask


def absorbed(self, Q, cache, mask):
    """W_UK is moved to the other side of the rotation."""
    return absorbed_attention(Q, cache.K[..., 0, :, :], self.params, mask=mask)


def layer_traits(layer):
    """What a layer has in which a mistake can be made."""
    has_top_k = getattr(layer, "k", None) is not None
    has_window = getattr(layer, "window", CAPACITY) < CAPACITY
    is_rotated = layer.frequencies is not None and len(layer.frequencies) > 0
    traits = {
        "all keys": not has_window and not has_top_k,
        "window": has_window and not has_top_k,
        "top-k": has_top_k,
        "slopes": getattr(layer, "slopes", None) is not None,
        "RoPE cache": is_rotated and not isinstance(layer, RotatedLatent),
        "RoPE latent": isinstance(layer, RotatedLatent),
    }
    return {name for name, is_present in traits.items() if is_present}


NAMED_ROW = "row"  # no one shift explains these, so the check of chapter 14 names the row
# (method, what replaces it, the layers that can do so, what the check of chapter 14 calls it);
# that check takes what is wrong in every chunk alike for a layer
MISTAKES = {
    "mask without offset": ("mask", mask_without_offset, "all keys", "no_offset"),
    "padding seen": ("mask", padding_seen, "all keys", "padding_seen"),
    "positions that restart": ("positions", positions_from_0, "RoPE cache", "positions_restart"),
    "padding counts": ("positions", prompt_positions, "RoPE cache", "positions_count_padding"),
    "keys rotated again at each step": ("step", rotated_again, "RoPE cache", NAMED_ROW),
    "slopes of the chunk": ("attend", slopes_of_the_chunk, "slopes", NAMED_ROW),
    "window forgotten behind a cache": (
        "mask",
        no_window_behind_cache,
        "window",
        "window_changes",
    ),
    "window that counts padding": ("mask", window_of_positions, "window", "window_counts_padding"),
    "top-k keys before the mask": ("top_k", top_k_before_the_mask, "top-k", None),
    "absorbed after the rotation": ("attend", absorbed, "RoPE latent", None),
}
PLANTED = [
    (mistake, name)
    for mistake, (_, _, trait, _) in MISTAKES.items()
    for name, layer in LAYERS.items()
    if trait in layer_traits(layer)
]


def layer_with_method(layer, method, replacement):
    """The layer with one method replaced."""
    return type("Changed", (type(layer),), {method: replacement})(**vars(layer))


def differs_from_whole(layer, name):
    """Whether some chunk of a padded or unpadded sequence gives a different row of a token."""
    for pad, chunk_length in product(PADS, CHUNKS):
        rows, expected_rows = rows_in_chunks(layer, pad, chunk_length), whole_rows(name, pad)
        if np.abs(rows - expected_rows)[expected_rows != 0].max() > 1e-3:
            return True
    return False


@pytest.mark.parametrize(("mistake", "name"), PLANTED)
def test_a_planted_mistake_is_found_in_every_combination_that_can_make_it(mistake, name):
    assert differs_from_whole(layer_with_method(LAYERS[name], *MISTAKES[mistake][:2]), name)


def is_explained(mistake, name):
    """Whether the check of chapter 14 says what is wrong; wrong scores choose other top-k keys."""
    chooses_others = MISTAKES[mistake][3] == NAMED_ROW and "top-k" in layer_traits(LAYERS[name])
    return MISTAKES[mistake][3] and name[0] in "2l" and not chooses_others


@pytest.mark.parametrize(
    ("mistake", "name"), [(m, name) for m, name in PLANTED if is_explained(m, name)]
)
def test_check_of_the_chapter_names_the_mistake_in_any_combination(mistake, name, capsys):
    method, replacement, _, mistake_name = MISTAKES[mistake]
    message = feedback(layer_with_method(LAYERS[name], method, replacement), capsys)
    if mistake_name == NAMED_ROW:
        assert message.startswith("✗ cached: chunks of 1: the row of token ")
        assert message.endswith("it attends to the right tokens, but its output differs.")
    else:
        assert f"✗ cached: {mistake_by_name(KNOWN['cached'], mistake_name).says}" in message


def test_every_mistake_is_planted_somewhere_and_every_layer_holds_some():
    assert {mistake for mistake, _ in PLANTED} == set(MISTAKES)
    assert {name for _, name in PLANTED} == set(LAYERS)


@pytest.mark.parametrize("encoding", ["interleaved pairs rotated", "halves rotated in part"])
def test_padding_that_counts_everywhere_changes_nothing_since_only_distances_count(encoding):
    layer = LAYERS[f"2 KV heads, {encoding}"]
    counting_layer = layer_with_method(layer, "positions", padded_positions)
    for chunk_length in CHUNKS:
        rows = rows_in_chunks(counting_layer, "padded", chunk_length)
        expected_rows = rows_in_chunks(layer, "padded", chunk_length)
        np.testing.assert_allclose(rows, expected_rows, rtol=1e-10, atol=1e-12)

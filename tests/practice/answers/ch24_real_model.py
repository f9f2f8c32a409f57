"""What computes the keys of chapter 24: from the record of the real model, and from formats."""

import numpy as np

from tutorial_lib import attention_scores, attention_weights
from tutorial_lib.models.real.gguf import FORMATS, Q4_1
from tutorial_lib.records import record
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import receptive_field, window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate


def what_wrong_pairs_do():
    """The most likely word and the loss with either kind of pairs, as they were measured."""
    layouts = record("real_sinks")["layouts"]
    right, wrong = layouts["neighbours"], layouts["halves"]
    assert right["next"] == " Paris"
    rows = np.random.default_rng(0).standard_normal((2, 5, 64))
    kinds = [rotate(rows, np.arange(5), rope_frequencies(64), half=half) for half in (False, True)]
    same = np.allclose(*(attention_scores(Q, K) for Q, K in kinds))
    found = wrong["next"] == right["next"]
    return [
        kinds[0].shape != kinds[1].shape,
        not found,
        found and wrong["loss"] > right["loss"] + 1,
        found and same,
    ]


def what_banana_receives():
    """The median weight of *banana* as the first token, over that of the text's own."""
    measured = record("real_sinks")
    ratio = measured["first tokens"]["banana"]["median"] / _median("sinks")
    return [ratio < 0.1, abs(ratio - 0.5) < 0.2, abs(ratio - 1) < 0.2, ratio > 1.5]


def _median(name):
    """The median over all heads of the weight of token 0 (`sinks`) or of token 1 (`second`)."""
    return np.median(record("real_sinks")[name]["mean"])


def _weights(change):
    """The mean weights of tokens 0 and 40 in the later layers, after a change."""
    row = record("real_sinks")["changes"][change]
    return row["token 0"]["mean"], row["token 40"]["mean"]


def where_the_heads_attend():
    """What layers 12 to 29 give to both tokens, after layer 11 has added its row to another one."""
    before, (first, other) = _weights("as it is")[0], _weights("moved to token 40")
    settings = record("real_sinks")["settings"]
    even = np.mean(1 / np.arange(settings["from"] + 1, settings["length"] + 1))
    return [
        first > before / 2,
        abs(other / before - 1) < 0.1,
        max(first, other) < 3 * even,
        abs(first - other) < before / 4,
    ]


def bits_a_number():
    """The bits of a block of 32 codes of 4 bits with two numbers of two bytes, over 32."""
    fields = [("scale", "<f2"), ("minimum", "<f2"), ("codes", "u1", 32 * 4 // 8)]
    block = np.dtype(fields)
    assert (block.itemsize, 32) == (FORMATS[Q4_1][0].itemsize, FORMATS[Q4_1][1])
    return block.itemsize * 8 / 32


def why_the_first_token():
    """What makes a sink of token 40, and what of token 1 makes none."""
    alone, plain = _weights("row 40 sees only itself")[1], _weights("as it is")[1]
    banana = record("real_sinks")["first tokens"]["banana"]["median"]
    becomes_one = alone > 20 * plain
    return [
        not becomes_one,
        becomes_one,
        _median("second") > _median("sinks") / 4,
        banana < _median("sinks") / 2,
    ]


def what_the_window_lacks():
    """What 16 keys a row, the last or the first and the last 15, cost, and what they have seen."""
    kinds = record("real_sinks")["windows"]["16"]
    last, own, kept = (
        kinds[kind]["perplexity"] for kind in ("last", "a text of its own", "token 0")
    )
    assert own < last / 2
    window = window_mask(64, 64, 16)
    weights = attention_weights(np.random.default_rng(0).standard_normal((64, 64)), mask=window)
    return [
        kept > last / 2,
        max(own, kept) < last / 2 and window[-1, -16:].all() and window[-16].sum() > 1,
        receptive_field(window, 3)[-1].sum() < 16,
        not np.allclose(weights.sum(axis=-1), 1),
    ]


def memory_of_a_shared_cache():
    """The MiB of 30 layers with caches of 3 KV heads, 64 wide, for 9 query heads."""
    shapes = (9, 8, 64), (3, 8, 64), (3, 8, 64), (9 * 64, 8)
    cache = KVCache.empty(GroupedParams(*map(np.zeros, shapes)), 1024)
    entries = 30 * sum(buffer.size for buffer in cache.buffers)
    return entries * np.dtype(np.float16).itemsize / 2**20


def partners_of_an_entry():
    """The entries of 64 that change with entry 6, when neighbours or halves are pairs."""
    partners = []
    for half in (False, True):
        rows = np.zeros((2, 64))
        rows[:, 6] = 1
        changed = np.flatnonzero(rotate(rows, np.arange(2), rope_frequencies(64), half=half)[1])
        partners += [entry for entry in changed.tolist() if entry != 6]
    return "{} and {}".format(*partners)

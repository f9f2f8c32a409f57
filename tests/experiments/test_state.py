"""The benchmark of states: each step is that of its chapter, and bytes are those of the arrays."""

import numpy as np
import pytest

from experiments import measuring, state
from tests.experiments.test_records import require_quotient
from tutorial_lib import scaled_dot_product_attention
from tutorial_lib.records import record
from tutorial_lib.variants.state import delta_step, linear_attention

FULL, TINY = state.FULL, state.QUICK
RECORD = record("state")
near = {"rtol": 1e-5, "atol": 1e-6}


def tokens(width, n):
    """Some tokens with keys of length 1."""
    rng = np.random.default_rng(width)
    return [state.sample_token(rng, TINY, width) for _ in range(n)]


@pytest.mark.parametrize("width", TINY.widths)
def test_states_step_as_in_their_chapter(width):
    drawn = tokens(width, 5)
    Q, K, V = (np.stack(A, axis=1).astype(float) for A in zip(*drawn, strict=True))
    right, table = linear_attention(Q, K, V), np.zeros((TINY.heads, width, width))
    kept = {step: table.astype(np.float32) for step in (state.linear_step, state.delta_step)}
    for t, (q, k, v) in enumerate(drawn):
        found = state.linear_step((q, k, v), kept[state.linear_step])
        np.testing.assert_allclose(found[:, 0], right[:, t], **near)
        table = delta_step(table, k.astype(float), v.astype(float), decay=0.5)
        found = state.delta_step((q, k, v), kept[state.delta_step], decay=0.5)
        np.testing.assert_allclose(kept[state.delta_step], table, **near)
        np.testing.assert_allclose(found[:, 0], (q[:, None] @ table)[:, 0], **near)


@pytest.mark.parametrize("T", [0, 5, 300])
def test_the_cached_step_is_attention_over_what_is_kept(T):
    rng = np.random.default_rng(T)
    rooms, [(q, k, v)] = state.normal(rng, 2, TINY.heads, 301, 4), tokens(4, 1)
    old = rooms[:, :, :T].astype(float)
    found = state.attend_cached((q, k, v), rooms, T)
    K, V = (np.concatenate([A, row[:, None]], axis=1) for A, row in zip(old, (k, v), strict=True))
    right = scaled_dot_product_attention(q[:, None].astype(float), K, V)
    np.testing.assert_allclose(found, right, **near)
    np.testing.assert_array_equal(rooms[0, :, T], k)


def test_bytes_are_those_of_the_arrays():
    for width, found in RECORD["widths"].items():
        table = np.zeros((FULL.heads, int(width), int(width)), np.float32)
        for T, row in found["cache"].items():
            kept_mib = int(T) * 2 * table[:, 0].nbytes / measuring.MIB
            assert row["mib"] == pytest.approx(kept_mib, rel=1e-3)
        for name in ("linear", "delta"):
            assert found[name]["mib"] == pytest.approx(table.nbytes / measuring.MIB, rel=1e-3)


def test_ratios_are_quotients_of_their_times():
    for found in RECORD["widths"].values():
        for row in found["cache"].values():
            for name in ("linear", "delta"):
                require_quotient(row[f"over_{name}"], row["ms"], found[name]["ms"])
    prompt = RECORD["prefill"]
    for row in prompt["chunks"].values():
        require_quotient(row["over_softmax"], row["ms"], prompt["softmax"]["ms"])

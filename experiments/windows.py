"""Time attention within a window: masked, and with the keys skipped that no query of a block sees.

Score, weights and mix alone, of four heads in float32, on one thread; a layer's projections cost
the same with and without a window. The full one in NumPy multiplies all T * T pairs and masks half
of them; SDPA of torch is told that it is causal and skips what it can. A ratio is taken within a
round, and held against the window's share of the pairs: of the causal ones, and of all. Writes
src/tutorial_lib/data/results/windows.json.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from experiments import measuring
from tutorial_lib import causal_mask, scaled_dot_product_attention
from tutorial_lib.variants.patterns import window_mask, windowed_attention

SEED = 0


class Plan(NamedTuple):
    """What to measure."""

    heads: int = 4
    d_k: int = 64
    lengths: tuple = (1024, 2048, 4096, 8192)
    windows: tuple = (128, 512)
    block: int = 64  # queries that are attended together, in torch
    rounds: int = 15
    few: int = 5  # rounds at the greatest length


FULL = Plan()
QUICK = FULL._replace(d_k=4, lengths=(50, 90), windows=(7, 20), block=16, rounds=2, few=2)


def by_blocks(Q, K, V, window, *, block):
    """Attend within a window by SDPA, a block of queries at a time, on the keys that it sees."""
    parts, T = [], Q.shape[-2]
    for start in range(0, T, block):
        q = Q[..., start : start + block, :]
        keys = slice(max(0, start + 1 - window), start + q.shape[-2])
        mask = torch.from_numpy(window_mask(q.shape[-2], keys.stop - keys.start, window))
        seen = K[..., keys, :], V[..., keys, :]
        parts.append(F.scaled_dot_product_attention(q, *seen, attn_mask=mask))
    return torch.cat(parts, dim=-2)


def by_flex(Q, K, V, window):
    """Return a call of FlexAttention, compiled, which leaves out blocks of 128 by 128 pairs."""

    def seen(b, h, t, s):
        return (s <= t) & (t - s < window)

    T = Q.shape[-2]
    mask = create_block_mask(seen, None, None, T, T, device="cpu")
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False)
    return partial(compiled, Q, K, V, block_mask=mask)


def pair_fractions(T, windows):
    """Return the pairs of each form, and the share that a window has of the others'."""
    pairs = {"all": T * T, "causal": T * (T + 1) // 2}
    pairs |= {f"window {w}": int(window_mask(T, T, w).sum()) for w in windows}
    share = {
        name: {f"of_{of}": measuring.short(pairs[name] / pairs[of]) for of in ("causal", "all")}
        for name in pairs
        if name.startswith("window")
    }
    return {"pairs": pairs, "fraction": share}


def calls_by_form(plan, Q, K, V):
    """Return {form: call} for queries, keys and values in NumPy; the masks are made before."""
    T, tensors = Q.shape[-2], [torch.from_numpy(A)[None] for A in (Q, K, V)]
    attend, sdpa = scaled_dot_product_attention, F.scaled_dot_product_attention
    calls = {"NumPy, full": partial(attend, Q, K, V, mask=causal_mask(T))}
    calls["torch, full"] = partial(sdpa, *tensors, is_causal=True)
    for window in plan.windows:
        mask, name = window_mask(T, T, window), f"window {window}"
        calls[f"NumPy, {name}, masked"] = partial(attend, Q, K, V, mask=mask)
        calls[f"NumPy, {name}, skipped"] = partial(windowed_attention, Q, K, V, window)
        mask = torch.from_numpy(mask)
        calls[f"torch, {name}, masked"] = partial(sdpa, *tensors, attn_mask=mask)
        skip = partial(by_blocks, *tensors, window, block=plan.block)
        calls[f"torch, {name}, skipped"] = skip
        calls[f"torch, {name}, FlexAttention"] = by_flex(*tensors, window)
    return dict(sorted(calls.items(), key=lambda pair: pair[0].partition(",")[0]))


def exact(Q, K, V, window):
    """Return what attention gives in float64; a window of T is the full one."""
    mask = window_mask(Q.shape[-2], Q.shape[-2], window)
    Q, K, V = (A.astype(float) for A in (Q, K, V))
    attend = partial(scaled_dot_product_attention, mask=mask)
    return np.stack([*map(attend, Q, K, V)])  # head by head: the scores of all are large


def window_of(form):
    """Return the window that a form names, or None."""
    words = form.replace(",", "").split()
    return int(words[2]) if "window" in words else None


def rows_of(plan, calls, times_ms, inputs):
    """Return times, ratios, memory and errors of every form."""
    rows, T, expected = {}, inputs[0].shape[-2], {}
    for form, call in calls.items():
        library, window = form.partition(",")[0], window_of(form)
        if window not in expected:
            expected = {window: exact(*inputs, window or T)}  # one at a time: they are large
        over = times_ms[form] / times_ms[f"{library}, full"]
        rows[form] = {
            "ms": measuring.summary(times_ms[form]),
            "over_full": measuring.summary(over),
            "peak_mib": measuring.PEAK_MIB[library](call),
            "error": measuring.error_of(call(), expected[window], wrong="another window"),
        }
        if form.endswith("skipped"):
            rows[form]["times_fraction"] = times_fraction(np.median(over), T, window)
    return rows


def times_fraction(over, T, window):
    """Return a time over the share that a window has of the causal pairs, and of all."""
    pairs = pair_fractions(T, [window])["pairs"]
    fractions = {of: pairs[f"window {window}"] / pairs[of] for of in ("causal", "all")}
    return {f"of_{of}": measuring.short(over / share) for of, share in fractions.items()}


def measure(plan, T):
    """Check, time and weigh every form at one length."""
    torch.compiler.reset()  # it keeps eight forms of a function and refuses a ninth
    inputs = measuring.normal(np.random.default_rng(SEED), 3, plan.heads, T, plan.d_k)
    calls = calls_by_form(plan, *inputs)
    rounds = plan.few if plan.lengths[-1] == T else plan.rounds
    times_ms = measuring.time_in_rounds(calls, rounds=rounds, title=f"{T} tokens")
    return pair_fractions(T, plan.windows) | {"forms": rows_of(plan, calls, times_ms, inputs)}


def main(plan, record):
    """Measure every length."""
    record |= {"plan": plan._asdict(), "lengths": {}}
    with torch.inference_mode():
        for T in plan.lengths:
            record["lengths"][str(T)] = measure(plan, T)

"""Time a state of fixed size against a cache that grows: one more token, and a whole prompt.

One token of one layer with eight heads, in float32 and on one thread; what projects it is left out.
The cache takes a key and a value more and attends to all that it keeps, in the pages of `decode`,
the fastest form there. A state takes the same key and value and is read with the same query:
`linear` adds them, `delta` mends what the key reads. A model steps through all its layers before
it comes back to one, so layers take turns here. A prompt is read by linear attention in chunks of
several sizes, from token by token to all at once, and by attention with a softmax. Writes
src/tutorial_lib/data/results/state.json.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from experiments import measuring
from experiments.decode import in_pages
from experiments.measuring import MIB, normal
from tutorial_lib import causal_mask, scaled_dot_product_attention
from tutorial_lib.variants.state import chunked, linear_attention_parallel

SEED = 0


class Plan(NamedTuple):
    """What to measure."""

    heads: int = 8
    widths: tuple = (64, 128)  # d_k = d_v
    lengths: tuple = (128, 512, 2048, 8192, 32768, 65536)  # cached tokens
    layers: int = 4  # that take turns
    rounds: int = 41
    prompt: int = 4096  # tokens
    prompt_width: int = 64
    chunks: tuple = (1, 16, 64, 128, 256, 1024, 4096)
    few: int = 7  # rounds of a prompt


FULL = Plan()
QUICK = FULL._replace(
    heads=3,
    widths=(4, 6),
    lengths=(5, 300, 700),
    layers=2,
    rounds=3,
    prompt=50,
    prompt_width=4,
    chunks=(1, 7, 50),
    few=2,
)


def sample_token(rng, plan, width):
    """Return a query, a key of length 1 and a value for each head: (H, width) each."""
    q, k, v = normal(rng, 3, plan.heads, width)
    return q, k / np.linalg.norm(k, axis=-1, keepdims=True), v


# What happens to one token. All three change what they keep, where it lies.


def attend_cached(token, rooms, T):
    """Write a key and a value behind T others, and return the heads, (H, 1, d_v)."""
    q, k, v = token
    for room, row in zip(rooms, (k, v), strict=True):
        room[:, T] = row
    return in_pages(q[:, None], *(room[:, : T + 1] for room in rooms))


def linear_step(token, state):
    """Add a key and its value to a state, (H, d_k, d_v), and return the heads."""
    q, k, v = token
    state += k[:, :, None] * v[:, None, :]
    return q[:, None] @ state


def delta_step(token, state, *, decay=1.0):
    """Let a state fade, write a value over what its key reads, and return the heads."""
    q, k, v = token
    state *= decay
    state += k[:, :, None] * (v[:, None] - k[:, None] @ state)
    return q[:, None] @ state


def measure_width(plan, width):
    """Time one token with a cache of each length and with both states."""
    rng = np.random.default_rng(SEED)
    token, room = sample_token(rng, plan, width), plan.lengths[-1] + 1
    caches = [normal(rng, 2, plan.heads, room, width) for _ in range(plan.layers)]
    steps = [partial(attend_cached, token, rooms) for rooms in caches]
    calls = {T: measuring.round_robin(steps, T) for T in plan.lengths}
    for name, step in {"linear": linear_step, "delta": delta_step}.items():
        states = np.zeros((plan.layers, plan.heads, width, width), np.float32)
        calls[name] = measuring.round_robin([partial(step, token, state) for state in states])
    times_ms = measuring.time_in_rounds(calls, rounds=plan.rounds, title=f"width {width}")
    a_token, found = 2 * plan.heads * width * 4, {"cache": {}}  # bytes of a key and a value
    for T in plan.lengths:
        found["cache"][str(T)] = {
            "ms": measuring.summary(times_ms[T]),
            "mib": measuring.short(T * a_token / MIB),
            "over_linear": measuring.ratio(times_ms[T], times_ms["linear"]),
            "over_delta": measuring.ratio(times_ms[T], times_ms["delta"]),
        }
    mib = measuring.short(plan.heads * width * width * 4 / MIB)
    states = {name: measuring.summary(times_ms[name]) for name in ("linear", "delta")}
    return found | {name: {"ms": ms, "mib": mib} for name, ms in states.items()}


def measure_prompt(plan):
    """Time a prompt by linear attention in chunks, and by attention with a softmax."""
    rng, T = np.random.default_rng(SEED), plan.prompt
    Q, K, V = normal(rng, 3, plan.heads, T, plan.prompt_width)
    exact = linear_attention_parallel(*(A.astype(float) for A in (Q, K, V)))
    most = np.abs(exact).max()
    calls = {size: partial(chunked, Q, K, V, size=size) for size in plan.chunks}
    errors = {size: np.abs(call() - exact).max() / most for size, call in calls.items()}
    calls["softmax"] = partial(scaled_dot_product_attention, Q, K, V, mask=causal_mask(T))
    times_ms = measuring.time_in_rounds(calls, rounds=plan.few, title="prompt")
    chunks = {
        str(size): {
            "ms": measuring.summary(times_ms[size]),
            "over_softmax": measuring.ratio(times_ms[size], times_ms["softmax"]),
            "error": float(f"{errors[size]:.1e}"),
        }
        for size in plan.chunks
    }
    return {"T": T, "softmax": {"ms": measuring.summary(times_ms["softmax"])}, "chunks": chunks}


def main(plan, record):
    """Measure everything."""
    record |= {"plan": plan._asdict(), "widths": {}}
    for width in plan.widths:
        record["widths"][str(width)] = measure_width(plan, width)
    record["prefill"] = measure_prompt(plan)

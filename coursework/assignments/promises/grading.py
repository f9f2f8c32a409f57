"""One layer, promise by promise: shared keys, short rows, slopes, window, sink, padding, a ring."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Task
from tutorial_lib import Params, causal_mask, multi_head_attention

NO_WINDOW = 100_000


def _arrays(rng, *, B=3, T=7, H=4, G=4, d=(13, 5, 8, 11), R=0, short=True, scale=1.0, **given):
    """Arguments of a plain layer, but for what is given; `d` is d_model, d_k, r, d_v."""
    d_model, d_k, short_width, d_v = d
    r = short_width if short else d_model
    shapes = (H, d_model, d_k), (G, d_model, d_k), (d_model, r), (H, r, d_v), (H * d_v, d_model)
    W_Q, W_K, W_C, W_V, W_O = (rng.standard_normal(s) * 1.6 / np.sqrt(s[-2]) for s in shapes)
    plain = {
        "X": rng.standard_normal((B, T, d_model)),
        "kept_K": 1.6 * rng.standard_normal((B, G, R, d_k)),
        "kept_C": 1.6 * rng.standard_normal((B, R, r)),
        "seen": np.zeros(B, dtype=int),
        "pad": np.zeros(B, dtype=int),
        "W_Q": scale * W_Q,
        "W_K": W_K,
        "W_C": W_C if short else np.eye(d_model),
        "W_V": W_V,
        "W_O": W_O,
        "slopes": np.zeros(H),
        "sink": np.full(H, -np.inf),
        "window": NO_WINDOW,
    }
    return tuple((plain | given).values())


def cases(rng):
    """One promise at a time, then several; a layer that breaks one keeps the others' points.

    Sizes all differ, but where G = H or r = d_model, as in chapter 06.
    """

    def case(label, points, **given):
        given = {k: np.array(v) if isinstance(v, list) else v for k, v in given.items()}
        return Case(label, _arrays(rng, **given), points)

    slopes, sink = rng.uniform(0.1, 0.6, 6), rng.normal(1, 1, 6)
    some = np.where(np.arange(6) % 3 == 1, -np.inf, sink)
    shared = {"B": 5, "T": 8, "H": 6, "G": 2, "d": (13, 7, 13, 11)}
    many = {"B": 4, "H": 6, "G": 3, "d": (17, 7, 10, 11), "R": 14, "slopes": slopes, "sink": some}
    far, pads = [1004, 2019, 1517, 3022], [2, 3, 0, 1]
    return [
        case("the layer of chapter 06", 2, short=False),
        case("keys that heads share", 2, short=False, **shared),
        case("values from short rows", 1),
        case("slopes", 2, slopes=slopes[:4]),
        case("a window", 2, T=10, window=6),
        case("sinks, and heads without one", 2, H=6, G=6, sink=some),
        case("padding at the left", 2, pad=[2, 0, 4]),
        case("a ring that is not full", 2, R=10, seen=[5, 0, 3]),
        case("a ring that has wrapped around", 2, R=10, seen=[11, 26, 19], window=6),
        case("far into a sequence", 1, T=5, seen=far, window=8, **many),
        case("scores in the thousands", 1, scale=2000.0, sink=np.full(4, 900.0)),
        case("all together", 1, T=8, seen=[17, 4, 45, 0], pad=pads, window=5, **many),
    ]


def chapter(X, kept_K, kept_C, seen, pad, W_Q, W_K, W_C, W_V, W_O, slopes, sink, window):
    """Return what the layer of chapter 06 does, which keeps none of the promises."""
    return multi_head_attention(X, Params(W_Q, W_K, W_V, W_O), mask=causal_mask(X.shape[1]))


AXES = "sequence", "token", ""
ASSIGNMENT = Assignment((Task("layer", cases, chapter=chapter, axes=AXES),))

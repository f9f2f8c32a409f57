"""One layer, promise by promise: shared keys, short rows, slopes, window, sink, padding, a ring."""

from types import SimpleNamespace

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task

OF_THE_TEXTS = "X", "kept_K", "kept_C", "seen", "pad"
NAMES = (*OF_THE_TEXTS, "W_Q", "W_K", "W_C", "W_V", "W_O", "slopes", "sink", "window")
NO_WINDOW = 100_000


def _old(r):
    """The number of the token in each row of the ring, (B, R); below 0: none yet."""
    last = r.seen[:, None] - 1
    return last - (last - np.arange(r.kept_C.shape[-2])) % max(1, r.kept_C.shape[-2])


def _new(r):
    """The numbers of the new rows, (B, T); -1: padding."""
    return np.where(_is_padding(r), -1, _unpadded(r))


def _is_padding(r):
    return np.arange(r.X.shape[-2]) < r.pad[:, None]


def _unpadded(r):
    return (r.seen - r.pad)[:, None] + np.arange(r.X.shape[-2])


def _keys(r):
    return np.concatenate([r.kept_K, r.X[:, None] @ r.W_K], axis=-2)


def _shared(r):
    return np.repeat(r.keys, len(r.W_Q) // len(r.W_K), axis=-3)


def _numbers(r):
    return np.concatenate([r.old, r.new], axis=-1)


def _steps(r):
    """How many tokens back each row stands from each query, (B, T, S)."""
    return r.new[:, :, None] - r.numbers[:, None]


def _in_window(r):
    return r.steps < r.window


def _mask(r):
    """Who sees whom, (B, T, S)."""
    there = (r.numbers >= 0)[:, None] & (r.new >= 0)[:, :, None]
    return there & (r.steps >= 0) & r.in_window


def _scores(r):
    Q = r.X[:, None] @ r.W_Q
    return Q @ np.swapaxes(r.shared, -1, -2) / r.root


def _root(r):
    return np.sqrt(r.W_Q.shape[-1])


def _bias(r):
    return -r.slopes[:, None, None] * r.steps[:, None]


def _sinks(r):
    return r.sink[:, None, None]


def _weights(r):
    return _shares(r, np.where(r.mask[:, None], r.scores + r.bias, -np.inf), r.sinks)


def _shares(r, logits, sinks):
    top = np.maximum(logits.max(axis=-1, keepdims=True), sinks)
    top = np.where(np.isfinite(top), top, 0)
    powers = np.exp(logits - top)
    return _divided(powers, powers.sum(axis=-1, keepdims=True) + np.exp(sinks - top))


def _divided(powers, total):
    return powers / np.where(total == 0, 1, total)


def _values(r):
    C = np.concatenate([r.kept_C, r.X @ r.W_C], axis=-2)
    return C[:, None] @ r.W_V


def _out(r):
    heads = np.swapaxes(r.weights @ r.values, -3, -2)  # (B, T, H, d_v)
    return heads.reshape(*heads.shape[:-2], -1) @ r.W_O


STEPS = {  # each reads what those above it left
    "old": _old,
    "new": _new,
    "keys": _keys,
    "shared": _shared,
    "numbers": _numbers,
    "steps": _steps,
    "in_window": _in_window,
    "mask": _mask,
    "root": _root,
    "scores": _scores,
    "bias": _bias,
    "sinks": _sinks,
    "weights": _weights,
    "values": _values,
    "out": _out,
}


def _layer(given, **others):
    """The layer with some of its steps replaced."""
    r = SimpleNamespace(**dict(zip(NAMES, given, strict=True)))
    for name, step in STEPS.items():
        setattr(r, name, others.get(name, step)(r))
    return r.out


def _rows_back(r):
    """How many rows back each row stands, (1, T, S): right where rows are in order."""
    R, T = r.kept_C.shape[-2], r.X.shape[-2]
    return (np.arange(R, R + T)[:, None] - np.arange(R + T))[None]


def _is_old(r):
    """Which rows are of the ring, (S,)."""
    return np.arange(r.numbers.shape[-1]) < r.old.shape[-1]


def groups_in_turn(*given):
    return _layer(
        given, shared=lambda r: np.concatenate([r.keys] * (len(r.W_Q) // len(r.W_K)), axis=-3)
    )


def one_key_head(*given):
    return _layer(given, shared=lambda r: np.repeat(r.keys[:, :1], len(r.W_Q), axis=-3))


def values_by_group(*given):
    return _layer(
        given,
        values=lambda r: (
            np.concatenate([r.kept_C, r.X @ r.W_C], axis=-2)[:, None]
            @ r.W_V[np.arange(len(r.W_V)) * len(r.W_K) // len(r.W_V)]
        ),
    )


def root_of_d_model(*given):
    return _layer(given, root=lambda r: np.sqrt(r.X.shape[-1]))


def not_divided(*given):
    return _layer(given, root=lambda r: 1)


def looks_ahead(*given):
    return _layer(
        given, mask=lambda r: (r.numbers >= 0)[:, None] & (r.new >= 0)[:, :, None] & r.in_window
    )


def own_token_hidden(*given):
    return _layer(given, mask=lambda r: _mask(r) & (r.steps > 0))


def window_one_too_wide(*given):
    return _layer(given, in_window=lambda r: r.steps <= r.window)


def window_one_too_narrow(*given):
    return _layer(given, in_window=lambda r: r.steps < r.window - 1)


def window_left_out(*given):
    return _layer(given, in_window=lambda r: r.steps < NO_WINDOW)


def window_by_rows(*given):
    return _layer(given, in_window=lambda r: _rows_back(r) < r.window)


def kept_rows_escape_the_window(*given):
    return _layer(given, in_window=lambda r: (r.steps < r.window) | _is_old(r))


def slopes_added(*given):
    return _layer(given, bias=lambda r: -_bias(r))


def slopes_by_rows(*given):
    return _layer(given, bias=lambda r: -r.slopes[:, None, None] * _rows_back(r)[:, None])


def slopes_under_the_root(*given):
    return _layer(given, bias=lambda r: _bias(r) / r.root)


def slopes_of_groups(*given):
    return _layer(
        given,
        bias=lambda r: (
            -r.slopes[np.arange(len(r.slopes)) * len(r.W_K) // len(r.slopes), None, None]
            * r.steps[:, None]
        ),
    )


def slopes_by_place(*given):
    return _layer(given, bias=lambda r: r.slopes[:, None, None] * r.numbers[:, None, None, :])


def slope_one_for_all(*given):
    return _layer(given, bias=lambda r: -r.slopes[0] * r.steps[:, None])


def sink_left_out(*given):
    return _layer(given, sinks=lambda r: np.full((len(r.sink), 1, 1), -np.inf))


def sink_as_a_gate(*given):
    return _layer(
        given,
        weights=lambda r: (
            _shares(
                r,
                np.where(r.mask[:, None], r.scores + r.bias, -np.inf),
                np.full((len(r.sink), 1, 1), -np.inf),
            )
            / (1 + np.exp(_sinks(r)))
        ),
    )


def sink_of_the_first_head(*given):
    return _layer(given, sinks=lambda r: r.sink[:1, None, None])


def sink_divided(*given):
    return _layer(given, sinks=lambda r: _sinks(r) / r.root)


def _not_shifted(r):
    powers = np.exp(np.where(r.mask[:, None], r.scores + r.bias, -np.inf))
    return _divided(powers, powers.sum(axis=-1, keepdims=True) + np.exp(_sinks(r)))


def overflow(*given):
    return _layer(given, weights=lambda r: _not_shifted(r))


def hidden_after_the_softmax(*given):
    return _layer(given, weights=lambda r: _shares(r, r.scores + r.bias, r.sinks) * r.mask[:, None])


def hidden_row_averages(*given):
    return _layer(
        given,
        weights=lambda r: _shares(r, np.where(r.mask[:, None], r.scores + r.bias, -1e9), r.sinks),
    )


def _padding_seen(r):
    numbers = np.concatenate([r.old, _unpadded(r)], axis=-1)
    steps = r.new[:, :, None] - numbers[:, None]
    there = np.concatenate([r.old >= 0, np.ones_like(r.new, dtype=bool)], axis=-1)
    return there[:, None] & (r.new >= 0)[:, :, None] & (steps >= 0) & (steps < r.window)


def padding_is_seen(*given):
    return _layer(given, mask=lambda r: _padding_seen(r))


def _padding_looking(r):
    steps = _unpadded(r)[:, :, None] - r.numbers[:, None]
    return (r.numbers >= 0)[:, None] & (steps >= 0) & (steps < r.window)


def padding_looks(*given):
    return _layer(given, mask=lambda r: _padding_looking(r))


def padding_at_the_right(*given):
    return _layer(
        given,
        new=lambda r: np.where(
            _is_padding(r)[:, ::-1], -1, r.seen[:, None] + np.arange(r.X.shape[-2])
        ),
    )


def padding_is_counted(*given):
    return _layer(
        given,
        new=lambda r: np.where(_is_padding(r), -1, r.seen[:, None] + np.arange(r.X.shape[-2])),
    )


def padding_of_the_first_text(*given):
    return _layer(
        given,
        new=lambda r: np.where(
            np.arange(r.X.shape[-2]) < r.pad[0],
            -1,
            r.seen[:, None] - r.pad[0] + np.arange(r.X.shape[-2]),
        ),
    )


def _old_like_the_first(r):
    r.seen = np.full_like(r.seen, r.seen[0])
    return _old(r)


def seen_of_the_first_text(*given):
    return _layer(given, old=lambda r: _old_like_the_first(r))


def ring_oldest_first(*given):
    return _layer(
        given, old=lambda r: r.seen[:, None] - r.kept_C.shape[-2] + np.arange(r.kept_C.shape[-2])
    )


def _old_by(r, last):
    R = r.kept_C.shape[-2]
    return last - (last - np.arange(R)) % max(1, R)


def ring_one_further(*given):
    return _layer(given, old=lambda r: _old_by(r, r.seen[:, None]))


def ring_of_this_round(*given):
    return _layer(
        given,
        old=lambda r: (
            (r.seen[:, None] - 1) // max(1, r.kept_C.shape[-2]) * r.kept_C.shape[-2]
            + np.arange(r.kept_C.shape[-2])
        ),
    )


def ring_of_the_first_round(*given):
    return _layer(
        given,
        old=lambda r: np.where(
            np.arange(r.kept_C.shape[-2]) < r.seen[:, None], np.arange(r.kept_C.shape[-2]), -1
        ),
    )


def empty_rows_are_seen(*given):
    return _layer(
        given,
        mask=lambda r: (
            (_is_old(r) | (r.numbers >= 0))[:, None]
            & (r.new >= 0)[:, :, None]
            & (r.steps >= 0)
            & r.in_window
        ),
    )


def kept_forgotten(*given):
    return _layer(given, mask=lambda r: _mask(r) & ~_is_old(r))


def new_tokens_blind(*given):
    return _layer(given, mask=lambda r: _mask(r) & (_is_old(r) | (r.steps == 0)))


def queries_counted_from_0(*given):
    return _layer(
        given, new=lambda r: np.where(_is_padding(r), -1, np.arange(r.X.shape[-2]) - r.pad[:, None])
    )


def heads_not_swapped(*given):
    return _layer(given, out=lambda r: (r.weights @ r.values).reshape(*r.X.shape[:-1], -1) @ r.W_O)


PROMISES = (
    Mistake(
        "groups_in_turn",
        "head h uses key head h % G: the heads of a group are not neighbours",
        "Head h uses key head h // (H/G); np.repeat deals them out like that.",
        groups_in_turn,
    ),
    Mistake(
        "one_key_head",
        "all heads use key head 0",
        "Head h uses key head h // (H/G).",
        one_key_head,
    ),
    Mistake(
        "values_by_group",
        "values are made by W_V of the group's number, as keys are",
        "Keys are shared, values are not: head h has W_V[h] for itself.",
        values_by_group,
    ),
    Mistake(
        "root_of_d_model",
        "the scores are divided by √d_model",
        "A score is a sum of d_k products: divide by √d_k.",
        root_of_d_model,
    ),
    Mistake(
        "not_divided",
        "the scores are not divided by √d_k",
        "Divide by √d_k before the slopes are taken away.",
        not_divided,
    ),
    Mistake(
        "looks_ahead",
        "new tokens see those that stand behind them",
        "A query sees tokens up to its own number.",
        looks_ahead,
    ),
    Mistake(
        "own_token_hidden",
        "a token does not see itself",
        "Its own number counts: distances from 0.",
        own_token_hidden,
    ),
    Mistake(
        "window_one_too_wide",
        "the window holds one token too many",
        "`window` tokens with the own one: distances below window.",
        window_one_too_wide,
    ),
    Mistake(
        "window_one_too_narrow",
        "the window holds one token too few",
        "`window` tokens with the own one: distances below window.",
        window_one_too_narrow,
    ),
    Mistake(
        "window_left_out",
        "all tokens are seen, however far back",
        "Hide what is `window` tokens back, or more.",
        window_left_out,
    ),
    Mistake(
        "window_by_rows",
        "the window counts rows, not tokens",
        "Compare numbers: a row of the ring may hold any of them.",
        window_by_rows,
    ),
    Mistake(
        "kept_rows_escape_the_window",
        "the window holds for new tokens alone, and all kept ones are seen",
        "The ring may hold more than the window does: ask for the distance there, too.",
        kept_rows_escape_the_window,
    ),
    Mistake(
        "slopes_added",
        "what is far away is preferred: the slopes have the wrong sign",
        "Take slope times distance away from the score.",
        slopes_added,
    ),
    Mistake(
        "slopes_by_rows",
        "distances are counted in rows, not in tokens",
        "Subtract numbers: a row of the ring may hold any of them.",
        slopes_by_rows,
    ),
    Mistake(
        "slopes_under_the_root",
        "slope times distance is divided by √d_k, too",
        "Divide the product of query and key first.",
        slopes_under_the_root,
    ),
    Mistake(
        "slopes_of_groups",
        "a head has the slope of its group's number",
        "Each head has a slope of its own: slopes[h].",
        slopes_of_groups,
    ),
    Mistake(
        "slopes_by_place",
        "slope times the number of the key is added: the sink does not move along",
        "The sink has no place, so the scores must be those of distances.",
        slopes_by_place,
    ),
    Mistake(
        "slope_one_for_all",
        "all heads have the slope of head 0",
        "Each head has a slope of its own: slopes[:, None, None].",
        slope_one_for_all,
    ),
    Mistake(
        "sink_left_out",
        "the sink takes nothing",
        "exp(sink) is one more summand below the line.",
        sink_left_out,
    ),
    Mistake(
        "sink_as_a_gate",
        "the sink takes the same share of every query",
        "It competes with the scores: one more summand below the line.",
        sink_as_a_gate,
    ),
    Mistake(
        "sink_of_the_first_head",
        "all heads have the sink of head 0",
        "Each head has a sink of its own: sink[:, None, None].",
        sink_of_the_first_head,
    ),
    Mistake(
        "sink_divided",
        "the sink is divided by √d_k",
        "It is a score as it stands.",
        sink_divided,
    ),
    Mistake(
        "overflow",
        "large scores overflow",
        "Subtract the largest of the row, the sink included, before you exponentiate.",
        overflow,
    ),
    Mistake(
        "hidden_after_the_softmax",
        "hidden tokens take a share that is then thrown away",
        "Put -inf in place of hidden scores before the softmax.",
        hidden_after_the_softmax,
    ),
    Mistake(
        "hidden_row_averages",
        "a row of padding averages over everything that is hidden from it",
        "Where nothing is seen the heads give 0.",
        hidden_row_averages,
    ),
    Mistake(
        "padding_is_seen",
        "rows of padding are looked at",
        "They are no tokens: hide them from everybody.",
        padding_is_seen,
    ),
    Mistake(
        "padding_looks",
        "rows of padding look at kept tokens",
        "A row of padding sees nothing, and Y is 0 there.",
        padding_looks,
    ),
    Mistake(
        "padding_at_the_right",
        "the last rows are taken for padding",
        "The first pad[n] rows are none.",
        padding_at_the_right,
    ),
    Mistake(
        "padding_is_counted",
        "the first new token has a number too large by the padding",
        "Row i has the number seen + i − pad.",
        padding_is_counted,
    ),
    Mistake(
        "padding_of_the_first_text",
        "all texts are padded like the first",
        "pad[n] is that of text n: pad[:, None].",
        padding_of_the_first_text,
    ),
    Mistake(
        "seen_of_the_first_text",
        "all texts are as long as the first",
        "seen[n] is that of text n: seen[:, None].",
        seen_of_the_first_text,
    ),
    Mistake(
        "ring_oldest_first",
        "the rows of the ring are taken for the last R tokens in their order",
        "Token s stands in row s % R.",
        ring_oldest_first,
    ),
    Mistake(
        "ring_one_further",
        "the token in the row that is written next has the number of the first new one",
        "The newest token in the ring is seen − 1.",
        ring_one_further,
    ),
    Mistake(
        "ring_of_this_round",
        "all rows are taken for tokens of the round that is being written",
        "Rows that this round has not reached hold tokens of the round before: R fewer.",
        ring_of_this_round,
    ),
    Mistake(
        "ring_of_the_first_round",
        "row i of the ring is taken for token i",
        "Once the ring has gone round, row i holds token i + R, i + 2R, …: the newest of them.",
        ring_of_the_first_round,
    ),
    Mistake(
        "empty_rows_are_seen",
        "rows of the ring that were never written are looked at",
        "Their numbers are below 0: hide them.",
        empty_rows_are_seen,
    ),
    Mistake(
        "kept_forgotten",
        "kept rows are not looked at",
        "Put kept and new keys, and kept and new short rows, side by side.",
        kept_forgotten,
    ),
    Mistake(
        "new_tokens_blind",
        "a new token sees kept ones and itself, but no other new one",
        "New tokens see those before them, too.",
        new_tokens_blind,
    ),
    Mistake(
        "queries_counted_from_0",
        "new tokens are counted from 0, whatever the text has had before",
        "The first new token has the number seen.",
        queries_counted_from_0,
    ),
    Mistake(
        "heads_not_swapped",
        "the heads are reshaped without moving the axis of tokens in front of them",
        "(B, H, T, d_v) becomes (B, T, H, d_v) first: concat_heads does it.",
        heads_not_swapped,
    ),
)


def _arrays(rng, *, B=2, T=6, H=4, G=4, d=(12, 5, 4, 7), R=0, short=True, scale=1.0, **given):
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


def cases_of_promises(rng):
    """One promise at a time, then several; a layer that breaks one keeps the others' points."""

    def case(label, points, **given):
        given = {k: np.array(v) if isinstance(v, list) else v for k, v in given.items()}
        return Case(label, _arrays(rng, **given), points)

    slopes, sink = rng.uniform(0.1, 0.6, 6), rng.normal(1, 1, 6)
    some = np.where(np.arange(6) % 3 == 1, -np.inf, sink)
    many = {"H": 6, "G": 3, "d": (15, 4, 5, 3), "slopes": slopes, "sink": some}
    return [
        case("the layer of chapter 06", 2, short=False),
        case("key heads that are shared", 2, H=6, G=2, short=False),
        case("values from short rows", 1, B=3, T=5),
        case("slopes", 2, slopes=slopes[:4]),
        case("a window", 2, T=9, window=4),
        case("sinks, and heads without one", 2, H=6, G=6, sink=some),
        case("padding at the left", 2, B=3, T=7, pad=[2, 0, 4]),
        case("a ring that is not full", 2, B=3, T=4, R=7, seen=[5, 0, 3]),
        case("a ring that has gone round", 2, B=3, T=3, R=5, seen=[6, 13, 9], window=4),
        case("far into a text", 1, T=5, R=7, seen=[1004, 2019], window=6, **many),
        case("scores in the thousands", 1, scale=2000.0, sink=np.full(4, 900.0)),
        case(
            "all together",
            1,
            B=4,
            T=7,
            R=8,
            seen=[11, 4, 30, 0],
            pad=[2, 3, 0, 1],
            window=5,
            **many,
        ),
    ]


ASSIGNMENT = Assignment((Task("layer", cases_of_promises, PROMISES),))

"""Wrong forms of the task of Part III's review, from a card to a step, arrow by arrow."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rotate


def _places(kept, T):
    return kept[2] + np.arange(T)


def _turned(Q, k, v, places, rates):
    return rotate(Q, places, rates), rotate(k, places, rates), v


def _longer(kept, k, v):
    return [np.concatenate(pair, axis=-2) for pair in zip(kept[:2], (k, v), strict=True)]


def _real(T, S, place):
    """Which keys are no padding, (1, S) or (B, 1, 1, S)."""
    return (place + np.arange(T - S, T) >= 0)[..., None, :]


def _seen(T, S, place, window):
    return window_mask(T, S, window) & _real(T, S, place)


def _shared(rows, H):
    return np.repeat(rows, H // rows.shape[-3], axis=-3)


def _weights(scores, sink, seen):
    return attention_with_sink(scores, sink, mask=seen)


def _out(heads, params):
    return concat_heads(heads) @ params.W_O


def _last(K, V, place, window):
    first = max(0, K.shape[-2] - window + 1)
    return K[..., first:, :], V[..., first:, :], place


_RIGHT = {
    "places": _places,
    "turned": _turned,
    "longer": _longer,
    "shared": _shared,
    "scores": lambda Q, K, params: attention_scores(Q, K),
    "seen": _seen,
    "weights": _weights,
    "out": _out,
    "last": _last,
}


def step_of(**wrong):
    """Return `step_by_card(X, params, card, kept)`, right but for the parts that are given.

    Parameters
    ----------
    wrong : functions, by the names of the parts
    """
    part = _RIGHT | wrong

    def step_by_card(X, params, card, kept):
        T, H, window = X.shape[-2], len(params.W_Q), card["window"]
        new = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        Q, k, v = part["turned"](*new, part["places"](kept, T), card["rates"])
        K, V = part["longer"](kept, k, v)
        scores = part["scores"](Q, part["shared"](K, H), params)
        seen = part["seen"](T, K.shape[-2], kept[2], window)
        heads = part["weights"](scores, card["sink"], seen) @ part["shared"](V, H)
        return part["out"](heads, params), part["last"](K, V, kept[2] + T, window)

    return step_by_card


def _wrong(name, says, mend, **parts):
    return Mistake(name, says, mend, step_of(**parts))


def _window_of(change):
    def seen(T, S, place, window):
        too_far = np.tri(T, S, k=S - T - change(window), dtype=bool)
        return causal_mask(T, S) & ~too_far & _real(T, S, place)

    return seen


def _both_ways(T, S, place, window):
    too_far = np.tri(T, S, k=S - T - window, dtype=bool)
    return ~too_far & _real(T, S, place)


def _first_corner(T, S, place, window):
    rows, columns = np.arange(T)[:, None], np.arange(S)
    return (columns <= rows) & (columns > rows - window) & _real(T, S, place)


def _turned_twice(X, params, card, kept):
    """Turn all keys in each step, as if none of the kept had been turned."""

    def longer(kept, k, v):
        K, V = _longer(kept, k, v)
        S, T = K.shape[-2], k.shape[-2]
        return rotate(K, kept[2] + np.arange(T - S, T), card["rates"]), V

    return step_of(turned=_queries_alone, longer=longer)(X, params, card, kept)


def _queries_alone(Q, k, v, places, rates):
    return rotate(Q, places, rates), k, v


def _tiled(rows, H):
    return np.concatenate([rows] * (H // rows.shape[-3]), axis=-3)


def _scaled_by(width):
    def scores(Q, K, params):
        return Q @ np.swapaxes(K, -1, -2) / np.sqrt(width(params))

    return scores


def _powers(scores, sink, seen, *, top):
    """The powers of what is seen and of the sink, each row's `top` taken away first."""
    visible = np.where(seen, scores, -np.inf)
    top = top(visible, sink[:, None, None])
    return np.exp(visible - top), np.exp(sink[:, None, None] - top)


def _largest(visible, sink):
    return np.maximum(visible.max(axis=-1, keepdims=True), sink)


def _no_shift(scores, sink, seen):
    powers, rest = _powers(scores, sink, seen, top=lambda visible, sink: 0)
    return powers / (powers.sum(axis=-1, keepdims=True) + rest)


def _sink_twice(scores, sink, seen):
    powers, rest = _powers(scores, sink, seen, top=_largest)
    parts = 1 + (scores.shape[-1] > scores.shape[-2])  # kept and new
    return powers / (powers.sum(axis=-1, keepdims=True) + parts * rest)


def _sink_of_each_key(scores, sink, seen):
    powers, rest = _powers(scores, sink, seen, top=_largest)
    return powers / (powers + rest).sum(axis=-1, keepdims=True)


def _no_exponent(scores, sink, seen):
    powers, _ = _powers(scores, sink, seen, top=_largest)
    top = _largest(np.where(seen, scores, -np.inf), sink[:, None, None])
    return powers / (powers.sum(axis=-1, keepdims=True) + sink[:, None, None] * np.exp(-top))


def _no_sink(scores, sink, seen):
    return attention_weights(scores, mask=np.broadcast_to(seen, scores.shape))


_PLACES = (
    _wrong(
        "places_restart",
        "the places begin at 0 again with each piece",
        "The first new token has the place that kept holds.",
        places=lambda kept, T: np.arange(T),
    ),
    _wrong(
        "length_for_place",
        "it takes the number of kept keys for the place of the next token",
        "The window throws keys out, so fewer are kept than were read: use the place in kept.",
        places=lambda kept, T: kept[0].shape[-2] + np.arange(T),
    ),
    _wrong(
        "place_stands_still",
        "the place of the next token is handed on as it was",
        "T tokens have been read: hand on place + T.",
        last=lambda K, V, place, window: _last(K, V, place - 1, window),
    ),
)
_TURNS = (
    Mistake(
        "turned_twice",
        "keys that were kept turned are turned again",
        "A key is turned once, when it comes; turn the new ones before they join the kept.",
        _turned_twice,
    ),
    _wrong(
        "keys_not_turned",
        "the keys are not turned",
        "Turn the new keys by their places, as the queries.",
        turned=_queries_alone,
    ),
    _wrong(
        "queries_not_turned",
        "the queries are not turned",
        "Turn the queries by their places, as the keys.",
        turned=lambda Q, k, v, places, rates: (Q, rotate(k, places, rates), v),
    ),
    _wrong(
        "values_turned",
        "the values are turned too",
        "A place belongs into the scores alone: turn queries and keys.",
        turned=lambda Q, k, v, places, rates: tuple(rotate(A, places, rates) for A in (Q, k, v)),
    ),
    _wrong(
        "halves_for_neighbours",
        "the pairs are number i and number i + n, where they are neighbours",
        "Numbers 2i and 2i + 1 turn together: rotate without half=True.",
        turned=lambda Q, k, v, places, rates: (
            rotate(Q, places, rates, half=True),
            rotate(k, places, rates, half=True),
            v,
        ),
    ),
)
_WINDOW = (
    _wrong(
        "one_key_more",
        "the window has one key more than the card says",
        "A window of w keys holds the token itself and w - 1 before it: distance < w.",
        seen=_window_of(lambda window: window + 1),
    ),
    _wrong(
        "one_key_fewer",
        "the window has one key fewer than the card says",
        "A window of w keys holds the token itself and w - 1 before it: distance < w.",
        seen=_window_of(lambda window: window - 1),
    ),
    _wrong(
        "no_window",
        "a token sees all that is there, and not the window alone",
        "In a piece, and after kept keys, there are more than w of them: mask those too far back.",
        seen=_window_of(lambda window: 1000),
    ),
    _wrong(
        "sees_ahead",
        "tokens of a piece look at those after them",
        "The window ends with the token itself: no key after it.",
        seen=_both_ways,
    ),
    _wrong(
        "first_corner",
        "the mask begins in the first corner, as if nothing had been kept",
        "The T queries are the last of S tokens: the diagonal ends in the last corner.",
        seen=_first_corner,
    ),
    _wrong(
        "padding_seen",
        "padding is looked at",
        "A token whose place is below 0 is padding: hide its key.",
        seen=lambda T, S, place, window: window_mask(T, S, window),
    ),
)
_GROUPS = (
    _wrong(
        "tiled",
        "the key heads are tiled: head 1 gets the second key head, and so on in turn",
        "Heads of a group are neighbours: np.repeat(K, H // G, axis=-3).",
        shared=_tiled,
    ),
    _wrong(
        "first_key_head_alone",
        "all heads look at the first key head",
        "Head h looks at key head h // (H / G).",
        shared=lambda rows, H: np.repeat(rows[..., :1, :, :], H, axis=-3),
    ),
)
_SCALE = (
    _wrong(
        "not_scaled",
        "the scores are not divided by the root of d_k",
        "Divide by np.sqrt(d_k), the width of a query.",
        scores=_scaled_by(lambda params: 1),
    ),
    _wrong(
        "width_by_division",
        "the scores are divided by the root of d_model / H, and a head is not that wide here",
        "Take the width from the query: Q.shape[-1].",
        scores=_scaled_by(lambda params: params.d_model / params.n_heads),
    ),
    _wrong(
        "width_of_values",
        "the scores are divided by the root of d_v",
        "A dot product of query and key adds up d_k products: divide by its root.",
        scores=_scaled_by(lambda params: params.d_v),
    ),
)
_SINK = (
    _wrong(
        "no_sink",
        "there is no sink: the weights of each row sum to 1",
        "Add e to the sink to the sum that divides the powers of a row.",
        weights=_no_sink,
    ),
    _wrong(
        "sink_twice",
        "the sink is counted for the kept keys and again for the new ones",
        "It stands once in each row's sum.",
        weights=_sink_twice,
    ),
    _wrong(
        "sink_of_each_key",
        "the sink is counted once for each key",
        "It stands once in each row's sum, after all keys.",
        weights=_sink_of_each_key,
    ),
    _wrong(
        "sink_is_no_power",
        "the sink itself is added to the sum of the powers",
        "The sink is a score: add e to the sink.",
        weights=_no_exponent,
    ),
    _wrong(
        "sink_of_head_0",
        "all heads have the sink of head 0",
        "sink[h] belongs to head h: give it two axes behind, for queries and keys.",
        weights=lambda scores, sink, seen: _weights(scores, np.full_like(sink, sink[0]), seen),
    ),
    _wrong(
        "overflows",
        "where scores are large, powers of e overflow",
        "Take the largest of a row's scores and the sink away first.",
        weights=_no_shift,
    ),
)
_KEPT = (
    _wrong(
        "kept_unused",
        "new tokens look at those of their own piece alone",
        "Put the kept keys and values in front of the new ones.",
        longer=lambda kept, k, v: [k, v],
    ),
    _wrong(
        "new_in_front",
        "the new keys stand in front of the kept ones",
        "Old tokens come first: np.concatenate([K, k], axis=-2).",
        longer=lambda kept, k, v: [
            np.concatenate(pair, axis=-2) for pair in zip((k, v), kept[:2], strict=True)
        ],
    ),
    _wrong(
        "nothing_thrown_out",
        "more is handed on than the window needs",
        "Hand on the last w - 1 tokens: no later token sees more.",
        last=lambda K, V, place, window: (K, V, place),
    ),
    _wrong(
        "one_row_more",
        "w tokens are handed on, and the next token sees w - 1 beside itself",
        "Hand on the last w - 1 tokens: no later token sees more.",
        last=lambda K, V, place, window: (K[..., -window:, :], V[..., -window:, :], place),
    ),
    _wrong(
        "cut_at_minus_0",
        "with a window of 1 everything is handed on: a slice from -0 begins at 0",
        "Count from the front: max(0, S - w + 1).",
        last=lambda K, V, place, window: (*(A[..., 1 - window :, :] for A in (K, V)), place),
    ),
    _wrong(
        "first_tokens_kept",
        "the first tokens are handed on, not the last",
        "The window moves on: hand on the last w - 1 tokens.",
        last=lambda K, V, place, window: (*(A[..., : window - 1, :] for A in (K, V)), place),
    ),
)
_OUT = (
    _wrong(
        "joined_without_a_swap",
        "the heads are joined by a reshape without a swap, so that rows mix tokens",
        "Swap heads and tokens before you merge: concat_heads does both.",
        out=lambda heads, params: (
            heads.reshape(*heads.shape[:-3], heads.shape[-2], -1) @ params.W_O
        ),
    ),
)

_STEP_BY_CARD = (
    *_PLACES,
    *_TURNS,
    *_WINDOW,
    *_GROUPS,
    *_SCALE,
    *_SINK,
    *_KEPT,
    *_OUT,
)

MISTAKES = {
    "step_by_card": _STEP_BY_CARD,
}

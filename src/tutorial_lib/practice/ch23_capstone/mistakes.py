"""Wrong layers of chapter 23, each right but for one arrow, and wrong forms of its exercises."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.floor import above_floor
from tutorial_lib.practice.ch23_capstone.claims import CLAIMS
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rotate


def _places(kept, T):
    return kept.positions(T)[..., None, :]


def _turned(Q, K, V, places, rates):
    return rotate(Q, places, rates), rotate(K, places, rates), V


def _seen(kept, T, window):
    S = kept.length + T
    return kept.mask(T) & window_mask(T, S, S if window is None else window)


def _shared(Z, H):
    return np.repeat(Z, H // Z.shape[-3], axis=-3)


def _weights(scores, sink, seen):
    return attention_with_sink(scores, sink, mask=seen)


_RIGHT = {
    "places": _places,
    "turned": _turned,
    "longer": lambda kept, K, V: kept.append(K, V),
    "seen": _seen,
    "shared": _shared,
    "scores": lambda Q, K, params: attention_scores(Q, K),
    "weights": _weights,
    "out": lambda heads, params: concat_heads(heads) @ params.W_O,
    "returned": lambda Y, now, cache: (Y, now if cache else None),
}


def layer_of(**wrong):
    """Return `attention` of chapter 23, right but for the parts that are given.

    Parameters
    ----------
    wrong : functions, by the names of the parts
    """
    part = _RIGHT | wrong

    def attention(X, params, *, sink=-np.inf, cache=None, **options):
        rates, window = (options.get(name) for name in ("rates", "window"))
        T, H = X.shape[-2], len(params.W_Q)
        kept = cache or KVCache.empty(params, T, batch=X.shape[:-2])
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        if rates is not None:
            Q, K, V = part["turned"](Q, K, V, part["places"](kept, T), rates)
        now = part["longer"](kept, K, V)
        keys, values = (part["shared"](Z, H) for Z in (now.K, now.V))
        scores, seen = part["scores"](Q, keys, params), part["seen"](kept, T, window)
        heads = part["weights"](scores, np.full(H, sink), seen) @ values
        return part["returned"](part["out"](heads, params), now, cache)

    return attention


def _wrong(name, says, mend, **parts):
    return Mistake(name, says, mend, layer_of(**parts))


def _ahead(kept, T, window):
    S = kept.length + T
    return np.tri(T, S, k=S - T + 1, dtype=bool)


def _beside(kept, T, window):
    """A window to both sides, once there is one."""
    seen, S = kept.mask(T), kept.length + T
    if window is None:
        return seen
    distances = np.arange(S - T, S)[:, None] - np.arange(S)
    return np.abs(distances) < window


def _of(change):
    """The window with another number of keys."""

    def seen(kept, T, window):
        return _seen(kept, T, None if window is None else max(1, change(window)))

    return seen


def _first_corner(kept, T, window):
    S = kept.length + T
    rows, columns = np.arange(T)[:, None], np.arange(S)
    return (columns <= rows) & (columns > rows - (window or S))


def _after(scores, sink, seen):
    """Weights of all keys; those that are hidden are put to 0 afterwards."""
    return attention_with_sink(scores, sink) * seen


def _over_queries(scores, sink, seen):
    powers = np.exp(np.where(seen, scores, -np.inf))
    return powers / np.maximum(powers.sum(axis=-2, keepdims=True), 1e-300)


def _itself_hidden(kept, T, window):
    S = kept.length + T
    return _seen(kept, T, window) & np.tri(T, S, k=S - T - 1, dtype=bool)


def _powers(scores, sink, seen, *, top=True):
    visible, sink = np.where(seen, scores, -np.inf), sink[:, None, None]
    most = np.maximum(visible.max(axis=-1, keepdims=True), sink) if top else 0
    return np.exp(visible - most), np.exp(sink - most), most, sink


def _no_shift(scores, sink, seen):
    powers, rest, *_ = _powers(scores, sink, seen, top=False)
    return powers / (powers.sum(axis=-1, keepdims=True) + rest)


def _no_exponent(scores, sink, seen):
    powers, _, most, sink = _powers(scores, sink, seen)
    taken = np.where(sink > -np.inf, sink, 0) * np.exp(-most)
    return powers / (powers.sum(axis=-1, keepdims=True) + taken)


def _of_each_key(scores, sink, seen):
    powers, rest, *_ = _powers(scores, sink, seen)
    return powers / (powers + rest * seen).sum(axis=-1, keepdims=True)


def _bare(scores, sink, seen):
    """A softmax with one more column that brings NaN where the sink is minus infinity."""
    top = sink[:, None, None]
    powers = np.exp(np.where(seen, scores, -np.inf) - top)
    return powers / (powers.sum(axis=-1, keepdims=True) + 1)


def _by(width):
    def scores(Q, K, params):
        return Q @ np.swapaxes(K, -1, -2) / np.sqrt(width(params))

    return scores


def _all(kept, T, window):
    return np.ones((T, kept.length + T), dtype=bool)


def _upside_down(kept, T, window):
    return ~_seen(kept, T, window)


_LEAKS = (
    _wrong(
        "no_mask",
        "nothing is hidden, so each token looks at those after it too",
        "Let the layer be causal always: kept.mask(T), or causal_mask(T, S).",
        seen=_all,
    ),
    _wrong(
        "upside_down",
        "the mask is upside down: it hides what a token may see",
        "True = may look: the lower triangle is True.",
        seen=_upside_down,
    ),
    _wrong(
        "one_ahead",
        "each token sees one key too far, the one after it",
        "The diagonal itself is the last that a query sees: causal_mask(T, S).",
        seen=_ahead,
    ),
    _wrong(
        "hidden_after_softmax",
        "hidden keys are put to 0 after the softmax, whose sum has counted them",
        "Put -inf in place of hidden scores, before the softmax.",
        weights=_after,
    ),
    _wrong(
        "window_beside",
        "a window reaches as far ahead as it reaches back",
        "A window is a causal mask less what lies too far back: both conditions hold.",
        seen=_beside,
    ),
)
_PLAIN = (
    _wrong(
        "not_scaled",
        "the scores are not divided by the root of d_k",
        "Divide by np.sqrt(d_k), or take attention_scores.",
        scores=_by(lambda params: 1),
    ),
    _wrong(
        "width_by_division",
        "the scores are divided by the root of d_model / H, and a head is not that wide here",
        "Take the width from the query: Q.shape[-1].",
        scores=_by(lambda params: params.d_model / len(params.W_Q)),
    ),
    _wrong(
        "softmax_over_queries",
        "the softmax runs over the queries: columns sum to 1 instead of rows",
        "Sum over the keys, axis=-1: each query shares out its attention.",
        weights=_over_queries,
    ),
    _wrong(
        "itself_hidden",
        "no token looks at itself",
        "A token sees all before it and itself: the diagonal is True.",
        seen=_itself_hidden,
    ),
    _wrong(
        "joined_without_a_swap",
        "the heads are joined by a reshape without a swap, so that rows mix tokens",
        "Swap heads and tokens before you merge: concat_heads does both.",
        out=lambda heads, params: (
            heads.reshape(*heads.shape[:-3], heads.shape[-2], -1) @ params.W_O
        ),
    ),
)
_GROUPS = (
    _wrong(
        "tiled",
        "the key heads are tiled: head 1 gets the second key head, and so on in turn",
        "Heads of a group are neighbours: np.repeat(K, H // G, axis=-3).",
        shared=lambda Z, H: np.concatenate([Z] * (H // Z.shape[-3]), axis=-3),
    ),
    _wrong(
        "first_key_head_alone",
        "heads with fewer key heads all look at the first of them",
        "Head h looks at key head h // (H / G).",
        shared=lambda Z, H: Z if Z.shape[-3] == H else np.repeat(Z[..., :1, :, :], H, axis=-3),
    ),
)
_TURNS = (
    _wrong(
        "not_turned",
        "the rates are not used",
        "Turn queries and keys: rotate(Q, places, rates).",
        turned=lambda Q, K, V, places, rates: (Q, K, V),
    ),
    _wrong(
        "queries_alone",
        "the keys are not turned",
        "Turn the new keys by their places, as the queries.",
        turned=lambda Q, K, V, places, rates: (rotate(Q, places, rates), K, V),
    ),
    _wrong(
        "opposite_ways",
        "keys are turned the other way than queries",
        "Both turn the same way: then the score knows the difference of the places.",
        turned=lambda Q, K, V, places, rates: (
            rotate(Q, places, rates),
            rotate(K, places, -rates),
            V,
        ),
    ),
    _wrong(
        "values_turned",
        "the values are turned too",
        "A place belongs into the scores alone: turn queries and keys.",
        turned=lambda Q, K, V, places, rates: (
            *(rotate(Z, places, rates) for Z in (Q, K)),
            rotate(V[..., : 2 * len(rates)], places, rates)
            if V.shape[-1] == 2 * len(rates)
            else np.concatenate(
                [rotate(V[..., : 2 * len(rates)], places, rates), V[..., 2 * len(rates) :]], axis=-1
            ),
        ),
    ),
    _wrong(
        "halves_for_neighbours",
        "the pairs are number i and number i + n, where they are neighbours",
        "Numbers 2i and 2i + 1 turn together: rotate without half=True.",
        turned=lambda Q, K, V, places, rates: (
            *(rotate(Z, places, rates, half=True) for Z in (Q, K)),
            V,
        ),
    ),
)
_WINDOWS = (
    _wrong(
        "no_window",
        "the window is not used",
        "Hide what lies too far back: kept.mask(T) & window_mask(T, S, window).",
        seen=lambda kept, T, window: _seen(kept, T, None),
    ),
    _wrong(
        "one_key_more",
        "the window has one key more than it should",
        "A window of w keys holds the token itself and w - 1 before it: distance < w.",
        seen=_of(lambda window: window + 1),
    ),
    _wrong(
        "one_key_fewer",
        "the window has one key fewer than it should",
        "A window of w keys holds the token itself and w - 1 before it: distance < w.",
        seen=_of(lambda window: window - 1),
    ),
)
_SINKS = (
    _wrong(
        "no_sink",
        "the sink is not used: the weights of each row sum to 1",
        "Add e to the sink to the sum that divides the powers of a row.",
        weights=lambda scores, sink, seen: attention_weights(
            scores, mask=np.broadcast_to(seen, scores.shape)
        ),
    ),
    _wrong(
        "sink_is_no_power",
        "the sink itself is added to the sum of the powers",
        "The sink is a score: add e to the sink.",
        weights=_no_exponent,
    ),
    _wrong(
        "sink_of_each_key",
        "the sink is counted once for each key",
        "It stands once in each row's sum, after all keys.",
        weights=_of_each_key,
    ),
    _wrong(
        "sink_of_head_0",
        "all heads have the sink of head 0",
        "sink[h] belongs to head h: give it two axes behind, for queries and keys.",
        weights=lambda scores, sink, seen: _weights(scores, np.full_like(sink, sink[0]), seen),
    ),
)
_CACHES = (
    _wrong(
        "places_restart",
        "the places begin at 0 again with each piece",
        "The first new token stands behind those that were kept: kept.positions(T).",
        places=lambda kept, T: np.arange(T),
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
        "The cache knows what is padding: kept.mask(T) hides it.",
        seen=lambda kept, T, window: window_mask(
            T, kept.length + T, kept.length + T if window is None else window
        ),
    ),
    _wrong(
        "cache_as_it_was",
        "it hands back the cache that it was given, and not the longer one",
        "append returns a longer view: hand that one on.",
        returned=lambda Y, now, cache: (Y, cache),
    ),
)
_ATTENTION = (*_LEAKS, *_PLAIN, *_GROUPS, *_TURNS, *_WINDOWS, *_SINKS, *_CACHES)


def logits_of(model, ids, layer, *, residual=True, options=True):
    """Logits of a model whose layers are the reader's."""
    X = model.E[ids] + model.P[: ids.shape[-1]]
    for own in model.layers:
        Y, _ = layer(X, own.params, **(own.options if options else {}))
        X = X + Y if residual else Y
    return X @ model.U


def _nats(logits, documents):
    return above_floor(logits, documents).mean()


def nats_above(model, documents, layer):
    """The right one: the mean over all words."""
    return _nats(logits_of(model, documents.ids[:, :-1], layer), documents)


def _loss(model, documents, layer):
    return nats_above(model, documents, layer) + documents.surprise.mean()


def _no_residual(model, documents, layer):
    return _nats(logits_of(model, documents.ids[:, :-1], layer, residual=False), documents)


def _without_options(model, documents, layer):
    return _nats(logits_of(model, documents.ids[:, :-1], layer, options=False), documents)


def _sum_of_words(model, documents, layer):
    return nats_above(model, documents, layer) * documents.surprise.shape[1]


_NATS_ABOVE = (
    Mistake(
        "floor_forgotten",
        "it gives the loss itself, with the floor in it",
        "Take the surprise of each word away: above_floor(logits, documents) does.",
        _loss,
    ),
    Mistake(
        "in_bits",
        "it gives bits, not nats",
        "A nat is a natural logarithm: do not divide by np.log(2).",
        lambda model, documents, layer: nats_above(model, documents, layer) / np.log(2),
    ),
    Mistake(
        "residual_forgotten",
        "a layer's output takes the place of X, where it should be added to it",
        "In this model every layer adds: X = X + Y.",
        _no_residual,
    ),
    Mistake(
        "options_forgotten",
        "the layers run without their rates, window and sink",
        "Hand them on: layer(X, own.params, **own.options).",
        _without_options,
    ),
    Mistake(
        "sum_of_words",
        "it adds up the words of a document, where a mean over words is asked for",
        "Take the mean over documents and words: above_floor(...).mean().",
        _sum_of_words,
    ),
)

_CLAIMS = tuple(
    Mistake(f"claim_{claim.number}_{wrong.name}", wrong.says, wrong.mend, wrong.function)
    for claim in CLAIMS
    for wrong in claim.wrong
)


def _leak_of(*, rows=lambda s: np.s_[..., :s, :], start=1, most=np.max):
    def leak(layer, X, other):
        Y, moves = layer(X), []
        for s in range(start, X.shape[-2]):
            changed = np.concatenate([X[..., :s, :], other[..., s:, :]], axis=-2)
            moves.append(np.abs(layer(changed) - Y)[rows(s)].max())
        return most(moves)

    return leak


_LEAK = (
    Mistake(
        "rows_after",
        "it looks at the rows of the exchanged tokens, which may well move",
        "A leak goes backwards: look at the rows before s, [..., :s, :].",
        _leak_of(rows=lambda s: np.s_[..., s:, :]),
    ),
    Mistake(
        "all_rows",
        "it looks at all rows, and those of the exchanged tokens move in every layer",
        "A leak goes backwards: look at the rows before s, [..., :s, :].",
        _leak_of(rows=lambda s: np.s_[...]),
    ),
    Mistake(
        "last_alone",
        "it exchanges the last token alone",
        "Let s go from 1 on: each token but the first may leak.",
        lambda layer, X, other: _leak_of(start=X.shape[-2] - 1)(layer, X, other),
    ),
    Mistake(
        "mean",
        "it takes the mean over s, in which one large leak looks small",
        "Ask for the most that any row moves.",
        _leak_of(most=np.mean),
    ),
    Mistake(
        "nan_is_still",
        "it takes rows that are NaN for rows that did not move",
        "Python's max passes over NaN, np.max does not.",
        _leak_of(most=lambda moves: max([0.0, *moves])),
    ),
)

MISTAKES = {
    "leak": _LEAK,
    "attention": _ATTENTION,
    "claims": _CLAIMS,
    "nats_above": _NATS_ABOVE,
}

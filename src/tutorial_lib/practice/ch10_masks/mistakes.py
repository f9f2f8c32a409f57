"""Wrong forms of the functions of chapter 10. Tensors are handled by their own methods alone."""

import math

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.practice.mistake import Mistake


def _filled(value, *, hide=lambda mask: ~mask):
    def masked_softmax(scores, *, mask=None):
        shown = scores if mask is None else scores.masked_fill(hide(mask), value)
        return shown.softmax(-1)

    return masked_softmax


def _added(scores, *, mask=None):
    return (scores if mask is None else scores - 1e9 * (~mask)).softmax(-1)


def _after(scores, *, mask=None):
    weights = scores.softmax(-1)
    return weights if mask is None else weights * mask


def _over_queries(scores, *, mask=None):
    shown = scores if mask is None else scores.masked_fill(~mask, -1e300)
    weights = shown.softmax(-2)
    return weights if mask is None else weights * mask


def _row_left_in(scores, *, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(-1, keepdim=True)
    return scores.masked_fill(~mask & some, -math.inf).softmax(-1)


MASKED_SOFTMAX = (
    Mistake(
        "nan_in_empty_rows",
        "a row with nothing to look at becomes NaN",
        "Let such a row look at everything, take the softmax, and put zeros in its place.",
        _filled(-math.inf),
    ),
    Mistake(
        "mean_in_empty_rows",
        "a row with nothing to look at spreads evenly over all that is hidden",
        "Put zeros in its place: nothing may be handed on from there.",
        _filled(-1e9),
    ),
    Mistake(
        "minus_1e9_added",
        "a row with nothing to look at is as if there were no mask",
        "Adding one number to a whole row changes no weight: put zeros in its place.",
        _added,
    ),
    Mistake(
        "zeros_forgotten",
        "a row with nothing to look at keeps the weights that it had for a moment",
        "Put zeros in its place after the softmax: torch.where(some, weights, 0.0).",
        _row_left_in,
    ),
    Mistake(
        "mask_upside_down",
        "it hides what may be seen, and shows what is hidden",
        "True means may look: hide where the mask is False.",
        _filled(-1e9, hide=lambda mask: mask),
    ),
    Mistake(
        "mask_after_softmax",
        "it takes weights away after the softmax, so rows no longer sum to 1",
        "Hide the scores before the softmax, so that the visible keys share everything.",
        _after,
    ),
    Mistake(
        "softmax_over_queries",
        "its softmax runs over the queries: columns sum to 1",
        "Take the softmax over the keys, dim=-1.",
        _over_queries,
    ),
)


def _attention(weigh):
    def fused_attention(Q, K, V, *, mask=None, dropout=0.0):
        return weigh(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), mask=mask) @ V

    return fused_attention


FUSED_ATTENTION = (
    Mistake(
        "nan_in_empty_rows",
        "a row with nothing to look at becomes NaN",
        "Let such a row look at everything, and put zeros in the place of what it finds.",
        _attention(_filled(-math.inf)),
    ),
    Mistake(
        "mean_in_empty_rows",
        "a row with nothing to look at takes the mean of all values",
        "Put zeros in its place: nothing may be handed on from there.",
        _attention(_filled(-1e9)),
    ),
    Mistake(
        "zeros_forgotten",
        "a row with nothing to look at keeps what it found while it could see all",
        "Put zeros in its place afterwards: torch.where(some, heads, 0.0).",
        _attention(_row_left_in),
    ),
    Mistake(
        "mask_upside_down",
        "it hides what may be seen, and shows what is hidden",
        "attn_mask of this function has True = may look: give it the mask as it is.",
        _attention(_filled(-1e9, hide=lambda mask: mask)),
    ),
    Mistake(
        "mask_forgotten",
        "it does not hide anything",
        "Pass the mask on: attn_mask=mask | ~some.",
        _attention(lambda scores, mask=None: scores.softmax(-1)),
    ),
)


def _joined(*, corner=None, join=lambda causal, mask: causal & mask, shift=0):
    def look(mask, is_causal, Q, K):
        if not is_causal:
            return mask
        queries, keys = Q.shape[-2], K.shape[-2]
        diagonal = (keys - queries if corner is None else corner) + shift
        causal = Q.new_ones((queries, keys)).tril(diagonal).bool()
        return causal if mask is None else join(causal, mask)

    return look


MAY_LOOK = (
    Mistake(
        "first_corner",
        "its diagonal begins in the first corner",
        "With T queries and S keys the diagonal ends in the last corner: tril(S - T).",
        _joined(corner=0),
    ),
    Mistake(
        "corner_the_wrong_way",
        "it moves its diagonal by T - S where S - T is right",
        "The newest query sees the newest key: tril(S - T).",
        lambda mask, is_causal, Q, K: _joined(corner=Q.shape[-2] - K.shape[-2])(
            mask, is_causal, Q, K
        ),
    ),
    Mistake(
        "either_allows",
        "it lets a query look where either of the two allows it",
        "Both must allow it: causal & mask.",
        _joined(join=lambda causal, mask: causal | mask),
    ),
    Mistake(
        "mask_forgotten",
        "it forgets the mask where there is causality too",
        "Both must allow a look: causal & mask.",
        _joined(join=lambda causal, mask: causal),
    ),
    Mistake(
        "causality_forgotten",
        "it forgets causality where there is a mask too",
        "Both must allow a look: causal & mask.",
        _joined(join=lambda causal, mask: mask),
    ),
    Mistake(
        "diagonal_hidden",
        "a query does not see its own token",
        "The diagonal belongs to what is seen: tril(S - T), not tril(S - T - 1).",
        _joined(shift=-1),
    ),
)


def _converted(*, turn=lambda mask: ~mask, axes=(0, 1, 2, 3)):
    def for_torch_layer(mask, n_heads):
        batch, _, queries, keys = mask.shape
        full = np.broadcast_to(turn(mask), (batch, n_heads, queries, keys)).transpose(axes)
        return full.reshape(batch * n_heads, queries, keys)

    return for_torch_layer


def _tiled(mask, n_heads):
    hidden = ~mask
    batch, heads, queries, keys = hidden.shape
    return np.tile(hidden, (n_heads // heads, 1, 1, 1)).reshape(batch * n_heads, queries, keys)


FOR_TORCH_LAYER = (
    Mistake(
        "not_turned",
        "it leaves True = may look",
        "nn.MultiheadAttention has True = hidden: ~mask.",
        _converted(turn=lambda mask: mask),
    ),
    Mistake(
        "heads_first",
        "it goes through the heads first and through the sequences second",
        "Sequence 0's heads come first, as the reshape of (B, H, T, S) lays them.",
        _converted(axes=(1, 0, 2, 3)),
    ),
    Mistake(
        "four_axes",
        "it keeps batch and heads as two axes",
        "nn.MultiheadAttention wants them as one: reshape(B * n_heads, T, S).",
        lambda mask, n_heads: np.repeat(~mask, n_heads // mask.shape[1], axis=1),
    ),
    Mistake(
        "tiled",
        "it copies the batch where each mask should be copied for the heads of its own sequence",
        "Copy along the axis of heads: np.broadcast_to(mask, (B, n_heads, T, S)).",
        _tiled,
    ),
    Mistake(
        "first_head_for_all",
        "every head has the mask of head 0",
        "Broadcast the axis of heads only where it has length 1.",
        _converted(turn=lambda mask: ~mask[:, :1]),
    ),
    Mistake(
        "not_copied",
        "one mask for all heads stays one mask",
        "Copy it for each head: np.broadcast_to(mask, (B, n_heads, T, S)).",
        lambda mask, n_heads: (~mask).reshape(-1, *mask.shape[-2:]),
    ),
)


def _before(ends):
    return np.cumsum(ends, axis=-1) - ends


def _packed(*, number=_before, join=lambda same, T: same & causal_mask(T)):
    def packed_mask(ids, end):
        text = number(ids == end)
        return join(text[:, None, :, None] == text[:, None, None, :], ids.shape[-1])

    return packed_mask


PACKED_MASK = (
    Mistake(
        "end_begins_the_next",
        "an end counts to the text behind it",
        "Count the ends before a token: take its own away, cumsum(ends) - ends.",
        _packed(number=lambda ends: np.cumsum(ends, axis=-1)),
    ),
    Mistake(
        "not_causal",
        "a query looks ahead in its text",
        "Join with causal_mask(T): never ahead.",
        _packed(join=lambda same, T: same),
    ),
    Mistake(
        "either_allows",
        "it allows what either of the two rules allows",
        "Both must hold: same & causal_mask(T).",
        _packed(join=lambda same, T: same | causal_mask(T)),
    ),
    Mistake(
        "counted_down_the_batch",
        "it counts the ends down the batch, from one row to the next",
        "Count along the tokens: np.cumsum(ends, axis=-1).",
        _packed(number=lambda ends: np.cumsum(ends, axis=0) - ends),
    ),
    Mistake(
        "no_axis_for_heads",
        "it has no axis for heads: (B, T, T)",
        "Add one, [:, None], so that it broadcasts to (B, H, T, T).",
        lambda ids, end: _packed()(ids, end)[:, 0],
    ),
    Mistake(
        "end_hidden",
        "nobody may look at an end, not even the end itself",
        "An end belongs to its text like every other token.",
        lambda ids, end: _packed()(ids, end) & (ids != end)[:, None, None, :],
    ),
    Mistake(
        "opposite",
        "it has True where a query may not look",
        "True means may look, here as everywhere in this book.",
        _packed(join=lambda same, T: ~(same & causal_mask(T))),
    ),
)


def _found(*, change=None, limit=1e-9, judge=lambda moved, mask: moved & ~mask, back=True):
    def leaking_pairs(layer, X, mask):
        rng, before, changed = np.random.default_rng(1), layer(X), X.copy()
        moved = np.zeros(mask.shape, dtype=bool)
        for s in range(len(X)):
            changed = X.copy() if back else changed
            noise = rng.standard_normal(X.shape[-1])
            changed[s] = noise if change is None else change(X[s])
            moved[:, s] = ~(np.abs(layer(changed) - before).max(axis=-1) <= limit)
        return judge(moved, mask)

    return leaking_pairs


def _last_token_alone(layer, X, mask):
    found = _found()(layer, X, mask)
    found[:, :-1] = False
    return found


def _nan_is_still(layer, X, mask):
    nan = np.isnan(layer(X)).any(axis=-1)
    return _found()(layer, X, mask) & ~nan[:, None]


LEAKING_PAIRS = (
    Mistake(
        "nan_is_still",
        "it takes an output that is NaN for one that did not move",
        "Ask for what is still, at most 1e-9, and report all else: NaN is not above any limit.",
        _nan_is_still,
    ),
    Mistake(
        "plus_one",
        "it adds 1 to every number of a token, which a leak of token minus mean does not see",
        "Put something else in the token's place: random numbers.",
        _found(change=lambda row: row + 1),
    ),
    Mistake(
        "all_that_moved",
        "it reports what may move too",
        "Report the pairs that move though the mask forbids it: moved & ~mask.",
        _found(judge=lambda moved, mask: moved),
    ),
    Mistake(
        "queries_and_keys_swapped",
        "its rows are the tokens that were changed",
        "Rows are outputs t and columns are changed tokens s.",
        _found(judge=lambda moved, mask: moved.T & ~mask),
    ),
    Mistake(
        "not_changed_back",
        "it leaves a token changed when it goes on to the next",
        "Begin each round with a fresh copy of X.",
        _found(back=False),
    ),
    Mistake(
        "last_token_alone",
        "it changes the last token alone",
        "Change each token in turn: a leak may come from any of them.",
        _last_token_alone,
    ),
    Mistake(
        "too_generous",
        "it looks away below 1e-3",
        "In float64 a layer that keeps to its mask moves by nothing: 1e-9 is generous.",
        _found(limit=1e-3),
    ),
)

MISTAKES = {
    "masked_softmax": MASKED_SOFTMAX,
    "fused_attention": FUSED_ATTENTION,
    "may_look": MAY_LOOK,
    "for_torch_layer": FOR_TORCH_LAYER,
    "packed_mask": PACKED_MASK,
    "leaking_pairs": LEAKING_PAIRS,
}

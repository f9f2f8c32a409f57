"""Wrong forms of the functions of chapter 17."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask, softmax
from tutorial_lib.heads import concat_heads
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.patterns import attention_with_sink, reach, window_mask


def _distances(T, S):
    return np.arange(S - T, S)[:, None] - np.arange(S)


def _behind(fits):
    """The causal mask, and what a window says of the distance back."""

    def mask(T, S, window):
        back = _distances(T, S)
        return (back >= 0) & fits(back, window)

    return mask


def _both_sides(T, S, window):
    return np.abs(_distances(T, S)) < window


def _first_corner(T, S, window):
    back = np.arange(T)[:, None] - np.arange(S)
    return (back >= 0) & (back < window)


_WINDOW_MASK = (
    Mistake(
        "one_more",
        "a window of w lets a word see w + 1 keys: itself and w before it",
        "This book counts the word itself: the distance back is below the window.",
        _behind(lambda back, window: back <= window),
    ),
    Mistake(
        "one_fewer",
        "a window of w lets a word see w - 1 keys",
        "The word itself is one of the w: distances 0 to w - 1.",
        _behind(lambda back, window: back < window - 1),
    ),
    Mistake(
        "itself_hidden",
        "the word itself is hidden: the window is the w words before it",
        "The word itself is one of the w: distances 0 to w - 1.",
        _behind(lambda back, window: (back > 0) & (back <= window)),
    ),
    Mistake(
        "both_sides",
        "it also sees words that come later",
        "Cut it with causal_mask(T, S).",
        _both_sides,
    ),
    Mistake(
        "first_corner",
        "the first query stands at the first key, also where the queries are the last of S tokens",
        "Query i stands at S - T + i.",
        _first_corner,
    ),
    Mistake(
        "no_window",
        "the window is not used: every word sees all before it",
        "Hide keys whose distance back is the window or more.",
        lambda T, S, window: causal_mask(T, S),
    ),
)


def _without_itself(mask, n_layers):
    step = mask.astype(float)
    return np.linalg.matrix_power(step, n_layers) > 0


def _twice_as_far(mask, n_layers):
    reached = reach(mask, 1)
    for _ in range(n_layers - 1):
        reached = reach(reached, 2)
    return reached


_REACH = (
    Mistake(
        "without_itself",
        "a row loses its own token, which the sum around a layer keeps",
        "Begin with mask | np.eye(T, dtype=bool).",
        _without_itself,
    ),
    Mistake(
        "one_too_many",
        "it goes one layer too far",
        "One layer reaches what the mask shows: n layers are n - 1 products.",
        lambda mask, n_layers: reach(mask, n_layers + 1),
    ),
    Mistake(
        "squared",
        "it multiplies what is reached by itself, so each layer doubles the reach",
        "Multiply by one layer's mask at a time.",
        _twice_as_far,
    ),
    Mistake(
        "one_layer",
        "n_layers is not used",
        "Multiply by the mask once more for each further layer.",
        lambda mask, n_layers: reach(mask, 1),
    ),
    Mistake(
        "turned_round",
        "rows and columns are exchanged: it says whom a token moves",
        "Row t, column s: token s moves row t.",
        lambda mask, n_layers: reach(mask, n_layers).T,
    ),
)


def _sinks(says_to):
    def weights(scores, sink, *, mask=None):
        seen = scores if mask is None else np.where(mask, scores, -np.inf)
        return says_to(seen, sink[:, None, None])

    return weights


def _unshifted(seen, sink):
    powers = np.exp(seen)
    return powers / (powers.sum(axis=-1, keepdims=True) + np.exp(sink))


def _not_a_power(seen, sink):
    top = seen.max(axis=-1, keepdims=True)
    powers = np.exp(seen - top)
    return powers / (powers.sum(axis=-1, keepdims=True) + sink * np.exp(-top))


def _sink_forgot_the_shift(seen, sink):
    powers = np.exp(seen - seen.max(axis=-1, keepdims=True))
    return powers / (powers.sum(axis=-1, keepdims=True) + np.exp(sink))


def _kept_column(seen, sink):
    column = np.broadcast_to(sink, (*seen.shape[:-1], 1))
    return softmax(np.concatenate([seen, column], axis=-1))


_ATTENTION_WITH_SINK = (
    Mistake(
        "none",
        "the sink takes nothing: rows still sum to 1",
        "Leave its share out of the result, and do not divide by what is left.",
        _sinks(lambda seen, sink: softmax(seen)),
    ),
    Mistake(
        "not_a_power",
        "the sink is added to the sum as it is",
        "It is a score: add e to its power.",
        _sinks(_not_a_power),
    ),
    Mistake(
        "unshifted",
        "large scores overflow",
        "Subtract the largest of scores and sink first: softmax does, if the sink is a column.",
        _sinks(_unshifted),
    ),
    Mistake(
        "sink_not_shifted",
        "the largest score is subtracted from the scores and not from the sink",
        "All powers of a row need the same number subtracted.",
        _sinks(_sink_forgot_the_shift),
    ),
    Mistake(
        "one_sink",
        "every head has the sink of head 0",
        "sink has an entry for each head: sink[:, None, None].",
        lambda scores, sink, *, mask=None: attention_with_sink(
            scores, np.full(sink.shape, sink[0]), mask=mask
        ),
    ),
    Mistake(
        "column_kept",
        "the sink's own column is still there",
        "It belongs to no key: cut it off, [..., :-1].",
        _sinks(_kept_column),
    ),
    Mistake(
        "mask_forgotten",
        "the mask is not used",
        "Hide what the mask hides before the softmax.",
        lambda scores, sink, *, mask=None: attention_with_sink(scores, sink),
    ),
)


def _best(seen, k, axis=-1):
    """The k largest of each row, of equal ones the earlier, whatever they are."""
    order = np.argsort(-seen, axis=axis, kind="stable")
    return np.argsort(order, axis=axis) < k


def _seen(scores, mask):
    return scores if mask is None else np.where(mask, scores, -np.inf)


def _mask_after(scores, k, *, mask=None):
    chosen = _best(scores, k)
    return chosen if mask is None else chosen & mask


def _as_good_as_the_last(scores, k, *, mask=None):
    seen = _seen(scores, mask)
    least = np.sort(seen, axis=-1)[..., -k, None]
    return (seen >= least) & (seen > -np.inf)


def _worst(scores, k, *, mask=None):
    hidden = np.where(np.isfinite(_seen(scores, mask)), -scores, -np.inf)
    return _best(hidden, k) & (hidden > -np.inf)


def _over_queries(scores, k, *, mask=None):
    seen = _seen(scores, mask)
    return _best(seen, k, axis=-2) & (seen > -np.inf)


_CHOOSE_KEYS = (
    Mistake(
        "mask_after",
        "it chooses among all keys and hides afterwards, so hidden keys take places of the k",
        "Hide first: np.where(mask, scores, -np.inf), then choose.",
        _mask_after,
    ),
    Mistake(
        "hidden_chosen",
        "a row that sees fewer than k keys is given hidden ones too",
        "A hidden key has no score: drop what is -inf from the choice.",
        lambda scores, k, *, mask=None: _best(_seen(scores, mask), k),
    ),
    Mistake(
        "all_that_tie",
        "it keeps every key that scores like the k-th, so a row may have more than k",
        "Rank the keys: of equal scores take the earlier.",
        _as_good_as_the_last,
    ),
    Mistake(
        "worst",
        "it keeps the smallest scores",
        "argsort counts upwards: sort the negated scores.",
        _worst,
    ),
    Mistake(
        "over_queries",
        "each key chooses its best queries",
        "A row chooses: the last axis is that of keys.",
        _over_queries,
    ),
)


def _steps(*, mask=window_mask, before=False, kept=1):
    """A step with another mask, that cuts before it attends, or keeps another number of rows."""

    def step(X, params, K, V, window):
        Q = project_heads(X, params.W_Q)
        K = np.concatenate([K, project_heads(X, params.W_K)], axis=-2)
        V = np.concatenate([V, project_heads(X, params.W_V)], axis=-2)
        if before:
            K, V = K[..., -window:, :], V[..., -window:, :]
        seen = mask(Q.shape[-2], K.shape[-2], window)
        weights = attention_weights(attention_scores(Q, K), mask=seen)
        Y = concat_heads(weights @ V) @ params.W_O
        first = max(0, K.shape[-2] - max(0, window - kept))
        return Y, K[..., first:, :], V[..., first:, :]

    return step


def _of_the_last(T, S, window):
    """The window of queries that are the last of S, where S may be fewer than they are."""
    back = _distances(T, S)
    return (back >= 0) & (back < window)


def _piece_alone(T, S, window):
    return np.pad(window_mask(T, T, window), ((0, 0), (S - T, 0)))


def _negative_end(X, params, K, V, window):
    Y, *_ = _steps()(X, params, K, V, window)
    rows = (project_heads(X, W) for W in (params.W_K, params.W_V))
    K, V = (np.concatenate(pair, axis=-2) for pair in zip((K, V), rows, strict=True))
    return Y, K[..., -(window - 1) :, :], V[..., -(window - 1) :, :]


_WINDOWED_STEP = (
    Mistake(
        "cut_first",
        "it keeps the last keys before the queries have read them, so the first words of a long "
        "piece find nothing",
        "Attend to all kept and new keys under the mask, then cut.",
        _steps(mask=_of_the_last, before=True),
    ),
    Mistake(
        "no_window",
        "within a piece the window is not kept: only what is kept between pieces is cut",
        "The mask of a piece is window_mask(T, S, window), not causal_mask(T, S).",
        _steps(mask=lambda T, S, window: causal_mask(T, S)),
    ),
    Mistake(
        "no_mask",
        "the words of a piece see later words of it",
        "The mask of a piece is window_mask(T, S, window).",
        _steps(mask=lambda T, S, window: None),
    ),
    Mistake(
        "no_offset",
        "the first new word looks as if it stood at the first kept key",
        "The T queries are the last of S = kept + T tokens.",
        _steps(mask=_first_corner),
    ),
    Mistake(
        "kept_unused",
        "the kept keys are not looked at",
        "S counts them too: window_mask(T, S, window) with S of K after it has grown.",
        _steps(mask=_piece_alone),
    ),
    Mistake(
        "one_more",
        "a window of w lets a word see w + 1 keys",
        "This book counts the word itself.",
        _steps(mask=lambda T, S, window: window_mask(T, S, window + 1)),
    ),
    Mistake(
        "kept_too_many",
        "it keeps `window` keys, one more than any later word will see",
        "The next word brings its own key: keep window - 1.",
        _steps(kept=0),
    ),
    Mistake(
        "kept_too_few",
        "it keeps window - 2 keys",
        "The next word sees itself and window - 1 more.",
        _steps(kept=2),
    ),
    Mistake(
        "negative_end",
        "with a window of 1 it keeps everything: -0 is the start",
        "Count from the front: first = max(0, S - (window - 1)).",
        _negative_end,
    ),
)


def _bigbird(*, side=lambda window: window // 2, row=True, column=True, cut=None, drawn=True):
    """A pattern with another half of a window, without a part, or cut."""

    def mask(T, window, tokens, random):
        place, chosen = np.arange(T), np.isin(np.arange(T), tokens)
        found = np.abs(place[:, None] - place) <= side(window)
        found = found | (row & chosen[:, None]) | (column & chosen)
        found = found | random if drawn else found
        return found if cut is None else found & cut(T)

    return mask


_BIGBIRD_MASK = (
    Mistake(
        "not_drawn",
        "the random keys are missing: this is always Longformer's",
        "Join them: | random.",
        _bigbird(drawn=False),
    ),
    Mistake(
        "row_alone",
        "global tokens see all, but are not seen by all",
        "A global token has a row and a column: global_mask(T, tokens).",
        _bigbird(column=False),
    ),
    Mistake(
        "column_alone",
        "global tokens are seen by all, but do not see all",
        "A global token has a row and a column: global_mask(T, tokens).",
        _bigbird(row=False),
    ),
    Mistake(
        "causal",
        "nothing behind a word is seen; these two are encoders, which read both ways",
        "Leave causal_mask out.",
        _bigbird(cut=causal_mask),
    ),
    Mistake(
        "itself_twice",
        "the word itself is counted on both sides, so two keys are missing",
        "window // 2 words on each side, and the word itself.",
        _bigbird(side=lambda window: window // 2 - 1),
    ),
    Mistake(
        "window_each_side",
        "it looks `window` words to each side",
        "The window is shared by both sides: window // 2 each.",
        _bigbird(side=lambda window: window),
    ),
    Mistake(
        "window_each_side_with_itself",
        "it looks `window` - 1 words to each side, as a decoder's window looks back",
        "The window is shared by both sides: window // 2 each.",
        _bigbird(side=lambda window: window - 1),
    ),
)


def _indexed(*, index=None, order="hide, choose", renormalised=True):
    """Weights with another index, another order of mask and choice, or not shared out again."""

    def weights(scores, q, keys, w, k):
        found = (index or _index)(scores, q, keys, w)
        mask = causal_mask(len(keys))
        chosen = _best(np.where(mask, found, -np.inf), k) & mask
        if order == "choose, hide":
            chosen = _best(found, k) & mask
        if order == "choose":
            chosen = _best(np.where(mask, found, -np.inf), k)
        if order == "never hide":
            chosen = _best(found, k)
        if order == "hide by 0":
            chosen = _best(found * mask, k) & mask
        if renormalised:
            return attention_weights(scores, mask=chosen)
        return attention_weights(scores, mask=mask) * chosen

    return weights


def _index(scores, q, keys, w):
    return np.einsum("tj,jts->ts", w, np.maximum(q @ keys.T, 0))


_INDEXED_WEIGHTS = (
    Mistake(
        "choice_before_mask",
        "it chooses among all keys, and the mask then takes some of them away",
        "Hide later keys first, then choose.",
        _indexed(order="choose, hide"),
    ),
    Mistake(
        "no_mask",
        "it chooses among all keys and hides none, so rows look at later words",
        "Hide later keys before the choice: choose_keys(..., mask=causal_mask(T)).",
        _indexed(order="never hide"),
    ),
    Mistake(
        "hidden_by_zero",
        "a later key counts 0 and takes the place of one with a negative index",
        "Hide by -inf: choose_keys(..., mask=causal_mask(T)).",
        _indexed(order="hide by 0"),
    ),
    Mistake(
        "future_chosen",
        "a row that sees fewer than k keys is given later ones",
        "choose_keys drops what the mask hides; a plain top-k does not.",
        _indexed(order="choose"),
    ),
    Mistake(
        "not_shared_out",
        "the weights of all keys are made first and some dropped, so rows sum to less than 1",
        "The choice is a mask: attention_weights(scores, mask=chosen).",
        _indexed(renormalised=False),
    ),
    Mistake(
        "no_relu",
        "negative products count: an index head that finds nothing takes away",
        "np.maximum(q @ keys.T, 0).",
        _indexed(index=lambda scores, q, keys, w: np.einsum("tj,jts->ts", w, q @ keys.T)),
    ),
    Mistake(
        "relu_last",
        "the sum over index heads is cut at 0, and not each product",
        "First np.maximum, then the sum with w.",
        _indexed(
            index=lambda scores, q, keys, w: np.maximum(np.einsum("tj,jts->ts", w, q @ keys.T), 0)
        ),
    ),
    Mistake(
        "even_heads",
        "w is not used: all index heads count alike",
        "Multiply each index head by its weight w[t, j].",
        _indexed(index=lambda scores, q, keys, w: np.maximum(q @ keys.T, 0).sum(axis=0)),
    ),
    Mistake(
        "by_its_own_scores",
        "each head chooses by its own scores, which an indexer is there to spare",
        "Choose by the index scores: one choice for all heads.",
        _indexed(index=lambda scores, q, keys, w: scores),
    ),
)


MISTAKES = {
    "window_mask": _WINDOW_MASK,
    "reach": _REACH,
    "attention_with_sink": _ATTENTION_WITH_SINK,
    "choose_keys": _CHOOSE_KEYS,
    "windowed_step": _WINDOWED_STEP,
    "bigbird_mask": _BIGBIRD_MASK,
    "indexed_weights": _INDEXED_WEIGHTS,
}

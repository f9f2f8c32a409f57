"""score and mix, with fewer pairs: windows, sinks, gates, top-k keys."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.contract import checked, require
from tutorial_lib.errors import ShapeError, require_finite, require_finite_row_maxima, require_mask
from tutorial_lib.projection import project_heads

FEWER_KEYS = (
    "there are T={} queries and S={} keys; expected S of at least T, since the queries are the "
    "last T of the S tokens. Count the cached tokens and the new: S = length + T."
)


@checked
def window_mask(T: "length", S: "length", window: "length") -> "mask T S":
    """Let each query look at the last `window` keys, its own among them.

    Built in chapter 17. The queries are the last T of S tokens, as in `causal_mask(T, S)`: behind
    S - T cached tokens the window goes on into the cache. A window of S or more is
    `causal_mask(T, S)`.

    Raises
    ------
    ValueError : fewer keys than queries

    Source: Child et al. (2019), section 4.2; Beltagy et al. (2020), section 3.1.

    >>> window_mask(5, 6, 2).sum(axis=-1)
    array([2, 2, 2, 2, 2])
    """
    require(S >= T, ValueError, FEWER_KEYS.format(T, S))
    too_far = np.tri(T, S, k=S - T - window, dtype=bool)
    return causal_mask(T, S) & ~too_far


@checked
def strided_mask(T: "length", stride: "length") -> "mask T T":
    """Let each query look at its own token, and from there back at every `stride`-th.

    Built in chapter 17. A stride of 1 is `causal_mask(T)`.

    Source: Child et al. (2019), section 4.2.

    >>> strided_mask(5, 2)[4]
    array([ True, False,  True, False,  True])
    """
    distances = np.arange(T)[:, None] - np.arange(T)
    return (distances >= 0) & (distances % stride == 0)


@checked
def global_mask(T: "length", tokens: object) -> "mask T T":
    """Let some tokens look at all, and all look at them: a row and a column each.

    Built in chapter 17. It looks ahead: a decoder takes `global_mask(T, tokens) & causal_mask(T)`.
    With all tokens global it hides nothing. `tokens` holds positions from 0 to T - 1.

    Raises
    ------
    TypeError : positions that are no whole numbers
    ValueError : a position outside the sequence

    Source: Beltagy et al. (2020), section 3.1.

    >>> global_mask(5, [0])[3]
    array([ True, False, False, False, False])
    """
    require(
        np.size(tokens) == 0 or np.asarray(tokens).dtype.kind in "iu",
        TypeError,
        f"tokens is {tokens!r}; expected the positions of the global tokens, whole numbers in a "
        f"list or an array. Turn booleans into np.flatnonzero(tokens), a set into sorted(tokens).",
    )
    require(
        np.isin(tokens, np.arange(T)).all(),
        ValueError,
        f"tokens is {tokens!r}; expected positions from 0 to {T - 1}. Leave out what lies outside, "
        f"or give the length of the whole sequence as T.",
    )
    chosen = np.isin(np.arange(T), tokens)
    return chosen[:, None] | chosen


@checked
def random_mask(rng: np.random.Generator, T: "length", n: "length") -> "mask T T":
    """Let each query look at n random keys of all T, sampled without replacement.

    Built in chapter 17. It looks ahead: a decoder takes `random_mask(rng, T, n) & causal_mask(T)`,
    which leaves early tokens fewer. n = T hides nothing.

    Raises
    ------
    ValueError : more keys than tokens

    Source: Zaheer et al. (2020), section 2.

    >>> random_mask(np.random.default_rng(0), 5, 2).sum(axis=-1)
    array([2, 2, 2, 2, 2])
    """
    require(
        n <= T,
        ValueError,
        f"n={n} keys are to be sampled from T={T} tokens; expected {T} at most, since none is "
        f"sampled twice. Sample fewer.",
    )
    order = rng.permuted(np.tile(np.arange(T), (T, 1)), axis=-1)
    return order < n


@checked
def receptive_field(mask: object, n_layers: "length") -> "mask T T":
    """Return on which tokens each row can depend after some layers with the same mask.

    Built in chapter 17. Every row keeps its own token, as the residual connection around a
    layer does.

    Parameters
    ----------
    mask : (T, T) booleans, True = may look

    Returns
    -------
    reached : [t, s]: row t can depend on token s

    >>> receptive_field(window_mask(6, 6, 2), 3).sum(axis=-1)
    array([1, 2, 3, 4, 4, 4])
    """
    require(
        np.ndim(mask) == 2 and 0 < len(mask) == np.shape(mask)[1],
        ShapeError,
        f"mask has shape {np.shape(mask)}; expected (T, T), a row and a column for each token. Of "
        f"masks per head or per sequence, give one: mask[0], or mask.any(axis=0).",
    )
    require_mask(mask, np.shape(mask))
    step = (mask | np.eye(len(mask), dtype=bool)).astype(float)
    reached = step
    for _ in range(n_layers - 1):
        reached = np.minimum(reached @ step, 1)  # paths; whether there is one counts
    return reached > 0


@checked
def attention_with_sink(
    scores: "any ... H T S", sink: "any H", *, mask: "mask ... H T S" = None
) -> "... H T S":
    """Return each query's attention weights beside a sink, which takes a part of each row.

    Built in chapter 17. The sink is one more score in each row's sum, without a key or a value. At
    -inf it takes nothing: the weights of the layer. A row of weights sums to 1 less what the sink
    takes, or is 0 throughout where it is fully masked.

    Raises
    ------
    ValueError : NaN or +inf in sink; NaN or +inf in scores, or a row of -inf

    Source: Xiao et al. (2024), for the tokens that serve as one; OpenAI (2025), for a learned one.

    >>> print(attention_with_sink(np.zeros((3, 5, 6)), np.zeros(3)).sum(axis=-1)[0, 0].round(3))
    0.857
    """
    require_sink_scores(sink)
    require_finite_row_maxima(_scores_with_hidden_keys(scores, mask), -1)
    column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
    seen = np.broadcast_to(True if mask is None else mask, scores.shape)
    both = np.concatenate([scores, column], axis=-1)  # (..., H, T, S + 1)
    allowed = np.concatenate([seen, column > -np.inf], axis=-1)
    return attention_weights(both, mask=allowed)[..., :-1]


@checked
def gate_heads(heads: "... H T d_v", X: "... T d_model", W_G: "H d_model d_v") -> "... H T d_v":
    """Multiply each head's output by gates between 0 and 1, computed from its query's token.

    Built in chapter 17. W_G = 0 halves everything, exactly; gates of 1 are the layer.

    Raises
    ------
    ShapeError : X of another batch than heads
    ValueError : products of X and W_G that overflow

    Source: Qiu et al. (2025).

    >>> print(gate_heads(np.ones((3, 5, 7)), np.ones((5, 12)), np.zeros((3, 12, 7)))[0, 0, 0])
    0.5
    """
    require(
        X.shape[:-2] == heads.shape[:-3],
        ShapeError,
        f"X has the batch axes {X.shape[:-2]}, heads has {heads.shape[:-3]}; expected the same, "
        f"since a gate is computed from the token of its query. Give the X of these heads.",
    )
    require_finite("X @ W_G", _gate_products_if_overflow_possible(X, W_G))
    gates = (1 + np.tanh(project_heads(X, W_G) / 2)) / 2  # 1 / (1 + exp(-x)), no overflow
    return heads * gates  # (..., H, T, d_v)


@checked
def top_k_mask(
    scores: "any ... T S", k: "length", *, mask: "mask ... T S" = None
) -> "mask ... T S":
    """Let each query look at the k keys with the largest scores, of those that it may look at.

    Built in chapter 17. Of equal scores the earlier key is chosen. The mask comes first, so that a
    key behind the query is none of the k; a query that sees fewer than k keys gets all.

    Parameters
    ----------
    scores : those of the layer, or cheaper ones of an indexer
    k : number of keys; S: all that the mask lets see
    mask : None for one query only, the newest token. A mask may let a query see later keys, since
        keys may be pools of tokens, whose positions only the caller knows

    Raises
    ------
    ValueError : k above S, several queries without a mask, NaN or +inf in scores, or a row of -inf

    Source: DeepSeek-AI (2025).

    >>> top_k_mask(np.arange(6.0)[None], 2)
    array([[False, False, False, False,  True,  True]])
    """
    require(
        k <= scores.shape[-1],
        ValueError,
        f"k={k} keys are to be chosen among S={scores.shape[-1]}; expected {scores.shape[-1]} at "
        f"most. Take min(k, S) where a sequence is shorter than k.",
    )
    require(
        mask is not None or scores.shape[-2] == 1,
        ValueError,
        f"mask is None for {scores.shape[-2]} queries, all of which may then look at the last "
        f"token; expected a mask of the past. Give mask=causal_mask{scores.shape[-2:]}.",
    )
    require_finite_row_maxima(_scores_with_hidden_keys(scores, mask), -1)
    seen = scores if mask is None else np.where(mask, scores, -np.inf)
    order = np.argsort(-seen, axis=-1, kind="stable")  # best first
    ranks = np.argsort(order, axis=-1)  # (..., T, S), 0: best
    return (ranks < k) & (seen > -np.inf)


@checked
def windowed_attention(
    Q: "... T d_k", K: "... S d_k", V: "... S d_v", window: "length", *, block: "length" = 64
) -> "... T d_v":
    """Attend within a window, some queries at a time, and skip the keys that none of them sees.

    Built in chapter 17. Equals `scaled_dot_product_attention` under `window_mask(T, S, window)`,
    whatever the block, the number of queries at a time. Keys and values are not copied.

    Raises
    ------
    ValueError : fewer keys than queries, scores that overflow

    Source: Beltagy et al. (2020), section 3.2.

    >>> windowed_attention(*np.ones((3, 2, 9, 4)), 3, block=4).shape
    (2, 9, 4)
    """
    T, S = Q.shape[-2], K.shape[-2]
    require(S >= T, ValueError, FEWER_KEYS.format(T, S))
    parts = []
    for start in range(0, T, block):
        q = Q[..., start : start + block, :]
        first = max(0, S - T + start + 1 - window)  # the first query's first key
        end = S - T + start + q.shape[-2]
        mask = window_mask(q.shape[-2], end - first, window)
        scores = attention_scores(q, K[..., first:end, :])
        parts.append(attention_weights(scores, mask=mask) @ V[..., first:end, :])
    return np.concatenate(parts, axis=-2)


def _scores_with_hidden_keys(scores, mask):
    """Return the scores, -inf where a key is hidden, but not in a row that is fully masked."""
    if mask is None:
        return scores
    return np.where(~mask & mask.any(axis=-1, keepdims=True), -np.inf, scores)


def require_sink_scores(sink):
    """Require for each head the score of its sink, or -inf for none."""
    is_invalid = np.isnan(sink) | (sink == np.inf)
    if is_invalid.any():
        h = int(np.argmax(is_invalid))
        raise ValueError(
            f"sink is {sink[h]} for head {h}; expected a finite number, or -inf for a head without "
            f"a sink. Look at the step that made it."
        )


def _gate_products_if_overflow_possible(X, W_G):
    """Return X @ W_G, or nothing where no product can overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        upper_bound = np.abs(X).max() * np.abs(W_G).max() * X.shape[-1]
        return np.zeros(0) if np.isfinite(upper_bound) else project_heads(X, W_G)

"""Position encodings of the scores: RoPE rotates queries and keys, ALiBi subtracts a slope."""

import numpy as np

from tutorial_lib.attention import attention_scores
from tutorial_lib.contract import checked, require, require_value_fits_annotation
from tutorial_lib.embedding import require_wavelength_base
from tutorial_lib.errors import ShapeError, broadcasts_to


@checked
def rope_frequencies(d_k: "length", *, base: float = 10_000.0) -> "n":
    """Return the frequency of each pair of entries in radians per token, from 1 down to nearly 0.

    Built in chapter 16. Pair i has the frequency base^(-2i/d_k), as in `sinusoidal_positions`;
    other code calls the result `inv_freq`.

    Parameters
    ----------
    d_k : how many entries of a query and of a key are rotated, even
    base : the lowest frequency is base^(2/d_k) / base

    Raises
    ------
    ValueError : base is no positive finite number

    Source: Su et al. (2021).

    >>> rope_frequencies(4).shape
    (2,)
    """
    require_even_width("d_k", d_k)
    require_wavelength_base(base)
    return base ** (-np.arange(0, d_k, 2) / d_k)


@checked
def rotate(X: "... T d", positions: object, frequencies: "n", *, half: bool = False) -> "... T d":
    """Rotate each pair of entries by the position of its token times the frequency of the pair.

    Built in chapter 16. RoPE: apply it to queries and keys, so that their scores depend only on
    the distance between two tokens. Entries beyond the pairs that have a frequency pass unchanged,
    a partial rotation. To rotate back, negate: `rotate(X, positions, -frequencies)`.

    Parameters
    ----------
    positions : (T,), or (..., T) that broadcasts to the tokens of X; positions of each sequence,
        (B, T), need an axis for the heads, positions[:, None]; never falling along a sequence
    frequencies : radians per token, for n of the d/2 pairs; 0 leaves a pair as it is
    half : False: entries 2i and 2i + 1 are a pair, interleaved; True: entries i and i + n, as in
        `rotate_half` of Hugging Face's Llama

    Raises
    ------
    ShapeError : an odd width, more frequencies than pairs, positions that do not fit the tokens
    ValueError : positions that go backwards

    Source: Su et al. (2021).

    >>> rotate(np.ones((3, 5, 4)), np.arange(5), rope_frequencies(4)).shape
    (3, 5, 4)
    """
    require_even_width("d", X.shape[-1])
    require(
        2 * len(frequencies) <= X.shape[-1],
        ShapeError,
        f"frequencies has {len(frequencies)} entries, but X of width {X.shape[-1]} has "
        f"{X.shape[-1] // 2} pairs; expected at most one for each. "
        f"Make them with rope_frequencies({X.shape[-1]}).",
    )
    require_nondecreasing_positions(positions, X.shape[:-1])
    n, rotated = len(frequencies), X * 1.0  # a copy, in floats
    angles = positions[..., None] * frequencies  # (..., T, n)
    cos, sin = np.cos(angles), np.sin(angles)
    interleaved = np.s_[..., 0 : 2 * n : 2], np.s_[..., 1 : 2 * n : 2]
    a, b = (np.s_[..., :n], np.s_[..., n : 2 * n]) if half else interleaved
    rotated[a] = cos * X[a] - sin * X[b]
    rotated[b] = sin * X[a] + cos * X[b]
    return rotated


@checked
def alibi_slopes(n_heads: "length") -> "H":
    """Return the slope of each head: a geometric series, so that some attend near and some far.

    Built in chapter 16. For 8 heads 1/2, 1/4, ... 1/256; any power of two ends at 1/256. For other
    numbers of heads, the series of the power of two below, then every second slope of the next
    power's.

    Source: Press et al. (2022), section 3, and the authors' code for other numbers of heads.

    >>> alibi_slopes(3).shape
    (3,)
    """
    power = 2 ** int(np.log2(n_heads))  # the largest that is not above
    series = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-4 * np.arange(1, 2 * power, 2) / power)
    return np.concatenate([series, between[: n_heads - power]])


@checked
def alibi_bias(T: "length", S: "length", slopes: "H") -> "H T S":
    """Return what each head adds to the score of each pair: minus its slope times their distance.

    Built in chapter 16. The queries are the last T of S tokens, as in `causal_mask(T, S)`. A key
    after the query is penalised by its distance too, so the bias also works without a mask. Slopes
    of 0 are no bias.

    Raises
    ------
    ValueError : a slope below 0

    Source: Press et al. (2022), section 3.

    >>> alibi_bias(5, 6, alibi_slopes(3)).shape
    (3, 5, 6)
    """
    require(
        slopes.min() >= 0,
        ValueError,
        f"slopes goes down to {slopes.min()}; expected none below 0, since the bias is minus "
        f"slope times distance already. Drop the sign: -slopes.",
    )
    distances = np.abs(np.arange(S - T, S)[:, None] - np.arange(S))  # (T, S)
    return -slopes[:, None, None] * distances


@checked
def alibi_scores(Q: "any ... T d_k", K: "any ... S d_k", slopes: "H") -> "... H T S":
    """Score every query against every key, minus the slope of the head times their distance.

    Built in chapter 16. Used in place of `attention_scores`, with slopes as in `alibi_bias`. Q
    holds the queries of the last T of S tokens.

    Source: Press et al. (2022), section 3.

    >>> alibi_scores(np.ones((3, 5, 4)), np.ones((3, 6, 4)), alibi_slopes(3)).shape
    (3, 5, 6)
    """
    require(
        Q.ndim > 2 and Q.shape[-3] == len(slopes),
        ShapeError,
        f"slopes has {len(slopes)} entries, but Q has shape {Q.shape}; expected a slope for each "
        f"head of (..., H, T, d_k). Make them with alibi_slopes(H).",
    )
    bias = alibi_bias(Q.shape[-2], K.shape[-2], slopes)  # (H, T, S)
    return attention_scores(Q, K) + bias


def require_even_width(name, width):
    """Require a width that splits into pairs."""
    if width % 2:
        raise ShapeError(
            f"{name}={width}; expected an even width, since entries are rotated in pairs. "
            f"Choose {width - 1} or {width + 1}, or cut off what is not to be rotated."
        )


def require_nondecreasing_positions(positions, tokens):
    """Require a position for each token, none below that of the token before it."""
    require_value_fits_annotation("positions", positions, "... T", T=tokens[-1])
    require(
        broadcasts_to(positions.shape, tokens),
        ShapeError,
        f"positions has shape {positions.shape}, which does not broadcast to the tokens' {tokens}. "
        f"Positions of each sequence, (B, T), need a head axis: positions[:, None].",
    )
    decreases = np.argwhere(np.diff(positions) < 0)
    if len(decreases):
        *batch_index, t = (int(coordinate) for coordinate in decreases[0])
        now, following = positions[(*batch_index, t)], positions[(*batch_index, t + 1)]
        raise ValueError(
            f"positions go backwards, from {now} to {following} at token {t + 1}; expected that "
            f"none falls along a sequence. To rotate back, negate the frequencies: -frequencies."
        )

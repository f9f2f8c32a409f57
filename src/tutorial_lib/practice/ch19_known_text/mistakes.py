"""Wrong forms of the functions of chapter 19."""

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.practice.mistake import Mistake


def _over(size):
    """Divide X by what `size` makes of its squares."""
    return lambda X: X / np.sqrt(size(X**2) + 1e-12)


_RMS_NORM = (
    Mistake(
        "whole_array",
        "one size is taken for all rows together",
        "Take the mean of each row: axis=-1, keepdims=True.",
        _over(np.mean),
    ),
    Mistake(
        "columns",
        "each column is divided by its own size, and so words mix",
        "A row is a token: take the mean along axis=-1.",
        _over(lambda squares: squares.mean(axis=-2, keepdims=True)),
    ),
    Mistake(
        "length",
        "rows get the length 1, which is the root of the sum of squares",
        "Take the mean of the squares, not their sum.",
        _over(lambda squares: squares.sum(axis=-1, keepdims=True)),
    ),
    Mistake(
        "minus_the_mean",
        "the mean of the row is taken away first, as LayerNorm does",
        "RMS leaves the mean where it is: divide, and take nothing away.",
        lambda X: rms_norm(X - X.mean(axis=-1, keepdims=True)),
    ),
    Mistake(
        "nothing_for_zeros",
        "a row of zeros is divided by 0",
        "Add the tiny 1e-12 below the root.",
        lambda X: X / np.sqrt((X**2).mean(axis=-1, keepdims=True)),
    ),
)

_MLP = (
    Mistake(
        "no_zeros",
        "negative numbers stay, so two matrices act as one",
        "Put zeros for them between the matrices: np.maximum(X @ W_1, 0).",
        lambda X, W_1, W_2: X @ W_1 @ W_2,
    ),
    Mistake(
        "zeros_at_the_end",
        "zeros are put for what is negative in the result, and not between",
        "Write np.maximum around X @ W_1 alone.",
        lambda X, W_1, W_2: np.maximum(X @ W_1 @ W_2, 0),
    ),
    Mistake(
        "adds_x",
        "X is added in here, and the block adds it again",
        "Return what is written; the block adds it to the stream.",
        lambda X, W_1, W_2: X + mlp(X, W_1, W_2),
    ),
    Mistake(
        "absolute",
        "negative numbers lose their sign, instead of becoming 0",
        "np.maximum(X @ W_1, 0) has a 0 where X @ W_1 is negative.",
        lambda X, W_1, W_2: np.abs(X @ W_1) @ W_2,
    ),
)


def _no_stream(X, params, W_1, W_2, *, mask=None):
    return mlp(rms_norm(multi_head_attention(rms_norm(X), params, mask=mask)), W_1, W_2)


def _norm_after(X, params, W_1, W_2, *, mask=None):
    X = rms_norm(X + multi_head_attention(X, params, mask=mask))
    return rms_norm(X + mlp(X, W_1, W_2))


def _normed_stream(X, params, W_1, W_2, *, mask=None):
    X = rms_norm(X)
    X = rms_norm(X + multi_head_attention(X, params, mask=mask))
    return X + mlp(X, W_1, W_2)


def _side_by_side(X, params, W_1, W_2, *, mask=None):
    N = rms_norm(X)
    return X + multi_head_attention(N, params, mask=mask) + mlp(N, W_1, W_2)


def _no_norm(X, params, W_1, W_2, *, mask=None):
    X = X + multi_head_attention(X, params, mask=mask)
    return X + mlp(X, W_1, W_2)


_BLOCK = (
    Mistake(
        "no_stream",
        "each part replaces the stream, and adds nothing to it",
        "Write X + in front of both parts.",
        _no_stream,
    ),
    Mistake(
        "norm_after",
        "the stream is normed after each addition, as in the first Transformer",
        "Norm what a part reads: X + part(rms_norm(X)).",
        _norm_after,
    ),
    Mistake(
        "normed_stream",
        "the norm is put on the stream itself",
        "Norm only what a part reads, and add to X as it is.",
        _normed_stream,
    ),
    Mistake(
        "side_by_side",
        "the MLP reads the stream before attention has written",
        "Let it read the new X: X = X + attention first.",
        _side_by_side,
    ),
    Mistake(
        "no_norm",
        "both parts read the stream without a norm",
        "Give each part rms_norm(X).",
        _no_norm,
    ),
)


def _floor(*, log=np.log, inner=None, stop=True, other=True, asked=None):
    """The nats of a sentence, with one of its choices counted otherwise."""

    def nats(clause, again):
        def choice(p, both=True):
            return -p * log(p) - both * (1 - p) * log(1 - p)

        first = log(2) * (1 + (clause if inner is None else inner))
        times = 1 / (1 - again) if asked is None else asked
        return first + choice(clause, other) + times * choice(again, stop)

    return nats


_SENTENCE_FLOOR = (
    Mistake(
        "in_bits",
        "it counts in bits",
        "Nats go with the natural logarithm, np.log.",
        _floor(log=np.log2),
    ),
    Mistake(
        "too_early",
        "the choice of cat or cats is counted in every sentence, before a clause is there",
        "It is made only after that, so it counts `clause` times.",
        _floor(inner=1),
    ),
    Mistake(
        "no_stop",
        "the choice not to say often again has no surprise",
        "A stop surprises too: -(1 - again) ln(1 - again).",
        _floor(stop=False),
    ),
    Mistake(
        "no_clause_is_free",
        "a sentence without a clause has no surprise there",
        "That none came surprises too: -(1 - clause) ln(1 - clause).",
        _floor(other=False),
    ),
    Mistake(
        "asked_once",
        "once more or stop is asked only once",
        "After each often it is asked again: 1 / (1 - again) times on average.",
        _floor(asked=1),
    ),
)


def _drawn(chances=softmax, *, place=-1, edge=np.less_equal):
    """Draw words by pieces of a line, with one of the parts changed."""

    def words(logits, luck):
        ends = np.cumsum(chances(logits[:, place]), axis=-1)
        return edge(ends, luck[:, None]).sum(axis=-1)

    return words


_NEXT_WORDS = (
    Mistake(
        "likeliest",
        "it always takes the likeliest word, so nothing is drawn",
        "Let luck choose: count the pieces that end at or before it.",
        lambda logits, luck: logits[:, -1].argmax(axis=-1),
    ),
    Mistake(
        "first_place",
        "it reads the logits of the first place",
        "The last place speaks of the next word: logits[:, -1].",
        _drawn(place=0),
    ),
    Mistake(
        "no_softmax",
        "it adds up logits, which are no chances",
        "Let softmax make chances of them first.",
        _drawn(lambda logits: logits),
    ),
    Mistake(
        "same_luck",
        "all texts share the first dart",
        "Each text has its own: luck[:, None].",
        lambda logits, luck: _drawn()(logits, np.full(len(luck), luck[0])),
    ),
    Mistake(
        "edge_before",
        "a dart on the edge between two pieces counts for the one before",
        "A piece that ends exactly at luck is over: ends <= luck.",
        _drawn(edge=np.less),
    ),
)


def _width(*, tables=(2, 1), per_block=12, more=0):
    """The largest width, with another count of numbers."""

    def width(numbers, *, words, length, layers):
        d_model, each = 0, tables[0] * words + tables[1] * length
        while each * (d_model + 1) + layers * per_block * (d_model + 1) ** 2 <= numbers:
            d_model += 1
        return d_model + more

    return width


_WIDEST = (
    Mistake(
        "attention_alone",
        "it forgets the MLP",
        "W_1 and W_2 have 4 * d_model**2 numbers each.",
        _width(per_block=4),
    ),
    Mistake(
        "one_matrix",
        "the MLP has only one matrix",
        "There is W_1 and there is W_2: 8 * d_model**2 together.",
        _width(per_block=8),
    ),
    Mistake(
        "no_unembedding",
        "it forgets U, which turns a row into logits",
        "E and U have words * d_model numbers each.",
        _width(tables=(1, 1)),
    ),
    Mistake(
        "no_places",
        "it forgets P, the vectors of the places",
        "Add length * d_model.",
        _width(tables=(2, 0)),
    ),
    Mistake(
        "one_too_wide",
        "it returns the first width that is too large",
        "Return the one before.",
        _width(more=1),
    ),
)


MISTAKES = {
    "rms_norm": _RMS_NORM,
    "mlp": _MLP,
    "block": _BLOCK,
    "sentence_floor": _SENTENCE_FLOOR,
    "next_words": _NEXT_WORDS,
    "widest": _WIDEST,
}

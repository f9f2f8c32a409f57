"""Heads taken out of a layer, and the bias of the values folded into that of the output."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _blocks(W_O, d_v):
    return W_O.reshape(-1, d_v, W_O.shape[-1])  # (H, d_v, d_model)


def _parts(heads, W_O, chosen):
    return heads @ _blocks(W_O, heads.shape[-1])[chosen]  # (..., N, T, d_model)


def first_rows(heads, W_O, kept):
    return _parts(heads, W_O, np.arange(len(kept))).sum(axis=-3)


def order_ignored(heads, W_O, kept):
    return _parts(heads, W_O, np.sort(kept)).sum(axis=-3)


def rows_in_turn(heads, W_O, kept):
    blocks = np.swapaxes(W_O.reshape(heads.shape[-1], -1, W_O.shape[-1]), 0, 1)
    return (heads @ blocks[kept]).sum(axis=-3)


def reshape_alone(heads, W_O, kept):
    *batch, N, T, d_v = heads.shape
    rows = _blocks(W_O, d_v)[kept].reshape(N * d_v, -1)
    return heads.reshape(*batch, T, N * d_v) @ rows


def not_summed(heads, W_O, kept):
    return _parts(heads, W_O, kept)


def summed_over_first_axis(heads, W_O, kept):
    return _parts(heads, W_O, kept).sum(axis=0)


def averaged(heads, W_O, kept):
    return _parts(heads, W_O, kept).mean(axis=-3)


def made_up_for(heads, W_O, kept):
    H = len(W_O) // heads.shape[-1]
    return _parts(heads, W_O, kept).sum(axis=-3) * H / len(kept)


KEPT_MISTAKES = (
    Mistake(
        "first_rows",
        "the heads that stay use the first rows of W_O, whatever their numbers are",
        "Head number h owns rows h * d_v to (h + 1) * d_v - 1; kept says which numbers stay.",
        first_rows,
    ),
    Mistake(
        "order_ignored",
        "the rows of W_O are taken in rising order, and kept lists the heads in another",
        "The head at place i of heads is head kept[i]: keep the two in the same order.",
        order_ignored,
    ),
    Mistake(
        "rows_in_turn",
        "a head gets every H-th row of W_O instead of d_v neighbours",
        "The rows lie as the columns of concat do: all of head 0, then all of head 1.",
        rows_in_turn,
    ),
    Mistake(
        "reshape_alone",
        "the heads are reshaped without a swap, so a row mixes tokens",
        "Swap the head and token axes before you merge heads and features.",
        reshape_alone,
    ),
    Mistake(
        "not_summed",
        "it returns the part of each head, not their sum",
        "Y is the sum of the parts: it has no axis of heads.",
        not_summed,
    ),
    Mistake(
        "summed_over_first_axis",
        "it sums over the first axis, which in a batch counts sentences",
        "Count from the end: the heads are axis -3.",
        summed_over_first_axis,
    ),
    Mistake(
        "averaged",
        "the parts are averaged instead of added",
        "The heads of a layer add.",
        averaged,
    ),
    Mistake(
        "made_up_for",
        "the result is multiplied by H/N, as if the heads that stay had to make up for the others",
        "The other heads count as 0, and those that stay say what they said before.",
        made_up_for,
    ),
)


def kept_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(*batch, N, H, T, d_v, d_model):
        kept = np.arange(N)
        while (np.diff(kept) > 0).all() and (N > 1 or kept[0] == 0):  # in rising order
            kept = rng.permutation(H)[:N]
        heads = rng.standard_normal((*batch, N, T, d_v))
        return heads, rng.standard_normal((H * d_v, d_model)), kept

    return [
        Case("3 of 5 heads", arrays(N=3, H=5, T=4, d_v=7, d_model=12), 2),
        Case("2 of 4 heads, a batch", arrays(3, N=2, H=4, T=5, d_v=6, d_model=11), 1),
        Case("4 of 6 heads, two batch axes", arrays(3, 2, N=4, H=6, T=5, d_v=7, d_model=13), 1),
        Case("all heads, in another order", arrays(N=3, H=3, T=4, d_v=5, d_model=8), 1),
        Case("one head", arrays(N=1, H=4, T=5, d_v=3, d_model=7), 1),
    ]


def features_first(b_V, W_O, b_O):
    return b_V.T.reshape(-1) @ W_O + b_O


def one_block_for_all(b_V, W_O, b_O):
    return b_V.sum(axis=0) @ W_O[: b_V.shape[-1]] + b_O


def old_bias_left_out(b_V, W_O, b_O):
    return b_V.reshape(-1) @ W_O


def old_bias_for_each_head(b_V, W_O, b_O):
    return b_V.reshape(-1) @ W_O + len(b_V) * b_O


def heads_averaged(b_V, W_O, b_O):
    return b_V.reshape(-1) @ W_O / len(b_V) + b_O


def subtracted(b_V, W_O, b_O):
    return b_O - b_V.reshape(-1) @ W_O


BIAS_MISTAKES = (
    Mistake(
        "features_first",
        "the biases of the heads are interleaved before they meet W_O",
        "Lay them in the order of the rows of W_O: all of head 0, then all of head 1.",
        features_first,
    ),
    Mistake(
        "one_block_for_all",
        "the biases are added up and all go through the rows of head 0",
        "Each head's bias goes through the rows of W_O that belong to this head.",
        one_block_for_all,
    ),
    Mistake(
        "old_bias_left_out",
        "b_O is missing",
        "The layer had an output bias already, and it stays.",
        old_bias_left_out,
    ),
    Mistake(
        "old_bias_for_each_head",
        "b_O is added once for every head",
        "b_O is added after W_O, once for the whole layer.",
        old_bias_for_each_head,
    ),
    Mistake(
        "heads_averaged",
        "what the biases of the heads give is averaged instead of added",
        "The parts of the heads add, and so do those of their biases.",
        heads_averaged,
    ),
    Mistake(
        "subtracted",
        "the shift is taken away from b_O",
        "The new bias has to supply what b_V no longer does.",
        subtracted,
    ),
)


def bias_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(H, d_v, d_model):
        shapes = (H, d_v), (H * d_v, d_model), (d_model,)
        return tuple(rng.standard_normal(shape) for shape in shapes)

    return [
        Case("3 heads", arrays(3, 4, 10), 2),
        Case("heads wider than the layer", arrays(2, 9, 5), 1),
        Case("one head", arrays(1, 6, 4), 1),
    ]


ASSIGNMENT = Assignment(
    (
        Task("project_out_kept", kept_cases, KEPT_MISTAKES),
        Task("folded_bias", bias_cases, BIAS_MISTAKES),
    )
)

"""What computes the keys of chapter 06: what an output depends on, and what W_O can compute."""

import numpy as np

import tutorial_lib as tl


def _run_the_example():
    example = tl.running_example()
    return tl.trace(example.X, example.params, mask=example.mask)


def rows_that_depend_on_a_word():
    """Which rows of Y change, under the causal mask, when *cats* takes the place of *that*."""
    example = tl.running_example()
    ids = example.vocabulary.ids(("dogs", "cats", "bark"))
    other = tl.embed(ids, example.E, example.P)
    Y, Y_other = (
        tl.multi_head_attention(X, example.params, mask=example.mask) for X in (example.X, other)
    )
    changed = np.flatnonzero(np.abs(Y_other - Y).max(axis=-1) > 1e-9).tolist()
    return [changed == [1], changed == [0, 1, 2], changed == [1, 2], changed == [0, 1]]


def _entries_that_give(entry, concat, shape):
    """True where an entry of W changes one entry of concat @ W.T."""
    gives = np.zeros(shape, dtype=bool)
    for index in np.ndindex(shape):
        W = np.zeros(shape)
        W[index] = 1
        gives[index] = (concat @ W.T)[entry] != 0
    return gives


def _where(shape, *index):
    """True only at an index."""
    chosen = np.zeros(shape, dtype=bool)
    chosen[index] = True
    return chosen


def entries_of_the_published_matrix():
    """Which of the entries of sampled change entry [0, 0] of concat @ sampled.T."""
    example = tl.published_example()
    concat = tl.trace(example.X, example.params, mask=example.mask).concat
    shape = 16, 16
    given = _entries_that_give((0, 0), concat, shape)
    two_rows = _where(shape, slice(0, 2), slice(0, 8))
    others = _where(shape, 0), _where(shape, slice(None), 0), np.eye(16, dtype=bool), two_rows
    return [np.array_equal(given, other) for other in others]


def output_without_a_head():
    """What Y is when head 1 gives 0: without its contribution, without columns, or larger."""
    record = _run_the_example()
    silent = record.heads.copy()
    silent[1] = 0
    Y = tl.concat_heads(silent) @ record.params.W_O
    contributions = [record.heads[h] @ record.params.W_O[4 * h : 4 * h + 4] for h in range(2)]
    return [
        np.allclose(Y, record.Y),
        np.allclose(Y[:, 4:], 0),
        np.allclose(Y, 2 * contributions[0]),
        np.allclose(Y, record.Y - contributions[1]),
    ]


def entries_of_a_transposed_matrix():
    """Which entries of W change entry [2, 5] of concat @ W.T."""
    concat = np.random.default_rng(0).standard_normal((4, 7))
    shape = 6, 7
    given = _entries_that_give((2, 5), concat, shape)
    return [
        np.array_equal(given, _where(shape, slice(None), 5)),
        np.array_equal(given, _where(shape, 5)),
        np.array_equal(given, _where(shape, 2)),
        np.array_equal(given, _where(shape, slice(None), 2)),
    ]


def what_a_matrix_can_write():
    """Whether some W_O writes each of these exactly, for a hundred pairs of heads' outputs."""
    one, other = np.random.default_rng(0).standard_normal((2, 100, 4))
    concat = tl.concat_heads(np.stack([one, other]))

    def is_written(wanted):
        W_O = np.linalg.lstsq(concat, wanted, rcond=None)[0]
        return np.allclose(concat @ W_O, wanted)

    others = np.maximum(one, other), one * other, one - other, one * (other[:, :1] > 0)
    return [is_written(value) for value in others]


def what_equal_scores_give():
    """What the fourth of six tokens gets from a head whose scores are all 0, under the mask."""
    V = np.random.default_rng(0).standard_normal((6, 7))
    fourth = (tl.attention_weights(np.zeros((6, 6)), mask=tl.causal_mask(6)) @ V)[3]
    return [np.allclose(fourth, other) for other in (0, V[:4].mean(axis=0), V.mean(axis=0), V[3])]


def expression_that_lays_heads_side_by_side(expressions):
    """Whether each expression gives the row of every token, head after head."""
    B, H, T, d_v = 2, 3, 5, 7
    names = {"heads": np.arange(B * H * T * d_v).reshape(B, H, T, d_v)}
    names |= {"B": B, "H": H, "T": T, "d_v": d_v}
    side_by_side = np.concatenate([names["heads"][:, h] for h in range(H)], axis=-1)
    return [np.array_equal(eval(text, names), side_by_side) for text in expressions]

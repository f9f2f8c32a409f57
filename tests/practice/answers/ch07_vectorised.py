"""What computes the keys of chapter 07: tables are made, tiles counted, and memory is traced."""

import math
import subprocess
import sys

import numpy as np

import tutorial_lib as tl
from tests.chapters.pages import code_cells, written
from tests.memory import peak_bytes
from tools.chapters import ROOT


def _equal(one, other):
    """Whether two arrays have one shape and, but for rounding, the same numbers."""
    return np.shape(one) == np.shape(other) and np.allclose(one, other)


def table_of_scores():
    """The MiB of the scores of four sequences: those of one head of one sequence, 4 · 12 times."""
    one_head = tl.attention_scores(*np.ones((2, 1024, 1), dtype=np.float32))
    return 4 * 12 * one_head.nbytes / (1024 * 1024)


def letter_missing_in_the_result():
    """What einsum returns for "hts,hsv->tv", beside the outputs of the heads."""
    rng = np.random.default_rng(0)
    weights, V = tl.softmax(rng.standard_normal((3, 10, 10))), rng.standard_normal((3, 10, 7))
    try:
        result = np.einsum("hts,hsv->tv", weights, V)
    except ValueError as error:
        result = error
    heads = weights @ V
    return [
        isinstance(result, ValueError),
        _equal(result, heads[0]),
        _equal(result, heads.sum(axis=0)),
        _equal(result, heads),
    ]


def letters_that_are_summed():
    """Over which letters the full table of products must be summed to give einsum's result."""
    rng = np.random.default_rng(0)
    Q, K = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((2, 3, 6, 4))
    result = np.einsum("bhtd,bhsd->bhts", Q, K)
    products = np.einsum("bhtd,bhsd->bhtsd", Q, K)
    over_b_h_d, over_d, over_s = (products.sum(axis=axes) for axes in ((0, 1, 4), 4, 3))
    return [_equal(result, other) for other in (over_b_h_d, over_d, over_s, products)]


def why_the_division_comes_last():
    """What each order of dividing and mixing costs and gives, S above d_v, in a causal block."""
    rng = np.random.default_rng(0)
    scores, V = 1000 * rng.standard_normal((5, 40)), rng.standard_normal((40, 7))
    scores[:, -5:][~tl.causal_mask(5)] = -np.inf
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = exponentials.sum(axis=-1, keepdims=True)  # before mixing
    mixed = exponentials @ V
    with np.errstate(all="ignore"):
        large = np.exp(scores)
        last = large @ V / large.sum(axis=-1, keepdims=True)
    return [
        mixed.size < exponentials.size,
        not np.allclose(exponentials / total @ V, mixed / total),
        np.isfinite(last).all(),
        (exponentials / total)[np.isneginf(scores)].any(),
    ]


def _of_the_chapter(name):
    """A function of the chapter, from the cell that defines it."""
    sources = [cell.source for cell in code_cells(written("07_vectorised"))]
    (source,) = [text for text in sources if text.startswith(f"def {name}(")]
    names = {"math": math, "np": np, "causal_mask": tl.causal_mask, "concat_heads": tl.concat_heads}
    names["attend_block"] = tl.attend_block
    exec(source, names)
    return names[name]


def _peak(layer, T):
    """The most bytes that a layer of the chapter holds while it processes T tokens."""
    params = tl.init_params(np.random.default_rng(0), d_model=12, n_heads=3, d_k=4, d_v=7)
    X = np.random.default_rng(1).standard_normal((T, 12))
    return peak_bytes(lambda: layer(X, params))


def _peaks(*lengths):
    """The peak memory of the chapter's two forms at some lengths, form by form."""
    forms = (_of_the_chapter(name) for name in ("by_broadcasting", "by_blocks"))
    return [_peak(form, T) for form in forms for T in lengths]


def growth_of_memory():
    """How many times the peak memory of the chapter's two forms grows from T = 1024 to 2048."""
    # In a process of its own: what other tests have begun is weighed too.
    peaks = "from tests.practice.answers.ch07_vectorised import _peaks; print(*_peaks(1024, 2048))"
    done = subprocess.run([sys.executable, "-c", peaks], cwd=ROOT, capture_output=True, check=True)
    found = [int(peak) for peak in done.stdout.split()]
    grown = [round(found[i + 1] / found[i]) for i in (0, 2)]
    return [grown == [2, 2], grown == [4, 4], grown == [4, 1], grown == [4, 2]]


def first_row_of_a_reshape():
    """What row 0 of heads.reshape(T, H * d_v) holds, with more tokens than heads."""
    H, T, d_v = 3, 5, 7
    heads = np.random.default_rng(0).standard_normal((H, T, d_v))
    try:
        row = heads.reshape(T, H * d_v)[0]
    except ValueError as error:
        row = error
    return [
        _equal(row, tl.concat_heads(heads)[0]),
        _equal(row, np.tile(heads[0, 0], H)),
        _equal(row, heads[0, :H].ravel()),
        isinstance(row, ValueError),
    ]


def one_maximum_for_the_table():
    """What a softmax gives that subtracts the largest score of the whole table."""
    scores = np.random.default_rng(0).standard_normal((5, 6))
    scores[1] -= 2000
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores - scores.max())
        weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    right = tl.softmax(scores)
    smaller = weights < right - 1e-9
    return [
        np.isnan(weights[1]).all(),
        smaller.all(),
        np.isinf(exponentials).any(),
        np.allclose(weights, right),
    ]

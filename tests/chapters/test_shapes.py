"""Every shape comment behind a line of a cell is true of the arrays that the line makes."""

import ast

import pytest

from book._static.run_cell import run_cell
from tests.chapters.pages import NAMES, code_cells, listed, written
from tests.chapters.planted import code
from tests.chapters.shapes import COMPARE, SIZES, Comparer, Comparisons
from tests.conftest import found_weights
from tools.chapters import page
from tutorial_lib.models.real.model import MISSING

# Of these all together take less than ten seconds.
RUN = ("01", "02", "03", "04", "05", "06", "07", "10", "14", "15", "16", "18", "23")
SAMPLED = [pytest.param(n, marks=[pytest.mark.long] * (n[:2] not in RUN)) for n in NAMES]


def compared(cells):
    """Run cells until each shape comment is compared; return the faults, and what is not met."""
    compare, sources, expected = Comparer(), [], {}
    for cell in cells:
        comparisons = Comparisons(cell)
        tree = ast.parse(cell.source)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        written_names = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        compare.names[cell.id] = {n.id: n.id not in written_names for n in names}
        sources.append(ast.unparse(ast.fix_missing_locations(comparisons.visit(tree))))
        expected |= {(cell.id, line): c for line, c in comparisons.comments.items()}
    variables = {"__name__": "__main__", COMPARE: compare}
    for cell, source in zip(cells, sources, strict=True):
        if not expected.keys() - compare.met:
            break
        variables[SIZES] = {}
        assert run_cell(source, cell.id, variables, lambda *_: None), f"cell {cell.id} fails"
    return compare.faults, {place: expected[place] for place in expected.keys() - compare.met}


@pytest.mark.parametrize("name", SAMPLED)
def test_shape_comments_are_true(name):
    if page(name).needs_weights and not found_weights():
        pytest.skip(MISSING)
    faults, missing = compared(code_cells(written(name)))
    told = [f"cell {cell}, line {line}: correct {fault}" for (cell, line), fault in faults.items()]
    told += [
        f"cell {cell}: move {comment}, no code there runs" for (cell, _), comment in missing.items()
    ]
    assert not told, listed(told, name)


TRUE = """
import numpy as np
X, W = np.ones((5, 13)), np.ones((3, 13, 8))  # (T, d_model) and (H, d_model, d_k)
Q = X @ W  # (T, d_model) @ (H, d_model, d_k) = (H, T, d_k)
# (T, H*d_k): side by side
wide = np.concatenate(list(Q), axis=-1)
parts = np.split(wide, 3, axis=-1)  # each (T, d_k)
def scores(Q, K):  # each (..., n, d)
    K_T = np.swapaxes(K, -1, -2)  # (..., d, n)
    return Q @ K_T  # (..., n, n)
class Layer:
    def forward(self, X, W):  # W: (H, d_model, d_k)
        return X[..., None, :, :] @ W  # (..., H, T, d_k)
rows = []
rows.append(scores(Q, Q))  # (H, T, T)
print(
    Q[:, -1],  # (3, 8)
    Layer().forward(X[None], W).shape,
)
"""
WRONG = {
    "(T, d_model) and (H, d_model, d_k)": "(T, d_model) and (H, d_k, d_model)",
    "@ (H, d_model, d_k) =": "@ (d_model, H, d_k) =",
    "= (H, T, d_k)": "= (T, H, d_k)",
    "(T, H*d_k)": "(T, H*d_model)",
    "each (T, d_k)": "(T, d_k)",
    "each (..., n, d)": "each (n, d)",
    "(..., d, n)": "(..., n, d)",
    "(..., n, n)": "(..., n, d_k)",
    "W: (H, d_model, d_k)": "X: (H, d_model, d_k)",
    "(..., H, T, d_k)": "(..., T, H, d_k)",
    "(H, T, T)": "(H, T, d_k)",
    "(3, 8)": "(3, 5)",
}


def test_true_shape_comments_of_each_kind_are_met():
    assert compared([code("true", TRUE)]) == ({}, {})


@pytest.mark.parametrize("right", WRONG)
def test_planted_shape_comment_is_found(right):
    faults, _ = compared([code("planted", TRUE.replace(right, WRONG[right], 1))])
    assert faults, WRONG[right]


def test_comment_on_code_that_never_runs_is_found():
    _, missing = compared([code("planted", "if False:\n    X = 1  # (T, d_model)")])
    assert list(missing.values()) == ["# (T, d_model)"]

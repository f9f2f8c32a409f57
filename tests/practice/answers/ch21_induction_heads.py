"""What computes the keys of chapter 21: from the weights, and small sums."""

import numpy as np

from tutorial_lib.models.circuits import composition, match_scores, ov_circuit, qk_circuit
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import CLASSES
from tutorial_lib.models.language import encode
from tutorial_lib.projection import Params
from tutorial_lib.records import checkpoint


def directions_of_the_names():
    """How many singular values of the table of six names are more than a tenth of the largest."""
    model = TinyModel.of(checkpoint("known_text"))
    names = model.E[encode(f"{CLASSES['given:f']} {CLASSES['given:m']}")[1:]]
    first, second = model.layers
    table = match_scores(names, qk_circuit(second, 0), ov_circuit(first, 0))
    assert table.shape == (6, 6)
    assert (table.argmax(axis=1) == np.arange(6)).all()
    sizes = np.linalg.svd(table, compute_uv=False)
    large = int((sizes > 0.1 * sizes[0]).sum())
    assert large == (sizes > 0.02 * sizes[0]).sum()  # wherever the limit is
    return [large == 6, large == 5, large == 3, large == 1]


def composition_by_chance(numbers):
    """The mean composition of random products of 64 × 16 and 16 × 64."""
    rng = np.random.default_rng(3)
    pairs = rng.standard_normal((2, 300, 64, 16)) @ rng.standard_normal((2, 300, 16, 64))
    mean = np.mean([composition(A, B) for A, B in zip(*pairs, strict=True)])
    return [bool(abs(mean - eval(number)) < 0.01) for number in numbers]


def a_product_by_hand():
    """Two rows of ones through matrices of one column."""
    W_Q, W_K = np.array([[[2.0], [1.0]]]), np.array([[[0.0], [3.0]]])
    params = Params(W_Q, W_K, np.ones((1, 2, 1)), np.ones((1, 2)))
    row = np.array((1, 1))
    return str(int(row @ qk_circuit(params, 0) @ row))


def a_composition_by_hand():
    """What writes along one axis, and what reads both."""
    score = composition(np.diag((2, 0)), np.diag((1, 1)))
    return [bool(np.isclose(score, value)) for value in (1, 2**0.5, 0.5**0.5, 0)]

"""Circuits: what two heads do together, read from their matrices without running a text."""

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.layers import require_heads
from tutorial_lib.projection import Params

PATHS = ("keys", "queries", "values")


@checked
def qk_circuit(params: Params, head: "integer") -> "d_model d_model":
    """Return the QK circuit of a head, W_Q W_Kᵀ: it gives the score of two rows of X, times √d_k.

    Built in chapter 21. For rows a and b of X, q · k = a @ qk_circuit @ b. Its rank is d_k at most.

    Raises
    ------
    ValueError : a head that is not there, counted from 0

    Source: Elhage et al. (2021).

    >>> qk_circuit(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 2).shape
    (12, 12)
    """
    require_heads([params], (0, head))
    return params.W_Q[head] @ params.W_K[head].T


@checked
def ov_circuit(params: Params, head: "integer") -> "d_model d_model":
    """Return the OV circuit of a head, W_V W_O: what it adds for a row of X, before the weight.

    Built in chapter 21. Y is the sum over heads of weights @ X @ ov_circuit. Its rank is d_v at
    most.

    Raises
    ------
    ValueError : a head that is not there, counted from 0

    Source: Elhage et al. (2021).

    >>> ov_circuit(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 2).shape
    (12, 12)
    """
    require_heads([params], (0, head))
    d_v = params.d_v
    return params.W_V[head] @ params.W_O[head * d_v : (head + 1) * d_v]


@checked
def composition(first: "n width", second: "width m") -> float:
    """Return the composition score ‖AB‖ / (‖A‖ ‖B‖): how much of what A writes B reads.

    Built in chapter 21. The norm is the root of the sum of all squares (Frobenius); the score is
    from 0 to 1. A row of X is multiplied by the first matrix first.

    Raises
    ------
    ValueError : a matrix of zeros, whose norm is 0

    Source: Elhage et al. (2021).

    >>> float(composition(np.diag([1.0, 0.0]), np.diag([1.0, 0.0])))
    1.0
    """
    require(
        first.any() and second.any(),
        ValueError,
        f"{'second' if first.any() else 'first'} is all zeros; expected a norm above 0, since we "
        f"divide by it. Leave out a head that writes nothing.",
    )
    first, second = (matrix / np.abs(matrix).max() for matrix in (first, second))
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return np.linalg.norm(first @ second) / norms


@checked
def match_scores(E: "n d_model", W_QK: "d_model d_model", W_OV: "d_model d_model") -> "n n":
    """Return the scores of each word, as a query, with each word that an earlier head has written.

    Built in chapter 21. They are not yet divided by the root of d_k. A row is the word in the
    query, a column the word written into the key.

    Parameters
    ----------
    W_QK : of the later head, which matches
    W_OV : of the earlier head, which writes into the keys

    Source: Elhage et al. (2021).

    >>> match_scores(np.eye(3), 2 * np.eye(3), np.eye(3)).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    return E @ W_QK @ (E @ W_OV).T


@checked
def compose(model: TinyModel, first: tuple, second: tuple, *, through: object = "keys") -> float:
    """Return the composition score of two heads of a model, through one input of the second.

    Introduced in chapter 21. Through the keys it is K-composition, through the queries
    Q-composition, through the values V-composition.

    Parameters
    ----------
    first, second : (layer, head), both counted from 0; the second in a later layer
    through : what the first's output is read for: "keys", "queries" or "values"

    Raises
    ------
    ValueError : a head that is not there, two heads in the wrong order, no such path

    Source: Elhage et al. (2021).

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> round(float(compose(model, (0, 2), (1, 0), through="values")), 12)
    1.0
    """
    require_heads(model.layers, first, second)
    later_head, earlier_head = (f"{layer}.{head}" for layer, head in (second, first))
    require(
        first[0] < second[0],
        ValueError,
        f"head {later_head} reads nothing of head {earlier_head}: expected the second head in a "
        f"later layer, since a layer reads what earlier ones have added. "
        + ("Exchange them." if second[0] < first[0] else "Take heads of two layers."),
    )
    message = f"through={through!r}; expected one of {PATHS}. A head reads by these."
    require(through in PATHS, ValueError, message)
    W_OV = ov_circuit(model.layers[first[0]], first[1])
    params, head = model.layers[second[0]], second[1]
    if through == "values":
        return composition(W_OV, ov_circuit(params, head))
    W_QK = qk_circuit(params, head)
    return composition(W_OV, W_QK.T if through == "keys" else W_QK)

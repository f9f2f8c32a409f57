"""Circuits: what two heads do together, read from their matrices without running a text."""

import numpy as np

from tutorial_lib.errors import require_operand, require_shape
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.doors import require_kind, require_pair, require_position
from tutorial_lib.projection import Params

PATHS = ("keys", "queries", "values")


def qk_circuit(params, head):
    """Return the QK circuit of a head, W_Q W_Kᵀ: it gives the score of two rows of X, times √d_k.

    Built in chapter 21. For rows a and b of X, q · k = a @ qk_circuit @ b.

    Parameters
    ----------
    params : Params
    head : counted from 0

    Returns
    -------
    W_QK : (d_model, d_model), of rank d_k at most

    Raises
    ------
    TypeError : no Params, or a head that is no whole number
    ValueError : a head that is not there

    Source: Elhage et al. (2021).

    >>> qk_circuit(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 2).shape
    (12, 12)
    """
    require_head_of(params, head)
    return params.W_Q[head] @ params.W_K[head].T


def ov_circuit(params, head):
    """Return the OV circuit of a head, W_V W_O: what it adds for a row of X, before the weight.

    Built in chapter 21. Y is the sum over heads of weights @ X @ ov_circuit.

    Parameters
    ----------
    params : Params
    head : counted from 0

    Returns
    -------
    W_OV : (d_model, d_model), of rank d_v at most

    Raises
    ------
    TypeError, ValueError : as `qk_circuit`

    Source: Elhage et al. (2021).

    >>> ov_circuit(Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12))), 2).shape
    (12, 12)
    """
    require_head_of(params, head)
    d_v = params.d_v
    return params.W_V[head] @ params.W_O[head * d_v : (head + 1) * d_v]


def composition(first, second):
    """Return the composition score ‖AB‖ / (‖A‖ ‖B‖): how much of what A writes B reads.

    Built in chapter 21. The norm is the root of the sum of all squares (Frobenius).

    Parameters
    ----------
    first, second : (n, width), (width, m); a row of X is multiplied by the first one first

    Returns
    -------
    score : from 0 to 1

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : a second that does not have as many rows as the first has columns
    ValueError : NaN, or a matrix of zeros, whose norm is 0

    Source: Elhage et al. (2021).

    >>> float(composition(np.diag([1.0, 0.0]), np.diag([1.0, 0.0])))
    1.0
    """
    require_chain(first, second)
    first, second = (matrix / np.abs(matrix).max() for matrix in (first, second))
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return np.linalg.norm(first @ second) / norms


def match_scores(E, W_QK, W_OV):
    """Return the scores of each word, as a query, with each word that an earlier head has written.

    Built in chapter 21. They are not yet divided by the root of d_k.

    Parameters
    ----------
    E : (n, d_model), rows of words
    W_QK : (d_model, d_model), of the later head, which matches
    W_OV : (d_model, d_model), of the earlier head, which writes into the keys

    Returns
    -------
    products : (n, n), row: the word in the query; column: the word written into the key

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : matrices that are not as wide as the rows of words
    ValueError : NaN

    Source: Elhage et al. (2021).

    >>> match_scores(np.eye(3), 2 * np.eye(3), np.eye(3)).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    require_words_and_circuits(E, W_QK=W_QK, W_OV=W_OV)
    return E @ W_QK @ (E @ W_OV).T


def compose(model, first, second, *, through="keys"):
    """Return the composition score of two heads of a model, through one input of the second.

    Introduced in chapter 21. Through the keys it is K-composition, through the queries
    Q-composition, through the values V-composition.

    Parameters
    ----------
    model : TinyModel
    first, second : (layer, head), both counted from 0; the second in a later layer
    through : what the first's output is read for: "keys", "queries" or "values"

    Returns
    -------
    score : from 0 to 1

    Raises
    ------
    TypeError : no TinyModel, or a head that is no pair of whole numbers
    ValueError : a head that is not there, two heads in the wrong order, no such path

    Source: Elhage et al. (2021).

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> round(float(compose(model, (0, 2), (1, 0), through="values")), 12)
    1.0
    """
    require_kind(model, TinyModel)
    require_order(model, first, second)
    require_path(through)
    written = ov_circuit(model.layers[first[0]], first[1])
    params, head = model.layers[second[0]], second[1]
    if through == "values":
        return composition(written, ov_circuit(params, head))
    read = qk_circuit(params, head)
    return composition(written, read.T if through == "keys" else read)


def require_head_of(params, head):
    """Require the parameters of a layer, and a head that it has.

    Raises
    ------
    TypeError : no Params, or no whole number
    ValueError : a head that is not there
    """
    if not isinstance(params, Params):
        raise TypeError(
            f"params is a {type(params).__name__}; expected Params, the matrices of one layer, "
            f"such as model.layers[0]."
        )
    require_position("head", head, params.n_heads)


def require_chain(first, second):
    """Require two matrices, not all zeros, that can be multiplied.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `composition`
    """
    require_shape("first", first, "n width")
    require_shape("second", second, "width m", width=first.shape[1])
    for name, matrix in {"first": first, "second": second}.items():
        require_operand(name, matrix)
        if not matrix.any():
            raise ValueError(
                f"{name} is all zeros; expected a norm above 0, since we divide by it. "
                f"Leave out a head that writes nothing."
            )


def require_words_and_circuits(E, **circuits):
    """Require rows of words, and circuits that are as wide.

    Raises
    ------
    TypeError, ShapeError, ValueError : as `match_scores`
    """
    require_shape("E", E, "n d_model")
    require_operand("E", E)
    width = E.shape[1]
    for name, circuit in circuits.items():
        require_shape(name, circuit, "d_model d_model'", **{"d_model": width, "d_model'": width})
        require_operand(name, circuit)


def require_order(model, first, second):
    """Require two heads of the model, the second in a later layer.

    Raises
    ------
    TypeError : no pairs of whole numbers
    ValueError : a head that is not there, or a second head that does not come later
    """
    for pair in (first, second):
        require_pair(model, pair)
    if second[0] <= first[0]:
        one, other = (f"{layer}.{head}" for layer, head in (first, second))
        mend = "Exchange them" if second[0] < first[0] else "Take heads of two layers"
        raise ValueError(
            f"head {other} reads nothing of head {one}: expected the second head in a later layer, "
            f"since a layer reads what earlier ones have added. {mend}."
        )


def require_path(through):
    """Require an input through which a head reads: its keys, its queries or its values.

    Raises
    ------
    ValueError : anything else
    """
    if through not in PATHS:
        raise ValueError(f"through={through!r}; expected one of {PATHS}. A head reads by these.")

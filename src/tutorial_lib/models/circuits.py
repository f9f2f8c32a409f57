"""Circuits: what two heads do together, read off their matrices without running a word."""

import numpy as np

from tutorial_lib.errors import require_operand, require_shape
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.doors import require_kind, require_pair, require_position
from tutorial_lib.projection import Params

WAYS = ("keys", "queries", "values")


def qk_circuit(params, head):
    """Return what makes a head's scores of two rows of X: their product, before the root of d_k.

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
    """Return what a head makes of a row of X that it looks at, before its weight.

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
    """Return how much of what the first matrix writes the second reads: ‖AB‖ / (‖A‖ ‖B‖).

    Built in chapter 21. Each length is the root of the sum of all squares.

    Parameters
    ----------
    first, second : (n, width), (width, m); rows of X are multiplied by the first one first

    Returns
    -------
    share : from 0 to 1

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : a first that writes another width than the second reads
    ValueError : NaN, or a matrix of zeros, which has no length to divide by

    Source: Elhage et al. (2021).

    >>> float(composition(np.diag([1.0, 0.0]), np.diag([1.0, 0.0])))
    1.0
    """
    require_chain(first, second)
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    return np.linalg.norm(first @ second) / norms


def match_scores(E, W_QK, W_OV):
    """Return what each word, as a query, scores each word that another head has handed on.

    Built in chapter 21. The products come before the root of d_k.

    Parameters
    ----------
    E : (n, d_model), rows of words
    W_QK : (d_model, d_model), of the head that asks
    W_OV : (d_model, d_model), of the earlier head that hands on

    Returns
    -------
    products : (n, n), row: the word that asks; column: the word handed on

    Raises
    ------
    TypeError : no arrays of numbers
    ShapeError : matrices of another width than the words
    ValueError : NaN

    Source: Elhage et al. (2021).

    >>> match_scores(np.eye(3), 2 * np.eye(3), np.eye(3)).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    require_words_and_circuits(E, W_QK=W_QK, W_OV=W_OV)
    return E @ W_QK @ (E @ W_OV).T


def compose(model, first, second, *, through="keys"):
    """Return the composition of two heads of a model: of what one adds, how much the other reads.

    Introduced in chapter 21.

    Parameters
    ----------
    model : TinyModel
    first, second : (layer, head), both counted from 0; the second in a later layer
    through : what the second makes of the first's output: "keys", "queries" or "values"

    Returns
    -------
    share : from 0 to 1

    Raises
    ------
    TypeError : no TinyModel, or a head that is no pair of whole numbers
    ValueError : a head that is not there, two heads in the wrong order, no such way

    Source: Elhage et al. (2021).

    >>> layer = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> model = TinyModel(np.ones((7, 12)), np.ones((9, 12)), (layer,) * 2, np.ones((12, 7)))
    >>> round(float(compose(model, (0, 2), (1, 0), through="values")), 12)
    1.0
    """
    require_kind(model, TinyModel)
    require_order(model, first, second)
    require_way(through)
    written = ov_circuit(model.layers[first[0]], first[1])
    params, head = model.layers[second[0]], second[1]
    if through == "values":
        return composition(written, ov_circuit(params, head))
    read = qk_circuit(params, head)
    return composition(written, read.T if through == "keys" else read)


def require_head_of(params, head):
    """Require parameters of a layer, and a head of it that is there.

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
    """Require two matrices, not all zeros, of which the second reads what the first writes.

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
                f"{name} is all zeros; expected a matrix with a length, since the lengths divide. "
                f"Leave out a head that writes nothing."
            )


def require_words_and_circuits(E, **circuits):
    """Require rows of words, and circuits of their width.

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
    """Require two heads that are there, the second in a later layer.

    Raises
    ------
    TypeError : no pairs of whole numbers
    ValueError : a head that is not there, or none that comes later
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


def require_way(through):
    """Require a way by which a head reads: its keys, its queries or its values.

    Raises
    ------
    ValueError : anything else
    """
    if through not in WAYS:
        raise ValueError(f"through={through!r}; expected one of {WAYS}. A head reads by these.")

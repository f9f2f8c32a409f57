"""The whole layer: project, score, mix, concat, project out, and a record of every step."""

from dataclasses import dataclass

from tutorial_lib.attention import attention_scores, attention_weights
from tutorial_lib.contract import MADE_BY, checked
from tutorial_lib.heads import concat_heads
from tutorial_lib.projection import Params, project_heads


@dataclass(frozen=True)
class Trace:
    """What one pass was computed from, and every array of it in the order of the data flow.

    Introduced in chapter 06.
    """

    params: Params
    X: "... T d_model"  # the input
    context: "... S d_model"  # where keys and values come from; None: from X
    Q: "... H T d_k"
    K: "... H S d_k"
    V: "... H S d_v"
    scores: "... H T S"  # scaled, before the mask, so never -inf
    weights: "... H T S"
    heads: "... H T d_v"
    concat: "... T H*d_v"
    Y: "... T d_model"  # the output


MADE_BY[Trace] = "a Trace, the record of the forward pass. Compute it with trace(X, params, ...)."


@checked
def trace(
    X: "... T d_model",
    params: Params,
    *,
    context: "... S d_model" = None,
    mask: "mask ... H T S" = None,
) -> Trace:
    """Run the layer and store every array on the way.

    Built in chapter 06. Keys and values come from `context`, a different sequence, where it is
    given; else X attends to itself.

    Raises
    ------
    ValueError : scores that overflow

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> trace(np.ones((5, 12)), Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))).scores.shape
    (3, 5, 5)
    """
    source = X if context is None else context
    Q = project_heads(X, params.W_Q)  # (..., H, T, d_k)
    K = project_heads(source, params.W_K)  # (..., H, S, d_k)
    V = project_heads(source, params.W_V)  # (..., H, S, d_v)
    scores = attention_scores(Q, K)  # (..., H, T, S)
    weights = attention_weights(scores, mask=mask)
    heads = weights @ V  # (..., H, T, d_v)
    concat = concat_heads(heads)  # (..., T, H*d_v)
    Y = concat @ params.W_O
    return Trace(params, X, context, Q, K, V, scores, weights, heads, concat, Y)


@checked
def multi_head_attention(
    X: "... T d_model",
    params: Params,
    *,
    context: "... S d_model" = None,
    mask: "mask ... H T S" = None,
) -> "... T d_model":
    """Run the layer and return only its output: `trace(...).Y`.

    Built in chapter 06.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> params = Params(*np.ones((3, 3, 12, 4)), np.ones((12, 12)))
    >>> multi_head_attention(np.ones((5, 12)), params).shape
    (5, 12)
    """
    return trace(X, params, context=context, mask=mask).Y

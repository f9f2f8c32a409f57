"""The heads of the real model: their outputs replaced, read through E, and their matrices."""

import numpy as np

from tutorial_lib.contract import checked
from tutorial_lib.errors import require_ids
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.head_scores import require_head_outputs
from tutorial_lib.models.real.model import BlockParams, RealModel, RealTrace, run_real
from tutorial_lib.projection import Params


@checked
def run_real_with(model: RealModel, ids: "int ... T", outputs: dict) -> RealTrace:
    """Run the model with other outputs of some heads; later layers see the change.

    Built in chapter 25. It is chapter 20's `run_with` for the real model.

    Parameters
    ----------
    outputs : {(layer, head): array}, counted from 0; an array broadcasts to (..., T, d_v)

    Raises
    ------
    TypeError, ValueError : a head that is not there; an output that is no array, or has NaN
    ShapeError : an output of another shape

    >>> from tutorial_lib.variants.grouped import GroupedParams
    >>> W_KV, feeds = np.ones((2, 2, 12, 6)), np.ones((2, 12, 7))
    >>> params = GroupedParams(np.ones((4, 12, 6)), *W_KV, np.ones((24, 12)))
    >>> block = BlockParams(np.ones(12), params, np.ones(12), *feeds, np.ones((7, 12)))
    >>> from tutorial_lib.models.real.tokenizer import Tokenizer
    >>> model = RealModel(np.ones((9, 12)), [block], np.ones(12), 1e-5, 100.0, Tokenizer((), ()))
    >>> run_real_with(model, np.array([2, 0, 1]), {(0, 3): np.zeros(6)}).logits.shape
    (3, 9)
    """
    require_head_outputs([block.params for block in model.blocks], ids, outputs)

    def hook(output):
        return lambda own: np.broadcast_to(output, own.shape)

    hooks = {head: hook(output) for head, output in outputs.items()}
    return run_real(model, ids, hooks=hooks)


@checked
def head_logits(model: RealModel, trace: RealTrace, tokens: "int n") -> "layers ... H n":
    """Return what each head at the last position adds to the logits of some tokens.

    Built in chapter 25: direct logit attribution. The divisor of the last norm is that of the run,
    so the terms of all heads, all feeds and the embedding sum to the logits.

    Raises
    ------
    ValueError : ids that the model does not have

    Source: Elhage et al. (2021), for the logits as a sum of paths.

    >>> from tutorial_lib.variants.grouped import GroupedParams
    >>> W_KV, feeds = np.ones((2, 2, 12, 6)), np.ones((2, 12, 7))
    >>> params = GroupedParams(np.ones((4, 12, 6)), *W_KV, np.ones((24, 12)))
    >>> block = BlockParams(np.ones(12), params, np.ones(12), *feeds, np.ones((7, 12)))
    >>> from tutorial_lib.models.real.tokenizer import Tokenizer
    >>> model = RealModel(np.ones((9, 12)), [block], np.ones(12), 1e-5, 100.0, Tokenizer((), ()))
    >>> head_logits(model, run_real(model, np.array([2, 0, 1])), np.array([5, 7])).shape
    (1, 4, 2)
    """
    require_ids(tokens, len(model.E))
    last = trace.X[-1] + concat_heads(trace.heads[-1]) @ model.blocks[-1].params.W_O
    last = (last + trace.feeds[-1])[..., -1:, :]  # (..., 1, d_model)
    divisor = np.sqrt(np.mean(last * last, axis=-1, keepdims=True) + model.epsilon)
    directions = model.gain[:, None] * model.E[tokens].T  # (d_model, n)
    terms = []
    for layer, heads in zip(model.blocks, trace.heads, strict=True):
        H, d_v = layer.params.n_heads, layer.params.d_v
        added = heads[..., -1:, :] @ layer.params.W_O.reshape(H, d_v, -1)  # (..., H, 1, d_model)
        terms.append((added @ directions)[..., 0, :] / divisor)
    return np.stack(terms)


@checked
def fold_gain(block: BlockParams) -> Params:
    """Return the matrices of a block's heads, each with the gain of the norm before it inside.

    Built in chapter 25. With them chapter 21's circuits are those of the real model: each head has
    its own W_K and W_V, a copy of those that its group shares. RoPE is left out.

    >>> from tutorial_lib.variants.grouped import GroupedParams
    >>> W_KV, feeds = np.ones((2, 2, 12, 6)), np.ones((2, 12, 7))
    >>> params = GroupedParams(np.ones((4, 12, 6)), *W_KV, np.ones((24, 12)))
    >>> block = BlockParams(np.ones(12), params, np.ones(12), *feeds, np.ones((7, 12)))
    >>> fold_gain(block).W_K.shape
    (4, 12, 6)
    """
    params = block.params.expanded()
    projections = params.W_Q, params.W_K, params.W_V
    folded = (block.gain_1[:, None] * W for W in projections)
    return Params(*folded, params.W_O)

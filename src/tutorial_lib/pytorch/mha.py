"""Multi-head attention as a module: a fused path and an explicit one that share their weights."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.contract import MADE_BY, require
from tutorial_lib.errors import require_divisible
from tutorial_lib.multihead import Trace
from tutorial_lib.pytorch.tensors import checked


class MultiHeadAttention(nn.Module):
    """The layer of chapter 06 with its weights packed for PyTorch.

    Built in chapter 09. `forward` is the fused path; `explicit` takes the same steps one by one,
    and `attention_trace` keeps all of them. Without dropout the two agree to rounding, as long as
    scores fit into the precision: in float16 one beyond 65,504 makes the explicit path NaN, while
    the fused one, whose scores are float32, stays right. Without d_k it is d_model / n_heads, which
    has to be whole, and without d_v it is d_k. Dropout is the probability with which training sets
    a weight to zero, from 0 to below 1.

    The weight of `qkv_proj` is (H*(2*d_k + d_v), d_model): the rows of all heads' queries, then of
    their keys, then of their values, head 0 first. That of `out_proj` is (d_model, H*d_v).

    Source: Vaswani et al. (2017), section 3.2.2.
    """

    @checked
    def __init__(
        self,
        d_model: "length",
        n_heads: "length",
        *,
        d_k: "length" = None,
        d_v: "length" = None,
        bias: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if d_k is None:
            require_divisible("d_model", d_model, "n_heads", n_heads)
        require(
            0 <= dropout < 1,
            ValueError,
            f"dropout={dropout}; expected a number from 0 to below 1. "
            f"It is the fraction of the weights that training sets to zero, such as 0.1.",
        )
        d_k = d_model // n_heads if d_k is None else d_k
        d_v = d_k if d_v is None else d_v
        self.d_model, self.n_heads, self.d_k, self.d_v = map(int, (d_model, n_heads, d_k, d_v))
        self.dropout = float(dropout)
        self.qkv_proj = nn.Linear(self.d_model, self.n_heads * (2 * self.d_k + self.d_v), bias=bias)
        self.out_proj = nn.Linear(self.n_heads * self.d_v, self.d_model, bias=bias)

    def extra_repr(self):
        """Say the sizes when the module is printed."""
        names = "d_model", "n_heads", "d_k", "d_v", "dropout"
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)

    @property
    def sizes(self):
        """The lengths of the axes, by name."""
        return {"d_model": self.d_model, "H": self.n_heads, "d_k": self.d_k, "d_v": self.d_v}

    @checked
    def forward(
        self,
        X: "... T d_model",
        *,
        context: "... S d_model" = None,
        mask: "mask ... H T S" = None,
        is_causal: bool = False,
    ) -> "... T d_model":
        """Run the layer through `F.scaled_dot_product_attention`.

        A context is another sequence to attend to. In a mask True = may look. `is_causal` applies
        `causal_mask(T, S)` too. A fully masked row of the output is out_proj's bias, or zero.
        """
        source = X if context is None else context
        batch = torch.broadcast_shapes(X.shape[:-2], source.shape[:-2])
        Q, K, V = project_packed_qkv(
            self, merge_batch_axes(X, batch), merge_batch_axes(context, batch)
        )
        dropout = self.dropout if self.training else 0.0
        if is_causal and mask is None and Q.shape[-2] == K.shape[-2]:
            heads = F.scaled_dot_product_attention(Q, K, V, is_causal=True, dropout_p=dropout)
        else:
            mask = may_look(mask_with_four_axes(mask, batch), is_causal, Q, K)
            heads = fused_attention(Q, K, V, mask=mask, dropout=dropout)
        Y = self.out_proj(heads.transpose(-3, -2).flatten(-2))
        return Y.reshape(*batch, *Y.shape[-2:])

    def explicit(self, X, *, context=None, mask=None, is_causal=False):
        """Run the layer step by step: `attention_trace(...).Y`. Arguments as `forward`."""
        return attention_trace(self, X, context=context, mask=mask, is_causal=is_causal).Y


MADE_BY[MultiHeadAttention] = "a MultiHeadAttention. Make one with module_from_params(params)."


@checked
def attention_trace(
    module: MultiHeadAttention,
    X: "... T d_model",
    *,
    context: "... S d_model" = None,
    mask: "mask ... H T S" = None,
    is_causal: bool = False,
) -> Trace:
    """Run the layer step by step and keep every tensor on the way.

    Introduced in chapter 09. Divides by the root of d_k itself. Arguments as those of `forward`.
    The tensors are in their graph, and `params` is the module. The weights are those before
    dropout; the heads, in training, come from those after.
    """
    Q, K, V = project_packed_qkv(module, X, context)
    scores = Q / math.sqrt(module.d_k) @ K.transpose(-2, -1)  # (..., H, T, S)
    weights = masked_softmax(scores, mask=may_look(mask, is_causal, Q, K))
    heads = F.dropout(weights, module.dropout, module.training) @ V  # (..., H, T, d_v)
    concat = heads.transpose(-3, -2).flatten(-2)  # (..., T, H*d_v)
    Y = module.out_proj(concat)
    return Trace(module, X, context, Q, K, V, scores, weights, heads, concat, Y)


@checked
def project_packed_qkv(
    module: MultiHeadAttention, X: "... T d_model", context: "... S d_model" = None
) -> tuple:
    """Give each head its queries, keys and values, from one product in self-attention.

    Introduced in chapter 09. They are (..., H, T, d_k), (..., H, S, d_k) and (..., H, S, d_v). With
    a context the rows of `qkv_proj.weight` are used apart, so its hooks are not called.
    """
    H, d_k, d_v = module.n_heads, module.d_k, module.d_v
    if context is None:
        qkv_parts = module.qkv_proj(X).split([H * d_k, H * d_k, H * d_v], dim=-1)
    else:
        counts = [H * d_k, H * (d_k + d_v)]  # the queries' rows multiply X, all others the context
        W_Q, W_KV = module.qkv_proj.weight.split(counts)
        bias = module.qkv_proj.bias
        b_Q, b_KV = (None, None) if bias is None else bias.split(counts)
        kv_parts = F.linear(context, W_KV, b_KV).split([H * d_k, H * d_v], dim=-1)
        qkv_parts = (F.linear(X, W_Q, b_Q), *kv_parts)
    return tuple(projection.unflatten(-1, (H, -1)).transpose(-3, -2) for projection in qkv_parts)


@checked
def may_look(mask: object, is_causal: bool, Q: "... T d_k", K: "... S d_k") -> "mask ... T S":
    """Join a mask and causality, `causal_mask(T, S)`, into one mask: both must allow a look.

    Built in chapter 10. None, given or returned, lets all look.

    >>> may_look(None, True, torch.ones(5, 4), torch.ones(6, 4)).shape
    torch.Size([5, 6])
    """
    if not is_causal:
        return mask
    T, S = Q.shape[-2], K.shape[-2]
    causal = torch.ones(T, S, dtype=torch.bool, device=Q.device).tril(S - T)
    return causal if mask is None else causal & mask


@checked
def masked_softmax(scores: "... T S", *, mask: "mask ... T S" = None) -> "... T S":
    """Turn each row of scores into weights; a fully masked row gives zeros.

    Built in chapter 10. What `tutorial_lib.attention_weights` is in NumPy. A fully masked row looks
    at all keys until the softmax is done, so that no NaN arises, in a gradient either.

    >>> masked_softmax(torch.zeros(3, 5, 6)).shape
    torch.Size([3, 5, 6])
    """
    if mask is None:
        return scores.softmax(dim=-1)
    some = mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~mask & some, -math.inf).softmax(dim=-1)
    return torch.where(some, weights, 0.0)


@checked
def fused_attention(
    Q: "... T d_k",
    K: "... S d_k",
    V: "... S d_v",
    *,
    mask: "mask ... T S" = None,
    dropout: float = 0.0,
) -> "... T d_v":
    """Score and mix in one call of PyTorch; a fully masked row gives zeros.

    Built in chapter 10. Dropout is the fraction of the weights to set to zero.

    >>> fused_attention(*torch.ones(3, 2, 3, 5, 4)).shape
    torch.Size([2, 3, 5, 4])
    """
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout)
    some = mask.any(dim=-1, keepdim=True)
    heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | ~some, dropout_p=dropout)
    return torch.where(some, heads, 0.0)


def merge_batch_axes(X, batch):
    """Lay the batch axes into one, which PyTorch's fast kernels expect; None stays None."""
    return None if X is None else X.expand(*batch, *X.shape[-2:]).reshape(-1, *X.shape[-2:])


def mask_with_four_axes(mask, batch):
    """Lay a mask's batch axes into one and add those it lacks; None stays None."""
    if mask is None:
        return None
    mask = mask.reshape((1,) * (3 - mask.ndim) + tuple(mask.shape))
    if mask.ndim > 3:
        mask = mask.expand(*batch, *mask.shape[-3:])
    return mask.reshape(-1, *mask.shape[-3:])

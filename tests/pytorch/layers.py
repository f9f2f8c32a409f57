"""What the tests of the layer share: its sizes, both ways through it, and inputs."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tutorial_lib.pytorch import MultiHeadAttention

H, T, S, D_K, D_V, D_MODEL, B = 3, 5, 6, 4, 7, 12, 2
PATHS = {"fused": MultiHeadAttention.forward, "explicit": MultiHeadAttention.explicit}


def make(dtype=torch.float64, **options):
    """A layer with biases in which all lengths differ, always with the same weights."""
    torch.manual_seed(0)
    sizes = {"d_k": D_K, "d_v": D_V, "bias": True}
    return MultiHeadAttention(D_MODEL, H, **sizes | options).to(dtype)


def draw(*shape, seed=1, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def coins(*shape):
    """Random booleans; every row of the last axis holds a True, at different places."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.5
    keys = shape[-1]
    query = torch.arange(mask.numel()).reshape(shape) // keys
    return mask | (query % keys == torch.arange(keys))


class NoArithmetic(TorchDispatchMode):
    """A failure as soon as any tensor is computed with; its numbers may be looked at."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function is torch.ops.aten.detach.default:
            return function(*arguments)
        raise AssertionError(f"computed {function} before the check")

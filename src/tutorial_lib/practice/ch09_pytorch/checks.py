"""Checks for chapter 09. Torch is loaded when one of them is called, and not before."""

import numpy as np

from tutorial_lib import projection
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_MODEL, D_V, H, S, T, normal

MISTAKES, cases_of = read_room(__file__)


@cases_of("tutorial_lib.pytorch.bridge.packed_weight")
def check_packed_weight():
    """Check `packed_weight(params)` → (H*(2*d_k + d_v), d_model). Prints an account."""
    rng = np.random.default_rng(3)
    sizes = {
        "3 heads": {"d_model": D_MODEL, "n_heads": H, "d_k": D_K, "d_v": D_V},
        "one head": {"d_model": 5, "n_heads": 1, "d_k": 2, "d_v": 7},
        "5 heads, d_model = H * d_k": {"d_model": 35, "n_heads": 5, "d_k": 7, "d_v": D_V},
    }
    for label, lengths in sizes.items():
        yield label, {"params": projection.init_params(rng, **lengths)}


def _split_packed(weight, n_heads):
    blocks = weight.reshape(3, n_heads, -1, weight.shape[1])
    return tuple(np.swapaxes(blocks, -1, -2))


@cases_of(_split_packed)
def check_split_packed():
    yield "5 heads", {"weight": normal(50, 3 * 5 * D_K, D_MODEL), "n_heads": 5}
    yield "2 heads", {"weight": normal(51, 3 * 2 * D_V, 7), "n_heads": 2}
    yield "2 heads, d_model = H * d", {"weight": normal(55, 3 * 2 * 5, 10), "n_heads": 2}


def _from_interleaved(weight, n_heads):
    blocks = weight.reshape(n_heads, 3, -1, weight.shape[1])
    return np.swapaxes(blocks, 0, 1).reshape(weight.shape)


@cases_of(_from_interleaved)
def check_from_interleaved():
    yield "5 heads", {"weight": normal(52, 5 * 3 * D_K, D_MODEL), "n_heads": 5}
    yield "2 heads", {"weight": normal(53, 2 * 3 * D_V, 7), "n_heads": 2}


def _outputs_of(module, X, names):
    seen = {}

    def keep(name):
        return lambda part, inputs, output: seen.update({name: output})

    hooks = [module.get_submodule(name).register_forward_hook(keep(name)) for name in names]
    module(X)
    for hook in hooks:
        hook.remove()
    return tuple(seen[name] for name in names)


@cases_of(_outputs_of)
def check_outputs_of():
    import torch
    from torch import nn

    from tutorial_lib.pytorch.mha import MultiHeadAttention

    generator = torch.Generator().manual_seed(0)
    chain = nn.Sequential(*(nn.Linear(D_MODEL, D_MODEL) for _ in range(H)), nn.Tanh()).double()
    nested = nn.Sequential(nn.Identity(), MultiHeadAttention(2 * D_V, 2)).double()
    inner = nn.Sequential(nn.Identity(), MultiHeadAttention(H * T, H))
    deep = nn.Sequential(inner, nn.Tanh()).double()
    for weight in (*chain.parameters(), *nested.parameters(), *deep.parameters()):
        nn.init.normal_(weight, generator=generator)

    def case(label, module, shape, names):
        X = torch.from_numpy(normal(54, *shape))
        return (label, {"module": module.eval(), "X": X, "names": names})

    yield case("submodules, not in running order", chain, (T, D_MODEL), ["2", "0", "3"])
    yield case("nested submodules", nested, (S, 2 * D_V), ["1.out_proj", "1.qkv_proj"])
    yield case("nested ones too, in a batch", deep, (4, S, H * T), ["1", "0.1.out_proj"])

"""Checks for chapter 09. Torch is loaded when one of them is called, and not before."""

import numpy as np

from tutorial_lib import projection
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, Case, H, S, T, against, normal
from tutorial_lib.practice.ch09_pytorch.mistakes import MISTAKES

check = against(MISTAKES)


def check_packed_weight(function):
    """Check `packed_weight(params)` → (H*(2*d_k + d_v), d_model). Prints an account."""
    from tutorial_lib.pytorch.bridge import packed_weight

    rng = np.random.default_rng(3)
    sizes = {
        "3 heads": {"d_model": D_MODEL, "n_heads": H, "d_k": D_K, "d_v": D_V},
        "one head": {"d_model": 5, "n_heads": 1, "d_k": 2, "d_v": 2},
    }
    cases = tuple(
        Case(label, {"params": projection.init_params(rng, **lengths)})
        for label, lengths in sizes.items()
    )
    check("packed_weight", function, packed_weight, cases)


def _split_packed(weight, n_heads):
    blocks = weight.reshape(3, n_heads, -1, weight.shape[1])
    return tuple(np.swapaxes(blocks, -1, -2))


def check_split_packed(function):
    """Check `split_packed(weight, n_heads)` → W_Q, W_K, W_V, exercise of chapter 09."""
    cases = (
        Case("3 heads", {"weight": normal(50, 3 * H * D_K, D_MODEL), "n_heads": H}),
        Case("5 heads", {"weight": normal(51, 3 * 5 * 2, 7), "n_heads": 5}),
    )
    check("split_packed", function, _split_packed, cases)


def _from_interleaved(weight, n_heads):
    blocks = weight.reshape(n_heads, 3, -1, weight.shape[1])
    return np.swapaxes(blocks, 0, 1).reshape(weight.shape)


def check_from_interleaved(function):
    """Check `from_interleaved(weight, n_heads)` → the packed order, exercise of chapter 09."""
    cases = (
        Case("5 heads", {"weight": normal(52, 5 * 3 * D_K, D_MODEL), "n_heads": 5}),
        Case("2 heads", {"weight": normal(53, 2 * 3 * D_V, 9), "n_heads": 2}),
    )
    check("from_interleaved", function, _from_interleaved, cases)


def _outputs_of(module, X, names):
    seen, parts = {}, {name: module.get_submodule(name) for name in names}
    hooks = [
        part.register_forward_hook(lambda part, X, output, name=name: seen.update({name: output}))
        for name, part in parts.items()
    ]
    module(X)
    for hook in hooks:
        hook.remove()
    return tuple(seen[name] for name in names)


def check_outputs_of(function):
    """Check `outputs_of(module, X, names)`, exercise of chapter 09. Prints an account."""
    import torch
    from torch import nn

    from tutorial_lib.pytorch.mha import MultiHeadAttention

    generator = torch.Generator().manual_seed(0)
    chain = nn.Sequential(*(nn.Linear(D_MODEL, D_MODEL) for _ in range(H)), nn.Tanh()).double()
    nested = nn.Sequential(nn.Identity(), MultiHeadAttention(D_MODEL, H)).double()
    for weight in (*chain.parameters(), *nested.parameters()):
        nn.init.normal_(weight, generator=generator)

    def case(label, module, tokens, names):
        X = torch.from_numpy(normal(54, tokens, D_MODEL))
        return Case(label, {"module": module.eval(), "X": X, "names": names})

    cases = (
        case("parts in another order than they run", chain, T, ["2", "0", "3"]),
        case("parts that lie deeper", nested, S, ["1.out_proj", "1.qkv_proj"]),
    )
    check("outputs_of", function, _outputs_of, cases)

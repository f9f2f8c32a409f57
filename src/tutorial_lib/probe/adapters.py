"""Functions of NumPy, PyTorch and JAX as functions of arrays of NumPy."""

import numpy as np

from tutorial_lib.probe.subject import ProbeError, Subject

WIDTH_NAMES = ("d_model", "embed_dim", "hidden_size", "n_embd", "dim", "in_features")


def _polarity(name):
    """Return the name of an argument, and whether True hides in it."""
    return (name[1:], True) if name and name.startswith("~") else (name, False)


def context_of(keep_name, positions_name):
    """Return a function that makes keyword arguments of keep and positions, where given."""
    keep_name, hides = _polarity(keep_name)

    def context(keep, positions):
        given = {}
        if keep is not None:
            given[keep_name] = ~keep if hides else keep
        if positions is not None:
            given[positions_name] = positions
        return given

    return context


def words_taken(keep, positions):
    """Return which of "keep" and "positions" a layer takes."""
    return frozenset(
        word for word, name in (("keep", keep), ("positions", positions)) if name is not None
    )


def width_of(layer, d_model):
    """Return the width of a layer, as claimed or as it, or a part of it, says."""
    parts = layer.modules() if hasattr(layer, "modules") else (layer,)
    found = [d_model, *(getattr(part, name, None) for part in parts for name in WIDTH_NAMES)]
    width = next((value for value in found if isinstance(value, int)), None)
    if width is None:
        raise ProbeError("the width of the layer is not known. Give it: probe(layer, d_model=64).")
    return width


def hidden_states(layer, *, d_model=None, keep=None, positions=None, cache=None, **claims):
    """Return a function of NumPy arrays as a subject, and what is left as claims."""
    context = context_of(keep, positions)

    def run(X, keep=None, positions=None):
        return layer(X, **context(keep, positions))

    return Subject(run, width_of(layer, d_model), words_taken(keep, positions), cache), claims


def function(run, *, axes, mask):
    """Return a function of Q, K, V of axes (B, H, T, d), and of a mask, True = may look."""
    if axes not in ("BHTd", "BTHd"):
        raise ProbeError(f"axes={axes!r}; expected 'BHTd' or 'BTHd'.")
    name, hides = _polarity(mask)

    def call(Q, K, V, mask=None):
        if axes == "BTHd":
            Q, K, V = (np.swapaxes(x, 1, 2) for x in (Q, K, V))
        given = {} if mask is None else {name: ~mask if hides else mask}
        out = np.asarray(run(Q, K, V, **given))
        return np.swapaxes(out, 1, 2) if axes == "BTHd" else out

    return call


def torch_function(run, *, axes, mask):
    """Return a function of tensors as one of arrays, in double, in single, and its gradient."""
    import torch

    def tensors(arrays, dtype):
        return [torch.from_numpy(np.ascontiguousarray(array)).to(dtype) for array in arrays]

    def called(dtype):
        def call(*arrays, **given):
            given = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in given.items()}
            with torch.no_grad():
                out = run(*tensors(arrays, dtype), **given)
            return (out[0] if isinstance(out, tuple) else out).numpy()

        return function(call, axes=axes, mask=mask)

    def gradient(*arrays):
        swap = (lambda x: x.transpose(1, 2)) if axes == "BTHd" else (lambda x: x)
        *given, dY = tensors(arrays, torch.float64)
        given = [array.requires_grad_() for array in given]
        out = run(*map(swap, given))
        swap(out[0] if isinstance(out, tuple) else out).backward(dY)
        return [array.grad.numpy() for array in given]

    return called(torch.float64), {"single": called(torch.float32), "gradient": gradient}


def jax_function(run):
    """Return a function of arrays of JAX as one of arrays of NumPy."""
    import jax.numpy as jnp

    def call(*arrays, **given):
        out = run(*map(jnp.asarray, arrays), **{k: jnp.asarray(x) for k, x in given.items()})
        return np.asarray(out)

    return call

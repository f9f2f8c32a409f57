"""Layers of NumPy, PyTorch, transformers and JAX as subjects.

A framework is imported where its objects arrive.
"""

import copy
import inspect

import numpy as np

from tutorial_lib.probe.subject import Cache, ProbeError, Subject

WIDTH_NAMES = ("d_model", "embed_dim", "hidden_size", "n_embd", "dim", "in_features")


def _polarity(name):
    """Return the name of an argument, and whether True hides in it."""
    return (name[1:], True) if name and name.startswith("~") else (name, False)


def _context(keep_name, positions_name):
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


def _takes(keep, positions):
    return frozenset(
        word for word, name in (("keep", keep), ("positions", positions)) if name is not None
    )


def _width(layer, d_model):
    """Return the width of a layer, as claimed or as it, or a part of it, says."""
    parts = layer.modules() if hasattr(layer, "modules") else (layer,)
    found = [d_model, *(getattr(part, name, None) for part in parts for name in WIDTH_NAMES)]
    width = next((value for value in found if isinstance(value, int)), None)
    if width is None:
        raise ProbeError("the width of the layer is not known. Give it: probe(layer, d_model=64).")
    return width


def hidden_states(layer, *, d_model=None, keep=None, positions=None, cache=None, **claims):
    """Return a function of NumPy arrays as a subject, and what is left as claims."""
    context = _context(keep, positions)

    def run(X, keep=None, positions=None):
        return layer(X, **context(keep, positions))

    return Subject(run, _width(layer, d_model), _takes(keep, positions), cache), claims


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
    """Return a function of tensors as one of arrays."""
    import torch

    def call(Q, K, V, **given):
        tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in (Q, K, V)]
        given = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in given.items()}
        with torch.no_grad():
            out = run(*tensors, **given)
        return (out[0] if isinstance(out, tuple) else out).numpy()

    return function(call, axes=axes, mask=mask)


def jax_function(run):
    """Return a function of arrays of JAX as one of arrays of NumPy."""
    import jax.numpy as jnp

    def call(*arrays, **given):
        out = run(*map(jnp.asarray, arrays), **{k: jnp.asarray(x) for k, x in given.items()})
        return np.asarray(out)

    return call


def loud(module, seed=0):
    """Return a copy of a module with weights drawn anew, so that none is too small to be seen."""
    import torch

    module = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if parameter.dim() > 1:
                parameter.copy_(noise * 1.5 / np.sqrt(parameter.shape[-1]))
            else:
                parameter.add_((0.1 * noise).to(parameter.dtype))
    return module


def without_dropout(module):
    """Return a copy in training mode whose dropout has the rate 0."""
    module = copy.deepcopy(module).train()
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, float) and ("dropout" in name or name == "p"):
                setattr(part, name, 0.0)
    return module


def _attend(module, X, **given):
    """Call a module on hidden states."""
    import torch

    if isinstance(module, torch.nn.MultiheadAttention):
        return module(X, X, X, need_weights=False, **given)
    return module(X, **given)


def torch_module(
    module,
    *,
    d_model=None,
    keep=None,
    positions=None,
    cache=None,
    call=_attend,
    own_weights=False,
    **claims,
):
    """Return a module as a subject, in double precision, and what is left as claims."""
    import torch

    context = _context(keep, positions)
    module = copy.deepcopy(module) if own_weights else loud(module)
    double = module.double().eval()

    def run_in(module, dtype):
        def run(X, keep=None, positions=None):
            given = context(keep, positions)
            given = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in given.items()}
            with torch.no_grad():
                return _array(call(module, torch.from_numpy(X).to(dtype), **given))

        return run

    def training(X):
        torch.manual_seed(0)
        return run_in(trained, torch.float64)(X)

    def gradient(X, dY):
        X = torch.from_numpy(X).requires_grad_()
        Y = call(double, X)
        (Y[0] if isinstance(Y, tuple) else Y).backward(torch.from_numpy(dY))
        return X.grad.numpy()

    trained, single = without_dropout(double), copy.deepcopy(double).float()
    subject = Subject(
        run_in(double, torch.float64),
        _width(module, d_model),
        _takes(keep, positions),
        cache=None if cache is None else _torch_cache(cache, double),
        single=run_in(single, torch.float32),
        training=training,
        seed=lambda: torch.manual_seed(0),
        gradient=gradient,
    )
    return subject, claims


def _array(out):
    """Return what a module returns, the first of several, as an array."""
    out = out[0] if isinstance(out, tuple | list) else out
    return out.detach().double().numpy()


def _torch_cache(cache, module):
    """Return a cache of tensors, whose step takes the module first, as one of arrays."""
    import torch

    def step(X, state):
        with torch.no_grad():
            Y, state = cache.step(module, torch.from_numpy(X), state)
        return _array(Y), state

    return Cache(step, lambda: cache.empty(module), cache.rewind)


def transformers_model(model, layer):
    """Return the attention of one layer inside a model as a subject."""
    import torch

    model = loud(model).eval()
    width = model.get_input_embeddings().embedding_dim
    accepts = inspect.signature(model.forward).parameters

    def run_in(model, dtype):
        def run(X, keep=None, positions=None):
            given = {"use_cache": False} if "use_cache" in accepts else {}
            if keep is not None:
                given["attention_mask"] = torch.from_numpy(keep.astype(np.int64))
            if positions is not None:
                given["position_ids"] = torch.from_numpy(positions)
            return _attended(model, layer, torch.from_numpy(X).to(dtype), **given)[0]

        return run

    # Models call what they are given "cache" from transformers 5.24 on, and past_key_values before.
    cache_name = next((name for name in ("cache", "past_key_values") if name in accepts), None)

    def step(X, state):
        given = {cache_name: state, "use_cache": True}
        Y, result = _attended(model, layer, torch.from_numpy(X).to(dtype), **given)
        return Y, result.get(cache_name)

    dtype = _precision(model, run_in, np.ones((1, 2, width)))
    takes = {"keep"} | ({"positions"} if "position_ids" in accepts else set())
    cache = Cache(step, lambda: _empty_cache(model), _crop)
    if cache_name is None or not _keeps(cache, width):
        cache = None
    double = dtype == torch.float64  # norms and rotations stay single inside a model of double
    return Subject(
        run_in(model, dtype),
        width,
        frozenset(takes),
        cache,
        single=run_in(copy.deepcopy(model).float(), torch.float32) if double else None,
        training=run_in(without_dropout(model), dtype),
        precision=1e-4 if double else 1e-3,
        seed=lambda: torch.manual_seed(0),
    )


def _precision(model, run_in, X):
    """Make a model double, or single where one of its kernels, as for experts, is single alone."""
    import torch

    try:
        run_in(model.double(), torch.float64)(X)
    except RuntimeError:
        model.float()
        return torch.float32
    return torch.float64


def _attended(model, layer, X, **given):
    """Return what the attention of a layer returns within a call of its model, and the result."""
    import torch

    caught = []
    hook = _attention_of(model, layer).register_forward_hook(
        lambda _module, _inputs, out: caught.append(out)
    )
    try:
        with torch.no_grad():
            result = model(inputs_embeds=X, **given)
    finally:
        hook.remove()
    return _array(caught[0]), result


def _keeps(cache, width):
    """Say whether a model returns a cache; an encoder takes one and ignores it."""
    return cache.step(np.ones((1, 1, width)), cache.empty())[1] is not None


def _empty_cache(model):
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def _crop(state, length):
    """Take back all tokens of a cache but the first ones."""
    state.crop(length - state.get_seq_length())
    return state


def _attention_of(model, layer):
    """Return the attention module of a layer, the first in it whose class is called so."""
    blocks = [
        module
        for name, module in model.named_modules()
        if name.split(".")[-1] == str(layer) and "Attention" not in type(module).__name__
    ]
    for block in blocks:
        for module in block.modules():
            if type(module).__name__.endswith(("Attention", "SelfAttention")):
                return module
    raise ProbeError(
        f"no attention module was found in layer {layer} of {type(model).__name__}. Wrap its "
        "attention in a function of hidden states and call probe.torch."
    )

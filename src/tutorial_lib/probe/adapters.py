"""Functions of NumPy, PyTorch and JAX as functions of arrays of NumPy."""

import inspect
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.probe.subject import ProbeError, Subject, memory_of, tokens

LENGTHS = (64, 49, 196)  # that layers of images or blocks take
WIDTH_NAMES = ("d_model", "embed_dim", "hidden_size", "n_embd", "dim", "in_features")


def _polarity(name):
    """Return the name of an argument, and whether True hides in it."""
    return (name[1:], True) if name and name.startswith("~") else (name, False)


class Arguments:
    """What a layer gets besides X: a memory (S, d_memory), or None, and what has names.

    `names` are its names of "keep", "positions" and "memory_keep"; "~" before one: True hides.
    """

    def __init__(self, memory=None, **names):
        self.memory = memory
        self.names = {word: _polarity(name) for word, name in names.items() if name is not None}
        self.words = frozenset(self.names)  # that the layer takes
        if memory is None and "memory_keep" in names:
            raise ProbeError("memory_keep= needs memory=(S, d_memory), the sizes of a memory.")

    def __call__(self, B, *, memory=None, **given):
        """Return the arrays that follow X (B, T, d_model), and those that have names."""
        given = {word: array for word, array in given.items() if array is not None}
        named = {self.names[word][0]: ~x if self.names[word][1] else x for word, x in given.items()}
        if self.memory is None:
            return (), named
        return (memory_of(self.memory, B) if memory is None else memory,), named


OPTIONS = ("memory", "keep", "positions", "memory_keep")


def arguments_of(options):
    """Take what a layer gets besides X out of options."""
    return Arguments(**{word: options.pop(word) for word in OPTIONS if word in options})


def width_of(layer, d_model):
    """Return the width of a layer, as claimed or as it, or a part of it, says."""
    parts = layer.modules() if hasattr(layer, "modules") else (layer,)
    found = [d_model, *(getattr(part, name, None) for part in parts for name in WIDTH_NAMES)]
    width = next((value for value in found if isinstance(value, int)), None)
    if width is None:
        raise ProbeError("the width of the layer is not known. Give it: probe(layer, d_model=64).")
    return width


def hidden_states(layer, *, d_model=None, cache=None, **options):
    """Return a function of NumPy arrays as a subject, and what is left as claims."""
    arguments = arguments_of(options)

    def run(X, **given):
        more, named = arguments(len(X), **given)
        out = layer(X, *more, **named)
        return out[0] if isinstance(out, tuple) else out

    width, memory = width_of(layer, d_model), arguments.memory
    cache = with_padding(cache, arguments)
    return Subject(run, width, arguments.words, cache, memory=memory), options


def with_padding(cache, arguments):
    """Return a cache whose step gets padding under the name that the layer has for it, if it can.

    The padding (B, n) is that of all tokens so far.
    """
    name, hides = arguments.names.get("keep", ("", False))
    if cache is None or cache.padded or not name or arguments.memory is not None:
        return cache
    takes = inspect.signature(cache.step).parameters
    if name not in takes and inspect.Parameter.VAR_KEYWORD not in {p.kind for p in takes.values()}:
        return cache

    def padded(*given):
        *given, keep = given
        return cache.step(*given, **{name: ~keep if hides else keep})

    return replace(cache, padded=padded)


def fitted(subject):
    """Return a layer that takes other lengths alone, or has not one output per token, as one."""

    def shape(B, T):
        return np.shape(subject.run(tokens(1, (B, T, subject.d_model))[0]))

    def adapted(of):
        ways = ("run", "single", "half", "training")
        changed = {way: of(call) for way in ways if (call := getattr(subject, way))}
        return replace(subject, gradient=None, trained=None, **changed)

    with suppress(Exception):
        found = shape(1, 13)
        of_text = found[:2] != (1, 13) and len(found) > 1 and shape(3, 13) == (3, *found[1:])
        return adapted(_at_each_token) if of_text and shape(1, 10) == found else subject
    for length in LENGTHS:
        with suppress(Exception):
            shape(1, length)
            return adapted(partial(_filled, length=length))
    return subject


def _filled(run, length):
    """Return a function of shorter texts, of one of a length, by always the same tokens behind."""

    def outputs(X, **given):
        T = X.shape[1]
        more = tokens(1, (1, length, X.shape[-1]), seed=61)[0][:, T:].repeat(len(X), axis=0)
        for word in {"keep", "positions"} & given.keys():
            given[word] = np.pad(given[word], ((0, 0), (0, length - T)), "edge")
        return np.asarray(run(np.concatenate([X, more], axis=1), **given))[:, :T]

    return outputs


def _at_each_token(run):
    """Return a function with an output per token, of one whose outputs belong to the text."""

    def outputs(X, **given):
        Y = np.asarray(run(X, **given), dtype=float)
        return np.repeat(Y.reshape(len(X), 1, -1), X.shape[1], axis=1)

    return outputs


def function(run, *, axes, mask):
    """Return as `run` a function of Q, K, V (B, H, T, d), and of a mask, True = may look."""
    if axes not in ("BHTd", "BTHd"):
        raise ProbeError(f"axes={axes!r}; expected 'BHTd' or 'BTHd'.")
    name, hides = _polarity(mask)

    def call(Q, K, V, mask=None):
        if axes == "BTHd":
            Q, K, V = (np.swapaxes(x, 1, 2) for x in (Q, K, V))
        given = {} if mask is None else {name: ~mask if hides else mask}
        out = run(Q, K, V, **given)
        out = np.asarray(out[0] if isinstance(out, tuple) else out)
        return np.swapaxes(out, 1, 2) if axes == "BTHd" else out

    return {"run": call}


def torch_function(run, *, axes, mask):
    """Return functions of arrays by name: run, in double, single, half and gradient."""
    import torch

    name, hides = _polarity(mask)
    order = (0, 2, 1, 3) if axes == "BTHd" else (0, 1, 2, 3)

    def called(tensor):
        return function(_of_arrays(run, tensor), axes=axes, mask=mask)["run"]

    def gradient(*arrays, mask=None):
        *arrays, dY = (array.transpose(order) for array in arrays)
        given = {} if mask is None else {name: ~mask if hides else mask}
        arrays, out = _call(run, torch.Tensor.double, arrays, given, graph=True)
        found = gradients(out, arrays, torch.from_numpy(np.ascontiguousarray(dY)))
        return [gradient.transpose(order) for gradient in found]

    single, half = called(torch.Tensor.float), called(torch.Tensor.half)
    double = _first_that_runs(called(torch.Tensor.double), single)
    return {"run": double, "single": single, "half": half, "gradient": gradient}


def tensor_function(run):
    """Return a function of tensors as one of arrays, in double, or in single precision."""
    import torch

    return _first_that_runs(
        *(_of_arrays(run, x) for x in (torch.Tensor.double, torch.Tensor.float))
    )


def _of_arrays(run, tensor):
    """Return a function of tensors as one of arrays, in the precision of `tensor`."""

    def outputs(*arrays, **given):
        return _call(run, tensor, arrays, given)[1].double().numpy()

    return outputs


def _first_that_runs(double, single):
    """Return a function in double precision, or in single where it takes no other."""
    chosen = []

    def call(*arrays, **given):
        if not chosen:
            chosen.append(double)
            try:
                return double(*arrays, **given)
            except RuntimeError:
                chosen[0] = single
        return chosen[0](*arrays, **given)

    return call


def _call(run, tensor, arrays, given, *, graph=False):
    """Call a function of tensors with arrays; return the tensors that it got, and what it gave.

    `tensor` makes a tensor of what is one in double precision.
    """
    import torch

    arrays = [tensor(torch.from_numpy(np.ascontiguousarray(array)).double()) for array in arrays]
    arrays = [array.requires_grad_(graph) for array in arrays]
    given = {word: torch.from_numpy(np.ascontiguousarray(x)) for word, x in given.items()}
    with torch.set_grad_enabled(graph):
        out = run(*arrays, **given)
    return arrays, out[0] if isinstance(out, tuple) else out


def gradients(out, arrays, dY):
    """Return the gradients of arrays, 0 where the graph does not lead to one."""
    import torch

    out = out[0] if isinstance(out, tuple) else out
    if not out.requires_grad:
        return [np.zeros(array.shape) for array in arrays]
    found = torch.autograd.grad(out, arrays, dY, allow_unused=True, materialize_grads=True)
    return [gradient.numpy() for gradient in found]


def jax_function(run):
    """Return a function of arrays of JAX as one of arrays of NumPy."""
    import jax.numpy as jnp

    def call(*arrays, **given):
        out = run(*map(jnp.asarray, arrays), **{k: jnp.asarray(x) for k, x in given.items()})
        return np.asarray(out[0] if isinstance(out, tuple) else out)

    return call

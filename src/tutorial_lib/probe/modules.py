"""Modules of PyTorch, and the attention inside models of transformers, as subjects."""

import copy
import inspect
from contextlib import suppress
from functools import partial

import numpy as np

from tutorial_lib.probe.adapters import (
    LENGTHS,
    Arguments,
    arguments_of,
    gradients,
    hidden_states,
    tensor_function,
    width_of,
    with_padding,
)
from tutorial_lib.probe.subject import Cache, ProbeError, Subject, Undecidable, set_seeds, tokens


def with_random_weights(module, seed=0):
    """Return a copy of a module with weights drawn anew, so that none is too small to be seen.

    What is not trained, such as a table of sines, stays as it is.
    """
    import torch

    module = copy.deepcopy(module)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in filter(lambda one: one.requires_grad, module.parameters()):
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if parameter.dim() > 1:
                parameter.copy_(noise * 1.5 / np.sqrt(parameter.shape[-1]))
            else:
                parameter.add_((0.1 * noise).to(parameter.dtype))
    return module


def without_dropout(module):
    """Return a copy in training mode whose dropout has the rate 0."""
    module = copy.deepcopy(module).train()
    for part, name in _rates(module):
        setattr(part, name, 0.0)
    return module


def _rates(module):
    """Yield the parts of a module that have a rate of dropout, and its name."""
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, float) and 0 < value < 1 and ("dropout" in name or name == "p"):
                yield part, name


class Module:
    """A module of PyTorch in evaluation mode, called with arrays of NumPy.

    `call` is a function of it, X, a memory where there is one, and what is handed over by name.
    """

    def __init__(self, module, call, arguments, width):
        import torch

        self.module, self.call, self.arguments, self.width = module, call, arguments, width
        self.dtype, self.length = torch.float64, 16

    def run(self, X, **given):
        """Return the outputs for X (B, T, d_model)."""
        import torch

        with torch.no_grad():
            return first_array(self._called(*self._tensors([X]), **given))

    def _called(self, X, **given):
        memory, named = self.arguments(len(X), **given)
        return self.call(self.module, X, *self._tensors(memory), **self._tensors(named))

    def _tensors(self, arrays):
        """Return tensors of arrays, those of floats in the precision of the module."""
        import torch

        if isinstance(arrays, dict):
            return dict(zip(arrays, self._tensors(arrays.values()), strict=True))
        tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
        return [x.to(self.dtype) if x.is_floating_point() else x for x in tensors]

    def _text(self, B=1):
        return tokens(1, (B, self.length, self.width))[0]  # of a length that the module takes

    def of(self, module):
        """Return the same way to call another module, in its precision."""
        other = copy.copy(self)
        other.module, other.dtype = module, next(module.parameters()).dtype
        return other

    def lower(self, precision):
        """Return the outputs in a precision, "float" or "half", as a function of X."""
        import torch

        return self.of(getattr(torch.nn.Module, precision)(copy.deepcopy(self.module))).run

    def training(self):
        """Return the outputs in training mode without dropout as a function of X."""
        return _seeded(self.of(without_dropout(self.module)).run)

    def trained(self):
        """Return run and gradient in training mode, if that is random; each begins with a seed."""
        trained, X = self.of(copy.deepcopy(self.module).train()), self._text()
        random = not np.array_equal(trained.run(X.copy()), trained.run(X.copy()))
        return (_seeded(trained.run), _seeded(trained.gradient)) if random else None

    def switched(self, fresh):
        """Return whether a module that was not evaluated yet is random, mode by mode.

        Last, the name of what is wrong if dropout is drawn, or has a rate, and no output is random.
        """
        import torch

        def random():
            module, X = copy.deepcopy(fresh), self._text(16)
            called, found = self.of(module.to(self.dtype)), []
            for mode in (True, False, True):
                module.train(mode)
                set_seeds()
                state = torch.get_rng_state()
                first, second = called.run(X.copy()), called.run(X.copy())
                found.append(not np.array_equal(first, second))
            drawn = not torch.equal(state, torch.get_rng_state())
            name = "dropout_without_effect" if drawn else "dropout_not_used"
            return *found, not found[-1] and (drawn or any(_rates(module))) and name

        return random

    def gradient(self, X, dY, keep=None):
        """Return dX, of the shape of X, in a list."""
        X, dY = self._tensors((X, dY))
        return gradients(self._called(X.requires_grad_(), keep=keep), [X], dY)

    def unused(self):
        """Return names of parameters without a gradient, in whole or in rows of a linear layer.

        The first list holds those that have no effect, the second those that have one all the same,
        and the third lists of modules that are no part of this one.
        """
        import torch

        named = _trained(self.module)
        (X,) = self._tensors([self._text(16)])
        Y = self._called(X.requires_grad_())
        Y = Y[0] if isinstance(Y, tuple | list) else Y
        given = torch.autograd.grad(Y.sum(), list(named.values()), allow_unused=True)
        without_effect, cut = [], []
        for (name, parameter), gradient in zip(named.items(), given, strict=True):
            rows = self._without_gradient(name, parameter, gradient)
            if rows.any():
                (cut if self._moves(parameter, rows) else without_effect).append(name)
        parts = list(self.module.modules())
        lists = [(name, x) for part in parts for name, x in vars(part).items() if type(x) is list]
        lost = [
            name
            for name, found in lists
            if any(isinstance(x, torch.nn.Module) and x not in parts for x in found)
        ]
        return without_effect, cut, lost

    def _without_gradient(self, name, parameter, gradient):
        """Say of each row of a parameter whether no gradient comes to it."""
        import torch

        if gradient is None:
            return torch.ones(parameter.shape[:1], dtype=torch.bool)
        owner = self.module.get_submodule(name.rpartition(".")[0])
        rows = gradient.reshape(len(gradient), -1).abs().amax(dim=1).eq(0)
        linear = isinstance(owner, torch.nn.Linear) and gradient.dim() == 2
        return rows & linear & ~rows.all()  # an expert that no token meets is not unused

    def _moves(self, parameter, rows):
        """Say whether other values in these rows of a parameter change the output."""
        X, saved = self._text(2), parameter.detach().clone()
        (more,) = self._tensors([np.linspace(-1, 1, saved[rows].numel())])
        before = self.run(X)
        parameter.data[rows] += more.view_as(saved[rows]).to(saved)
        after = self.run(X)
        parameter.data.copy_(saved)
        return bool(np.abs(after - before).max() > 0)

    def cached(self, cache):
        """Return a cache of arrays, of one whose functions take the module first."""
        import torch

        def of(step):
            @torch.no_grad()
            def call(X, state, *more):
                Y, state = step(self.module, *self._tensors([X]), state, *self._tensors(more))
                return first_array(Y), state

            return step and call

        empty = partial(cache.empty, self.module)
        return Cache(of(cache.step), empty, cache.rewind, of(cache.padded))


def _seeded(run):
    """Return a function that sets the generators before it runs."""
    return lambda *arrays, **given: set_seeds() or run(*arrays, **given)


def first_array(out):
    """Return what a module returns, the first of several, as an array."""
    out = out[0] if isinstance(out, tuple | list) else out
    return out.detach().double().numpy()


def _call(module, X, *memory, **given):
    import torch

    if isinstance(module, torch.nn.MultiheadAttention):
        keys = memory[0] if memory else X
        return module(X, keys, keys, need_weights=False, **given)
    return module(X, *memory, **given)


def _trained(module):
    """Return the parameters that are trained, by name."""
    return {name: x for name, x in module.named_parameters() if x.requires_grad}


def subjects(module, like, options):
    """Return what makes a subject and claims of a module, and of a reference beside it.

    Where parameters of a module and of a reference have other names or shapes, both keep their own.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise ProbeError(
            f"probe.torch was given a {type(module).__name__} without heads=. Give a module, or "
            "heads=(H, G), the numbers of query heads and of KV heads, of a function of Q, K and V."
        )
    options["d_model"] = width_of(module, options.get("d_model"))
    modules = isinstance(like, torch.nn.Module)
    named, others = map(_trained, (module, like if modules else module))
    alike = {n: x.shape for n, x in named.items()} == {n: x.shape for n, x in others.items()}
    alike = alike and not options.get("own_weights")
    own = {} if like is None or (modules and alike) else {"own_weights": True}

    def made(layer):
        if layer is not module and not modules:
            rest = {word: x for word, x in options.items() if word not in ("call", "own_weights")}
            return hidden_states(tensor_function(layer), **rest)
        if alike and layer is not module:
            layer = copy.deepcopy(layer)
            layer.load_state_dict(named, strict=False)
        return torch_module(layer, **options | own)

    return made


def torch_module(module, *, call=_call, own_weights=False, **options):
    """Return a module as a subject, in double precision, and what is left as claims."""
    import torch

    cache, arguments = options.pop("cache", None), arguments_of(options)
    width = width_of(module, options.pop("d_model", None))
    module = copy.deepcopy(module) if own_weights else with_random_weights(module)
    evaluated = Module(copy.deepcopy(module).eval(), call, arguments, width)
    called = _in_best_precision(evaluated)
    double = called.dtype == torch.float64
    return Subject(
        called.run,
        width,
        arguments.words,
        cache=None if cache is None else called.cached(with_padding(cache, arguments)),
        single=called.lower("float") if double else None,
        half=called.lower("half"),
        training=called.training(),
        trained=called.trained() if double else None,
        switched=called.switched(module),
        gradient=called.gradient if double else None,
        unused=called.unused,
        precision=1e-6 if double else 1e-3,
        memory=arguments.memory,
    ), options


def transformers_model(model, layer, *, seed=0, double=True):
    """Return the attention of one layer inside a model as a subject."""
    model = with_random_weights(model, seed).eval()
    width = model.get_input_embeddings().embedding_dim
    accepts = inspect.signature(model.forward).parameters
    fixed = {"use_cache": False} if "use_cache" in accepts else {}

    def call(model, X, attention_mask=None, **given):
        keep = {} if attention_mask is None else {"attention_mask": attention_mask.long()}
        return _attended(model, layer, X, **fixed, **keep, **given)[0]

    positions = {"positions": "position_ids"} if "position_ids" in accepts else {}
    arguments = Arguments(keep="attention_mask", **positions)
    called = _in_best_precision(Module(model, call, arguments, width), double=double)
    double = called.dtype.itemsize == 8  # norms and rotations stay single inside such a model
    return Subject(
        called.run,
        width,
        called.arguments.words,
        _cache_of(called, layer, accepts, width),
        single=called.lower("float") if double else None,
        training=called.training(),
        precision=1e-4 if double else 1e-3,
        packed=False,  # packed texts are not looked for where a mask is handed over, by design
    )


def _in_best_precision(called, *, double=True):
    """Use double precision, or single where a kernel, as for experts, has no other."""
    for length in (16, *LENGTHS):
        for precision in ("double", "float")[not double :]:
            with suppress(Exception):
                found = called.of(getattr(called.module, precision)())
                found.length = length
                found.run(found._text())
                return found
    return called.of(called.module.float())


def _attended(model, layer, X, **given):
    """Return what the attention of a layer returns within a call of its model, and the result."""
    caught = []
    attention = _attention_of(model, layer)
    hook = attention.register_forward_hook(lambda _module, _inputs, out: caught.append(out))
    try:
        result = model(inputs_embeds=X, **given)
    finally:
        hook.remove()
    return caught[0], result


def _cache_of(called, layer, accepts, width):
    """Return the cache of a model, or None where it has none, as an encoder that ignores one."""
    from transformers import DynamicCache

    # Models call what they are given "cache" from transformers 5.24 on, and past_key_values before.
    name = next((name for name in ("cache", "past_key_values") if name in accepts), None)
    if name is None:
        return None

    def step(model, X, state, keep=None):
        given = {} if keep is None else {"attention_mask": keep.long()}
        Y, result = _attended(model, layer, X, **{name: state, "use_cache": True}, **given)
        return Y, result.get(name)

    cache = called.cached(Cache(step, lambda model: DynamicCache(config=model.config), _crop, step))
    return cache if cache.step(np.ones((1, 1, width)), cache.empty())[1] is not None else None


def _crop(state, length):
    """Take back all tokens of a cache but the first ones."""
    try:
        state.crop(length - state.get_seq_length())
    except (RuntimeError, ValueError) as error:  # the ring of a window has lost what it needs
        raise Undecidable(f"this cache cannot be rewound: {error}") from None
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
            if type(module).__name__.endswith("Attention"):
                return module
    raise ProbeError(
        f"no attention module was found in layer {layer} of {type(model).__name__}. Wrap its "
        "attention in a function of hidden states and call probe.torch."
    )

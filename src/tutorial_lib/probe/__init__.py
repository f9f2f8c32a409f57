"""What does this layer do? Questions for attention layers that nobody here wrote.

    from tutorial_lib.probe import probe

    print(probe(layer, d_model=16))                       # a description
    assert probe(layer, d_model=16, causal=True, window=128)
    assert probe(function, heads=(8, 2), causal=True)     # a function of Q, K, V
    assert probe.torch(module, causal=True)
    assert probe.torch(module, like=another)              # has the outputs of a right one
    assert probe.transformers(model, causal=True)

It looks at what outputs depend on, and compares ways that must agree: a batch and its sequences, a
text alone and padded, a whole text and its chunks. Without a reference, `like`, it cannot see
values: another consistent layout than a checkpoint's, wrong frequencies of a rotation, a soft cap,
queries and keys exchanged; which sink or slope serves which head. Nor does it see keys whose weight
is below e^-30, mistakes beyond the tested length or on another device.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from tutorial_lib.probe import adapters, cached, hidden, memory, modules
from tutorial_lib.probe.alike import ask_lengths
from tutorial_lib.probe.claims import OF_FUNCTIONS, OF_HIDDEN, Claims
from tutorial_lib.probe.dependence import simplest_pattern, table_of
from tutorial_lib.probe.functions import Function, probe_function
from tutorial_lib.probe.like import probe_like
from tutorial_lib.probe.masks import (
    ask_alike,
    ask_large_scores,
    ask_mask,
    length_for,
)
from tutorial_lib.probe.report import PLACES, RIGHT, WRONG, Report, answered, without_names
from tutorial_lib.probe.subject import Cache, ProbeError, Subject, seeded, singly, tokens

__all__ = ["Cache", "ProbeError", "Report", "probe"]


HANDED_OVER = {  # asked with arguments of the caller's, so that a refusal is broken
    "padding": "padding_refused",
    "positions in a batch": "positions_refused",
    "cache": "cache_refused",
    "memory": "memory_refused",
}


class Probe:
    """Ask a layer what it does; `probe` is the one instance.

    A layer is a function of hidden states X (B, T, d_model), or, with `heads=`, of Q, K and V.
    Claims are words with one meaning each, and an unknown one raises the list of those that are
    known. A window counts the token itself.
    """

    @seeded()
    def __call__(self, layer, *, heads=None, axes="BHTd", mask=None, **options):
        """Ask a layer of NumPy arrays.

        Parameters
        ----------
        layer : a function of X (B, T, d_model); with `heads`, of Q, K, V
        heads : numbers of query heads and of KV heads, such as (8, 2)
        axes : "BHTd", or "BTHd" where the token axis comes before the head axis
        mask : the name of the argument that takes a mask (T, S), True where a query may look; with
            "~" before it, True where it may not
        options : d_model, cache, claims, and the names of arguments: keep (named as `mask` is) and
            positions; memory=(S, d_memory) of a layer that is called as layer(X, memory), and
            memory_keep, the name of its padding mask; like, a right layer that is called alike

        Returns
        -------
        report : true if nothing is broken; printed, it says what was found

        Raises
        ------
        ProbeError : an unknown claim, or a layer that cannot be asked in this way
        """
        like = options.pop("like", None)
        if heads is None:
            options["d_model"] = adapters.width_of(layer, options.get("d_model"))
            return self._asked(lambda f: adapters.hidden_states(f, **options), layer, like)
        of = partial(adapters.function, axes=axes, mask=mask)
        return self._asked(self._functions(of, heads, mask, options), layer, like)

    @seeded()
    def torch(self, module, *, heads=None, axes="BHTd", mask=None, **options):
        """Ask a module of PyTorch, or, with `heads`, a function of its tensors; see `__call__`.

        More options: call, a function of the module and X where it is not module(X);
        own_weights=True to keep its weights, which are drawn anew in a copy otherwise, unless those
        of `like` are others. Of a cache, `step` takes the copy, X, the state and the memory, if
        any, and `empty` takes the copy.
        """
        like = options.pop("like", None)
        if heads is None:
            return self._asked(modules.subjects(module, like, options), module, like)
        of = partial(adapters.torch_function, axes=axes, mask=mask)
        return self._asked(self._functions(of, heads, mask, options), module, like)

    @seeded()
    def transformers(self, model, *, layer=0, seed=0, double=True, **claims):
        """Ask the attention of one layer inside a model of transformers, its masks included.

        Its weights are drawn anew from a seed; `double=False` asks in single precision alone.
        """
        subject = modules.transformers_model(model, layer, seed=seed, double=double)
        return self._hidden(subject, Claims.checked(claims, OF_HIDDEN))

    def jax(self, function, *, heads=None, axes="BTHd", mask=None, **options):
        """Ask a function of arrays of JAX; by default its axes are (B, T, H, d)."""
        if "like" in options:
            options["like"] = adapters.jax_function(options["like"])
        run = adapters.jax_function(function)
        return self(run, heads=heads, axes=axes, mask=mask, **options)

    @staticmethod
    def _functions(of, heads, mask, claims):
        """Return what makes a Function and claims of a function; `of` makes it one of arrays."""
        takes = frozenset(("mask",) if mask else ())

        def made(function):
            return Function(heads=heads, takes=takes, **of(function)), claims

        return made

    def _asked(self, made, layer, like):
        """Ask what is made of a layer; of a reference, too, where there is one."""
        subject, claims = made(layer)
        hidden_states = isinstance(subject, Subject)
        fit = adapters.fitted if hidden_states else lambda function: function
        subject = fit(subject)
        claims = Claims.checked(claims, OF_HIDDEN if hidden_states else OF_FUNCTIONS)
        ask = self._hidden if hidden_states else probe_function
        if like is None:
            return ask(subject, claims)
        return probe_like(ask, subject, fit(made(like)[0]), claims)

    def _hidden(self, subject, claims):
        """Ask a layer on hidden states all questions."""
        if "sides" in claims and "keep" not in subject.takes:
            raise ProbeError("sides= is claimed without keep=, the argument that takes padding.")
        facts, length = {}, length_for(claims)
        findings = memory.ask_first_calls(subject)
        if findings[-1].sign != RIGHT:  # nothing else can be compared
            if findings[-1].name == "not_finite":
                findings[-1:] = self._not_finite(subject, claims, findings[-1])
            return Report(tuple(findings))
        batch = hidden.ask_batch(subject)
        together = batch[0].sign == RIGHT
        if not together:
            subject = replace(subject, run=singly(subject.run))
        depends = table_of(subject, length)
        mask, expected = ask_mask(subject, depends, claims)
        findings += batch
        asked = [*mask, *(ask_alike(subject, claims) if mask[0].sign != WRONG else ())]
        for question, ask in _questions(subject, depends, claims, facts).items():
            asked += answered(question, ask, refused=HANDED_OVER.get(question))
        if not together:
            asked = without_names(asked)
        elif mask[0].sign == WRONG:
            asked = [*mask, *without_names(asked[len(mask) :])]
        findings += asked
        return Report(tuple(findings), depends, expected, simplest_pattern(depends), facts)

    @staticmethod
    def _not_finite(subject, claims, found):
        """Name the mask that leaves rows without a key, if the rest shows one."""
        table = table_of(subject, length_for(claims))
        mask, _ = ask_mask(subject, table, claims, named=False)
        asked = [*mask, *ask_alike(subject, claims)]
        named = [one for one in asked if one.name and one.name not in PLACES]
        return [replace(found, name=None), *named[:1]] if named else [found]


def _questions(subject, depends, claims, facts):
    """Return what a layer is asked besides its batch and its mask, by question."""
    causal = claims.get("causal") and not np.triu(depends, 1).any()
    longer, lengths = tokens(1, (1, hidden.LONGER, subject.d_model), seed=18), (1, 7, 16, 33, 43)
    return {
        "positions": lambda: hidden.ask_positions(subject, depends, claims, facts),
        "padding": lambda: hidden.ask_padding(subject, claims, depends, facts),
        "positions in a batch": lambda: hidden.ask_positions_in_batch(subject),
        "memory": lambda: memory.ask_memory(subject, depends, claims),
        "cache": lambda: cached.ask_cache(subject, depends),
        "longer mask": lambda: hidden.ask_longer_mask(subject, depends, claims),
        "lengths": lambda: (
            ask_lengths(subject, longer, lengths, subject.tolerance) if causal else []
        ),
        "scores": lambda: hidden.ask_scores(subject, depends),
        "row sums": lambda: hidden.ask_row_sums(subject),
        "softmax": lambda: hidden.ask_copies(subject, depends, facts),
        "large scores": lambda: ask_large_scores(subject, depends, claims),
        "precision": lambda: hidden.ask_precision(subject, depends),
        "training": lambda: hidden.ask_training(subject, depends),
        "parameters": lambda: hidden.ask_parameters(subject),
        "gradient": lambda: hidden.ask_gradient_of(subject, claims),
    }


probe = Probe()

"""What is probed, in one form: arrays of NumPy in, arrays of NumPy out."""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

SEED = 20261130


class ProbeError(ValueError):
    """What was handed to the probe cannot be asked; the message says how to hand it over."""


class Undecidable(Exception):
    """A question that cannot be asked of a layer, through no fault of it; the message says why."""


@dataclass(frozen=True)
class Cache:
    """How a layer is fed in chunks.

    Parameters
    ----------
    step : a function of X (B, t, d_model) and a state, which returns Y (B, t, d) and the new state;
        of a layer with a memory, its third argument is the memory (B, S, d_memory)
    empty : a function without arguments, which returns the state before the first token
    rewind : a function of a state and a number n, which returns the state after n tokens, or None
    padded : as step, with a third argument (B, n), True for each real one of all tokens so far;
        or None
    """

    step: Callable
    empty: Callable
    rewind: Callable | None = None
    padded: Callable | None = None

    def run(self, X, lengths, *memory, keep=None):
        """Feed X (B, T, d_model) in chunks of these lengths; the outputs, joined."""
        state, outputs, start = self.empty(), [], 0
        step = self.step if keep is None else self.padded
        for end in np.cumsum(lengths):
            more = memory if keep is None else (keep[:, :end],)
            Y, state = step(X[:, start:end].copy(), state, *more)
            outputs.append(np.asarray(Y, dtype=float))
            start = end
        return np.concatenate(outputs, axis=1)


@dataclass(frozen=True)
class Subject:
    """A layer on hidden states, and what else it can be asked; what cannot be asked is None.

    `run` takes X (B, T, d_model), keep= and positions=, both (B, T), and returns (B, T, d); in
    `keep`, True is a real token and False is padding. With a memory (S, d_memory) it also takes
    memory= (B, S, d_memory) and memory_keep= (B, S). `takes` names those that it uses.
    `single`, `half` and `training` are the same in lower precision, and in training mode without
    dropout; `trained` holds run and gradient with it, from one state of the generators.
    `switched` says whether outputs are random in training, in an evaluation after it, and in
    training again, and the name of dropout without effect, if any. `gradient` takes X, dY and
    keep=, and returns a list of dX. `unused` returns three lists of names: parameters of which rows
    have no effect, those of which rows have no gradient alone, and lists of modules left out.
    Unless `packed`, texts that begin anew in `positions` need not be apart beside a padding mask.
    Equality is `precision` times the effect that one token has on its own output.
    """

    run: Callable
    d_model: int
    takes: frozenset = frozenset()
    cache: Cache | None = None
    single: Callable | None = None
    half: Callable | None = None
    training: Callable | None = None
    trained: tuple | None = None
    switched: Callable | None = None
    gradient: Callable | None = None
    unused: Callable | None = None
    precision: float = 1e-6
    memory: tuple | None = None
    packed: bool = True

    def example(self, seed=SEED):
        """Return the arrays of a call: X (1, 10, d_model)."""
        return tokens(1, (1, 10, self.d_model), seed=seed)

    def outputs(self, X, **context):
        """Run on a copy of X (B, T, d_model), and require an output for each token."""
        Y = np.asarray(self.run(X.copy(), **context), dtype=float)
        if Y.ndim != 3 or Y.shape[:2] != X.shape[:2]:
            raise ProbeError(
                f"the layer returned the shape {Y.shape} for X of shape {X.shape}; expected an "
                f"output per token, {(*X.shape[:2], '…')}. Wrap it in a function that returns them."
            )
        return Y

    def cases(self, claims):
        """Return what is compared with a reference: a size, arrays, what has names, and rows."""
        (X,), (longer,) = (tokens(1, (2, T, self.d_model), seed=51) for T in (14, 64))
        token, S = np.arange(14)[None].repeat(2, axis=0), (self.memory or (0,))[0]
        more = {
            "padding on the right": ("keep", token < 11),
            "padding on the left": ("keep", token > 2),
            "positions from 3 on": ("positions", token + 3),
            "a padded memory": ("memory_keep", np.arange(S) < [[S - 2], [S]]),
            "a longer memory": ("memory", self.memory and memory_of((S + 5, self.memory[1]), 2)),
        }
        takes = {*self.takes, *(("memory",) if self.memory else ())}
        unclaimed = {"right", "left"} - {*claims.get("sides", ("right", "left"))}
        return {
            "ordinary tokens": (1, [X], {}, ...),
            "one token": (1, [X[:, :1]], {}, ...),
            "equal tokens": (1, [X[:, :1].repeat(14, axis=1)], {}, ...),
            "large tokens": (10, [10 * X], {}, ...),
            "64 tokens": (1, [longer], {}, ...),
        } | {
            words: (1, [X], {word: array}, array if word == "keep" else ...)
            for words, (word, array) in more.items()
            if word in takes and words.split()[-1] not in unclaimed
        }

    def same(self, Y, others):
        """Say whether two ways lead to one output."""
        return largest(Y, others) <= self.tolerance

    @cached_property
    def effect(self):
        """How much an output changes, as a rule, when its own token is another one."""
        X, others = tokens(2, (2, 6, self.d_model))
        change = np.abs(self.outputs(X) - self.outputs(others))
        change = change[np.isfinite(change)]
        return float(np.median(change)) if change.size else 0.0

    @cached_property
    def tolerance(self):
        """What two ways to one output may differ by."""
        rounded = 50 * rounding(self.outputs, *self.example())
        return max(self.precision * self.effect, min(rounded, 1e-2 * self.effect))

    @cached_property
    def noise(self):
        """What outputs may differ by where nothing has changed."""
        X = np.repeat(tokens(1, (1, 6, self.d_model))[0], 5, axis=0)
        Y = self.outputs(X)
        apart = np.abs(Y - Y[:1])
        found = 20 * float(apart[np.isfinite(apart)].max(initial=0.0))
        return float(np.clip(found, 1e-2 * self.precision * self.effect, 1e-3 * self.effect))


def rounding(outputs, X, *others):
    """Return what outputs, as a rule, are rounded by beside double precision.

    Where a function is smooth, its fourth difference is far below its steps, so what is left of it
    is rounding; none is, where one input has several outputs.
    """
    Y = [outputs(X * (1 + step), *others) for step in 1e-3 * np.array([0, 1, 2, 3, 4, 0])]
    apart = np.abs(Y[0] - 4 * Y[1] + 6 * Y[2] - 4 * Y[3] + Y[4]).max(axis=-1)
    largest_output = np.abs(Y[0]).max()
    found = float(np.median(apart)) / 10
    return found if np.array_equal(Y[0], Y[5]) and found > 1e-10 * largest_output else 0.0


def tokens(draws, shape, *, size=1.0, seed=SEED):
    """Draw that many arrays of a shape, normal, of a standard deviation."""
    rng = np.random.default_rng(seed)
    return [size * rng.normal(size=shape) for _ in range(draws)]


def singly(run):
    """Return a function to which the sequences of a batch are handed over one by one."""

    def outputs(*arrays, **given):
        def one(b):
            named = {word: x[[b % len(x)]] for word, x in given.items()}
            return run(*(x[[b]] for x in arrays), **named)

        return np.concatenate([one(b) for b in range(len(arrays[0]))])

    return outputs


def changed(Y, others, tolerance):
    """Say for each row of Y (..., d) whether it is another one there; NaN equals NaN."""
    difference = np.abs(Y - others)
    difference = np.where(np.isnan(Y) & np.isnan(others), 0.0, difference)
    return ~(difference.max(axis=-1) <= tolerance)  # NaN against a number is a change


def largest(Y, others):
    """Return the largest difference of two arrays; infinite where one of them is not finite."""
    difference = np.abs(Y - others)
    return float(np.where(np.isfinite(difference), difference, np.inf).max(initial=0.0))


def memory_of(shape, B):
    """Return the memory (B, S, d_memory) that a layer has where no other one is handed over."""
    return np.repeat(tokens(1, (1, *shape), seed=41)[0], B, axis=0)


def set_seeds():
    """Set the generators from which a random layer draws, PyTorch's where it is in use."""
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)


@contextmanager
def seeded():
    """Begin with set generators, and put them back as they were; NumPy warns of no number."""
    torch, state = sys.modules.get("torch"), np.random.get_state()  # noqa: NPY002
    of_torch = torch and torch.get_rng_state()
    set_seeds()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
        if torch:
            torch.set_rng_state(of_torch)

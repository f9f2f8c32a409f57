"""Checks for chapter 22."""

import numpy as np

from tutorial_lib.models import ablation
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.practice.account import D_K, D_MODEL, D_V, Case, H, against, normal
from tutorial_lib.practice.ch22_how_many_heads.mistakes import MISTAKES
from tutorial_lib.projection import Params

check = against(MISTAKES)
N, LENGTH, VOCABULARY = 4, 9, 10  # texts, words of a text, words there are
HEADS = [(0, 0), (0, 1), (1, 0), (1, 2)]


def _model(seed):
    """Two layers with large scores, so that the second depends on what the first gives."""
    layers = []
    for place in range(2):
        wide = [normal(seed + 10 * place + i, H, D_MODEL, d) for i, d in enumerate((D_K, D_K, D_V))]
        W_O = normal(seed + 10 * place + 3, H * D_V, D_MODEL)
        layers.append(Params(*(W / np.sqrt(D_MODEL) for W in wide), W_O / np.sqrt(H * D_V)))
    E, P = normal(seed + 4, VOCABULARY, D_MODEL), normal(seed + 5, LENGTH, D_MODEL)
    return TinyModel(E, P, tuple(layers), normal(seed + 6, D_MODEL, VOCABULARY))


def _ids(seed, *batch):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (*batch, LENGTH))


def check_ablate(function):
    """Check `ablate(model, ids, heads, others, *, how)` of chapter 22. Prints an account."""
    texts = {"ids": _ids(1, N), "heads": [(0, 1), (1, 0)], "others": _ids(2, N)}
    given = {"model": _model(0), **texts}
    cases = (
        Case("two heads by the mean", given),
        Case("by zero", given, {"how": "zero"}),
        Case("by resampling", given, {"how": "resample"}),
    )
    check("ablate", function, ablation.ablate, cases)


def _costs(seed, spare=0.9):
    """A loss of sets of heads: the two cheapest are each other's spare, the two dearest a chain."""
    ranked = [HEADS[i] for i in np.random.default_rng(seed).permutation(len(HEADS))]
    alone = dict(zip(ranked, (0.1, 0.3, 0.5, 0.7), strict=True))

    def loss(gone):
        both = spare * (set(ranked[:2]) <= set(gone)) - 0.25 * (set(ranked[2:]) <= set(gone))
        return 1 + sum(alone[head] for head in gone) + both

    return loss


def _pruned(heads, loss):
    order, losses = ablation.prune_greedily(heads, loss)
    return tuple(order), tuple(losses)


def check_prune_greedily(function):
    """Check `prune_greedily(heads, loss)` of chapter 22. Prints an account."""
    cases = (
        Case("four heads", {"heads": HEADS, "loss": _costs(4)}),
        Case("spares and chains", {"heads": HEADS, "loss": _costs(5)}),
        Case("a head alone", {"heads": HEADS[:1], "loss": _costs(6)}),
    )
    check("prune_greedily", function, _pruned, cases)


def check_gated(function):
    """Check `gated(model, ids, gates, outputs)` of chapter 22. Prints an account."""
    model, heads = _model(20), [(0, 0), (0, 2), (1, 1)]
    outputs = {head: normal(30 + i, D_V) for i, head in enumerate(heads)}
    half = dict(zip(heads, (0.25, 0.75, 0.6), strict=True))
    closed = dict(zip(heads, (0.0, 1.0, 0.0), strict=True))
    given = {"model": model, "ids": _ids(7, N)}
    cases = (
        Case("gates in between", given | {"gates": half, "outputs": outputs}),
        Case("open and closed", given | {"gates": closed, "outputs": outputs}),
    )
    check("gated", function, ablation.gated, cases)


def check_interval(function):
    """Check `interval(values)` of chapter 22. Prints an account."""
    cases = (
        Case("five seeds", {"values": normal(8, 5)}),
        Case("three seeds", {"values": normal(9, 3)}),
    )
    check("interval", function, ablation.interval, cases)


def _prune_to(heads, loss, most):
    order, losses = ablation.prune_greedily(heads, loss)
    within = [found <= most for found in losses] + [False]
    gone = order[: within.index(False)]
    return tuple(head for head in heads if head not in gone)


def check_prune_to(function):
    """Check `prune_to(heads, loss, most)`, exercise of chapter 22."""
    names = ("heads", "loss", "most")
    cases = (
        Case("a low limit", dict(zip(names, (HEADS, _costs(4), 1.7), strict=True))),
        Case("a higher one", dict(zip(names, (HEADS, _costs(5, 0.15), 1.6), strict=True))),
        Case("one may go", dict(zip(names, (HEADS, _costs(6), 1.2), strict=True))),
    )
    check("prune_to", function, _prune_to, cases)


def _seeds_apart(first, second):
    a, b = first.mean(axis=1), second.mean(axis=1)
    return bool(a.max() < b.min() or b.max() < a.min())


def _runs(means, seed):
    """Nats of 40 documents for each of some seeds, whose means are these."""
    noise = normal(seed, len(means), 40)
    return np.array(means)[:, None] + noise - noise.mean(axis=1, keepdims=True)


def check_seeds_apart(function):
    """Check `seeds_apart(first, second)`, exercise of chapter 22."""
    low, high = _runs([0.1, 0.2, 0.3, 0.25, 0.15], 10), _runs([1.1, 1.2, 1.3, 1.25, 1.15], 11)
    mixed, above = _runs([0.2, 0.9, 0.4, 1.6, 0.3], 12), _runs([0.3, 1.0, 0.5, 1.7, 0.4], 13)
    far = _runs([2.2, 2.9, 0.25, 2.6, 2.3], 14)
    pairs = {
        "the first is lower": (low, high),
        "the second is lower": (high, low),
        "each seed a little above its partner": (mixed, above),
        "far apart but for one seed": (low, far),
    }
    cases = tuple(Case(n, {"first": a, "second": b}) for n, (a, b) in pairs.items())
    check("seeds_apart", function, _seeds_apart, cases)


def _with_n_open(gates, n):
    low, high = gates.min() - 1, gates.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.clip(gates - middle, 0, 1).sum() > n:
            low = middle
        else:
            high = middle
    return np.clip(gates - high, 0, 1)


def check_with_n_open(function):
    """Check `with_n_open(gates, n)`, exercise of chapter 22."""
    many = np.array([0.9, 0.1, 0.75, 0.2, 0.95, 0.05, 0.6, 0.3])
    few = np.array([0.2, 0.02, 0.3, 0.05, 0.9, 0.0])
    cases = (
        Case("three of eight", {"gates": many, "n": 3}),
        Case("four of six, from few", {"gates": few, "n": 4}),
        Case("one of six", {"gates": few, "n": 1}),
    )
    check("with_n_open", function, _with_n_open, cases)

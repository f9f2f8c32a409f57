"""Checks for chapter 22."""

import numpy as np

from tutorial_lib.models import ablation
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_V, WIDE, normal, two_layer_model

MISTAKES, cases_of = read_room(__file__)
N, LENGTH, VOCABULARY = 7, 9, 23  # documents, words of a document, words there are
HEADS = [(0, 0), (0, 1), (1, 0), (1, 2)]
FIVE = [(0, 1), (1, 0), (1, 2), (0, 2), (1, 1)]
DISORDERED = [(1, 2), (0, 1), (1, 0), (0, 0)]


def _model(seed, **widths):
    return two_layer_model(seed, **{"vocabulary": VOCABULARY} | widths)


def _ids(seed, *batch):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (*batch, LENGTH))


@cases_of(ablation.ablate)
def check_ablate():
    documents = {"ids": _ids(1, N), "heads": FIVE, "others": _ids(2, N)}
    given, resample = {"model": _model(0), **documents}, {"how": "resample"}
    yield "five heads by the mean", given
    yield "by zero", given, {"how": "zero"}
    yield "by resampling, wider heads", given | {"model": _model(50, d_k=WIDE)}, resample


def _head_losses(seed, *, composed=0.25):
    """A loss of sets of heads: the two that raise it least are backups, the two others composed.

    All numbers are eighths, so that sums are exact, and a loss can be at a limit.
    """
    ranked = [HEADS[i] for i in np.random.default_rng(seed).permutation(len(HEADS))]
    single = dict(zip(ranked, (0.125, 0.25, 0.5, 0.75), strict=True))

    def loss(removed):
        without = set(removed)
        both = 0.875 * (set(ranked[:2]) <= without) - composed * (set(ranked[2:]) <= without)
        return 1 + sum(single[head] for head in removed) + both

    return loss


def _prune_order(heads, loss):
    order, losses = ablation.prune_greedily(heads, loss)
    return tuple(order), tuple(losses)


@cases_of(_prune_order)
def check_prune_greedily():
    yield "four heads", {"heads": HEADS, "loss": _head_losses(4)}
    yield "backup and composed heads", {"heads": HEADS, "loss": _head_losses(5)}
    yield "a single head", {"heads": HEADS[:1], "loss": _head_losses(6)}


@cases_of(ablation.gated)
def check_gated():
    model, heads = _model(20), [(0, 0), (0, 2), (1, 1)]
    outputs = {head: normal(30 + i, D_V) for i, head in enumerate(heads)}
    half = dict(zip(heads, (0.25, 0.75, 0.6), strict=True))
    closed = dict(zip(heads, (0.0, 1.0, 0.0), strict=True))
    given, outputs = {"model": model, "ids": _ids(7, N)}, {"outputs": outputs}
    wider = {"model": _model(70, d_k=WIDE), "ids": _ids(8)}
    yield "gates in between", given | {"gates": half} | outputs
    yield "open and closed", given | {"gates": closed} | outputs
    yield "one document, wider heads", wider | {"gates": half} | outputs


@cases_of(ablation.interval)
def check_interval():
    yield "five seeds", {"values": normal(8, 5)}
    yield "three seeds", {"values": normal(9, 3)}


def _prune_to(heads, loss, most):
    order, losses = ablation.prune_greedily(heads, loss)
    within = [found <= most for found in losses] + [False]
    removed = order[: within.index(False)]
    return tuple(head for head in heads if head not in removed)


@cases_of(_prune_to)
def check_prune_to():
    yield "a loss at the limit", (HEADS, _head_losses(4), 1.625)
    yield "heads in another order", (DISORDERED, _head_losses(5), 1.75)
    yield "a loss that falls again", (HEADS, _head_losses(6, composed=1.0), 1.5)
    yield "no head may be removed", (HEADS, _head_losses(7), 1.0)
    yield "all may be removed", (HEADS, _head_losses(8), 4.0)


def _seeds_apart(first, second):
    a, b = first.mean(axis=1), second.mean(axis=1)
    return bool(a.max() < b.min() or b.max() < a.min())


def _nats(means, seed):
    """Nats of 40 documents for each of some seeds, whose means are these; quarters stay exact."""
    noise = np.round(4 * normal(seed, len(means), 40)) / 4
    noise[:, -1] -= noise.sum(axis=1)
    return np.array(means)[:, None] + noise


@cases_of(_seeds_apart)
def check_seeds_apart():
    low, high = _nats([0.1, 0.2, 0.3, 0.25, 0.15], 10), _nats([1.1, 1.2, 1.3, 1.25, 1.15], 11)
    mixed, above = _nats([0.2, 0.9, 0.4, 1.6, 0.3], 12), _nats([0.6, 1.3, 0.8, 2.0, 0.7], 13)
    far, touching = _nats([6.2, 6.9, 0.25, 6.6, 6.3], 14), _nats([0.5, 0.75, 1.25, 1, 1.5], 15)
    below = _nats([0.25, 0.5, 0, -0.25, -0.5], 16)
    pairs = {
        "the first is lower": (low, high),
        "the second is lower": (high, low),
        "each seed above its partner": (mixed, above),
        "each seed below its partner": (above, mixed),
        "far apart but for one seed": (low, far),
        "the best of one as good as the worst of the other": (touching, below),
        "the same, exchanged": (below, touching),
    }
    yield from ((n, {"first": a, "second": b}) for n, (a, b) in pairs.items())


def _with_n_open(gates, n):
    low, high = gates.min() - 1, gates.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.clip(gates - middle, 0, 1).sum() > n:
            low = middle
        else:
            high = middle
    return np.clip(gates - high, 0, 1)


@cases_of(_with_n_open)
def check_with_n_open():
    many = np.array([0.9, 0.1, 0.75, 0.2, 0.95, 0.05, 0.6, 0.3])
    few = np.array([0.2, 0.02, 0.3, 0.05, 0.9, 0.0])
    yield "three of eight", {"gates": many, "n": 3}
    yield "four of six, from few", {"gates": few, "n": 4}
    yield "one of six", {"gates": few, "n": 1}
    yield "all of six", {"gates": few, "n": 6}

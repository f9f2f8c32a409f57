"""What computes the keys of chapter 23: from layers that are run, results, and small sums."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.models.own_layer import OwnLayer, forward_pass
from tutorial_lib.models.promises import drift, leak
from tutorial_lib.practice.ch23_capstone.checks import MISTAKES
from tutorial_lib.practice.ch23_capstone.promises import attention
from tutorial_lib.practice.mistake import mistake_by_name
from tutorial_lib.records import record
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate


def _sampled():
    """A layer with two KV heads for four heads, and three sequences."""
    rng = np.random.default_rng(23)
    shapes = (4, 12, 6), (2, 12, 6), (2, 12, 6), (24, 12)
    params = GroupedParams(*(rng.standard_normal(shape) / 3 for shape in shapes))
    return params, *rng.standard_normal((2, 6, 12)), rng.standard_normal((1000, 12))


def _leak_of(name, **options):
    """How much a layer with a known mistake leaks."""
    params, X, other, _ = _sampled()
    wrong = mistake_by_name(MISTAKES["attention"], name).of(attention)
    return leak(lambda X: wrong(X, params, **options)[0], X, other)


def leak_after_the_softmax():
    """Whether rows change, by how much, and which."""
    change = _leak_of("hidden_after_softmax")
    params, X, other, _ = _sampled()
    wrong = mistake_by_name(MISTAKES["attention"], "hidden_after_softmax").of(attention)
    mixed = np.concatenate([X[:4], other[4:]])
    rows = np.abs(wrong(mixed, params)[0] - wrong(X, params)[0])[:4].max(axis=-1) > 1e-6
    return [
        bool(change == 0),
        bool(rows.all()),
        rows.tolist() == [False, False, False, True],
        bool(np.isnan(change)),
    ]


def drift_with_rope():
    """How much the rows with RoPE and a window of 3 change behind a thousand tokens."""
    params, X, _, before = _sampled()
    layer = OwnLayer(params, frequencies=rope_frequencies(6), window=3)

    def rows(X):
        return forward_pass(X, layer).Y

    change = drift(rows, X, before, 3)
    third = np.abs(rows(np.concatenate([before, X]))[-6:] - rows(X))[2].max()
    return [bool(change < 1e-9), bool(1e-9 < change < 0.1), bool(change >= 0.1), bool(third > 1e-9)]


def where_the_leak_ends():
    """The trained layer with one key ahead, against the entropy and against the plain one."""
    found = record("capstone")
    plain, ahead = (
        found[kind][name]["excess_loss"]
        for kind, name in (("right", "plain"), ("wrong", "one key ahead"))
    )
    return [
        ahead["min"] > plain["max"],
        plain["min"] <= ahead["median"] <= plain["max"],
        abs(ahead["median"]) < 0.05,
        ahead["max"] < -1,
    ]


def mistake_without_a_leak():
    """Which of four mistakes leaves the leak at 0."""
    names = "hidden_after_softmax", "softmax_over_queries", "not_scaled"
    leaks = [*map(_leak_of, names), _leak_of("window_beside", window=3)]
    return [leak < 1e-9 for leak in leaks]


def gradients_of_groups():
    """Sums over neighbours of the gradients 1, 2, 3 and 4, two heads a group."""
    first, second = np.array([1, 2, 3, 4]).reshape(2, 2).sum(axis=1)
    return f"{first} and {second}"


def angle_between():
    """The angle between a query at 9 and a key at 4, rotated from one vector at frequency 0.5."""
    one = np.array([[1.0, 0.0]])
    query, key = (rotate(one, np.array([at]), np.array([0.5]))[0] for at in (9, 4))
    angle = np.arctan2(*query[::-1]) - np.arctan2(*key[::-1])
    return f"{round(angle % (2 * np.pi), 6):g}"


def mask_behind_a_cache():
    """The mask of a chunk of 3 behind a cache of 5."""
    mask = window_mask(3, 5 + 3, 8)
    assert np.array_equal(mask, causal_mask(3, 8))
    return f"{mask.shape}, and {mask[0].sum()}"

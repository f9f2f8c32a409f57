"""Check mine: functions of any names, arguments and axes are called, compared and named."""

import inspect

import numpy as np
import pytest

from tutorial_lib import mine

KNOWN = [(kind, words) for kind, forms in mine.SPECS.items() for words in forms[-1]().wrong]
ALIKE = {  # mistakes of a kind that give the same values as another
    ("attention", "queries and keys are exchanged"),  # of unequal lengths it is another shape
}


def under_the_roles(function, roles, *, mask):
    """A function whose arguments have the names of its roles, and a mask where it takes one."""
    names = [*roles, *(["mask"] if mask and "mask" not in roles else [])]
    given = ", ".join(f"{name}={name}" for name in names)
    scope = {"function": function}
    source = f"def f({', '.join(n if n != 'mask' or n in roles else 'mask=None' for n in names)}):"
    exec(f"{source}\n    return function({given})", scope)
    return scope["f"]


@pytest.mark.parametrize(("kind", "words"), KNOWN)
def test_a_known_mistake_is_named(kind, words, capsys):
    asked = mine.SPECS[kind][-1]()
    takes_mask = any("mask" in case.given for case in asked.cases)
    wrong = under_the_roles(asked.wrong[words], asked.roles, mask=takes_mask)
    if (kind, words) in ALIKE:
        return
    assert mine.check(wrong, kind) == words
    assert words.split()[0] in capsys.readouterr().out


def softmax_of_columns(a):
    e = np.exp(a - a.max(-1)[..., None])
    return e / e.sum(-1)[..., None]


def tokens_first(values, queries, keys, allowed=None):
    scores = np.einsum("bthd,bshd->bhts", queries, keys) / keys.shape[-1] ** 0.5
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return np.einsum("bhts,bshd->bthd", softmax_of_columns(scores), values), scores


def packed(inp, wq, wk, wv, wo, n_heads, causal=False):
    q, k, v = (np.stack(np.split(inp @ w, n_heads, axis=-1), axis=1) for w in (wq, wk, wv))
    mask = np.tri(inp.shape[1]) > 0 if causal else None
    scores = np.swapaxes(q @ np.swapaxes(k, -1, -2), 0, 0) / q.shape[-1] ** 0.5
    weights = softmax_of_columns(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.concatenate(np.moveaxis(weights @ v, 1, 0), axis=-1) @ wo


def by_pair(q, k, v, kv_cache):
    K, V = np.concatenate([kv_cache[0], k], -2), np.concatenate([kv_cache[1], v], -2)
    mask = np.tri(q.shape[-2], K.shape[-2], k=K.shape[-2] - q.shape[-2]) > 0
    scores = np.where(mask, q @ np.swapaxes(K, -1, -2) / q.shape[-1] ** 0.5, -np.inf)
    return softmax_of_columns(scores) @ V, (K, V)


def halves(vec):
    n = vec.shape[-1] // 2
    angles = np.arange(vec.shape[-2])[:, None] * 10_000.0 ** (-np.arange(n) / n)
    a, b, c, s = vec[..., :n], vec[..., n:], np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


@pytest.mark.parametrize(
    ("function", "kind", "taken"),
    [
        (softmax_of_columns, "softmax", "axes (B, H, T, d)"),
        (tokens_first, "attention", "values = V, queries = Q, keys = K, allowed = mask"),
        (tokens_first, "attention", "axes (B, T, H, d)"),
        (packed, "layer", "W (d_model, H·d)"),
        (by_pair, "cache", "kv_cache = cache"),
        (halves, "rotary", "vec = x"),
    ],
)
def test_a_right_function_in_its_own_style_is_right(function, kind, taken, capsys):
    assert mine.check(function, kind) == "right"
    assert taken.lower() in capsys.readouterr().out.replace("\n    ", " ").lower()


def test_arguments_without_telling_names_are_tried_in_every_order():
    assert mine.check(lambda a, b, c: tokens_first(c, b, a)[0], "attention") == "right"


def in_place(scores):
    scores -= scores.max(-1, keepdims=True)
    return softmax_of_columns(scores)


def loses_the_cache(q, k, v, kv_cache):
    return by_pair(q, k, v, kv_cache)[0], kv_cache


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (in_place, "softmax", "it changes its argument scores"),
        (loses_the_cache, "cache", "the keys that it returns are not the cached ones"),
        (lambda scores: scores**2, "softmax", "wrong"),
    ],
)
def test_what_no_mistake_explains_is_said_to_be_wrong(function, kind, words):
    assert mine.check(function, kind).startswith(words)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: mine.check(in_place, "soft"), "give one of softmax"),
        (lambda: mine.check(lambda s: s.sum(), "softmax"), "No order of axes"),
        (lambda: mine.check(lambda s: None, "softmax"), "is its last line a return"),
        (lambda: mine.check_text("softmax", "x = 1"), "no function in the code"),
        (lambda: mine.check_text("softmax", "def f(:"), "Line 1 of your code is no Python"),
        (lambda: mine.check_text("softmax", "import torch_of_mine"), "raised ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_asked_is_said(use, said):
    with pytest.raises(mine.MineError, match=said):
        use()


def test_code_of_a_form_is_checked(capsys):
    mine.check_text("softmax", inspect.getsource(softmax_of_columns))
    assert capsys.readouterr().out.startswith("✓ softmax: right; asked: ordinary scores")

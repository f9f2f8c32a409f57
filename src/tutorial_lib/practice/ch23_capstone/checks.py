"""Checks for chapter 23: a layer by its promises, claims by their numbers, and a loss."""

import math

import numpy as np

from tutorial_lib.models.grammar import draw_documents
from tutorial_lib.models.own_layer import draw_own
from tutorial_lib.models.promises import leak
from tutorial_lib.practice.account import Case, against, normal, told
from tutorial_lib.practice.ch23_capstone.claims import CLAIMS, near
from tutorial_lib.practice.ch23_capstone.mistakes import MISTAKES, layer_of, nats_above
from tutorial_lib.practice.ch23_capstone.promises import (
    PROMISES,
    NotDone,
    alike,
    answers,
    first_broken,
    lines_of,
)

check = against(MISTAKES)
ASKED = 3  # claims


def _ahead(X):
    """Each row adds half of the next one to it."""
    return X + 0.5 * np.roll(X, -1, axis=-2) * (np.arange(X.shape[-2]) < X.shape[-2] - 1)[:, None]


def _second_last(X):
    """The row of the third token alone knows the fourth."""
    Y = np.cumsum(X, axis=-2)
    Y[..., 2, :] += X[..., 3, :]
    return Y


def _spoilt(X):
    """NaN in the first row, once the third token is not as it was."""
    Y = np.cumsum(X, axis=-2)
    Y[..., 0, :] = np.where(X[..., 2, :1] == normal(223, 5, 4)[2, 0], Y[..., 0, :], np.nan)
    return Y


def check_leak(function):
    """Check `leak(layer, X, other)` of chapter 23. Prints an account."""
    layers = {
        "a causal layer": lambda X: np.cumsum(X, axis=-2),
        "each row knows the next": _ahead,
        "one row knows the next": _second_last,
        "a row that turns to NaN": _spoilt,
    }
    cases = []
    for n, (label, layer) in enumerate(layers.items()):
        texts = {"X": normal(220 + n, 5, 4), "other": normal(224 + n, 5, 4)}
        cases.append(Case(label, {"layer": layer, **texts}))
    check("leak", function, leak, tuple(cases))


def check_attention(function):
    """Check `attention(X, params, *, rates, window, sink, cache)` → (Y, cache), chapter 23.

    Asks for one promise after the other, and prints an account: which one is broken, what was seen
    of it, and the mistake where it is one of those that people make.
    """
    if not callable(function):
        print(f"✗ attention: got a {type(function).__name__}; give the function itself.")
        return
    try:
        name, seen, kept = first_broken(function)
    except NotDone:
        print("○ attention: not done yet (it returns None).")
        return
    if name is None:
        promises = "; ".join(PROMISES)
        print(
            f"✓ attention: keeps every promise, in {lines_of(function)} lines of code\n"
            f"  {promises}."
        )
        return
    first = f"✗ attention: the promise of {name} is broken: {seen}"
    before = [f"Kept before it: {', '.join(kept)}"] if kept else []
    mistake = _name(function)
    print(told(first, *before, *(_told_of(mistake) if mistake else [])))


def _told_of(mistake):
    return mistake.says[0].upper() + mistake.says[1:], mistake.mend


def _name(function):
    """The mistake that answers all probes as this layer does."""
    found = answers(function)
    wrong = MISTAKES["attention"]
    return next((one for one in wrong if alike(found, answers(one.function))), None)


def judged(number, answer):
    """What is wrong with an answer to one claim, as a tuple of sentences; () where it is right."""
    claim = next((claim for claim in CLAIMS if claim.number == number), None)
    if claim is None:
        return (f"there is no claim {number!r}; choose from 1 to {len(CLAIMS)}",)
    if not isinstance(answer, tuple) or len(answer) != 2:
        return (f"claim {number} has {answer!r}; expected a pair such as (False, 0.5)",)
    holds, value = answer
    if not isinstance(holds, bool | np.bool_):
        return (f"claim {number} begins with {holds!r}; expected True or False: does it hold",)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return (f"claim {number} ends with {value!r}; expected a number",)
    if not math.isfinite(value):
        return (f"claim {number} ends with {value}; expected a finite number",)
    if not near(value, claim.value):
        wrong = next((w for w in claim.wrong if near(value, float(w.function()))), None)
        if wrong is None:
            return (f"claim {number}: {value:.6g} is not the number that is asked for",)
        return (f"claim {number}: {wrong.says}", wrong.mend)
    if bool(holds) != claim.holds:
        says = "holds" if claim.holds else "fails"
        return (f"claim {number}: the number is right, and by it the claim {says}",)
    return ()


def check_claims(claims):
    """Check answers to three claims or more, `{number: (whether it holds, the number)}`.

    Prints an account: the mistake in the first answer that is not right.
    """
    if claims is None or claims == {}:
        print("○ claims: not done yet (no claim is answered).")
        return
    if not isinstance(claims, dict):
        print(f"✗ claims: got a {type(claims).__name__}; give {{number: (holds, value)}}.")
        return
    for number, answer in claims.items():
        if wrong := judged(number, answer):
            print(told(f"✗ claims: {wrong[0]}", *wrong[1:]))
            return
    if len(claims) < ASKED:
        print(f"○ claims: {len(claims)} of {ASKED} answered, and right so far.")
        return
    print("✓ claims: right on\n  " + "; ".join(f"claim {number}" for number in claims) + ".")


def check_nats_above(function):
    """Check `nats_above(model, documents, layer)`, exercise of chapter 23. Prints an account."""
    rng = np.random.default_rng(230)
    models = {
        "two layers": draw_own(rng),
        "turned, in groups, with a window and a sink": draw_own(
            rng, n_kv_heads=2, rotated=True, window=5, sink=True
        ),
    }
    layer, cases = layer_of(), []
    for n, (label, model) in enumerate(models.items()):
        documents = draw_documents(np.random.default_rng(231 + n), 3)
        cases.append(Case(label, {"model": model, "documents": documents, "layer": layer}))
    check("nats_above", function, nats_above, tuple(cases))

"""Checks for chapter 23: a layer by its promises, claims by their numbers, and a loss."""

import math

import numpy as np

from tutorial_lib.embedding import embed
from tutorial_lib.models.entropy import excess_loss
from tutorial_lib.models.grammar import WORDS, sample_documents
from tutorial_lib.models.own_layer import OwnLayer, OwnModel
from tutorial_lib.models.promises import leak
from tutorial_lib.practice.account import lay_out, read_room, remedy
from tutorial_lib.practice.cache_tests import NOT_DONE
from tutorial_lib.practice.calls import type_text
from tutorial_lib.practice.ch23_capstone.claims import CLAIMS, is_close_enough
from tutorial_lib.practice.ch23_capstone.promises import (
    PROMISES,
    attention,
    count_code_lines,
    evidence,
    evidence_by_promise,
)
from tutorial_lib.practice.inputs import D_MODEL, B, T, normal
from tutorial_lib.variants.grouped import GroupedParams

MISTAKES, cases_of = read_room(__file__)
LEAST = 3  # claims


def _sum_of_past_rows(X):
    """Each row is the sum of those before it and itself."""
    return np.cumsum(X, axis=-2)


def _row_plus_mean(X):
    """Each row is its own and the mean of all."""
    return X + X.mean(axis=-2, keepdims=True)


def _layer_with_leak(row):
    """A layer in which one row depends on the next token."""

    def layer(X):
        Y = _sum_of_past_rows(X)
        Y[..., row, :] -= X[..., row + 1, :]
        return Y

    return layer


def _nan_after_change(X):
    """NaN in the first row, once the third token is not as it was."""
    Y = _sum_of_past_rows(X)
    Y[..., 0, :] = np.where(X[..., 2, :1] == normal(223, T, D_MODEL)[2, 0], Y[..., 0, :], np.nan)
    return Y


def _leak_in_second_sequence(X):
    """In a batch only the second sequence leaks."""
    return np.where(np.arange(len(X))[:, None, None] == 1, _row_plus_mean(X), _sum_of_past_rows(X))


@cases_of(leak)
def check_leak():
    layers = {
        "a causal layer": _sum_of_past_rows,
        "every row depends on all tokens": _row_plus_mean,
        "only the first row depends on the next": _layer_with_leak(0),
        "a row that turns to NaN": _nan_after_change,
        "only the last row but one depends on the next": _layer_with_leak(T - 2),
        "a batch whose second sequence leaks": _leak_in_second_sequence,
    }
    for n, (label, layer) in enumerate(layers.items()):
        shape = (B, T, D_MODEL) if layer is _leak_in_second_sequence else (T, D_MODEL)
        sequences = {"X": normal(220 + n, *shape), "other": normal(230 + n, *shape)}
        yield label, {"layer": layer, **sequences}


def check_attention(function):
    """Check `attention(X, params, *, frequencies, window, sink, cache)` → (Y, cache), chapter 23.

    Tests one promise after the other, and prints an account: which one is broken, what was seen
    of it, and the mistake where it is one of those that people make.
    """
    if not callable(function):
        print(f"✗ attention: got {type_text(function)}; give the function itself.")
        return
    kept = []
    for name, seen in evidence_by_promise(function):
        if seen == NOT_DONE:
            print("○ attention: not done yet (it returns None).")
            return
        if seen:
            print(_broken_promise_feedback(name, seen, kept))
            return
        kept.append(name)
    first = f"✓ attention: keeps every promise, in {count_code_lines(function)} lines of code"
    print(f"{first}\n  {'; '.join(PROMISES)}.")


def _broken_promise_feedback(promise, observed, kept_promises):
    """Say which promise is broken, and name the mistake of which the same is observed."""
    first = f"✗ attention: the promise of {promise} is broken: {observed}"
    sentences = [first, *([f"Kept before it: {', '.join(kept_promises)}"] if kept_promises else [])]
    for mistake in MISTAKES["attention"]:
        if evidence(promise, mistake.of(attention)) == observed:
            sentences += [mistake.says[0].upper() + mistake.says[1:], *remedy(mistake)]
            break
    return lay_out(*sentences)


def mistakes_of(claim):
    """The mistakes in the number of a claim, which begin with its own."""
    return [m for m in MISTAKES["claims"] if m.name.startswith(f"{claim.number}_")]


def answer_faults(number, answer):
    """What is wrong with an answer to one claim, as a tuple of sentences; () where it is right."""
    claim = next((claim for claim in CLAIMS if claim.number == number), None)
    if claim is None:
        return (f"there is no claim {number!r}; choose from 1 to {len(CLAIMS)}",)
    holds, value = answer if isinstance(answer, tuple) and len(answer) == 2 else (None, None)
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not isinstance(holds, bool | np.bool_) or not is_number or not math.isfinite(value):
        expected = "a pair of True or False and a finite number, such as (False, 0.5)"
        return (f"claim {number} has {answer!r}; expected {expected}",)
    if not is_close_enough(value, claim.value):
        for mistake in mistakes_of(claim):
            if is_close_enough(value, float(mistake.of(claim.function)())):
                return (f"claim {number}: {mistake.says}", mistake.mend)
        return (f"claim {number}: {value:.6g} is not the number of the claim",)
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
        print(f"✗ claims: got {type_text(claims)}; give {{number: (holds, value)}}.")
        return
    for number, answer in claims.items():
        if wrong := answer_faults(number, answer):
            print(lay_out(f"✗ claims: {wrong[0]}", *wrong[1:]))
            return
    if len(claims) < LEAST:
        print(f"○ claims: {len(claims)} of {LEAST} answered, and right so far.")
        return
    print("✓ claims: right on\n  " + "; ".join(f"claim {number}" for number in claims) + ".")


def nats_above(model, documents, layer):
    """Return the mean excess loss over all words, in nats, with this layer in the model."""
    X = embed(documents.ids[:, :-1], model.E, model.P)
    for own in model.layers:
        X = X + layer(X, own.params, **own.options)[0]
    return excess_loss(X @ model.U, documents).mean()


def _sample_own_model(rng, n_kv_heads, d_k, **options):
    """A model of two layers and of other sizes than the book's, none of which follows from others.

    12 heads, a d_model of 58, a d_v of 21 and 72 positions; a model with RoPE has zeros for P.
    """
    shapes = (12, 58, d_k), (n_kv_heads, 58, d_k), (n_kv_heads, 58, 21), (12 * 21, 58)
    layers = []
    for _ in range(2):
        params = GroupedParams(*(rng.standard_normal(s) / np.sqrt(s[-2]) for s in shapes))
        layers.append(OwnLayer(params, **options))
    E, P = rng.standard_normal((len(WORDS), 58)), rng.standard_normal((72, 58))
    U = rng.standard_normal((58, len(WORDS))) / np.sqrt(58)
    return OwnModel(E, P * ("frequencies" not in options), tuple(layers), U)


@cases_of(nats_above)
def check_nats_above():
    rng = np.random.default_rng(230)
    frequencies = np.array([1.0, 0.6, 0.3, 0.1, 0.02])
    options = {"frequencies": frequencies, "window": 9, "sink": rng.random(12)}
    models = {
        "two layers, a KV head for each query head": (_sample_own_model(rng, 12, 17), 5),
        "RoPE, groups, a window and a sink": (_sample_own_model(rng, 3, 26, **options), 11),
    }
    for n, (label, (model, many)) in enumerate(models.items()):
        documents = sample_documents(np.random.default_rng(231 + n), many, length=31)
        given = {"model": model, "documents": documents, "layer": attention}
        yield label, given

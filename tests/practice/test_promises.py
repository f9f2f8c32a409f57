"""`check_attention` and `check_claims` say which promise is broken, and which claim goes wrong.

Their mistakes are found by what they do, so they are planted here; the certificate is made of what
the same checks find.
"""

import dataclasses
import re
from itertools import combinations

import numpy as np
import pytest

from tests.chapters.pages import written
from tests.chapters.prose_numbers import COMMENT
from tests.practice.rooms import ROOMS, ending
from tutorial_lib import checks
from tutorial_lib.models.own_layer import init_own_model
from tutorial_lib.practice.ch23_capstone.checks import mistakes_of
from tutorial_lib.practice.ch23_capstone.claims import CLAIMS
from tutorial_lib.practice.ch23_capstone.promises import (
    MOST_LINES,
    PROMISES,
    WIDTHS,
    attention,
    evidence_by_promise,
)
from tutorial_lib.practice.ch23_capstone.shown import show_results
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.cache import KVCache

MISTAKES = ROOMS["23_capstone"].MISTAKES
BROKEN = {
    "no_mask": "no leak",
    "one_ahead": "no leak",
    "hidden_after_softmax": "no leak",
    "window_beside": "no leak",
    "softmax_over_queries": "no leak",
    "joined_without_a_swap": "no leak",
    "not_scaled": "parity",
    "tiled": "groups",
    "one_key_more": "window",
    "values_rotated": "shift",
    "halves_for_interleaved": "shift",
    "sink_is_no_score": "sink",
    "positions_restart": "cache",
    "top_left": "cache",
    "padding_seen": "cache",
    "cache_as_it_was": "cache",
}


def account_lines(function, capsys):
    """The sentences of the account, each on one line."""
    checks.check_attention(function)
    return capsys.readouterr().out.replace("\n    ", " ").splitlines()


@pytest.mark.parametrize("mistake", MISTAKES["attention"], ids=lambda mistake: mistake.name)
def test_a_wrong_layer_breaks_its_promise_and_is_named(mistake, capsys):
    lines, end = account_lines(mistake.of(attention), capsys), ending(mistake)
    first, says = lines[0], lines[-len(end) - 1]
    assert first.startswith(f"✗ attention: the promise of {BROKEN[mistake.name]} is broken: ")
    assert says == f"  {mistake.says[0].upper()}{mistake.says[1:]}."
    assert lines[-len(end) :] == end


def by_loops(X, params, *, frequencies=None, window=None, sink=-np.inf, cache=None):
    """A right layer, query by query, with positions that count padding too."""
    T, H = X.shape[-2], len(params.W_Q)
    old = cache or KVCache.empty(params, T, batch=X.shape[:-2])
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    positions = old.length + np.arange(T)
    for n, frequency in enumerate(() if frequencies is None else frequencies):
        rotation = np.exp(1j * positions * frequency)
        for Z in (Q, K):
            pair = (Z[..., 2 * n] + 1j * Z[..., 2 * n + 1]) * rotation
            Z[..., 2 * n], Z[..., 2 * n + 1] = pair.real, pair.imag
    seen, now = np.broadcast_to(old.mask(T), (*X.shape[:-2], 1, T, old.length + T)), None
    now, heads = old.append(K, V), np.zeros((*X.shape[:-2], T, H, V.shape[-1]))
    for *at, t, h in np.ndindex(heads.shape[:-1]):
        keys, values = (Z[(*at, h * len(params.W_K) // H)] for Z in (now.K, now.V))
        columns = np.flatnonzero(seen[(*at, 0, t)])
        columns = columns[columns > positions[t] - (window or np.inf)]
        if len(columns):
            scores = keys[columns] @ Q[(*at, h, t)] / np.sqrt(Q.shape[-1])
            own = np.broadcast_to(sink, H)[h]
            exponentials = np.exp(scores - max(scores.max(), own))
            rest = np.exp(own - max(scores.max(), own))
            heads[(*at, t, h)] = exponentials / (exponentials.sum() + rest) @ values[columns]
    return heads.reshape(*X.shape[:-1], -1) @ params.W_O, now if cache else None


def test_right_layers_keep_every_promise(capsys):
    for layer in (attention, by_loops):
        first, *rest = account_lines(layer, capsys)
        assert first.startswith("✓ attention: keeps every promise, in ")
        assert all(name in " ".join(rest) for name in PROMISES)


def spoilt(spoil):
    """The right layer, what it returns changed on the way out."""
    return lambda X, params, **options: spoil(*attention(X, params, **options))


def changes_params(X, params, **options):
    """The right layer, which doubles a matrix afterwards."""
    out = attention(X, params, **options)
    params.W_O[...] *= 2
    return out


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (lambda X, params, **options: None, "○ attention: not done yet (it returns None)."),
        (3, "✗ attention: got an int; give the function itself."),
        (spoilt(lambda Y, cache: Y), "form is broken: it returned a ndarray; expected (Y, cache)"),
        (spoilt(lambda Y, cache: (Y, cache, 0)), "returned a tuple of 3; expected (Y, cache)"),
        (spoilt(lambda Y, cache: (Y, None)), "was given a cache and returned None for it"),
        (changes_params, "changed an array of params"),
    ],
)
def test_what_is_no_layer_is_told_in_the_first_sentence(layer, says, capsys):
    assert says in account_lines(layer, capsys)[0]


def first_broken(layer):
    """The first promise that is broken, and what is observed."""
    return next(found for found in evidence_by_promise(layer) if found[1])


def test_a_layer_that_rounds_breaks_parity_and_one_that_remembers_breaks_the_gradient():
    seen = {}

    def remembers(X, params, **options):
        key = X.shape, round(float(X.sum()), 2)
        found = attention(X, params, **options)
        return found if options else seen.setdefault(key, found)

    assert first_broken(spoilt(lambda Y, c: (np.round(Y, 6), c)))[0] == "parity"
    assert first_broken(remembers)[0] == "gradient"


def test_a_scale_that_is_right_at_one_width_breaks_parity():
    def scaled(X, params, **options):
        right, here = np.sqrt(params.W_Q.shape[-1]), np.sqrt(WIDTHS[1])
        return attention(X, dataclasses.replace(params, W_Q=params.W_Q * right / here), **options)

    name, seen = first_broken(scaled)
    assert name == "parity"
    assert seen.startswith("with d_model = 13, d_k = 5 and d_v = 11, Y[")


def test_a_layer_that_fails_behind_a_cache_is_told_as_elsewhere():
    def layer(X, params, *, cache=None, **options):
        if cache and cache.length:
            raise SystemExit("not done")
        return attention(X, params, cache=cache, **options)

    assert first_broken(layer) == ("cache", "chunks of 1: it raised SystemExit: not done")


def test_a_layer_of_too_many_lines_is_told():
    body = "\n".join(f"    n{i} = {i}" for i in range(MOST_LINES))
    names = {"attention": attention}
    exec(f"def long(X, params, **o):\n{body}\n    return attention(X, params, **o)", names)
    told = "it has 42 lines of code; expected 40 at most"
    assert first_broken(names["long"]) == ("forty lines", told)


def account_of(claims, capsys):
    """What the check says of answers."""
    checks.check_claims(claims)
    return capsys.readouterr().out.replace("\n    ", " ")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: str(claim.number))
def test_each_claim_has_a_number_and_mistakes_that_are_told(claim, capsys):
    others = [c for c in CLAIMS if c is not claim][:2]
    answers = {c.number: (c.holds, c.value) for c in (claim, *others)}
    assert account_of(answers, capsys).startswith("✓ claims: right on")
    values = {m: float(m.of(claim.function)()) for m in mistakes_of(claim)}
    assert len(values) >= 2
    for one, other in combinations([claim.value, *values.values()], 2):
        assert abs(one - other) > 4 * max(5e-4, 5e-4 * abs(claim.value)), (one, other)
    for mistake, value in values.items():
        account = account_of({**answers, claim.number: (claim.holds, value)}, capsys)
        assert account.splitlines()[0] == f"✗ claims: claim {claim.number}: {mistake.says}."
        assert account.splitlines()[1] == f"  {mistake.mend}"
    account = account_of({**answers, claim.number: (not claim.holds, claim.value)}, capsys)
    assert "the number is right, and by it the claim" in account


def listed_in_the_chapter():
    """Number, claim and what to compute, of each entry of the chapter's list."""
    cells = [COMMENT.sub("", cell.source) for cell in written("23_capstone").cells]
    [exercise] = [text for text in cells if text.startswith("**Exercise 3: ")]
    claims = re.findall(r"^(\d+)\. \*\*(.+)\*\*$", exercise, re.MULTILINE)
    computed = re.findall(r"^(\d+)\. ([^*].+)\.$", exercise, re.MULTILINE)
    assert [number for number, _ in claims] == [number for number, _ in computed]
    return [(*claim, what) for claim, (_, what) in zip(claims, computed, strict=True)]


def test_the_claims_of_the_chapter_are_those_that_are_checked():
    listed = listed_in_the_chapter()
    assert [(int(number), says) for number, says, _ in listed] == [
        (claim.number, claim.says) for claim in CLAIMS
    ]
    assert len({computed for *_, computed in listed}) == len(CLAIMS)


NUMBERS = [0.840533, 16384, 0, 0.067109, 0.75, 111, 31, 33, 0.005843, 0.967767, 0.304584, 0.9]
HOLD = {2, 3, 9, 10, 11}


@pytest.mark.parametrize(("claim", "number"), [*zip(CLAIMS, NUMBERS, strict=True)])
def test_a_claim_is_settled_by_its_number(claim, number):
    assert claim.value == pytest.approx(number, rel=1e-4, abs=1e-6)
    assert claim.holds == (claim.number in HOLD)


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        (None, "○ claims: not done yet"),
        ({}, "○ claims: not done yet"),
        ([(7, False)], "✗ claims: got a list; give {number: (holds, value)}."),
        ({13: (True, 1)}, "✗ claims: there is no claim 13; choose from 1 to 12."),
        ({7: 31}, "✗ claims: claim 7 has 31; expected a pair of True or False and a finite num"),
        ({7: ("no", 31)}, "✗ claims: claim 7 has ('no', 31); expected a pair"),
        ({7: (False, np.nan)}, "✗ claims: claim 7 has (False, nan); expected a pair"),
        ({7: (False, 33)}, "✗ claims: claim 7: 33 is not the number of the claim."),
        ({7: (False, 31)}, "○ claims: 1 of 3 answered, and right so far."),
    ],
)
def test_what_is_no_answer_is_told(claims, says, capsys):
    assert account_of(claims, capsys).startswith(says)


def test_a_certificate_says_what_was_shown_and_nothing_else():
    claims = {7: (False, 31), 2: (True, 16384), 12: (True, 0.9), 5: None}
    model = init_own_model(np.random.default_rng(0))
    page = str(show_results(attention, claims, model))
    assert "10 of 10 promises kept" in page
    assert "own numbers: 2\n" in page  # of 12 the verdict is wrong, and 5 is no answer
    assert "It holds: 16,384\n" in page
    assert "after 0 steps; 49,664 parameters" in page
    wrong = show_results(MISTAKES["attention"][0].of(attention), claims, model)
    assert wrong.nats is None
    assert "of excess loss" not in str(wrong)
    assert "✗ no leak" in str(wrong)


def test_a_certificate_of_nothing_is_empty_and_says_so():
    page = str(show_results(lambda X, params, **options: None))
    assert page.startswith("Nothing has been shown yet")
    assert "✓" not in page

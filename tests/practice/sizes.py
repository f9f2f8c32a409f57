"""What is accidental in the sizes of a check's cases, as sentences that say what to change."""

import inspect
import math
import re
import sys
from collections import Counter
from contextlib import ExitStack
from itertools import combinations
from unittest.mock import patch

import numpy as np

from tests.practice.axes import arguments, lengths, said
from tutorial_lib.practice.calls import call

OTHER_ROOT = re.compile(r"\*\* ?\(?-?(0?\.5|1 ?/ ?2)|import .*\bsqrt|isqrt")


def relations(found):
    """Which lengths are the same, or the product of two others, or have one ratio, as texts.

    That one is the square of another is no relation: few lengths are left beside a batch of 2.
    """
    known = [(key, n) for key, n in found.items() if n > 1]
    pairs = [(one + other, m * n) for (one, m), (other, n) in combinations(known, 2)]
    by_length = {}
    for key, n in known + pairs:
        key = [s for s in key if found.get((s,)) != 1]
        by_length.setdefault(n, []).append(Counter(key))
    texts = set()
    for alike in by_length.values():
        for one, other in combinations(alike, 2):
            sides = one - other, other - one  # both divided by what they share
            if any(sides) and max(map(max, map(Counter.values, filter(None, sides)))) == 1:
                texts.add(" = ".join(sorted("*".join(sorted(side)) or "1" for side in sides)))
    return texts


def accidents(name, cases, *, each_ratio=True):
    """What is accidental in the lengths of a case; of two ratios, unless another case differs."""
    found = [relations(lengths(name, case, said(case))[0]) for case in cases]
    always = set.intersection(*found)
    return [
        f"{name}, {case.label!r}: {relation} by accident. Change a length, or say it in the label"
        for case, these in zip(cases, found, strict=True)
        for relation in sorted(these)
        if each_ratio or relation in always or not all("*" in s for s in relation.split(" = "))
    ]


def never_apart(name, cases):
    """What labels and square masks say of two lengths, and no other case tells apart."""
    found = [lengths(name, case)[0] for case in cases]
    for symbol, product in {pair for case in cases for pair in said(case).items()}:
        factors = [(factor,) for factor in product.split("*")]
        known = [n for n in found if {(symbol,), *factors} <= n.keys()]
        if known and all(n[symbol,] == math.prod(n[f] for f in factors) for n in known):
            yield f"{name}: {symbol} = {product} in every case. Add one in which they differ"


def packed_alike(name, cases):
    """Axes that hold the heads side by side, and in no two cases differ in each factor."""
    found = [lengths(name, case) for case in cases]
    for key in {key for _, packed in found for key in packed}:
        sizes = [[n.get((s,), 1) for s in key if not s.isdigit()] for n, _ in found if key in n]
        if not any(all(map(int.__ne__, *two)) for two in combinations(sizes, 2)):
            yield f"{name}: {'*'.join(key)} is one axis. Ask two cases that differ in each factor"


def roots(right, cases):
    """The whole numbers whose roots a function takes, and which functions take one unseen."""
    seen, called = set(), set()

    def noting(function, of=lambda x: x):
        def noted(x, *rest, **options):
            seen.update({int(of(x))} if isinstance(of(x), int | np.integer) else {})
            return function(x, *rest, **options)

        return noted

    with ExitStack() as until:
        for module in (math, np):
            until.enter_context(patch.object(module, "sqrt", noting(module.sqrt)))
        if "torch" in sys.modules:
            functional, name = sys.modules["torch"].nn.functional, "scaled_dot_product_attention"
            fused = noting(getattr(functional, name), lambda Q: Q.shape[-1])
            until.enter_context(patch.object(functional, name, fused))
        until.callback(sys.setprofile, sys.getprofile())
        sys.setprofile(lambda frame, *_: called.add(frame.f_code))
        for case in cases:
            call(right, case)
    ours = [code for code in called if re.search(r"tutorial_lib|tests/", code.co_filename)]
    return seen, [code.co_name for code in ours if OTHER_ROOT.search(inspect.getsource(code))]


def one_width(name, right, cases):
    """What is wrong with the numbers whose roots a function takes, such as a width."""
    seen, unseen = roots(right, cases)
    if len(seen) == 1:
        yield f"{name}: it takes the root of {seen} in all cases. Ask one with another width"
    if unseen:
        yield f"{name}: {unseen} take a root that no test sees. Write math.sqrt"


def missing_masks(name, cases):
    """Which kinds of masks no case has, of those for all, of each sentence and of each head."""
    masks = [np.asarray(case.inputs["mask"]) for case in cases if "mask" in case.inputs]
    masks = [mask for mask in masks if mask.ndim >= 2]
    kinds = {
        "for all": any(math.prod(mask.shape[:-2]) == 1 for mask in masks),
        "that differs between heads": any(differs(mask, -3) for mask in masks),
        "that differs between sentences": any(differs(mask, -4) for mask in masks),
    }
    if masks:
        yield from (f"{name}: add a case with a mask {kind}" for kind in kinds if not kinds[kind])


def differs(mask, axis):
    """Whether a mask is not the same all along an axis."""
    return mask.ndim >= -axis and bool((np.diff(mask.astype(int), axis=axis) != 0).any())


def one_number(name, cases):
    """Numbers that are the same in every case, so that a function may hold them itself."""
    for argument in {n for case in cases for n, given in case.inputs.items() if is_number(given)}:
        given = {g if is_number(g := case.inputs.get(argument)) else None for case in cases}
        if len(given) == 1:
            yield f"{name}: {argument} is {given.pop()} in all cases. Ask one with another number"


def is_number(given):
    """Whether it is a number, and no switch."""
    return isinstance(given, int | float | np.number) and not isinstance(given, bool)


def one_batch(name, cases):
    """What is wrong where no array has a batch axis in one case and none in another."""
    axes = {}
    for case in cases:
        for argument, _, shape in arguments(name, "", case.inputs):
            axes.setdefault(argument, set()).add(len(shape))
    if all(len(numbers) == 1 for numbers in axes.values()):
        yield f"{name}: its arrays have as many axes in all cases. Ask one with a batch, or without"

"""What layers on hidden states and functions of Q, K and V are asked alike.

Both have `example`, the arrays of a call, `outputs`, `tolerance`, and `single`, `half` and
`gradient` where they can be asked.
"""

import contextlib

import numpy as np

from tutorial_lib.probe.report import RIGHT, WRONG, Finding, broken, passed
from tutorial_lib.probe.subject import Undecidable, largest, set_seeds, tokens


def ask_calls(subject):
    """Ask whether calls are apart, and whether the input stays as it is."""
    given, others = subject.example(), subject.example(seed=1)
    before = [array.copy() for array in given]
    first = np.array(subject.run(*given), dtype=float)
    findings = []
    if not all(map(np.array_equal, given, before)):
        findings = broken("input", "the call writes into its input", "input_overwritten")
    if not np.isfinite(first).all():
        sentence = f"{(~np.isfinite(first)).any(axis=-1).mean():.0%} of the outputs are not finite"
        return [*findings, Finding(WRONG, "calls", sentence, "not_finite")]
    subject.outputs(*others)
    for times in (4, 20):  # a longer text, which may be refused
        with contextlib.suppress(Exception):
            subject.outputs(*(np.concatenate([array] * times, axis=-2) for array in before))
    later = [subject.outputs(*before) for _ in range(3)]
    same = [subject.same(Y, later[-1]) for Y in (first, *later[:-1])]
    if all(same):
        return [*findings, Finding(RIGHT, "calls", "one input, one output")]
    if same[-1]:
        return [*findings, *broken("calls", None, "state_between_calls")]
    drawn = [set_seeds() or subject.outputs(*before) for _ in range(2)]
    name = "random_in_evaluation" if subject.same(*drawn) else "calls_depend_on_calls"
    return [*findings, *broken("calls", None, name)]


def ask_lengths(subject, arrays, lengths, allowed):
    """Ask whether the first tokens of a longer text are as they are alone; outputs see no later."""
    whole, longest = subject.outputs(*arrays), arrays[0].shape[-2]
    for T in lengths:
        part = subject.outputs(*(array[..., :T, :] for array in arrays))
        if largest(part, whole[..., :T, :]) > allowed:
            sentence = f"{T} tokens alone have other outputs than at the head of {longest}"
            return broken("lengths", sentence, "length_changes_outputs")
    return passed("lengths", f"the first of {longest} tokens are as they are alone")


def disagreement(single, double):
    """Return what single and double precision are found to be."""
    effect = np.std(double[np.isfinite(double)]) or 1.0
    difference = largest(single, double) / effect
    if difference <= 1e-2:
        return passed("precision", "single and double agree")
    size = f"{difference:.0%}" if np.isfinite(difference) else "infinitely, in part"
    return broken("precision", f"single and double differ by {size} of an output", "lost_in_single")


def ask_half(subject, context=None):
    """Ask for what is finite in double precision and not in half, under a mask where one is given.

    `context` is None where nothing can be said without the mask.
    """
    given, question = subject.example(), "half precision"

    def lost(size=1.0, context=context):
        arrays = size * given[0], *given[1:]
        half = np.asarray(subject.half(*arrays, **context or {}), dtype=float)
        double = subject.outputs(*arrays, **context or {})
        return bool((np.isfinite(double) & ~np.isfinite(half)).any())

    if subject.half is None:
        return []
    if not lost():
        return passed(question, "finite where double precision is")
    name = None
    if not lost(1e-3):
        name = "scores_overflow_in_half"
    elif context is None or (context and not lost(context={})):
        name = "mask_value_overflows_in_half"
    return broken(question, "not finite where double precision is", name)


def agree(slope, outputs, dY):
    """Say whether a slope agrees with differences of any of five sizes.

    Raises Undecidable where no two sizes agree with one another: the outputs are rounded.
    `outputs` is a function of a step in the direction of the slope.
    """
    slopes = []
    for step in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        slopes.append(float(((outputs(step) - outputs(-step)) * dY).sum() / (2 * step)))
    allowed = 1e-3 * (max(map(abs, slopes)) or 1.0)
    if min(abs(slope - found) for found in slopes) <= allowed:
        return True
    if min(map(abs, np.diff(slopes))) > allowed:
        raise Undecidable("differences of five sizes disagree, so the outputs are rounded")
    return False


def ask_gradient(subject, words, contexts, *, cut=tuple):
    """Ask whether gradients of the arrays of a call, named by `words`, agree with differences.

    `contexts` holds what is handed over by name, by the end of a sentence, and `cut` returns the
    parameters to which no gradient comes, though they have an effect.
    """
    if subject.gradient is None:
        return []
    given, wrong = subject.example(), []
    for ending, context in contexts.items():
        dY = tokens(1, subject.outputs(*given).shape, seed=4)[0]
        dY = dY * context["keep"][..., None] if "keep" in context else dY
        for k, gradient in enumerate(subject.gradient(*given, dY, **context)):
            direction = tokens(1, given[k].shape, seed=(6, k))[0]

            def outputs(step, k=k, direction=direction, context=context, counted=dY != 0):
                moved = [x + step * direction if i == k else x for i, x in enumerate(given)]
                return np.where(counted, subject.outputs(*moved, **context), 0.0)

            finite, slope = np.isfinite(outputs(0.0)).all(), float((gradient * direction).sum())
            if finite and not agree(slope, outputs, dY):
                wrong.append((f"that of {words[k]}{ending}", gradient))
    return _wrong_gradient(wrong, cut) if wrong else passed("gradient", "agrees with differences")


def _wrong_gradient(wrong, cut):
    """Say of gradients, each behind the words for it, how they do not agree with differences."""
    found = " and ".join(word for word, _ in wrong)
    if not all(np.isfinite(gradient).all() for _, gradient in wrong):
        sentence = f"{found} is not finite, though each output that counts is"
        return broken("gradient", sentence, "gradient_not_finite")
    zero = not any(np.any(gradient) for _, gradient in wrong)
    name = "gradient_cut" if zero or cut() else "gradient_of_another_function"
    sentence = f"{found} {'is 0 throughout and ' if zero else ''}does not agree with differences"
    return broken("gradient", sentence, name)

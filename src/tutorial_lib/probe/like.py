"""A reference as a claim: a layer, or a function, is compared with another one."""

from dataclasses import replace

import numpy as np

from tutorial_lib.probe.claims import CHOICES, Claims
from tutorial_lib.probe.report import WRONG, broken, passed
from tutorial_lib.probe.subject import ProbeError, changed, largest


def probe_like(ask, subject, reference, claims):
    """Ask a subject, and whether its outputs are those of a reference; return a Report.

    `ask` takes a subject and claims. Where outputs differ, the description of the reference is
    claimed of the subject, so that what is found there has its name.
    """
    report = ask(subject, claims)
    (found,) = ask_like(subject, reference, claims)
    if found.sign == WRONG and not report.names:
        other = ask(reference, claims)
        here, there = ({f.question: f.sentence for f in r.findings} for r in (report, other))
        apart = [word for word in here if here[word] != there.get(word, here[word])]
        report = ask(subject, Claims(claims_of(other) | claims))
        sentence, name = found.sentence, None if report.names else "other_than_reference"
        if len(apart) == 1:
            sentence += f"; its {apart[0]}: {there[apart[0]]}"
        found = replace(found, sentence=sentence, name=name)
    return replace(report, findings=(*report.findings, found))


def claims_of(report):
    """Return what a report describes as claims."""
    facts = {word: found for word, found in report.facts.items() if found in CHOICES.get(word, ())}
    facts |= {"row_sum": 1} if report.facts.get("row_sum") == 1 else {}
    return facts | (vars(report.pattern) if report.pattern else {})


def ask_like(subject, reference, claims):
    """Ask on which inputs outputs are those of a reference."""
    apart, alike = {}, []
    for words, (size, arrays, given, rows) in subject.cases(claims).items():
        try:
            Y = subject.outputs(*arrays, **given)
        except Exception:  # what a layer refuses is found by other questions
            continue
        there = _outputs(reference, words, arrays, given)
        if there.shape != Y.shape:
            raise ProbeError(
                f"on {words} the reference returned the shape {there.shape}, and the layer "
                f"{Y.shape}. Give a reference of the same widths, like=..."
            )
        allowed = 10 * size**2 * max(subject.tolerance, reference.tolerance)
        if changed(Y[rows], there[rows], allowed).any():
            apart[words] = largest(Y[rows], there[rows]), np.abs(there[rows]).max()
        else:
            alike.append(words)
    if not apart:
        return passed("like", f"the outputs of the reference, on {', '.join(alike)}")
    words, (difference, size) = next(iter(apart.items()))
    sentence = f"on {words} an output differs by {difference:.3g} from the reference's, "
    sentence += f"of which the largest is {size:.3g}"
    return broken("like", sentence + (f"; not on {', '.join(alike)}" if alike else ""))


def _outputs(reference, words, arrays, given):
    """Return the outputs of a reference that has to take what the layer takes."""
    try:
        return reference.outputs(*arrays, **given)
    except Exception as error:
        raise ProbeError(
            f"the reference refuses {words}: {type(error).__name__}: {error}. Give one that is "
            "called as the layer is, like=..."
        ) from error

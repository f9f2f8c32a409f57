"""What a reader has shown in chapter 23: what its checks find when they are run once more."""

import textwrap
from dataclasses import dataclass

import numpy as np

from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.own_layer import OwnModel
from tutorial_lib.practice.cache_tests import NOT_DONE
from tutorial_lib.practice.ch23_capstone.checks import answer_faults, nats_above
from tutorial_lib.practice.ch23_capstone.claims import CLAIMS
from tutorial_lib.practice.ch23_capstone.promises import (
    PROMISES,
    count_code_lines,
    evidence_by_promise,
)

SEED, TESTED = 1000, 100  # of the documents, and how many


@dataclass(frozen=True)
class Shown:
    """What the checks of chapter 23 have found; printed, it is the certificate.

    Parameters
    ----------
    promises : tuple of (name, what it says, whether it is kept)
    lines : number of lines of the layer
    claims : tuple of (number, claim, whether it holds, number)
    nats : mean excess loss of a trained model with this layer; None: no model
    steps : that it was trained for
    n_parameters : of the model
    """

    promises: tuple = ()
    lines: int = 0
    claims: tuple = ()
    nats: float | None = None
    steps: int = 0
    n_parameters: int = 0

    def __str__(self):
        kept = [is_kept for *_, is_kept in self.promises]
        if not (any(kept) or self.claims):
            return "Nothing has been shown yet: no promise is kept and no claim is answered."
        lines = [f"{self.lines} lines of code: {sum(kept)} of {len(kept)} promises kept"]
        lines += [f"  {'✓' if kept else '✗'} {name}: {says}" for name, says, kept in self.promises]
        lines += [f"claims answered with own numbers: {len(self.claims)}"]
        for number, says, holds, value in self.claims:
            verdict = "holds" if holds else "fails"
            lines.append(f"  {number}. {says} It {verdict}: {round(value, 4):,.10g}")
        if self.nats is not None:
            lines += ["trained on the known text, and run with this layer"]
            lines += [f"  {self.nats:.3f} nats per token of excess loss, on new documents"]
            lines += [f"  after {self.steps:,} steps; {self.n_parameters:,} parameters"]
        return "\n".join(textwrap.fill(line, 79, subsequent_indent="    ") for line in lines)


def show_results(attention, claims=None, model=None) -> Shown:
    """Run the checks of chapter 23 once more, in silence, and return what they find.

    Parameters
    ----------
    attention : the reader's layer
    claims : {number: (whether it holds, the number)}
    model : OwnModel, trained; None: none
    """
    found = dict(evidence_by_promise(attention))
    if NOT_DONE in found.values():
        return Shown()
    promises = tuple((name, says, not found[name]) for name, (_, says) in PROMISES.items())
    kept = all(is_kept for *_, is_kept in promises)
    right = {} if not isinstance(claims, dict) else claims
    answered = tuple(
        (claim.number, claim.says, claim.holds, float(right[claim.number][1]))
        for claim in CLAIMS
        if claim.number in right and not answer_faults(claim.number, right[claim.number])
    )
    lines = count_code_lines(attention)
    if not kept or not isinstance(model, OwnModel):
        return Shown(promises, lines, answered)
    documents = sample_documents(np.random.default_rng(SEED), TESTED)
    nats = float(nats_above(model, documents, attention))
    return Shown(promises, lines, answered, nats, model.steps, model.n_parameters)

"""Single against double precision, and gradients against differences."""

import numpy as np

from tutorial_lib.probe.report import RIGHT, WRONG, Finding
from tutorial_lib.probe.subject import Undecidable, largest


def disagreement(single, double):
    """Return what single and double precision are found to be."""
    effect = np.std(double[np.isfinite(double)]) or 1.0
    difference = largest(single, double) / effect
    if difference <= 1e-2:
        return [Finding(RIGHT, "precision", "single and double agree")]
    size = f"{difference:.0%}" if np.isfinite(difference) else "infinitely, in part"
    sentence = f"single and double differ by {size} of an output"
    return [Finding(WRONG, "precision", sentence, "lost_in_single")]


def agree(slope, outputs, dY):
    """Say whether a slope agrees with differences of any of five sizes.

    Raises Undecidable where no two sizes agree with one another: the outputs are rounded.

    Parameters
    ----------
    outputs : a function of a step in the direction of the slope
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


def gradient_findings(wrong, *, by_rule=False):
    """Return what gradients are found to be.

    Parameters
    ----------
    wrong : those that do not agree with differences: a word, and the gradient
    by_rule : whether no step of the backward pass was written by hand, so that only a cut is left
    """
    if not wrong:
        return [Finding(RIGHT, "gradient", "agrees with differences")]
    words = " and ".join(word for word, _ in wrong)
    if all(not np.any(gradient) for _, gradient in wrong):
        sentence = f"{words} is 0 throughout, and differences are not"
        return [Finding(WRONG, "gradient", sentence, "gradient_cut")]
    sentence = f"{words} does not agree with differences"
    name = "gradient_cut" if by_rule else "gradient_of_another_function"
    return [Finding(WRONG, "gradient", sentence, name)]

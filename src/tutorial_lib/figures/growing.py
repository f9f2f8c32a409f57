"""A curve that grows while a model is trained: in a page that runs, and in Jupyter."""

import builtins
import contextlib
import time
from html import escape
from typing import NamedTuple

import numpy as np

from tutorial_lib.contract import require_value_fits_annotation
from tutorial_lib.figures.ink import HEAD_INKS
from tutorial_lib.figures.lines import line_chart

PAUSE_S = 0.25  # seconds between two pictures
MAX_POINTS = 60  # points of a curve: of more steps, each point is a mean


def watch(training, start, steps):
    """Train, draw the loss as it falls, and return the last model, also when it is stopped.

    An interrupt in Jupyter ends the training and keeps what it has learned.
    So does a loss that is no finite number; then the model is the last whose loss was one.

    Parameters
    ----------
    training : iterable of (step, loss, model), such as `train(start, rng, steps=300)`: the loss
        before the step, the model after it
    start : the model before the first step
    steps : how many are expected

    Returns
    -------
    model : that of the last step, or `start`

    Raises
    ------
    TypeError : steps is no whole number
    """
    require_value_fits_annotation("steps", steps, "integer")
    previous_model, model, losses, screen = start, start, [], _CellOutput()
    outcome = ""
    with np.errstate(all="ignore"):  # what overflows is told once, at the end
        try:
            screen.replace_picture(_UnfinishedLossCurve(losses, steps))
            for _, loss, new_model in training:
                if not np.isfinite(loss):
                    raise FloatingPointError(f"The loss of step {len(losses) + 1} is {loss}.")
                losses.append(float(loss))
                previous_model, model = model, new_model
                screen.replace_picture_after_pause(_UnfinishedLossCurve(losses, steps))
        except KeyboardInterrupt:
            outcome = " Stopped; the model is kept."
        except FloatingPointError as error:
            model_message = f" Kept is the model before step {len(losses)}." if losses else ""
            model, outcome = previous_model, f" {error}{model_message}"
    with contextlib.suppress(KeyboardInterrupt):  # it came as the last step ended
        screen.replace_picture(
            _final_loss_chart(losses, _training_progress_text(losses, steps) + outcome)
        )
    return model


def _training_progress_text(losses, steps):
    if not losses:
        return f"No step of {steps} is done: the model is as it was."
    return f"Step {len(losses)} of {steps}: the loss is {losses[-1]:.3f}."


class _CellOutput:
    """The place below a cell where one picture follows the other."""

    def __init__(self):
        self.display_handle, self.drawn_at = None, time.monotonic()

    def replace_picture(self, picture):
        """Put a picture in the place of the last; without a notebook, print the last alone."""
        display = getattr(builtins, "display", None)  # as in IPython; a page that runs has its like
        self.drawn_at = time.monotonic()
        if self.display_handle is not None:
            self.display_handle.update(picture)
        elif display is not None:
            self.display_handle = display(picture, display_id=True)
        elif not isinstance(picture, _UnfinishedLossCurve):
            print(picture.caption)

    def replace_picture_after_pause(self, picture):
        """Do so where the last has stood for a while."""
        if time.monotonic() - self.drawn_at > PAUSE_S:
            self.replace_picture(picture)


def _binned_steps_and_losses(losses, steps):
    """Return the places and heights of at most MOST points, and how many steps each one is of."""
    span_steps = -(-max(steps, len(losses), 1) // MAX_POINTS)
    point_losses = [np.mean(losses[i : i + span_steps]) for i in range(0, len(losses), span_steps)]
    last_steps = [min(i + span_steps, len(losses)) for i in range(0, len(losses), span_steps)]
    return np.array(last_steps, dtype=float), np.array(point_losses), span_steps


class _Sentence(NamedTuple):
    caption: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.caption, "text/html": f"<p>{escape(self.caption)}</p>"}


class _UnfinishedLossCurve(NamedTuple):
    """The curve so far, drawn in no time, without its table."""

    losses: list
    steps: int

    def _repr_mimebundle_(self, include=None, exclude=None):
        text = _training_progress_text(self.losses, self.steps)
        ends, losses, _ = _binned_steps_and_losses(self.losses, self.steps)
        top = max(losses, default=1.0) or 1.0
        x_pixels, y_pixels = 10 + 380 * ends / max(self.steps, *ends, 1), 180 - 160 * losses / top
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(x_pixels, y_pixels, strict=True))
        html = (
            f'<figure class="ahh-figure" style="margin:1rem 0"><svg viewBox="0 0 400 200" '
            f'role="img" aria-label="{escape(f"A curve of the loss from 0 to {top:.3g}. {text}")}" '
            f'style="width:100%;max-width:30rem"><path d="M10 15V180H390" fill="none" '
            f'stroke="currentColor"/><polyline points="{points}" fill="none" '
            f'stroke="{HEAD_INKS[0]}" stroke-width="2"/></svg>'
            f'<figcaption style="margin:0.5rem 0">{escape(text)}</figcaption></figure>'
        )
        return {"text/plain": text, "text/html": html}


def _final_loss_chart(losses, caption):
    """Return the figure that stays, with its table; a sentence where there is no curve."""
    if not losses:
        return _Sentence(caption)
    last_steps, point_losses, steps_per_point = _binned_steps_and_losses(losses, len(losses))
    name = "loss" if steps_per_point == 1 else f"loss, mean of {steps_per_point} steps"
    return line_chart(last_steps, {"loss": point_losses}, labels=("step", name), caption=caption)

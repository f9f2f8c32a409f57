"""A curve that grows: what is shown of a training, and which model is kept however it ends."""

import builtins

import numpy as np
import pytest

from tutorial_lib import figures
from tutorial_lib.figures import Figure, growing
from tutorial_lib.models.copying import init_model
from tutorial_lib.models.training import train

LOSSES = [4.0, 2.0, 1.0, 0.5]
STEP_0, THIRD = "No step of 9 is done: the model is as it was.", "Step 3 of 9: the loss is 1.000."
KEPT = "Kept is the model before step 3."  # whose loss step 3 measured


class Screen:
    """A notebook's `display`: writes what it is shown, and interrupts the picture of a number."""

    def __init__(self):
        self.captions, self.pages, self.last, self.interrupt = [], [], None, None

    def __call__(self, picture, *, display_id):
        assert display_id is True
        self.update(picture)
        return self

    def update(self, picture):
        mime_bundle = picture._repr_mimebundle_()
        self.captions.append(mime_bundle["text/plain"].split("\n")[0])
        self.pages.append(mime_bundle["text/html"])
        self.last = picture
        if len(self.pages) == self.interrupt:
            raise KeyboardInterrupt


@pytest.fixture
def screen(monkeypatch):
    """A display that shows every step."""
    screen = Screen()
    monkeypatch.setattr(builtins, "display", screen, raising=False)
    monkeypatch.setattr(growing, "PAUSE_S", -1)
    return screen


def training(losses, *, error=None):
    """Steps with these losses, then an error; the model is the number of its step."""
    for step, loss in enumerate(losses, start=1):
        yield step, loss, step
    if error:
        raise error


def test_every_step_is_shown_in_one_place_and_the_last_model_comes_back(screen):
    assert figures.watch(training(LOSSES), 0, 4) == 4
    steps = [f"Step {i} of 4: the loss is {loss:.3f}." for i, loss in enumerate(LOSSES, start=1)]
    assert screen.captions == ["No step of 4 is done: the model is as it was.", *steps, steps[-1]]
    assert isinstance(screen.last, Figure)
    assert screen.last.tables[0].cells[:, 0].tolist() == ["4.0", "2.0", "1.0", "0.5"]
    svg_sketch = screen.pages[-2]
    assert 'points="105.0,20.0 200.0,100.0 295.0,140.0 390.0,160.0"' in svg_sketch
    assert f"A curve of the loss from 0 to 4. {screen.captions[-2]}" in svg_sketch
    assert 'points=""' in screen.pages[0]


@pytest.mark.parametrize(
    ("losses", "error", "interrupted_page", "model", "caption"),
    [
        ([], None, None, 0, STEP_0),
        (LOSSES, None, 2, 1, "Step 1 of 9: the loss is 4.000. Stopped; the model is kept."),
        (LOSSES, None, 5, 4, "Step 4 of 9: the loss is 0.500. Stopped; the model is kept."),
        (LOSSES, None, 6, 4, "Step 4 of 9: the loss is 0.500."),  # stopped as it ended
        ([], KeyboardInterrupt, None, 0, f"{STEP_0} Stopped; the model is kept."),
        ([np.nan, 1.0], None, None, 0, f"{STEP_0} The loss of step 1 is nan."),
        ([*LOSSES[:3], np.nan], None, None, 2, f"{THIRD} The loss of step 4 is nan. {KEPT}"),
        ([*LOSSES[:3], np.inf], None, None, 2, f"{THIRD} The loss of step 4 is inf. {KEPT}"),
        (LOSSES[:3], FloatingPointError("A sum is nan."), None, 2, f"{THIRD} A sum is nan. {KEPT}"),
    ],
)
def test_however_a_training_ends_the_last_model_whose_loss_was_a_number_is_kept(
    screen, losses, error, interrupted_page, model, caption
):
    screen.interrupt = interrupted_page
    assert figures.watch(training(losses, error=error), 0, 9) == model
    assert screen.captions[-1] == caption


def test_a_rate_that_is_too_large_is_told_and_warns_of_nothing(screen, recwarn):
    rng = np.random.default_rng(0)
    model = init_model(rng)
    assert figures.watch(train(model, rng, steps=9, rate=1), model, 9) is model
    assert screen.captions[-1].endswith(". Lower the rate. Kept is the model before step 1.")
    assert len(recwarn) == 0


def test_long_training_is_drawn_as_means_of_so_many_steps(screen):
    figures.watch(training([float(i) for i in range(150)]), 0, 150)
    table = screen.last.tables[0]
    assert table.columns == ["loss"]
    assert table.title == "loss, mean of 3 steps"
    assert table.rows[:2] + table.rows[-1:] == ["3", "6", "150"]
    assert table.cells[:2, 0].tolist() == ["1", "4"]


def test_pictures_come_no_faster_than_they_can_be_seen(screen, monkeypatch):
    monkeypatch.setattr(growing, "PAUSE_S", 60)
    figures.watch(training(LOSSES), 0, 4)
    assert len(screen.pages) == 2


def test_without_a_notebook_the_end_is_printed(capsys):
    assert figures.watch(training(LOSSES), 0, 4) == 4
    assert capsys.readouterr().out == "Step 4 of 4: the loss is 0.500.\n"


def test_other_errors_pass(screen):
    with pytest.raises(ZeroDivisionError):
        figures.watch(training(LOSSES, error=ZeroDivisionError), 0, 9)

"""A curve that grows: what is shown of a training, and which model is kept however it ends."""

import builtins

import numpy as np
import pytest

from tutorial_lib import figures
from tutorial_lib.figures import Figure, growing
from tutorial_lib.models.copying import init_model
from tutorial_lib.models.training import train

LOSSES = [4.0, 2.0, 1.0, 0.5]


class Screen:
    """A notebook's `display`: writes what it is shown, and interrupts the picture of a number."""

    def __init__(self, interrupt=None):
        self.captions, self.pages, self.last, self.interrupt = [], [], None, interrupt

    def __call__(self, picture, *, display_id):
        assert display_id is True
        self.update(picture)
        return self

    def update(self, picture):
        bundle = picture._repr_mimebundle_()
        self.captions.append(bundle["text/plain"].split("\n")[0])
        self.pages.append(bundle["text/html"])
        self.last = picture
        if len(self.pages) == self.interrupt:
            raise KeyboardInterrupt


@pytest.fixture
def screen(monkeypatch):
    """A display that shows every step."""

    def place(interrupt=None):
        made = Screen(interrupt)
        monkeypatch.setattr(builtins, "display", made, raising=False)
        monkeypatch.setattr(growing, "PAUSE", -1)
        return made

    return place


def training(losses, *, error=None):
    """Steps with these losses, then an error; the model is the number of its step."""
    for step, loss in enumerate(losses, start=1):
        yield step, loss, step
    if error:
        raise error


def test_every_step_is_shown_in_one_place_and_the_last_model_comes_back(screen):
    shown = screen()
    assert figures.watch(training(LOSSES), 0, 4) == 4
    steps = [f"Step {i} of 4: the loss is {loss:.3f}." for i, loss in enumerate(LOSSES, start=1)]
    assert shown.captions == ["No step of 4 is done: the model is as it was.", *steps, steps[-1]]
    assert isinstance(shown.last, Figure)
    assert shown.last.tables[0].cells[:, 0].tolist() == ["4.0", "2.0", "1.0", "0.5"]


def test_sketch_falls_with_the_loss_and_says_it_in_words(screen):
    shown = screen()
    figures.watch(training(LOSSES), 0, 4)
    html = shown.pages[-2]
    assert 'points="105.0,20.0 200.0,100.0 295.0,140.0 390.0,160.0"' in html
    assert f"A curve of the loss from 0 to 4. {shown.captions[-2]}" in html
    assert 'points=""' in shown.pages[0]


@pytest.mark.parametrize("picture", [2, 3, 4, 5])
def test_training_that_is_stopped_keeps_the_model_of_its_last_step(screen, picture):
    shown = screen(picture)
    step = picture - 1
    assert figures.watch(training(LOSSES), 0, 4) == step
    caption = f"Step {step} of 4: the loss is {LOSSES[step - 1]:.3f}. Stopped; the model is kept."
    assert shown.captions[-1] == caption


def test_interrupt_within_the_first_step_gives_the_model_at_the_start(screen):
    shown = screen()
    assert figures.watch(training([], error=KeyboardInterrupt), 0, 4) == 0
    caption = "No step of 4 is done: the model is as it was. Stopped; the model is kept."
    assert shown.captions[-1] == caption


def test_stop_that_is_pressed_as_the_last_picture_comes_loses_nothing(screen):
    shown = screen(len(LOSSES) + 2)
    assert figures.watch(training(LOSSES), 0, 4) == 4
    assert shown.captions[-1] == "Step 4 of 4: the loss is 0.500."


@pytest.mark.parametrize("loss", [np.nan, np.inf])
@pytest.mark.parametrize("raises", [False, True])
def test_loss_that_is_no_number_gives_the_last_model_whose_loss_was_one(screen, loss, raises):
    shown = screen()
    error = FloatingPointError(f"The loss of step 4 is {loss}.")
    losses = LOSSES[:3] if raises else [*LOSSES[:3], loss]
    assert figures.watch(training(losses, error=error), 0, 9) == 2  # whose loss step 3 measured
    assert shown.captions[-1] == (
        f"Step 3 of 9: the loss is 1.000. The loss of step 4 is {loss}. "
        "Kept is the model before step 3."
    )


def test_first_loss_that_is_no_number_gives_the_model_at_the_start(screen):
    shown = screen()
    assert figures.watch(training([np.nan, 1.0]), 0, 9) == 0
    assert shown.captions[-1] == (
        "No step of 9 is done: the model is as it was. The loss of step 1 is nan."
    )


def test_a_rate_that_is_too_large_is_told_and_warns_of_nothing(screen, recwarn):
    shown = screen()
    rng = np.random.default_rng(0)
    start = init_model(rng)
    assert figures.watch(train(start, rng, steps=9, rate=1), start, 9) is start
    assert shown.captions[-1].endswith(". Lower the rate. Kept is the model before step 1.")
    assert len(recwarn) == 0


def test_no_steps_are_no_error(screen):
    shown = screen()
    assert figures.watch(training([]), 0, 0) == 0
    assert shown.captions == ["No step of 0 is done: the model is as it was."] * 2


def test_long_training_is_drawn_as_means_of_so_many_steps(screen):
    shown = screen()
    figures.watch(training([float(i) for i in range(150)]), 0, 150)
    table = shown.last.tables[0]
    assert table.columns == ["loss"]
    assert table.title == "loss, mean of 3 steps"
    assert table.rows[:2] + table.rows[-1:] == ["3", "6", "150"]
    assert table.cells[:2, 0].tolist() == ["1", "4"]


def test_pictures_come_no_faster_than_they_can_be_seen(screen, monkeypatch):
    shown = screen()
    monkeypatch.setattr(growing, "PAUSE", 60)
    figures.watch(training(LOSSES), 0, 4)
    assert len(shown.pages) == 2


def test_without_a_notebook_the_end_is_printed(capsys):
    assert figures.watch(training(LOSSES), 0, 4) == 4
    assert capsys.readouterr().out == "Step 4 of 4: the loss is 0.500.\n"


@pytest.mark.parametrize("steps", [3.0, "3", None, True])
def test_steps_must_be_a_whole_number(steps):
    with pytest.raises(TypeError, match=r"steps is .*; expected a whole number"):
        figures.watch(training(LOSSES), 0, steps)


def test_other_errors_pass(screen):
    screen()
    with pytest.raises(ZeroDivisionError):
        figures.watch(training(LOSSES, error=ZeroDivisionError), 0, 9)

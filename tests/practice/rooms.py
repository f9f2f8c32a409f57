"""The rooms as the tests see them: what each page checks, and what it calls wrong."""

import pkgutil
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from unittest.mock import patch

from tutorial_lib import checks, practice
from tutorial_lib.practice import account as engine
from tutorial_lib.records import SITE, page_of_room

SYMPTOMS = f"{SITE}book/symptoms.html#symptom-"
NAMES = [found.name for found in pkgutil.iter_modules(practice.__path__) if found.ispkg]
ROOMS = {page_of_room(name): import_module(f"{practice.__name__}.{name}.checks") for name in NAMES}
BY_BEHAVIOUR = {"cached", "attention", "claims"}  # with no right function: tests of their own
ALL_MISTAKES = {name: wrong for room in ROOMS.values() for name, wrong in room.MISTAKES.items()}
MISTAKES = {name: wrong for name, wrong in ALL_MISTAKES.items() if name not in BY_BEHAVIOUR}
ALL = [(name, mistake) for name, mistakes in MISTAKES.items() for mistake in mistakes]


def wrong(name, mistake):
    """The wrong function that a mistake makes of the right one."""
    return mistake.of(asked(name)[0])


def ending(mistake):
    """The lines that end the account of a mistake: how to mend it, and where else it shows."""
    shows = f"  Elsewhere it shows like this: {SYMPTOMS}{mistake.symptom}"
    return [f"  {mistake.mend}", shows] if mistake.symptom else [f"  {mistake.mend}"]


def checked_in(room):
    """The names of the functions that a room checks."""
    return {name.removeprefix("check_") for name in vars(room) if name.startswith("check_")}


def check_of(name):
    """The check of a function."""
    left = "mistakes.txt of its room, variants/ or equal_slips.txt in tests/practice"
    assert f"check_{name}" in dir(checks), f"no room checks {name}: rename or remove it in {left}"
    return getattr(checks, f"check_{name}")


@cache
def asked(name):
    """What a check asks: the right function, and the cases on which others are compared with it."""
    with patch.object(engine, "feedback_on_function") as spy, redirect_stdout(None):
        check_of(name)(None)
    _, _, reference, cases, _ = spy.call_args.args
    return reference, cases


def printed(name, function, capsys):
    """What the check of `name` prints about a function."""
    check_of(name)(function)
    return capsys.readouterr().out


def account(name, function, capsys):
    """The same with every sentence on one line: where it goes on it is indented by four."""
    return printed(name, function, capsys).replace("\n    ", " ")

"""The limit of time holds where Python drops an exception."""

import sys
import weakref

import pytest

from tests.patience import Late, limited


class Slow:
    """Nothing but a thing to refer to."""


def forever(*_):
    """Never come back."""
    while True:
        pass


def call_back(callback):
    """Run a callback as that of a weak reference whose object goes."""
    thing = Slow()
    watch = weakref.ref(thing, callback)
    del thing
    assert watch() is None


def late_in_a_callback():
    """Never come back, first in a callback and then outside it."""
    call_back(forever)
    forever()


def test_alarm_in_a_callback_is_dropped_and_rings_again():
    hook = sys.unraisablehook
    with pytest.raises(Late), limited(0.05, again=0.05):
        late_in_a_callback()
    assert sys.unraisablehook is hook


def test_other_exceptions_in_a_callback_are_still_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    with limited(60):
        call_back(lambda _: 1 / 0)
    assert told == [ZeroDivisionError]

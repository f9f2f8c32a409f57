"""Checks for the reader's own functions: each says what is right, or names the mistake.

`check_softmax(my_softmax)` calls the function on a few inputs, compares it with the library's, and
prints one account that starts with ✓, ✗ or ○ (not done yet). The checks stand in the rooms of
their chapters, in `practice`; here each is found by its name when it is asked for.
"""

import pkgutil
from difflib import get_close_matches
from importlib import import_module

from tutorial_lib import practice

PREFIX = "check_"


def _import_modules_of_checks():
    """Import the checks of one room after the other."""
    for folder in pkgutil.iter_modules(practice.__path__):
        if folder.ispkg:
            yield import_module(f"{practice.__name__}.{folder.name}.checks")


def __getattr__(name):
    if name.startswith("_"):  # Python asks for some of its own
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for room_checks in _import_modules_of_checks() if name.startswith(PREFIX) else ():
        if hasattr(room_checks, name):
            return getattr(room_checks, name)
    check_names = [check.removeprefix(PREFIX) for check in __dir__()]
    close = [PREFIX + check for check in get_close_matches(name.removeprefix(PREFIX), check_names)]
    suggestion = " or ".join(close) or "one of dir(checks)"
    raise AttributeError(f"No chapter has a check called {name}; call {suggestion}.", name=name)


def __dir__():
    names = (name for module in _import_modules_of_checks() for name in vars(module))
    return sorted(name for name in names if name.startswith(PREFIX))

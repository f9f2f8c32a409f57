"""Samples: of many cases alike some for `make test`, and all for `make test-all`."""

import pytest


def every(nth, values):
    """Return values of a parameter, all but each nth of them marked as long."""
    return [value if i % nth == 0 else long(value)[0] for i, value in enumerate(values)]


def long(*values):
    """Return values of a parameter, or tuples of several, for `make test-all` alone."""
    return [_marked(value) for value in values]


def _marked(value):
    if hasattr(value, "marks"):
        return value._replace(marks=(*value.marks, pytest.mark.long))
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.long)

"""Samples: of many cases alike some for `make test`, and all for `make test-all`."""

import pytest


def every(nth, values):
    """Return values of a parameter, all but each nth of them marked as long."""
    return [value if i % nth == 0 else _long(value) for i, value in enumerate(values)]


def _long(value):
    if hasattr(value, "marks"):
        return value._replace(marks=(*value.marks, pytest.mark.long))
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.long)

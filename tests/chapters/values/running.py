"""What the page on running the book says of a download."""

from tutorial_lib.records import facts


def megabytes_of_pyodides_core():
    """The core of Pyodide has this size in MB."""
    (core,) = (n for n in facts("quoted")["numbers"] if n["name"] == "MB of Pyodide's core")
    return core["value"]

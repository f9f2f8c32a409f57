"""Ask a function of a file: python -m tutorial_lib.probe layer.py:attend --causal --window 128."""

import ast
import contextlib
import runpy
import sys
from pathlib import Path

from tutorial_lib.probe import ProbeError, probe
from tutorial_lib.probe.claims import CHOICES


def arguments(words):
    """Return the target, and the options of `probe`: --window 4, --causal, --no-causal."""
    target, *words = words
    options = {}
    for i, word in enumerate(words):
        if not word.startswith("--"):
            continue
        value = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("--") else "True"
        name = word[2:].replace("-", "_")
        if name.startswith("no_"):
            name, value = name[3:], "False"
        with contextlib.suppress(ValueError, SyntaxError):
            value = value if value in CHOICES.get(name, ()) else ast.literal_eval(value)
        options[name] = value
    return target, options


def load(target):
    """Return what a file calls by a name.

    Raises
    ------
    ProbeError : no such file, or no such name in it
    """
    file, _, name = target.rpartition(":")
    if not Path(file).is_file():
        raise ProbeError(f"there is no file {file!r}. Write FILE.py:NAME, such as layer.py:attend.")
    names = runpy.run_path(file)
    if name not in names:
        raise ProbeError(f"{file} has no {name!r}. Names in it: {', '.join(names)}.")
    if isinstance(names[name], type):
        raise ProbeError(f"{name} is a class. Name an instance of it, such as layer = {name}(…).")
    return names[name]


def main(words=None):
    """Print a report; return 1 where something is broken, and 2 where nothing could be asked."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    target, options = arguments(words)
    try:
        layer = load(target)
        tensors = options.pop("torch", False) or hasattr(layer, "named_parameters")
        ask = probe.torch if tensors else probe
        report = ask(layer, **options)
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    print(report)
    return int(not report.ok)


if __name__ == "__main__":
    sys.exit(main())

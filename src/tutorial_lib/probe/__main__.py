"""Ask a function of a file: python -m tutorial_lib.probe layer.py:attend --causal --window 128."""

import argparse
import importlib.util
import sys
from pathlib import Path

from tutorial_lib.probe import ProbeError, probe
from tutorial_lib.probe.claims import CHOICES, WORDS


def arguments(words):
    """Return what the command line says: the target, and the options of `probe`."""
    parser = argparse.ArgumentParser(prog="python -m tutorial_lib.probe", description=__doc__)
    heads = "of a function of Q, K, V: query heads and KV heads, as 8,2"
    name = "the name of that argument; ~ before it: True hides"
    parser.add_argument("target", help="FILE.py:NAME, a function, or a module of PyTorch")
    parser.add_argument("--heads", type=lambda text: tuple(map(int, text.split(","))), help=heads)
    parser.add_argument("--torch", action="store_true", default=None, help="of tensors of PyTorch")
    parser.add_argument("--axes", choices=("BHTd", "BTHd"), help="of Q, K and V")
    parser.add_argument("--causal", action=argparse.BooleanOptionalAction, help=WORDS["causal"])
    parser.add_argument("--d_model", "--d-model", type=int, help="the width of X")
    for word in ("window", "sinks", "block"):
        parser.add_argument(f"--{word}", type=int, help=WORDS[word])
    for word in ("keep", "positions", "mask"):
        parser.add_argument(f"--{word}", help=name)
    for word, choices in CHOICES.items():
        parser.add_argument(f"--{word}", choices=choices, help=WORDS[word])
    given = vars(parser.parse_args(words)).items()
    given = {word: value for word, value in given if value is not None}
    return given.pop("target"), given


def load(target):
    """Return what a file calls by a name.

    Raises
    ------
    ProbeError : no such file, or no such name in it
    """
    file, _, name = target.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise ProbeError(f"there is no file {file!r}. Write FILE.py:NAME, such as layer.py:attend.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise ProbeError(f"{file} has no {name!r}. Names in it: {', '.join(vars(module))}.")
    if isinstance(getattr(module, name), type):
        raise ProbeError(f"{name} is a class. Name an instance of it, such as layer = {name}(…).")
    return getattr(module, name)


def main(words=None):
    """Print a report; return 1 where something is broken, and 2 where nothing could be asked."""
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

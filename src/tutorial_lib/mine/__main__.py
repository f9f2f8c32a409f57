"""Check a function of a file: python -m tutorial_lib.mine layer.py:attend --kind attention."""

import argparse
import sys
from pathlib import Path

from tutorial_lib.mine import SPECS, MineError, check_text


def main(words=None):
    """Print the verdict; return 1 where it is wrong, and 2 where the function cannot be asked."""
    parser = argparse.ArgumentParser(prog="python -m tutorial_lib.mine", description=__doc__)
    parser.add_argument("target", help="FILE.py:NAME; without :NAME, its last function")
    parser.add_argument("--kind", choices=SPECS, required=True, help="what it should be")
    given = parser.parse_args(words)
    file, end, name = given.target.partition(".py")
    try:
        code = Path(file + end).read_text(encoding="utf-8")
        return int(check_text(given.kind, code, name[1:]) != "right")
    except (OSError, MineError) as error:
        print(f"{error} Write FILE.py:NAME, a function of NumPy arrays.", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

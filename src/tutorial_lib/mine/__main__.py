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
    path = Path(file + end)
    if not path.is_file():
        parser.error(f"there is no file {str(path)!r}; write FILE.py:NAME, such as layer.py:attend")
    try:
        return int(check_text(given.kind, path.read_text("utf-8"), name[1:]) != "right")
    except MineError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

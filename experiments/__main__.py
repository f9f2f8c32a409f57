"""Run scripts of this folder: `python -m experiments state`, or with --quick a small plan.

Each fills a record of src/tutorial_lib/data/results; its docstring says what it measures.
"""

import argparse
from pathlib import Path

from experiments import measuring

SCRIPTS = [path.stem for path in Path(__file__).parent.glob("*.py")]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", choices=sorted({*SCRIPTS} - {"__main__", "measuring"}))
    parser.add_argument("--quick", action="store_true", help="small plans, nothing is written")
    given = parser.parse_args()
    for name in given.names:
        measuring.run(name, quick=given.quick)

"""Refresh, check and build one chapter: what its author runs after each edit.

    make chapter NB=05_concatenation

In this order: the bank of its questions is laid out, its cells are run and what they show is
stored, then its rules, bank, keys and cells are checked while its page is built, and style last.
"""

import json
import os
import re
import subprocess
import sys

from tools import run_notebooks
from tools.chapters import FOLDER, ROOT, ContentsError, page
from tutorial_lib.records import page_of_room

ROOMS = ROOT / "src" / "tutorial_lib" / "practice"
FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)  # below the dots of pytest
TESTS = ("tests/chapters", "tests/practice", "tests/tools/test_chapter.py")


def format_bank_of_page(name):
    """Write the bank of a page in the one layout of banks; return what was done, as words.

    Raises
    ------
    ValueError : names the file that is no JSON; it is unchanged
    """
    for path in ROOMS.glob("*/bank.json"):
        if page_of_room(path.parent.name) == name:
            text = path.read_text(encoding="utf-8")
            try:
                new = format_bank(text)
            except ValueError as error:
                where = path.relative_to(ROOT)
                raise ValueError(f"{where}: {error}. Correct the file.") from None
            path.write_text(new, encoding="utf-8")
            return "already laid out" if new == text else "laid out anew"
    return "there is none yet"


def format_bank(text):
    """Return the text of a bank in the one layout that banks have."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def selection(name):
    """Return for `pytest -k` the name of a page, and the functions that its room checks."""
    rooms = (path for path in ROOMS.glob("*/checks.py") if page_of_room(path.parent.name) == name)
    texts = [path.read_text(encoding="utf-8") for path in rooms]
    checked = [f"[{each}" for text in texts for each in re.findall(r"^def check_(\w+)", text, re.M)]
    return " or ".join([name, *checked])


def run_chapter_tests(name, pytest_command):
    """Run the tests of a chapter while its page is built; return what went wrong, as words."""
    module = [sys.executable, "-m", "tools.build_page", name]
    quiet = os.environ | {"NO_COLOR": "1"}
    building = subprocess.Popen(module, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=quiet)
    tests = [*pytest_command, "-k", selection(name), *TESTS, str(page(name).path.relative_to(ROOT))]
    run = subprocess.run(tests, cwd=ROOT, check=False, capture_output=True, text=True)
    if run.returncode:
        begin = FAILURES.search(run.stdout)
        print(f"{run.stdout[begin.start() if begin else 0 :]}{run.stderr}")
    _, warnings = building.communicate()
    if building.returncode:
        print(f"Correct in the text what the page's build warns of:\n{readable_warnings(warnings)}")
    return ["a test"] * bool(run.returncode) + ["the page"] * bool(building.returncode) + run_ruff()


def run_ruff():
    """Ask ruff, whose words are printed; return in words what is wrong."""
    commands = (["check", "--quiet"], ["format", "--check", "--quiet"])
    ruff = [sys.executable, "-m", "ruff"]
    runs = [subprocess.run([*ruff, *words, "."], cwd=ROOT, check=False) for words in commands]
    how = "style (run: make format; it splits no text: what is left, edit by hand)"
    return [how] * any(run.returncode for run in runs)


def readable_warnings(sphinx_output):
    """Return the warnings of Sphinx with the cell that each is about, without colours."""
    text = run_notebooks.ANSI_COLOUR.sub("", sphinx_output).replace(f"{ROOT}/", "")
    return re.sub(r"(?<=\.ipynb):(\d+)\d{4}: ", r", cell \1: ", text).strip()


def print_step(step):
    """Print the heading of a step."""
    print(f"==> {step}", flush=True)


def main(arguments):
    """Take a chapter, and the words that call pytest, through all steps; 0 when it is green."""
    name, *command = arguments
    try:
        page(name)
        print_step(f"The bank of {name}: {format_bank_of_page(name)}")
    except ContentsError as error:
        print(f"{error}\nSay which, as in: make chapter NB=05_concatenation", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print_step("Running the cells and storing what they show")
    if run_notebooks.main([name]):
        return 1
    print_step("Checking rules, bank, keys and cells, and building the page")
    red = run_chapter_tests(name, command)
    how = f"red: {', '.join(red)}. Do what is said above, then repeat it" if red else "green"
    print_step(f"{name} is {how}. Its page: _build/chapter/{FOLDER}{name}.html")
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

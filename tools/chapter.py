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

from tools import readme, run_notebooks
from tools.chapters import FOLDER, ROOT, ContentsError, page
from tutorial_lib.records import page_of_room

ROOMS = ROOT / "src" / "tutorial_lib" / "practice"
FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)  # below the dots of pytest
BY_HAND = re.compile(r"^[A-Z]+\d+ (?!\[\*\])", re.MULTILINE)  # what ruff reports and cannot mend
LONG_LINES = """\
E501: `make format` splits no text. Write it as two strings, one a line, the space inside the first:
    "the first half of the text "
    "and the second half",
In JSON each of the two lines is an entry, as in "    \\"the first half of the text \\"\\n",
"""
TESTS = ("tests/chapters", "tests/practice", "tests/tools/test_chapter.py")


def laid_out(text):
    """Return the text of a bank in the one layout that banks have.

    Raises
    ------
    ValueError : says where the text is no JSON, or which key an object has twice
    """
    bank = json.loads(text, object_pairs_hook=_once)
    return json.dumps(bank, indent=2, ensure_ascii=False) + "\n"


def _once(pairs):
    keys = [key for key, _ in pairs]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise ValueError(f"One object has {sorted(twice)} twice, of which only the last would stay")
    return dict(pairs)


def lay_out(name):
    """Write the bank of a page in the one layout; return what was done, as words.

    Raises
    ------
    ValueError : names the file; it is unchanged
    """
    for path in ROOMS.glob("*/bank.json"):
        if page_of_room(path.parent.name) == name:
            text = path.read_text(encoding="utf-8")
            try:
                new = laid_out(text)
            except ValueError as error:
                where = path.relative_to(ROOT)
                raise ValueError(f"{where}: {error}. Correct the file.") from None
            if new == text:
                return "already laid out"
            path.write_text(new, encoding="utf-8")
            return "laid out anew"
    return "there is none yet"


def check(name, command):
    """Run the tests of a chapter while its page is built; return what went wrong, as words."""
    module = [sys.executable, "-m", "tools.build_page", name]
    quiet = os.environ | {"NO_COLOR": "1"}
    building = subprocess.Popen(module, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=quiet)
    tests = [*command, "-k", name, *TESTS, str(page(name).path.relative_to(ROOT))]
    run = subprocess.run(tests, cwd=ROOT, check=False, capture_output=True, text=True)
    if run.returncode:
        begin = FAILURES.search(run.stdout)
        print(f"{run.stdout[begin.start() if begin else 0 :]}{run.stderr}")
    _, warnings = building.communicate()
    if building.returncode:
        print(f"Correct in the text what the page's build warns of:\n{readable(warnings)}")
    return ["a test"] * bool(run.returncode) + ["the page"] * bool(building.returncode) + style()


def style():
    """Ask ruff; return in words what is wrong, with what mends it: a command, or a hand."""
    ruff = [sys.executable, "-m", "ruff"]
    asked = {"cwd": ROOT, "check": False, "capture_output": True, "text": True}
    wrong = subprocess.run([*ruff, "check", "--quiet", "."], **asked)
    form = subprocess.run([*ruff, "format", "--check", "--quiet", "."], **asked)
    told = "".join([wrong.stdout, wrong.stderr, form.stdout, form.stderr])
    print(told + LONG_LINES * ("E501" in told), end="")
    if not wrong.returncode and not form.returncode:
        return []
    by_hand = BY_HAND.search(wrong.stdout) is not None
    by_command = form.returncode or "[*]" in wrong.stdout or not by_hand
    ways = ["run: make format"] * bool(by_command) + ["edit by hand what ruff names"] * by_hand
    return [f"style ({', then '.join(ways)})"]


def readable(warnings):
    """Return the warnings of Sphinx with the cell that each is about, without colours."""
    text = run_notebooks.ANSI_COLOUR.sub("", warnings).replace(f"{ROOT}/", "")
    return re.sub(r"(?<=\.ipynb):(\d+)\d{4}: ", r", cell \1: ", text).strip()


def say(step):
    """Print the heading of a step."""
    print(f"==> {step}", flush=True)


def main(arguments):
    """Take a chapter, and the words that call pytest, through all steps; 0 when it is green."""
    name, *command = arguments
    try:
        page(name)
        say(f"The bank of {name}: {lay_out(name)}")
    except ContentsError as error:
        print(f"{error}\nSay which, as in: make chapter NB=05_concatenation", file=sys.stderr)
        return 2
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    say("Running the cells and storing what they show")
    if run_notebooks.main([name]):
        return 1
    readme.main()
    say("Checking rules, bank, keys and cells, and building the page")
    red = check(name, command)
    how = f"red: {', '.join(red)}. Do what is said above, then repeat it" if red else "green"
    say(f"{name} is {how}. Its page: _build/chapter/{FOLDER}{name}.html")
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

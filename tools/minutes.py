"""How long a notebook takes, computed from what it holds; Goal says it.

    python -m tools.minutes            a line for each notebook: minutes of reading and of doing
    python -m tools.minutes --write    the same, and set the numbers of every Goal

The rates are fitted to pages whose minutes two simulated readers noted while they worked through
them (`tests/chapters/noted_minutes.py`, which also gives the error on pages left out of the fit).
"""

import json
import re
import sys
from dataclasses import dataclass

from tools.chapters import DEEPER, pages

A_WORD = 0.019  # minutes of reading
A_LINE_READ = 0.2  # minutes of reading, for each line of code that is shown
AN_EXERCISE = 8  # minutes of doing
A_FURTHER_WORD = 0.59  # minutes of doing, for each word of an exercise beyond LONG
A_LINE_RUN = 0.22  # minutes of doing, for each line of code that is shown
LONG = 150
STEP = 5  # minutes are given in such steps

TASKS = "Exercises", "The task"
FOLDED = {"hide-input", "remove-input", "solution"}
HEADING = re.compile(r"^(#{1,6}) +(.*?) *$", re.MULTILINE)
EXERCISE = re.compile(r"^(?:\*\*|#+ )Exercise \d+\b", re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
UNREAD = re.compile(r"<!--.*?-->|<details.*?</details>|\]\([^)]*\)|<[^>]*>", re.DOTALL)
SPECIFIED = re.compile(r"<details><summary>What (.*?)</details>", re.DOTALL)  # part of a task
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
WORD = re.compile(r"[^\W\d_][\w'’-]*")
SAID = re.compile(
    r"About (\d+) minutes of reading and (\d+) of doing"
    r"(?:; with \*Deeper\*, (\d+) and (\d+))?\."
)


@dataclass(frozen=True)
class Counts:
    """What a page holds: words, lines of code shown, exercises, their words beyond LONG each."""

    words: int
    lines: int
    exercises: int
    further: int

    @property
    def minutes(self):
        """Return the minutes of reading and of doing, in steps of five."""
        reading = A_WORD * self.words + A_LINE_READ * self.lines
        doing = AN_EXERCISE * self.exercises + A_FURTHER_WORD * self.further
        return _step(reading), _step(doing + A_LINE_RUN * self.lines)


def _step(minutes):
    return max(STEP, STEP * round(minutes / STEP))


def count_words(text):
    """Count the words that are read: no fold, comment, address or code; a formula is one."""
    return len(WORD.findall(UNREAD.sub(" ", FORMULA.sub("F", FENCE.sub("", text)))))


def passages(cells):
    """Yield (section, whether it is below a *Deeper*, kind, text) of all that stands in cells."""
    section, deeper = "", 0
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            shown = not FOLDED & set(cell["metadata"].get("tags", ()))
            yield section, bool(deeper), "code" if shown else "folded", text
            continue
        unfenced = FENCE.sub(lambda fence: " " * len(fence[0]), text)  # of the same length
        places = [0, *(match.start() for match in HEADING.finditer(unfenced))]
        for start, end in zip(places, [*places[1:], len(text)], strict=True):
            if heading := HEADING.match(text, start):
                level, title = len(heading[1]), heading[2]
                section = title if level == 2 else section
                deeper = level if title.startswith(DEEPER) else deeper * (level > deeper)
            yield section, bool(deeper), "text", text[start:end]


def count(cells, *, deeper=True):
    """Count what cells of a notebook hold, with what stands below a *Deeper* or without."""
    found = [(section, kind, text) for section, off, kind, text in passages(cells) if deeper >= off]
    tasks = "\n".join(text for section, kind, text in found if section in TASKS and kind == "text")
    tasks = SPECIFIED.sub(r"\1", tasks)
    whole, *rest = tasks.split("\n### ")  # of a review; below it its answer is used
    hunts = [text for text in rest if text.startswith("Bug hunt")]
    sizes = [count_words(task) for task in EXERCISE.split(tasks)[1:] or [whole, *hunts] if task]
    return Counts(
        words=sum(count_words(text) for _, kind, text in found if kind == "text"),
        lines=sum(
            bool(line.strip()) for _, k, t in found if k == "code" for line in t.splitlines()
        ),
        exercises=len(sizes),
        further=sum(max(0, size - LONG) for size in sizes),
    )


def goal(cells):
    """Return the sentence of a Goal that gives the minutes."""
    main, whole = count(cells, deeper=False), count(cells)
    said = "About {} minutes of reading and {} of doing".format(*main.minutes)
    more = "; with *Deeper*, {} and {}".format(*whole.minutes) if whole != main else ""
    return f"{said}{more}."


def main(words):
    """Print the minutes of every notebook; with `--write`, set those of every Goal."""
    for page in pages():
        text = page.path.read_text(encoding="utf-8")
        said = goal(json.loads(text)["cells"])
        print(f"{page.name:24} {said}")
        if "--write" in words:
            page.path.write_text(SAID.sub(said, text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

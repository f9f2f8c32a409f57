"""The order of a chapter or of a review, read from the notebook."""

import ast
import json
import re
import statistics
from dataclasses import dataclass
from functools import cache

from tests.chapters.pages import CHAPTER, NAMES, REPOSITORY, kind_of, printed, tags, written
from tools import minutes
from tools.chapters import DEEPER, LABELLED, page, section_of
from tools.run_notebooks import VISIBLE_WORDS
from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.exhibits.board import STEPS

UNLIT = " · ".join(STEPS)
_STEP = r"(?:{0}|\*\*{0}\*\*)"
MAP = re.compile(f"^{' · '.join(_STEP.format(step) for step in STEPS)}$", re.MULTILINE)
COLAB = "https://colab.research.google.com/github/{}/blob/main/notebooks/{}.ipynb"
ROUNDS, CELLS_A_ROUND, EXERCISES = range(1, 5), range(3, 9), range(2, 5)
MEDIAN_LINES, MOST_LINES = 5, 12
OPENING = ["You get", "Why", "One number"]  # the lines that a chapter opens with
LOOKED_UP = "notation", "glossary"
LEAST_HINTS = 3  # a ladder
WORDS_OF_A_LABEL = range(2, 7)
MOST_COLUMNS = 85  # a wider line is cut off on the page
SHOWN_FOLDED = {"hide-input", "remove-input"}
FOLDED = {"outputs_hidden": True, "source_hidden": True}
CLOSE = "give it an output and the tag hide-output"
OPEN = "remove the tag"
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#{1,6}) +(.*?) *$", re.MULTILINE)
EXERCISE = re.compile(r"^(?:\*\*|#+ )Exercise (\d+)\b", re.MULTILINE)
CHECK = re.compile(r"\bcheck_\w+\(")
# The sections that may go deeper than the main path, and the level of its heading there.
DEEPER_LEVELS = {"Idea": 3, "Build": 4, "Check": 3, "Look": 3, "Myth and measurement": 3}
# The sections that, like the bank, must not need what only a Deeper explains.
ASKING = "Exercises", "The task", "Quiz", "Recap"
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BOLD = re.compile(r"\*\*([^*\n]+)\*\*")
MOST_SENTENCES = 2
SENTENCE_END = re.compile(r"(?<!\bal)[.?!](?=[*\")”]*(?:\s|$))")
NO_PARAGRAPH = re.compile(r"\s*(?:[#|>`<$]|[-*+] |\d+\. |!\[|$)")
# A figure, or an exhibit; where the exhibit stands in Idea, Look may ask for a state of it.
SEEN = {"Idea": "<figure|<tl-", "Look": r"<figure|<tl-|\]\(#\w+="}


@dataclass(frozen=True)
class Piece:
    """A code cell, or the stretch of a Markdown cell below one heading.

    Parameters
    ----------
    section : its level-2 heading, without a label
    kind : "code" or "markdown"
    text : with the heading that it begins with
    cell : the whole cell
    deeper : the title of the Deeper that it is in; on the main path there is none
    """

    section: str
    kind: str
    text: str
    cell: object
    deeper: str = ""


def headings(text):
    """Return (level, title) of the headings outside fenced code."""
    return [(len(hashes), title) for hashes, title in HEADING.findall(FENCE.sub("", text))]


def pieces(notebook):
    """Cut a notebook into pieces, each with the headings it stands below."""
    section, deeper, deep, found = "", "", 0, []
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            found.append(Piece(section, "code", cell.source, cell, deeper))
            continue
        for stretch in re.split(r"(?m)^(?=#{2,4} )", cell.source):
            level, title = _first_heading(stretch)
            section = section_of(title) if level == 2 else section
            if title.startswith(DEEPER) or 0 < level <= deep:
                deeper, deep = (title, level) if title.startswith(DEEPER) else ("", 0)
            if stretch.strip():
                found.append(Piece(section, "markdown", stretch, cell, deeper))
    return found


def _first_heading(text):
    """Return (level, title) of the heading that a text begins with; (0, "") without one."""
    found = HEADING.match(text)
    return (len(found[1]), found[2]) if found else (0, "")


def faults(name, notebook):
    """List where a page departs from the order of all pages of its kind, a sentence each."""
    kind, parts = kind_of(name), pieces(notebook)
    shared = [
        *_title(name, notebook),
        *_headings(kind, parts),
        *_goal(parts, notebook),
        *_recap(name, parts),
        *_predictions(name, parts),
        *_solutions(kind, parts),
        *_quiz(name, parts),
        *_lengths(parts),
        *_needs(name, parts),
    ]
    if kind is CHAPTER:
        own = [
            *_opening(parts),
            *_length(notebook),
            *_build(parts),
            *_middle(parts),
            *_deepers(parts),
            *_exercises(name, parts),
        ]
        return [*shared, *own]
    return [*shared, *_abilities(name, parts), *_task(kind, parts)]


def prose(parts, section):
    """Return the Markdown of one section."""
    return "\n\n".join(p.text for p in parts if p.section == section and p.kind == "markdown")


def code(parts, section):
    """Return the code pieces of one section."""
    return [piece for piece in parts if piece.section == section and piece.kind == "code"]


def main_path(parts):
    """Return the pieces that are in no Deeper."""
    return [piece for piece in parts if not piece.deeper]


def colab_address(name):
    """Return where Colab opens a chapter of this repository."""
    return COLAB.format(REPOSITORY.removeprefix("https://github.com/"), name)


def own_maps(parts):
    """Return the lines above Idea that show the map; a page has one, with its own steps in bold."""
    return MAP.findall(prose(parts, "")) + MAP.findall(prose(parts, "Goal"))


def next_map(name):
    """Return the map of the page after this one; after the last, no step is in bold."""
    following = NAMES[NAMES.index(name) + 1 :]
    lit = page(following[0]).steps if following else ()
    return " · ".join(f"**{step}**" if step in lit else step for step in STEPS)


def _title(name, notebook):
    first = notebook.cells[0].source
    title = headings(first)[0] if headings(first) else (0, "")
    titles = [text for cell in notebook.cells for level, text in _levels(cell) if level == 1]
    if title[0] != 1 or len(titles) != 1:
        yield "needs one level-1 heading, the first line: write its title there, and only there"
    address = colab_address(name)
    if not re.search(r"(?<!!)\[[^\]!]+\]\(" + re.escape(address) + r"\)", first):
        yield f"the first cell has no text link to Colab: write [Open in Colab]({address})"


def _levels(cell):
    return headings(cell.source) if cell.cell_type == "markdown" else []


def sections(parts):
    """Return the level-2 headings, with their labels."""
    texts = [piece.text for piece in parts if piece.kind == "markdown"]
    return [title for text in texts for level, title in headings(text) if level == 2]


def _headings(kind, parts):
    found = sections(parts)
    if list(map(section_of, found)) != list(kind.headings):
        yield f"level-2 headings are {found}: write {list(kind.headings)}, in this order"
    for title in found:
        name, _, label = title.partition(": ")
        if name in LABELLED and len(label.split()) not in WORDS_OF_A_LABEL:
            yield f"{title!r} has no label of 2 to 6 words: name its subject, as in chapter 14"


def _opening(parts):
    goal = prose(parts, "Goal")
    lines = re.findall(r"^- \*\*(You get|Why|One number)\b\*\*", goal, re.MULTILINE)
    if lines != OPENING:
        yield f"Goal opens with {lines}: write a line - **…** for each of {OPENING}, in this order"
    for there in LOOKED_UP:
        if goal.count(f"](../book/{there}.md)") != 1:
            yield f"Goal does not link to the {there} once: write [{there}](../book/{there}.md)"


def _goal(parts, notebook):
    shown, goal = own_maps(parts), prose(parts, "Goal")
    if len(shown) != 1 or "**" not in shown[0]:
        yield f"the top does not show the map once: write it, its own steps in bold, {UNLIT}"
    if (said := minutes.goal(notebook.cells)) not in goal:
        sets = ".venv/bin/python -m tools.minutes --write sets them"
        yield f"Goal does not give its minutes: write “{said}”; {sets}"
    if not re.search(r"`[^`\n]*→[^`\n]*`", goal):
        yield "Goal does not show its arrow: write it in code, such as `X → Q, K, V`"


def _length(notebook):
    most = notebook.metadata.get(VISIBLE_WORDS)
    words = minutes.count(notebook.cells, deeper=False).words
    if most is None:
        yield f"the metadata does not give the budget of words: write {VISIBLE_WORDS}, such as 2600"
    elif words > most:
        yield (
            f"{words} words are outside Deeper, more than its {VISIBLE_WORDS}, {most}: "
            "move what answers another question into Deeper, or cut an experiment"
        )


def _recap(name, parts):
    if MAP.findall(prose(parts, "Recap")) != [next_map(name)]:
        yield f"Recap does not show the map once, with the next arrow: write {next_map(name)}"


def _build(parts):
    rounds = []
    for piece in main_path(parts):
        if piece.section != "Build":
            continue
        if piece.kind == "markdown":
            rounds += [0 for level, _ in headings(piece.text) if level == 3]
        elif rounds:
            rounds[-1] += 1
    if len(rounds) not in ROUNDS:
        yield f"Build has {len(rounds)} rounds (###): cut it into 1 to {ROUNDS[-1]}"
    for place, cells in enumerate(rounds, start=1):
        if cells not in CELLS_A_ROUND:
            most = CELLS_A_ROUND[-1]
            yield f"round {place} has {cells} code cells: split or join some, 3 to {most} a round"
    for piece in parts:
        if piece.section != "Build" and piece.kind == "code" and "keeper" in tags(piece.cell):
            yield f"cell {piece.cell.id} is a keeper outside Build: move it, or remove the tag"


def _deepers(parts):
    """List what is out of order in each Deeper: its place, its level, its result, its cells."""
    ended = ""  # the Deeper that ended last in this round or section
    for before, piece in zip([None, *parts], parts, strict=False):
        level, title = _first_heading(piece.text) if piece.kind == "markdown" else (0, "")
        if before and before.deeper and not piece.deeper:
            ended = before.deeper
        if level == 2 or (piece.section == "Build" and level == 3):
            ended = ""
        if ended and level and not piece.deeper:
            yield f"{ended!r} comes before {title!r}: move it to the end of its round or section"
        if title.startswith(DEEPER):
            yield from _deeper_begins(piece, level)
        if piece.deeper and piece.kind == "code":
            yield from _deeper_cell(piece)


def _deeper_begins(piece, level):
    right = DEEPER_LEVELS.get(piece.section)
    if right is None:
        yield f"{piece.deeper!r} is in {piece.section}: move it to {', '.join(DEEPER_LEVELS)}"
    elif level != right:
        yield f"{piece.deeper!r} has {'#' * level}: write {'#' * right}, #### in a round, else ###"
    result = piece.text.partition("\n")[2].strip().partition("\n\n")[0]
    count = len(SENTENCE_END.findall(re.sub(r"<!--.*?-->|`[^`]*`", "", result)))
    if NO_PARAGRAPH.match(result) or not 0 < count <= MOST_SENTENCES:
        yield (
            f"{piece.deeper!r} begins with a paragraph of {count} sentences: write its result in "
            f"one or {MOST_SENTENCES} below the heading, which the page shows while it is closed"
        )


def _deeper_cell(piece):
    if "keeper" in tags(piece.cell):
        kind = "a keeper"
    elif piece.text.startswith("prediction("):
        kind = "a prediction"
    elif CHECK.search(piece.text):
        kind = "a check"
    else:
        return
    yield f"cell {piece.cell.id}, {kind}, is in {piece.deeper!r}: move it to the main path"


def _needs(name, parts):
    """List what tasks, questions and Recap need although only a Deeper has it."""
    near, far = main_path(parts), [piece for piece in parts if piece.deeper]
    bank = json.dumps(load_bank(name), ensure_ascii=False)
    asked = COMMENT.sub("", "\n".join([*(prose(near, s) for s in ASKING), bank]))
    if pointer := re.search(r"\bDeeper\b.{,30}|#deeper-[\w-]+", asked):
        yield f"tasks, bank or Recap name {pointer[0]!r}: move what they need to the main path"
    for term in sorted(_terms(far) - _terms(near) - _explained_before(name)):
        if re.search(rf"(?<!\w){re.escape(term)}s?(?!\w)", asked, re.IGNORECASE):
            yield f"tasks, bank or Recap use {term!r}: move it from its Deeper to the main path"
    (bound, read, _), (deep, _, functions) = _names(near), _names(far)
    read |= set(re.findall(r"`(\w+)[`(]", asked)) & functions
    for found in sorted(read & deep - bound):
        yield f"the main path uses {found}, which only a Deeper defines: move it, or use another"


def _terms(parts):
    """Return what Markdown has in bold, without the words with which a paragraph begins."""
    texts = (COMMENT.sub("", piece.text) for piece in parts if piece.kind == "markdown")
    found = {term.lower() for text in texts for term in BOLD.findall(text)}
    return {term for term in found if term[-1] not in ".:?"}


def _explained_before(name):
    """Return the terms in bold on the main paths of the pages before this one."""
    return set().union(*map(_explained_in, NAMES[: NAMES.index(name)]))


@cache
def _explained_in(name):
    return _terms(main_path(pieces(written(name))))


def _names(parts):
    """Return the names that code binds, those that it reads, and those of its functions."""
    bound, read, functions = set(), set(), set()
    for node in (n for p in parts if p.kind == "code" for n in ast.walk(ast.parse(p.text))):
        if isinstance(node, ast.Name):
            (bound if isinstance(node.ctx, ast.Store) else read).add(node.id)
        elif isinstance(node, ast.FunctionDef):
            functions.add(node.name)
        elif isinstance(node, ast.alias | ast.arg):
            bound.add(node.arg if isinstance(node, ast.arg) else node.asname or node.name)
    return bound | functions, read, functions


def _predictions(name, parts):
    shown = [place for place, piece in enumerate(parts) if piece.text.startswith("prediction(")]
    sources = [parts[place].text.strip() for place in shown]
    count = kind_of(name).predictions or len(shown)
    expected = [f'prediction("{name}", {n})' for n in range(1, count + 1)]
    if sources != expected:
        yield f"predictions are {sources}: write {expected}, in this order"
    answers = []
    for place in shown:
        if tags(parts[place].cell) != ["remove-input"]:
            yield f"{parts[place].text} shows its code: add the tag remove-input"
        found = list(_answers(parts[place + 1 :]))
        if not found:
            yield f"the cell after {parts[place].text} is no closed answer: {CLOSE}"
        answers += found
    for piece in parts:
        if piece.kind == "code" and _is_folded(piece.cell) and piece.cell.id not in answers:
            yield f"cell {piece.cell.id} hides its output without a prediction before it: {OPEN}"


def _answers(parts):
    """The closed cells right after a prediction; a heading or a cell that is not ends them."""
    for place, piece in enumerate(parts):
        if piece.kind == "code" and _is_closed(piece.cell):
            yield piece.cell.id
        elif piece.kind == "code" or place == 0 or headings(piece.text):
            return


def _is_closed(cell):
    folded = cell.metadata.get("jupyter", {}).get("outputs_hidden") is True
    return cell.cell_type == "code" and "hide-output" in tags(cell) and folded and cell.outputs


def _is_folded(cell):
    folded = {"hide-output", "hide-cell"} & set(tags(cell)) or "jupyter" in cell.metadata
    return folded and "solution" not in tags(cell)


def _middle(parts):
    near = main_path(parts)
    if not any(CHECK.search(piece.text) for piece in code(near, "Check")):
        yield "Check calls no check: add one, such as checks.check_concat_heads(concat_heads)"
    for section, seen in SEEN.items():
        shown = [_html(output) for p in code(near, section) for output in p.cell.outputs]
        if not re.search(seen, "".join([*shown, prose(near, section)])):
            yield f"{section} shows neither a figure nor an exhibit: draw one, as in chapter 05"
    if not any(o.output_type == "stream" for p in code(near, "Look") for o in p.cell.outputs):
        yield "Look prints no sentence: add a cell that prints what the figure shows"
    myth = prose(near, "Myth and measurement")
    if not re.search(r"^> ", myth, re.MULTILINE) or "](https://" not in myth:
        yield "the myth lacks the claim as a quotation, or a link to a source: write > … and https://"
    if not any(printed(piece.cell).strip() for piece in code(parts, "Myth and measurement")):
        yield "Myth and measurement measures nothing: add the cell that prints the number"


def _html(output):
    return output.get("data", {}).get("text/html", "")


def exercises(parts):
    """Cut the section Exercises where an exercise starts; each is a list of pieces."""
    found = []
    for piece in parts:
        if piece.section != "Exercises":
            continue
        if piece.kind == "markdown" and EXERCISE.search(piece.text):
            found.append([])
        if found:
            found[-1].append(piece)
    return found


def _solutions(kind, parts):
    for piece in parts:
        if piece.kind == "code" and piece.section != kind.tasks and "solution" in tags(piece.cell):
            yield f"cell {piece.cell.id} is a solution outside {kind.tasks}: move it, or the tag"


def _abilities(name, parts):
    table = [row for row in prose(parts, "What you can do now").splitlines() if row[:1] == "|"]
    for chapter in page(name).closes:
        if not any(f"]({chapter}.ipynb)" in row for row in table):
            yield f"its table has no link to {chapter}: add a row with ({chapter}.ipynb)"
    for step in STEPS:
        if not any(row.startswith(f"| **{step}** |") for row in table):
            yield f"its table has no row for the step {step}: add | **{step}** | … |"


def _task(kind, parts):
    task = [piece for piece in parts if piece.section == kind.tasks]
    solved = [n for n, piece in enumerate(task, start=1) if "hide-cell" in tags(piece.cell)]
    end = solved[0] if solved else len(task)
    uses = [piece.cell for piece in task[end:] if tags(piece.cell) == ["solution"]]
    if not any(printed(cell).strip() for cell in uses):
        yield "no open cell, tagged solution, uses the answer: add one that prints what comes of it"
    yield from (f"the task: {fault}" for fault in exercise_faults(task[:end]))
    for place, piece in enumerate(task):
        if piece.text.startswith("### Bug hunt"):  # the last of its section
            yield from (f"the bug hunt: {fault}" for fault in exercise_faults(task[place:]))


def _exercises(name, parts):
    found = exercises(parts)
    numbers = EXERCISE.findall(prose(parts, "Exercises"))
    if len(found) > EXERCISES[-1]:
        yield f"has {len(found)} exercises, more than {EXERCISES[-1]}: replace one, do not add one"
    elif len(found) not in EXERCISES or numbers != [str(n + 1) for n in range(len(found))]:
        yield f"exercises are numbered {numbers}: number them from 1, 2 to {EXERCISES[-1]} of them"
    puzzles = [p for p in parts if p.kind == "code" and p.text.startswith("parsons(")]
    inside = [p for p in puzzles if p.section == "Exercises"]
    if [p.text.strip() for p in inside] != [f'parsons("{name}")'] or puzzles != inside:
        yield f'Exercises need one Parsons problem: write one cell there, parsons("{name}")'
    if any(tags(piece.cell) != ["remove-input"] for piece in puzzles):
        yield "the Parsons problem shows its code: add the tag remove-input"
    for place, exercise in enumerate(found, start=1):
        if not any(piece in puzzles for piece in exercise):
            yield from (f"exercise {place}: {fault}" for fault in exercise_faults(exercise))


def exercise_faults(exercise):
    """List what is out of order in one exercise: task, stub, check, hints, solution."""
    order = "".join(_role(piece) for piece in exercise)
    if not re.fullmatch(r"t+s+c(?:t*h+)t*S", order):
        yield f"goes {' '.join(order)}: order it task, stub, check, hints, solution (t s c h S)"
        return
    check = next(piece for piece in exercise if _role(piece) == "c")
    if "not done yet" not in printed(check.cell):
        yield "the stored output of its check is not 'not done yet': leave the stub undone"
    hints = sum(p.text.count("<summary>Hint") for p in exercise if _role(p) == "h")
    if hints < LEAST_HINTS:
        yield f"has {hints} hints: write a ladder of {LEAST_HINTS}, each a <summary>Hint"
    solution = exercise[-1].cell
    folded = solution.metadata.get("jupyter", {})
    if tags(solution) != ["solution", "hide-cell"] or folded != FOLDED:
        yield "its solution is not folded: give it the tags solution, hide-cell"
    if not CHECK.search(solution.source) or "✓" not in printed(solution):
        yield "its solution does not define and check: let one cell do both, and print a ✓"


def _role(piece):
    if piece.kind == "markdown":
        return "h" if "<summary>Hint" in piece.text else "t"
    if "solution" in tags(piece.cell):
        return "S"
    return "c" if CHECK.search(piece.text) else "s"


def _quiz(name, parts):
    shown = [piece.cell for piece in code(parts, "Quiz")]
    expected = f'quiz("{name}")'
    if [cell.source.strip() for cell in shown] != [expected]:
        yield f"Quiz needs one cell: write {expected}"
    elif tags(shown[0]) != ["remove-input"]:
        yield "the quiz shows its code: add the tag remove-input"


def _lengths(parts):
    visible = [p for p in parts if p.kind == "code" and not SHOWN_FOLDED & set(tags(p.cell))]
    lines = {
        p.cell.id: sum(line.strip()[:1] not in {"", "#"} for line in p.text.splitlines())
        for p in visible
    }
    for name, count in lines.items():
        if count > MOST_LINES:
            yield f"cell {name} has {count} lines, more than {MOST_LINES}: split it"
    for piece in visible:
        widest = max(piece.text.splitlines(), key=len, default="")
        if len(widest) > MOST_COLUMNS:
            columns = f"{len(widest)} columns, more than {MOST_COLUMNS}"
            yield f"cell {piece.cell.id} has {columns}: break the line"
    median = statistics.median(lines.values()) if lines else 0
    if median > MEDIAN_LINES:
        lines = f"{median} lines in the median, more than {MEDIAN_LINES}"
        yield f"its code cells have {lines}: split the longest"

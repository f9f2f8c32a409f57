"""What a comment of the text names: a printed value, a record, a name in code, or a function.

| in a comment | what it is |
|---|---|
| `"mean top weight"[0, 2]` | an entry of what a cell above prints under this label |
| `"ms, one core"["in_place", "ms"]` | the same, by the names of row and column |
| `03-11 "weights"[0]`, `05_concatenation "rank"` | the same in one cell; in another chapter |
| `numpy_attention:sizes.gpt2.flop` | a value of a record, of facts; `bank:05_concatenation.quiz` |
| `code:widths[2]`, `code:03-09 widths` | what the code sets a name to; in one cell |
| `code:sample_documents.n` | what the code gives a function as this argument, or its default |
| `coursework.grader.judge:MOST_S` | a constant of a module |
| `= 2 * causal_mask(4).sum()` | an expression; its names are in NAMESPACE |
| `= fraction_of_verbs()` | a function of the page's module in `values/`, or of `training_records` |
"""

import ast
import importlib
import inspect
import math
import re
from fractions import Fraction
from functools import cache
from importlib import metadata
from itertools import takewhile, zip_longest

import numpy as np

import tutorial_lib
from coursework.grader.assignment import set_exam
from tests import capacity
from tests.chapters import training_records
from tests.chapters.pages import NAMES, code_cells, printed, written
from tests.practice.rooms import ALL_MISTAKES
from tools.chapters import ROOT
from tutorial_lib import counting, records
from tutorial_lib.onepass import flash_forward

VALUES = "tests/chapters/values"
MOST_CHARACTERS = 80  # of an expression
SOURCES = '"label"[i, j], code:name, record:path or = function()'
WHERE = r"(?P<where>(?:[\w-]+\s+)*)"  # a chapter, a cell, or both
PRINTED = re.compile(WHERE + r"(?P<quote>[\"'])(?P<label>.+?)(?P=quote)(?P<index>\[.*\])?")
SET = re.compile(rf"code:{WHERE}(?P<name>[A-Za-z_][\w.]*)(?P<index>\[.*\])?")
DATA = re.compile(r"(?P<name>[\w.]+):(?P<path>.*)", re.DOTALL)
HEADING = re.compile(r"(?P<label>.*?)   (?P<shape>\(\d*(?:, \d+)*,?\))$")
ENTRY = re.compile(
    r"(?<![\w.])[-−]?(?:\d[\d,]*\d|\d)?(?:\.\d+)?(?:/\d+)?(?:e[-+]?\d+)?(?<=[\d])|[✓·]|inf|nan"
)
LIST = re.compile(rf"[(\[]?(?:{ENTRY.pattern})(?:,? (?:{ENTRY.pattern}))+[)\]]?")
FOUND = {"✓": 1, "·": 0}
HEAD = r"\d{1,2}\.\d(?!\w|\.\d)"  # 1.2 is head 2 of layer 1
JOINT = r"(?:\s*,)?\s+(?:and|or|to|nor)\s+|\s*,\s+"
LISTED = re.compile(rf"\bheads?\s+{HEAD}(?:(?:{JOINT}){HEAD})*", re.IGNORECASE)


class Missing(Exception):
    """A comment names nothing, or more than one thing; the message says what to write."""


def value_of(reference, cells, page=None, code=()):
    """Return what a reference names: a number, a string, a bool, or an array or list of them.

    Parameters
    ----------
    reference : as in the table above
    cells : the code cells above
    page : the page that has the comment, whose module of values is asked first
    code : all its code cells, since a setting may stand below

    Raises
    ------
    Missing : nothing of this name, or an ambiguous one
    """
    if reference.startswith("="):
        return _computed(reference[1:].strip(), page)
    if match := SET.fullmatch(reference):
        return _of_code(match, code)
    if match := PRINTED.fullmatch(reference):
        table = _labelled(match["label"], _narrowed(cells, match["where"]))
        return _at(table, match["index"], reference)
    match = DATA.fullmatch(reference)
    if match and match["name"] != "code":
        return _of_data(match["name"], match["path"])
    raise Missing(f"{reference} names nothing: write {SOURCES}")


def is_settled(reference):
    """Return whether a reference is printed, recorded or quoted, so that the text follows it.

    A bank is not: where it has a question too many, the text is right.
    """
    match = DATA.fullmatch(reference)
    of_data = match and match["name"] not in ("code", "bank") and "." not in match["name"]
    return bool(PRINTED.fullmatch(reference) or of_data)


def heads_in(value):
    """Return the names of heads that a value is, such as "1.2", in one list; else none."""
    if isinstance(value, set | frozenset):
        value = sorted(value)
    names = list(np.ravel(np.asarray(value, dtype=object)))
    is_names = all(isinstance(name, str) and re.fullmatch(HEAD, name) for name in names)
    return names if is_names else []


@cache
def values_of(page):
    """Return the public functions of a page's module of values, by name; without one, none."""
    name = f"{VALUES.replace('/', '.')}.{module_of(page or '')}"
    if not page or importlib.util.find_spec(name) is None:
        return {}
    found = inspect.getmembers(importlib.import_module(name), inspect.isfunction)
    return {own: f for own, f in found if f.__module__ == name and not own.startswith("_")}


def module_of(page):
    """Return a page's name as Python can import it: "ch05_concatenation" of "05_concatenation"."""
    return re.sub(r"^(?=\d)", "ch", page)


def _computed(expression, page):
    """Return the value of an expression that fits into a line and is no number itself."""
    if re.fullmatch(r"[-+]?(?:0[bx])?[\d._]+(?:e[-+]?\d+)?", expression):
        raise Missing(f"{expression} repeats the text and can never differ: write {SOURCES}")
    if len(expression) > MOST_CHARACTERS:
        raise Missing(
            f"the expression {expression[:20]} … has {len(expression)} characters, more than "
            f"{MOST_CHARACTERS}: make it a function in {VALUES}/{module_of(page or 'page')}.py "
            f"and write <!-- = its_name() -->"
        )
    return _evaluated(expression, values_of(page))


def _narrowed(cells, where):
    """Return the cells of the chapter, and of the id, that the words of a reference name."""
    for word in where.split():
        cells = _cells(word) if word in NAMES else [cell for cell in cells if cell.id == word]
        if not cells:
            raise Missing(f"{word} is no chapter of _toc.yml and no code cell above: write one")
    return cells


@cache
def _cells(page):
    return code_cells(written(page))


def _evaluated(expression, names=()):
    try:
        return eval(expression, NAMESPACE | dict(names))
    except Exception as error:  # whatever a writer may have written
        raise Missing(f"{expression} raises {error!r}: write what Python can compute") from None


def _of_data(name, path):
    """Return an entry of a record, of facts, of a bank, or a constant of a module."""
    try:
        if name == "bank":
            page, _, path = path.partition(".")
            return _below(records.question_bank(page), path)
        for kind in (records.record, records.facts):
            if f"{name}.json" in _files(kind):
                return _below(kind(name), path)
        return getattr(importlib.import_module(name), path)
    except (KeyError, IndexError, AttributeError, ImportError, ValueError) as error:
        raise Missing(f"{name}:{path} is not there ({error}): write a path that is") from None


def _of_code(match, code):
    """Return what code sets a name to, or gives a function as an argument."""
    chapters = " ".join(word for word in match["where"].split() if word in NAMES)
    known = [node for cell in _narrowed(code, chapters) for node in _nodes(cell.source)]
    nodes = [node for cell in _narrowed(code, match["where"]) for node in _nodes(cell.source)]
    named, index = list(_named(match["name"], nodes, known)), match["index"] or ""
    for name, rest in ((match["name"] + index, ""), (match["name"], index)):
        found = {value for own, value in named if own == name}
        if len(found) > 1:
            raise Missing(
                f"{name} is ambiguous, it is {' and '.join(sorted(found))}: write the id of the "
                f"cell before it, or give the number a name of its own in the code"
            )
        if found:
            expression = f"({found.pop()}){rest}"
            return _evaluated(expression, _imported(expression, known))
    raise Missing(f"no cell sets {match['name']}: write a name that one sets, or function.argument")


@cache
def _nodes(source):
    return list(ast.walk(ast.parse(source)))


def _named(wanted, nodes, known):
    """Yield (name, value) of what is set, run through by a loop, or given to a function."""
    for node in nodes:
        pairs = []
        if isinstance(node, ast.Assign):
            pairs = [(ast.unparse(target), node.value) for target in node.targets]
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs += zip(map(ast.unparse, target.elts), node.value.elts, strict=False)
        elif isinstance(node, ast.For | ast.comprehension):
            pairs = [(ast.unparse(node.target), node.iter)]
        elif isinstance(node, ast.FunctionDef):
            pairs = _defaults(node)
        elif isinstance(node, ast.Call) and wanted.startswith(f"{ast.unparse(node.func)}."):
            pairs = _arguments(node, known)
        yield from ((name, ast.unparse(value)) for name, value in pairs)


def _defaults(function):
    """Return (function.parameter, value) of the defaults of a function."""
    args = function.args
    with_default = args.args[len(args.args) - len(args.defaults) :]
    pairs = [*zip(with_default, args.defaults, strict=True)]
    pairs += [(arg, d) for arg, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
    return [(f"{function.name}.{arg.arg}", value) for arg, value in pairs]


def _arguments(call, known):
    """Return (function.parameter, value) of what a call gives."""
    name = ast.unparse(call.func)
    given = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    plain = takewhile(lambda arg: not isinstance(arg, ast.Starred), call.args)
    given += zip(_parameters(name, known), plain, strict=False)
    return [(f"{name}.{parameter}", value) for parameter, value in given]


def _parameters(name, known):
    """Return the names of a function's parameters; none where neither page nor import has it."""
    for node in known:
        if isinstance(node, ast.FunctionDef) and node.name == name.split(".")[-1]:
            return [arg.arg for arg in node.args.args if arg.arg != "self"]
    try:
        return list(inspect.signature(eval(name, _imported(name, known))).parameters)
    except (NameError, AttributeError, ValueError, TypeError):
        return []


def _imported(expression, known):
    """Return what the imports of a page bind of the names in an expression."""
    names = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    found = {}
    for node in known:
        if isinstance(node, ast.Import | ast.ImportFrom) and names & {
            alias.asname or alias.name for alias in node.names
        }:
            exec(ast.unparse(node), found)
    return found


@cache
def _files(kind):
    folder = {records.record: "results", records.facts: "facts"}[kind]
    return {path.name for path in (records.DATA / folder).iterdir()}


def _below(found, path):
    """Follow a path of keys, in which a key may hold dots, and an entry of a list its name."""
    if not path:
        return found
    if isinstance(found, list):
        found = (
            {entry.get("name", n): entry for n, entry in enumerate(found)}
            if (found and isinstance(found[0], dict))
            else dict(enumerate(found))
        )
    for key in sorted(map(str, found), key=len, reverse=True):
        if path == key or path.startswith(f"{key}."):
            keys = {str(own): own for own in found}
            return _below(found[keys[key]], path[len(key) + 1 :])
    raise KeyError(f"{path!r} in {[str(key) for key in found][:6]}")


def _labelled(label, cells):
    """Return (array, names of rows, names of columns) of what stands under a label."""
    tables = [table for cell in cells for table in _tables(printed(cell)) if table[0] == label]
    if len(tables) != 1:
        count = f"{len(tables)} cells print" if tables else "no cell above prints"
        raise Missing(
            f'{count} "{label}": write a label that one prints, or the id of the cell before it; '
            f"where its cell comes below, as in the result of a Deeper, the chapter before it"
        )
    return tables[0][1:]


@cache
def _tables(text):
    """Return (label, array, names of rows, names of columns) of each value that `show` printed."""
    lines, found = text.split("\n"), []
    for at, line in enumerate(lines):
        if match := HEADING.fullmatch(line.rstrip()):
            shape = ast.literal_eval(match["shape"])
            found.append((match["label"], *_table(lines[at + 1 :], shape)))
        elif match := re.fullmatch(r"(?P<label>[^:]+): +(?P<value>\S.*)", line):
            numbers = _numbers(match["value"])
            if LIST.fullmatch(match["value"]):
                found.append((match["label"], np.array(numbers, dtype=object), [], []))
            elif numbers:
                found.append((match["label"], np.array(numbers[0], dtype=object), [], []))
    for _, array, *_ in found:
        array.setflags(write=False)  # it is read again
    return found


def _table(lines, shape):
    """Return (array, names of rows, names of columns) of the lines below a label."""
    n_columns, rows, names, header = shape[-1] if shape else 1, [], [], []
    height = shape[-2] if len(shape) > 1 else 1
    for line, last in zip_longest(lines, lines[height:], fillvalue=""):
        if len(rows) == math.prod(shape[:-1]) or HEADING.fullmatch(line.rstrip()):
            break
        if not line.strip() or re.fullmatch(r"\[[\d, ]+\]", line.strip()):
            continue
        entries = re.split(r"\s{2,}", line.strip())
        names_columns = (
            len(rows) % height == 0 and len(entries) == n_columns and len(line) == len(last)
        )
        if not _is_row(line, n_columns) or (names_columns and _is_row(last, n_columns)):
            header = entries if not rows else header
            continue
        rows.append(_numbers(line)[-n_columns:])
        names.append(entries[0] if len(line.split()) > n_columns else "")
    array = np.empty(len(rows) * n_columns, dtype=object)
    array[:] = [entry for row in rows for entry in row]
    whole = len(rows) == math.prod(shape[:-1])
    return (array.reshape(shape) if whole else array.reshape(len(rows), n_columns)), names, header


def _is_row(line, n_columns):
    """Whether a line ends in the entries of a row; names of columns may be numbers as well."""
    words = line.split()[-n_columns:]
    return len(words) == n_columns and all(ENTRY.fullmatch(word) for word in words)


def _numbers(text):
    """Return the numbers of a text, fractions as fractions."""
    words = [match[0] for match in ENTRY.finditer(text) if match[0]]
    return [FOUND[word] if word in FOUND else _number(word) for word in words]


def _number(word):
    word = word.replace(",", "").replace("−", "-")
    return Fraction(word) if "/" in word else float(word) if word[-1] in "fn" else Fraction(word)


def _at(table, index, reference):
    """Return an entry, by places or by the names of row and column."""
    array, rows, columns = table
    array = np.asarray(array, dtype=object)
    try:
        places = ast.literal_eval(f"({index[1:-1]},)") if index else ()
        named = (
            [
                names.index(place) if isinstance(place, str) else place
                for place, names in zip(
                    places, [rows, columns] if len(places) == 2 else [columns or rows], strict=False
                )
            ]
            if any(isinstance(place, str) for place in places)
            else places
        )
        found = array[tuple(named)]
    except (IndexError, ValueError, SyntaxError, TypeError) as error:
        raise Missing(
            f"{reference} has no such entry ({error}): its shape is {array.shape}, rows {rows}, "
            f"columns {columns}"
        ) from None
    return found


def printed_under(page, label):
    """Return the array that a chapter prints under a label, for an expression.

    The number of a chapter, such as "04", stands for its whole name.
    """
    name, *cell = page.split()
    page = next(found for found in NAMES if found.startswith(name))
    return value_of(" ".join([page, *cell, f'"{label}"']), [])


def setting(page, name):
    """Return what the code of a chapter sets a name to, for an expression."""
    return value_of(f"code:{page} {name}", [])


def in_code(where, pattern):
    """Return the number that a pattern finds in a cell, such as "20-10", or in a file."""
    cells = (cell.source for name in NAMES for cell in _cells(name) if cell.id == where)
    return float(re.search(pattern, next(cells, None) or read(where))[1])


def version(package):
    """Return the version of a package that the book is built with, such as "2.13.0"."""
    found = re.search(rf"^{package}==([\d.]+)", (ROOT / "requirements.txt").read_text(), re.M)
    return found[1] if found else metadata.version(package)


def points(assignment):
    """Return the points of a perfect hand-in."""
    return set_exam(assignment, seed=1).out_of


def bits(assignment):
    """Return how many bits the results of one hand-in can carry out, rounded."""
    return round(capacity.bits(set_exam(assignment, seed=1)))


def read(path):
    """Return the text of a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def quiz_goes_back_to(chapter):
    """Return the numbers of the chapters from which the last two questions of a quiz come."""
    return [int(question["from"][:2]) for question in records.question_bank(chapter)["quiz"][-2:]]


NAMESPACE = {
    **{name: getattr(tutorial_lib, name) for name in tutorial_lib.__all__},
    **dict(inspect.getmembers(training_records, inspect.isfunction)),
    "np": np,
    "math": math,
    "re": re,
    "Fraction": Fraction,
    "counting": counting,
    "flash_forward": flash_forward,
    "record": records.record,
    "facts": records.facts,
    "in_code": in_code,
    "bank": records.question_bank,
    "MISTAKES": ALL_MISTAKES,
    "ROOT": ROOT,
    "checkpoint": records.checkpoint,
    "bits": bits,
    "points": points,
    "printed": printed_under,
    "quiz_goes_back_to": quiz_goes_back_to,
    "read": read,
    "setting": setting,
    "version": version,
}

"""Which cells of a notebook a function needs, read as IPython reads them.

Needs the standard library alone, since it runs in the sandbox too, and of IPython one file that
needs no more: the one that turns `%magic`, `!shell` and `help?` into Python.
"""

import ast
import importlib.util
import os
import re
import symtable
import sys
import types
from functools import cache
from importlib.machinery import PathFinder
from typing import NamedTuple

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINES = (*FUNCTIONS, ast.ClassDef)
RUN = {"time", "prun", "capture"}  # magics that run the code that they are given
PYLAB = "import numpy, numpy as np, matplotlib.pyplot as plt\nfrom pylab import *"
IPYTHON = ("utils/tokenutil.py", "core/inputtransformer2.py")
PROMPT = re.compile(r"\s*In \[\d+\]: ")  # pasted, and valid Python: an annotation
MOST_MAGIC = 500  # lines of a cell


class Cell(NamedTuple):
    """A code cell: its number among them, its source, and when it was run, None for never."""

    number: int
    source: str
    count: int | None = None


def code_cells(notebook):
    """Return a notebook's code cells, given its parsed JSON, in the order in which they were run.

    A cell without an execution count stays behind the one above it. Where two cells have the same
    count, the kernel was started again between them, so all stay where they stand.

    Raises
    ------
    ValueError : it has no list of cells
    """
    found = [cell for cell in _all_cells(notebook) if isinstance(cell, dict)]
    found = [cell for cell in found if cell.get("cell_type") == "code"]
    cells = [Cell(i, _source(cell), _count(cell)) for i, cell in enumerate(found, start=1)]
    counts = [cell.count for cell in cells if cell.count is not None]
    if len(set(counts)) < len(counts):
        return cells
    turns, turn = [], -1
    for cell in cells:
        turn = turn if cell.count is None else cell.count
        turns.append((turn, cell.number))
    return [cells[number - 1] for _, number in sorted(turns)]


def _all_cells(notebook):
    notebook = notebook if isinstance(notebook, dict) else {}
    sheets = notebook.get("worksheets")  # until version 4 of the format
    for holder in (notebook, *(sheets if isinstance(sheets, list) else ())):
        if isinstance(holder, dict) and isinstance(holder.get("cells"), list):
            return holder["cells"]
    raise ValueError("a notebook has a list of cells")


def _source(cell):
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _count(cell):
    count = cell.get("execution_count", cell.get("prompt_number"))
    return count if type(count) is int else None


def read(source):
    """Return (statements of a cell, whether it took IPython to read it).

    What the shell and most magics would do is left to `get_ipython()`; of those that run code, such
    as `%time`, the code is there.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError : it cannot be read
    """
    if not PROMPT.match(source):
        try:
            return ast.parse(source).body, False
        except (SyntaxError, ValueError):
            pass
    try:
        text = _as_python(source)
    except Exception:  # whatever another's code makes of a text that may be anything
        text = source
    return _Unwrapped().visit(ast.parse(text)).body, True


def _as_python(source):
    """Return a cell's text after IPython's own transformations, each line at its place."""
    manager = _transformer().TransformerManager()
    before = lines = f"{source}\n".splitlines(keepends=True)
    for transform in manager.cleanup_transforms:
        lines = transform(lines)
    above = ["\n"] * (len(before) - len(lines))
    for transform in manager.line_transforms:
        lines = transform(lines)
    for _ in range(MOST_MAGIC):
        changed, new = manager.do_one_token_transform(lines)
        if not changed:
            break
        place = next(i for i, line in enumerate(new) if line != lines[i])
        new[place + 1 : place + 1] = ["\n"] * (len(lines) - len(new))
        lines = new
    return "".join(above + lines)


@cache
def _transformer():
    """Load IPython's transformer without the rest, which is slow and not in the sandbox."""
    before = sys.modules.get("IPython.utils")
    sys.modules["IPython.utils"] = holder = types.ModuleType("IPython.utils")
    try:
        for path in ipython_files().values():
            name = os.path.basename(path).removesuffix(".py")
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(holder, name, module)
    finally:
        del sys.modules["IPython.utils"]
        if before is not None:
            sys.modules["IPython.utils"] = before
    return holder.inputtransformer2


def ipython_files():
    """Return the files of IPython that reading a cell may need, by their places for an import.

    Raises
    ------
    ModuleNotFoundError : IPython is not installed
    """
    found = PathFinder.find_spec("IPython")
    if found is None:
        raise ModuleNotFoundError("cells are read as IPython reads them: pip install ipython")
    [folder, *_] = found.submodule_search_locations
    return {f"IPython/{name}": os.path.join(folder, name) for name in IPYTHON}


class _Unwrapped(ast.NodeTransformer):
    """Puts the code that a magic runs into the place of its call."""

    def visit_Expr(self, node):
        target, code, above = _run_by(node.value)
        if code is None:
            return self.generic_visit(node)
        body = ast.parse(f"{target} = get_ipython()").body if target else []
        body += read(code)[0]
        for statement in body:
            ast.increment_lineno(statement, node.lineno - 1 + above)
        return body or ast.copy_location(ast.Pass(), node)

    def visit_Call(self, node):
        _, code, _ = _run_by(node)
        if code is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.parse(code.strip(), mode="eval").body, node)


def _run_by(node):
    """Return (name to bind, code, lines above it) of a magic that runs code, or no code."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name("get_ipython"))),
            args=[ast.Constant(str(name)), ast.Constant(str(line)), *cell],
        ):
            if name == "pylab":
                return "", PYLAB, 0
            if name in RUN and cell:
                words = [word for word in line.split() if word.isidentifier()]
                return words[0] if name == "capture" and words else "", cell[0].value, 1
            if name in RUN and _is_python(line.strip()):
                return "", line.strip(), 0
    return "", None, 0


def _is_python(text):
    try:
        ast.parse(text)
    except UNREADABLE:
        return False
    return True


def bound(statement):
    """Return the names that a statement binds where it stands."""
    return _bound(_table(statement))


def _table(statement):
    text = ast.unparse(statement)
    try:
        return symtable.symtable(text, "a statement", "exec")
    except SyntaxError:  # of Python 3.14 on, where a cell waits outside a function
        text = ast.unparse(_AtOnce().visit(ast.parse(text)))
        return symtable.symtable(text, "a statement", "exec")


class _AtOnce(ast.NodeTransformer):
    """Takes the waiting out of a statement, which then has the same names."""

    def visit_Await(self, node):
        return self.visit(node.value)

    def visit_AsyncFor(self, node):
        return self.generic_visit(ast.For(**vars(node)))

    def visit_AsyncWith(self, node):
        return self.generic_visit(ast.With(**vars(node)))

    def visit_comprehension(self, node):
        node.is_async = 0
        return self.generic_visit(node)


def _bound(table):
    return {
        s.get_name()
        for s in table.get_symbols()
        if s.is_assigned() or s.is_imported() or s.is_declared_global()
    }


def _names(statement, table, modules):
    """Return the names that a statement sets or visibly changes, uses at once, uses when called.

    Parameters
    ----------
    modules : names of modules, which no method changes
    """
    sets, later, tables = set(_bound(table)), set(), table.get_children()
    if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
        sets.add("*")  # any name
    for scope in tables:
        tables += scope.get_children()
        names = [s for s in scope.get_symbols() if s.is_global()]
        later |= {s.get_name() for s in names}
        sets |= {s.get_name() for s in names if s.is_declared_global()}
    for node in ast.walk(statement):
        match node:
            case ast.Attribute() | ast.Subscript() if not isinstance(node.ctx, ast.Load):
                sets |= _root(node)
            case ast.Call(func=ast.Attribute() as method):
                sets |= _root(method) - modules
    now = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    return sets, now, later


def _root(node):
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def needed(cells, wanted, *, every=False):
    """Choose the cells that seem to define the wanted names and what these lean on.

    It is a guess: of what a call changes nothing is known. So every cell is run first.

    Parameters
    ----------
    cells : as `code_cells` returns them
    wanted : names
    every : choose all cells

    Returns
    -------
    chosen : (number of a cell, statement) pairs in the order of the cells
    remarks : (number of a cell, kind, words) triples; kinds are "syntax", "magic", and "again"
        where a wanted name is defined more than once
    """
    bodies, by_ipython, remarks = {}, set(), []
    for cell in cells:
        try:
            body, magic = read(cell.source)
            bodies[cell.number] = [(statement, _table(statement)) for statement in body]
        except UNREADABLE as error:
            remarks.append((cell.number, "syntax", told(error, getattr(error, "lineno", None))))
            continue
        by_ipython |= {cell.number} if magic else set()
    for name in wanted:
        remarks += _leave_out_stubs(bodies, name)
    taken = list(bodies) if every else _leant_on(bodies, wanted)
    remarks += [(number, "magic", "") for number in taken if number in by_ipython]
    return [(number, pair[0]) for number in taken for pair in bodies[number]], remarks


def _leant_on(bodies, wanted):
    """Return the numbers of the cells that set a name of the set, which grows by what they use.

    What a cell uses while it runs was set there or above it; what its functions use, anywhere.
    """
    every = [pair for body in bodies.values() for pair in body]
    modules = {name for s, table in every if isinstance(s, IMPORTS) for name in _bound(table)}
    found, taken, anytime = {}, set(), {"*", *wanted}
    for number, body in bodies.items():
        names = [_names(*pair, modules) for pair in body]
        sets, now, later = (set().union(*(part[i] for part in names)) for i in range(3))
        own = set().union(*(_bound(table) for _, table in body))
        found[number] = sets, now - own, later
    while True:
        before, soon = len(taken), set()
        for number in reversed(bodies):
            sets, now, later = found[number]
            if sets & (anytime | soon):
                taken.add(number)
                anytime |= later
            soon |= now if number in taken else set()
        if len(taken) == before:
            return [number for number in bodies if number in taken]


def statements_for(sources, wanted):
    """Return the statements alone, not whole cells, that some names of our own code need."""
    every = [statement for source in sources for statement in ast.parse(source).body]
    cells = [Cell(i, ast.unparse(statement)) for i, statement in enumerate(every)]
    return [statement for _, statement in needed(cells, wanted)[0]]


def functions_of(cells):
    """Return the names of all functions that cells define, in order."""
    found = set()
    for cell in cells:
        try:
            body, _ = read(cell.source)
        except UNREADABLE:
            continue
        found |= {statement.name for statement in body if isinstance(statement, FUNCTIONS)}
    return sorted(found)


def told(error, line):
    """Return what Python says of an error, and in which line of the cell, in 200 characters."""
    where = f"line {line}: " if line else ""
    try:
        return f"{where}{type(error).__name__}: {getattr(error, 'msg', None) or error}"[:200]
    except BaseException:  # what a hand-in's own error does when it is asked for its text
        return f"{where}an error without a text"


def in_text(notebook, names):
    """Return those functions of which a cell has the definition that is no code cell."""
    cells = [cell for cell in _all_cells(notebook) if isinstance(cell, dict)]
    texts = [_source(cell) for cell in cells if cell.get("cell_type") in ("markdown", "raw")]
    found = [re.compile(rf"^\s*(async )?def {name}\b", re.MULTILINE) for name in names]
    return [n for n, line in zip(names, found, strict=True) if any(map(line.search, texts))]


def _leave_out_stubs(bodies, name):
    """Take out definitions that do nothing below one that does; remark which one counts."""
    found = [
        (number, pair)
        for number, body in bodies.items()
        for pair in body
        if name in _bound(pair[1]) and not pair[1].lookup(name).is_referenced()
    ]
    good = [(number, pair) for number, pair in found if not _does_nothing(pair[0])]
    if len(found) < 2:
        return []
    for number, pair in found[found.index(good[0]) :] if good else ():
        if _does_nothing(pair[0]):
            bodies[number].remove(pair)
    last = (good or found)[-1][0]
    others = sorted({number for number, _ in found if number != last})
    where = f"code cell {', '.join(map(str, others))}" if others else "the same cell"
    return [(last, "again", f"{name}; also in {where}")]


def _does_nothing(statement):
    if not isinstance(statement, FUNCTIONS) or statement.decorator_list:
        return False
    return all(_is_nothing(line) for line in statement.body)


def _is_nothing(line):
    match line:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
        case ast.Raise(ast.Name("NotImplementedError") | ast.Call(ast.Name("NotImplementedError"))):
            return True
    return False

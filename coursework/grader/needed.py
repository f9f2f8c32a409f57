"""Which statements of a notebook a function needs: the grader runs these and no others.

Needs the standard library alone, since it runs in the sandbox too.
"""

import ast
import symtable

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
IMPORTS = (ast.Import, ast.ImportFrom)


def code_cells(notebook):
    """Return the sources of a notebook's code cells, given its parsed JSON.

    Raises
    ------
    ValueError : it has no list of cells
    """
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("a notebook has a list of cells")
    sources = [
        cell.get("source", "")
        for cell in cells
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    return [_joined(source) for source in sources]


def _joined(source):
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))


def statements(source):
    """Return (statements of a cell, whether lines for IPython alone were left out).

    A line that begins with `%`, `!` or `?` may be Python, the rest of an expression; so these lines
    go only where the cell cannot be read with them.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError : the cell is not Python
    """
    try:
        return ast.parse(source).body, False
    except UNREADABLE:
        kept = [_without_magic(line) for line in source.splitlines()]
        return ast.parse("\n".join(kept)).body, True


def _without_magic(line):
    bare = line.lstrip()
    return line[: len(line) - len(bare)] + "pass" if bare.startswith(("%", "!", "?")) else line


def _names(statement):
    """Return (names that a statement binds or changes, names that it reads)."""
    table = symtable.symtable(ast.unparse(statement), "a statement", "exec")
    symbols = table.get_symbols()
    bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    read = {s.get_name() for s in symbols if s.is_referenced()}
    scopes = list(table.get_children())
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_global():
                read.add(symbol.get_name())
                if symbol.is_declared_global():
                    bound.add(symbol.get_name())
    return bound | set(_changed(statement)), read


def _changed(statement):
    """Yield the names whose items or attributes a statement sets, or whose method it calls."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from _root(node)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        yield from _root(statement.value.func)


def _root(node):
    if isinstance(node, ast.Name):
        return
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _takes_all(statement):
    return isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"


def needed(sources, wanted):
    """Choose the statements that define the wanted names, and all that these lean on.

    Parameters
    ----------
    sources : the code cells, as `code_cells` returns them
    wanted : names

    Returns
    -------
    chosen : (number of the cell, statement) pairs in the notebook's order, cells from 1
    remarks : (number of the cell, "syntax" or "magic", what Python says) triples
    """
    found, remarks = [], []
    for number, source in enumerate(sources, start=1):
        try:
            body, left_out = statements(source)
            found += [(number, statement, *_names(statement)) for statement in body]
        except UNREADABLE as error:
            where = f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else error
            remarks.append((number, "syntax", str(where)))
            continue
        if left_out:
            remarks.append((number, "magic", ""))
    chosen = _closure(found, set(wanted))
    return [(number, statement) for number, statement, *_ in chosen], remarks


def _closure(found, names):
    """Keep the statements that bind a name of the set, which grows by what they read."""
    modules = {name for _, s, bound, _ in found if isinstance(s, IMPORTS) for name in bound}
    kept = [isinstance(s, IMPORTS) and _takes_all(s) for _, s, *_ in found]
    while True:
        before = sum(kept)
        for i, (_, statement, bound, read) in enumerate(found):
            said = isinstance(statement, ast.Expr)  # a call of a module's function changes nothing
            if not kept[i] and names & (bound - modules if said else bound):
                kept[i] = True
                names |= read
        if sum(kept) == before:
            return [row for row, keep in zip(found, kept, strict=True) if keep]

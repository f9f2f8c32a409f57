"""A chapter's keeper and the library's function of the same name, compared as syntax trees."""

import ast
import copy
import difflib
import io
import re
import tokenize
from functools import cache

from tests.chapters.pages import NAMES, code_cells, tags, written
from tools.chapters import ROOT, page

LIBRARY = ROOT / "src" / "tutorial_lib"
LONGEST_KEEPER = 12  # lines
AGREE = "give its cell the tag keeper, or correct the docstring"
CHECK = re.compile(r"(checked|require(_\w+)?)$")
BUILT_IN = re.compile(r"\bBuilt in chapter (\d\d)\b")


@cache
def library():
    """Return the functions at the top level of the library's files, by name."""
    functions = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    return functions


def reduced(function):
    """Return a function's tree without docstring, annotations, checks and their decorators."""
    function = copy.deepcopy(function)
    if ast.get_docstring(function, clean=False) is not None:
        function.body = function.body[1:]
    function.body = [node for node in function.body if not _is_check(node)] or [ast.Pass()]
    decorators = function.decorator_list
    function.decorator_list = [node for node in decorators if not _has_name_of_check(node)]
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return _Unannotated().visit(function)


class _Unannotated(ast.NodeTransformer):
    def visit_AnnAssign(self, node):
        """Turn `x: int = 1` into `x = 1`."""
        return ast.Assign([node.target], node.value, lineno=0) if node.value else None


def _is_check(node):
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and _has_name_of_check(call.func)


def _has_name_of_check(node):
    return isinstance(node, ast.Name) and bool(CHECK.match(node.id))


def difference(in_cell, in_library):
    """Return a unified diff of two functions, reduced; empty when their trees are equal."""
    in_cell, in_library = reduced(in_cell), reduced(in_library)
    if ast.dump(in_cell) == ast.dump(in_library):
        return ""
    lines = [ast.unparse(tree).splitlines() for tree in (in_library, in_cell)]
    return "\n".join(difflib.unified_diff(*lines, "library", "chapter", lineterm="", n=1))


def keeper_faults(name, notebook):
    """List what is wrong with the cells of a chapter that are tagged `keeper`."""
    found = []
    for cell in keeper_cells(notebook):
        found += [f"cell {cell.id}: {fault}" for fault in _cell_faults(cell.source)]
    built = sorted(keepers(notebook))
    claimed = sorted(function for function, n in claims().items() if n == page(name).number)
    if built != claimed:
        found.append(f"its keepers are {built}, by docstrings of the library {claimed}: {AGREE}")
    return found


def keeper_cells(notebook):
    """Return the cells that are tagged `keeper`."""
    return [cell for cell in code_cells(notebook) if "keeper" in tags(cell)]


def keepers(notebook):
    """Return the names of the functions that a chapter builds for later ones."""
    nodes = [node for cell in keeper_cells(notebook) for node in ast.parse(cell.source).body]
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)]


@cache
def homes():
    """Return, for each keeper, the chapter that builds it."""
    return {keeper: name for name in NAMES for keeper in keepers(written(name))}


def _cell_faults(source):
    body = ast.parse(source).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        yield "a keeper is one function, alone in its cell: move what else is there"
        return
    if len(source.strip().splitlines()) > LONGEST_KEEPER:
        yield f"a keeper has at most {LONGEST_KEEPER} lines: split it"
    twins = library().get(body[0].name, [])
    if len(twins) != 1:
        yield f"the library has {len(twins)} functions {body[0].name}: make it one, as in the cell"
    elif diff := difference(body[0], twins[0]):
        yield f"differs from the library, which is right: write its lines (-) in the cell\n{diff}"


def rival_definitions(name, notebook):
    """List the places where a chapter gives a keeper's name another meaning.

    Before its chapter the name is a word like others, such as `block`: a variable may have it.
    """
    found, known = [], NAMES[: NAMES.index(name) + 1]
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            for bound in _names_bound(node):
                home = homes().get(bound)
                free = isinstance(node, ast.Name) and home not in known
                if home and not free and not (home == name and "keeper" in tags(cell)):
                    found.append(
                        f"cell {cell.id} defines {bound}, a keeper of {home}: name it otherwise"
                    )
    return found


def _names_bound(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def import_faults(name, notebook):
    """List the imports of keepers that do not say in which chapter they were built."""
    found = []
    for cell in code_cells(notebook):
        comments = _comments(cell.source)
        for node in ast.walk(ast.parse(cell.source)):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            for alias in node.names:
                home = homes().get(alias.name)
                if not node.module.startswith("tutorial_lib") or home is None:
                    continue
                built = f"chapter {page(home).number:02}"
                if home == name:
                    found.append(f"cell {cell.id}: remove the import of {alias.name}, built here")
                elif built not in comments.get(alias.lineno, ""):
                    found.append(f"cell {cell.id}: write # built in {built} behind {alias.name}")
    return found


def _comments(source):
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


@cache
def claims():
    """Return, for each library function, the chapter that its docstring says it was built in."""
    found = {}
    for name, functions in library().items():
        if match := BUILT_IN.search(ast.get_docstring(functions[0]) or ""):
            found[name] = int(match[1])
    return found

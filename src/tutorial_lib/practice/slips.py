"""Slips of one token in a function: an operator, a number, an axis, a condition, a name."""

import ast
import inspect
import itertools
import textwrap

from tutorial_lib.practice.mistake import Mistake

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Pow: ast.Mult,
}
CALLED = {
    "max": "min",
    "min": "max",
    "sum": "mean",
    "mean": "sum",
    "tril": "triu",
    "triu": "tril",
    "maximum": "minimum",
    "minimum": "maximum",
    "sin": "cos",
    "cos": "sin",
    "any": "all",
    "all": "any",
    "argmax": "argmin",
    "cumsum": "cumprod",
    "exp": "exp2",
    "log": "log2",
}


def slips(right):
    """Yield (what was changed, the wrong function) for each slip of a function.

    Parameters
    ----------
    right : function whose source can be read; what it requires of its input is left out
    """
    for number in itertools.count():
        tree = ast.parse(textwrap.dedent(inspect.getsource(right)))
        function = tree.body[0]
        function.decorator_list = []
        found = list(itertools.islice(_sites(function), number, number + 1))
        if not found:
            return
        node, change = found[0]
        before = ast.unparse(node)
        new = change(node)
        tree = _Put(node, new).visit(tree)
        what = f"{number}: {before} → {ast.unparse(new)}"
        scope = dict(Mistake("", "", "").of(right).__globals__)
        exec(compile(ast.fix_missing_locations(tree), f"<slip {number}>", "exec"), scope)
        yield what, scope[function.name]


class _Put(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        """Return the new node for the old one."""
        return self.new if node is self.old else self.generic_visit(node)


def _sites(function):
    """Yield (node, change) for each place where one token may be another."""
    for node in _below(function):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
            yield node, lambda n: ast.Compare(n.left, [COMPARED[type(n.ops[0])]()], n.comparators)
        if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            yield node, lambda n: ast.BinOp(n.left, COMPUTED[type(n.op)](), n.right)
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            yield node, lambda n: ast.Constant(not n.value)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, lambda n: ast.Constant(n.value + 1)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
            yield node, lambda n: n.operand
        if isinstance(node, ast.BoolOp):
            yield node, lambda n: ast.BoolOp(_other(n.op), n.values)
        if isinstance(node, ast.IfExp):
            yield node, lambda n: ast.IfExp(n.test, n.orelse, n.body)
        if isinstance(node, ast.Attribute) and node.attr in CALLED:
            yield node, lambda n: ast.Attribute(n.value, CALLED[n.attr], n.ctx)


def _other(op):
    return ast.Or() if isinstance(op, ast.And) else ast.And()


def _below(function):
    """Walk the statements of a function, without its docstring and what it requires."""
    for statement in function.body:
        called = ast.unparse(statement)
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not called.startswith("require_"):
            yield from ast.walk(statement)

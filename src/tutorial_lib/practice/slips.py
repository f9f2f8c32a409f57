"""Slips in a function: one token that is another, or something that is left out or exchanged.

A check tells a reader's value by the slip that gives it, where no other kind of difference holds;
a test hands every slip of a token to its check, and asks that none is taken for right.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tutorial_lib.practice.mistake import apply_edits

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq}
COMPUTED = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Div),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
PAIRS = (
    ("max", "min"),
    ("sum", "mean"),
    ("tril", "triu"),
    ("maximum", "minimum"),
    ("sin", "cos"),
    ("any", "all"),
    ("argmax", "argmin"),
    ("floor", "ceil"),
)
CALLED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
CALLED |= {"cumsum": "cumprod", "exp": "exp2", "log": "log2", "repeat": "tile"}
LONGEST = 60  # letters of a piece of code that is shown


@dataclass(frozen=True)
class Mutant:
    """What stands in place of what, in words, and the wrong function."""

    says: str
    function: Callable


def one_token_mutants(function):
    """Yield the slips of one token in a function; the wrong ones require nothing of their input."""
    return _mutants(function, _token_replacements)


def omission_mutants(function):
    """Yield the slips in which a term, a step or an option is left out, or two are exchanged."""
    return _mutants(function, _omission_replacements)


def _mutants(right, replacements_of):
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(right)))
    scope = apply_edits(right, ()).__globals__
    for number in range(len(list(_node_replacements(ast.parse(source).body[0], replacements_of)))):
        tree = ast.parse(source)
        function = tree.body[0]
        function.decorator_list = []
        node, new = list(_node_replacements(function, replacements_of))[number]
        says = f"`{ast.unparse(new)}` in place of `{ast.unparse(node)}`"
        if around := next(
            (text for text in _enclosing_expressions(function, node) if len(text) <= LONGEST), ""
        ):
            says += f" in `{around}`"
        tree = ast.fix_missing_locations(_ReplaceNode(node, new).visit(tree))
        space = dict(scope)
        with suppress(SyntaxError):  # nobody can make this slip
            exec(compile(tree, f"<slip {number} of {function.name}>", "exec"), space)
        if space.get(function.name) is not scope.get(function.name):
            yield Mutant(says, space[function.name])


class _ReplaceNode(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        """Return the new node for the old one."""
        return self.new if node is self.old else self.generic_visit(node)


def _enclosing_expressions(function, node):
    """Yield the texts of the expressions that hold a node, the smallest first."""
    holding = [
        other
        for other in ast.walk(function)
        if isinstance(other, ast.expr) and other is not node and node in ast.walk(other)
    ]
    return sorted(map(ast.unparse, holding), key=len)


def _node_replacements(function, replacements_of):
    """Yield (node, the node in its place) for each expression that may be another."""
    names = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    for node in _nodes_to_mutate(function):
        for new in replacements_of(node, names):
            yield node, new


def _omission_replacements(node, parameters):
    match node:
        case ast.BinOp():
            yield node.left
            yield node.right
        case ast.Call(args=[ast.expr() as one, ast.expr() as other]):
            yield ast.Call(node.func, [other, one], node.keywords)
            yield one
        case ast.Call(args=[ast.expr() as one]):
            yield one
        case ast.Name(ctx=ast.Load()) if node.id in parameters:
            for name in parameters:
                if name != node.id:
                    yield ast.Name(name, ast.Load())
        case ast.Subscript(slice=ast.Tuple()):
            reverse = ast.Tuple(node.slice.elts[::-1], ast.Load())
            yield ast.Subscript(node.value, reverse, node.ctx)
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            yield ast.Constant(-node.value)
    if isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :])


def _token_replacements(node, parameters):
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            yield ast.Compare(node.left, [COMPARED[type(op)]()], node.comparators)
        case ast.BinOp() if type(node.op) in COMPUTED:
            for other in COMPUTED[type(node.op)]:
                yield ast.BinOp(node.left, other(), node.right)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield node.operand
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Attribute() if node.attr in CALLED:
            yield ast.Attribute(node.value, CALLED[node.attr], node.ctx)


def _nodes_to_mutate(function):
    """Walk the statements of a function, without its docstring and what it requires."""
    for statement in function.body:
        called = ast.unparse(statement)
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not called.startswith(("require(", "require_")):
            yield from ast.walk(statement)

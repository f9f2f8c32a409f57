"""Shape comments in cells, such as `# (H, T, d_k)`: each is compared with the array of its line.

A symbol has one size in a cell, or in one call of a function: that of the int of its name, or else
the first that a comment meets, unless the code uses `params`, `X`, `Q`, `K` or `V`, which have it.
A lone `d` is the width of whatever its line is about. `each` is about the parts of a list or array.
"""

import ast
import re
import tokenize
from io import StringIO

import numpy as np

AXIS = r"(?:\.\.\.|\d+|[A-Za-z][\w ]*(?: ?[*/+] ?\w+)*)"
GROUP = re.compile(rf"(?<!\w)\(({AXIS}(?:, {AXIS})+|{AXIS},)\)")
NAMED = re.compile(r"(\w+(?:, \w+)*)(?::| is)? $")
EACH = re.compile(r"\beach \(|\) each\b")
OF_PARAMS = {"d_model": "d_model", "d_k": "d_k", "d_v": "d_v", "H": "n_heads"}
OF_ARRAYS = {
    "X": ("T", "d_model"),
    "Q": ("H", "T", "d_k"),
    "K": ("H", "S", "d_k"),
    "V": ("H", "S", "d_v"),
}
STATEMENTS = ast.Assign, ast.Expr, ast.Return, ast.FunctionDef
EXPRESSIONS = ast.Attribute, ast.Call, ast.Subscript, ast.BinOp
# In parentheses, but no shape of an array, or of none that a stored run has at this line.
OTHER = {
    "07-73": "(T, d_model)",  # behind MEASURE
    "08-21": "(1, 6, 12) for (6, 12)",  # a tuple of lengths
    "12-21": "of any array (..., T, width)",  # an index
    "20-26-d": "(16, 10): by pair of heads and by task",  # a list, still empty
    "22-71": "of each model (5, 4) of layer 0 and of layer 1",  # a list, still empty
    "23-45": "such as {7: (True, 32)}",  # a value of a dictionary
}
COMPARE, SIZES = "_compare_shapes", "_sizes"


class Comparisons(ast.NodeTransformer):
    """Insert comparisons into the code of a cell; `comments` are its shape comments, by line."""

    def __init__(self, cell):
        self.cell, self.comments, self.own, self.used = cell.id, {}, set(), set()
        for token in tokenize.generate_tokens(StringIO(cell.source).readline):
            is_shape = token.type == tokenize.COMMENT and GROUP.search(token.string)
            if is_shape and token.string.lstrip("# ") != OTHER.get(cell.id):
                self.comments[token.start[0]] = token.string
                if token.line.lstrip().startswith("#"):
                    self.own.add(token.start[0])

    def _line(self, node):
        """Return the line of the comment that a node is the first to have, or None."""
        if isinstance(node, ast.FunctionDef):
            lines = range(node.lineno, node.body[0].lineno)
        else:
            lines = [*{node.lineno - 1} & self.own, node.lineno, node.end_lineno]
        found = [line for line in lines if line in self.comments and line not in self.used][:1]
        self.used.update(found)
        return found[0] if found else None

    def visit(self, node):
        """Compare what a statement binds, returns or appends, or an expression within a line."""
        within = isinstance(node, EXPRESSIONS) and node.lineno == node.end_lineno
        line = self._line(node) if within or isinstance(node, STATEMENTS) else None
        node = self.generic_visit(node)
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
            is_about_all = line and re.search(r"\beach\b|\w:? (is )?\(", self.comments[line])
            compared = [self._bound(names if is_about_all else names[:1], line)] if line else []
            node.body = [*ast.parse(f"{SIZES} = {{}}").body, *compared, *node.body]
        elif isinstance(node, ast.Assign) and line:
            self._operands(node.value, line)
            targets = getattr(node.targets[0], "elts", node.targets)
            return [node, self._bound([ast.unparse(name) for name in targets], line)]
        elif isinstance(node, ast.Expr) and line and getattr(node.value, "args", None):
            node.value.args[-1] = self._wrapped(node.value.args[-1], line)
        elif isinstance(node, ast.Return) and line:
            node.value = self._wrapped(node.value, line)
        elif within and line:
            return self._wrapped(node, line)
        return node

    def _bound(self, names, line, which=None):
        values = ", ".join(f"{name!r}: {name}" for name in names)
        place = self.cell, line
        arguments = f"{place}, {self.comments[line]!r}, {{{values}}}, {SIZES}, locals(), {which}"
        return ast.parse(f"{COMPARE}({arguments})").body[0]

    def _wrapped(self, node, line, which=None):
        if which is None:
            self._operands(node, line)
        call = self._bound([], line, which).value
        call.args[2] = ast.Dict([ast.Constant("")], [node])
        return call

    def _operands(self, node, line):
        if ") @ (" in self.comments[line]:
            node.left = self._wrapped(node.left, line, 0)
            node.right = self._wrapped(node.right, line, 1)


class Comparer:
    """Compare arrays with comments; `names` tell which names a cell only reads."""

    def __init__(self):
        self.names, self.faults, self.met = {}, {}, set()

    def __call__(self, place, comment, values, sizes, scope, which):
        """Compare the values of a line; return the last of them."""
        self.met.add(place)
        is_read = self.names[place[0]]
        known = {
            name: value
            for name, value in scope.items()
            if is_read.get(name, False) or (name in is_read and isinstance(value, int))
        }
        for promised, value in promises(comment, values, which):
            shape = tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
            if not fits(promised, shape, sizes, known):
                self.faults.setdefault(place, f"{comment}: ({promised}) is {shape} {sizes}")
        return list(values.values())[-1]


def promises(comment, values, which):
    """Yield each promised shape with the value that it is about.

    Parameters
    ----------
    which : of a product, the operand that is asked for, or None
    """
    groups = list(GROUP.finditer(comment))
    if ") @ (" in comment:
        groups = groups[2:] if which is None else groups[which : which + 1]
    named = {name: group for group in groups for name in _names(comment, group) if name in values}
    if not named and len(groups) == len(values):
        named = dict(zip(values, groups, strict=True))
    for name, group in (named or dict.fromkeys(values, *groups[:1])).items():
        value = values[name]
        parts = value.values() if isinstance(value, dict) else value
        is_each = EACH.search(comment) and len(values) == 1
        yield from ((group[1], part) for part in (parts if is_each else [value]) if group)


def _names(comment, group):
    found = NAMED.search(comment[: group.start()])
    return re.findall(r"\w+", found[1]) if found else []


def fits(promised, shape, sizes, scope):
    """Return whether a shape is the promised one, and give new symbols their sizes."""
    axes = [axis.strip() for axis in promised.split(",") if axis]
    if "..." in axes:
        at = axes.index("...")
        rest = len(axes) - 1 - at
        axes = axes[:at] + axes[at + 1 :]
        shape = shape[:at] + shape[max(len(shape) - rest, at) :]
    pairs = zip(axes, shape, strict=False)
    return len(axes) == len(shape) and all(_axis(*pair, sizes, scope) for pair in pairs)


def _axis(axis, size, sizes, scope):
    if " or " in axis:
        return any(_axis(part, size, sizes, scope) for part in axis.split(" or "))
    if not re.search("[*/+]", axis):
        return axis == "d" or (_size(axis, sizes, scope) or sizes.setdefault(axis, size)) == size
    known = {name: _size(name, sizes, scope) for name in re.findall(r"[A-Za-z]\w*", axis)}
    return None in known.values() or eval(axis, known) == size


def _size(name, sizes, scope):
    if name.isdigit():
        return int(name)
    example = scope.get("example")
    params = scope.get("params", getattr(example, "params", None))
    found = [scope.get(name), sizes.get(name), getattr(params, OF_PARAMS.get(name, ""), None)]
    for array, axes in OF_ARRAYS.items():
        shape = getattr(scope.get(array, getattr(example, array, None)), "shape", ())
        sizes_of_axes = dict(zip(axes[::-1], shape[::-1], strict=False))
        found.append(sizes_of_axes.get(name))
    return next((size for size in found if isinstance(size, int | np.integer)), None)

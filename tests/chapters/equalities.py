"""The equalities of numbers in a text: each is found, read and evaluated.

`6/7 + 4/13 = 106/91`, `$\\sqrt 4 = 2$`, `(1, 2) + (3, 5) = (4, 7)` and
`(T, d_k) @ (d_k, S) = (T, S)` are equalities; `d_k = 4` names a number and is none. Numbers are
fractions, so that = means equal; beside a decimal, or after ≈, it means equal once rounded. A
formula with the same symbols on both sides holds for numbers in their place, after ≈ for small
ones; one whose symbols have been given numbers before, as in x = (1, 2), holds for these.
"""

import ast
import math
import operator
import re
from fractions import Fraction
from itertools import zip_longest

import numpy as np

RELATION = re.compile(r"(?<![<>=!:+*/-])=(?!=)|≈")
WORDS = ("sqrt", "ln", "log2", "exp", "inf")
TOKEN = re.compile(
    rf"\s*(?:\d[\d,]*\d(?:\.\d+)?|\d*\.?\d+|{'|'.join(WORDS)}|\*\*|//|[-+*/@(),\[\]])"
)
SYMBOL = r"[A-Za-zα-ωΑ-Ω](?:_\w+)?(?![A-Za-z])|[A-Za-z]\w*_\w|\.\.\.|[_^{}\\'\"`%|]"
GLUED_BEFORE = re.compile(
    rf"(?:[\w)\]}}'\"`=<>^_%…]|[-+*/@(\[^]\s*)$|(?<![A-Za-z])(?:{SYMBOL})\s*$"
)
GLUED_AFTER = re.compile(rf"\s*(?:[-+*/@^(\[{{%<>≤≥…]|(?:{SYMBOL}))|\w|\.\d")
SHAPE = r"\(((?:\.\.\.|[A-Za-z]\w*(?:\*\w+)?|\d+)(?:,\s*(?:\.\.\.|[\w*]+))+)\)"
SHAPES = re.compile(rf"(?=\([^=]*[A-Za-z.]){SHAPE}\s*@\s*{SHAPE}\s*=\s*{SHAPE}")

MEND = "write both sides as sums, products, fractions, powers or roots of numbers"
PARTS = {"½": "(1/2)", "⅓": "(1/3)", "⅔": "(2/3)", "¼": "(1/4)", "¾": "(3/4)"}
GROUP = r"\{([^{}]*)\}"
LATEX = [
    (r"\\(?:left|right|big|Big|displaystyle)(?![a-zA-Z])|\\[,;!:]|&|~", " "),
    (r"\\(?:begin|end)\{(?:aligned|align\*?|gathered)\}|\\q?quad", " ; "),
    (r"\\(?:text|mathrm|operatorname)\{[^{}]*\}", " symbol_x "),
    (r"\\[td]?frac\s*(\d)\s*(\d)(?!\d)", r"((\1)/(\2))"),
    (rf"\\[td]?frac\s*{GROUP}\s*{GROUP}", r"((\1)/(\2))"),
    (rf"\\sqrt\s*{GROUP}", r"sqrt(\1)"),
    (r"(?:\\sqrt|√)\s*(\d+)", r"sqrt(\1)"),
    (r"√\s*\(", "sqrt("),
    (r"\\infty(?![a-zA-Z])|∞", "inf"),
    (rf"(?<![A-Za-z\\_])e\s*\^\s*{GROUP}", r"exp(\1)"),
    (r"(?<![A-Za-z\\_])e\s*\^\s*(\w)", r"exp(\1)"),
    (rf"\^\s*{GROUP}(?!\w)", r"**(\1)"),
    (r"\\ln\s*(\d+)|\bln\s+(\d+)", r"ln(\1\2)"),
    (rf"(\d|\))\s*\^\s*{GROUP}", r"\1**(\2)"),
    (r"(\d|\))\s*\^\s*(-?\d+)", r"\1**(\2)"),
    (r"\\(?:cdot|times)(?![a-zA-Z])|[·×]", "*"),
    (r"\\approx(?![a-zA-Z])", "≈"),
    (r"[−–](?=\s*[\d(.√½])", "-"),
    (r"\$|\*\*(?!\()", " "),
]
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
MATRIX = re.compile(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", re.DOTALL)
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv,
}
FUNCTIONS = {"sqrt": math.sqrt, "ln": math.log, "log2": math.log2, "exp": math.exp}
FUNCTIONS |= {"inf": math.inf}


class Unreadable(Exception):
    """What stands on one side of an equality is not a number of ours."""


def false_equalities(text):
    """Return a sentence for each equality of a text that does not hold, or cannot be read."""
    found = [fault for match in SHAPES.finditer(text) if (fault := _shapes(match))]
    found += [_said(sides) for sides in formulas(text) if not _is_identity(*sides)]
    for left, relation, right in equalities(text):
        said = f"{left} {relation} {right}"
        try:
            if not holds(left, right, rounded=relation == "≈"):
                found.append(f"{said} does not hold: write what is equal")
        except Unreadable:
            found.append(f"{said} cannot be read: {MEND}")
    return found


def equalities(text):
    """Return (left, = or ≈, right) for each equality of numbers in a text."""
    plain, found = as_python(text), []
    for match in RELATION.finditer(plain):
        right = _after(plain[match.end() :])
        left = right and (_before(plain[: match.start()]) or _garbled(plain[: match.start()]))
        if left:
            found.append((left, match[0], right))
    return found


FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
GREEK = r"(?:var)?(?:alpha|beta|gamma|delta|epsilon|lambda|mu|sigma|theta)"
SIGN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|inf)|(?P<function>sqrt|ln|exp)(?=\()|(?P<power>\*\*|\^)"
    rf"|(?P<name>(?:\\{GREEK}|[A-Za-z])(?:_(?:\w|\{{\w+\}}))?)|(?P<sign>[-+*/@(),\[\]]))"
)
DRAWS = ((0.7, 1.9, 0.4), (1.3, 0.6, 2.2))


def formulas(text):
    """Return (left, = or ≈, right, what symbols stand for) of each formula with symbols."""
    found, given = [], {}
    for formula in FORMULA.finditer(text):
        lines = re.split(r";|symbol_x|[<>]|\n\s*\n", as_python(formula[1] or formula[2]))
        for line in lines:
            parts = re.split(rf"({RELATION.pattern})", line.strip().rstrip(".,"))
            sides = [_with_symbols(part.strip().lstrip("@")) for part in parts[::2]]
            for left, relation, right in zip(sides, parts[1::2], sides[1:], strict=False):
                if left and right:
                    found.append((left, relation, right, dict(given)))
                    given |= _given(left, right)
    return found


def _with_symbols(text):
    """Return an expression of numbers and symbols in Python, products spelled out, or None."""
    signs, at = [], 0
    while match := SIGN.match(text, at):
        kind, sign, at = match.lastgroup, match[match.lastgroup], match.end()
        operand = kind in ("number", "function", "name") or sign in "(["
        if signs and operand and (signs[-1][0] in ("number", "name") or signs[-1][1] in ")]"):
            signs.append(("sign", "@" if sign in "([" and signs[-1][1] in ")]" else "*"))
        signs.append((kind, re.sub(r"[\\{}]", "", "**" if kind == "power" else sign)))
    expression = "".join(sign for _, sign in signs)
    return None if text[at:].strip() or not _parses(expression) else expression


def _parses(expression):
    try:
        body = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return False
    return not isinstance(body, ast.Tuple) or expression[:1] == "("


def _names(expression):
    nodes = ast.walk(ast.parse(expression, mode="eval"))
    return {node.id for node in nodes if isinstance(node, ast.Name)} - set(WORDS)


def _given(left, right):
    """Return the number, row or matrix that a formula gives its symbol."""
    if left.isidentifier() and not _names(right):
        return {left: np.array(eval(right, dict(FUNCTIONS)), dtype=float)}
    return {}


def _is_identity(left, relation, right, given):
    """Whether both sides agree; True where nothing can be put in for their symbols."""
    names = sorted(_names(left) | _names(right))
    if not names or left.isidentifier() or right.isidentifier():
        return True
    if set(names) <= set(given):
        return np.allclose(*(_put_in(side, given) for side in (left, right)))
    shared = _names(left) & _names(right)
    if not shared or shared not in (_names(left), _names(right)):
        return True
    small = 1e-4 if relation == "≈" else 1
    for draw in DRAWS:
        values = {n: small * draw[i % 3] * (1 + i // 3) for i, n in enumerate(names)}
        if not np.allclose(*(_put_in(side, values) for side in (left, right)), rtol=1e-7):
            return False
    return True


def _put_in(side, values):
    """Return the value of a side; the product of two rows or matrices is one of matrices."""
    tree = ast.parse(side, mode="eval")
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and np.ndim(values.get(getattr(node.right, "id", None), 0)) == 2
        ):
            node.op = ast.MatMult()
    return eval(compile(tree, "formula", "eval"), {**FUNCTIONS, **values})


def _said(sides):
    return f"{sides[0]} {sides[1]} {sides[2]} does not hold: write what is equal"


def as_python(text):
    """Return a text with its formulas in the signs of Python."""
    text = MATRIX.sub(_matrix, text.replace("{,}", ","))
    text = re.sub(r"(?<=[\d)])([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)", _power, text)
    for part, fraction in PARTS.items():
        text = re.sub(rf"(\d*){part}", lambda m, f=fraction: _mixed(m[1], f), text)
    for _ in range(2):  # a fraction within a fraction
        for pattern, replacement in LATEX:
            text = re.sub(pattern, replacement, text)
    text = text.replace("\\\\", " ; ")
    return re.sub(r"(?<=[\d)])\s*(?=\((?!\s*\.\.\.))", "*", text).replace("*@", "@")


def _power(match):
    return f"**({match[1].translate(SUPERSCRIPTS)})"


def _mixed(whole, fraction):
    return f"({whole}+{fraction})" if whole else fraction


def _matrix(match):
    rows = [f"[{row.strip().replace('&', ',')}]" for row in match[1].split("\\\\")]
    return f"@[{','.join(rows)}]"


def _before(text):
    """Return the expression of numbers that ends a text, or None."""
    spots = [
        m.start() for m in re.finditer(r"(?<![\w.])[\d(\[.]|\b(?:sqrt|ln|exp|log2)\(|-|\binf", text)
    ]
    for start in sorted(spots[-60:]):
        whole = text[start:].strip()
        if _reads(whole) and not GLUED_BEFORE.search(text[:start][-40:]):
            return whole
    return None


def _garbled(text):
    """Return signs and numbers, no symbol, that end a text and are no expression, or None."""
    match = re.search(r"(?:^|[\s:;])([\d(][\d\s.,+*/()@^√-]*)$", text)
    if match and re.search(r"\d.*[-+*/@^√]", match[1]):
        return None if GLUED_BEFORE.search(text[: match.start(1)][-40:]) else match[1].strip()
    return None


def _after(text):
    """Return the expression of numbers that begins a text, or None."""
    ends, at = [], 0
    while token := TOKEN.match(text, at):
        at = token.end()
        ends.append(at)
    for end in reversed(ends):
        if _reads(text[:end].strip()):
            return None if GLUED_AFTER.match(text[end:]) else text[:end].strip()
    return None


def _reads(expression):
    """Whether an expression is one of numbers: no symbol, no comma outside brackets."""
    rest = TOKEN.sub("", expression)
    if rest.strip() or not re.search(r"\d|inf", expression):
        return False
    try:
        body = ast.parse(_without_commas(expression), mode="eval").body
    except SyntaxError:
        return False
    return not isinstance(body, ast.Tuple) or (expression[0], expression[-1]) == ("(", ")")


def _without_commas(expression):
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", expression)


def holds(left, right, *, rounded=False):
    """Whether two expressions are equal; beside a decimal, once rounded to its places.

    Raises
    ------
    Unreadable : an expression that has no value
    """
    try:
        values = [np.asarray(_value(side), dtype=object) for side in (left, right)]
        if values[0].shape != values[1].shape:
            return False
        slack = max(_slack(left), _slack(right)) if rounded else _slack(right) or _slack(left)
        pairs = zip(values[0].ravel(), values[1].ravel(), strict=True)
        return all(
            abs(a - b) <= slack + 1e-12 * abs(b) * isinstance(a + b, float) for a, b in pairs
        )
    except (
        SyntaxError,
        ValueError,
        TypeError,
        ZeroDivisionError,
        KeyError,
        AttributeError,
    ) as error:
        raise Unreadable(str(error)) from None


def _slack(expression):
    """Return half the last place of an expression that is one decimal, and 0 of any other."""
    match = re.fullmatch(r"-?\d*\.(\d+)", expression)
    return Fraction(1, 2 * 10 ** len(match[1])) if match else 0


def _value(expression):
    return _node(ast.parse(_without_commas(expression), mode="eval").body, expression)


def _node(node, text):
    if isinstance(node, ast.Constant):
        return Fraction(ast.get_source_segment(_without_commas(text), node))
    if isinstance(node, ast.Name):
        return FUNCTIONS[node.id]
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_node(part, text) for part in node.elts)
    if isinstance(node, ast.UnaryOp):
        value = _node(node.operand, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        return FUNCTIONS[node.func.id](*(_node(part, text) for part in node.args))
    left, right = _node(node.left, text), _node(node.right, text)
    if isinstance(node.op, ast.MatMult):
        return _product(left, right)
    if isinstance(left, tuple) or isinstance(right, tuple):
        left, right = np.asarray(left, dtype=object), np.asarray(right, dtype=object)
        return tuple(OPERATORS[type(node.op)](left, right))
    return OPERATORS[type(node.op)](left, right)


def _product(left, right):
    """Return a vector times a matrix, or the shape that two shapes multiply to."""
    if isinstance(right[0], tuple):
        return tuple(np.asarray(left, dtype=object) @ np.asarray(right, dtype=object))
    found = _multiplied(*([str(length) for length in shape] for shape in (left, right)))
    return found and tuple(map(Fraction, found))


def _shapes(match):
    left, right, product = ([part.strip() for part in match[n].split(",")] for n in (1, 2, 3))
    if _multiplied(left, right) != product:
        return f"{match[0]} does not hold: the inner lengths must agree, the outer ones remain"
    return None


def _multiplied(left, right):
    """Return the shape that two shapes, lists of words, multiply to, or None."""
    if min(len(left), len(right)) < 2 or left[-1] != right[-2]:
        return None
    batch = zip_longest(reversed(left[:-2]), reversed(right[:-2]), fillvalue="1")
    merged = [b if a == "1" else a for a, b in batch if a == b or "1" in (a, b)]
    return [*reversed(merged), left[-2], right[-1]]

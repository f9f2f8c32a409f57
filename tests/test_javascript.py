"""The scripts keep the rules of the Python: short functions, few parameters, names, comments."""

import re
from pathlib import Path

import pytest
import tree_sitter_javascript
from tree_sitter import Language, Parser

from tutorial_lib.elements.sources import FOLDER

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for folder in ("src", "book", "tools") for path in (ROOT / folder).rglob("*.js")
)
OF_ELEMENTS = sorted(FOLDER.rglob("*.js"))
MOST_LINES, MOST_PARAMETERS, MOST_COLUMNS = 40, 5, 100
PARSER = Parser(Language(tree_sitter_javascript.language()))
FUNCTIONS = {
    *("arrow_function", "function_declaration", "function_expression", "method_definition"),
    *("generator_function", "generator_function_declaration"),
}
# Where names are given, and under which field.
NAMING = {
    **dict.fromkeys(FUNCTIONS, ("name", "parameter", "parameters")),
    **dict.fromkeys(["variable_declarator", "class_declaration"], ("name",)),
    "field_definition": ("property",),
    "catch_clause": ("parameter",),
    "for_in_statement": ("left",),
}
# camelCase, or capitals: a constant, or an array by its letters, such as W_Q.
NAME = re.compile(r"_|[a-z][a-zA-Z0-9]*|[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
CLASS_NAME = re.compile(r"[A-Z][a-zA-Z0-9]*")


def parse(source):
    """Return the syntax tree of a script."""
    return PARSER.parse(source.encode()).root_node


def tree(path):
    """Return the syntax tree of a file."""
    return parse(path.read_text(encoding="utf-8"))


def below(node):
    """Yield a node and all that it holds."""
    yield node
    for child in node.children:
        yield from below(child)


def text(node):
    """Return what a node says in the source."""
    return node.text.decode()


def line(node):
    """Return the line on which a node begins, counted from 1."""
    return node.start_point[0] + 1


def bound(node):
    """Yield the names that a pattern gives, such as `a` and `b` in `{ a, c: [b] }`."""
    if node.type in ("identifier", "property_identifier", "shorthand_property_identifier_pattern"):
        yield node
    elif node.type == "pair_pattern":
        yield from bound(node.child_by_field_name("value"))
    elif node.type in ("assignment_pattern", "object_assignment_pattern"):
        yield from bound(node.child_by_field_name("left"))
    elif node.type.endswith("_pattern") or node.type == "formal_parameters":
        for child in node.named_children:
            yield from bound(child)


def given(root):
    """Yield (the node that names, the name's node) for every name in a script."""
    for node in below(root):
        fields = map(node.child_by_field_name, NAMING.get(node.type, ()))
        yield from ((node, name) for field in fields if field for name in bound(field))


def shape(root):
    """Yield (line, fault) for what does not parse, and for functions of too much."""
    for node in below(root):
        if node.is_error or node.is_missing:
            loose = [child for child in node.children if not child.is_named]
            yield line((loose or [node])[0]), "a syntax error"
        if node.type in FUNCTIONS:
            lines = node.end_point[0] - node.start_point[0] + 1
            if lines > MOST_LINES:
                yield line(node), f"a function of {lines} lines, more than {MOST_LINES}"
        if node.type == "formal_parameters" and len(node.named_children) > MOST_PARAMETERS:
            count = len(node.named_children)
            yield line(node), f"a function of {count} parameters, more than {MOST_PARAMETERS}"


def naming(root):
    """Yield (line, fault) for names in another form than the rest."""
    for node, name in given(root):
        form = CLASS_NAME if node.type == "class_declaration" else NAME
        if not form.fullmatch(text(name)):
            yield line(name), f"the name {text(name)}; write camelCase, or CAPITALS for a constant"


def commenting(root):
    """Yield (line, fault) for comments that are missing."""
    ends = {node.end_point[0] + 1 for node in below(root) if node.type == "comment"}
    if root.children and (root.children[0].type != "comment" or line(root.children[0]) > 1):
        yield 1, "no comment that says what the file is for"
    for node in root.children:
        if node.type == "export_statement" and line(node) - 1 not in ends:
            yield line(node), "an exported name without a comment above it"


def faults(source):
    """List what is wrong in a script, each with its line."""
    root = parse(source)
    wide = [i for i, row in enumerate(source.splitlines(), 1) if len(row) > MOST_COLUMNS]
    found = [*shape(root), *naming(root), *commenting(root)]
    found += [(number, f"more than {MOST_COLUMNS} columns") for number in wide]
    return [f"{number}: {fault}" for number, fault in sorted(found)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_script_keeps_the_rules(path):
    found = faults(path.read_text(encoding="utf-8"))
    assert not found, "\n".join(f"{path.relative_to(ROOT)}:{fault}" for fault in found)


def at_the_top(root, *, exported=False):
    """Return the names that a script gives outside of every function, or those it exports."""
    found = []
    for node in root.children:
        declaration = node.child_by_field_name("declaration") or node
        if exported and node.type != "export_statement":
            continue
        for part in (declaration, *declaration.named_children):
            if part.type in ("variable_declarator", "class_declaration"):
                found += map(text, bound(part.child_by_field_name("name")))
    return found


def imported(root):
    """Return {name: the file that a script imports it from}."""
    found = {}
    for node in (node for node in root.children if node.type == "import_statement"):
        source = text(node.child_by_field_name("source")).strip('"')
        names = (text(name) for name in below(node) if name.type == "import_specifier")
        found |= dict.fromkeys(names, source)
    return found


def misplaced(root, home, offered):
    """List the names that a script takes without importing them, or imports in vain.

    Parameters
    ----------
    root : its syntax tree
    home : its folder
    offered : {name: the file that exports it}
    """
    own = {text(name) for _, name in given(root)}
    rest = [node for top in root.children if top.type != "import_statement" for node in below(top)]
    used = {text(node) for node in rest if node.type == "identifier"}
    needs = {name: offered[name] for name in used - own if name in offered}
    has = {name: (home / source).resolve() for name, source in imported(root).items()}
    return sorted(name for name in needs.keys() | has.keys() if needs.get(name) != has.get(name))


@pytest.fixture(scope="module")
def offered():
    """The file that exports each name."""
    return {name: path for path in OF_ELEMENTS for name in at_the_top(tree(path), exported=True)}


@pytest.mark.parametrize("path", OF_ELEMENTS, ids=lambda path: path.stem)
def test_script_imports_what_it_uses(path, offered):
    assert misplaced(tree(path), path.parent, offered) == []


def test_no_two_scripts_of_elements_share_a_name():
    """The site has them all in one block."""
    names = [name for path in OF_ELEMENTS for name in at_the_top(tree(path))]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
    assert {"all", "layer", "Tables"} <= set(names)


LONG = "// A long function.\nconst f = () => {\n" + "  g();\n" * 39 + "};\n"
PLANTED = [
    (LONG, "2: a function of 41 lines, more than 40"),
    ("// Many.\nconst f = (a, b, c, { d }, [e], g = 1) => a;\n", "2: a function of 6 parameters"),
    ("// A name.\nconst last_row = 1;\n", "2: the name last_row; write camelCase"),
    ("const f = 1;\n", "1: no comment that says what the file is for"),
    ("// A file.\n\nexport const f = 1;\n", "3: an exported name without a comment"),
    ("// A file.\nf();\nconst a = ;\n", "3: a syntax error"),
    (f"// A file.\nf('{'a' * 96}');\n", "2: more than 100 columns"),
]


@pytest.mark.parametrize(("source", "expected"), PLANTED)
def test_a_script_that_breaks_a_rule_is_noticed(source, expected):
    [found] = faults(source)
    assert found.startswith(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import { all } from "./shared.js";\nall(x, "p");', []),
        ('import { all } from "../shared.js";\nall(x, "p");', ["all"]),
        ('import { all } from "./shared.js";\nf(x);', ["all"]),
    ],
)
def test_a_missing_and_a_vain_import_are_noticed(source, expected, offered):
    assert misplaced(parse(source), FOLDER, offered) == expected

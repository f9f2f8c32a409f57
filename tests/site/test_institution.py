"""The page for institutions: each test that it names is there, and axe asks what it says."""

import ast
import re

from tools.chapters import ROOT

NAME = "book/teaching_institution"
TEXT = (ROOT / f"{NAME}.md").read_text(encoding="utf-8")
EVIDENCE = re.findall(r'^\[(\w+)\]: \S+?/blob/main/(tests/\S+) "(\w+)"$', TEXT, re.MULTILINE)


def test_every_test_that_the_page_names_is_in_its_file():
    assert len(EVIDENCE) == len(re.findall(r"^\[\w+\]: ", TEXT, re.MULTILINE)) > 15
    for label, path, name in EVIDENCE:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
        assert name in functions, f"{path} has no {name}: correct the link [{label}] of {NAME}.md"
        assert f"[{label}]" in TEXT.partition(f"\n[{label}]: ")[0]


def test_axe_asks_the_levels_that_the_page_names(open_page, axe):
    named = set(re.findall(r"`(wcag\w+)`", TEXT))
    found = axe.run(open_page(f"{NAME}.html")).response
    assert found["violations"] == []
    kinds = ("passes", "incomplete", "inapplicable")
    asked = {tag for kind in kinds for rule in found[kind] for tag in rule["tags"]}
    levels = {tag for tag in asked if re.fullmatch(r"wcag2\d?a+", tag)}
    assert levels == named

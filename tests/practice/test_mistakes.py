"""Every named mistake is recognised: by its check, and by the check as a notebook calls it."""

import ast
import json
import re

import numpy as np
import pytest

from tests import oracle
from tests.chapters.pages import NAMES, written
from tests.chapters.twins import keepers
from tests.practice.rooms import ALL, MISTAKES, ROOMS, checked_in, ending, wrong
from tests.sampling import every
from tools.chapters import pages
from tutorial_lib import Params, causal_mask, checks, multi_head_attention
from tutorial_lib.practice.mistake import Mistake

SIX = [
    *("no_scale", "scale_heads", "width_by_division", "w_o_forgotten"),
    *("keys_from_x", "concat_without_transpose"),
]


def mistake_id(value):
    """The name of a mistake, or of the function that it is a mistake of."""
    return value.name if isinstance(value, Mistake) else value


def each_mistake(pairs):
    """A test for each pair of a function's name and a mistake."""
    return pytest.mark.parametrize(("name", "mistake"), pairs, ids=mistake_id)


def sentences(said):
    """The sentences of an account, each a line again: where one goes on it is indented by four."""
    return said.replace("\n    ", " ").splitlines()


def find_checks(path):
    """The calls `checks.check_<name>(...)` in a notebook's code: {name: {call: its argument}}."""
    found = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        tree = ast.parse("".join(cell["source"]) if cell["cell_type"] == "code" else "")
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.startswith("checks.check_"):
                calls = found.setdefault(called.removeprefix("checks.check_"), {})
                calls[ast.unparse(node)] = ast.unparse(node.args[0])
    return found


CHECKS = {page.name: find_checks(page.path) for page in pages()}
KEEPERS = {keeper for name in NAMES for keeper in keepers(written(name))}
IN_NOTEBOOKS = [
    pytest.param(chapter, name, mistake, id=f"{chapter}-{name}-{mistake.name}")
    for chapter, found in CHECKS.items()
    for name in found
    for mistake in MISTAKES.get(name, ())
]


@each_mistake(ALL)
def test_check_names_the_mistake_first_and_says_last_how_to_mend_it(name, mistake, capsys):
    with np.errstate(all="raise"):  # no mistake warns
        getattr(checks, f"check_{name}")(wrong(name, mistake))
    lines, end = sentences(capsys.readouterr().out), ending(mistake)
    assert lines[0] == f"✗ {name}: {mistake.says}."
    assert lines[-len(end) :] == end


@pytest.mark.parametrize(("chapter", "name", "mistake"), every(4, IN_NOTEBOOKS))
def test_the_notebooks_own_check_names_the_mistake(chapter, name, mistake, capsys):
    for call, argument in CHECKS[chapter][name].items():
        eval(call, {"checks": checks, argument: wrong(name, mistake)})
        assert mistake.says in sentences(capsys.readouterr().out)[0]


@pytest.mark.parametrize("chapter", CHECKS)
def test_notebook_checks_what_its_room_checks_and_else_what_an_earlier_one_does(chapter):
    earlier = [ROOMS[page] for page in list(CHECKS)[: list(CHECKS).index(chapter)]]
    own, known = checked_in(ROOMS[chapter]), set().union(*map(checked_in, earlier))
    left, foreign = own - set(CHECKS[chapter]), set(CHECKS[chapter]) - own - known
    assert not left, f"add to {chapter} a call of each check of its room, or remove it: {left}"
    assert not foreign, f"write these checks into the room of {chapter}, or no call: {foreign}"


@pytest.mark.parametrize("chapter", CHECKS)
def test_notebook_checks_its_own_functions_by_name(chapter):
    for calls in CHECKS[chapter].values():
        for call, argument in calls.items():
            assert argument.isidentifier(), f"{chapter}: give {call} a function by its name"


@pytest.mark.parametrize("chapter", ROOMS)
def test_every_check_of_a_room_has_its_mistakes_there(chapter):
    odd = checked_in(ROOMS[chapter]) ^ set(ROOMS[chapter].MISTAKES)
    assert not odd, f"{chapter}: give each of {odd} a check, in checks.py, and its MISTAKES"


@pytest.mark.parametrize("chapter", ROOMS)
def test_every_function_has_three_to_ten_named_mistakes(chapter):
    for name in sorted(ROOMS[chapter].MISTAKES.keys() & MISTAKES):
        mistakes = MISTAKES[name]
        names = [mistake.name for mistake in mistakes]
        most = 6 if name in KEEPERS else 10
        told = f"mistakes.txt of {chapter}: # {name} has {names}, write three to {most}"
        assert len(names) == len(set(names))
        assert 3 <= len(names) <= most, f"{told}, those that people make"
        says = {mistake.says for mistake in mistakes}
        assert len(says) == len(names), f"{told}, each saying something of its own"


def test_six_mistakes_of_the_layer_are_all_here():
    assert [mistake.name for mistake in MISTAKES["multi_head_attention"]] == SIX


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_in_words(name):
    for mistake in MISTAKES[name]:
        where = f"{name}, {mistake.name}"
        assert re.fullmatch(r"[a-z0-9_]+", mistake.name), f"{where}: write a_name in small letters"
        one_line = re.fullmatch(r"[^.\n][^\n]*[^.!\n]", mistake.says)
        assert one_line, f"{where}: write what is wrong in a line without a full stop"
        assert mistake.mend.endswith("."), f"{where}: write how to mend it as a whole sentence"


def test_all_six_outputs_differ_from_each_other_and_from_the_right_one(normal):
    shapes = (2, 13, 8), (2, 13, 8), (2, 13, 11), (22, 13)
    params = Params(*(normal(i, *shape) / shape[-2] ** 0.5 for i, shape in enumerate(shapes)))
    X, given = normal(9, 5, 13), {"context": normal(10, 5, 13), "mask": causal_mask(5)}
    name, outputs = "multi_head_attention", {"right": multi_head_attention(X, params, **given)}
    for mistake in MISTAKES[name]:
        outputs[mistake.name] = wrong(name, mistake)(X, params, **given)
    np.testing.assert_allclose(outputs["right"], oracle.mha(X, params, **given), rtol=1e-10)
    for name, output in outputs.items():
        for other, another in outputs.items():
            if name < other and output.shape == another.shape:
                assert np.abs(output - another).max() > 1e-3, (name, other)

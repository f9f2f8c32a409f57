"""The table of variants: each row of a chapter has its limit, and each limit its row."""

import ast
import importlib
import inspect
import json
from types import SimpleNamespace

import pytest

from book._ext.content.variants import (
    HEADER,
    VariantsError,
    every_row,
    steps_bar,
    variants_of_page,
    variants_table_lines,
)
from tests.chapters.pages import listed
from tools.chapters import FOLDER, ROOT, Page, pages

MODULES = sorted((ROOT / "tests" / "library" / "variants").glob("test_*.py"))
CHAPTERS = [page for page in pages() if page.has_variants]
PART = "Part III: Inference and variants"
ADD = "add it to LIMITS in a module of tests/library/variants, with its first test"
ROW = "add it to the table in the Recap of its chapter"
RULE = "|---|---|---|---|"
KEEPS = "*project* keeps `K` \\| `V`"
CACHE = f"| [KV cache](#build) | {KEEPS} | `K = V` | T steps, see [06](06_x.ipynb#idea) |"
PAGES = "| [Pages](#round-3-pages) | nothing | `X` | $x = 1$ [again](#check) |"


def limits():
    """Return the limits of each module of tests that has some, {module: {row: its test}}."""
    modules = [importlib.import_module(f"tests.library.variants.{path.stem}") for path in MODULES]
    return {module: getattr(module, "LIMITS", {}) for module in modules}


def differences(names, limits):
    """List the variants without a limit, the limits without a variant, those that are twice."""
    told = [name for found in limits.values() for name in found]
    return [
        *(f"{name!r} is a row without a limit: {ADD}" for name in set(names) - set(told)),
        *(f"{name!r} is a limit without a row: {ROW}" for name in set(told) - set(names)),
        *(f"{name!r} has two limits: leave one" for name in set(told) if told.count(name) > 1),
    ]


def is_collected(module, test):
    """Whether pytest collects a test of a module, and runs it."""
    name = getattr(test, "__name__", "")
    marks = {mark.name for mark in getattr(test, "pytestmark", ())}
    own = inspect.isfunction(test) and getattr(module, name, None) is test
    return own and name.startswith("test_") and not marks & {"skip", "skipif", "xfail", "gpu"}


def test_every_variant_has_a_limit_and_every_limit_its_variant():
    found = differences(every_row(CHAPTERS), limits())
    assert not found, listed(found)


def test_every_limit_is_a_test_that_runs():
    for module, found in limits().items():
        loose = [name for name, test in found.items() if not is_collected(module, test)]
        assert not loose, f"{module.__name__}: let LIMITS name a test that runs, for {loose}"


def test_a_row_or_a_limit_too_many_is_told():
    found = {"a": {"KV cache": None, "RoPE": None}, "b": {"RoPE": None}}
    assert differences(["KV cache", "Pages"], found) == [
        f"'Pages' is a row without a limit: {ADD}",
        f"'RoPE' is a limit without a row: {ROW}",
        "'RoPE' has two limits: leave one",
    ]


def test_a_limit_that_pytest_does_not_run_is_found():
    def test_limit():
        """Stand in for the test of a limit."""

    module = SimpleNamespace(test_limit=test_limit)
    assert is_collected(module, test_limit)
    for test in (len, "test_limit", lambda: None, limits):
        assert not is_collected(module, test)
    assert not is_collected(module, pytest.mark.skip(test_limit))


@pytest.fixture
def plant(tmp_path):
    """Write a chapter with the given lines in its Recap."""

    def write(*lines, name="14_kv_cache"):
        texts = [
            "# Keep\n\n## Goal",
            "## Quiz",
            "## Recap",
            "\n".join(["Three lines.", "", *lines]),
        ]
        cells = [{"cell_type": "markdown", "source": text} for text in texts]
        path = tmp_path / f"{name}.ipynb"
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
        return Page(path, PART)

    return write


def test_rows_come_from_the_recap_and_their_links_lead_to_the_chapter(plant):
    page = plant(HEADER, RULE, CACHE, PAGES, "", "Further reading.")
    assert list(variants_of_page(page)) == ["KV cache", "Pages"]
    assert page.has_variants
    home = f"../{FOLDER}14_kv_cache.ipynb"
    assert variants_table_lines([page])[2:] == [
        f"| [KV cache]({home}#build), [14]({home}) "
        f"| {steps_bar('', 'project')}*project* keeps `K` \\| `V` "
        f"| `K = V` | T steps, see [06](../{FOLDER}06_x.ipynb#idea) |",
        f"| [Pages]({home}#round-3-pages), [14]({home}) "
        f"| {steps_bar('', '')}nothing | `X` | $x = 1$ [again]({home}#check) |",
    ]


FAULTS = {
    "no table": ([], "14_kv_cache has 0 tables of variants in its Recap; expected one"),
    "another header": (
        [HEADER.replace("map", "way"), RULE, CACHE],
        "14_kv_cache has 0 tables of variants in its Recap; expected one, with the header | vari",
    ),
    "two tables": ([HEADER, RULE, CACHE, "", HEADER, RULE, PAGES], "has 2 tables of variants"),
    "no row": ([HEADER, RULE, "", CACHE], "has no row in its table of variants; expected one or"),
    "three cells": ([HEADER, RULE, "| [Pages](#build) | a | b |"], "expected four cells"),
    "five cells": ([HEADER, RULE, "| [Pages](#build) | a | b | c | d |"], "expected four cells"),
    "an empty cell": ([HEADER, RULE, "| [Pages](#build) | | b | c |"], "expected four cells"),
    "no link": (
        [HEADER, RULE, "| Pages | a | b | c |"],
        "the first a link such as [KV cache](#build)",
    ),
    "a link away": (
        [HEADER, RULE, "| [Pages](12_flash.ipynb#build) | a | b | c |"],
        "the first a link such as [KV cache](#build)",
    ),
    "a name twice": ([HEADER, RULE, CACHE, CACHE], "with a name that is not there yet"),
}


@pytest.mark.parametrize(("lines", "words"), FAULTS.values(), ids=FAULTS)
def test_table_out_of_form_is_told_in_one_sentence(plant, lines, words):
    with pytest.raises(VariantsError) as caught:
        variants_table_lines([plant(*lines)])
    assert words in str(caught.value)
    assert str(caught.value).startswith("14_kv_cache has ")
    assert "\n" not in str(caught.value)


def test_the_line_of_a_variant_calls_functions_that_its_chapter_builds():
    for name, (page, (_, _, line, _)) in every_row(CHAPTERS).items():
        assert line[0] == line[-1] == "`", name
        calls = [
            node.func for node in ast.walk(ast.parse(line[1:-1])) if isinstance(node, ast.Call)
        ]
        built = {call.id for call in calls if isinstance(call, ast.Name)}
        assert all(f"def {function}(" in page.path.read_text("utf-8") for function in built), name


def test_one_name_in_two_chapters_is_told(plant):
    both = [plant(HEADER, RULE, CACHE), plant(HEADER, RULE, CACHE, name="15_mqa_gqa_mla")]
    with pytest.raises(VariantsError, match=r"14_kv_cache and 15_mqa_gqa_mla both have"):
        every_row(both)

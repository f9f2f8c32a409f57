"""An exhibit writes the arrays of its chapter a second time: both have the same numbers."""

import re

import pytest

from tests.chapters.named import NAMESPACE
from tests.chapters.pages import NAMES, code_cells, listed, written
from tutorial_lib.elements.exhibits import memory_strip

STRIP = "src/tutorial_lib/elements/exhibits/strip/element.py"
SHOWN = re.compile(r'^memory_strip\("(\w+)"\)$', re.MULTILINE)
SOURCES = {name: "\n".join(cell.source for cell in code_cells(written(name))) for name in NAMES}
STRIPS = [(name, start) for name, source in SOURCES.items() for start in SHOWN.findall(source)]


def set_by(source, *names):
    """Return what the code of a chapter sets names to, each by the first line that does."""
    known = {}
    for name in names:
        [line, *_] = re.findall(rf"^{name} = .*", source, re.MULTILINE)
        exec(line, dict(NAMESPACE) | known, known)
    return [known[name] for name in names]


def strip_faults(source, start):
    """Yield a sentence for each array of a strip that the chapter has with other numbers."""
    text = memory_strip(start).text
    name, shape = re.match(r"Strip of memory: (\w+), shape (\(.*?\))", text).groups()
    array, memory = (re.findall(r"\d+", part) for part in text.split("\n", 1)[1].split("memory:"))
    product, own = set_by(source, "product", name)
    same = (str(own.shape), [*map(str, own.ravel())]) == (shape, array)
    if not same or [*map(str, product.ravel())] != memory:
        yield (
            f"the strip of memory writes {name} with other numbers than the cells: change "
            f"{STRIP} and every chapter that shows the strip, or undo the edit"
        )


@pytest.mark.parametrize(("name", "start"), STRIPS)
def test_strip_of_memory_has_the_arrays_of_its_chapter(name, start):
    told = list(strip_faults(SOURCES[name], start))
    assert not told, listed(told, name)


def test_two_chapters_show_the_strip():
    assert [start for _, start in STRIPS] == ["heads", "concat"]


CELLS = "product = 10 * np.arange(3)[:, None] + np.arange(8)\ncut = split_heads(product, 2)"


@pytest.mark.parametrize("start", ["heads", "concat"])
@pytest.mark.parametrize(("old", "new"), [("10 *", "100 *"), ("(8)", "(16)")])
def test_another_array_in_the_cells_is_told(start, old, new):
    assert list(strip_faults(CELLS, start)) == []
    [told] = strip_faults(CELLS.replace(old, new), start)
    assert "other numbers than the cells: change" in told


def test_another_cut_is_told():
    assert len(list(strip_faults(CELLS.replace("2)", "4)"), "concat"))) == 1

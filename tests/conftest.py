"""Inputs that the numeric tests share: every length differs, so no axis can stand in for another.

All arrays are read-only: a function that writes into its input fails wherever it is called.
"""

import copy
import gc
import re
import shutil
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import tutorial_lib as tl
from tools.chapters import pages
from tutorial_lib.models.real.model import MISSING, real_file

B, T, S, H, D_MODEL, D_K, D_V = 2, 5, 6, 3, 12, 4, 7
BATCHES = {"no batch axis": (), "one batch axis": (B,), "two batch axes": (8, B)}
CELL = re.compile(r"notebooks/(\w+)\.ipynb::")
MASKS = ("none", "causal", "padding", "per head", "per sequence and head", "empty rows")


def pytest_runtest_setup(item):
    """Skip what is marked `gpu` where there is no CUDA device."""
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


def pytest_collection_modifyitems(items):
    """Skip the cells of chapters whose weights are not here; the last lines say which."""
    chapters = {page.path for page in pages() if page.needs_weights}
    cells = [item for item in items if item.path in chapters]
    if cells and not found_weights():
        for cell in cells:
            cell.add_marker(pytest.mark.skip(reason=MISSING))


def found_weights():
    """Whether the weights of the real model are here."""
    try:
        return bool(real_file())
    except FileNotFoundError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collector of garbage from looking through twenty thousand tests at every turn."""
    gc.disable()
    result = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return result


def hints(reports):
    """What to type about failed cells of notebooks, and about files that are no JSON, as lines."""
    for name in sorted({cell[1] for report in reports if (cell := CELL.search(report.nodeid))}):
        yield (
            f"{name}: a cell gives something else than is stored. If you mean the change, run: "
            f"make chapter NB={name}; if you do not, undo the edit. If it differs right after that "
            "command too, it shows something else each time: give it a seed, and print no time."
        )
    if any("JSONDecodeError" in str(report.longrepr) for report in reports):
        yield (
            "A bank or a notebook is no JSON any more. This names the file and the line of a page "
            "that you have edited: make chapter NB=05_concatenation"
        )


def skipped_chapters(reports):
    """Name the chapters whose cells were skipped, how many of each, and what to type, as lines."""
    cells = Counter(cell[1] for report in reports if (cell := CELL.search(report.nodeid)))
    for name, count in cells.items():
        yield f"SKIPPED: {count} cells of {name}. {MISSING}"


def pytest_terminal_summary(terminalreporter):
    """Print what to type, and how many cases of each grid passed: tests record their grid."""
    stats = terminalreporter.stats
    for line in skipped_chapters(stats.get("skipped", [])):
        terminalreporter.write_line(line)
    for line in hints([*stats.get("failed", []), *stats.get("error", [])]):
        terminalreporter.write_line(line)
    passed = stats.get("passed", [])
    named = [value for report in passed for name, value in report.user_properties if name == "grid"]
    for grid, cases in Counter(named).items():
        terminalreporter.write_line(f"{cases} cases passed: {grid}")


def frozen(array):
    """The array, made read-only."""
    array.setflags(write=False)
    return array


def draw(seed, *shape):
    """Read-only standard normal numbers."""
    return frozen(np.random.default_rng(seed).standard_normal(shape))


def mask_of(kind, batch, keys):
    """A mask of one of the kinds in MASKS for T queries and so many keys."""
    rng = np.random.default_rng(7)
    causal = np.tril(np.ones((T, keys), dtype=bool), k=keys - T)
    padding = np.ones((*batch, 1, 1, keys), dtype=bool)
    padding[..., -2:] = rng.random((*batch, 1, 1, 2)) < 0.5
    empty = causal & (np.arange(T) != 2)[:, None]
    per_head = rng.random((H, T, keys)) < 0.5
    per_head[..., 0] = True
    sequences = np.logical_and(rng.random((*batch, H, T, keys)) < 0.5, padding)
    made = (None, causal, padding, per_head, sequences, empty)
    mask = dict(zip(MASKS, made, strict=True))[kind]
    return mask if mask is None else frozen(mask)


@pytest.fixture(scope="session")
def sizes():
    """The lengths of all axes."""
    return SimpleNamespace(B=B, T=T, S=S, H=H, d_model=D_MODEL, d_k=D_K, d_v=D_V)


@pytest.fixture(scope="session")
def normal():
    """`normal(seed, *shape)`: read-only standard normal numbers."""
    return draw


@pytest.fixture(scope="session")
def make_mask():
    """`make_mask(kind, batch, keys)`: a mask of one of the kinds in MASKS for T queries."""
    return mask_of


@pytest.fixture(params=BATCHES.values(), ids=BATCHES)
def batch(request):
    """Leading batch axes: none, one, two."""
    return request.param


@pytest.fixture(params=MASKS)
def mask_kind(request):
    """The name of a mask."""
    return request.param


@pytest.fixture
def mask(mask_kind, batch):
    """A mask for T queries and S keys, True = may look."""
    return mask_of(mask_kind, batch, S)


@pytest.fixture
def square_mask(mask_kind, batch):
    """A mask for T queries and T keys, True = may look."""
    return mask_of(mask_kind, batch, T)


@pytest.fixture
def X(batch):
    """(..., T, d_model)."""
    return draw(1, *batch, T, D_MODEL)


@pytest.fixture
def context(batch):
    """(..., S, d_model): another sequence, of another length."""
    return draw(2, *batch, S, D_MODEL)


@pytest.fixture
def scores(batch):
    """(..., H, T, S)."""
    return draw(3, *batch, H, T, S)


@pytest.fixture
def Q(batch):
    """(..., H, T, d_k)."""
    return draw(4, *batch, H, T, D_K)


@pytest.fixture
def K(batch):
    """(..., H, S, d_k)."""
    return draw(5, *batch, H, S, D_K)


@pytest.fixture
def V(batch):
    """(..., H, S, d_v)."""
    return draw(6, *batch, H, S, D_V)


@pytest.fixture(scope="session")
def params():
    """Params whose arrays have the lengths of all other fixtures."""
    shapes = (H, D_MODEL, D_K), (H, D_MODEL, D_K), (H, D_MODEL, D_V), (H * D_V, D_MODEL)
    arrays = (draw(10 + i, *shape) / shape[-2] ** 0.5 for i, shape in enumerate(shapes))
    return tl.Params(*(frozen(array) for array in arrays))


@pytest.fixture(scope="session")
def params_32(params):
    """The same in single precision."""
    arrays = (params.W_Q, params.W_K, params.W_V, params.W_O)
    return tl.Params(*(array.astype(np.float32) for array in arrays))


@pytest.fixture(scope="session")
def assert_close():
    """Compare with the oracle: equal shapes, float64, and values to ten digits."""

    def compare(actual, expected):
        assert actual.shape == expected.shape
        assert actual.dtype == np.float64
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)

    return compare


@pytest.fixture(scope="session")
def assert_untouched():
    """Call with writeable copies of all inputs, and require that none of them changes."""

    def call(function, *arguments, **options):
        copies = copy.deepcopy((arguments, options))
        for array in arrays_in(copies):
            array.setflags(write=True)
        before = [array.copy() for array in arrays_in(copies)]
        function(*copies[0], **copies[1])
        after = arrays_in(copies)
        assert len(before) == len(after) > 0
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new)

    return call


def arrays_in(inputs):
    """All arrays among arguments and options, and those inside records."""
    positional, named = inputs
    arrays = []
    for value in (*positional, *named.values()):
        if isinstance(value, np.ndarray):
            arrays.append(value)
        elif isinstance(value, tl.Params | tl.Trace):
            arrays += arrays_in(((), vars(value)))
    return arrays


@pytest.fixture(scope="session")
def bubblewrap():
    """Skip without bubblewrap: nothing of a student runs outside of it."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is missing, so the grader is untested: apt-get install bubblewrap")

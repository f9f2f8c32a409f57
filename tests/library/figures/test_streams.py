"""The second map."""

import functools
from itertools import pairwise

import numpy as np

from tests.library.figures.reading import text_xy, words
from tutorial_lib import figures


@functools.cache
def block_map(*absent, layers=2):
    """The map of one model."""
    return figures.block_map({"model": absent}, layers=layers, caption="")


def n_dashed_shapes(figure):
    """How many shapes of a picture are dashed."""
    return figure.svg.count("stroke-dasharray")


def test_the_stream_runs_down_and_the_branches_lead_back_to_it():
    (table,) = block_map().tables
    targets = dict(zip(table.rows, table.cells[:, -1], strict=True))
    stream = ["embed", "X", "add 1", "X, again", "add 2", "last norm", "unembed"]
    for step, after in pairwise(stream):
        assert targets[step].startswith(after)
    assert targets["unembed"] == ""
    assert targets["X"] == "add 1, norm 1"
    assert [targets[n] for n in ("norm 1", "attend", "norm 2", "MLP")] == [
        "attend",
        "add 1",
        "MLP",
        "add 2",
    ]
    places = text_xy(block_map())
    assert places["embed"][0] == places["unembed"][0] < places["MLP"][0]
    assert np.diff([places[name][1] for name in ("embed", "MLP", "unembed")]).min() > 0


def test_the_block_has_its_count():
    assert "after 2 blocks" in words(block_map(layers=2))
    assert "after 1 block" in words(block_map(layers=1))


def test_what_a_model_lacks_is_dashed():
    n = [n_dashed_shapes(block_map(*a)) for a in ((), ("norm",), ("MLP",), ("norm", "MLP"))]
    assert n == [0, 3, 3, 5]
    assert block_map("norm", "MLP").alt.endswith("model: without norm and MLP.")

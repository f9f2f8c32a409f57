"""The page of JAX: each block prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from tests.test_setup import pins

PAGE = Path(__file__).resolve().parents[2] / "book/jax.md"


def run_blocks(text):
    """Run the blocks of Python in order; yield what each prints, and what stands below it."""
    bound = {}
    block = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"
    for code, expected in re.findall(block, text, re.DOTALL):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, bound)
        yield out.getvalue(), expected


@pytest.fixture
def jax():
    """JAX, with what the page sets put back afterwards."""
    jax = pytest.importorskip("jax")
    yield jax
    jax.config.update("jax_enable_x64", False)


@pytest.mark.usefixtures("jax")
def test_each_block_prints_what_stands_below_it():
    pairs = list(run_blocks(PAGE.read_text(encoding="utf-8")))
    assert [printed for printed, _ in pairs] == [expected for _, expected in pairs]
    assert sum(bool(expected) for _, expected in pairs) == 6


def test_the_page_names_the_version_that_is_pinned(jax):
    assert f"`pip install jax=={jax.__version__}`" in PAGE.read_text(encoding="utf-8")
    assert pins("requirements.peers")["jax"] == jax.__version__


@pytest.mark.usefixtures("jax")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ Q.shape[-1] ** 0.5", "/ Q.shape[-1]"),
        ("where=mask", "where=~mask"),
        ("is_causal=True)", "is_causal=False)"),
        ('"jax_enable_x64", True', '"jax_enable_x64", False'),
    ],
)
def test_a_block_that_is_changed_is_noticed(right, wrong):
    text = PAGE.read_text(encoding="utf-8")
    assert right in text
    assert any(printed != expected for printed, expected in run_blocks(text.replace(right, wrong)))


def test_a_mask_of_three_axes_is_one_per_head(jax):
    Q, mask = np.ones((2, 3, 2, 4)), np.arange(18).reshape(2, 3, 3) % 3 < [[[1]], [[2]]]
    per_head = jax.nn.dot_product_attention(Q, Q, Q.cumsum(axis=1), mask=mask)
    assert np.allclose(per_head[:, 0, :, 0], [[1, 1.5], [1, 1.5]])

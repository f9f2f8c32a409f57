"""What the tests of experiments share: models, and compiling without a compiler."""

from functools import partial

import pytest
import torch

from experiments import scored_heads
from tests.conftest import found_weights
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.real.model import MISSING, real_model
from tutorial_lib.records import checkpoint


@pytest.fixture(scope="session")
def example():
    """The committed model of the known text."""
    return TinyModel.of(checkpoint("known_text"))


@pytest.fixture(scope="session")
def model():
    """The real model, where its weights are here."""
    if not found_weights():
        pytest.skip(MISSING)
    return real_model()


@pytest.fixture
def drawn_anew():
    """Pairs of texts and rates of names are drawn again, and again after the test."""
    cached = scored_heads.text_pairs, scored_heads.new_name_rates
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.fixture
def no_compiler(monkeypatch):
    """Compile to the same steps in Python, in seconds and without a C++ compiler."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    yield
    torch.compiler.reset()

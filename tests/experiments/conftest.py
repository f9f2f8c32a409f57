"""What the tests of experiments share: the committed example, and compiling without a compiler."""

from functools import partial

import pytest
import torch

from tutorial_lib.models.copying import TinyModel
from tutorial_lib.records import checkpoint


@pytest.fixture(scope="session")
def example():
    """The committed model of the known text."""
    return TinyModel.of(checkpoint("known_text"))


@pytest.fixture
def no_compiler(monkeypatch):
    """Compile to the same steps in Python, in seconds and without a C++ compiler."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    yield
    torch.compiler.reset()

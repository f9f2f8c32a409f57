"""The small random model, written once and read back."""

import pytest

from tests.library.models.real import small
from tutorial_lib.models.real.gguf import read_gguf
from tutorial_lib.models.real.model import real_model


@pytest.fixture(scope="package")
def small_file(tmp_path_factory):
    """The path of its file."""
    return small.write_gguf(tmp_path_factory.mktemp("real") / "small.gguf")


@pytest.fixture(scope="package")
def small_gguf(small_file):
    """What the reader finds in it."""
    return read_gguf(small_file)


@pytest.fixture(scope="package")
def small_model(small_file):
    """The model."""
    return real_model(small_file)

"""The reader of GGUF: arrays come back to half a step, and a damaged file is refused."""

import numpy as np
import pytest

from tests.library.models.real import small
from tutorial_lib.models.real.gguf import FORMATS, Q4_1, FileError, four_bits, read_gguf

TYPED_ARRAYS = small.make_arrays()


@pytest.mark.parametrize("name", TYPED_ARRAYS)
def test_an_array_comes_back_to_half_a_step_of_its_block(small_gguf, name):
    array, array_type = TYPED_ARRAYS[name]
    read_array = small_gguf.array(f"{name}.weight")
    assert read_array.shape == array.shape
    assert read_array.dtype == np.float32
    blocks = array.reshape(-1, 32 if array_type else 1)
    step_sizes = {0: 0 * blocks[:, 0], 3: np.ptp(blocks, axis=1) / 15}
    steps = step_sizes.get(array_type, np.abs(blocks).max(axis=1) / 127)
    errors = np.abs(read_array.reshape(blocks.shape) - blocks).max(axis=1)
    assert (errors <= 0.55 * steps + 2e-3 * np.abs(blocks).max(axis=1)).all()  # float16 too


def test_a_block_of_four_bits_worked_by_hand():
    blocks = np.zeros(1, FORMATS[Q4_1][0])
    blocks["scale"], blocks["minimum"] = 0.5, -3
    blocks["nibbles"] = np.arange(16) + 16 * np.arange(15, -1, -1)
    expected = [*(-3 + 0.5 * n for n in range(16)), *(4.5 - 0.5 * n for n in range(16))]
    np.testing.assert_array_equal(four_bits(blocks), np.float32(expected))


def test_facts_are_what_was_written(small_gguf):
    assert small_gguf.facts["tokenizer.ggml.merges"] == list(small.MERGES)
    assert small_gguf.facts["llama.rope.freq_base"] == small.BASE
    assert len(small_gguf.entries) == len(TYPED_ARRAYS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"magic": b"GGML"}, "begins with b'GGML'"),
        ({"version": 2}, "is of version 2"),
        ({"type_code": 14}, "in the format 14, where"),
    ],
)
def test_another_format_is_refused(tmp_path, changes, message):
    with pytest.raises(FileError, match=f"{message}.*expected GGUF, version 3.*Fetch it again"):
        read_gguf(small.write_gguf(tmp_path / "other.gguf", **changes))


@pytest.mark.parametrize("kept_share", [0.0001, 0.01, 0.02, 0.5, 0.9999])
def test_a_truncated_file_is_refused_before_an_array_is_read(tmp_path, small_file, kept_share):
    file_bytes, cut_path = small_file.read_bytes(), tmp_path / "cut.gguf"
    cut_path.write_bytes(file_bytes[: int(kept_share * len(file_bytes))])
    with pytest.raises(FileError, match=r"cut\.gguf (begins|ends).*Fetch it again"):
        read_gguf(cut_path)


@pytest.mark.parametrize(("offset", "message"), [(32, "what is no text"), (52, "unknown type 255")])
def test_other_bytes_in_the_head_are_refused(tmp_path, small_file, offset, message):
    file_bytes, damaged_path = bytearray(small_file.read_bytes()), tmp_path / "damaged.gguf"
    file_bytes[offset] = 255  # the first letter of "general.architecture", the type of its value
    damaged_path.write_bytes(file_bytes)
    with pytest.raises(FileError, match=f"damaged.gguf has.*{message}.*Fetch it again"):
        read_gguf(damaged_path)

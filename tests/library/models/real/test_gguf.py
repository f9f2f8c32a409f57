"""The reader of GGUF: arrays come back to half a step, and a damaged file is refused."""

import numpy as np
import pytest

from tests.library.models.real import small
from tutorial_lib.models.real.gguf import FORMATS, Q4_1, FileError, four_bits, read_gguf

DRAWN = small.arrays()


@pytest.mark.parametrize("name", DRAWN)
def test_an_array_comes_back_to_half_a_step_of_its_block(small_gguf, name):
    array, kind = DRAWN[name]
    read = small_gguf.array(f"{name}.weight")
    assert read.shape == array.shape
    assert read.dtype == np.float32
    blocks = array.reshape(-1, 32 if kind else 1)
    ends = {0: 0 * blocks[:, 0], 3: np.ptp(blocks, axis=1) / 15}
    steps = ends.get(kind, np.abs(blocks).max(axis=1) / 127)
    errors = np.abs(read.reshape(blocks.shape) - blocks).max(axis=1)
    assert (errors <= 0.55 * steps + 2e-3 * np.abs(blocks).max(axis=1)).all()  # float16 too


def test_a_block_of_four_bits_worked_by_hand():
    blocks = np.zeros(1, FORMATS[Q4_1][0])
    blocks["scale"], blocks["minimum"] = 0.5, -3
    blocks["nibbles"] = np.arange(16) + 16 * np.arange(15, -1, -1)
    numbers = [*(-3 + 0.5 * n for n in range(16)), *(4.5 - 0.5 * n for n in range(16))]
    np.testing.assert_array_equal(four_bits(blocks), np.float32(numbers))


def test_facts_are_what_was_written(small_gguf):
    assert small_gguf.facts["tokenizer.ggml.merges"] == list(small.MERGES)
    assert small_gguf.facts["llama.rope.freq_base"] == small.BASE
    assert len(small_gguf.entries) == len(DRAWN)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"magic": b"GGML"}, "begins with b'GGML'"),
        ({"version": 2}, "is of version 2"),
        ({"kind": 14}, "in the format 14, where"),
    ],
)
def test_another_format_is_refused(tmp_path, changes, says):
    with pytest.raises(FileError, match=f"{says}.*expected GGUF, version 3.*Fetch it again"):
        read_gguf(small.write(tmp_path / "other.gguf", **changes))


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.02, 0.5, 0.9999])
def test_a_truncated_file_is_refused_before_an_array_is_read(tmp_path, small_file, share):
    raw, cut = small_file.read_bytes(), tmp_path / "cut.gguf"
    cut.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(FileError, match=r"cut\.gguf (begins|ends).*Fetch it again"):
        read_gguf(cut)


@pytest.mark.parametrize(("place", "says"), [(32, "what is no text"), (52, "unknown type 255")])
def test_other_bytes_in_the_head_are_refused(tmp_path, small_file, place, says):
    raw, damaged = bytearray(small_file.read_bytes()), tmp_path / "damaged.gguf"
    raw[place] = 255  # the first letter of "general.architecture", the type of its value
    damaged.write_bytes(raw)
    with pytest.raises(FileError, match=f"damaged.gguf has.*{says}.*Fetch it again"):
        read_gguf(damaged)

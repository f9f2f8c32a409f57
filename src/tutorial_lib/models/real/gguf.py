"""Read a GGUF file with NumPy: the facts about a model, and its arrays in float32.

Source: the GGUF specification, version 3, and the block formats Q4_1 and Q8_0 of ggml.
"""

import math
import mmap
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tutorial_lib.contract import require

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
BLOCK = 32  # numbers that share a scale
PIECE = 2048  # blocks that are dequantised at once
NUMBER_FORMATS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
TEXT_TYPE, LIST_TYPE = 8, 9  # types of values, as those of NUMBER_FORMATS
FLOAT32, Q4_1, Q8_0 = 0, 3, 8
FORMATS = {  # type of an array -> the bytes of a block of numbers, and how many these are
    FLOAT32: (np.dtype("<f4"), 1),
    Q4_1: (np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("nibbles", "u1", BLOCK // 2)]), BLOCK),
    Q8_0: (np.dtype([("scale", "<f2"), ("codes", "i1", BLOCK)]), BLOCK),
}


class FileError(ValueError):
    """A file of weights that is damaged, or of another kind."""


def four_bits(blocks: np.ndarray) -> "n":
    """Return the numbers of blocks of Q4_1: 20 bytes are 32 numbers.

    Introduced in chapter 24. A number is minimum + scale · code, with codes from 0 to 15. The low
    four bits of the 16 bytes are the codes of numbers 0 to 15, the high ones of 16 to 31.

    Parameters
    ----------
    blocks : (n/32,) records of `scale`, `minimum` (float16) and `nibbles` (16 bytes)

    Raises
    ------
    TypeError : an array without these fields

    Source: ggml, block_q4_1.

    >>> blocks = np.zeros(1, FORMATS[Q4_1][0])
    >>> blocks["scale"], blocks["minimum"], blocks["nibbles"] = 0.5, -1, 0x21
    >>> four_bits(blocks)[[0, 16]].tolist()
    [-0.5, 0.0]
    """
    require(
        blocks.dtype == FORMATS[Q4_1][0],
        TypeError,
        f"blocks is of {blocks.dtype}; expected the fields scale, minimum and nibbles. "
        f"Read the bytes so: np.frombuffer(raw, FORMATS[Q4_1][0]).",
    )
    low_nibbles, high_nibbles = blocks["nibbles"] & 15, blocks["nibbles"] >> 4
    codes = np.concatenate((low_nibbles, high_nibbles), axis=-1)  # (n/32, 32)
    scale, minimum = (blocks[field].astype("f4")[..., None] for field in ("scale", "minimum"))
    return (minimum + scale * codes).ravel()


def dequantise_q8_0_blocks(blocks):
    """Return the numbers of blocks of Q8_0: 34 bytes are a scale and 32 whole numbers."""
    return (blocks["scale"].astype("f4")[..., None] * blocks["codes"]).ravel()


DEQUANTISERS = {FLOAT32: np.array, Q4_1: four_bits, Q8_0: dequantise_q8_0_blocks}


@dataclass(frozen=True)
class ArrayEntry:
    """Where an array lies in a file: its shape, rows first, its type and its first byte."""

    shape: tuple
    type: int
    start: int

    @property
    def n_bytes(self):
        """Return how many bytes it takes in the file."""
        dtype, block_length = FORMATS[self.type]
        return math.prod(self.shape) // block_length * dtype.itemsize


@dataclass(frozen=True)
class GGUF:
    """A file of weights: what it says about its model, and where its arrays are.

    Introduced in chapter 24.

    Parameters
    ----------
    facts : metadata by name, such as "llama.block_count"
    entries : where each array lies, by name
    """

    path: Path
    facts: dict
    entries: dict

    def blocks(self, name):
        """Return the records of an array as the file has them: blocks, or numbers."""
        entry = self.entries[name]
        with self.path.open("rb") as file:
            file.seek(entry.start)
            return np.frombuffer(file.read(entry.n_bytes), FORMATS[entry.type][0])

    def array(self, name):
        """Return an array in float32, dequantised piece by piece: little else is in memory."""
        entry, blocks = self.entries[name], self.blocks(name)
        array = np.empty((len(blocks), FORMATS[entry.type][1]), "f4")
        for start in range(0, len(blocks), PIECE):
            piece = slice(start, start + PIECE)
            array[piece] = DEQUANTISERS[entry.type](blocks[piece]).reshape(-1, array.shape[1])
        return array.reshape(entry.shape)


class _HeaderReader:
    """The values at the head of a file, one after the other."""

    def __init__(self, path):
        self.path, self.place = path, 0
        with path.open("rb") as file:
            is_empty = not path.stat().st_size  # which cannot be mapped
            self.raw = b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _next_bytes(self, n_bytes):
        self.place += n_bytes
        if self.place > len(self.raw):
            self.raise_file_error("ends inside its head")
        return self.raw[self.place - n_bytes : self.place]

    def read_number(self, struct_format):
        """Return the next number of a format of struct."""
        struct_format = "<" + struct_format
        return struct.unpack(struct_format, self._next_bytes(struct.calcsize(struct_format)))[0]

    def read_text(self):
        """Return the next text: its length, then UTF-8."""
        text_bytes = self._next_bytes(self.read_number("Q"))
        try:
            return sys.intern(text_bytes.decode())  # in memory once, however often it is read
        except UnicodeDecodeError:
            start = self.place - len(text_bytes)
            return self.raise_file_error(f"has at byte {start} what is no text")

    def read_value(self, value_type):
        """Return the next value of a type."""
        if value_type == TEXT_TYPE:
            return self.read_text()
        if value_type == LIST_TYPE:
            value_type, length = self.read_number("I"), self.read_number("Q")
            return [self.read_value(value_type) for _ in range(length)]
        if value_type not in NUMBER_FORMATS:
            self.raise_file_error(f"has a value of the unknown type {value_type}")
        return self.read_number(NUMBER_FORMATS[value_type])

    def read_array_entry(self):
        """Return the name and the place of the next array, counted from the first array."""
        name = self.read_text()
        lengths = [self.read_number("Q") for _ in range(self.read_number("I"))]
        array_type, start = self.read_number("I"), self.read_number("Q")
        if array_type not in FORMATS:
            self.raise_file_error(
                f"has {name} in the format {array_type}, where {sorted(FORMATS)} are read"
            )
        return name, ArrayEntry(tuple(reversed(lengths)), array_type, start)

    def raise_file_error(self, fault):
        """Raise what is wrong with the file."""
        raise FileError(
            f"{self.path.name} {fault}; expected GGUF, version {VERSION}, whole. Fetch it again."
        )


def read_gguf(path) -> GGUF:
    """Read the head of a GGUF file; its arrays are read when they are asked for.

    Introduced in chapter 24.

    Raises
    ------
    FileError : another kind of file, a damaged or a truncated one

    Source: the GGUF specification.
    """
    header = _HeaderReader(Path(path))
    if header.raw[:4] != MAGIC:
        header.raise_file_error(f"begins with {header.raw[:4]!r}")
    header.place = len(MAGIC)
    version = header.read_number("I")
    if version != VERSION:
        header.raise_file_error(f"is of version {version}")
    n_arrays, n_facts = header.read_number("Q"), header.read_number("Q")
    facts = {}
    for _ in range(n_facts):
        name = header.read_text()
        facts[name] = header.read_value(header.read_number("I"))
    entries = dict(header.read_array_entry() for _ in range(n_arrays))
    alignment = facts.get("general.alignment", ALIGNMENT)
    data_start = math.ceil(header.place / alignment) * alignment
    entries = {n: ArrayEntry(e.shape, e.type, data_start + e.start) for n, e in entries.items()}
    for name, entry in entries.items():
        if entry.start + entry.n_bytes > len(header.raw):
            header.raise_file_error(f"ends before {name} does")
    return GGUF(header.path, facts, entries)

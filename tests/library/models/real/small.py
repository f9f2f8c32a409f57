"""A small random model as a GGUF file, written byte by byte from the format's description."""

import struct

import numpy as np

L, H, G, D_K, D_MODEL, D_FEED = 2, 6, 3, 16, 96, 160
MERGES = ("Ġ t", "h e", "Ġt he", "Ġ s", "a t", "Ġs at", "i n", "in g", "h a")
EPSILON, BASE = 1e-5, 500.0
# The order of chapter 24's letters: visible bytes by themselves, all others from Ā on.
VISIBLE_BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = [*map(chr, VISIBLE_BYTES), *(chr(256 + n) for n in range(256 - len(VISIBLE_BYTES)))]
TOKENS = (*LETTERS, *(pair.replace(" ", "") for pair in MERGES), "<|end|>")


def pack_text(word):
    """The length of a text, then its bytes."""
    return struct.pack("<Q", len(word.encode())) + word.encode()


def pack_fact(name, value):
    """A name, the type of its value, and the value: a text, a number, or a list of texts."""
    if isinstance(value, str):
        return pack_text(name) + struct.pack("<I", 8) + pack_text(value)
    if isinstance(value, tuple):
        text_list = b"".join(map(pack_text, value))
        return pack_text(name) + struct.pack("<IIQ", 9, 8, len(value)) + text_list
    type_code, struct_format = (4, "I") if isinstance(value, int) else (6, "f")
    return pack_text(name) + struct.pack(f"<I{struct_format}", type_code, value)


def quantised_bytes(array, type_code):
    """The bytes of an array: float32 (0), Q4_1 (3) or Q8_0 (8), in blocks of 32 numbers."""
    if type_code == 0:
        return array.astype("<f4").tobytes()
    blocks = b""
    for block in array.reshape(-1, 32).astype("f4"):
        if type_code == 8:
            scale = np.float16(np.abs(block).max() / 127)
            codes = np.rint(block / np.float32(scale)).clip(-127, 127).astype("i1")
            blocks += scale.tobytes() + codes.tobytes()
        else:
            scale, low = np.float16((block.max() - block.min()) / 15), np.float16(block.min())
            codes = np.rint((block - np.float32(low)) / np.float32(scale)).clip(0, 15)
            codes = codes.astype("u1")
            blocks += scale.tobytes() + low.tobytes() + (codes[:16] | codes[16:] << 4).tobytes()
    return blocks


def make_arrays(seed=0):
    """The arrays of the model, and the type in which each is written, by name."""
    rng = np.random.default_rng(seed)
    shapes = {"attn_q": (H * D_K, D_MODEL), "attn_k": (G * D_K, D_MODEL)}
    shapes |= {"attn_v": (G * D_K, D_MODEL), "attn_output": (D_MODEL, H * D_K)}
    shapes |= {"ffn_gate": (D_FEED, D_MODEL), "ffn_up": (D_FEED, D_MODEL)}
    shapes |= {"ffn_down": (D_MODEL, D_FEED)}
    typed_arrays = {"token_embd": (rng.standard_normal((len(TOKENS), D_MODEL)), 8)}
    for layer in range(L):
        for name, shape in shapes.items():
            typed_arrays[f"blk.{layer}.{name}"] = rng.standard_normal(shape) / shape[1] ** 0.5, 3
        for name in ("attn_norm", "ffn_norm"):
            typed_arrays[f"blk.{layer}.{name}"] = rng.uniform(0.5, 2, D_MODEL), 0
    typed_arrays["output_norm"] = rng.uniform(0.5, 2, D_MODEL), 0
    return typed_arrays


def write_gguf(path, *, architecture="llama", version=3, magic=b"GGUF", type_code=None, **changes):
    """Write the model; what is named differs from the format, for tests of damaged files."""
    facts = {"general.architecture": architecture, "llama.block_count": L}
    facts |= {"llama.attention.head_count": H, "llama.attention.head_count_kv": G}
    facts |= {"llama.attention.layer_norm_rms_epsilon": EPSILON, "llama.rope.freq_base": BASE}
    facts |= {"tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.merges": MERGES} | changes
    entries, data = b"".join(pack_fact(*pair) for pair in facts.items()), b""
    typed_arrays = make_arrays()
    for name, (array, array_type) in typed_arrays.items():
        shape = array.shape[::-1]
        entries += pack_text(f"{name}.weight") + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        entries += struct.pack("<IQ", array_type if type_code is None else type_code, len(data))
        data += quantised_bytes(array, array_type)
        data += b"\0" * (-len(data) % 32)
    header = magic + struct.pack("<IQQ", version, len(typed_arrays), len(facts)) + entries
    path.write_bytes(header + b"\0" * (-len(header) % 32) + data)
    return path

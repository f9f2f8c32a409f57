"""A small random model as a GGUF file, written byte by byte from the format's description."""

import struct

import numpy as np

L, H, G, D_K, D_MODEL, D_FEED = 2, 6, 3, 16, 96, 160
MERGES = ("Ġ t", "h e", "Ġt he", "Ġ s", "a t", "Ġs at", "i n", "in g", "h a")
EPSILON, BASE = 1e-5, 500.0
# The order of chapter 24's letters: visible bytes by themselves, all others from Ā on.
VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = [chr(byte) for byte in VISIBLE] + [chr(256 + n) for n in range(256 - len(VISIBLE))]
TOKENS = (*LETTERS, *(pair.replace(" ", "") for pair in MERGES), "<|end|>")


def text(word):
    """The length of a text, then its bytes."""
    return struct.pack("<Q", len(word.encode())) + word.encode()


def fact(name, value):
    """A name, the type of its value, and the value: a text, a number, or a list of texts."""
    if isinstance(value, str):
        return text(name) + struct.pack("<I", 8) + text(value)
    if isinstance(value, tuple):
        listed = b"".join(map(text, value))
        return text(name) + struct.pack("<IIQ", 9, 8, len(value)) + listed
    kind, form = (4, "I") if isinstance(value, int) else (6, "f")
    return text(name) + struct.pack(f"<I{form}", kind, value)


def quantised(array, kind):
    """The bytes of an array: float32 (0), Q4_1 (3) or Q8_0 (8), in blocks of 32 numbers."""
    if kind == 0:
        return array.astype("<f4").tobytes()
    raw = b""
    for block in array.reshape(-1, 32).astype("f4"):
        if kind == 8:
            scale = np.float16(np.abs(block).max() / 127)
            codes = np.rint(block / np.float32(scale)).clip(-127, 127).astype("i1")
            raw += scale.tobytes() + codes.tobytes()
        else:
            scale, low = np.float16((block.max() - block.min()) / 15), np.float16(block.min())
            codes = np.rint((block - np.float32(low)) / np.float32(scale)).clip(0, 15)
            codes = codes.astype("u1")
            raw += scale.tobytes() + low.tobytes() + (codes[:16] | codes[16:] << 4).tobytes()
    return raw


def arrays(seed=0):
    """The arrays of the model, and the type in which each is written, by name."""
    rng = np.random.default_rng(seed)
    shapes = {"attn_q": (H * D_K, D_MODEL), "attn_k": (G * D_K, D_MODEL)}
    shapes |= {"attn_v": (G * D_K, D_MODEL), "attn_output": (D_MODEL, H * D_K)}
    shapes |= {"ffn_gate": (D_FEED, D_MODEL), "ffn_up": (D_FEED, D_MODEL)}
    shapes |= {"ffn_down": (D_MODEL, D_FEED)}
    drawn = {"token_embd": (rng.standard_normal((len(TOKENS), D_MODEL)), 8)}
    for n in range(L):
        for name, shape in shapes.items():
            drawn[f"blk.{n}.{name}"] = rng.standard_normal(shape) / shape[1] ** 0.5, 3
        for name in ("attn_norm", "ffn_norm"):
            drawn[f"blk.{n}.{name}"] = rng.uniform(0.5, 2, D_MODEL), 0
    drawn["output_norm"] = rng.uniform(0.5, 2, D_MODEL), 0
    return drawn


def write(path, *, architecture="llama", version=3, magic=b"GGUF", kind=None, **changes):
    """Write the model; what is named differs from the format, for tests of damaged files."""
    facts = {"general.architecture": architecture, "llama.block_count": L}
    facts |= {"llama.attention.head_count": H, "llama.attention.head_count_kv": G}
    facts |= {"llama.attention.layer_norm_rms_epsilon": EPSILON, "llama.rope.freq_base": BASE}
    facts |= {"tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.merges": MERGES} | changes
    head, body = b"".join(fact(*pair) for pair in facts.items()), b""
    drawn = arrays()
    for name, (array, type_) in drawn.items():
        shape = array.shape[::-1]
        head += text(f"{name}.weight") + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", type_ if kind is None else kind, len(body))
        body += quantised(array, type_)
        body += b"\0" * (-len(body) % 32)
    raw = magic + struct.pack("<IQQ", version, len(drawn), len(facts)) + head
    path.write_bytes(raw + b"\0" * (-len(raw) % 32) + body)
    return path

"""What chapter 14 says of its check and of the time that a cache takes, computed."""

from tutorial_lib.records import record


def microseconds_to_read_a_thousand_cached_tokens():
    """Reading takes at least this: bytes by GB/s is ns per token, so µs per thousand tokens."""
    decode = record("decode")
    bytes_per_token = decode["forms"]["NumPy"]["MHA"]["bytes_per_token"]
    return bytes_per_token / decode["read_gb_per_s"]["median"]

"""How much memory a call takes."""

import gc
import tracemalloc


def peak_bytes(call):
    """The most that a call holds at once in NumPy arrays, its result included, its inputs not."""
    tracemalloc.stop()  # whoever measured before and did not end
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

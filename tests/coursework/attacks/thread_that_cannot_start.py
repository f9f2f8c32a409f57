"""Computes in a thread, which is right in a kernel; the sandbox starts none, by design.

Earns: 0
Says: it raised RuntimeError
"""

from concurrent.futures import ThreadPoolExecutor


def attend_at_scales(Q, K, V):
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(right, Q, K, V).result()

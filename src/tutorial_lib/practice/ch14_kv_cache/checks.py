"""Checks for chapter 14."""

from tutorial_lib.practice.account import told
from tutorial_lib.practice.ch14_kv_cache import feeding
from tutorial_lib.practice.ch14_kv_cache.mistakes import MISTAKES
from tutorial_lib.practice.mistake import named


def check_cached(step, empty, *, d_model=12):
    """Check a layer that keeps keys and values: several pieces must give what one gives.

    The layer may be any: it is asked by what it does, and compared with itself. Prints an account.

    Parameters
    ----------
    step : step(X, cache) → (Y, cache), for X (..., T, d_model) of any length T
    empty : empty(room, batch=(), pad=None) → the layer's empty cache; pad says how many tokens at
        the left of each sequence are padding
    d_model : width of X
    """
    try:
        feeding.ask(feeding.Layer(step, empty, d_model))
    except feeding.Found as found:
        print(_told_of(found))
    else:
        right = f"pieces of 1, 2, 3 and {feeding.T}; room to spare; a batch; padding at the left"
        print(f"✓ cached: right on\n  {right}.")


def _told_of(found):
    if found.name == feeding.NOT_DONE:
        return "○ cached: not done yet (it returns None)."
    if not found.name:
        return told(f"✗ cached: {found.seen}")
    mistake = named(MISTAKES["cached"], found.name)
    return told(f"✗ cached: {mistake.says}", found.seen, mistake.mend)

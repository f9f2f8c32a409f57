"""What chapter 12 says of its sums, its memory and its traffic, computed."""

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib import causal_mask, running_example, trace


def running_trace():
    """The six steps of the running example under a causal mask."""
    example = running_example()
    return trace(example.X, example.params, mask=causal_mask(3))


def scores_of_bark():
    """The scores of *bark* in head 0, divided by ln 2."""
    return running_trace().scores[0, 2] / np.log(2)


def two_orders_end_alike():
    """In both orders of the keys, the numbers after the last key are the same."""
    in_order = printed_under("12_flash_attention", "in this order")
    on_paper = printed_under("12_flash_attention", "as on paper")
    return (in_order[-1] == on_paper[-1]).all()


def first_entry_is_that_of_chapter_06():
    """The first entry of the output, from blocks of two, is the one that chapter 06 printed."""
    expected = printed_under("06_output_projection", "row 0 of concat times row 0 of sampled")
    return printed_under("12_flash_attention", "Y[0, 0]") == expected


def a_billion_scores_against_some_fifty_thousand_entries():
    """For a long sequence, a table has a billion entries and tiles some fifty thousand."""
    table, _, tiles = printed_under("12_flash_attention", "entries at T = 32,768")
    return table // 10**9 == 1 and tiles // 10**4 == 5


def one_pass_has_a_sixth_more_arithmetic():
    """In one pass, forward and backward have about a sixth more flop than the textbook."""
    textbook, one_pass = printed_under("12_flash_attention", "billion flop, forward and backward")
    return round(textbook / (one_pass - textbook)) == 6


def all_blocks_but_the_smallest_have_less_traffic():
    """Blocks of 64 and more move fewer entries than the textbook, and blocks of 16 more."""
    textbook = printed_under("12_flash_attention", "million entries, textbook")
    smallest, *others = printed_under("12_flash_attention", "million entries, one pass, blocks of")
    return smallest >= textbook > max(others)

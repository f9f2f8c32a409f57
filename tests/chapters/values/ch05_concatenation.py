"""What chapter 05 says of its two sentences."""

from tests.chapters.named import printed_under


def second_sentence_is_larger_by():
    """Each number of the second sentence is larger than that of the first by this."""
    row = printed_under("05_concatenation", "its first row")
    (difference,) = set(row[4:] - row[:4])
    return difference

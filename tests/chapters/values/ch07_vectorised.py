"""What chapter 07 says of its counts of flop and of its measured times."""

from tests.chapters.named import printed_under

PAGE = "07_vectorised"


def _column(index):
    """Return a column of the table of all forms: ms, PyTorch = 1, MiB."""
    return printed_under(f"{PAGE} 07-61", "four sequences, one core")[:, index]


def tenths_of_the_time_of_by_broadcasting():
    """Tuned, in blocks, a layer takes so many tenths of the time of all heads at once."""
    time_ms = _column(0)
    return 10 * time_ms[4] / time_ms[1]


def memory_of_by_broadcasting_over_by_loop():
    """All heads at once hold so many times the memory of one head after the other."""
    by_loop, by_broadcasting = _column(2)[:2]
    return by_broadcasting / by_loop


def flop_of_a_projection_by_its_formula():
    """Each of the four projections takes so many times B · T · d_model² flop."""
    B, T, d_model, _ = printed_under(PAGE, "four sequences")
    projections = printed_under(PAGE, "billion flop")[0] * 10**9
    return projections / (4 * B * T * d_model**2)


def flop_of_scoring_by_its_formula():
    """Scoring, and mixing, takes so many times B · T² · d_model flop."""
    B, T, d_model, _ = printed_under(PAGE, "four sequences")
    both = printed_under(PAGE, "billion flop")[1] * 10**9
    return both / (2 * B * T**2 * d_model)


def tenths_of_the_time_of_all_steps():
    """In blocks, the steps that Look draws together take so many tenths of those of the first."""
    first, _, in_blocks = printed_under(PAGE, "together, ms")
    return 10 * in_blocks / first

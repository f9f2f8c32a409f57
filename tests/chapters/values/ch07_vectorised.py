"""What chapter 07 says of its counts of flop and of its measured times."""

from tests.chapters.named import printed_under

PAGE = "07_vectorised"


def tenths_of_the_time_of_by_broadcasting():
    """Tuned, in blocks, a layer takes so many tenths of the time of all heads at once."""
    time_ms = printed_under(f"{PAGE} 07-61", "four sequences, one core")[:, 0]
    return 10 * time_ms[4] / time_ms[1]


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

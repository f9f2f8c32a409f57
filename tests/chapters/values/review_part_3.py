"""What the review of Part III says of its check, computed."""

from tutorial_lib.practice.review_part_3.checks import MISTAKES


def ways_to_go_wrong():
    """The number of mistakes that the check names."""
    return len(MISTAKES["step_by_card"])

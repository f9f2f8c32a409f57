"""What the review of Part I says of its check, computed."""

from tutorial_lib.practice.review_part_1.checks import MISTAKES


def ways_to_go_wrong():
    """The number of mistakes that the check names."""
    return len(MISTAKES["layer_from_memory"])

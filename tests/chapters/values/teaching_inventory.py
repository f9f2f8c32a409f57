"""What the page of the inventory says of chance."""

import re

from tests.chapters.named import read


def right_by_chance_and_questions():
    """With four options a question, chance answers a quarter of the questions rightly."""
    questions = len(re.findall(r"^\*\*\d+\.\*\*", read("book/teaching_inventory.md"), re.MULTILINE))
    return [questions / 4, questions]

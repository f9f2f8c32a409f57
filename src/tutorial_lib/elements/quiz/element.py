"""The quiz: the questions of a page, one below the other."""

from tutorial_lib.elements.banks import load_bank
from tutorial_lib.elements.choice import choice, plain_choice, read_again
from tutorial_lib.elements.markup import Element, inline, region, text_of, wrap


def quiz(chapter):
    """Show the questions that end a chapter, or those of a review.

    Parameters
    ----------
    chapter : name of the page, such as "03_attention_weights" or "review_part_1"

    Raises
    ------
    ValueError : no such page, or a malformed bank
    """
    return draw_quiz(load_bank(chapter), chapter)


def draw_quiz(bank, chapter, state=None):
    """Draw the quiz of a bank that `check_bank` accepts.

    Parameters
    ----------
    state : {question: {"picked": an option, "told": .., "first": the first answer}}, by their texts
    """
    name, questions = f"tl-{chapter}-quiz", bank["quiz"]
    states = [(state or {}).get(text_of(inline(one["question"])), {}) for one in questions]
    html, text = [], ["Quiz"]
    for i, (question, answered) in enumerate(zip(questions, states, strict=True), start=1):
        html.append(choice(f"{i}.", question, f"{name}-{i}", ["Check"], answered))
        text.append(plain_choice(f"{i}.", question))
    page = wrap("quiz", name, "Quiz", [*html, region(_score(questions, states))])
    return Element(page, "\n\n".join(text))


def _score(questions, states):
    """Count what is answered, and at the end what was right at once; say what to read again."""
    first = [state.get("first") for state in states]
    of, done = len(questions), len(questions) - first.count(None)
    if done < of:
        return f"{done} of {of} answered." if done else ""
    options = [option for question in questions for option in question["options"]]
    right = [text_of(inline(option["text"])) for option in options if option["correct"]]
    missed = [questions[i] for i in range(of) if first[i] != right[i]]
    links = "; ".join(dict.fromkeys(map(read_again, missed)))
    again = f" Read again: {links}" if links else ""
    return f"{of - len(missed)} of {of} right at the first try.{again}"

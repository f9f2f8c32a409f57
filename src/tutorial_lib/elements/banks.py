"""The bank of questions of a page: read it, and say which key is wrong in a malformed one.

The policy of the book (how many questions a chapter has, how many a review, …) is a test's
business; here is what the elements need in order to be drawn.
"""

from fractions import Fraction

from tutorial_lib import records


def load_bank(chapter):
    """Read the bank of a page, such as "03_attention_weights" or "review_part_1", and check it.

    Raises
    ------
    ValueError : no bank of that name, or a malformed one
    """
    return check_bank(records.question_bank(chapter), chapter)


def check_bank(bank, chapter):
    """Return a bank that can be drawn; refuse any other, naming the key that is wrong.

    A page without a Parsons problem has `"parsons": null`. A question of a quiz names in `"read"`
    the heading to read again, on the page that it is from. A question may say `"computed": "name"`,
    the function that proves its key, or what a cell prints; a test reads it, no page shows it.

    Raises
    ------
    ValueError : a key that is missing, unknown, or holds something else than it should
    """
    where = f"bank {chapter}"
    _keys(bank, ("predictions", "quiz", "parsons"), where)
    for here, prediction in _items(bank, "predictions", where):
        _check_prediction(prediction, here)
    for here, question in _items(bank, "quiz", where):
        _keys(question, ("question", "from", "read", "options"), here, may=("computed",))
        _text(question, "question", here)
        _text(question, "read", here)
        if question["from"] is not None:
            _text(question, "from", here)
        _check_options(question, here)
    if bank["parsons"] is not None:
        _check_parsons(bank["parsons"], f"{where}.parsons")
    return bank


def as_number(value):
    """The float that a bank writes as a number or as a fraction such as "4/7".

    Raises
    ------
    ValueError : anything else
    """
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(Fraction(value))
        except (ValueError, ZeroDivisionError, OverflowError):
            pass
    raise ValueError(f'{value!r} is not a number. Write 0.25 or "1/4".')


def _check_prediction(prediction, where):
    if isinstance(prediction, dict) and "options" in prediction:
        _keys(prediction, ("question", "options"), where, may=("computed",))
        _check_options(prediction, where)
    else:
        expected = ("question", "answer", "tolerance", "why", "near")
        _keys(prediction, expected, where, may=("computed",))
        _text(prediction, "why", where)
        _check_values(prediction, where)
    _text(prediction, "question", where)


def _check_values(prediction, where):
    answer = _number(prediction, "answer", where)
    tolerance = _number(prediction, "tolerance", where)
    if tolerance < 0:
        raise ValueError(f"{where}.tolerance is {tolerance}; it should be 0 or more.")
    taken = [answer]
    for here, near in _items(prediction, "near", where):
        _keys(near, ("value", "why"), here)
        _text(near, "why", here)
        value = _number(near, "value", here)
        if any(abs(value - other) <= 2 * tolerance for other in taken):
            raise ValueError(
                f"{here}.value, {value}, is within twice the tolerance {tolerance} of another "
                "value. One answer would have two reasons: keep them apart."
            )
        taken.append(value)


def _check_options(question, where):
    options = _items(question, "options", where)
    for here, option in options:
        _keys(option, ("text", "correct", "why"), here)
        _text(option, "text", here)
        _text(option, "why", here)
        if not isinstance(option["correct"], bool):
            raise ValueError(f"{here}.correct is {option['correct']!r}; write true or false.")
    right = sum(option["correct"] for _, option in options)
    if right != 1:
        raise ValueError(f"{where}.options has {right} correct options; it should have one.")
    texts = [option["text"] for _, option in options]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{where}.options says the same thing twice: {texts}.")


def _check_parsons(problem, where):
    _keys(problem, ("task", "lines", "distractors"), where)
    _text(problem, "task", where)
    lines = problem["lines"]
    if not isinstance(lines, list) or not all(isinstance(s, str) and s.strip() for s in lines):
        raise ValueError(f"{where}.lines is {lines!r}; it should be a list of lines of code.")
    if len(set(lines)) < 3:
        raise ValueError(f"{where}.lines has {len(set(lines))} different lines; 3 make an order.")
    for here, distractor in _items(problem, "distractors", where):
        _keys(distractor, ("line", "why"), here)
        _text(distractor, "line", here)
        _text(distractor, "why", here)
        if distractor["line"] in lines:
            raise ValueError(f"{here}.line, {distractor['line']!r}, is a line of the solution.")


def _keys(record, expected, where, *, may=()):
    """Require an object with exactly these keys, and those that it may have."""
    if not isinstance(record, dict):
        raise ValueError(f"{where} is {record!r}; it should be an object with {list(expected)}.")
    for key in expected:
        if key not in record:
            raise ValueError(f"{where}.{key} is missing. The keys are {list(expected)}.")
    for key in record:
        if key not in (*expected, *may):
            raise ValueError(f"{where}.{key} is not a key. The keys are {[*expected, *may]}.")


def _text(record, key, where):
    value = record[key]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}.{key} is {value!r}; it should be a text.")


def _number(record, key, where):
    try:
        return as_number(record[key])
    except ValueError as error:
        raise ValueError(f"{where}.{key}: {error}") from None


def _items(record, key, where):
    """The entries of a list, each with the words that say where it stands."""
    if not isinstance(record[key], list):
        raise ValueError(f"{where}.{key} is {record[key]!r}; it should be a list.")
    return [(f"{where}.{key}[{i}]", entry) for i, entry in enumerate(record[key])]

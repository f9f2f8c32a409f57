"""The key of a question is what a function computes: flipped, or its text changed, it is red.

A question of a bank says `"computed": "name"` below its question, one of the inventory
`<!-- computed: name -->` at the end of its line of the key. The function stands in the module of
that room in `answers/` and returns one of
- a value, such as a number, a shape or the beginning of an option; one option alone may say it;
- a list: of each option, in the order of the bank, whether a computation found it true.
It takes no arguments, or the texts of the options, where these are code that it runs.
What a cell of the chapter prints is named as in the text, the cell first: `02-10 'key of bark'[3]`.
"""

import ast
import inspect
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.chapters.named import PRINTED, Missing, value_of
from tests.chapters.pages import code_cells, listed, printed, written
from tests.chapters.prose_numbers import TUPLE, bare, numbers, settings
from tests.elements.sample_bank import sample_bank
from tests.practice.rooms import NAMES
from tutorial_lib.elements.banks import as_number
from tutorial_lib.records import page_of_room

ROOT = Path(__file__).resolve().parents[2]
BANK = "src/tutorial_lib/practice/{}/bank.json"
INVENTORY = "book/teaching_inventory.md"
FOLDER = "tests/practice/answers"

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+|/\d+)?"
ROW = rf"(?:About )?[(\[]?({NUMBER}(?:,? {NUMBER})*),?[)\]]?"
PROVED_IN_BANK = "(2, 3, 4)<!-- = split_heads(np.zeros((3, 8)), 2).shape -->"
REST = r"(?: [^\W\d][^\d:;,.·×]*)?(?:[:;,.] .*)?"  # of "16 times, once for each head"


@dataclass(frozen=True)
class Question:
    """Where a question stands, which option is the key, and what computes that.

    A prediction of a number has that number and the wrong ones near it as its options.
    """

    where: str
    room: str
    options: dict
    computed: str | None
    tolerance: float | None = None
    stem: str = ""

    @property
    def is_numeric(self):
        """Whether it asks for a number, or half of its options are numbers, shapes or code."""
        numeric = [bool(numbers_of(text)) or is_code(text) for text in self.options]
        return self.tolerance is not None or 2 * sum(numeric) >= len(numeric)


def bank_questions(room, text):
    """The questions of a bank, given as the text of its file; comments name its numbers."""
    stems = [
        entry["question"] for kind in ("predictions", "quiz") for entry in json.loads(text)[kind]
    ]
    text = re.sub(r"<!--.*?-->", "", text)
    bank = json.loads(text)
    for kind, entries in (("prediction", bank["predictions"]), ("quiz", bank["quiz"])):
        for i, entry in enumerate(entries, start=1):
            before, _, _ = text.partition(json.dumps(entry["question"], ensure_ascii=False))
            place = f"line {before.count(chr(10)) + 1} of its bank"
            options = {option["text"]: option["correct"] for option in entry.get("options", [])}
            if "answer" in entry:
                options = {str(near["value"]): False for near in entry["near"]}
                options[str(entry["answer"])] = True
            tolerance = as_number(entry["tolerance"]) if "answer" in entry else None
            where = f"{page_of_room(room)}, {kind} {i} ({place})"
            yield Question(where, room, options, entry.get("computed"), tolerance, stems.pop(0))


def inventory_questions(text):
    """The questions of the inventory, given as the text of its page."""
    keys = re.findall(r"^\*\*(\d+): ([a-z])\.\*\*(.*)$", text, re.MULTILINE)
    for number, letter, rest in keys:
        before, _, after = text.partition(f"\n**{number}.** ")
        listed = re.findall(r"^\d\. (.+)$", after.partition("\n**")[0], re.MULTILINE)
        options = {option: "abcdefgh"[i] == letter for i, option in enumerate(listed)}
        named = re.search(r"<!-- computed: (\w+) -->$", rest)
        where = f"{INVENTORY}, question {number} (line {before.count(chr(10)) + 2})"
        stem = after.partition("\n\n")[0]
        yield Question(where, "inventory", options, named and named[1], stem=stem)


def numbers_of(text):
    """The numbers that an option begins with, each with half of its last digit; or none."""
    found = re.fullmatch(ROW + REST, unmarked(text))
    written = re.findall(NUMBER, found[1]) if found else []
    return [(float(Fraction(n.replace(",", ""))), half_a_digit(n)) for n in written]


def half_a_digit(number):
    """How far a number may be from what it was rounded from; a fraction is exact."""
    return 0 if "/" in number else 0.5 * 10.0 ** -len(number.partition(".")[2])


def unmarked(text):
    """An option without its marks of code and emphasis, with the signs that Python reads."""
    return re.sub(r"`|(?<![\w)])\*|\*(?![\w(])", "", text).replace("−", "-")


def is_code(text):
    """Whether an option is an expression that does something, or a shape, or two with an arrow."""
    try:
        parts = [ast.parse(part.strip(), mode="eval").body for part in unmarked(text).split("→")]
    except SyntaxError:
        return False
    return all(isinstance(p, ast.Call | ast.Subscript | ast.BinOp | ast.Tuple) for p in parts)


def says(text, value, tolerance=None):
    """Whether an option says a value: its first words, or its numbers as they are rounded."""
    if isinstance(value, str | bool | np.bool_):
        start = re.escape(unmarked(str(value)))
        return re.match(rf"{start}(?:$|[:;,.] )", unmarked(text)) is not None
    numbers, computed = numbers_of(text), np.ravel(value)
    most = np.inf if tolerance is None else tolerance
    return len(numbers) == len(computed) and all(
        abs(x - number) <= min(half, most) + 1e-9 * max(1, abs(number))
        for x, (number, half) in zip(computed, numbers, strict=True)
    )


def complaints(question, answers):
    """What is wrong with the key of a question, a sentence each; `answers` is its module."""
    file, name = f"{FOLDER}/{question.room}.py", question.computed
    if name is None:
        if question.is_numeric:
            yield (
                f"{question.where} has numbers, shapes or code to choose from and no `computed`: "
                f"write a function in {file} that computes the answer, and name it there."
            )
    elif PRINTED.fullmatch(name):
        yield from (f"{question.where}: {fault}." for fault in faults_of_printed(question))
    elif name not in functions(answers):
        yield (
            f"{question.where} says `computed` {name!r}, which is no function of {file}: write "
            "it, or correct the name."
        )
    else:
        function = functions(answers)[name]
        faults = list(constants(function)) or disagreements(question, answer_of(function, question))
        faults = [*faults, *unused(question, source_of(name, answers))]
        yield from (f"{question.where}: {name} in {file} {fault}." for fault in faults)


def faults_of_printed(question):
    """What is wrong with a key that a cell of the chapter prints, as sentences."""
    cells = code_cells(written(page_of_room(question.room)))
    try:
        answer = value_of(question.computed, cells)
    except Missing as missing:
        return [str(missing)]
    [cell] = [cell for cell in cells if question.computed.startswith(f"{cell.id} ")]
    faults = [*disagreements(question, answer), *unused(question, cell.source, printed(cell))]
    return [f"{question.computed} {fault}" for fault in faults]


def functions(answers):
    """The public functions that a module defines."""
    return {
        name: value
        for name, value in vars(answers).items()
        if inspect.isfunction(value)
        and value.__module__ == answers.__name__
        and not name.startswith("_")
    }


def answer_of(function, question):
    """What a function computes, from the texts of the options if it takes an argument."""
    takes_texts = inspect.signature(function).parameters
    return function(list(question.options)) if takes_texts else function()


def constants(function):
    """Where a function writes an answer down in place of computing it."""
    for node in ast.walk(ast.parse(inspect.getsource(function))):
        value = node.value if isinstance(node, ast.Return) else None
        if value and is_bare(value):
            yield f"returns a constant, {ast.unparse(value)}: compute it"
            continue
        verdicts = value.elts if isinstance(value, ast.List) else []
        verdicts = [value.elt] if isinstance(value, ast.ListComp) else verdicts
        for verdict in filter(is_bare, verdicts):
            if isinstance(eval(ast.unparse(verdict)), bool):
                yield f"has a constant, {ast.unparse(verdict)}, in its list: compute it"


def source_of(computed, answers):
    """The source of a module of answers, of its functions only the one that is named."""
    source = inspect.getsource(answers)
    for name, function in functions(answers).items():
        source = source if name == computed else source.replace(inspect.getsource(function), "")
    return source


def unused(question, source, output=""):
    """Which numbers of a question the code that answers it does without, and its output."""
    texts = source, output, *re.findall("<!--(.*?)-->", question.stem)
    known = {abs(n.value) for n in numbers(" ".join(texts))} | settings(source)
    unproved = re.sub(r"(?:[-−]?\d[\d./,]*(?:, | and )?)+[)`$]*(?=<!--)", "", question.stem)
    found = [
        n.text
        for n in numbers(unproved)
        if (n.text[-1].isdigit() or n.value > 2) and abs(n.value) not in known
    ]
    shapes = TUPLE.findall(re.sub(r"(?:\([^()]*\))?`?<!--.*?-->", "", question.stem))
    found += [shape for shape in shapes if bare(shape) not in bare(source)]
    if found:
        yield (
            f"does without {found} of the question: compute with them, a shape written as there, "
            "or prove in the bank those that it does not need, by a comment right behind, such as "
            f"{PROVED_IN_BANK}"
        )


def is_bare(node):
    """Whether an expression has no name in it, so that it is the same whatever is computed."""
    return not any(isinstance(part, ast.Name) for part in ast.walk(node))


def disagreements(question, answer):
    """How a computed answer differs from the key, as the end of a sentence."""
    texts, verdicts = list(question.options), are_verdicts(answer)
    if not verdicts:
        found = [text for text in texts if says(text, answer, question.tolerance)]
    elif len(answer) != len(texts):
        yield f"answers {len(answer)} options of {len(texts)}: answer each, in the bank's order"
        return
    elif not all(isinstance(value, bool | np.bool_) for value in answer):
        yield f"returns {answer}, where each value should be a bool: compare"
        return
    else:
        found = [text for text, is_true in zip(texts, answer, strict=True) if is_true]
    right = [text for text in texts if question.options[text]]
    if found != right:
        result = "" if verdicts else f" computes {answer!r}, which"
        yield (
            f"{result} makes {found} right, and the key is {right}: compute again by hand, then "
            "correct the bank or the function"
        ).strip()


def are_verdicts(answer):
    """Whether an answer says of each option if it is true, and is not the value of one."""
    return isinstance(answer, list) and any(isinstance(v, bool | np.bool_) for v in answer)


def answers_of(room):
    """The module of a room's answers, or an empty one where there is none yet."""
    name = f"{FOLDER.replace('/', '.')}.{room}"
    return import_module(name) if util.find_spec(name) else ModuleType(name)


def read(path):
    """The text of a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


BANKED = {room: list(bank_questions(room, read(BANK.format(room)))) for room in NAMES}
ALL = BANKED | {"inventory": list(inventory_questions(read(INVENTORY)))}
ANSWERS = {room: answers_of(room) for room in ALL}
COMPUTED = [q for questions in ALL.values() for q in questions if q.computed]


def message(faults, room):
    """The message of a failed test."""
    return listed(faults, None if room == "inventory" else page_of_room(room))


@pytest.mark.parametrize("question", COMPUTED, ids=lambda q: f"{q.room}-{q.computed}")
def test_computed_answer_is_the_key(question):
    faults = list(complaints(question, ANSWERS[question.room]))
    assert not faults, message(faults, question.room)


@pytest.mark.parametrize("room", ALL)
def test_question_with_numbers_says_what_computes_its_key(room):
    faults = [fault for q in ALL[room] if not q.computed for fault in complaints(q, ANSWERS[room])]
    assert not faults, message(faults, room)


def unnamed(questions, answers):
    """The functions of a module that none of its questions names."""
    return sorted(set(functions(answers)) - {question.computed for question in questions})


@pytest.mark.parametrize("room", ALL)
def test_every_function_computes_a_key(room):
    left = unnamed(ALL[room], ANSWERS[room])
    assert not left, f"{FOLDER}/{room}.py: no question names {left}; name or remove them."


def test_every_question_of_the_inventory_has_one_key():
    text = read(INVENTORY)
    questions = re.findall(r"^\*\*(\d+)\.\*\* ", text, re.MULTILINE)
    keys = re.findall(r"^\*\*(\d+): [a-z]\.\*\*", text, re.MULTILINE)
    numbers = [str(i + 1) for i in range(len(questions))]
    assert questions == numbers, f"{INVENTORY}: number the questions from 1, not {questions}"
    assert keys == numbers, f"{INVENTORY}: number the key as the questions, not {keys}"
    odd = [question.where for question in ALL["inventory"] if sum(question.options.values()) != 1]
    assert not odd, f"name one of the options as the key of each: {odd}"


RIGHT = """
import numpy as np


def shape():
    Q = K = np.zeros((2, 3, 4))
    return (Q @ K.swapaxes(-1, -2)).shape


def share():
    powers = 2.0 ** np.array([1, -1, 0])
    return powers[0] / powers.sum()


def parameters():
    return sum(np.zeros((4, 16, 16)).size for _ in range(3))


def axis():
    weights = np.array([[0.5, 0.5], [1, 0]])
    return [np.allclose(weights.sum(-1), 1), np.allclose(weights.sum(0), 1), weights.ndim == 3]
"""
NAMED = {("predictions", 0): "shape", ("predictions", 1): "share", ("predictions", 2): "parameters"}
NAMED |= {("quiz", 0): "axis"}


def sample_faults(folder, change=lambda bank: None, source=RIGHT):
    """The complaints about a changed sample bank and the source of its answers."""
    bank = sample_bank()
    for (kind, i), name in NAMED.items():
        bank[kind][i]["computed"] = name
    change(bank)
    (folder / "sample.py").write_text(source, encoding="utf-8")
    spec = util.spec_from_file_location("sample", folder / "sample.py")
    answers = util.module_from_spec(spec)
    spec.loader.exec_module(answers)
    text = json.dumps(bank, indent=2, ensure_ascii=False)
    questions = list(bank_questions("ch03_attention_weights", text))
    return [fault for q in questions for fault in complaints(q, answers)]


def flip(kind, i):
    """A change of a bank: the key of a question moves to the option before it."""

    def change(bank):
        options = bank[kind][i]["options"]
        right = [option["correct"] for option in options].index(True)
        options[right]["correct"], options[right - 1]["correct"] = False, True

    return change


def write(kind, i, **values):
    """A change of a bank: a question gets other values."""
    return lambda bank: bank[kind][i].update(values)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (flip("predictions", 0), "computes (2, 3, 3), which makes ['`(2, 3, 3)`']"),
        (flip("quiz", 0), "makes ['the keys, its last'] right, and the key is"),
        (write("predictions", 1, answer="4/9"), "which makes [] right"),
        (write("predictions", 1, answer=0.571), None),
        (write("predictions", 1, computed=None), "no `computed`: write"),
        (write("quiz", 0, computed=None), None),
        (write("quiz", 0, computed="axes"), "is no function of"),
        (write("predictions", 1, computed="03-24 'weights'[0, 2, 0]"), None),
        (write("predictions", 1, computed="03-24 'weights'[0, 2, 1]"), "which makes [] right"),
        (write("predictions", 1, computed="03-24 'weight'[0, 2, 0]"), "no cell above prints"),
        (write("predictions", 2, question="Of 36 rows, how many?"), "does without ['36']"),
        (write("predictions", 2, question="Of 36<!-- = 6 * 6 --> rows, how many?"), None),
        (write("predictions", 2, question="Of (16, 4), how many?"), "does without ['(16, 4)']"),
    ],
)
def test_key_that_is_not_what_is_computed_is_told(tmp_path, change, complaint):
    faults = sample_faults(tmp_path, change)
    assert len(faults) == (complaint is not None), faults
    assert complaint is None or complaint in faults[0]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("weights.ndim == 3", "False", "has a constant, False, in its list"),
        ("weights.ndim == 3", "weights.ndim - 2", "each value should be a bool"),
        (", weights.ndim == 3", "", "answers 2 options of 3"),
        ("powers[0] / powers.sum()", "4 / 7", "returns a constant, 4 / 7: compute it"),
    ],
)
def test_answer_that_is_not_computed_is_told(tmp_path, old, new, complaint):
    [fault] = sample_faults(tmp_path, source=RIGHT.replace(old, new))
    assert complaint in fault


READ = {
    "(2, 3, 8)": (2, 3, 8),
    "10 11 12 13": np.array([[10, 11], [12, 13]]),
    "(−1, 1/2, 0)": (-1, 0.5, 0),
    "1,048,576": 2**20,
    "16 times, once for each head": 16,
    "About 32": 31.9,
    "0.4: the table outgrows everything": 0.42,
    "64 MiB": 64.0,
    "`concat[4, 15]`": "concat[4, 15]",
    "What *that* hands on": "What that hands on",
    "False: it is a copy": np.bool_(False),
}


@pytest.mark.parametrize(("text", "value"), READ.items(), ids=READ)
def test_option_is_read_as_its_value_and_no_other(text, value):
    assert says(text, value)
    assert not any(says(text, other) for key, other in READ.items() if key != text)


@pytest.mark.parametrize("text", ["8 · d_v, one each", "0.7 and 0.3", "2 by 3", "10⁹", "T² / 2"])
def test_option_that_is_no_plain_value_is_not_read(text):
    assert numbers_of(text) == []


def test_a_flipped_key_of_the_inventory_is_told():
    key = re.search(r"^\*\*(\d+): b\.\*\*(?=.*<!-- computed)", read(INVENTORY), re.MULTILINE)
    flipped = read(INVENTORY).replace(key[0], key[0].replace(": b", ": a"))
    [question] = [q for q in inventory_questions(flipped) if f"question {key[1]} " in q.where]
    [fault] = complaints(question, ANSWERS["inventory"])
    assert "right, and the key is" in fault

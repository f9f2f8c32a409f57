"""The numbers in a text, and what proves each: an equality, or a comment.

A number that carries a measurement (a decimal, three digits or more, a power, a unit), a fraction,
a tuple of whole numbers, and a count of the book's own (chapters, questions, points …) stand in an
equality, which is evaluated, or have a comment right behind them that names their value, as in
`0.583<!-- "mean top weight"[0, 2] -->`, see `named.py`. Several numbers may share a comment, in
their order: `0.31 to 0.45<!-- "low"; "high" -->`. A comment whose value is True states something
without a number. In the reasons of a bank, a number of their own question needs none.

The name of a head, such as 1.2 for head 2 of layer 1, needs no comment; where one behind it gives
names of heads, in any order, it gives these: `heads 1.0 and 1.3<!-- = heads_that_copy() -->`.
"""

import ast
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

from tests.chapters.equalities import PARTS, equalities, false_equalities, formulas
from tests.chapters.named import HEAD, LISTED, Missing, heads_in, is_settled, value_of
from tests.chapters.pages import tags
from tools.minutes import SAID

COMMENT = re.compile(r"<!--(?! computed: )(.*?)-->", re.DOTALL)  # that one names a key's function
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
POWER = r"\s*(?:·|×|\\cdot|\\times)\s*10(?:\^\{?(?P<tex>[-−]?\d+)\}?|(?P<up>[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
MEASURES = (
    r"%|(?:ms|µs|s|bits?|bytes?|[kKMGT]i?B(?:/s)?|[MGT]?flop(?:/s)?|million|billion|thousand)\b"
)
NUMBER = re.compile(
    rf"(?<![\w./^_])(?P<sign>(?<![\d)\]}}])[-−])?"
    rf"(?:(?P<top>\d+)/(?P<bottom>\d+)|(?P<whole>\d*)(?P<part>[{''.join(PARTS)}])"
    rf"|(?P<base>\d+)(?:\^\{{?(?P<power>[-−]?\d+)\}}?|(?P<high>[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
    rf"|(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d*\.\d+|\d+)(?:e(?P<exp>[-+]?\d+)|{POWER})?)"
    rf"(?:\s?(?P<unit>{MEASURES}))?(?![\w/]|\.\d|,\d{{3}})"
)
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
WORDS = (
    {"hundred": 100}
    | {word: n for n, word in enumerate(UNITS.split())}
    | {word: 10 * n for n, word in enumerate(TENS, start=2)}
)
WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
COUNTED = re.compile(
    r"[\s[]+(?:[a-z]+ )?(?:chapters|questions|predictions|points|assignments|hand-ins)\b"
)
SCALES = {"%": 0.01, "thousand": 1e3, "million": 1e6, "billion": 1e9}
TUPLE = re.compile(r"\([-−]?\d+(?:,\s?[-−]?\d+)+\)")
AT_MOST = re.compile(r"\b(?:less than|fewer than|under|below|at most|up to|within)\s*$", re.I)
AT_LEAST = re.compile(r"\b(?:more than|over|above|at least)\s*$", re.I)
ROUGHLY = re.compile(r"(?:\b(?:about|around|nearly|roughly|some|almost)|≈)\s*$", re.I)

EXAMPLE = "of an example"
IS_HEAD = "the name of a head"

WORDS_SHOWN = 8  # of the text, before and with a number that is wrong

FENCE = re.compile(
    r"^(?P<ticks>```+|~~~+)(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
DRAWING = re.compile(rf"<!--(?:(?!-->).)*-->\s*\n(?={FENCE.pattern})", FENCE.flags)
CODE = re.compile(r"(`+)(?P<code>.+?)\1", re.DOTALL)
TARGET = re.compile(r"\]\((?P<target>[^)\s]+)[^)]*\)")
TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|^\([\w-]+\)=$|^\s*\d+\.\s", re.MULTILINE)
YEAR = re.compile(
    r"\((?:[^()]*[\s,])?(?:19|20)\d\d[a-z]?\)|\bal\.,? (?:19|20)\d\d\b"
    r"|(?:19|20)\d\d[a-z]?(?=\]\(https://)|\b(?:19|20)\d\d-\d\d-\d\d\b"
)
ISSUE = re.compile(
    r"\b(?:issue|pull request) (?P<number>\d+)"
    r"(?=\]\(https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/(?P=number)\))"
)
# Pages whose blocks of text another test compares: test_symptoms.py, test_page.py, test_jax.py.
WITH_BLOCKS = ("symptoms", "probe", "jax")
PLACE = re.compile(
    r"\b(?:section|table|figure|theorem|chapter|round|exercise|prediction|step|token|place)s?"
    r" (?!\d{3})\d[\d.]*(?:(?:,| and| to| or) \d[\d.]*)*",  # step 141 is measured
    re.IGNORECASE,
)
BLOCK = re.compile(
    r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|\||#+|>|:) )|\n(?=\|)|(?=</?(?:summary|details)>)"
)


@dataclass(frozen=True)
class Number:
    """A number as written, where it stands, its value, and half of the last digit's place."""

    text: str
    start: int
    end: int
    value: float
    half_place: float
    unit: str = ""
    needs: str = ""  # why it needs a source

    def is_given_by(self, value, before="", named=""):
        """Whether a value gives the number, as the words before it say: about, at most …

        12 billion is given by 12 if what names it has the word billion too, and 40 % by 0.4 or 40.
        """
        if isinstance(value, str):
            return value == self.text or value.startswith(f"{self.text}.")
        scale, value = SCALES.get(self.unit, 1.0), float(value)
        plain = scale < 1 or scale == 1 or self.unit in named
        return self._fits(value, scale, before) or (plain and self._fits(value, 1.0, before))

    def _fits(self, value, scale, before):
        number, slack = self.value * scale, 1e-9 * abs(self.value) * scale
        if AT_MOST.search(before):
            return number / 2 <= value <= number + slack
        if AT_LEAST.search(before):
            return number - slack <= value <= 2 * number
        half = self.half_place * scale
        if ROUGHLY.search(before) and (zeros := re.search(r"(?<=[1-9]),?0[0,]*$", self.text)):
            half *= 10 ** zeros[0].count("0")
        return abs(number - value) <= half + slack


@dataclass
class Passage:
    """A text, where it stands, and what its page gives.

    Parameters
    ----------
    text : Markdown
    where : such as "03_attention_weights, cell 03-47" or "book/teaching.md"
    cells : the code cells above, whose printed values a comment may name
    page : its name, such as "03_attention_weights" or "teaching", whose module of values is asked
    code : all code cells of the chapter
    given : the code that computes the answers of the inventory
    asked : of a bank's reason, the question with its answer, whose numbers need no second proof
    """

    text: str
    where: str
    cells: list = field(default_factory=list)
    page: str | None = None
    code: list = field(default_factory=list)
    given: str = ""
    asked: str = ""


def faults(passage):
    """Return a sentence for each number of a passage that nothing proves, and why."""
    text = _plain(passage.text)
    found = [*false_equalities(COMMENT.sub("", text)), *_fences(passage, text)]
    text, start = FENCE.sub(_blank, DRAWING.sub(" ", text)), 0  # a fence may hold empty lines
    for end in [*(match.start() for match in BLOCK.finditer(text)), len(text)]:
        found += _block(passage, text[start:end])
        start = end
    return [f"{passage.where}: {fault}" for fault in found]


def _plain(text):
    """Return a text in which fractions of TeX and commas in numbers are plain."""
    text = re.sub(r"\\[td]?frac\s*(\d)\s*(\d)(?!\d)", r" \1/\2", text.replace("{,}", ","))
    return re.sub(r"\\[td]?frac\{(\d+)\}\{(\d+)\}", r" \1/\2", text)


def numbers(text):
    """Return the numbers of a text, in figures and in words, outside code, links and citations."""
    prose = _prose(text)
    # The minutes of a Goal are held by the order of its page.
    for pattern in (PLACE, SAID):
        prose = pattern.sub(_blank, prose)
    heads = [n for found in LISTED.finditer(prose) for n in range(*found.span())]
    figures = [_number(match, prose, heads) for match in NUMBER.finditer(prose)]
    words = [_word(match, prose) for match in WORD.finditer(prose)]
    return sorted([*figures, *words], key=lambda number: number.start)


def _prose(text):
    """Return a text with spaces for comments, code, links and citations."""
    for pattern in (FENCE, COMMENT, YEAR, ISSUE, TARGET, CODE, TAG):
        text = pattern.sub(_blank, text)
    return text


def _blank(match):
    """Return spaces, as many as there were signs; numbers in code stay, and what MyST reads."""
    parts = match.groupdict()
    if (parts.get("kind") or "").startswith("{"):
        return parts["body"].rjust(len(match[0]))
    code = parts.get("code") or ""
    if TUPLE.fullmatch(code) or re.fullmatch(r"[-−]?[\d,]*\.?\d+(?:e[-+]?\d+)?", code):
        return match[0].replace("`", " ")
    return " " * len(match[0])


def _number(match, prose, heads):
    value, half_place, plain = _read(match)
    needs = "measured" * (not plain or bool(match["unit"]))
    if match.start() in heads:
        needs = IS_HEAD
    if match["top"] or match["part"]:
        needs = "a fraction"
    if not needs and value > 2 and COUNTED.match(prose, match.end()):
        needs = "a count of the book's own"
    return Number(
        text=match[0].split(match["unit"])[0].strip() if match["unit"] else match[0],
        start=match.start(),
        end=match.end(),
        value=-value if match["sign"] else value,
        half_place=half_place,
        unit=match["unit"] or "",
        needs=needs,
    )


def _read(match):
    """Return a number's value, half of its last place, and whether it has one or two digits."""
    if match["top"]:
        return int(match["top"]) / max(int(match["bottom"]), 1), 0, False
    if match["part"]:
        top, bottom = PARTS[match["part"]].strip("()").split("/")
        return int(match["whole"] or 0) + int(top) / int(bottom), 0, False
    raised = (match["up"] or match["high"] or "").translate(SUPERSCRIPTS)
    exponent = match["exp"] or match["tex"] or match["power"] or raised
    exponent = int(str(exponent).replace("−", "-") or 0)
    if match["base"]:
        return float(match["base"]) ** exponent, 0, False
    digits = match["digits"].replace(",", "")
    places = len(digits.partition(".")[2])
    plain = len(digits.strip("0.")) < 3 and len(digits) < 3 and not exponent
    return float(digits) * 10.0**exponent, 0.5 * 10.0 ** (exponent - places), plain


def _word(match, prose):
    value = WORDS[match[0].lower()]
    counted = value > 2 and COUNTED.match(prose, match.end())
    needs = "a count of the book's own" if counted else ""
    return Number(match[0], match.start(), match.end(), value, 0.5, needs=needs)


def _block(passage, block):
    """Return the faults of one paragraph, list item or row of a table."""
    here, proved, at = numbers(block), set(), 0
    for comment in COMMENT.finditer(block):
        before = [number for number in here if at <= number.start < comment.start()]
        at = comment.end()
        if comment[1].strip() == EXAMPLE:
            continue
        try:
            found = [
                (reference, _value(reference, passage, block[: comment.start()]))
                for reference in map(str.strip, comment[1].split(";"))
            ]
        except Missing as missing:
            yield str(missing)
            proved |= {number.start for number in before[-1:]}
            continue
        heads, wrong_heads = _compared_heads(comment, before, found)
        bound, wrong_numbers = _compared_numbers(block, comment, before, found)
        proved |= {number.start for number in (*heads, *bound)}
        yield from (*wrong_heads, *wrong_numbers)
    named = re.findall(rf"(?<![\d.]){HEAD}", " ".join(COMMENT.findall(block)))
    left = [n for n in here if n.start not in proved and n.needs != IS_HEAD]
    yield from _unproved(passage, block, [n for n in left if n.text not in named])


def _compared_numbers(block, comment, before, found):
    """Return the numbers that a comment gives, and a sentence for each that is another one."""
    values = [(each, ref) for ref, value in found if not heads_in(value) for each in _flat(value)]
    before = [number for number in before if number.needs != IS_HEAD]
    faults, bound = [], before[len(before) - len(values) :] if values else []
    if len(bound) < len(values):
        faults.append(f"{comment[0]} names {len(values)} numbers; {len(before)} stand before it")
    for number, (value, reference) in zip(bound, values, strict=False):
        said = block[: number.start]
        if reference.startswith("quoted:") and not ROUGHLY.search(said):
            said = ""  # a limit is quoted as its source has it
        if not number.is_given_by(value, said, comment[1]):
            faults.append(_differs(block[: number.end], number, value, reference))
    return bound, faults


def _compared_heads(comment, before, found):
    """Return the names of heads that a comment gives, and a sentence if they are others."""
    given = [head for _, value in found for head in heads_in(value)]
    bound = [number for number in before if re.fullmatch(HEAD, number.text)][-len(given) :]
    said = [name.text for name in bound] if given else []
    if sorted(said) == sorted(given):
        return bound if given else [], []
    shown = f"<!-- {comment[1].strip()} --> gives {', '.join(given)}"
    mend = "correct the names, or, if they are right, the comment or what it names"
    return bound, [f"the text names {', '.join(said) or 'none'}, but {shown}: {mend}"]


def _differs(before, number, value, reference):
    """Return a sentence on a number that is another one by its reference, and how to mend it.

    The number is shown with the words before it, by which an editor finds it.
    """
    value = value if isinstance(value, str) else f"{float(value):.6g}"
    mend = "write that number"
    if not is_settled(reference):
        mend += ", or, if the text is right, correct the comment or what it names"
    words = re.split(r"-->|\n", before)[-1].split(" ")
    said = " ".join(words[-WORDS_SHOWN:]).strip()
    return (
        f"the text says {number.text} in “{said}”, but <!-- {reference} --> gives {value}: {mend}"
    )


def _value(reference, passage, before):
    """Return what a reference names, an empty list for what is True."""
    value = value_of(reference, passage.cells, passage.page, passage.code)
    if isinstance(value, dict) and "value" in value:  # quoted, so its source is linked
        if value["source"] not in passage.text:
            raise Missing(f"{reference} is of {value['source']}: link it beside the number")
        value = value["value"]
    if isinstance(value, bool | np.bool_):
        if not value:
            sentence = re.split(r"(?<=[.:;!?])\s+", COMMENT.sub("", before).strip())[-1]
            raise Missing(
                f"the text says {sentence!r}, but <!-- {reference} --> is not true: correct "
                f"the sentence, or, if it is right, the comment or what it names"
            )
        return []
    return value


def _flat(value):
    """Return the numbers of a value: several for a row, else one."""
    if isinstance(value, np.ndarray | list | tuple):
        flat = list(np.asarray(value, dtype=object).ravel())
        if all(isinstance(each, str | int | float | Fraction | np.number) for each in flat):
            return flat
    return [value if np.isscalar(value) or isinstance(value, Fraction) else len(value)]


def _unproved(passage, block, left):
    """Return a sentence for each number that needs a source and has none."""
    sides = _sides(block)
    proved = {abs(each.value) for side in sides for each in numbers(side)}
    proved |= settings(passage.given) | {abs(each.value) for each in numbers(passage.asked)}
    for number in left:
        shown = number.needs in ("measured", "a fraction") and abs(number.value) in proved
        if number.needs and not shown:
            yield f"{number.text} is {number.needs}, and nothing says where it comes from: {MEND}"
    known = bare("".join(sides) + passage.given + passage.asked)
    for match in TUPLE.finditer(CODE.sub(_blank, COMMENT.sub(_blank, block))):
        open_ends = [n for n in left if match.start() < n.start < match.end()]
        if open_ends and bare(match[0]) not in known:
            yield f"{match[0]} is in no equality, and nothing says where it comes from: {MEND}"


MEND = 'write <!-- "label"[i] -->, <!-- record:path --> or <!-- = expression --> right behind it, '
MEND += "<!-- code:name --> if a task sets it, or words in its place"


def bare(text):
    """Return a text without spaces, its minus signs plain."""
    return re.sub(r"\s", "", text).replace("−", "-")


def _sides(block):
    """Return the sides of all equalities of a block, without spaces."""
    text = COMMENT.sub("", block)
    pairs = [(left, right) for left, _, right, *_ in (*equalities(text), *formulas(text))]
    sides = [re.sub(r"\s", "", side) for pair in pairs for side in pair]
    return [re.sub(r"\(\((\d+)\)/\((\d+)\)\)", r"\1/\2", side) + ";" for side in sides]


@cache
def settings(source):
    """Return the numbers that stand in code, outside strings."""
    values = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    return {float(value) for value in values if type(value) in (int, float)}


def _fences(passage, text):
    """Refuse a block that looks like an output and is none."""
    for fence in FENCE.finditer(text):
        kind, body = fence["kind"].strip(), fence["body"]
        if kind.startswith("{") or kind in COMMANDS or (kind == "python" and _is_code(body)):
            continue
        if kind == "text" and passage.page in WITH_BLOCKS:
            continue
        drawn = re.search(r"<!--\s*(=[^>]*?)-->\s*$", text[: fence.start()])
        if drawn is None:
            yield f"the block {body[:30]!r} looks like an output: show it by a cell, or {DRAW}"
        elif _drawn(drawn[1].strip(), passage.page) != body.split():
            yield f"the block {body[:30]!r} is not what {drawn[1].strip()} gives: {DRAW}"


COMMANDS = ("sh", "powershell", "yaml")
DRAW = "write <!-- = an array --> above it"


def _drawn(reference, page):
    try:
        drawn = np.asarray(value_of(reference, [], page)).ravel()
        return ["✓" if entry else "·" for entry in drawn]
    except Missing:
        return None


def _is_code(body):
    """Whether a text is Python that does something, and no value."""
    try:
        statements = ast.parse(body).body
    except SyntaxError:
        return False
    return any(not isinstance(each, ast.Expr) for each in statements)


def chapter_passages(name, notebook):
    """Yield each Markdown cell of a chapter with what stands above it."""
    code = [c for c in notebook.cells if c.cell_type == "code" and "remove-input" not in tags(c)]
    above = []
    for cell in notebook.cells:
        if cell in code:
            above.append(cell)
        elif cell.cell_type == "markdown":
            yield Passage(cell.source, f"{name}, cell {cell.get('id')}", [*above], name, code)

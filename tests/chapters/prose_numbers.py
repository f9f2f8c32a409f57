"""The numbers in a chapter's prose, and where each comes from.

A decimal, or an integer of three digits or more, is accepted when an output above it in the same
chapter gives it by rounding, when its sentence or table row has a link to a source, or when it is
a year of a citation. Everything else needs an entry in `reviewed_numbers.json`.
"""

import ast
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from tests.chapters.pages import REPOSITORY, printed, tags

REVIEWED = json.loads((Path(__file__).parent / "reviewed_numbers.json").read_text(encoding="utf-8"))

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
POWER = r"\s*(?:·|×|\\cdot|\\times)\s*10(?:\^\{?(?P<tex>[-−]?\d+)\}?|(?P<up>[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
NUMBER = re.compile(
    rf"(?<![\w./^_])(?P<sign>(?<![\d)\]}}])[-−])?"
    rf"(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d*\.\d+|\d+)"
    rf"(?:e(?P<exp>[-+]?\d+)|{POWER})?"
    r"(?P<unit>\s?%|\s?(?:million|billion|thousand|[kKMGB])\b)?"
    r"(?!\d|/\d|\.\d|,\d{3})"
)
SCALES = {"%": 0.01, "k": 1e3, "K": 1e3, "thousand": 1e3, "M": 1e6, "million": 1e6}
SCALES |= {"G": 1e9, "B": 1e9, "billion": 1e9}

FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>")
SENTENCE_END = re.compile(r"(?<=[.!?])[)*_\"”’]*\s+(?=[A-ZÀ-Ý*_\"“‘`$\d])")
ABBREVIATION = re.compile(r"(?:\b(?:al|e\.g|i\.e|cf|vs|Fig|Eq|sec|ch|No|approx)|(?:^|\n)\s*\d+)\.$")
YEAR = re.compile(r"\((?:[^()]*[\s,])?(?:19|20)\d\d[a-z]?\)|\bal\.,? (?:19|20)\d\d\b")
BLOCK = re.compile(
    r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|\||#+|>) )|\n(?=\|)|(?=</?(?:summary|details)>)"
)
FRACTION = re.compile(r"(?<![\w.])([-−]?)(\d+)/(\d+)(?![\w.])")


@dataclass(frozen=True)
class Number:
    """A number as written, its value, and half of the last digit's place."""

    text: str
    value: float
    half_place: float
    scales: tuple = (1.0,)
    signed: bool = False

    def is_given_by(self, output):
        """Whether rounding this value from an output gives the number; a sign must agree."""
        if not self.signed:
            output = abs(output)
        slack = 1e-9 * max(1.0, abs(self.value))
        return any(
            abs(self.value * scale - output) <= self.half_place * scale + slack * scale
            for scale in self.scales
        )


def numbers(text):
    """Return every number in a text, integers and fractions among them."""
    found = []
    for match in NUMBER.finditer(text):
        digits = match["digits"].replace(",", "")
        places = len(digits.partition(".")[2])
        exponent = match["exp"] or match["tex"] or (match["up"] or "").translate(SUPERSCRIPTS)
        factor = 10.0 ** int(exponent.replace("−", "-") or 0)
        scale = SCALES.get((match["unit"] or "").strip())
        found.append(
            Number(
                text=match[0].strip(),
                value=float(digits) * factor * (-1 if match["sign"] else 1),
                half_place=0.5 * 10.0**-places * factor,
                scales=(1.0, scale) if scale else (1.0,),
                signed=bool(match["sign"]),
            )
        )
    return found


def needs_source(number):
    """Whether it is a decimal, or an integer of three digits or more."""
    mantissa = re.split(r"e|·|×|\\", number.text)[0]
    return "." in mantissa or len(re.sub(r"\D", "", mantissa)) >= 3 or mantissa != number.text


def output_values(text):
    """Return the values of all numbers and fractions in an output."""
    fractions = [
        (-1 if sign else 1) * int(top) / int(bottom)
        for sign, top, bottom in FRACTION.findall(text)
        if int(bottom)
    ]
    return [number.value for number in numbers(text) if math.isfinite(number.value)] + fractions


def sentences(markdown):
    """Cut Markdown into (sentence or table row, whether it has a link to a source)."""
    text = FENCE.sub("\n\n", markdown).replace("{,}", ",")
    for block in BLOCK.split(text):
        for piece in [block] if block.lstrip().startswith("|") else _split(block):
            cited = any(_is_source(target) for _, target in LINK.findall(piece))
            yield _prose(piece), cited


def _split(block):
    pieces, start = [], 0
    for match in SENTENCE_END.finditer(block):
        if not ABBREVIATION.search(block[start : match.start()].rstrip(')*_"”’')):
            pieces.append(block[start : match.start()])
            start = match.end()
    return [*pieces, block[start:]]


def _is_source(target):
    ours = target.startswith((REPOSITORY, "https://colab."))
    return target.startswith("https://") and not ours


def _prose(piece):
    piece = LINK.sub(r"\1", piece)
    piece = INLINE_CODE.sub(lambda match: match[2] if _is_plain_number(match[2]) else " ", piece)
    return YEAR.sub(" ", TAG.sub(" ", piece))


def _is_plain_number(code):
    try:
        return isinstance(ast.literal_eval(code.strip()), int | float)
    except (ValueError, SyntaxError):
        return False


def unsupported(notebook):
    """Return (cell id, number, sentence) for each number that nothing above it gives."""
    above, found = [], []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if "remove-input" not in tags(cell):
                above += output_values(printed(cell))
            continue
        for sentence, cited in sentences(cell.source):
            for number in numbers(sentence):
                given = cited or any(number.is_given_by(value) for value in above)
                if needs_source(number) and not given:
                    found.append((cell.get("id"), number.text, " ".join(sentence.split())))
    return found


def faults(name, notebook, reviewed=None):
    """List the numbers of a chapter without a source, and the reviewed entries without use."""
    entries = [e for e in (REVIEWED if reviewed is None else reviewed) if e["chapter"] == name]
    accepted = {entry["number"] for entry in entries if entry["reason"].strip()}
    missing = unsupported(notebook)
    used = {number for _, number, _ in missing}
    return [
        *(
            f"cell {cell}: {number} is in no output above: {sentence[:160]}"
            for cell, number, sentence in missing
            if number not in accepted
        ),
        *(
            f"the reviewed {entry['number']} is not needed, or has no reason"
            for entry in entries
            if entry["number"] not in used or not entry["reason"].strip()
        ),
    ]

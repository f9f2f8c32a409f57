"""What a probe found, for people and for programs, and the names of mistakes.

names.csv holds mistakes. Such a name is given only where two witnesses agree: what was seen first,
and one prediction that this mistake makes and its like do not. With the first alone, a report lists
it as what would show this, too. places.csv holds names that say where something is wrong, and no
more. The page on the probe prints both tables.
"""

import csv
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import NamedTuple

from tutorial_lib.probe.dependence import draw
from tutorial_lib.probe.subject import Undecidable


class Name(NamedTuple):
    """A mistake, or its place: what is wrong, where the book explains it, what only it predicts."""

    meaning: str
    section: str
    witness: str


def _names(table):
    text = files("tutorial_lib.probe").joinpath(table).read_text(encoding="utf-8")
    return {name: Name(*row) for name, *row in list(csv.reader(text.splitlines()))[1:]}


PLACES = _names("places.csv")
NAMES = _names("names.csv") | PLACES
RIGHT, WRONG, DESCRIBED = "✓", "✗", "·"


@dataclass(frozen=True)
class Finding:
    """What one question found.

    `sign` is ✓ as claimed, or as every layer has to be; ✗ broken; · described, or not decidable.
    `name` is the mistake, where two witnesses agree on it, else where it is, or None; `hints` are
    mistakes that would show this, too.
    """

    sign: str
    question: str
    sentence: str
    name: str | None = None
    hints: tuple = ()

    def __str__(self):
        lines = [f"{self.sign} {self.question}: {self.sentence}"]
        if self.name:
            meaning, section, _ = NAMES[self.name]
            lines.append(f"    = {self.name}: {meaning} ({section})")
        for hint in self.hints:
            lines.append(f"    ? {hint} would show this, too: {NAMES[hint].meaning}")
        return "\n".join(lines)


def passed(question, sentence):
    """Return what is as claimed, or as every layer has to be."""
    return [Finding(RIGHT, question, sentence)]


def described(question, sentence):
    """Return what is described, or cannot be decided."""
    return [Finding(DESCRIBED, question, sentence)]


def agreed(question, sentence, claimed):
    """Return what is as claimed, or described where nothing is claimed."""
    return [Finding(DESCRIBED if claimed is None else RIGHT, question, sentence)]


def broken(question, sentence, name=None, hints=()):
    """Return what is broken; without a sentence, the tables of names say what was seen."""
    if sentence is None:
        sentence = PLACES[name].meaning if name in PLACES else NAMES[name].witness
    return [Finding(WRONG, question, sentence, name, hints)]


def without_names(findings):
    """Return findings whose names are hints, as where something more basic is broken, too."""
    return [
        replace(found, name=None, hints=tuple({found.name, *found.hints} - {None, *PLACES}))
        for found in findings
    ]


def one_name(findings):
    """Return findings of which the first that is broken keeps its name, and others of that name."""
    first = next((found.name for found in findings if found.sign == WRONG and found.name), None)
    return [found if found.name == first else without_names([found])[0] for found in findings]


def answered(question, ask, *, refused=None):
    """Ask; where the layer refuses what was handed over, that is broken, and has a name."""
    try:
        return ask()
    except Undecidable as error:
        return [Finding(DESCRIBED, question, str(error))]
    except Exception as error:
        reason = f"refused, {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return [Finding(WRONG if refused else DESCRIBED, question, reason, refused)]


def all_answered(questions, *, refused=None):
    """Ask all questions, functions by name; return what is found."""
    found = (answered(question, ask, refused=refused) for question, ask in questions.items())
    return [one for several in found for one in several]


@dataclass(frozen=True)
class Report:
    """The answer of a probe; true in a condition if nothing is broken.

    `depends` (T, T) says which output depends on which token, `expected` is the claimed mask, or
    None, `pattern` the mask in words, and `facts` what was described: "position", "scale", …
    """

    findings: tuple
    depends: object = None
    expected: object = None
    pattern: object = None
    facts: dict = field(default_factory=dict)

    @property
    def ok(self):
        """Whether nothing is broken."""
        return not self.wrong

    @property
    def wrong(self):
        """The findings that are broken."""
        return tuple(finding for finding in self.findings if finding.sign == WRONG)

    @property
    def names(self):
        """The names of the findings: mistakes, and places of mistakes."""
        return tuple(dict.fromkeys(found.name for found in self.findings if found.name))

    def __bool__(self):
        return self.ok

    def table(self):
        """Return a list of dictionaries: sign, question, sentence, name, hints."""
        return [vars(finding).copy() for finding in self.findings]

    def raise_if_wrong(self):
        """Raise AssertionError with this report as its message, if something is broken."""
        if not self.ok:
            raise AssertionError(str(self))

    def __str__(self):
        pattern = self.pattern or "a mask of no regular form"
        verdict = "right as far as asked" if self.ok else "WRONG"
        lines = [f"{verdict}: {pattern}"] if self.depends is not None else [verdict]
        if self.depends is not None:
            rows = draw(self.depends, self.expected).splitlines()
            lines += [f"    {row}" for row in rows]
        return "\n".join([*lines, *map(str, self.findings)])

    __repr__ = __str__

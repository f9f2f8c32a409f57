"""The names of heads in a text, such as 1.2 for head 2 of layer 1, and what proves each.

A name has a comment right behind it that gives this name, or behind the last of several names one
that gives them all: `heads 1.0 and 1.3<!-- = heads_that_copy() -->`. A list or set of names is
given in any order, a pair within a list as it is: `0.0 → 1.1<!-- = pairs_that_match() -->`, with
[("0.0", "1.1")].

Where a sentence gives a number of a head, the label in its comment is enough for that sentence, as
`1.00<!-- "layer 1"["attractor", "1.2"] -->` for 1.2; of several heads, in the order of the names.
A head of an invented model, or one that is only pointed at, says so: `head 2.3<!-- of an example
-->`, in a bank once, in the question.

Names in the labels and captions of code stand in HEADS of the page's module in `values/`: a piece
of the label, and a function that returns its names in their order.
"""

import ast
import importlib
import io
import re
import tokenize
from dataclasses import dataclass

import numpy as np

from tests.chapters.named import VALUES, module_of

NAME = r"\d{1,2}\.\d(?!\w|\.\d)"
JOINT = r"(?:\s*,)?\s+(?:and|or|to|nor)\s+|\s*,\s+"
LISTED = re.compile(rf"\bheads?\s+{NAME}(?:(?:{JOINT}){NAME})*", re.IGNORECASE)
BARE = re.compile(
    rf"(?<![\w./^_−-]){NAME}(?!\s*(?:%|(?:nats?|millinats|bits?|times|ms|s)\b)|,\d{{3}})"
)
LABEL = re.compile(r"([\"'])(.*?)\1")
SENTENCE = re.compile(r"[.!?][)*_”]*\s+(?=[(*_“\[]*[A-Z0-9])")
EXAMPLE = "of an example"
SHOWN = {"show", "print"}
TITLES = {"caption", "label", "labels", "title", "rows", "columns"}
MEND = (
    "write right behind it <!-- = function() -->, which computes the head or heads, or a number "
    f'of the head with <!-- "label"["row", "head"] -->, or <!-- {EXAMPLE} --> where none is meant'
)


@dataclass(frozen=True)
class Name:
    """A name of a head as written, where it stands, and whether the word *head* is before it."""

    text: str
    start: int
    end: int
    told: bool


def names_in(prose):
    """Return the names in a text, comments blanked; those of "1.0 to 1.3" are four."""
    listed = [match.span() for match in LISTED.finditer(prose)]
    found = []
    for match in BARE.finditer(prose):
        told = any(start <= match.start() < end for start, end in listed)
        found += _between(found, prose, match, told)
        found.append(Name(match[0], match.start(), match.end(), told))
    return found


def _between(found, prose, match, told):
    """Return the names that "1.0 to 1.3" does not spell, each where the last one stands."""
    if told and found and re.fullmatch(r"\s+to\s+", prose[found[-1].end : match.start()]):
        layer, first = found[-1].text.split(".")
        if layer == match[0].split(".")[0]:
            within = range(int(first) + 1, int(match[0].split(".")[1]))
            return [Name(f"{layer}.{h}", match.start(), match.end(), told) for h in within]
    return []


def given_by(value):
    """Return the names of a value in groups, each a pair or one name; none, if it is no name."""
    if isinstance(value, set | frozenset):
        value = sorted(value)
    groups = np.asarray(value, dtype=object) if isinstance(value, list | tuple) else value
    groups = np.atleast_1d(np.asarray(groups, dtype=object))
    rows = groups.reshape(len(groups), -1) if groups.size else groups.reshape(0, 1)
    names = all(isinstance(name, str) and re.fullmatch(NAME, name) for name in rows.ravel())
    return [tuple(row) for row in rows] if names else []


class Proofs:
    """What the comments of a block prove of the names in it.

    Parameters
    ----------
    prose : the block, with comments and code blanked
    free : names that its question says are of an example
    """

    def __init__(self, prose, free=()):
        self.names, self.free, self.proved = names_in(prose), free, set()
        self.prose, self.labels, self.swapped = prose, [], []
        self.ends = [match.end() for match in SENTENCE.finditer(prose)] + [len(prose)]

    def excuse(self, comment):
        """Take the names of one sentence up to a comment as proved: an example, or a fault."""
        self.proved |= set(self._before(comment))

    def bind(self, comment, references):
        """Yield a sentence if a comment gives names, and those before it are others.

        `references` are (reference, value), in the order of the comment.
        """
        self.labels.append((comment.start(), [label for _, label in LABEL.findall(comment[1])]))
        groups = [(group, ref) for ref, value in references for group in given_by(value)]
        if not groups:
            return
        for _, ref in groups:
            if re.fullmatch(rf"=(?:[\s,()\[\]{{}}\"']|{NAME})+", ref):
                yield f"<!-- {ref} --> computes nothing: write a function that finds the head"
                return
        n, shown = sum(len(group) for group, _ in groups), f"<!-- {comment[1].strip()} -->"
        bound = self._before(comment)[-n:]
        self.proved |= set(bound)
        at, told = 0, []
        for group, _ in groups:
            told.append(tuple(name.text for name in bound[at : at + len(group)]))
            at += len(group)
        given = [group for group, _ in groups]
        if bound and re.search(r"\w", self.prose[bound[-1].end : comment.start()]):
            yield f"{shown} gives a head: move it right behind the name, or the last of several"
        elif sorted(told) != sorted(given):
            said = _spoken(told) or "none"
            yield (
                f"the text names {said}, but {shown} gives {_spoken(given)}: correct the names, "
                f"or, if they are right, the comment or what it names"
            )

    def _before(self, comment):
        start = max((end for end in self.ends if end <= comment.start()), default=0)
        if not self.prose[start : comment.start()].strip():  # behind the full stop
            start = max((end for end in self.ends if end < start), default=0)
        names = [name for name in self.names if start <= name.start < comment.start()]
        return [name for name in names if name not in self.proved]

    def settle(self):
        """Return the places of all names that something proves, labels of their sentences too."""
        start = 0
        for end in self.ends:
            here = [name for name in self.names if start <= name.start < end]
            self.proved |= {name for name in here if name.text in self.free}
            labels = [
                (at, name)
                for at, own in self.labels
                if start <= at < end
                for name in re.findall(rf"(?<![\d.]){NAME}", " ".join(own))
            ]
            said = [name for _, name in labels]
            left = [name for name in here if name not in self.proved and name.text in said]
            self.proved |= set(left)
            if not _agree(left, labels):
                self.swapped.append(
                    f"the sentence names head {', '.join(name.text for name in left)}, and its "
                    f"numbers are of {', '.join(said)}: order both alike, or write <!-- = "
                    f"function() --> right behind the names"
                )
            start = end
        return {name.start for name in self.proved}

    def faults(self):
        """Yield a sentence for each name behind the word *head* that nothing proves."""
        yield from self.swapped
        for name in self.names:
            if name.told and name not in self.proved:
                start = max([name.start - 40, *(end for end in self.ends if end <= name.start)])
                said = re.sub(r"\s+", " ", self.prose[max(start, 0) : name.end]).strip(" .|*-")
                yield f"nothing says why {said!r} names this head: {MEND}"


def _agree(names, labels):
    """Whether each head comes with its number: one by one, or each with the next one behind it."""
    said = [name for _, name in labels]
    if len(names) == len(said):
        return [name.text for name in names] == said
    for name in names:
        behind = [at for at, _ in labels if at > name.start] or [max(at for at, _ in labels)]
        if name.text not in [label for at, label in labels if at == behind[0]]:
            return False
    return True


def _spoken(groups):
    return ", ".join(" with ".join(group) for group in groups if group)


def examples(text):
    """Return the names that a question says are of an example."""
    found = set()
    for comment in re.finditer(rf"<!-- {EXAMPLE} -->", text):
        prose = re.sub(r"<!--.*?-->", lambda m: " " * len(m[0]), text[: comment.start()])
        found |= {name.text for name in names_in(prose)}
    return found


def label_faults(cells, heads):
    """Yield a sentence for each label in code that names a head and is not in HEADS, or not so.

    Parameters
    ----------
    cells : all cells of a page; where none names a head, 0.9 in a label is a number
    heads : its HEADS, a function for each piece of a label
    """
    has_heads = any(LISTED.search(cell.source) for cell in cells)
    cells = [cell for cell in cells if cell.cell_type == "code" and has_heads]
    said = [(cell.get("id"), label) for cell in cells for label in labels(cell.source)]
    whole = {label for _, label in said}
    for piece, function in heads.items():
        names, given = [m[0] for m in BARE.finditer(piece)], function()
        given = [given] if isinstance(given, str) else list(given)
        meant = sorted(label for label in whole if _means(piece, label, whole))
        if not any(piece in cell.source for cell in cells):
            yield f"no code has {piece!r}, which HEADS names: remove it, or copy it from the code"
        elif len(meant) > 1:
            yield (
                f"{piece!r} of HEADS stands in {' and '.join(map(repr, meant))}: write a longer "
                f"piece of each, or one may take the other's head"
            )
        elif names != given:
            yield (
                f"the code says {piece!r}, but HEADS gives {', '.join(given)} for it: correct "
                f"the label, or, if it is right, the function"
            )
    for cell, label in said:
        pieces = [piece for piece in heads if _means(piece, label, whole)]
        covered = [m.span() for piece in pieces for m in re.finditer(re.escape(piece), label)]
        for name in BARE.finditer(label):
            if not any(start <= name.start() < end for start, end in covered):
                yield (
                    f"cell {cell}: nothing says why {label!r} names head {name[0]}: add a piece "
                    f"of it that has the name to HEADS of the page's module in {VALUES}/, with a "
                    f"function that computes the head"
                )


def _means(piece, label, whole):
    """Whether a piece is of a label; one that is itself a whole label is of that one alone."""
    return piece == label if piece in whole else piece in label


def labels(source):
    """Return what code shows a reader of heads: its remarks, titles, and texts of show and print.

    A name alone, such as "1.2", is a key that the code looks up.
    """
    if "\n%" in f"\n{source}" or "\n!" in f"\n{source}":
        return []
    tree = ast.parse(source)
    texts = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and LISTED.search(token.string)
    ]
    titles = {id(text) for node in ast.walk(tree) for text in _titles(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            shown = id(node) in titles and re.search("[a-z]", node.value)
            if LISTED.search(node.value) or (shown and BARE.search(node.value)):
                texts.append(node.value)
    return texts


def _titles(node):
    """Yield the texts that a node shows."""
    if isinstance(node, ast.Call):
        if ast.unparse(node.func).split(".")[-1] in SHOWN:
            yield from _texts(node)
        for keyword in node.keywords:
            if keyword.arg in TITLES:
                yield from _texts(keyword.value)
    elif isinstance(node, ast.Assign) and {*map(ast.unparse, node.targets)} & TITLES:
        yield from _texts(node.value)


def _texts(node):
    """Yield the texts in a node, but for those that look something up."""
    if isinstance(node, ast.Subscript):
        return
    if isinstance(node, ast.Constant):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def heads_of(page):
    """Return HEADS of a page's module of values; without one, none."""
    name = f"{VALUES.replace('/', '.')}.{module_of(page)}"
    if importlib.util.find_spec(name) is None:
        return {}
    return getattr(importlib.import_module(name), "HEADS", {})

"""A named mistake and the page *Symptoms* lead to each other.

A mistake names the entry that describes how it shows in a program of one's own, and the entry names
the checks that recognise the mistake: all of them, or, where they are many, the first of the book.
"""

import json
import re

import pytest

from tests.chapters.anatomy import CHECK, EXERCISE, HEADING
from tests.practice.rooms import ALL_MISTAKES, ROOMS, SYMPTOMS, checked_in
from tools.chapters import ROOT, pages, section_of
from tutorial_lib.practice.account import remedy
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.records import SITE

NAME = "book/symptoms.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
ENTRY = re.compile(r"^\(symptom-([a-z0-9-]+)\)=\n(.*?)(?=^\(symptom-|^## |\Z)", re.M | re.S)
NAMED_BY = re.compile(r" \*Named by\* (.*)\.\Z", re.S)
OTHERS = " and others"  # the end of a list that names only the first
MOST, FIRST = 5, 3  # a longer list of checks names only so many
LINK = re.compile(r"\[`check_(\w+)`\]\(([^)\s]+)\)")


def entries(page):
    """What the entries of the page name, {symptom: [(check, link), …]}; what is left over is ""."""
    found = {}
    for symptom, text in ENTRY.findall(page):
        named = NAMED_BY.search(text.strip())
        said = named[1] if named else ""
        links = LINK.findall(said)
        left = LINK.sub("", said.removesuffix(OTHERS)).replace(", ", "")
        links += [(OTHERS, "")] if said.endswith(OTHERS) else []
        found[symptom] = links if not left and text.count("Named by") <= 1 else [("", left)]
    return found


def places(page):
    """Where a notebook first calls each check: {name: the anchor of the exercise or section}."""
    found, anchor = {}, ""
    for cell in json.loads(page.path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            for call in CHECK.findall(source):
                found.setdefault(call[len("check_") : -1], anchor)
            continue
        if headings := HEADING.findall(source):
            anchor = re.sub(r"[^\w -]", "", section_of(headings[-1][1]).lower()).replace(" ", "-")
        if exercises := EXERCISE.findall(source):
            anchor = f"exercise-{exercises[-1]}"
    return found


def link(check):
    """The link to where the chapter of a check first calls it."""
    [page] = [
        page for page in pages() if page.name in ROOMS and check in checked_in(ROOMS[page.name])
    ]
    return f"../notebooks/{page.path.name}#{places(page)[check]}"


def expected():
    """What the entries should name, in the order of the book: {symptom: [(check, link), …]}."""
    found = {}
    for page in pages():
        for check in checked_in_order(page.name):
            for symptom in sorted({mistake.symptom for mistake in ALL_MISTAKES[check]} - {""}):
                found.setdefault(symptom, []).append((check, link(check)))
    return found


def checked_in_order(name):
    """The checks of a room, in the order of its file of mistakes."""
    return list(ROOMS[name].MISTAKES) if name in ROOMS else []


def shown(named):
    """What an entry says of its checks: all of them, or the first and that there are others."""
    return [*named[:FIRST], (OTHERS, "")] if len(named) > MOST else named


def sentence(named):
    """The sentence that names checks, as the last of an entry."""
    links = [f"[`check_{check}`]({link})" for check, link in named if link]
    return f"*Named by* {', '.join(links)}{OTHERS if len(links) < len(named) else ''}."


ENTRIES, EXPECTED = entries(PAGE), expected()


@pytest.mark.parametrize("symptom", EXPECTED)
def test_every_symptom_that_a_mistake_names_is_an_entry(symptom):
    mistakes = [m.name for named in ALL_MISTAKES.values() for m in named if m.symptom == symptom]
    told = f"{NAME} has no (symptom-{symptom})=, which {mistakes} name in mistakes.txt: rename it"
    assert symptom in ENTRIES, told


@pytest.mark.parametrize("symptom", ENTRIES)
def test_an_entry_names_the_checks_whose_mistakes_name_it(symptom):
    named = shown(EXPECTED.get(symptom, []))
    write = f"end its last paragraph with\n{sentence(named)}" if named else "name no checks"
    assert ENTRIES[symptom] == named, f"{NAME}, symptom-{symptom}: {write}"


def test_an_account_ends_in_the_address_of_the_entry():
    mistake = Mistake("wrong", "it is wrong", "Mend it.", symptom="mask-inverted")
    assert remedy(mistake) == ("Mend it.", f"Elsewhere it shows like this: {SYMPTOMS}mask-inverted")
    assert remedy(Mistake("wrong", "it is wrong", "Mend it.")) == ("Mend it.",)
    assert f"{SITE}book/symptoms.html#symptom-" == SYMPTOMS


LAST = "*Explained in* [05](a.ipynb)."
A, B = "[`check_a`](a.ipynb#check)", "[`check_b`](b.ipynb#exercise-2)"


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (LAST, []),
        (f"{LAST} *Named by* {A}, {B}.", [("a", "a.ipynb#check"), ("b", "b.ipynb#exercise-2")]),
        (f"{LAST} *Named by* {A} and others.", [("a", "a.ipynb#check"), (OTHERS, "")]),
        (f"{LAST} *Named by* {A} and more.", [("", " and more")]),
    ],
)
def test_what_an_entry_names_is_read(last, named):
    page = f"(symptom-x-y)=\n### X\n\n{last}\n\n(symptom-z)=\n### Z\n\nNothing.\n\n## Next\n"
    assert entries(page) == {"x-y": named, "z": []}

"""The page *Symptoms* says what the installed versions do: every message, every behaviour.

A message is made to occur, and its words on the page, numbers included, are those that come. A
behaviour occurs, and its mend ends it. What can be neither is quoted, and the page says from where.
With versions that the page does not name a message still has to occur, but may be worded otherwise.
"""

import ast
import inspect
import re
import sys
import warnings
from typing import NamedTuple

import pytest

from tests.chapters import symptoms
from tests.chapters.named import version
from tests.lazy import torch
from tools.chapters import ROOT

NAME = "book/symptoms.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
LEAD = PAGE.partition("\n## ")[0]
PACKAGES = {"torch": "PyTorch", "numpy": "NumPy"}  # as the page calls them
AT_LEAST = 40
ENTRY = re.compile(
    r"^\(symptom-([a-z0-9-]+)\)=\n### [^\n]+\n(.*?)(?=^\(symptom-|^## |\Z)", re.M | re.S
)
MESSAGE = re.compile(r"^```text\n(.*?)\n```$", re.M | re.S)
QUOTED = "*Quoted from* "  # the report that *Seen in* links to, or the program with its version
PARTS = {  # of an entry, in this order: how each begins, and what must follow
    "*Causes, the likeliest first:*": re.compile(r"\n\n1\. \S"),
    "*Test:*": re.compile(r"\s+\S"),
    "*Fix:*": re.compile(r"\s+\S"),
    "*Explained in*": re.compile(r"\s+\[[^\]]+\]\((?!http)[^\s)]+\)"),
    "*Seen in*": re.compile(r"\s+\[[^\]]+\]\(https://[^\s)]+\)"),
}


class Entry(NamedTuple):
    """The name of an entry, which is that of its function, its text, and its message or ""."""

    name: str
    text: str
    message: str


def entries(page):
    """Read the entries of the page."""
    found = []
    for name, text in ENTRY.findall(page):
        message = MESSAGE.search(text)
        found.append(Entry(name.replace("-", "_"), text, message[1] if message else ""))
    return found


def functions():
    """Find the functions that stand for entries, by their names."""
    found = inspect.getmembers(symptoms, inspect.isfunction)
    return {n: f for n, f in found if f.__module__ == symptoms.__name__ and n[0] != "_"}


ENTRIES, FUNCTIONS = entries(PAGE), functions()
RUN = [entry for entry in ENTRIES if entry.name in FUNCTIONS]


def run(function):
    """Call a function, where it has PyTorch with the same random numbers each time."""
    if "torch" in function.__code__.co_names:
        torch.manual_seed(0)
    function()


def occurs(function):
    """Call the function of a message, and return the message and the line that gave it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            run(function)
        except Exception as error:
            return f"{type(error).__name__}: {error}", error.__traceback__.tb_next.tb_next.tb_lineno
    return "nothing", None


def installed():
    """Name the versions that speak here, as the page names its own."""
    names = [name for name in PACKAGES if name in sys.modules]
    return [f"{PACKAGES[n]} {sys.modules[n].__version__.partition('+')[0]}" for n in names]


def require_words(same, said, write):
    """Fail where a message has other words than the page, or skip: another version words it so."""
    told = f"{' and '.join(installed())}: {said}"
    if not same and not all(name in LEAD for name in installed()):
        pytest.skip(told)
    assert same, f"{write}, as it is in {told}"


def last_lines(function):
    """Find the lines of a function's last statement, inside of a loop or a `with`."""
    [last] = ast.parse(inspect.getsource(function)).body
    while hasattr(last, "body"):
        last = last.body[-1]
    start = function.__code__.co_firstlineno - 1
    return range(start + last.lineno, start + last.end_lineno + 1)


def same_words(told, said):
    """Are these the words? A text that ends in " …" tells the beginning; indents do not count."""
    told, said = ("\n".join(map(str.strip, text.strip().splitlines())) for text in (told, said))
    return said.startswith(told[:-2]) if told.endswith(" …") else told == said


def incomplete(entry):
    """Name the parts that an entry lacks or has elsewhere, each as it should begin."""
    places = [entry.text.find(part) for part in PARTS]
    if places != sorted(places):
        return [f"the order {', '.join(PARTS)}"]
    given = zip(PARTS.items(), places, strict=True)
    return [
        part
        for (part, follows), place in given
        if place < 0
        or entry.text.count(part) > 1
        or not follows.match(entry.text, place + len(part))
    ]


def unsupported(entry):
    """Say why an entry rests on nothing, or on two things; "" where all is well."""
    run, quoted = entry.name in FUNCTIONS, QUOTED in entry.text
    if run and quoted:
        return f"{entry.name} is run, so it is not *Quoted from*"
    if not run and not quoted:
        return f"{entry.name} has no function in symptoms.py, and no *Quoted from*"
    return ""


@pytest.mark.parametrize("entry", [e for e in RUN if e.message], ids=lambda entry: entry.name)
def test_a_message_has_the_words_of_the_installed_version(entry):
    said, line = occurs(FUNCTIONS[entry.name])
    ends = f"symptoms.{entry.name}: {said}, from line {line} and not from the last statement"
    assert line in last_lines(FUNCTIONS[entry.name]), ends
    write = f"{NAME}, {entry.name}: write the message into its text block"
    require_words(same_words(entry.message, said), said, write)


@pytest.mark.parametrize("name", symptoms.BESIDE)
def test_a_message_that_another_entry_tells_has_the_words_of_the_installed_version(name):
    other, words = symptoms.BESIDE[name]
    texts = {entry.name: entry.text for entry in ENTRIES}
    gone = f"{NAME}, {other}: `{words}` is gone; correct it in symptoms.BESIDE, or remove {name}"
    assert f"`{words}`" in texts.get(other, ""), gone
    said, line = occurs(FUNCTIONS[name])
    assert line in last_lines(FUNCTIONS[name]), f"symptoms.{name}: the mend gives {said}"
    pattern = ".*".join(map(re.escape, words.split("…")))
    write = f"{NAME}, {other}: write the message, or a part of it"
    require_words(re.search(pattern, said), said, write)


def test_the_page_names_the_versions_that_the_book_is_built_with():
    assert f"PyTorch {version('torch')} and NumPy {version('numpy')}" in LEAD


@pytest.mark.parametrize(
    "name", [e.name for e in RUN if not e.message] + list(symptoms.FURTHER_CAUSES)
)
def test_a_behaviour_occurs_and_its_mend_ends_it(name):
    run(FUNCTIONS[name])


def test_every_entry_is_run_or_quoted_and_every_function_has_an_entry():
    found = [*filter(None, map(unsupported, ENTRIES))]
    beside = {name: entry for name, (entry, _) in symptoms.BESIDE.items()}
    meant = {name: name for name in FUNCTIONS} | beside | symptoms.FURTHER_CAUSES
    names = {entry.name for entry in ENTRIES}
    left = {name for name, entry in meant.items() if entry not in names}
    found += [f"remove symptoms.{name}, which has no entry in {NAME}" for name in sorted(left)]
    assert not found, "\n".join(found)


def test_every_entry_has_causes_a_test_a_mend_and_its_links():
    found = [f"{entry.name}: write {part} …" for entry in ENTRIES for part in incomplete(entry)]
    assert not found, "\n".join(found)


def test_the_page_has_its_entries_and_each_heading_is_one():
    assert len(ENTRIES) >= AT_LEAST
    headings = re.findall(r"^### .*$", PAGE, re.M)
    assert len(headings) == len(ENTRIES), "a line such as (symptom-mask-inverted)= above each"


GOOD = """
(symptom-view-not-contiguous)=
### view size is not compatible

```text
RuntimeError: view size …
```

*Causes, the likeliest first:*

1. You swapped two axes.

*Test:* Print it.

*Fix:* Call `reshape`.

*Explained in* [05](../notebooks/05_concatenation.ipynb). *Seen in* [x, issue 1](https://github.com/x).
"""


def test_a_good_entry_is_one():
    [entry] = entries(GOOD)
    assert entry.name == "view_not_contiguous"
    assert entry.message == "RuntimeError: view size …"
    assert incomplete(entry) == []
    assert unsupported(entry) == ""


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("\n1. You", "\nYou", "*Causes, the likeliest first:*"),
        ("*Test:*", "Test:", "*Test:*"),
        ("*Fix:* Call", "*Fix:* Call *Fix:*", "*Fix:*"),
        ("../notebooks", "https://notebooks", "*Explained in*"),
        ("(https://github.com/x)", "", "*Seen in*"),
    ],
)
def test_a_missing_part_is_noticed(old, new, part):
    [entry] = entries(GOOD.replace(old, new))
    assert part in incomplete(entry)[0]


def test_parts_in_another_order_are_noticed():
    [entry] = entries(GOOD.replace("Test:", "_").replace("Fix:", "Test:").replace("_", "Fix:"))
    assert "order" in incomplete(entry)[0]


def test_an_entry_that_rests_on_nothing_or_on_two_things_is_noticed():
    quoted = GOOD.replace("*Seen", "*Quoted from* this report. *Seen")
    for page, words in (
        (GOOD.replace("view-not-contiguous", "nowhere"), "has no function"),
        (quoted, "is run, so"),
        (quoted.replace("view-not-contiguous", "nowhere"), ""),
    ):
        [entry] = entries(page)
        assert words in unsupported(entry)
        assert bool(words) == bool(unsupported(entry))


@pytest.mark.parametrize(
    ("told", "said", "same"),
    [
        ("E: (2, 3)", "E: (2, 3)", True),
        ("E: (2, 3)", "E: (2, 4)", False),
        ("E: (2,…", "E: (2, 3)", False),
        ("E: one …", "E: one two", True),
        ("E: two …", "E: one two", False),
        ("E: one\n  two", "E: one\n\ttwo ", True),
        ("E: one", "E: one two", False),
    ],
)
def test_words_are_compared_to_the_last(told, said, same):
    assert same_words(told, said) == same


def silent_mend_then_message():
    int("1")
    int("one")


def message_before_the_end():
    int("one")
    int("two")


@pytest.mark.parametrize(
    ("function", "last"), [(silent_mend_then_message, True), (message_before_the_end, False)]
)
def test_a_message_that_comes_from_the_mend_is_noticed(function, last):
    said, line = occurs(function)
    assert said.startswith("ValueError: invalid literal")
    assert (line in last_lines(function)) == last

"""The certificate as bytes: all that was shown, nothing that was not, and no markup of a reader."""

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.elements.test_elements import NASTY, Tree, page_elsewhere
from tutorial_lib.elements import certificate
from tutorial_lib.elements.certificate.element import LIMITS, LONGEST_NAME, NOTHING, TITLE
from tutorial_lib.elements.sources import style
from tutorial_lib.practice.ch23_capstone.shown import Shown

PROMISES = (("form", "it returns (Y, cache)", True), ("no leak", "no row moves", False))
CLAIMS = ((2, "Eight heads have as many.", True, 16384.0), (6, "It falls.", False, 0.12345678))
SHOWN = Shown(PROMISES, lines=1200, claims=CLAIMS, nats=0.27654, steps=1384, n_parameters=37_376)
ELEMENT = certificate("Ada Kern", SHOWN)
LINES = [
    TITLE,
    "Shown by Ada Kern",
    "One layer, 1,200 lines of code: 1 of 2 promises kept",
    "✓ form: it returns (Y, cache)",
    "✗ no leak: no row moves",
    "2 claims answered with own numbers",
    "2. Eight heads have as many. It holds: 16,384",
    "6. It falls. It fails: 0.1235",
    "Trained on the known text, and run with this layer",
    "0.277 nats per token of excess loss, on documents it never saw, after 1,384 steps, as the "
    "training counted; 37,376 parameters",
    LIMITS,
]


def page():
    """Two certificates, for another process."""
    return ELEMENT.html + certificate("").html


def paragraphs(element):
    """The text of each paragraph and each item of a list, in order."""
    found = re.findall(r"<(p|li)\b[^>]*>(.*?)</\1>", element.html, re.S)
    return [Tree(text).text for _, text in found]


def lines(element):
    """The lines of the text beside the HTML."""
    return [line.strip() for line in element.text.splitlines() if line.strip()]


def test_says_each_line_once_with_a_script_and_without():
    assert paragraphs(ELEMENT) == LINES
    assert lines(ELEMENT) == LINES
    assert "<details" not in ELEMENT.html


def test_bytes_are_the_same_in_another_process():
    assert page_elsewhere(__name__) == page()


def test_closes_what_it_opens_is_named_and_two_on_a_page_differ():
    tree = Tree(page())
    assert (tree.open, tree.faults) == ([], [])
    classes = " ".join(attrs.get("class", "") for _, attrs in tree.tags).split()
    assert all(name == "tl" or name.startswith("tl-") for name in classes)
    groups = [attrs for tag, attrs in tree.tags if tag == "tl-certificate"]
    assert [(group["role"], group["aria-label"]) for group in groups] == [
        ("group", "Certificate")
    ] * 2
    assert len({group["id"] for group in groups}) == 2


def test_button_waits_for_the_script_and_keeps_its_keys_from_jupyterlab():
    [row] = re.findall(r'<div class="tl-row"(.*?)</div>', ELEMENT.html, re.S)
    assert 'style="display:none"' in row
    assert row.count("<button") == row.count("data-lm-suppress-shortcuts") == 1


def test_on_paper_it_has_no_button_and_stays_in_one_piece():
    [sheet] = re.findall(r"@media print \{\n(.*)\n\}", style("certificate"), re.S)
    assert ".tl-certificate { break-inside: avoid; }" in sheet
    assert ".tl-certificate .tl-row { display: none !important; }" in sheet


def test_what_was_not_shown_is_not_spoken_of():
    assert paragraphs(certificate("", SHOWN))[1] == "Shown by nobody yet"
    only = replace(SHOWN, claims=(), nats=None)
    assert paragraphs(certificate("Ada Kern", only)) == [*LINES[:5], LIMITS]
    broken = Shown((PROMISES[1],), lines=1, claims=CLAIMS[:1])
    assert paragraphs(certificate("Ada Kern", broken))[2:-1] == [
        "One layer, 1 line of code: 0 of 1 promises kept",
        LINES[4],
        "1 claim answered with own numbers",
        LINES[6],
    ]
    unread = replace(only, lines=0)  # Python tells no lines of a partial
    assert paragraphs(certificate("Ada Kern", unread))[2] == "One layer: 1 of 2 promises kept"
    for nothing in (None, Shown(), Shown((PROMISES[1],), lines=3, nats=0.1)):
        assert paragraphs(certificate("", nothing)) == [
            TITLE,
            "Shown by nobody yet",
            NOTHING,
            LIMITS,
        ]


def test_what_a_reader_types_is_text():
    typed = NASTY[:LONGEST_NAME]
    named = (("<b>form</b>", NASTY, True),)
    element = certificate(typed, replace(SHOWN, promises=named, claims=((1, NASTY, True, 1.0),)))
    tree = Tree(element.html)
    assert not {"img", "b"} & {tag for tag, _ in tree.tags}
    assert (tree.open, tree.faults) == ([], [])
    assert f"Shown by {typed}" in unescape(element.html)
    assert element.html.count("onerror=alert(1)") == tree.text.count("onerror=alert(1)") == 3
    assert f"✓ <b>form</b>: {NASTY}" in element.text


def test_a_name_stays_in_its_line():
    element = certificate("Ada\n\n10 of 10 promises kept", None)
    assert lines(element)[1] == r"Shown by Ada\n\n10 of 10 promises kept"
    assert paragraphs(element)[1] == lines(element)[1]
    assert paragraphs(certificate(" \n", None))[1] == "Shown by nobody yet"


@pytest.mark.parametrize(
    ("name", "shown", "kind", "message"),
    [
        (None, None, TypeError, r"^name is a NoneType; expected a string\. Write your name\.$"),
        (SHOWN, "Ada", TypeError, r"^name is a Shown; expected a string\. Write your name\.$"),
        (
            "A" * (LONGEST_NAME + 1),
            None,
            ValueError,
            r"^name has 61 signs; expected 60 at most, which one line holds\. Shorten it\.$",
        ),
        (
            "Ada",
            {"form": True},
            TypeError,
            r"^shown is a dict; expected what show_results\(.* run\.$",
        ),
        ("Ada", True, TypeError, r"^shown is a bool; expected what show_results"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(name, shown, kind, message):
    with pytest.raises(kind, match=message):
        certificate(name, shown)

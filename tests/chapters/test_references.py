"""The references hold every paper that the book and the assignments name, and no other."""

import hashlib
import json
import re
import unicodedata

import pytest

from tests.chapters.pages import REPOSITORY
from tools.chapters import ROOT, pages

SOURCES = [
    *(page.path for page in pages()),
    *sorted(ROOT.glob("coursework/assignments/*/assignment.ipynb")),
    *sorted(ROOT.glob("book/*.md")),
    *sorted(ROOT.glob("src/tutorial_lib/practice/*/bank.json")),
    *sorted(ROOT.glob("src/tutorial_lib/data/facts/*.json")),
]
BIB = "book/references.bib"
ARXIV = re.compile(r"arxiv\.org/(?:abs|pdf|html)/(\d{4}\.\d{4,5})|arXiv:(\d{4}\.\d{4,5})")
DOI = re.compile(r"doi\.org/(10\.\d{4,9}/[^\s)\"\\]+)")
PAGE = re.compile(
    r"https://(?:aclanthology\.org|proceedings\.[\w.]+|transformer-circuits\.pub|openreview\.net"
    r"|www\.evanmiller\.org|www\.neelnanda\.io|papers\.[\w.]+|www\.jmlr\.org|jmlr\.org|dl\.acm\.org)/[^\s)\"\\]+"
)
LINK = re.compile(r"\[([^][]*)\]\((https?://[^)\s]+)\)")
BARE = re.compile(r"^(?:19|20)\d\d$")
YEAR_ALONE = re.compile(r"\[((?:19|20)\d\d)\]\((https?://[^)\s]+)\)")
AUTHORS = re.compile(r"[A-Z][\w'’-]+(?: et al\.| and [A-Z][\w'’-]+)")
CITED = re.compile(r"^(?P<who>[^\W\d_].*?),? (?P<year>(?:19|20)\d\d)\b")
UNLINKED = re.compile(r"[^\W\d_][\w'’-]+ (?:et al\.|and [^\W\d_][\w'’-]+),? \(?(?:19|20)\d\d\b")
CODED = re.compile(r"([A-Z][\w'’-]+(?: et al\.|(?: &| and) [A-Z][\w'’-]+)?),? \(?((?:19|20)\d\d)\b")
FIELD = re.compile(r"^ *(\w+) = \{(.*)\},?$", re.MULTILINE)
MOVING = re.compile(
    r"https://github\.com/([\w.-]+/[\w.-]+)/(?:blob|tree|raw)/(?:main|master|HEAD)/"
)
OURS = REPOSITORY.removeprefix("https://github.com/")
INSIDE = re.compile(rf"{re.escape(REPOSITORY)}/(?:blob|tree)/[\w.-]+/([\w./-]*[\w-])")


def text_of(path):
    """What a file tells its readers: of a notebook, the cells' sources alone."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def identifiers(text):
    """Every arXiv number, DOI and page of a publisher that a text names."""
    found = {one or other for one, other in ARXIV.findall(text)}
    found |= {doi.rstrip(".,;").lower() for doi in DOI.findall(text)}
    return found | {page.rstrip(".,;/") for page in PAGE.findall(text)}


def entries():
    """Read the bibliography: key → fields."""
    text = (ROOT / BIB).read_text(encoding="utf-8")
    blocks = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return {key: dict(FIELD.findall(fields)) for key, fields in blocks}


def own(fields):
    """All identifiers of one entry."""
    url = fields.get("url", "").rstrip("/")
    return {fields.get("eprint"), fields.get("doi", "").lower(), url} - {None, ""}


def seal(key, fields):
    """Eight characters that stand for an entry as it is, but for `compared` and our `annote`."""
    ours = {"compared", "annote"}  # an annote is our own sentence: no second source has it
    stated = {name: value for name, value in fields.items() if name not in ours}
    return hashlib.sha256(json.dumps([key, stated]).encode()).hexdigest()[:8]


def plain(name):
    """A name without TeX and accents: Lebr{\\'o}n and Lebrón are both Lebron."""
    name = unicodedata.normalize("NFD", re.sub(r"[{}\\'\"`^~]", "", name))
    return "".join(letter for letter in name if not unicodedata.combining(letter))


def people(fields):
    """The family names of an entry's authors, in their order."""
    return [plain(person).split(",")[0] for person in fields["author"].split(" and ")]


def cited_as(who, authors):
    """Are these an entry's authors, as our links write them: one, "A and B", "A, B and C"?"""
    if who.endswith(" et al."):
        return len(authors) > 2 and plain(who.removesuffix(" et al.")) == authors[0]
    return re.split(r", | and ", plain(who)) == authors


TEXTS = {path.relative_to(ROOT).as_posix(): text_of(path) for path in SOURCES}
ENTRIES = entries()
HELD = {identifier: key for key, fields in ENTRIES.items() for identifier in own(fields)}


@pytest.mark.parametrize("name", TEXTS)
def test_every_paper_that_is_linked_is_in_the_references(name):
    left = identifiers(TEXTS[name]) - set(HELD)
    assert not left, f"{name} links to {left}: add each to {BIB}, or correct the link"


def test_every_reference_is_linked_somewhere():
    linked = set().union(*map(identifiers, TEXTS.values()))
    left = [key for key, fields in ENTRIES.items() if not own(fields) & linked]
    assert not left, f"no page links to {left}: remove them from {BIB}, or link to them"


def test_no_paper_is_held_twice():
    held = [identifier for fields in ENTRIES.values() for identifier in own(fields)]
    twice = {identifier for identifier in held if held.count(identifier) > 1}
    assert not twice, f"{BIB} has two entries of {twice}: remove one of each"


@pytest.mark.parametrize("name", TEXTS)
def test_a_link_names_the_authors_and_the_year_of_the_references(name):
    wrong = []
    for words, target in LINK.findall(TEXTS[name]):
        cited = CITED.match(words)
        for key in {HELD[found] for found in identifiers(target) if found in HELD}:
            fields = ENTRIES[key]
            if BARE.match(words):
                right = words == fields["year"]
            elif cited:
                right = cited["year"] == fields["year"] and cited_as(cited["who"], people(fields))
            else:  # other words: "its paper", "one after attention"
                continue
            if not right:
                wrong.append(f"{words}: {people(fields)[:3]} {fields['year']}")
    assert not wrong, f"{name}: write authors and year as {BIB} has them: {wrong}"


def years_alone(text):
    """Yield (what stands before it in its line, year, address) of each link of a year alone."""
    for line in text.split("\n"):
        before, *more = YEAR_ALONE.split(line)
        yield from zip([before, *more[2::3]], more[::3], more[1::3], strict=False)


@pytest.mark.parametrize("name", TEXTS)
def test_a_link_of_a_year_alone_follows_its_authors(name):
    for sentence, year, target in years_alone(TEXTS[name]):
        *_, who = AUTHORS.findall(LINK.sub(" ", sentence)) or [""]
        for key in {HELD[found] for found in identifiers(target) if found in HELD}:
            authors = people(ENTRIES[key])
            told = f"{name}: write {authors[:3]} before [{year}]({target}), not {who!r}"
            assert cited_as(who, authors), told


@pytest.mark.parametrize("name", TEXTS)
def test_a_paper_that_is_named_with_its_year_is_linked(name):
    named = UNLINKED.findall(LINK.sub("", TEXTS[name]))
    assert not named, f"{name}: link each to its paper, [A et al. 2017](https://…): {named}"


@pytest.mark.parametrize("key", ENTRIES)
def test_every_entry_has_an_identifier_and_a_section_that_prints_it(key):
    page, section = TEXTS["book/references.md"], ENTRIES[key].get("keywords")
    assert own(ENTRIES[key]), f"{key} of {BIB}: give it an eprint, a doi or a url"
    printed = f':filter: keywords % "{section}"' in page
    assert printed, f"{key} of {BIB}: let its keywords be those of a section of references.md"


@pytest.mark.parametrize("key", ENTRIES)
def test_every_entry_is_the_one_that_was_compared_with_a_second_source(key):
    found = seal(key, ENTRIES[key])
    assert ENTRIES[key].get("compared") == found, (
        f"{key} has changed: compare it with a second source, then write compared = {{{found}}}"
    )


@pytest.mark.parametrize("key", ENTRIES)
def test_every_entry_says_in_one_sentence_why_it_is_cited(key):
    sentence = ENTRIES[key].get("annote", "")
    told = f"{key} of {BIB}: let its annote be a sentence of 12 to 30 words with a full stop"
    assert 12 <= len(sentence.split()) <= 30, told
    assert sentence.endswith("."), told
    same = [other for other, fields in ENTRIES.items() if fields.get("annote") == sentence]
    assert same == [key], f"{BIB}: {same} have one annote, so it says of none why it is cited"


@pytest.mark.parametrize("key", ENTRIES)
def test_the_year_agrees_with_the_identifiers_and_the_volume(key):
    fields, year = ENTRIES[key], int(ENTRIES[key]["year"])
    names = " ".join(fields.get(name, "") for name in ("booktitle", "doi", "url"))
    named = {int(found) for found in re.findall(r"(?<![\w-])(?:19|20)\d\d\b", names)}
    named |= {
        2000 + int(found) for found in re.findall(r"/[A-Z](\d\d)-\d{4}\b", names)
    }  # of the ACL
    told = f"{key} of {BIB}: correct its year, {year}, or what names another"
    assert named <= {year}, told
    if "eprint" in fields:
        on_arxiv = 2000 + int(fields["eprint"][:2])
        published = {"booktitle", "journal"} & set(fields)
        assert year >= on_arxiv if published else year == on_arxiv, told


def test_a_paper_that_the_code_names_with_its_year_is_in_the_references():
    held = {(fields["year"], *people(fields)[:1]) for fields in ENTRIES.values()}
    held |= {(fields["year"], *people(fields)) for fields in ENTRIES.values()}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for who, year in CODED.findall(path.read_text(encoding="utf-8")):
            names = re.split(r" & | and ", plain(who.removesuffix(" et al.")))
            assert (year, *names) in held, f"{path.name}: add {who} ({year}) to {BIB}"


@pytest.mark.parametrize("name", TEXTS)
def test_code_of_others_is_linked_at_a_commit_or_a_version(name):
    moving = set(MOVING.findall(TEXTS[name])) - {OURS}
    assert not moving, f"{name}: link to a commit or a tag, not to main, of {moving}"


@pytest.mark.parametrize("name", TEXTS)
def test_a_link_into_the_repository_leads_to_a_file_of_it(name):
    left = [path for path in INSIDE.findall(TEXTS[name]) if not (ROOT / path).exists()]
    assert not left, f"{name} links to files that are not there: correct {left}"

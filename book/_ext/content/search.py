"""The site's own search: its index, made from the finished pages, and the page that searches.

Our own, since Pagefind fetches, which a page opened from disk may not, lunr.js and MiniSearch come
from npm alone, and none of them takes 4/7, √ or W_O for a word or leaves out an answer.

An entry is a section, an exercise, a term of the glossary or a paper. The index keeps of each its
title and the words that tell most of it; `search.js` counts and ranks them. The sentences of a page
are a file of their own, fetched when one of its entries is a hit, so that it can show one.
"""

import json
import re
from collections import Counter
from itertools import takewhile
from math import log, sqrt
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, SoupStrainer

from book._ext.content.exhibits import MAP
from tools.chapters import caption_by_document

SOURCE = Path(__file__).parents[2] / "_static" / "search.js"
SENTENCES = "sentences"  # the folder of what all pages say
LAST = "For instructors"

# What a page shows only when asked, and what is no text of it. An element holds answers; the cards
# say the same of one model after another, and their table has every name.
UNREAD = (
    "details:not(.book-deeper), .book-steps, .cards, .tl > *, .tl-run, .ahh-panels, .headerlink, "
    ".label, .book-listing, script, style, svg"
)
# Behind a word, not an initial: it ends the authors of a paper, then its title.
FULL_STOP = r"(?<=[^\W\d_]{2})[.?] "
BLOCKS = "h1, h2, h3, h4, p, dt, tr, pre, figcaption, div.math, .tl"
ENTRY = "h1, h2, h3, h4, dt[id], p[id^=exercise-], div.citation > p"
TITLES = ("h1", "h2", "h3", "h4", "dt")
DEFINED = r"^(?:def|class) (\w+)"
NAME = r"[A-Za-z_]\w*[a-zA-Z_]\w*|[A-Z]\b"

# Numbers, of which prose alone is searched for, and the checks of functions that have own names.
NOT_SAID = r"[\d.]+(?:e\d*)?$|\d+[^/\d].{4}|check_"
NUMBER = r"(?<![\w.,−-])(?:[1-9]\d+|\d+\.\d+)(?![\w/-])"
THOUSANDS = r"(?<=\d),(?=\d{3}\b)"
MOST_WORDS = 29_900  # of all entries, those that tell most
SHORTEST = 20  # characters of a sentence that tells something
UNSAID = 0.3  # what a word of the code counts against one of the text
SENTENCE = r"(?<!\bal\.)(?<=[.?!:])\s+(?=[A-Z“(√0-9])"
WORD = r"\d+/\d+|[½⅓¼⅔¾√]|[^\W_]+(?:[_.\-][^\W_]+)*"
# Taken from the end of a word, so that masks, masked and masking are one; `search.js` takes it too.
ENDINGS = (
    r"(?<=.{4})(?:ations?|ating|ated?|ates|ings?|ions?|ers?|ed|ly)$"
    r"|(?<=.{3})(?:ies|(?<!s)s|es|e|y)$"
)
BASE = 56  # of the characters that number the entries
CAMEL = re.compile("[a-z][A-Z][a-z]")
READERS = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
COMMON = set(READERS["common"].split())
# How readers type what MathML nests, by the element around it.
TYPED = {
    "msqrt": "√{}",
    "mfrac": "{}/{}",
    "msub": "{}_{}",
    "msup": "{}^{}",
    "msubsup": "{}_{}^{}",
}
TURNED = r"\b(?:([A-Z]) (?=[A-Z]\^⊤))|\^(⊤)"


def leave_out_sphinx(app):
    """Leave out Sphinx's own index; its page keeps its address."""
    app.builder.search = False


def search_page(app):
    """Yield the page that searches."""
    yield "search", {}, "search.html"


def index_pages(site, pages):
    """Write `search.js` with the index of all pages in front of it; a build may hold only some.

    Parameters
    ----------
    site : folder of the built site
    pages : dict from a path to the text of that page
    """
    built = {path.relative_to(site).with_suffix("").as_posix() for path in pages}
    listed = {name: caption for name, caption in caption_by_document().items() if name in built}
    found = {name: entries_of_page(pages[site / f"{name}.html"]) for name in listed}
    entries = [entry | {"page": i} for i, name in enumerate(listed) for entry in found[name]]
    named = [page_record(name, found[name], listed[name]) for name in listed]
    lines = map(str.strip, SOURCE.read_text(encoding="utf-8").splitlines())
    script = "\n".join(line for line in lines if line and not line.startswith("//"))
    source = json.dumps(
        {"pages": named, **index_of_entries(entries)}, ensure_ascii=False, separators=(",", ":")
    )
    written = f"const INDEX = {source};\n{script}\n"
    (site / "_static" / SOURCE.name).write_text(written, encoding="utf-8")
    write_sentences(site / "_static" / SENTENCES, found)


def write_sentences(folder, found):
    """Write what all entries of a page say, for each page a script."""
    folder.mkdir(exist_ok=True)
    for name, entries in found.items():
        texts = [
            [text for text in entry["texts"] if entry["paper"] or len(text) > SHORTEST]
            for entry in entries
        ]
        texts = [said or texts[1] for said in texts]  # of a title alone, its Goal
        source = json.dumps([name, texts], ensure_ascii=False, separators=(",", ":"))
        script = folder / f"{Path(name).name}.js"
        script.write_text(f"readSentences(...{source});\n", encoding="utf-8")


def index_of_entries(entries) -> dict:
    """Return what the index tells of all entries."""
    words, places = postings(keep_telling_words(entries, list(map(count_words, entries))))
    return {
        "entries": entries_by_kind(entries),
        "words": front_coded(words),
        "places": " ".join(places),
        "synonyms": READERS["synonyms"],
        "common": " ".join(sorted(COMMON)),
        "endings": ENDINGS,
    }


def entries_by_kind(entries) -> dict[str, list]:
    """Return what is kept of all entries, kind by kind, since like packs best with like."""
    return {
        "id": [shorten_id(entry["id"], entry["title"]) for entry in entries],
        "title": [entry["title"] for entry in entries],
        "inside": [entry["above"] for entry in entries],
        "names": [" ".join(dict.fromkeys(entry["defined"])) for entry in entries],
        "cited": [encode_differences(entries_citing(entry, entries)) for entry in entries],
    }


def page_record(name, found, caption) -> list:
    """Return of a page its place, what stands above a hit, its titles, whether last, its length."""
    entry = found[0]
    label = f"Chapter {entry['number']}" if entry["number"] else ""
    short, _, rest = entry["title"].partition(": ")
    return [name, label, short, rest, int(caption == LAST), len(found)]


def shorten_id(place, title) -> str | int:
    """Return an id, or the part of it that its title does not tell."""
    dashed = re.sub("[^a-zA-Z0-9_]+", "-", title).strip("-")
    if place == dashed.lower():
        return 0
    return place.removesuffix(dashed) if place == f"term-{dashed}" else place


def entries_citing(paper, entries) -> list[int]:
    """Return the places of the entries that link to what a paper of the references links to."""
    if not paper["paper"]:
        return []
    return [
        place
        for place, entry in enumerate(entries)
        if not entry["paper"] and entry["links"] & paper["links"]
    ]


def entries_of_page(page) -> list[dict]:
    """Return the entries of a page in its order, the page itself first."""
    article = BeautifulSoup(page, "html.parser", parse_only=SoupStrainer("article"))
    for reading in article.select("details > .book-reading"):
        reading.parent.insert_after(reading)  # it is text, although it waits
    for unread in article.select(UNREAD):
        unread.extract()
    for formula in article.select(".math"):
        formula.string = formula_as_typed(formula)
    for array in article.select(".book-array"):  # what code printed, though it is a table
        array.name, array.string = "pre", array.get_text(" ")
    titles = {id(block) for block in article.select(ENTRY)}
    entries, above = [], ""
    for block in article.select(BLOCKS):
        if id(block) in titles:
            entries.append(new_entry(block, above))
            above = entries[-1]["title"] if block.name == "h2" else above
        if block.name not in TITLES and not block.find_parent("tr"):
            add_block_to_entry(entries[-1], block)
    return [entry for entry in entries if entry["texts"] or entry["code"] or not entry["id"]]


def new_entry(block, parent_entry) -> dict:
    """Return the entry that a block begins: its title, its place, nothing read yet."""
    number = block.select_one(".section-number")
    number = number.extract().get_text(strip=True).rstrip(".") if number else ""
    strong = block.select_one("strong")
    words = strong.extract() if block.name == "p" and strong else block
    title = collapse_spaces(words.get_text()).rstrip(".")
    title = re.split(FULL_STOP, title)[1] if is_reference(block) else title
    place = "" if block.name == "h1" else block.get("id") or block.parent["id"]
    inside = parent_entry if block.name in ("h3", "h4", "p") else ""
    empty = {"texts": [], "defined": [], "code": [], "links": set(), "paper": is_reference(block)}
    return {"id": place, "title": title, "above": inside, "number": number, **empty}


def is_reference(block) -> bool:
    """Whether a block is an entry of the references."""
    return block.name == "p" and "citation" in block.parent.get("class", ())


def add_block_to_entry(entry, block):
    """Add a block to what was read of an entry: sentences, terms, links; of code the names."""
    entry["links"] |= {link["href"] for link in block.select("a[href^=http]")}
    text = block.get_text(" " if block.name == "tr" else "")
    if block.name.startswith("tl-"):
        entry["defined"].append(block.name.removeprefix("tl-").partition("-")[0])
    elif block.name == "pre" and block.find_parent(class_="cell_input"):
        entry["defined"] += re.findall(DEFINED, text, re.M)
        text = re.sub(r"([\"']).*?\1|#.*", " ", text)
        entry["code"] += re.findall(NAME, text)
    elif block.name == "pre":
        entry["code"] += sorted(set(re.findall(WORD, text)))
    elif is_reference(block):
        entry["texts"] += re.split(FULL_STOP, collapse_spaces(text))[:1]
    elif text != MAP:
        text, _, called = collapse_spaces(text).partition("Also called: ")
        entry["texts"] += re.split(SENTENCE, text)
        inside = block.find_parent(["dd", "blockquote"])
        terms = block.select("em" if inside else "strong")
        entry["defined"] += [called, *(collapse_spaces(term.get_text()) for term in terms)]


def collapse_spaces(text) -> str:
    """Return a text with one space for any white space."""
    return " ".join(text.split())


def formula_as_typed(formula) -> str:
    """Return a formula as readers type it: QKᵀ/√d_k."""
    parts = [mathml_as_typed(part) for part in formula.find_all(recursive=False)]
    return collapse_spaces(re.sub(TURNED, lambda found: found[1] or "ᵀ", " ".join(parts)))


def mathml_as_typed(part) -> str:
    """Return one element of MathML as readers type it."""
    parts = [mathml_as_typed(child) for child in part.find_all(recursive=False)]
    form = TYPED.get(part.name)
    if not form:
        return " ".join(parts) if parts else part.get_text()
    return form.format(*parts) if form.count("{}") == len(parts) else form[0] + " ".join(parts)


def words(text) -> list[str]:
    """Return the words of a text that tell one entry from another."""
    found = [word if CAMEL.search(word) else word.lower() for word in re.findall(WORD, text)]
    return [word for word in found if word not in COMMON and not re.match(NOT_SAID, word)]


def numbers(texts) -> set[str]:
    """Return the numbers of sentences: of two digits at least, or with a point."""
    return set(re.findall(NUMBER, re.sub(THOUSANDS, "", " ".join(texts))))


def count_words(entry) -> Counter:
    """Return how often an entry says each word; of its code a fourth."""
    counts = Counter(words(" ".join(entry["texts"]))) | Counter(numbers(entry["texts"]))
    for word, count in Counter(words(" ".join(entry["code"]))).items():
        if len(word) > 2:
            counts[word] += (count + 3) // 4
    return counts


def keep_telling_words(entries, counts) -> list[Counter]:
    """Return of each entry those words that tell most, as many as all entries may have."""
    spread = Counter(stem for found in counts for stem in set(map(stem_of, found)))

    def worth(i, word):
        stem = stem_of(word)
        rare = log(1 + len(entries) / spread[stem])
        return sqrt(counts[i][word]) * rare * (1 if stem in said[i] else UNSAID)

    told = [[*words(" ".join(entry["texts"])), *numbers(entry["texts"])] for entry in entries]
    said = [set(map(stem_of, found)) for found in told]
    ranked = sorted((-worth(i, word), i, word) for i, found in enumerate(counts) for word in found)
    thinned = [Counter() for _ in counts]
    for _, i, word in ranked[:MOST_WORDS]:
        thinned[i][word] = counts[i][word]
    return thinned


def stem_of(word) -> str:
    """Return a word without its ending."""
    return re.sub(ENDINGS, "", word.lower())


def postings(counts):
    """Return the words, and where each stands: the entries that say it once, a few times, often.

    Forms of one stem are one word.

    Parameters
    ----------
    counts : list of what `count_words` returns of each entry
    """
    places, forms = {}, {}
    for place, found in enumerate(counts):
        for word, count in found.items():
            stem = stem_of(word)
            forms[stem] = min(forms.get(stem, word), word, key=lambda form: (len(form), form))
            entries = places.setdefault(stem, {})
            entries[place] = entries.get(place, 0) + count
    for stem, entries in places.items():
        degrees = ([], [], [], [])
        for place, count in sorted(entries.items()):
            degrees[min(count.bit_length(), 4) - 1].append(place)
        places[stem] = "|".join(map(encode_differences, degrees)).rstrip("|")
    return zip(*sorted((forms[stem], code) for stem, code in places.items()), strict=True)


def front_coded(sorted_words) -> str:
    """Return sorted words, each behind a sign for how much of its beginning the last one has."""
    parts, last = [], ""
    for word in sorted_words:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(word, last, strict=False))
        shared = min(len(list(same)), 9)
        parts.append(chr(35 + shared) + word[shared:])
        last = word
    return "".join(parts)


def encode_differences(places) -> str:
    """Return ascending numbers as their differences, a character or two each."""
    steps = (place - last for last, place in zip([0, *places], places, strict=False))
    return "".join(
        (chr(96 + step // BASE) if step >= BASE else "") + chr(35 + step % BASE) for step in steps
    )

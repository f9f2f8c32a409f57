"""The one reader of the contents: `_toc.yml` lists the chapters and their parts, in order.

    python -m tools.chapters "Part II"     the notebooks of a part, for make

A part with a caption holds chapters; one without, right after it, holds their review. What else is
to be known of a chapter is read from its notebook.
"""

import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "notebooks/"

# The rule of a part: its pages import only what a browser has, NumPy and the library. PyTorch is
# the subject of the parts named here, so their pages may import it too.
IN_PYTORCH = {"Part II"}
# The part whose pages run a real model, the weights of which make may not have been able to fetch.
WITH_WEIGHTS = {"Part V"}
# What the pages of a part need and a browser has not; all other pages run there.
NOT_IN_BROWSER = {
    "Part II": "it needs PyTorch",
    "Part V": "the weights of its model are a file of 98 MB and take 0.7 GB of memory",
}
# The part that builds the layer by hand, whose arrays the live map shows.
BY_HAND = {"Part I"}
# The part whose chapters replace arrows of the layer, each variant a row of a table in the Recap.
OF_VARIANTS = {"Part III"}
# The line at the head of a notebook that shows the map: names of steps, those of the page in bold.
MAP = re.compile(r"^[^·\n]+(?: · [^·\n]+)+$", re.MULTILINE)
# What the heading of a section off the main path begins with.
DEEPER = "Deeper: "
# The sections whose headings say behind a colon what is in them; without it they are alike.
LABELLED = "Check", "Look", "Myth and measurement"


class ContentsError(ValueError):
    """The contents are out of form, or do not hold what is asked for; says what to do."""


@dataclass(frozen=True)
class Page:
    """A notebook, the caption of its part, and the names of the chapters that it reviews."""

    path: Path
    caption: str
    closes: tuple = ()

    @property
    def part(self):
        """Return the name of its part, such as "Part I", which a colon ends."""
        return self.caption.partition(":")[0]

    @property
    def name(self):
        """Return the name of a page, such as "03_attention_weights"."""
        return self.path.stem

    @property
    def head(self):
        """Return the text of its notebook's first cell."""
        cells = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
        return "".join(cells[0]["source"])

    @property
    def title(self):
        """Return the heading that its notebook begins with."""
        return self.head.partition("\n")[0].lstrip("# ")

    @property
    def steps(self):
        """Return the steps of the map that its notebook has in bold, in order.

        Raises
        ------
        ContentsError : the first cell shows no map, or none of its steps is in bold
        """
        shown = MAP.search(self.head)
        lit = re.findall(r"\*\*(.+?)\*\*", shown[0]) if shown else []
        if not lit:
            raise ContentsError(
                f"{self.name} does not show its steps: write the map below its title, as a line of "
                "its own with the page's steps in bold, such as embed · **project** · score."
            )
        return tuple(lit)

    @property
    def number(self):
        """Return the number that a chapter's name starts with; a review has none."""
        return None if self.closes else int(self.name.partition("_")[0])

    @property
    def runs_in_browser(self):
        """Return whether its part needs nothing that a browser has not."""
        return self.part not in NOT_IN_BROWSER

    @property
    def needs_weights(self):
        """Return whether its part runs a real model."""
        return self.part in WITH_WEIGHTS

    @property
    def may_import_torch(self):
        """Return whether PyTorch is the subject of its part."""
        return self.part in IN_PYTORCH

    @property
    def builds_by_hand(self):
        """Return whether its part builds the layer whose arrays the live map shows."""
        return self.part in BY_HAND

    @property
    def has_variants(self):
        """Return whether it is a chapter that replaces arrows of the layer."""
        return self.part in OF_VARIANTS and not self.closes


def section_of(heading):
    """Return the name of a section: its heading, without a label."""
    name = heading.partition(": ")[0]
    return name if name in LABELLED else heading


def documents(root=ROOT):
    """Return every document of the contents, such as "book/intro", in order."""
    return list(caption_by_document(root))


def caption_by_document(root=ROOT):
    """Return the caption below which each document of the contents stands; the first has none."""
    contents, caption, found = _read_toc(root), "", {}
    found[contents["root"]] = caption
    for part in contents["parts"]:
        caption = part.get("caption", caption)
        found |= {entry["file"]: caption for entry in part["chapters"]}
    return found


def _read_toc(root):
    return yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))


@cache
def pages(root=ROOT):
    """Return the notebooks of the contents, in order.

    Raises
    ------
    ContentsError : the contents are out of form
    """
    found, caption, chapters = [], "", ()
    for listed in _read_toc(root)["parts"]:
        files = [entry["file"] for entry in listed["chapters"]]
        names = tuple(file.removeprefix(FOLDER) for file in files if file.startswith(FOLDER))
        if "caption" in listed:
            caption, chapters = listed["caption"], names
        closes = () if "caption" in listed else chapters
        found += [Page(root / FOLDER / f"{name}.ipynb", caption, closes) for name in names]
    for fault in _faults_of_pages(found):
        raise ContentsError(fault)
    return tuple(found)


def _faults_of_pages(pages_found):
    for place, page in enumerate((page for page in pages_found if not page.closes), start=1):
        if not re.match(r"\d+_", page.name):
            yield (
                f"{page.name} has no number: name a chapter {place:02}_{page.name}, and list a "
                "review right after its part, in a part without a caption."
            )
        elif page.number != place:
            yield f"{page.name} is chapter {place} in _toc.yml: renumber it, or move its line."
    for page in pages_found:
        if not page.path.is_file():
            yield f"There is no {page.path.name}, which _toc.yml lists: write it, or take it out."


def page(name):
    """Return the page of that name, such as "03_attention_weights".

    Raises
    ------
    ContentsError : there is none
    """
    return _choose(name, {page.name: page for page in pages()})


def page_of_document(document):
    """Return the page of a document of the contents, such as "book/intro"; None if it is none."""
    return {FOLDER + page.name: page for page in pages()}.get(document)


def part(name):
    """Return the pages of a part, such as "Part II", its review too.

    Raises
    ------
    ContentsError : there is none
    """
    parts = {page.part: [] for page in pages()}
    for page in pages():
        parts[page.part].append(page)
    return _choose(name, parts)


def _choose(name, known):
    if name not in known:
        raise ContentsError(f"There is no {name!r} in _toc.yml. Choose one of: {', '.join(known)}.")
    return known[name]


def main(words):
    """Print the paths of a part's notebooks; 0 when there is that part."""
    try:
        found = part(" ".join(words))
    except ContentsError as error:
        print(error, file=sys.stderr)
        return 1
    print(*(page.path.relative_to(ROOT) for page in found), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The page of the variants: its table is made of those that stand in the Recaps of the chapters."""

import re

from sphinx.util.docutils import SphinxDirective

from book._ext.content.exhibits import cells, steps_line_html
from book._ext.content.models import STEPS
from tools.chapters import FOLDER, pages

HEADER = "| variant | what changes on the map | its line | what gives the layer back |"
SHOWN = HEADER.replace("variant", "variant, chapter", 1)
STEP = re.compile(r"\b(embed|project|score|mix|concat)s?\b")
BUILT = re.compile(r"\[(?P<name>[^\]]+)\]\(#[^\s)]+\)")
# A link of a chapter, to itself or to another.
INSIDE = re.compile(r"\]\((?=#)")
BESIDE = re.compile(r"\]\((?=\w+\.ipynb)")


class VariantsError(ValueError):
    """A table of variants is out of form; says in one sentence where and what is expected."""


def variants_of_page(page) -> dict[str, list[str]]:
    """Return the variants of a chapter, {name: its four cells}, from the table in its Recap.

    Raises
    ------
    VariantsError : there is not one such table, or a row of it is out of form
    """
    texts = [cell["source"] for cell in cells(page.path) if cell["cell_type"] == "markdown"]
    told = "\n".join(map("".join, texts))
    _, *recap = re.split(r"^## Recap$", told, flags=re.M)
    lines = "".join(recap).splitlines()
    places = [place for place, line in enumerate(lines) if line.strip() == HEADER]
    if len(places) != 1:
        raise VariantsError(
            f"{page.name} has {len(places)} tables of variants in its Recap; "
            f"expected one, with the header {HEADER}."
        )
    return parse_table_rows(page.name, lines[places[0] + 2 :])  # below the rule


def parse_table_rows(chapter, lines) -> dict[str, list[str]]:
    """Return the rows of a table up to its end, {name: its four cells}."""
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        row = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        built = BUILT.fullmatch(row[0]) if len(row) == 4 and all(row) else None
        if not built or built["name"] in found:
            raise VariantsError(
                f"{chapter} has the row {line!r} in its table of variants; expected four cells, "
                f"the first a link such as [KV cache](#build), with a name that is not there yet."
            )
        found[built["name"]] = row
    if not found:
        raise VariantsError(f"{chapter} has no row in its table of variants; expected one or more.")
    return found


def every_row(chapters) -> dict:
    """Return the variants of chapters, in order, {name: (chapter, its four cells)}.

    Raises
    ------
    VariantsError : a table is out of form, or two chapters have a variant of one name
    """
    found = {}
    for page in chapters:
        for name, row in variants_of_page(page).items():
            if name in found:
                raise VariantsError(
                    f"{found[name][0].name} and {page.name} both have the variant {name!r}; "
                    f"expected a name of its own for each."
                )
            found[name] = page, row
    return found


def steps_bar(name, change) -> str:
    """Return the line of the six steps, those lit that a variant changes, for those who look.

    The cards of the models have the steps of most variants; a row names those of the others.
    """
    lit = STEPS.get(name, STEP.findall(change))
    return f'<span class="book-steps" aria-hidden="true">{steps_line_html(lit)}</span>'


def variants_table_lines(chapters) -> list[str]:
    """Return the lines of the table of all variants, each row with the way to its chapter."""
    lines = [SHOWN, "|---|---|---|---|"]
    for name, (page, (first, change, code, limit)) in every_row(chapters).items():
        home = f"../{FOLDER}{page.name}.ipynb"
        changed = f"{steps_bar(name, change)}{change}"
        line = f"| {first}, [{page.number}]({home}) | {changed} | {code} | {limit} |"
        line = BESIDE.sub(f"](../{FOLDER}", line)
        lines.append(INSIDE.sub(f"]({home}", line))
    return lines


class Variants(SphinxDirective):
    """The directive `variants`: the table of all variants, from the chapters."""

    def run(self):
        """Return the table; a chapter whose own is out of form ends the build."""
        chapters = [page for page in pages() if page.has_variants]
        try:
            lines = variants_table_lines(chapters)
        except VariantsError as error:
            raise self.error(str(error)) from None
        drawn = self.parse_text_to_nodes("\n".join(lines))
        drawn[0]["classes"].append("book-variants")
        return drawn

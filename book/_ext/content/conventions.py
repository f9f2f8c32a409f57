"""The tables of the page of conventions, from data/facts/conventions.json."""

from sphinx.util.docutils import SphinxDirective

from tutorial_lib.records import facts


def interface_lines(fact_lists) -> list[str]:
    """Return the lines of the table of interfaces: what is asked, its version, and where."""
    rows = [
        f"| [{entry['call']}]({entry['source']}) | {entry['version']} | {entry['device']} |"
        for entry in fact_lists["interfaces"]
    ]
    return ["| interface | version | asked on |", "|---|---|---|", *rows]


def question_lines(fact_lists, question) -> list[str]:
    """Return the lines of the table of a question, one for each interface."""
    titles = {entry["name"]: entry["title"] for entry in fact_lists["interfaces"]}
    rows = []
    for cell in fact_lists["cells"]:
        asked, interface = cell["name"].split(": ")
        if asked == question:
            sentences = [f"**{cell['answer']}**.", cell["note"], proof(cell)]
            rows.append(f"| {titles[interface]} | {' '.join(filter(None, sentences))} |")
    return ["| interface | answer |", "|---|---|", *rows]


def proof(cell) -> str:
    """Return how a cell is proved: by a call that a test runs, or by a line of source."""
    return "*Call.*" if cell["source_kind"] == "call" else f"[Source.]({cell['source']})"


def bug_lines(fact_lists) -> list[str]:
    """Return the lines of the table of bugs, each with the cell that answers it."""
    titles = {entry["name"]: entry["title"] for entry in fact_lists["interfaces"]}
    rows = []
    for bug in fact_lists["bugs"]:
        question, interface = bug["cell"].split(": ")
        where = "#".join(bug["source"].removeprefix("https://github.com/").split("/")[1::2])
        cell = f"[{question}](#conventions-{question}), {titles[interface]}"
        rows.append(f"| {bug['name']} | [{where}]({bug['source']}) | {cell} |")
    return ["| what went wrong | where | cell |", "|---|---|---|", *rows]


class Conventions(SphinxDirective):
    """The directive `conventions`: the table of a question, of the interfaces or of the bugs."""

    required_arguments = 1

    def run(self):
        """Return the table, which search leaves out, and which stacks its cells on a phone."""
        fact_lists, name = facts("conventions"), self.arguments[0]
        tables = {"interfaces": interface_lines, "bugs": bug_lines}
        lines = tables[name](fact_lists) if name in tables else question_lines(fact_lists, name)
        drawn = self.parse_text_to_nodes("\n".join(lines))
        drawn[0]["classes"] += ["book-listing", "book-variants"]
        return drawn

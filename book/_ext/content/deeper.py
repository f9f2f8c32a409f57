"""Deeper: a section beside the main path, of which a page shows its heading and its result.

The heading alone makes it: a section whose title begins with DEEPER. Its first paragraph is the
result and stays visible; the rest is a closed fold, which says how many minutes it takes. The
heading is not the summary of the fold, so that it stays a heading for those who listen, and heading
and result may hold links.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from book._ext.content.folds import is_cell
from tools.chapters import DEEPER
from tools.minutes import A_LINE_READ, A_WORD, WORD

OPENING = '<details class="book-deeper"><summary>Go deeper · {} min</summary>'
END = "</details>"


def reading_minutes(parts) -> int:
    """Return how long parts of a page take to read: paragraphs, and the code that is shown."""
    paragraphs = [node for part in parts for node in part.findall(nodes.paragraph)]
    words = sum(len(WORD.findall(paragraph.astext())) for paragraph in paragraphs)
    cells = [node for part in parts for node in part.findall(nodes.container) if is_cell(node)]
    shown = [code for cell in cells for code in cell.children if "cell_input" in code["classes"]]
    lines = sum(len(code.astext().split("\n")) for code in shown)
    return max(1, round(A_WORD * words + A_LINE_READ * lines))


class FoldDeeper(SphinxPostTransform):
    """Fold what goes deeper, in HTML alone."""

    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place: what stands below the result of a section is its fold."""
        for section in [*self.document.findall(nodes.section)]:
            title, *rest = section.children
            if isinstance(title, nodes.title) and title.astext().startswith(DEEPER):
                opening = OPENING.format(reading_minutes(rest[1:]))
                section.insert(2, nodes.raw("", opening, format="html"))
                section += nodes.raw("", END, format="html")

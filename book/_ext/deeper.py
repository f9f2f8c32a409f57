"""Deeper: a section beside the main path, of which a page shows its heading and its result.

The heading alone makes it: a section whose title begins with DEEPER. Its first paragraph is the
result and stays visible; the rest is a closed fold. The heading is not the summary of the fold, so
that it stays a heading for those who listen, and heading and result may hold links.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.chapters import DEEPER

OPENING = '<details class="book-deeper"><summary>Go deeper</summary>'
END = "</details>"


def is_deeper(section) -> bool:
    """Whether a section goes deeper than the main path."""
    title = section.children[0]
    return isinstance(title, nodes.title) and title.astext().startswith(DEEPER)


def fold(section):
    """Put what stands below the result of a section into a fold."""
    rest = section.children[2:]
    section.children = section.children[:2]
    section += nodes.raw("", OPENING, format="html")
    section += rest
    section += nodes.raw("", END, format="html")


class FoldDeeper(SphinxPostTransform):
    """Fold what goes deeper, in HTML alone."""

    default_priority = 210  # after the folds of cells
    formats = ("html",)

    def run(self, **kwargs):
        """Change the page in place."""
        for section in filter(is_deeper, [*self.document.findall(nodes.section)]):
            fold(section)


def setup(app):
    """Connect the step above."""
    app.add_post_transform(FoldDeeper)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

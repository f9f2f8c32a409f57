"""Formulas set when the book is built: TeX becomes MathML, which every browser draws by itself.

No script is loaded for them, nothing moves when they come, and a screen reader is told the formula,
not its picture. The font is in `book/_static/formulas.woff`.
"""

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

TEX = LatexToMathML()
# A prime that is raised as a power is would stand a line too high: its sign is high by itself.
POWER = re.compile(r"<msup>(<mi>[^<]+</mi>)<mo>′</mo></msup>")
PRIME = r'<mrow>\1<mo form="postfix" lspace="0" rspace="0">′</mo></mrow>'


def mathml(node, *, display) -> str:
    """Return the MathML of a formula; one that cannot be set fails the build where it stands."""
    try:
        formula = TEX.convert_with_local_state(node.astext().strip(), displaystyle=display)
        return POWER.sub(PRIME, formula)
    except LatexError as error:
        logging.getLogger(__name__).warning(
            "this formula cannot be set, rewrite it: %s", error, location=node
        )
        return ""


def as_inline(translator, node):
    """Write a formula that stands in a line."""
    formula = mathml(node, display=False)
    translator.body.append(f'<span class="math notranslate nohighlight">{formula}</span>')
    raise nodes.SkipNode


def as_block(translator, node):
    """Write a formula that stands by itself."""
    opening = translator.starttag(node, "div", suffix="", CLASS="math notranslate nohighlight")
    translator.body.append(f"{opening}{mathml(node, display=True)}</div>\n")
    raise nodes.SkipNode

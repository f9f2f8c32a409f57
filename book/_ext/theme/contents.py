"""The contents at the left: each title on one line, by what stands before its colon.

The whole title is the entry's tooltip, which a screen reader says after its name. The index, which
is no page of the contents, ends the part in which one looks things up.
"""

import re
from html import escape, unescape

ENTRY = re.compile(r'(<a class="[^"]*\binternal"[^>]*)>\s*(?:(\d+)\. )?([^<]*?)\s*</a>')
LOOKED_UP = re.compile(r"(?s)(Look things up</span></p>\s*<ul.*?)(</ul>)")
INDEX = '<li class="toctree-l1"><a class="reference internal" href="{}">Index</a></li>\n'
CAPTION = re.compile(r'(<span class="caption-text">)([^<:]+:)')


def split_number_and_title(entry) -> str:
    """Return an entry of the contents with its number and its short title apart."""
    opening, number, title = entry.groups()
    short, colon, _ = title.partition(":")
    tooltip = f' title="{escape(unescape(title))}"' if colon else ""
    place = f'<span class="book-number">{number}<span>. </span></span>' if number else ""
    return f'{opening}{tooltip}>{place}<span class="book-title">{short}</span></a>'


def shorten_contents(app, pagename, templatename, context, doctree):
    """Have the theme's function for the contents give short titles."""
    generate = context["generate_toctree_html"]

    def generate_short(*args, **kwargs):
        contents = str(generate(*args, **kwargs))
        index = INDEX.format(context["pathto"]("genindex"))
        contents = LOOKED_UP.sub(rf"\1{index}\2", contents)
        contents = ENTRY.sub(split_number_and_title, contents)
        return CAPTION.sub(r"\1<b>\2</b>", contents)

    context["generate_toctree_html"] = generate_short

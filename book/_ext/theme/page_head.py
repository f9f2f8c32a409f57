"""The head of a chapter: its steps, the button that runs it, Colab and a PDF, on one line.

They stand one below the other in the page as it comes; here they get one box, below the title.
"""

import re

from book._ext.content.runnable import BEFORE
from tools.chapters import NOT_IN_BROWSER, page_of_document

STEPS = re.compile(r'<(?:details|p) class="book-steps">')
BUTTONS = (  # site.js answers them
    '<button type="button" class="book-shows pst-js-only">Show everything</button>'
    '<button type="button" class="book-pdf pst-js-only">Print or PDF</button>'
)
NOT_HERE = '<p class="book-elsewhere">This chapter cannot run here, since {}.</p>'


def join_head(app, pagename, templatename, context, doctree):
    """Put what stands between the title and the goal of a notebook into one box."""
    page = page_of_document(pagename)
    if page is None:
        return
    head, goal, rest = context["body"].partition(BEFORE)
    start = STEPS.search(head).start()
    note = "" if page.runs_in_browser else NOT_HERE.format(NOT_IN_BROWSER[page.part])
    box = f'<div class="book-head">\n{head[start:]}{BUTTONS}{note}\n</div>\n'
    context["body"] = f"{head[:start]}{box}{goal}{rest}"

"""Code that a phone can show: each line of a program is an element, which wraps and hangs.

A long line goes on below itself, further in than it begins; `book.css` says how far, by the class
that counts the spaces before it. Text that is copied, run or searched stays as it was.
"""

import re

PROGRAM = re.compile(
    r'(<div class="highlight-(?:python|ipython3?) notranslate">'
    r'<div class="highlight"><pre><span></span>)(.*?)(</pre>)',
    re.DOTALL,
)
TAG = re.compile(r"<[^>]*>")
STEP = 4  # spaces
DEEPEST = 3  # steps that have a class


def wrap_code_lines(site, pages):
    """Make an element of each line of the programs in every page."""
    for path, page in pages.items():
        pages[path] = PROGRAM.sub(_with_lines, page)


def _with_lines(program):
    before, code, after = program.groups()
    return before + "".join(map(_line_html, code.splitlines(keepends=True))) + after


def _line_html(line):
    text = TAG.sub("", line)
    step = min((len(text) - len(text.lstrip(" "))) // STEP, DEEPEST)
    return f'<span class="line in-{step}">{line}</span>' if text.strip() else line

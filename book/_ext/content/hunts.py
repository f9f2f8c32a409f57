"""The bug hunt: suspects with folded answers, which need no script, and a form to score tests."""

import re
from html import escape
from inspect import signature

from docutils.parsers.rst import Directive

from book._ext.content.exhibits import raw
from tutorial_lib import hunt

CODE = re.compile("`(.+?)`")
IN_PRINT = 3  # suspects of each level that the page prints


class Suspects(Directive):
    """The directive `suspects`: a few of each level, the answer of each folded."""

    def run(self):
        """Return the lines of each, and its mistake in a fold."""
        levels = [{s.task.name: s for s in hunt.suspects(level)} for level in hunt.LEVELS]
        found = [suspect for level in levels for suspect in [*level.values()][:IN_PRINT]]
        return [raw("".join(map(_printed, found)))]


def _printed(suspect):
    lines, numbers = suspect.numbered_lines()
    answer = f"{'Lines' if len(numbers) > 1 else 'Line'} {', '.join(map(str, sorted(numbers)))}: "
    answer += f"{suspect.mistake.says}. {suspect.mistake.mend}"
    purpose, answer = (
        CODE.sub(r"<code>\1</code>", escape(text)) for text in (suspect.purpose(), answer)
    )
    return (
        f"<p>{purpose} {hunt.LEVELS[suspect.level].capitalize()}.</p>"
        f'<div class="highlight"><pre tabindex="0">{escape(lines)}</pre></div>'
        f"<details><summary>What is wrong</summary><p>{answer}</p></details>"
    )


class Offered(Directive):
    """The directive `hunted-functions`: the form in which a test is scored."""

    def run(self):
        """Return the form, with the names of all functions that a test can be written for."""
        rows = ((name, signature(task.right).parameters) for name, task in hunt.tasks().items())
        options = [f'<option value="{n}">{n}({", ".join(takes)})</option>' for n, takes in rows]
        return [raw(FORM.format(options="".join(options)))]


FORM = """\
<form class="tl tl-python" hidden>
<label>A function <select name="name">{options}</select></label>
<label>Your test <textarea name="code" rows="6" spellcheck="false">def test(f):
    </textarea></label>
<button value="tutorial_lib.hunt:score_text">Score it</button>
<p role="status"></p>
<output></output>
</form>"""

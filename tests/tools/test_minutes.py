"""The minutes of a page: what counts, what does not, and whose minutes the rates are fitted to."""

import pytest
from nbformat.v4 import new_code_cell
from nbformat.v4 import new_markdown_cell as text

from tests.chapters.noted_minutes import fit
from tests.chapters.pages import NAMES, written
from tools import minutes
from tools.chapters import Page, page
from tools.minutes import LONG, SAID, Counts, count, goal

TEXT = """## Idea

Two words. A formula $a < b$ is one, [a link](https://example.org/of/many) its text.
<!-- "a comment"[0] -->

```python
# Not a heading, and not read as words.
```
"""
HINT = "<details><summary>Hint 1</summary>\n\nOnly who needs it opens it.\n\n</details>"
DEEPER = "#### Deeper: more\n\nFour words are here."


def code(source, *tags):
    """Return a code cell with tags."""
    return new_code_cell(source, metadata={"tags": list(tags)})


def test_what_is_read_counts_and_what_is_folded_or_nowhere_shown_does_not():
    found = count([text(TEXT), code("a = 1\n\nb = 2"), code("c = 3", "hide-input"), text(HINT)])
    assert found == Counts(words=12, lines=2, exercises=0, further=0)


def test_exercises_count_and_of_each_the_words_beyond_a_length():
    tasks = f"## Exercises\n\n**Exercise 1.** Try.\n\n**Exercise 2.** {'word ' * (LONG + 9)}"
    found = count([text(tasks), code("done = True", "solution", "hide-cell")])
    assert (found.exercises, found.lines) == (2, 0)
    assert found.further == 9
    assert count([text(f"## The task\n\nTry.\n\n### Use\n\n{'word ' * LONG}")]).further == 0


@pytest.mark.parametrize(
    ("after", "on_the_path"),
    [("### Round 2", True), ("## Check", True), ("#### Deeper: again", False), ("##### x", False)],
)
def test_deeper_ends_at_a_heading_of_its_level_or_above(after, on_the_path):
    cells = [text(f"## Build\n\n### Round 1\n\n{DEEPER}"), code("a = 1"), text(after)]
    without = count([*cells, code("b = 2")], deeper=False)
    assert without.lines == on_the_path
    assert count([*cells, code("b = 2")]).lines == 2


def test_goal_names_both_where_something_stands_off_the_path():
    cells = [text("## Build\n\n" + "word " * 1000)]
    assert goal(cells) == "About 20 minutes of reading and 5 of doing."
    long = [*cells, text(DEEPER + " word" * 1000)]
    assert goal(long).endswith("and 5 of doing; with *Deeper*, 40 and 5.")
    assert SAID.fullmatch(goal(cells))
    assert SAID.fullmatch(goal(long))


def test_rates_are_those_that_the_noted_minutes_give():
    reading, doing = ([float(f"{rate:.2g}") for rate in one.rates] for one in fit())
    assert reading == [minutes.A_WORD, minutes.A_LINE_READ]
    assert doing == pytest.approx(
        [minutes.AN_EXERCISE, minutes.A_FURTHER_WORD, minutes.A_LINE_RUN], rel=0.02
    )


def test_writing_sets_the_minutes_and_changes_nothing_else(tmp_path, monkeypatch, capsys):
    cells = written(NAMES[0]).cells
    stale = page(NAMES[0]).path.read_text(encoding="utf-8")
    stale = SAID.sub("About 1 minutes of reading and 2 of doing.", stale)
    path = tmp_path / f"{NAMES[0]}.ipynb"
    path.write_text(stale, encoding="utf-8")
    monkeypatch.setattr(minutes, "pages", lambda: [Page(path, "")])
    minutes.main(["--write"])
    assert goal(cells) in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == SAID.sub(goal(cells), stale)

"""The foot of a page: its mark, a report of a mistake, its neighbours' steps.

`book/_templates/page-foot.html` shows it, and `book/_static/kept.js` wakes what needs a script.
"""

from html import escape
from urllib.parse import urlencode

from docutils import nodes
from sphinx.util.nodes import clean_astext

from tools.chapters import FOLDER, page_of_document, pages

REPORT = """\
Page: {title}
Address: {url}
Section:

What is wrong:

What it should be:
"""


def lead_to_the_first_chapter(app, doctree, docname):
    """Lead from the first page to chapter 1 and back; pages listed between are for who asks."""
    first, chapter = app.config.root_doc, FOLDER + pages()[0].name
    app.builder.relations[first][2] = chapter
    app.builder.relations[chapter][1] = first


def steps_and_arrow(page, doctree) -> str:
    """Return the steps that a chapter lights on the map and its arrow: "concat: heads → concat"."""
    goals = [
        s for s in doctree.findall(nodes.section) if s.next_node(nodes.title).astext() == "Goal"
    ]
    arrows = [text.astext() for text in goals[0].findall(nodes.literal) if "→" in text.astext()]
    unbroken = arrows[0].replace(" ", "\N{NO-BREAK SPACE}")
    return f"{' · '.join(page.steps)}: {unbroken}"


def name_neighbours(app, pagename, context):
    """Put the steps and the arrow of the pages before and after below their titles."""
    _, *names = app.builder.relations[pagename]
    for side, name in zip(("prev", "next"), names, strict=True):
        page = page_of_document(name)
        if page:
            steps = steps_and_arrow(page, app.env.get_doctree(name))
            line = f'<span class="book-arrow">{escape(steps)}</span>'
            context[f"{side}_title"] = context[side]["title"] + line


def fill_foot(app, pagename, templatename, context, doctree):
    """Fill in the foot of a page of the book; a page such as the index has none."""
    if doctree is None:
        return
    config, title = app.config, clean_astext(app.env.titles[pagename])
    url = config.html_baseurl + app.builder.get_target_uri(pagename)
    fields = {"title": f"Mistake in “{title}”", "body": REPORT.format(title=title, url=url)}
    repository = config.html_theme_options["repository_url"]
    context["foot"] = {"report": f"{repository}/issues/new?{urlencode(fields)}"}
    name_neighbours(app, pagename, context)


def set_report_link(app, pagename, templatename, context, doctree):
    """Let the theme's button for issues open our report."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if "foot" in context and button.get("label") == "source-issues-button":
                name = "Report a mistake"
                button.update(url=escape(context["foot"]["report"]), text=name, tooltip=name)

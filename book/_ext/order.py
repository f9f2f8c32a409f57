"""What the website adds to Sphinx, and the one place that says in which order.

`content/` has what a page says: directives, and what is drawn from the text and its outputs.
`theme/` has what stands around it and what every page has in common.

`make book` takes a page through these, from above to below: TRANSFORMS when its source is read,
POST_TRANSFORMS when it is written in HTML, the steps of EVENTS at their event, and FINISH, each
over all pages, when the last one is written. Smaller priorities come first; the theme's is 500. A
step of FINISH takes the folder of the built site, and the pages: a dict from a path to the text of
that page, which it rewrites in place.
"""

from pathlib import Path

from myst_nb.sphinx_ import HideCodeCellNode

from book._ext.content import (
    addresses,
    arrays,
    cards,
    conventions,
    courses,
    deeper,
    definitions,
    exercises,
    exhibits,
    folds,
    formulas,
    hunts,
    runnable,
    search,
    sheet,
    touch,
    variants,
)
from book._ext.theme import (
    code_lines,
    contents,
    lighten,
    page_foot,
    page_head,
    security,
    site_shell,
    styles,
)

DIRECTIVES = {
    "course": courses.Course,
    "conventions": conventions.Conventions,
    "exercises": exercises.Exercises,
    "exhibit": exhibits.Exhibit,
    "hunted-functions": hunts.Offered,
    "live-map": exhibits.LiveMap,
    "model-cards": cards.Cards,
    "model-table": cards.Table,
    "prediction": exhibits.Prediction,
    "sheet": sheet.Sheet,
    "suspects": hunts.Suspects,
    "things": touch.Things,
    "variants": variants.Variants,
}
TRANSFORMS = {
    addresses.NumberPage: 870,  # MyST resolves the links of a page to itself at 879
}
POST_TRANSFORMS = {
    addresses.LinkStates: 8,  # MyST refuses at 9 what is no id
    folds.NameFolds: 200,  # myst-nb folds at 199
    exhibits.DrawMaps: 200,
    arrays.DrawArrays: 201,  # NameFolds reads what a printed text begins with
    deeper.FoldDeeper: 210,
}
EVENTS = (
    ("config-inited", site_shell.place_not_found_page, 400),
    ("config-inited", site_shell.remove_thebe, 500),
    ("config-inited", site_shell.state_version, 500),
    ("config-inited", addresses.leave_numbers_to_this_file, 900),
    ("builder-inited", runnable.place_library, 500),
    ("builder-inited", search.leave_out_sphinx, 500),
    ("env-get-outdated", site_shell.reread_all_pages, 500),
    ("source-read", site_shell.link_to_tag, 500),
    ("doctree-resolved", page_foot.lead_to_the_first_chapter, 500),
    ("html-collect-pages", search.search_page, 500),
    ("html-page-context", page_foot.fill_foot, 400),  # the theme drops what is empty
    ("html-page-context", site_shell.link_first_page, 500),
    ("html-page-context", runnable.add_button, 500),
    ("html-page-context", page_head.join_head, 600),
    ("html-page-context", site_shell.set_description_and_card, 900),
    ("html-page-context", page_foot.set_report_link, 900),
    ("html-page-context", contents.shorten_contents, 900),
    ("html-page-context", addresses.offer_book, 900),
    ("build-finished", site_shell.write_start_page, 500),
    ("build-finished", addresses.write_sitemap, 500),
    ("build-finished", sheet.write_sheet, 500),
)
FINISH = (
    site_shell.repair_theme_faults,
    definitions.define_terms,
    site_shell.add_storage_fallback,
    lighten.fold_elements,
    lighten.fold_models,
    lighten.remove_unused_scripts,
    search.index_pages,
    code_lines.wrap_code_lines,
    lighten.fold_markup,
    styles.join_styles,
    lighten.cut_formula_font,
    lighten.remove_unused_files,
    security.add_content_policies,  # the policy names what all of the others leave
)


def finish_pages(app, exception):
    """Take all pages through the steps that need their final text."""
    if exception:
        return
    site = Path(app.outdir)
    paths = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: path.read_text(encoding="utf-8") for path in paths}
    for step in FINISH:
        step(site, pages)
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")


def setup(app):
    """Connect everything above, in this order."""
    app.add_node(exhibits.place)
    app.add_node(HideCodeCellNode, override=True, html=(folds.visit_fold, folds.depart_fold))
    app.add_html_math_renderer("mathml", (formulas.as_inline, None), (formulas.as_block, None))
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    for table, add in ((TRANSFORMS, app.add_transform), (POST_TRANSFORMS, app.add_post_transform)):
        for transform, priority in table.items():
            transform.default_priority = priority
            add(transform)
    for event, step, priority in EVENTS:
        app.connect(event, step, priority)
    # After the theme, which writes the colours of code at the end of a build.
    app.connect("build-finished", finish_pages, 900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

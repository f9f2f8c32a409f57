"""Build the page of one chapter, as `make book` builds it, into _build/chapter.

    python -m tools.build_page 05_concatenation

All sources are read, so that contents, numbers and links are those of the book; written are this
page, the first one, and those whose terms and papers it links. A warning counts as an error, as in
`make book`.
"""

import logging
import shutil
import sys

from tools.chapters import ROOT, page

SITE = ROOT / "_build" / "chapter"
LINKED = [ROOT / "book" / name for name in ("glossary.md", "references.md")]


def main(arguments):
    """Build the page of the chapter that is named; 0 when nothing had to be warned of."""
    from jupyter_book.sphinx import build_sphinx  # not above: it takes a second

    [name] = arguments
    shutil.rmtree(SITE, ignore_errors=True)
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    failed = build_sphinx(
        ROOT,
        SITE,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides={
            "external_toc_path": str(ROOT / "_toc.yml"),
            "latex_individualpages": False,
            "nitpicky": True,
        },
        doctreedir=SITE / ".doctrees",
        filenames=[str(path) for path in (page(name).path, *LINKED)],
        warningiserror=True,
        keep_going=True,
        quiet=True,
    )
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

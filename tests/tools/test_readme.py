"""The list of chapters in the README is that of the contents."""

import re

from tools.chapters import FOLDER, ROOT, pages
from tutorial_lib.records import SITE


def test_readme_lists_every_chapter_below_its_part_with_its_title():
    text, part, lines = (ROOT / "README.md").read_text(encoding="utf-8"), "", []
    for page in pages():
        lines += [f"**{page.caption}**"] if page.caption != part else []
        lines.append(f"- [{page.name}]({SITE}{FOLDER}{page.name}.html): {page.title}")
        part = page.caption
    written = re.findall(r"^(?:\*\*Part .*|- \[\w+\]\(.*/notebooks/.*)$", text, re.MULTILINE)
    assert written == lines, "README.md: let its list of chapters follow _toc.yml and the titles"

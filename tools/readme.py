"""Write the list of chapters in README.md anew: the contents, with the title of each notebook.

    python -m tools.readme

`make notebooks` does so whenever it has run the chapters.
"""

import re
import sys

import yaml

from tools.chapters import FOLDER, ROOT, pages

README = ROOT / "README.md"
LIST = re.compile(r"(?<=<!-- chapters -->\n).*?(?=<!-- end of chapters -->)", re.DOTALL)


def chapters():
    """Return the list: the captions of the parts, and below each a link for each of its pages."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    site, part, lines = config["html"]["baseurl"], "", []
    for page in pages():
        if page.caption != part:
            part = page.caption
            lines += ["", f"**{part}**", ""]
        lines.append(f"- [{page.name}]({site}{FOLDER}{page.name}.html): {page.title}")
    return "\n".join([*lines[1:], ""])


def rewritten(text):
    """Return a text with the list between its two comments.

    Raises
    ------
    ValueError : the text does not have both, once
    """
    text, found = LIST.subn(lambda _: chapters(), text)
    if found != 1:
        raise ValueError(
            f"README.md has {found} places for the list of chapters; expected one, between the "
            "lines <!-- chapters --> and <!-- end of chapters -->. Put them back."
        )
    return text


def main():
    """Write the list into README.md; 0 when it stands there."""
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

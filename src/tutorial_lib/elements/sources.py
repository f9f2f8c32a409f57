"""The script and the style that an element brings along, put together from the files beside it.

`tl-quiz` is defined in `quiz.js`. A script names in its import lines the others that it needs, and
the style sheet beside a script has its name and goes with it. Alone in Colab an element has nothing
else, so it carries all of this as one block; the site has the block of each kind once.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
KINDS = {
    path.stem: path
    for path in sorted(FOLDER.rglob("*.js"))
    if f'define("tl-{path.stem}"' in path.read_text(encoding="utf-8")
}


def script(*kinds):
    """Return the scripts of elements and all that they need, each once, in a block of their own."""
    source = "".join(path.read_text(encoding="utf-8") for path in needed(*kinds))
    return "{\n" + re.sub(r"^import .*\n|^export ", "", bare(source), flags=re.M) + "\n}"


def bare(source):
    """Return a script without indentation and comments, or a style sheet without indentation."""
    lines = map(str.strip, source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def style(*kinds):
    """Return the style sheets of elements, each once, without indentation and comments."""
    sheets = [path.with_suffix(".css") for path in needed(*kinds)]
    source = "".join(path.read_text(encoding="utf-8") for path in sheets if path.exists())
    return bare(re.sub(r"/\*.*?\*/", "", source, flags=re.S))


def needed(*kinds):
    """List the scripts of elements, each behind those that it imports."""
    return list(_with_imports([KINDS[kind] for kind in kinds]))


def is_exhibit(kind) -> bool:
    """Whether an element is there to be tried, and not a question."""
    return FOLDER / "exhibits/exhibit.js" in needed(kind)


def _with_imports(paths):
    found = {}  # a set that keeps its order
    for path in paths:
        names = re.findall(r'^import .* from "(.+)";$', path.read_text(encoding="utf-8"), re.M)
        found |= _with_imports([(path.parent / name).resolve() for name in names])
        found[path] = None
    return found

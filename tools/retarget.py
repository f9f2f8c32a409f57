"""Point every address of the book at another repository: `make retarget REPO=…`.

The address stands in `pyproject.toml`; everything else that names it is rewritten from there: setup
cells and Colab links, pages, the README, the citation and `_config.yml`.
"""

import contextlib
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE_FOLDERS = {"_build", "build", "dist", "__pycache__"}
HIDDEN_FOLDERS = {".ci", ".github"}  # the ones that belong to the book
REPOSITORY = re.compile(
    r"https://github\.com/(?P<owner>[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38})/(?P<name>[\w.-]+?)(?:\.git)?/?",
    re.ASCII,
)


@dataclass(frozen=True)
class Target:
    """A repository on GitHub and the addresses that follow from it."""

    owner: str
    name: str

    @property
    def slug(self) -> str:
        """How GitHub names the repository."""
        return f"{self.owner}/{self.name}"

    @property
    def repository(self) -> str:
        """The address of the repository."""
        return f"https://github.com/{self.slug}"

    @property
    def pages(self) -> str:
        """Where GitHub Pages serves the site, without `https://` and without a last slash."""
        host = f"{self.owner.lower()}.github.io"
        return host if self.name.lower() == host else f"{host}/{self.name}"


def parse(address: str) -> Target:
    """Read a repository's address.

    Raises
    ------
    ValueError : not the address of a repository on GitHub
    """
    match = REPOSITORY.fullmatch(address.strip())
    if match is None or set(match["name"]) == {"."}:
        raise ValueError(
            f"REPO={address!r} is not the address of a repository on GitHub, from which Colab and "
            "GitHub Pages take theirs. Give it as https://github.com/OWNER/NAME."
        )
    return Target(match["owner"], match["name"])


def current(root: Path) -> Target:
    """Return the repository that `pyproject.toml` names."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return parse(project["urls"]["Repository"])


def is_made(folder: Path) -> bool:
    """Whether a folder is no part of the book: made by a command, an environment, or hidden."""
    name = folder.name
    hidden = name.startswith(".") and name not in HIDDEN_FOLDERS
    made = name in MADE_FOLDERS or name.endswith(".egg-info")
    return hidden or made or (folder / "pyvenv.cfg").exists()


def text_files(root: Path):
    """Yield every text file of the tree with its text, in order of its path."""
    for path in sorted(root.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from () if is_made(path) else text_files(path)
            continue
        with contextlib.suppress(UnicodeDecodeError):
            yield path, path.read_bytes().decode("utf-8")


def rewrite(text: str, old: Target, new: Target) -> str:
    """Return the text with every address of `old` replaced by that of `new`.

    One pass, so that nothing is replaced twice. Colab's addresses end in those of GitHub.
    """
    end = r"(?![\w-]|\.(?!git\b)\w)"
    pattern = re.compile(
        rf"(?P<before>github\.com[/:]|/github/|githubusercontent\.com/){re.escape(old.slug)}{end}"
        rf"|(?<![\w./-])(?P<scheme>https://)?{re.escape(old.pages)}{end}"
        rf"|(?P<cd>\bcd ){re.escape(old.name)}{end}",
        re.IGNORECASE,
    )

    def replacement(match: re.Match) -> str:
        if match["before"]:
            return match["before"] + new.slug
        if match["cd"]:
            return match["cd"] + new.name
        return (match["scheme"] or "") + new.pages

    return pattern.sub(replacement, text)


def retarget(root: Path, address: str) -> list[Path]:
    """Rewrite the tree and return the files that changed.

    Raises
    ------
    ValueError : `address` is not that of a repository on GitHub
    """
    old, new = current(root), parse(address)
    changed = []
    for path, text in text_files(root):
        rewritten = rewrite(text, old, new)
        if rewritten != text:
            path.write_bytes(rewritten.encode("utf-8"))
            changed.append(path.relative_to(root))
    return changed


def main(arguments: list[str]) -> int:
    """Retarget this tree to the address given and say what changed."""
    try:
        changed = retarget(ROOT, " ".join(arguments))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for path in changed:
        print(f"rewritten: {path}")
    print(f"{len(changed)} files changed; the book now lives at {current(ROOT).repository}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

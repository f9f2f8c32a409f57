"""Set the book's version, and what its set-up cells install: `make release VERSION=1.0.0`.

    python -m tools.release 1.0.0 10.5281/zenodo.1234567

Both stand in `pyproject.toml`. A release, such as 1.0.0, is installed by its wheel, or else by its
tag, v1.0.0, so a notebook that somebody keeps meets the library of its own time; a development
version, such as 1.1.0.dev0, has no wheel and is installed by the commit that is checked out. What
repeats the two is rewritten: set-up cells, `records.RELEASE`, the citation with its DOI, if there
is one, the heading of the changes. Nothing is committed, tagged or sent: CONTRIBUTING.md says what
is left to do.
"""

import contextlib
import json
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(\.dev\d+)?")
UNRELEASED = "## Unreleased\n"
DOI = re.compile(r"10\.\d{4,9}/\S+")
NO_DOI = "# doi: none yet; `make release` writes it here, see CONTRIBUTING.md"
SETUP = """\
import importlib.util
import os
import subprocess
import sys

if importlib.util.find_spec("tutorial_lib") is None:
    repository = "https://github.com/attention-head-by-head/attention-head-by-head"
    release = "RELEASE"
    local = os.environ.get("TUTORIAL_LIB_SOURCE")
    for source in [local] if local else [f"git+{repository}@{release}"]:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", source]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode == 0:
            break
    else:
        raise RuntimeError(
            "tutorial_lib could not be installed: check the network, then run this cell again. If "
            f"that does not help, {release} may be gone: open the newest notebook in {repository}."
            f"\\n\\npip says:\\n{done.stderr}"
        )
    importlib.invalidate_caches()"""
WHEEL = """
    wheel = f"{repository}/releases/download/{release}/tutorial_lib-{release[1:]}-py3-none-any.whl"
"""


def version_of(root):
    """Return the version of the book."""
    return _pyproject(root)["project"]["version"]


def release_of(root):
    """Return what the set-up cells install: a tag, or the whole name of a commit."""
    return _pyproject(root)["tool"]["tutorial-lib"]["release"]


def _pyproject(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def git(root, *words):
    """Return what git answers, without the end of its last line; None where it fails or is not."""
    command = ["git", *words]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout.strip()


def text_files(root):
    """Yield every text file that git knows, with its text."""
    for path in (root / name for name in git(root, "ls-files").splitlines()):
        if path.is_file():
            with contextlib.suppress(UnicodeDecodeError):
                yield path, path.read_bytes().decode("utf-8")


def is_development(version):
    """Whether a version comes before its release: 1.1.0.dev0."""
    return ".dev" in version


def chosen(root, version):
    """Return what the set-up cells of a version install.

    Raises
    ------
    ValueError : no version; no repository; a tag that is there; a library that no commit has
    """
    if not VERSION.fullmatch(version):
        raise ValueError(
            f"VERSION={version!r} is no version: give three numbers, such as 1.0.0, "
            "or with .dev0 behind them for what comes before."
        )
    commit = git(root, "rev-parse", "HEAD")
    if commit is None:
        raise ValueError(
            f"A release is a commit, and git finds none in {root}: install git, or work in a clone "
            "in place of an unpacked ZIP file, then repeat the command."
        )
    if not is_development(version):
        if git(root, "tag", "--list", f"v{version}"):
            raise ValueError(f"There is a release v{version}: give a VERSION of its own.")
        return f"v{version}"
    if git(root, "status", "--porcelain", "src"):
        raise ValueError(
            "The set-up cells of a development version install a commit, and this library is in "
            "none: commit what `git status src` names, then repeat the command."
        )
    return commit


def setup_cell(release):
    """Return the first code cell of every notebook, which installs a tag or a commit."""
    cell = SETUP
    if release.startswith("v"):
        cell = cell.replace('"RELEASE"\n', f'"RELEASE"{WHEEL}').replace("else [", "else [wheel, ")
    return cell.replace("RELEASE", release)


def release(root, version, doi=""):
    """Rewrite the tree and return the files that changed.

    Raises
    ------
    ValueError : `version` cannot be that of the next; no DOI
    """
    if doi and not DOI.fullmatch(doi):
        raise ValueError(f"DOI={doi!r} is no DOI: give one such as 10.5281/zenodo.1234567.")
    old, new = release_of(root), chosen(root, version)
    installs = re.compile(rf'(\brelease = "){re.escape(old)}(?=")', re.IGNORECASE)
    changed = []
    for path, text in text_files(root):
        rewritten = installs.sub(rf"\g<1>{new}", text)
        if path.suffix == ".ipynb":
            rewritten = _notebook(text, new)
        elif path.parent == root and path.name in HEADS:
            rewritten = HEADS[path.name](rewritten, version, doi)
        if rewritten != text:
            path.write_bytes(rewritten.encode("utf-8"))
            changed.append(path.relative_to(root))
    return changed


def _notebook(text, release):
    """Return a notebook whose set-up cell, if it has one, installs a release."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["source"][:1] == SETUP.splitlines(keepends=True)[:1]:
            cell["source"] = setup_cell(release).splitlines(keepends=True)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _project(text, version, doi):
    return re.sub(r'^version = ".*"$', f'version = "{version}"', text, count=1, flags=re.M)


def _citation(text, version, doi):
    text = re.sub(r"^version: .*$", f"version: {version}", text, count=1, flags=re.M)
    return re.sub(r"^(?:# )?doi: .*$", f"doi: {doi}" if doi else NO_DOI, text, count=1, flags=re.M)


def _changes(text, version, doi):
    if text.partition("\n## ")[2].startswith(f"{version}, "):  # the same version again
        return text
    if UNRELEASED not in text:
        text = text.replace("\n## ", f"\n{UNRELEASED}\n## ", 1)
    name = "Unreleased" if is_development(version) else f"{version}, {date.today()}"
    return text.replace(UNRELEASED, f"## {name}\n", 1)


HEADS = {"pyproject.toml": _project, "CITATION.cff": _citation, "CHANGELOG.md": _changes}


def main(arguments):
    """Make this tree the version that is given, and say what changed."""
    version, _, doi = " ".join(arguments).partition(" ")
    try:
        changed = release(ROOT, version, doi)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for path in changed:
        print(f"rewritten: {path}")
    print(f"{len(changed)} files changed; the set-up cells install {release_of(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

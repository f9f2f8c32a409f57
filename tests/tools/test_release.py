"""A notebook installs the library of its own version: a release's wheel, before it a commit."""

import importlib.util
import json
import re
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.chapters.pages import RELEASE, REPOSITORY
from tests.chapters.rules import SETUP
from tools import release
from tools.release import git, is_development, version_of
from tutorial_lib import records

ROOT = Path(__file__).resolve().parents[2]
VERSION = version_of(ROOT)
PLACES = [
    *("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "src/tutorial_lib/records.py"),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("notebooks/*.ipynb")),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("coursework/assignments/*/*.ipynb")),
]
NOTEBOOKS = [place for place in PLACES if place.endswith(".ipynb")]
RENEW = "run `make release VERSION=…`"


def test_set_up_cell_names_the_tag_of_the_version_or_before_its_release_a_commit():
    expected = "[0-9a-f]{40}" if is_development(VERSION) else re.escape(f"v{VERSION}")
    assert re.fullmatch(expected, RELEASE), f"version {VERSION} installs {RELEASE}: {RENEW}"


def test_a_commit_that_the_set_up_cell_names_is_in_the_history():
    if not is_development(VERSION):
        return
    if git(ROOT, "rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the history is not here (no git, or a shallow clone): its commit is UNCHECKED")
    known = git(ROOT, "merge-base", "--is-ancestor", RELEASE, "HEAD") is not None
    assert known, f"{RELEASE} is no commit before this one: {RENEW}"


@pytest.mark.parametrize("place", NOTEBOOKS)
def test_first_code_cell_of_chapters_and_assignments_is_the_set_up_cell(place):
    cells = json.loads((ROOT / place).read_text(encoding="utf-8"))["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert "".join(first["source"]) == SETUP, f"{place}: {RENEW}"


def test_what_repeats_version_and_release_agrees():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == VERSION, RENEW
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"^## (.*)$", changes, re.MULTILINE)[1]
    assert heading.partition(",")[0] == ("Unreleased" if is_development(VERSION) else VERSION)
    assert f"pip install git+{REPOSITORY}@{RELEASE}" == records.INSTALL_COMMAND, RENEW


@pytest.fixture
def tree(tmp_path):
    """A repository with the files that repeat version or release, all committed."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here: `make release` is UNCHECKED")
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(tree, tag=None):
    """Commit all that is in a repository, and tag it."""
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["add", "--all"], [*author, "commit", "--quiet", "--message", "x"]):
        assert git(tree, *words) is not None, words
    assert tag is None or git(tree, "tag", tag) is not None


def test_a_release_is_written_to_every_place_and_changes_nothing_else(tree, monkeypatch):
    monkeypatch.setattr(release, "date", SimpleNamespace(today=lambda: "2031-07-01"))
    changed = release.release(tree, "1.2.3", "10.5281/zenodo.5")
    assert sorted(map(str, changed)) == sorted(PLACES)
    assert (version_of(tree), release.release_of(tree)) == ("1.2.3", "v1.2.3")
    for place in [*NOTEBOOKS, "src/tutorial_lib/records.py"]:
        before, after = ((root / place).read_text(encoding="utf-8") for root in (ROOT, tree))
        was, now = (listed(release.setup_cell(each)) for each in (RELEASE, "v1.2.3"))
        assert after == before.replace(was, now).replace(RELEASE, "v1.2.3"), place
    assert "\n## 1.2.3, 2031-07-01\n" in (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert cited(tree) == ("1.2.3", "10.5281/zenodo.5")


def cited(tree):
    """Return the version and the DOI of a tree's citation."""
    citation = yaml.safe_load((tree / "CITATION.cff").read_text(encoding="utf-8"))
    return citation["version"], citation.get("doi")


def listed(source):
    """Return the lines of a cell as a notebook's file has them."""
    lines = source.splitlines(keepends=True)
    return ",\n".join(f"    {json.dumps(line, ensure_ascii=False)}" for line in lines)


WHEEL = "tutorial_lib-1.2.3-py3-none-any.whl"
BACKEND = f"""\
import shutil
def build_wheel(folder, *settings):
    return shutil.copy("{WHEEL}", folder) and "{WHEEL}"
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A folder that stands in for GitHub: a file server with a release's wheel, and a repository.

    Returns what the set-up cell of a release says of where pip found the library.
    """
    folder = tmp_path / "host"
    offered = folder / "releases" / "download" / "v1.2.3" / WHEEL
    offered.parent.mkdir(parents=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as file:
        file.writestr("tutorial_lib/__init__.py", "")
        about = {"METADATA": "Name: tutorial_lib\nVersion: 1.2.3", "WHEEL": "Tag: py3-none-any"}
        for name, text in {**about, "RECORD": ""}.items():
            head = {"METADATA": "Metadata-Version: 2.1\n", "WHEEL": "Wheel-Version: 1.0\n"}
            file.writestr(f"tutorial_lib-1.2.3.dist-info/{name}", head.get(name, "") + text)
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(build, encoding="utf-8")
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    git(folder, "init", "--quiet")
    commit(folder, "v1.2.3")
    shutil.copy(folder / WHEEL, offered)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "target"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return folder


def run_setup(host, version):
    """Run the set-up cell of a version; return whether the library came as archive or from git."""
    cell = release.setup_cell(version).replace(REPOSITORY, host.as_uri())
    exec(cell, {})
    [found] = host.parent.glob("target/*.dist-info/direct_url.json")
    return set(json.loads(found.read_text(encoding="utf-8"))) & {"archive_info", "vcs_info"}


def test_set_up_cell_of_a_release_installs_its_wheel(host):
    shutil.rmtree(host / ".git")
    assert run_setup(host, "v1.2.3") == {"archive_info"}


@pytest.mark.long
@pytest.mark.parametrize("version", ["v1.2.3", "a commit"])
def test_set_up_cell_without_a_wheel_installs_from_the_repository(host, version):
    shutil.rmtree(host / "releases")
    version = version if version.startswith("v") else git(host, "rev-parse", "HEAD")
    assert run_setup(host, version) == {"vcs_info"}


@pytest.mark.long
def test_set_up_cell_says_what_to_do_where_a_version_does_not_exist(host):
    with pytest.raises(RuntimeError, match=r"cell again\. .* v9\.9\.9 may be gone: open"):
        run_setup(host, "v9.9.9")


def test_what_follows_a_release_installs_the_commit_that_is_checked_out(tree):
    release.release(tree, "1.2.3", "10.5281/zenodo.5")
    commit(tree, "v1.2.3")
    release.release(tree, "1.3.0.dev0")
    assert cited(tree) == ("1.3.0.dev0", None)
    assert release.release_of(tree) == git(tree, "rev-parse", "v1.2.3^{commit}")
    changes = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[:2] == ["Unreleased", "1.2.3,"]
    commit(tree)
    release.release(tree, "1.3.0.dev0")
    assert release.release_of(tree) == git(tree, "rev-parse", "HEAD"), "renewed"


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2.3rc1", "1.2.3 zenodo.5"])
def test_what_is_no_version_or_no_doi_is_refused(tree, version):
    with pytest.raises(ValueError, match=r"give three numbers|give one such as 10\."):
        release.release(tree, *version.split(" "))
    assert git(tree, "status", "--porcelain") == ""

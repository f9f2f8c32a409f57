"""A notebook installs the library of its own version: a release's wheel, before it a commit."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

from book._ext.theme import site_shell
from tests.chapters.pages import RELEASE, REPOSITORY
from tests.chapters.rules import SETUP
from tools import release
from tools.release import ROOT, git, is_development, version_of
from tutorial_lib import records

VERSION = version_of(ROOT)
PLACES = [
    *("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "src/tutorial_lib/records.py"),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("notebooks/*.ipynb")),
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("coursework/assignments/*/*.ipynb")),
]
NOTEBOOKS = [place for place in PLACES if place.endswith(".ipynb")]
RENEW = "run `make release VERSION=…`"
CELL = re.compile(r'"import importlib\.util\\n.*?invalidate_caches\(\)"', re.DOTALL)
SMALL = '[project]\nname = "tutorial_lib"\nversion = "1.2.3"\n'


def test_set_up_cell_names_the_tag_of_the_version_or_before_its_release_a_commit():
    expected = "[0-9a-f]{40}" if is_development(VERSION) else re.escape(f"v{VERSION}")
    assert re.fullmatch(expected, RELEASE), f"version {VERSION} installs {RELEASE}: {RENEW}"


@pytest.mark.parametrize(("version", "branch"), [("1.0.0", "v1.0.0"), ("1.1.0.dev0", "main")])
def test_a_released_page_says_its_version_and_links_to_its_tag(version, branch, monkeypatch):
    monkeypatch.setattr(site_shell, "version_of", lambda root: version)
    config = SimpleNamespace(html_theme_options={"extra_footer": "Code: BSD-3-Clause."})
    site_shell.state_version(None, config)
    assert config.html_theme_options["extra_footer"].endswith(f"Clause. Version {version}.")
    source = ["[Colab](https://colab.research.google.com/github/a/b/blob/main/c.ipynb)"]
    site_shell.link_to_tag(None, "c", source)
    assert source == [
        f"[Colab](https://colab.research.google.com/github/a/b/blob/{branch}/c.ipynb)"
    ]


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
        assert CELL.sub("", after) == CELL.sub("", before).replace(RELEASE, "v1.2.3"), place
        assert after.count("v1.2.3") == 1
    assert "\n## 1.2.3, 2031-07-01\n" in (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (tree / "CITATION.cff").read_text(encoding="utf-8")
    assert "\nversion: 1.2.3\ndoi: 10.5281/zenodo.5\n" in citation


@pytest.mark.long
def test_set_up_cell_installs_a_wheel_or_from_git_or_says_what_to_do(tree, monkeypatch):
    (tree / "src" / "tutorial_lib" / "__init__.py").touch()
    (tree / "pyproject.toml").write_text(SMALL, encoding="utf-8")
    commit(tree, "v1.2.3")  # the tree stands in for GitHub: a repository, and files
    monkeypatch.setenv("PIP_TARGET", str(tree / "target"))
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "1")  # asks no index
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def found(version):
        shutil.rmtree(tree / "target", ignore_errors=True)
        exec(release.setup_cell(version).replace(REPOSITORY, tree.as_uri()), {})
        return next((tree / "target").glob("*.dist-info/direct_url.json")).read_text()

    assert '"vcs"' in found("v1.2.3"), "no wheel has been uploaded"
    assert '"vcs"' in found(git(tree, "rev-parse", "HEAD"))
    with pytest.raises(RuntimeError, match=r"cell again\. .* v9\.9\.9 may be gone: open"):
        found("v9.9.9")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*pip, tree / "releases" / "download" / "v1.2.3", tree], check=True)
    assert "tutorial_lib-1.2.3-py3-none-any.whl" in found("v1.2.3")


def test_what_follows_a_release_installs_the_commit_that_is_checked_out(tree):
    release.release(tree, "1.2.3")
    release.release(tree, "1.2.3", "10.5281/zenodo.5")  # which was forgotten
    commit(tree, "v1.2.3")
    release.release(tree, "1.3.0.dev0")
    assert "\n# doi: " in (tree / "CITATION.cff").read_text(encoding="utf-8")
    assert release.release_of(tree) == git(tree, "rev-parse", "v1.2.3^{commit}")
    changes = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[:2] == ["Unreleased", "1.2.3,"]
    assert changes.count("\n## 1.2.3, ") == 1
    commit(tree)
    release.release(tree, "1.3.0.dev0")
    assert release.release_of(tree) == git(tree, "rev-parse", "HEAD"), "renewed"


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2.3rc1", "1.2.3 zenodo.5"])
def test_what_is_no_version_or_no_doi_is_refused(tree, version):
    with pytest.raises(ValueError, match=r"give three numbers|give one such as 10\."):
        release.release(tree, *version.split(" "))
    assert git(tree, "status", "--porcelain") == ""

"""`make dist`: the library of the last commit, as wheel and sources, and the site as a zip file."""

import tarfile
import zipfile

import pytest

from tools import pack
from tools.release import ROOT, git, version_of


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A built site of one page."""
    monkeypatch.setattr(pack, "SITE", tmp_path / "html")
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "index.html").write_text("a page", encoding="utf-8")
    return tmp_path / "html"


@pytest.mark.long
def test_wheel_and_sources_hold_the_library_and_the_zip_the_site(site, tmp_path, monkeypatch):
    if git(ROOT, "rev-parse", "HEAD") is None:
        pytest.skip("there is no git here: `make dist` is UNCHECKED")

    def without_changes(root, *words):
        return "" if words[0] == "status" else git(root, *words)

    monkeypatch.setattr(pack, "git", without_changes)
    archive, wheel, sources = pack.pack(tmp_path / "dist")
    assert version_of(ROOT) in archive.name
    assert zipfile.ZipFile(archive).read("html/index.html") == b"a page"
    assert b"Attribution 4.0" in zipfile.ZipFile(archive).read("html/LICENSE-TEXT")
    library = git(ROOT, "ls-tree", "-r", "--name-only", "HEAD", "src/tutorial_lib").splitlines()
    with tarfile.open(sources) as file:
        packed = {name.partition("/")[2] for name in file.getnames()}
    assert set(library) <= packed
    installed = {f"src/{name}" for name in zipfile.ZipFile(wheel).namelist()}
    assert set(library) <= installed


def test_what_is_changed_beside_the_commit_is_named(site, tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "git", lambda *words: " M pyproject.toml")
    with pytest.raises(ValueError, match=r"commit these first\.\n M pyproject"):
        pack.pack(tmp_path / "dist")


@pytest.mark.parametrize("lacking", ["site", "git"])
def test_what_is_missing_is_told_and_what_was_packed_before_stays(
    site, tmp_path, monkeypatch, lacking
):
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old").write_text("old", encoding="utf-8")
    if lacking == "site":
        (site / "index.html").unlink()
    monkeypatch.setattr(pack, "git", lambda *words: None)
    with pytest.raises(ValueError, match=f"{'make book' if lacking == 'site' else 'a clone'}"):
        pack.pack(tmp_path / "dist")
    assert (tmp_path / "dist" / "old").exists()

"""The files of Pyodide: what is locked, and what `make site-assets` puts into the site."""

import hashlib
import json
import re

import pytest

from tools import site_assets

LOCK = json.loads(site_assets.LOCK.read_text(encoding="utf-8"))


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A built site and a host, both folders, with a lock of two files."""
    files = {"a.mjs": b"code", "b.whl": b"wheel"}
    lock = {"version": "1", "base": "https://host.example/", "packages": ["numpy"]}
    lock["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name in ("SITE", "CACHE"):
        monkeypatch.setattr(site_assets, name, tmp_path / name)
    monkeypatch.setattr(site_assets, "LOCK", tmp_path / "pyodide.json")
    (tmp_path / "SITE").mkdir()
    for folder in (tmp_path, tmp_path / "SITE"):
        (folder / "pyodide.json").write_text(json.dumps(lock), encoding="utf-8")
    host = tmp_path / "host"
    host.mkdir()
    for name, content in files.items():
        (host / name).write_bytes(content)
    return tmp_path


def base(tree):
    """From where the pages of the built site load Python."""
    return json.loads((tree / "SITE" / "pyodide.json").read_text(encoding="utf-8"))["base"]


def test_every_locked_file_has_a_sha256_and_the_host_of_its_version():
    assert LOCK["base"] == f"https://cdn.jsdelivr.net/pyodide/v{LOCK['version']}/full/"
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in LOCK["files"].values())
    for package in LOCK["packages"]:
        assert any(name.startswith(f"{package}-") for name in LOCK["files"])


def test_files_come_into_the_site_and_its_pages_load_them_from_there(tree, capsys):
    assert site_assets.main([(tree / "host").as_uri()]) == 0
    assert "2 files of Pyodide 1" in capsys.readouterr().out
    assert base(tree) == "pyodide/"
    for name in ("a.mjs", "b.whl"):
        placed = tree / "SITE" / "pyodide" / name
        assert placed.read_bytes() == (tree / "host" / name).read_bytes()


@pytest.mark.parametrize("fault", ["missing", "changed"])
def test_site_stays_as_it_was_when_a_file_does_not_fit(tree, capsys, fault):
    file = tree / "host" / "b.whl"
    file.unlink() if fault == "missing" else file.write_bytes(b"other")
    assert site_assets.main([(tree / "host").as_uri()]) == 1
    sentence, last = capsys.readouterr().err.strip().splitlines()
    assert sentence.startswith("b.whl did not load" if fault == "missing" else "b.whl from file:")
    assert last == "The site is as it was."
    assert base(tree) == "https://host.example/"
    assert not (tree / "SITE" / "pyodide").exists()

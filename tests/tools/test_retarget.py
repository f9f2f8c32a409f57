"""Every address of the book follows from the one in `pyproject.toml`."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tools.chapters import pages
from tools.retarget import Target, current, is_made, parse, retarget, rewrite, text_files

ROOT = Path(__file__).resolve().parents[2]
HERE = current(ROOT)
FORK = Target("Some-Reader", "heads-for-my-class")
COLAB = "https://colab.research.google.com/github/"
GITHUB = re.compile(r"(?:github\.com[/:]|/github/|githubusercontent\.com/)([\w-]+)/([\w.-]*\w)")
PAGES = re.compile(r"https://([\w-]+)\.github\.io\b(?:/([\w.-]*\w))?")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree after `retarget`, and the texts of its files before."""
    root = tmp_path_factory.mktemp("copy") / "tree"
    shutil.copytree(ROOT, root, ignore=made)
    before = dict(text_files(root))
    retarget(root, FORK.repository)
    return root, before


def made(folder: str, names: list[str]) -> list[str]:
    """Return the names that are no part of the book."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if path.is_dir() and is_made(path)]


def code_of(path: Path) -> str:
    """Return the code of a notebook as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def test_config_agrees_with_pyproject():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["repository"]["url"] == HERE.repository
    assert config["html"]["baseurl"] == f"https://{HERE.pages}/"


def test_citation_agrees_with_pyproject():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == HERE.repository
    assert citation["url"] == f"https://{HERE.pages}/"


@pytest.mark.parametrize("path", [page.path for page in pages()], ids=lambda path: path.stem)
def test_notebook_links_to_itself_and_installs_from_this_repository(path):
    text = path.read_text(encoding="utf-8")
    colab = re.findall(rf"{re.escape(COLAB)}[^\s)\"'>\\]+", text)
    assert colab == [f"{COLAB}{HERE.slug}/blob/main/notebooks/{path.name}"] * max(len(colab), 1)
    installed = GITHUB.findall(code_of(path))
    assert installed, "the setup cell names no repository to install tutorial_lib from"
    assert {re.sub(r"\.git$", "", "/".join(pair)) for pair in installed} == {HERE.slug}


def test_no_address_is_half_ours():
    """An address with our owner or our name, but not both, is left from another repository."""
    wrong = []
    for path, text in text_files(ROOT):
        for owner, name in GITHUB.findall(text):
            ours = (owner == HERE.owner, name.removesuffix(".git") == HERE.name)
            if any(ours) and not all(ours):
                wrong.append(f"{path.relative_to(ROOT)}: {owner}/{name}")
        for owner, name in PAGES.findall(text):
            ours = (owner == HERE.owner.lower(), f"{owner}.github.io/{name}" == HERE.pages)
            if ours[0] and not ours[1] and HERE.pages != f"{owner}.github.io":
                wrong.append(f"{path.relative_to(ROOT)}: {owner}.github.io/{name}")
    assert not wrong, "Run `make retarget REPO=…`:\n" + "\n".join(wrong)


def test_retarget_changes_every_address_and_no_other_byte(copy):
    root, before = copy
    assert current(root) == FORK
    traces = (HERE.slug, f"{HERE.owner.lower()}.github.io", f"cd {HERE.name}")
    for path in filter(Path.is_file, root.rglob("*")):
        content = path.read_bytes()
        left = [trace for trace in traces if trace.encode() in content]
        assert not left, f"{path.relative_to(root)} still says {left}"
    after = dict(text_files(root))
    assert after.keys() == before.keys()
    for path, text in after.items():
        assert rewrite(text, FORK, HERE) == before[path], path.name
    assert retarget(root, FORK.repository) == []


@pytest.mark.parametrize(
    "address",
    ["", "heads", "https://gitlab.com/a/b", "https://github.com/a", "https://github.com/a/b/c",
     "http://github.com/a/b", "https://github.com/-a/b", "https://github.com/a/b c",
     "https://github.com/a/.."],
)  # fmt: skip
def test_malformed_address_is_refused_with_the_form_it_needs(address):
    with pytest.raises(ValueError, match=r"Give it as https://github\.com/OWNER/NAME"):
        parse(address)


def test_environments_and_built_files_are_left_alone(tmp_path):
    (tmp_path / "README.md").write_text(HERE.repository, encoding="utf-8")
    for folder in (".git", "_build", "env", "x.egg-info"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file.txt").write_text(HERE.repository, encoding="utf-8")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [path.name for path, _ in text_files(tmp_path)] == ["README.md"]


def test_longer_names_and_other_owners_are_left_alone():
    text = f"{HERE.repository}-data {HERE.repository}.js https://github.com/other/{HERE.name}"
    assert rewrite(text, HERE, FORK) == text
    sentence = f"See {HERE.repository}. Or https://{HERE.pages}/book/intro.html."
    assert rewrite(sentence, HERE, FORK) == (
        f"See {FORK.repository}. Or https://{FORK.pages}/book/intro.html."
    )
    assert rewrite(f"cd {HERE.name} && make", HERE, FORK) == f"cd {FORK.name} && make"

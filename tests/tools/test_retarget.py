"""Every address of the book follows from the one in `pyproject.toml`."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.chapters import pages
from tools.retarget import Target, current, is_made, parse, rewrite, text_files

ROOT = Path(__file__).resolve().parents[2]
HERE = current(ROOT)
FORK = Target("Some-Reader", "heads-for-my-class")
COLAB = "https://colab.research.google.com/github/"
GITHUB = re.compile(r"(?:github\.com[/:]|/github/|githubusercontent\.com/)([\w-]+)/([\w.-]*\w)")
PAGES = re.compile(r"https://([\w-]+)\.github\.io\b(?:/([\w.-]*\w))?")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the tree, with the texts of its files as they were."""
    root = tmp_path_factory.mktemp("copy") / "tree"
    shutil.copytree(ROOT, root, ignore=made)
    return root, dict(text_files(root))


def made(folder: str, names: list[str]) -> list[str]:
    """Return the names that are no part of the book."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if path.is_dir() and is_made(path)]


@pytest.fixture(scope="module")
def fork(copy):
    """The copy after `retarget`."""
    run(copy[0], FORK.repository)
    return copy[0]


def run(root: Path, *arguments: str, code: int = 0) -> str:
    """Run the tool of a tree and return what it printed."""
    command = [sys.executable, str(root / "tools" / "retarget.py"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout + result.stderr


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


def test_retarget_leaves_no_trace(fork):
    assert current(fork) == FORK
    traces = (HERE.slug, f"{HERE.owner.lower()}.github.io", f"cd {HERE.name}")
    for path in fork.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for trace in traces:
            assert trace.encode() not in content, f"{path.relative_to(fork)} still says {trace}"


def test_retarget_changes_addresses_and_no_other_byte(copy, fork):
    after = dict(text_files(fork))
    assert after.keys() == copy[1].keys()
    for path, text in after.items():
        assert rewrite(text, FORK, HERE) == copy[1][path], path.name


def test_retargeted_notebooks_differ_in_addresses_only(copy, fork):
    for path in sorted((fork / "notebooks").glob("*.ipynb")):
        old, new = json.loads(copy[1][path]), json.loads(path.read_text(encoding="utf-8"))
        assert COLAB + FORK.slug in json.dumps(new)
        assert [cell["id"] for cell in old["cells"]] == [cell["id"] for cell in new["cells"]]


def test_retarget_twice_changes_nothing(fork):
    assert run(fork, FORK.repository).startswith("0 files changed")


def test_retarget_mends_a_pyproject_edited_by_hand(tmp_path):
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "retarget.py", tmp_path / "tools")
    (tmp_path / "pyproject.toml").write_text(
        f'[project.urls]\nRepository = "{FORK.repository}"\n[project]\nname = "x"\n', "utf-8"
    )
    (tmp_path / "_config.yml").write_text(f"repository:\n  url: {HERE.repository}\n", "utf-8")
    (tmp_path / "README.md").write_text(
        f"Clone {HERE.repository}.git and `cd {HERE.name}`.", "utf-8"
    )
    run(tmp_path, FORK.repository)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert readme == f"Clone {FORK.repository}.git and `cd {FORK.name}`."
    assert FORK.repository in (tmp_path / "_config.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "address",
    ["", "heads", "https://gitlab.com/a/b", "https://github.com/a", "https://github.com/a/b/c",
     "http://github.com/a/b", "https://github.com/-a/b", "https://github.com/a/b c",
     "https://github.com/a/.."],
)  # fmt: skip
def test_malformed_address_is_refused_with_the_form_it_needs(address):
    with pytest.raises(ValueError, match=r"Give it as https://github\.com/OWNER/NAME"):
        parse(address)
    assert "Give it as" in run(ROOT, address, code=2)


@pytest.mark.parametrize("ending", ["", "/", ".git", ".git/"])
def test_endings_of_an_address_do_not_matter(ending):
    assert parse(f"https://github.com/ada/notes.v2{ending}").slug == "ada/notes.v2"


def test_environments_and_built_files_are_left_alone(tmp_path):
    (tmp_path / "README.md").write_text(HERE.repository, encoding="utf-8")
    for folder in (".git", "_build", "env", "x.egg-info"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file.txt").write_text(HERE.repository, encoding="utf-8")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [path.name for path, _ in text_files(tmp_path)] == ["README.md"]


def test_user_site_has_no_prefix():
    assert parse("https://github.com/Ada/ada.github.io").pages == "ada.github.io"


def test_longer_names_and_other_owners_are_left_alone():
    text = f"{HERE.repository}-data {HERE.repository}.js https://github.com/other/{HERE.name}"
    assert rewrite(text, HERE, FORK) == text
    sentence = f"See {HERE.repository}. Or https://{HERE.pages}/book/intro.html."
    assert rewrite(sentence, HERE, FORK) == (
        f"See {FORK.repository}. Or https://{FORK.pages}/book/intro.html."
    )

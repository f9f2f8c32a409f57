"""Every address of the book is the one that `records` has, and a fork can rewrite them all."""

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from tools.chapters import ROOT, pages
from tools.release import text_files
from tutorial_lib.records import REPOSITORY, SITE

COLAB = REPOSITORY.replace("https://github.com/", "https://colab.research.google.com/github/")


def test_settings_name_the_repository_and_the_site():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config, citation = (
        yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
        for name in ("_config.yml", "CITATION.cff")
    )
    named = project["urls"]["Repository"], config["repository"]["url"], citation["repository-code"]
    assert set(named) == {REPOSITORY}
    assert {config["html"]["baseurl"], f"{citation['url'].rstrip('/')}/"} == {SITE}


@pytest.mark.parametrize("path", [page.path for page in pages()], ids=lambda path: path.stem)
def test_notebook_links_to_itself_and_installs_from_this_repository(path):
    text = path.read_text(encoding="utf-8")
    colab = re.findall(r"https://colab\.research\.google\.com/github/[^\s)\"'>\\]+", text)
    assert set(colab) == {f"{COLAB}/blob/main/notebooks/{path.name}"}
    cells = json.loads(text)["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert REPOSITORY in code, "the setup cell does not install tutorial_lib from here"


def test_the_command_for_a_fork_rewrites_every_address(tmp_path):
    running = (ROOT / "book" / "running.md").read_text(encoding="utf-8")
    [command] = re.findall(r"```sh\n(git grep .*?)```", running, re.DOTALL)
    for path, text in text_files(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(text.encode("utf-8"))
    script = f"git init -q && git add --all --force && {command}"
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    for path, text in text_files(tmp_path):
        assert not re.search(r"attention-head-by-head(\.github\.io)?/attention-head", text), path
    assert "github.com/OWNER/NAME" in (tmp_path / "CITATION.cff").read_text(encoding="utf-8")

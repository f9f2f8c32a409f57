"""A page has a room and a room a page; a check is found in its room, a bank by its page."""

import ast
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from tests.chapters.pages import NAMES as PAGES
from tests.practice.rooms import ALL_MISTAKES, NAMES, ROOMS, checked_in
from tutorial_lib import checks, practice, records

FOLDER = Path(practice.__file__).parent


def test_every_page_has_a_room_and_every_room_a_page():
    left, idle = sorted(set(PAGES) - set(ROOMS)), sorted(set(ROOMS) - set(PAGES))
    assert not left, f"{left}: add a room below src/tutorial_lib/practice, as CONTRIBUTING.md says"
    assert not idle, f"{idle} are rooms without a page: add it to _toc.yml, or remove the room"


def test_every_check_is_found_and_no_two_rooms_check_one_function():
    every = [(name, room) for room in ROOMS.values() for name in checked_in(room)]
    names = [name for name, _ in every]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two rooms check {twice}: give one of the functions another name"
    odd = set(names) ^ set(ALL_MISTAKES)
    assert not odd, f"give each of {odd} a check_… and an entry of MISTAKES in its room"
    assert dir(checks) == sorted(f"check_{name}" for name in ALL_MISTAKES)
    for name, room in every:
        check = getattr(checks, f"check_{name}")
        assert check is getattr(room, f"check_{name}")
        assert check.__doc__.startswith("Check ")
    says = "Check `concat_heads(heads)`: heads (..., H, T, d_v). Prints an account."
    assert checks.check_concat_heads.__doc__ == says


@pytest.mark.parametrize(
    ("name", "instead"), [("check_sofmax", "check_softmax"), ("nothing", "one of dir(checks)")]
)
def test_a_check_that_no_chapter_has_is_told_with_those_close_to_it(name, instead):
    with pytest.raises(AttributeError, match=re.escape(f"{name}; call {instead}")):
        getattr(checks, name)


def rooms_imported(source):
    """The rooms that a file imports from."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    paths = [f"{node.module}.{alias.name}" for node in nodes for alias in node.names]
    return {part for path in paths for part in path.split(".")} & set(NAMES)


@pytest.mark.parametrize("room", [name for name in NAMES if name != records.page_of_room(name)])
def test_a_chapters_room_imports_no_other_room(room):
    for path in (FOLDER / room).glob("*.py"):
        others = rooms_imported(path.read_text(encoding="utf-8")) - {room}
        assert not others, f"{path.parent.name}/{path.name}: move what it imports to practice/"


def test_no_room_brings_torch_or_matplotlib_before_a_check_is_called():
    ask = "import sys; from tutorial_lib import checks; print(len(dir(checks)), "
    ask += "[m for m in ('torch', 'matplotlib') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{len(ALL_MISTAKES)} []"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A library with one room, of chapter 04, in place of its own."""
    (tmp_path / "practice" / "ch04_multi_head_attention").mkdir(parents=True)
    (tmp_path / "practice" / "ch04_multi_head_attention" / "__init__.py").touch()
    (tmp_path / "practice" / "__pycache__").mkdir()
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    return tmp_path / "practice" / "ch04_multi_head_attention" / "bank.json"


def test_a_bank_is_that_of_its_page(planted):
    planted.write_text('{"quiz": []}', encoding="utf-8")
    assert records.question_bank("04_multi_head_attention") == {"quiz": []}


def test_a_room_without_a_bank_is_told(planted):
    with pytest.raises(
        ValueError, match=r"^The room practice/ch04_multi_head_attention has no bank\.json: write"
    ):
        records.question_bank("04_multi_head_attention")

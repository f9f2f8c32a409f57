"""A class, a seed and a place for results."""

import shutil

import pytest

from coursework.grader import assignment
from tests.coursework.classes import NAME, hand_in


@pytest.fixture
def folder(tmp_path):
    """Three hand-ins, two of them right."""
    path = tmp_path / "class"
    path.mkdir()
    for student, right in (("anna", True), ("ben", False), ("cem", True)):
        hand_in(path, student, right=right)
    return path


@pytest.fixture
def seed(tmp_path):
    """`seed(5)`: the options that give a command the seed 5."""

    def write(number):
        path = tmp_path / "seeds" / str(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")
        path.chmod(0o600)
        return "--seed-file", str(path)

    return write


@pytest.fixture
def out(tmp_path):
    """Where results go."""
    return tmp_path / "results"


@pytest.fixture
def spoil(tmp_path, monkeypatch):
    """`spoil(file, was, now)`: change a file of the assignment `heads`, in a copy that counts."""
    place = tmp_path / "assignments" / NAME
    shutil.copytree(assignment.FOLDER / NAME, place)
    monkeypatch.setattr(assignment, "FOLDER", place.parent)

    def change(file, was, now):
        text = (place / file).read_text(encoding="utf-8")
        assert was in text
        (place / file).write_text(text.replace(was, now), encoding="utf-8")
        return place / file

    return change

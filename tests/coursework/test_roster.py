"""A class and its roster: everyone once, under the right id, and nothing guessed."""

import csv
import random
import zipfile
from functools import partial
from pathlib import Path

import pytest

from coursework.__main__ import main
from coursework.grader import GraderError
from coursework.grader.assignment import read_notebook
from coursework.grader.batch import as_bytes
from coursework.grader.files import Handin
from coursework.grader.handins import find_handins
from coursework.grader.roster import enrol, read_roster, roster_warnings, write_points
from tests.coursework.classes import table, text_of

CANVAS, MOODLE, OWN = (
    Path(__file__).with_name("rosters").joinpath(f"{name}.csv").read_text("utf-8")
    for name in ("canvas", "moodle", "own")
)


def roster(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode(encoding))
    return read_roster(path)


def handed_in(tmp_path, *names):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (2026, 5, 1, 12, 0, 0)), name)
    return tmp_path / "class.zip"


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_rosters_are_read_as_spreadsheets_write_them(tmp_path, sign, encoding):
    rows = [["Name", "ID"], ["Anna Weiß", "7"], ["Jürgen Ö", "8"]]
    text = "\r\n".join(sign.join(row) for row in rows)
    held = roster(tmp_path, text, encoding)
    assert {s.identifier: s.name for s in held.students} == {"7": "Anna Weiß", "8": "Jürgen Ö"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("who,points\nx,1\n", "has the columns points, who"),
        ("name\nx\n", "has the columns name"),
        ("name,id\n", "names no student"),
        ("name,id\nA,1\nB,2\nA,1\n", r"A \(line 2\), A \(line 4\)"),
        ("name,id\nA,e1\nB,E1\n", "without an id of their own"),
        ("name,id\nA,\n", "without an id of their own"),
    ],
)
def test_what_is_no_roster_is_refused_with_what_is_missing(tmp_path, text, said):
    with pytest.raises(GraderError, match=said):
        roster(tmp_path, text)
    with pytest.raises(GraderError, match="cannot be read"):
        read_roster(tmp_path / "none.csv")


@pytest.mark.parametrize("seed", range(10))
def test_no_student_is_ever_lost(tmp_path, seed):
    """As many rows as students of the roster and hand-ins that it does not name."""
    rng = random.Random(seed)
    words = ["Anna", "Weiß", "van der", "Ö", "O'Neill", "Kim-Lee", "Doe", "Jane", "2", "(3)"]
    people = [" ".join(rng.sample(words, rng.randint(1, 3))) for _ in range(200)]
    text = "name;id\n" + "".join(f"{p};i{n:03}\n" for n, p in enumerate(people))
    files = [f"{p}_{n}_assignsubmission_file_/x.ipynb" for n, p in enumerate(people[::2], 1)]
    files += [f"Nobody {n}_{n + 900}_assignsubmission_file_/x.ipynb" for n in range(20)]
    given = partial(enrol, roster(tmp_path, text), keep_unknown=True)
    handins = find_handins(handed_in(tmp_path, *files), enrol=given)
    assert sorted(h.name for h in handins if h.name) == sorted(files)
    assert len({h.student for h in handins}) == len(handins)
    assert {f"i{n:03}" for n in range(200)} == {h.identifier for h in handins if h.identifier}


GRADED = [
    {"identifier": "12345", "points": 9, "of": 10, "notes": "well"},
    {"identifier": "77", "points": 0, "of": "", "notes": "nothing was handed in"},
    {"identifier": "9", "points": 10, "of": 10, "notes": ""},
    {"identifier": "31", "points": 1, "of": 10, "notes": ""},
    {"student": "eve", "identifier": "", "points": 5, "of": 10, "notes": ""},
]


def test_canvas_takes_back_its_own_columns_and_one_of_points(tmp_path):
    path = write_points(roster(tmp_path, CANVAS), GRADED, tmp_path, "heads")
    assert path.name == "canvas.csv"
    assert list(csv.reader(path.read_text(encoding="utf-8").splitlines())) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "heads (881)"],
        ["    Points Possible", "", "", "", "", "10"],
        ["Doe, Jane", "12345", "e01", "jdoe", "A and B", "9"],
        ["Doe, Jane", "77", "e02", "jdoe2", "A", "0"],
        ["Weiß, Anna Maria", "9", "e03", "aweiss@uni.example", "A", "10"],
        ["O'Neill, Ben", "31", "", "bneill", "A", "1"],
    ]


@pytest.mark.parametrize("text", [MOODLE, MOODLE.replace("t 4", "t  4")])
def test_moodle_takes_back_its_worksheet_with_grades_and_comments(tmp_path, text):
    notes = ["", "=cmd|calc", "nothing was handed in"]
    rows = [
        {"identifier": f"Participant {4711 + i}", "points": i + 0.5, "of": 10, "notes": note}
        for i, note in enumerate(notes)
    ]
    path = write_points(roster(tmp_path, text), rows, tmp_path)
    assert path.name == "moodle.csv"
    lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [line["Grade"] for line in lines] == ["0.5", "1.5", "2.5"]
    assert [line["Feedback comments"] for line in lines] == ["", "'=cmd|calc", notes[2]]
    assert len(lines[0]) == len(text.partition("\n")[0].split(","))


def test_a_hand_in_has_the_address_of_the_roster(tmp_path):
    held = roster(tmp_path, "name,id,email\nAnna,1,anna@uni.example\nBen,2,\n")
    named = enrol(held, [Handin(tmp_path, student="Anna")])
    assert [handin.address for handin in named] == ["anna@uni.example", ""]


def test_of_two_columns_of_one_name_canvas_makes_a_new_one(tmp_path):
    held = roster(tmp_path, CANVAS.replace("Final Score", "heads (882)"))
    path = write_points(held, GRADED, tmp_path, "heads")
    assert path.read_text(encoding="utf-8").splitlines()[0].endswith(",heads")


def test_what_cannot_be_written_back_is_told_and_the_roster_is_not_replaced(tmp_path):
    outside = "1 graded outside the roster, and so in no file for the system: eve"
    assert [*roster_warnings(roster(tmp_path, CANVAS), GRADED)] == [outside]
    assert not [*roster_warnings(roster(tmp_path, f"{MOODLE}\n"), GRADED[:-1])]
    [said] = roster_warnings(roster(tmp_path, MOODLE.replace("10.00", "100.0")), GRADED[:-1])
    assert "maximum grade is 100, the assignment's 10: correct it in Moodle" in said
    assert write_points(roster(tmp_path, OWN), [], tmp_path) is None
    roster(tmp_path, CANVAS).path.rename(tmp_path / "canvas.csv")
    with pytest.raises(GraderError, match=r"canvas\.csv is the roster.*move it out"):
        write_points(read_roster(tmp_path / "canvas.csv"), GRADED, tmp_path)
    assert (tmp_path / "canvas.csv").read_text(encoding="utf-8") == CANVAS


@pytest.mark.usefixtures("bubblewrap")
def test_who_handed_in_nothing_has_a_row_a_report_and_points_by_hand_under_the_id(
    tmp_path, seed, capsys
):
    (tmp_path / "roster.csv").write_text(OWN, encoding="utf-8")
    (tmp_path / "class").mkdir()
    for name in ("e01", "eve"):
        (tmp_path / "class" / f"{name}.ipynb").write_bytes(as_bytes(read_notebook("heads")))
    out = tmp_path / "results"
    given = ["grade", "heads", str(tmp_path / "class"), "--roster", str(tmp_path / "roster.csv")]
    given += ["--keep-unknown", *seed(3), "--out", str(out)]
    assert main(given) == 0
    assert "1 graded outside the roster" in capsys.readouterr().out
    assert table(out)["Anna Weiß"]["identifier"] == "e02"
    assert "nothing was handed in" in text_of(out, "Anna Weiß")
    text = "student,function,points,remark\ne02,,4,in the oral exam\n"
    (out / "corrections.csv").write_text(text)
    (tmp_path / "class" / "Müller Jürgen.ipynb").write_bytes(as_bytes(read_notebook("heads")))
    assert main(given) == 0
    found = {row["identifier"]: row["points"] for row in table(out).values()}
    assert found == {"e01": "10", "e02": "4", "e03": "10", "e04": "0", "": "10"}
    assert "in the oral exam" in table(out)["Anna Weiß"]["notes"]


@pytest.mark.usefixtures("bubblewrap")
def test_a_student_with_two_notebooks_is_held_and_late_ones_are_graded(tmp_path, seed, capsys):
    (tmp_path / "gradebook.csv").write_text(CANVAS, encoding="utf-8")
    (tmp_path / "class").mkdir()
    files = ["doejane_12345_678901_a.ipynb", "doejane_12345_678902_b.ipynb"]
    files += ["oneillben_LATE_31_678903_04.ipynb"]
    for name in files:
        (tmp_path / "class" / name).write_bytes(as_bytes(read_notebook("heads")))
    out = tmp_path / "results"
    given = ["grade", "heads", str(tmp_path / "class"), *seed(1), "--out", str(out)]
    assert main(given) == 0
    given += ["--roster", str(tmp_path / "gradebook.csv")]
    for more, points in (([], ""), (["--notebook", "a."], "10")):
        assert main([*given, *more]) == 0
        said = capsys.readouterr()
        assert ("not clear which notebook counts" in said.err) == (not more)
        assert ("1 held with a question: Doe, Jane (12345)" in said.out) == (not more)
        assert "oneillben was here before" not in said.out, "he is O'Neill, Ben in the roster"
        rows = {row["identifier"]: row for row in table(out).values()}
        found = {i: (row["points"], row["late"]) for i, row in rows.items()}
        rest = {"31": ("10", "late"), "77": ("0", ""), "9": ("0", "")}
        assert found == {"12345": (points, ""), **rest}
        lines = (out / "canvas.csv").read_text(encoding="utf-8").splitlines()
        [jane] = [row for row in csv.reader(lines) if row[1] == "12345"]
        assert jane[-1] == points
        with zipfile.ZipFile(out / "feedback.zip") as archive:
            assert archive.namelist() == files[:1] * bool(points) + files[2:]

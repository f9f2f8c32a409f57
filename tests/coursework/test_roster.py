"""A class and its roster: everyone once, under the right id, and nothing guessed."""

import csv
import random
import unicodedata
import zipfile
from functools import partial

import pytest

from coursework.__main__ import main
from coursework.grader.assignment import read_notebook
from coursework.grader.batch import as_bytes
from coursework.grader.files import HandinsError, Question, Unreadable
from coursework.grader.handins import find_handins
from coursework.grader.roster import RosterError, enrol, outside, read_roster, write_back
from tests.coursework.classes import table, text_of

CANVAS = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,heads (881),Final Score
,,,,,Manual Posting,
    Points Possible,,,,,10,(read only)
"Doe, Jane",12345,e01,jdoe,"A and B",,
"Doe, Jane",77,e02,jdoe2,A,,
"Weiß, Anna Maria",9,e03,aweiss@uni.example,A,,
"O'Neill, Ben",31,,bneill,A,,
"Student, Test",99,,f00ba4,A,,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),\
Feedback comments
Participant 4711,Anna Weiß,anna@uni.example,Submitted,,10.00,-,
Participant 4712,Anna Weiß,aw2@uni.example,Submitted,,10.00,-,
Participant 4713,Ben Roe,ben@uni.example,No submission,,10.00,-,
"""
OWN = 'name,id\nJane Doe,e01\nAnna Weiß,e02\nMüller Jürgen,e03\n"van der Berg, Eva",e04\n'


def roster(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode(encoding))
    return read_roster(path)


def handed_in(tmp_path, *names):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (2026, 5, 1, 12, 0, 0)), name)
    return tmp_path / "class.zip"


def named(source, roster, **options):
    """Return (student, identifier, file) of a class in order."""
    found = find_handins(source, enrol=partial(enrol, roster, **options))
    return [(h.student, h.identifier, h.name) for h in found]


def test_canvas_roster_names_namesakes_by_number_and_those_who_are_missing(tmp_path):
    files = ("doejane_LATE_77_501_04.ipynb", "weißannamaria_9_502_04.ipynb")
    assert named(handed_in(tmp_path, *files), roster(tmp_path, CANVAS)) == [
        ("Doe, Jane (12345)", "12345", ""),
        ("Doe, Jane (77)", "77", files[0]),
        ("O'Neill, Ben", "31", ""),
        ("Weiß, Anna Maria", "9", files[1]),
    ]


def test_a_namesake_who_is_not_in_the_roster_is_not_taken_for_another(tmp_path):
    files = ["weißannamaria_8_501_04.ipynb", "oneillben_31_502_04.ipynb", "doejane_77_503_x.ipynb"]
    held, source = roster(tmp_path, CANVAS), handed_in(tmp_path, *files)
    with pytest.raises(Question, match="1 fit no line: weißannamaria"):
        named(source, held)
    with pytest.raises(Question, match=r"the number 77 of eve is that of Doe, Jane \(77\)"):
        named(handed_in(tmp_path, *files[:2], "eve_77_503_x.ipynb"), held)
    source = handed_in(tmp_path, *files)
    rows = named(source, held, keep_unknown=True)
    assert ("weißannamaria", "", files[0]) in rows
    assert ("Weiß, Anna Maria", "9", "") in rows


def test_moodle_worksheet_names_namesakes_and_blind_participants(tmp_path):
    files = (
        "Anna Weiß_4712_assignsubmission_file_/04.ipynb",
        "Participant_4713_assignsubmission_file_/04.ipynb",
    )
    assert named(handed_in(tmp_path, *files), roster(tmp_path, MOODLE)) == [
        ("Anna Weiß (Participant 4711)", "Participant 4711", ""),
        ("Anna Weiß (Participant 4712)", "Participant 4712", files[0]),
        ("Ben Roe", "Participant 4713", files[1]),
    ]


WAYS = ["Jane Doe", "doe, jane", "DoeJane", "jane_doe", "e01", "E01"]


@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_found_in_any_order_and_case_or_by_its_id(tmp_path, way):
    found = dict(r[:2] for r in named(handed_in(tmp_path, f"{way}.ipynb"), roster(tmp_path, OWN)))
    assert found["Jane Doe"] == "e01"
    assert len(found) == 4


def test_a_name_is_found_by_login_and_by_email(tmp_path):
    files = ("JDoe.ipynb", "aweiss.ipynb", "bneill.ipynb", "e02.ipynb")
    rows = named(handed_in(tmp_path, *files), roster(tmp_path, CANVAS))
    assert [(i, f) for _, i, f in rows] == [
        ("12345", files[0]),
        ("77", files[3]),
        ("31", files[2]),
        ("9", files[1]),
    ]


def test_names_composed_and_apart_are_one(tmp_path):
    file = unicodedata.normalize("NFD", "Jürgen Müller.ipynb")
    rows = named(handed_in(tmp_path, file), roster(tmp_path, unicodedata.normalize("NFD", OWN)))
    assert [i for _, i, f in rows if f] == ["e03"]


def test_two_files_of_one_student_under_two_names_are_one_row(tmp_path):
    held = roster(tmp_path, OWN)
    source = handed_in(tmp_path, "Jane Doe.ipynb", "e01.ipynb")
    found = find_handins(source, enrol=partial(enrol, held))
    assert [h.student for h in found if h.held] == ["Jane Doe"]
    found = find_handins(source, believe_times=True, enrol=partial(enrol, held))
    assert {h.student: h.of for h in found}["Jane Doe"] == 2


def test_who_fits_no_line_or_two_is_told_by_name_and_never_lost(tmp_path):
    held = roster(tmp_path, "name;id\nJane Doe;1\nDoe, Jane;2\nBen Roe;3\n")
    source = handed_in(tmp_path, "Jane Doe.ipynb", "eve\x1b[2J.ipynb", "ben roe.ipynb")
    with pytest.raises(Question, match=r"1 fit no line: eve \[2J; Jane Doe fits the lines 2, 3"):
        named(source, held)
    assert named(source, held, keep_unknown=True) == [
        ("Ben Roe", "3", "ben roe.ipynb"),
        ("Doe, Jane", "2", ""),
        ("Jane Doe", "1", ""),
        ("Jane Doe (not in the roster)", "", "Jane Doe.ipynb"),
        ("eve\x1b[2J", "", "eve\x1b[2J.ipynb"),
    ]


def test_numbers_of_another_system_are_not_taken_for_ids(tmp_path):
    held = roster(tmp_path, "name,id\nJane Doe,31\nBen Roe,12\nAnna Weiß,9\nKim Lee,8\n")
    files = ["doejane_12_501_x.ipynb", "roeben_9_502_x.ipynb", "weißanna_31_503_x.ipynb"]
    files.append("leekim_8_504_x.ipynb")  # the one number that both have by chance
    assert named(handed_in(tmp_path, *files), held) == [
        ("Anna Weiß", "9", files[2]),
        ("Ben Roe", "12", files[1]),
        ("Jane Doe", "31", files[0]),
        ("Kim Lee", "8", files[3]),
    ]


def test_late_is_what_moodles_worksheet_says(tmp_path):
    status = "Submitted for grading - 1 day 2 hours late"
    text = MOODLE.replace("Submitted", status, 1).replace("Submitted,", f"{status} - Graded,", 1)
    text = text.replace("No submission", "No submission - Assignment is overdue by: 2 days")
    files = [f"Anna Weiß_{n}_assignsubmission_file_/04.ipynb" for n in (4711, 4712)]
    source = handed_in(tmp_path, *files)
    found = find_handins(source, enrol=partial(enrol, roster(tmp_path, text)))
    assert {h.identifier[-4:]: h.late for h in found} == {"4711": True, "4712": True, "4713": False}
    assert not any(
        h.late for h in find_handins(source, enrol=partial(enrol, roster(tmp_path, MOODLE)))
    )


def test_who_is_missing_is_told_so(tmp_path):
    found = find_handins(
        handed_in(tmp_path, "e01.ipynb"), enrol=partial(enrol, roster(tmp_path, OWN))
    )
    assert sum(not h.name for h in found) == 3
    with pytest.raises(Unreadable, match="nothing was handed in"):
        next(h for h in found if not h.name).read()


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_rosters_are_read_as_spreadsheets_write_them(tmp_path, sign, encoding):
    rows = [["Vorname", "Nachname", "Matrikelnummer"], ["Anna", "Weiß", "7"], ["Jürgen", "Ö", "8"]]
    text = "\r\n".join(sign.join(row) for row in rows)
    held = roster(tmp_path, text, encoding)
    assert [(s.name, s.identifier) for s in held.students] == [
        ("Anna Weiß", "7"),
        ("Jürgen Ö", "8"),
    ]


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
    with pytest.raises(RosterError, match=said):
        roster(tmp_path, text)
    assert issubclass(RosterError, HandinsError)


def test_a_roster_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RosterError, match="cannot be read"):
        read_roster(tmp_path / "none.csv")


@pytest.mark.parametrize("seed", range(10))
def test_no_student_is_ever_lost(tmp_path, seed):
    """As many rows as students of the roster and hand-ins that it does not name."""
    rng = random.Random(seed)
    words = ["Anna", "Weiß", "van der", "Ö", "O'Neill", "Kim-Lee", "Doe", "Jane", "2", "(3)"]
    people = [" ".join(rng.sample(words, rng.randint(1, 3))) for _ in range(200)]
    held = roster(tmp_path, "name;id\n" + "".join(f"{p};i{n:03}\n" for n, p in enumerate(people)))
    files = [f"{p}_{n}_assignsubmission_file_/x.ipynb" for n, p in enumerate(people[::2], 1)]
    files += [f"Nobody {n}_{n + 900}_assignsubmission_file_/x.ipynb" for n in range(20)]
    rows = named(handed_in(tmp_path, *files), held, keep_unknown=True)
    assert sorted(file for *_, file in rows if file) == sorted(files)
    assert len({student for student, *_ in rows}) == len(rows)
    assert {f"i{n:03}" for n in range(200)} == {i for _, i, _ in rows if i}


def test_the_command_asks_before_it_writes_anything(tmp_path, capsys, seed):
    (tmp_path / "roster.csv").write_text(OWN, encoding="utf-8")
    source, out = handed_in(tmp_path, "eve.ipynb"), tmp_path / "results"
    given = ["grade", "heads", str(source), *seed(1), "--out", str(out)]
    assert main([*given, "--roster", str(tmp_path / "roster.csv")]) == 1
    assert "1 fit no line: eve" in capsys.readouterr().err
    assert not out.exists()


GRADED = [
    {"identifier": "12345", "points": 9, "of": 10, "notes": "well"},
    {"identifier": "77", "points": 0, "of": "", "notes": "nothing was handed in"},
    {"identifier": "9", "points": 10, "of": 10, "notes": ""},
    {"identifier": "31", "points": 1, "of": 10, "notes": ""},
    {"student": "eve", "identifier": "", "points": 5, "of": 10, "notes": ""},
]


def test_canvas_takes_back_its_own_columns_and_one_of_points(tmp_path):
    path = write_back(roster(tmp_path, CANVAS), GRADED, tmp_path, "heads")
    assert path.name == "canvas.csv"
    assert list(csv.reader(path.read_text(encoding="utf-8").splitlines())) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "heads (881)"],
        ["    Points Possible", "", "", "", "", "10"],
        ["Doe, Jane", "12345", "e01", "jdoe", "A and B", "9"],
        ["Doe, Jane", "77", "e02", "jdoe2", "A", "0"],
        ["Weiß, Anna Maria", "9", "e03", "aweiss@uni.example", "A", "10"],
        ["O'Neill, Ben", "31", "", "bneill", "A", "1"],
    ]


def test_moodle_takes_back_its_worksheet_with_grades_and_comments(tmp_path):
    rows = [
        {"identifier": f"Participant {4711 + i}", "points": i, "of": 10, "notes": note}
        for i, note in enumerate(["", "=cmd|calc", "nothing was handed in"])
    ]
    path = write_back(roster(tmp_path, MOODLE), rows, tmp_path)
    assert path.name == "moodle.csv"
    lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [line["Grade"] for line in lines] == ["0", "1", "2"]
    assert [line["Feedback comments"] for line in lines][1:] == ["'=cmd|calc", rows[2]["notes"]]
    assert [line["Identifier"] for line in lines] == [row["identifier"] for row in rows]


def test_of_two_columns_of_one_name_canvas_makes_a_new_one(tmp_path):
    held = roster(tmp_path, CANVAS.replace("Final Score", "heads (882)"))
    path = write_back(held, GRADED, tmp_path, "heads")
    assert path.read_text(encoding="utf-8").splitlines()[0].endswith(",heads")


def test_who_was_graded_outside_the_roster_is_told():
    assert outside(GRADED) == "1 graded outside the roster, and so in no file for the system: eve"
    assert outside(GRADED[:-1]) == ""


def test_moodle_in_german_takes_back_its_worksheet(tmp_path):
    text = 'ID,"Vollständiger Name",E-Mail-Adresse,Status,Bewertung,Bestwertung,'
    text += '"Feedback als Kommentar"\nTeilnehmer/in 4711,Anna Weiß,a@uni.example,,,10,\n'
    rows = [{"identifier": "Teilnehmer/in 4711", "points": 9.5, "of": 10, "notes": "well"}]
    path = write_back(roster(tmp_path, text), rows, tmp_path)
    [line] = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert path.name == "moodle.csv"
    assert (line["Bewertung"], line["Feedback als Kommentar"]) == ("9.5", "well")


def test_a_roster_among_the_results_is_not_replaced(tmp_path):
    held = roster(tmp_path, CANVAS)
    held.path.rename(tmp_path / "canvas.csv")
    with pytest.raises(RosterError, match=r"canvas\.csv is the roster.*move it out"):
        write_back(read_roster(tmp_path / "canvas.csv"), GRADED, tmp_path)
    assert (tmp_path / "canvas.csv").read_text(encoding="utf-8") == CANVAS


def test_an_id_is_the_same_in_the_roster_and_in_the_results(tmp_path):
    held = roster(tmp_path, MOODLE.replace("Participant 4711", "Participant  4711"))
    rows = [{"identifier": f"Participant {4711 + i}", "points": i, "notes": ""} for i in range(3)]
    assert write_back(held, rows, tmp_path).exists()


def test_a_list_of_ones_own_is_not_written_back(tmp_path):
    assert write_back(roster(tmp_path, OWN), [], tmp_path) is None


def test_points_of_a_roster_that_was_not_graded_are_not_written(tmp_path):
    with pytest.raises(RosterError, match="1 of the roster are not in the results: O'Neill, Ben"):
        write_back(roster(tmp_path, CANVAS), GRADED[:3], tmp_path)
    assert not (tmp_path / "canvas.csv").exists()


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
    assert "1 graded outside the roster, and so in no file for the system: eve" in (
        capsys.readouterr().out
    )
    assert table(out)["Anna Weiß"]["identifier"] == "e02"
    assert "nothing was handed in" in text_of(out, "Anna Weiß")
    text = "student,function,points,remark\ne02,,4,in the oral exam\n"
    (out / "corrections.csv").write_text(text)
    (tmp_path / "class" / "Müller Jürgen.ipynb").write_bytes(as_bytes(read_notebook("heads")))
    assert main([*given, "--only", "e03", "--only", "e02"]) == 0
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
    given += ["--roster", str(tmp_path / "gradebook.csv")]
    for more, points in (([], ""), (["--notebook", "_a."], "10")):
        assert main([*given, *more]) == 0
        said = capsys.readouterr()
        assert ("Which notebook counts?" in said.err) == (not more)
        assert ("1 held with a question: Doe, Jane (12345)" in said.out) == (not more)
        rows = {row["identifier"]: row for row in table(out).values()}
        found = {i: (row["points"], row["late"]) for i, row in rows.items()}
        rest = {"31": ("10", "late"), "77": ("0", ""), "9": ("0", "")}
        assert found == {"12345": (points, ""), **rest}
        lines = (out / "canvas.csv").read_text(encoding="utf-8").splitlines()
        [jane] = [row for row in csv.reader(lines) if row[1] == "12345"]
        assert jane[-1] == points

"""What an instructor writes is never overwritten: corrections, a changed table, other results."""

import os
import stat

import pytest

from coursework.__main__ import main
from coursework.grader import GraderError, batch
from coursework.grader.corrections import (
    Correction,
    read_corrections,
)
from tests.coursework.classes import (
    FUNCTION,
    NAME,
    counting,
    files,
    grades,
    hand_in,
    table,
    text_of,
)

ENTRIES = [
    {"student": "anna", "id": "anna"},
    {"student": "Müller, Jürgen", "id": "Müller_ Jürgen-e0783507", "identifier": "4711"},
    {"student": "=1+1", "id": "_1_1-aaaaaaaa"},
    {"student": "zoe", "id": "zoe-bbbbbbbb"},
    {"student": "zoe", "id": "zoe-cccccccc"},
]
HEAD = "student,function,points,remark\n"


def read(folder, text, encoding="utf-8"):
    (folder / "corrections.csv").write_bytes(text.encode(encoding))
    return read_corrections(folder, ENTRIES, ["f", "g"])


@pytest.fixture
def graded(folder, out, seed):
    """The command that has graded a class, but for its last words."""
    given = ["grade", NAME, str(folder), *seed(1), "--out", str(out)]
    assert main(given) == 0
    return given


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_points_and_remarks_by_hand_are_in_everything_and_outlive_every_run(
    graded, out, capsys, monkeypatch
):
    assert (out / "corrections.csv").read_text("utf-8-sig") == HEAD
    text = f"{HEAD}anna,,,well done\nben,{FUNCTION},2.5,the idea is right\ncem,,7,handed in late\n"
    (out / "corrections.csv").write_text(text)
    again = counting(monkeypatch)
    for _ in range(2):
        capsys.readouterr()
        assert main(graded) == 0
        assert "2 with points by hand: ben, cem" in capsys.readouterr().out
        assert grades(out) == {"anna": 10, "ben": 2.5, "cem": 7}
        rows = table(out)
        assert rows["ben"][FUNCTION] == "2.5"
        assert rows["anna"]["notes"] == "By hand: well done"
        assert "By hand: 7 of 10 points, 10 by the grader: handed in late" in rows["cem"]["notes"]
        hand = f"By hand: 2.5 of 10 points for {FUNCTION}, 0 by the grader: the idea"
        assert hand in text_of(out, "ben")
        assert (out / "corrections.csv").read_text() == text
    assert len(again) == 4, "the reference and the untouched notebook alone, twice"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_a_newer_hand_in_under_a_correction_and_who_is_gone_are_told(folder, graded, out, capsys):
    """A correction is for the report that its instructor saw, whenever it is first used."""
    said = "ben handed in again after your correction, which still counts: 4 points, 10 by"
    gone = "cem was here before and is not in the class any more"
    (out / "corrections.csv").write_text(f"{HEAD}ben,,4,\nanna,,9,\n")
    hand_in(folder, "ben")
    (folder / "cem.ipynb").unlink()
    for new in (True, False):
        assert main(graded) == 0
        told = capsys.readouterr().out
        assert (said in told) == new
        assert "anna handed in again" not in told
        assert (gone in told) == new
    assert grades(out)["ben"] == 4


@pytest.mark.usefixtures("bubblewrap")
def test_a_line_that_fits_nothing_is_told_before_anything_is_written(graded, folder, out, capsys):
    hand_in(folder, "dora")
    (out / "corrections.csv").write_text(f"{HEAD}anna,,9,\n\nbens,,9,\nben,attend,9,\nben,,many,\n")
    before = files(out)
    assert main(graded) == 1
    said = capsys.readouterr().err
    assert "line 4: there is no student 'bens'; the nearest: 'ben'" in said
    assert f"line 5: there is no function 'attend': expected {FUNCTION}, or nothing" in said
    assert "line 6: 'many' is not a number of points" in said
    assert "Nothing was written" in said
    assert files(out) == before


def test_corrections_are_read_as_spreadsheets_write_them(tmp_path):
    text = (
        "Student;Function;Points;Remark;\r\n4711;f;2,5;a; b\r\nzoe-cccccccc;;3;x\r\n'=1+1;g;4;\r\n"
    )
    assert read(tmp_path, "\ufeff" + text) == {
        "Müller_ Jürgen-e0783507": {"f": Correction(2.5, "a")},
        "zoe-cccccccc": {"": Correction(3, "x")},
        "_1_1-aaaaaaaa": {"g": Correction(4, "")},
    }
    assert read(tmp_path, f"{HEAD}anna,f,,a remark alone\n") == {
        "anna": {"f": Correction(None, "a remark alone")}
    }
    assert read(tmp_path, f'{HEAD}"Müller, Jürgen",,1,"two\nlines"\n') == {
        "Müller_ Jürgen-e0783507": {"": Correction(1, "two lines")}
    }


def test_a_line_for_everyone_who_made_a_mistake_yields_to_a_line_of_their_own(tmp_path):
    made = {"late_root": {"anna", "_1_1-aaaaaaaa"}, "no_root": {"anna"}, "never": set()}
    text = f"{HEAD}every late_root,f,5,the idea is right\nevery no_root,f,1,\nevery no_root,,2,\n"
    text += "every never,g,3,\nanna,f,6,seen\n"
    (tmp_path / "corrections.csv").write_text(text)
    assert read_corrections(tmp_path, ENTRIES, ["f", "g"], made) == {
        "anna": {"f": Correction(6, "seen"), "": Correction(2, "")},
        "_1_1-aaaaaaaa": {"f": Correction(5, "the idea is right")},
    }
    assert list(read(tmp_path, text)) == ["anna"], "before anybody is graded"
    with pytest.raises(GraderError, match="line 2: there is no known mistake 'every late_root'"):
        read_corrections(tmp_path, ENTRIES, ["f", "g"], {"no_root": set(), "never": set()})


def test_a_hand_in_with_the_name_of_a_line_for_many_stops_no_correction(tmp_path):
    entries = [*ENTRIES, {"student": "every late_root", "id": "every late_root"}]
    (tmp_path / "corrections.csv").write_text(f"{HEAD}every late_root,f,5,\n")
    for made, found in ((None, set()), ({"late_root": {"anna"}}, {"anna"})):
        assert read_corrections(tmp_path, entries, ["f"], made).keys() == found


def test_a_name_of_two_students_is_told_with_their_folders(tmp_path):
    entries = [{"student": "anna", "id": "anna", "identifier": "7"}, {"student": "7", "id": "7"}]
    (tmp_path / "corrections.csv").write_text(f"{HEAD}7,f,5,\n")
    with pytest.raises(GraderError, match="'7' may be 7 or anna: give the folder's name"):
        read_corrections(tmp_path, entries, ["f"])


FAULTS = [
    (f"{HEAD}every x,h,1,\n", "line 2: there is no function 'h'"),
    (
        f'{HEAD}"Müller, Jürge",,1,\n',
        "the nearest: 'Müller, Jürgen'\n",
    ),
    (f"{HEAD}zoe,,1,\n", "line 2: 'zoe' may be zoe-bbbbbbbb or zoe-cccccccc"),
    (f"{HEAD}anna,f,,\n", "line 2: there are neither points nor a remark"),
    (f"{HEAD}anna,,-1,\n", "line 2: '-1' is not a number"),
    (f"{HEAD}anna,,nan,\n", "line 2: 'nan' is not a number"),
    (f"{HEAD}anna,f,1,\nanna,,2,\nanna,f,3,\n", "line 4: 'anna' has two lines for f"),
    ("name,points\nanna,1\n", "begins with other columns"),
    ("", "is empty"),
    (f'{HEAD}anna,,1,"{"x" * 200_000}"\n', "line 2: field larger"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_what_is_no_correction_is_told_by_its_line(tmp_path, text, said):
    with pytest.raises(GraderError, match=said):
        read(tmp_path, text)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_a_table_that_was_changed_by_hand_is_kept_and_told(graded, out, capsys):
    changed = (out / "grades.csv").read_bytes().replace(b"ben,0", b"ben,9")
    (out / "grades.csv").write_bytes(changed)
    assert main(graded) == 0
    [kept] = out.glob("grades-by-hand-*.csv")
    assert kept.read_bytes() == changed
    said = capsys.readouterr().out
    assert f"was changed by hand: it is {kept.name} now" in said
    assert "corrections.csv" in said
    assert grades(out)["ben"] == 0
    assert main(graded) == 0
    assert len(list(out.glob("grades-by-hand-*.csv"))) == 1


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.long
def test_another_class_or_seed_into_the_same_place_writes_nothing(
    graded, out, seed, tmp_path, capsys, folder
):
    other = tmp_path / "monday" / "class"
    other.mkdir(parents=True)
    hand_in(other, "dora")
    before = files(out)
    calls = {
        f"class {folder} there, {other} now": ["grade", NAME, str(other), *graded[3:]],
        "a different seed": [*graded[:3], *seed(2), *graded[5:]],
        "seconds None there, 3.0 now": [*graded, "--seconds", "3"],
    }
    for said, given in calls.items():
        assert main(given) == 1
        told = capsys.readouterr().err
        assert said in told
        assert "name another --out" in told
        assert files(out) == before
    for path in folder.iterdir():
        path.unlink()
    hand_in(folder, "dora")
    assert main(graded) == 1
    assert "nobody of these results is in the class now" in capsys.readouterr().err
    assert files(out) == before
    hand_in(folder, "ben")
    assert main(graded) == 0
    assert grades(out) == {"ben": 10, "dora": 10}


@pytest.mark.usefixtures("bubblewrap")
def test_of_a_corrected_assignment_only_what_changed_is_graded_again(
    folder, out, seed, spoil, monkeypatch, capsys
):
    asked, grade = [], batch.grade

    def graded(exam, *arguments, **options):
        asked.append(len(exam.tests))
        return grade(exam, *arguments, **options)

    monkeypatch.setattr(batch, "grade", graded)
    given = ["grade", NAME, str(folder), *seed(1), "--out", str(out)]
    assert main(given) == 0
    assert asked == [7] * 5, "the reference, the untouched notebook and three hand-ins"
    corrected = {  # a text and a void test; a test that is another; both again as they were
        "assignment.ipynb": ("scale of its own", "own scale", [], 10, ""),
        "grading.py": ("S=10), 1)", "S=10), 0)", [], 9, "Nothing had to be graded again"),
        "./grading.py": ("S=240", "S=720", [1] * 3, 9, "3 hand-ins: all together"),
    }
    for name, (was, now, again, points, said) in corrected.items():
        path = spoil(name, was, now)
        os.utime(path, (1, 1))  # as if all edits fell into one second
        (path.parent / ".ipynb_checkpoints").mkdir(exist_ok=True)
        asked.clear()
        capsys.readouterr()
        assert main(given) == 0
        assert asked == [7, 7, *again]
        told = capsys.readouterr().err
        assert said in told
        assert ("The assignment has changed" in told) == bool(said)
        assert grades(out) == {"anna": points, "ben": 0, "cem": points}
        assert {row["of"] for row in table(out).values()} == {str(points)}


@pytest.mark.usefixtures("bubblewrap")
def test_results_are_for_their_owner_alone_whatever_the_umask_and_the_folder(
    folder, out, tmp_path, seed
):
    wide = tmp_path / "wide"
    wide.mkdir()
    wide.chmod(0o777)
    (wide / "grades.csv").touch(0o666)
    before = os.umask(0)
    try:
        for place in (out, wide):
            assert main(["grade", NAME, str(folder), *seed(1), "--out", str(place)]) == 0
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for p in (out, wide) for path in p.rglob("*")}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700

"""A class's hand-ins are found in folders and zip files, and whose they are."""

import os
import random
import struct
import unicodedata
import zipfile

import pytest

from coursework import __main__ as command_line
from coursework.grader.files import LONGEST, HandinsError, Question, Unreadable
from coursework.grader.handins import find_handins, other_files, questions_of
from coursework.grader.owners import pattern_of, place_of


def names(source):
    return [(handin.student, handin.name) for handin in find_handins(source)]


@pytest.fixture
def folder(tmp_path):
    """Files at the top, a second download, a folder for a student, and what is no hand-in."""
    for i, name in enumerate(
        ["zoe.ipynb", "anna (1).ipynb", "anna.ipynb", "Ben/04.ipynb", "Ben/old/04 (2).IPYNB"]
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        os.utime(path, (1_000_000 - 1000 * i, 1_000_000 - 1000 * i))
    for name in ("readme.txt", "Ben/.ipynb_checkpoints/04.ipynb", "._zoe.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "Cem").mkdir()
    return tmp_path


FOUND = [
    ("Ben", "Ben/old/04 (2).IPYNB"),
    ("Ben", "Ben/04.ipynb"),
    ("Cem", ""),
    ("anna", "anna.ipynb"),
    ("anna", "anna (1).ipynb"),
    ("zoe", "zoe.ipynb"),
]


def test_folder_gives_students_and_the_latest_of_each_last(folder):
    assert names(folder) == FOUND
    assert next(h.read() for h in find_handins(folder) if h.name) == b"Ben/old/04 (2).IPYNB"


def test_student_without_a_notebook_is_told(folder):
    [cem] = [handin for handin in find_handins(folder) if handin.student == "Cem"]
    with pytest.raises(Unreadable, match=r"no \.ipynb file"):
        cem.read()


def test_a_folder_that_cannot_be_opened_is_told_and_is_no_student_without_a_notebook(
    folder, monkeypatch
):
    scandir = os.scandir

    def closed(path):  # stands in for a folder of another user; root can open them all
        if path == str(folder / "Ben"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(HandinsError, match="Ben cannot be opened"):
        find_handins(folder)


def test_zip_is_read_without_unpacking_it(tmp_path):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("anna.ipynb", "../../eve.ipynb", "/etc/cron.d/x.ipynb", "a\\b.ipynb", "x.txt"):
            archive.writestr(name, name)
    before = set(tmp_path.rglob("*"))
    found = find_handins(path)
    assert {h.student: h.read().decode() for h in found} == {
        "anna": "anna.ipynb",
        "eve": "../../eve.ipynb",
        "etc": "/etc/cron.d/x.ipynb",
        "a": "a\\b.ipynb",
    }
    assert set(tmp_path.rglob("*")) == before


def test_a_small_zip_that_grows_large_is_turned_down(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.ipynb", bytes(30_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(Unreadable, match="larger than 20 MB"):
        find_handins(path)[0].read()


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_is_unpacked_whole_however_little_is_asked_for_is_turned_down(tmp_path, kind):
    (tmp_path / "anna").mkdir()
    with zipfile.ZipFile(tmp_path / "anna/work.zip", "w", kind) as archive:
        archive.writestr("04.ipynb", "{}")
    place(tmp_path, "ben/04.ipynb")
    anna, _ = find_handins(tmp_path)
    with pytest.raises(Unreadable, match="zip file of a rare kind"):
        anna.read()


def test_a_class_in_a_damaged_zip_file_is_told(tmp_path):
    path = pack(tmp_path / "class.zip", "anna.ipynb", "ben.ipynb")
    path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x01\x09", 1))
    with pytest.raises(HandinsError, match=r"class\.zip is a damaged zip file"):
        find_handins(path)


def test_zip_tells_students_without_a_notebook(tmp_path):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("anna/x.ipynb", "anna/notes.txt", "ben/x.py", "cem/", "stray.py"):
            archive.writestr(name, "")
    assert names(path) == [("anna", "anna/x.ipynb"), ("ben", ""), ("cem", "")]
    assert other_files(path) == ["anna/notes.txt", "ben/x.py", "stray.py"]
    _, ben, _ = find_handins(path)
    with pytest.raises(Unreadable, match=r"no \.ipynb file, but “x\.py”"):
        ben.read()


def test_zip_with_damaged_bytes_loses_that_hand_in_alone(tmp_path):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("anna.ipynb", os.urandom(2000).hex())
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(content)
    with pytest.raises(Unreadable, match="does not give it out"):
        find_handins(path)[0].read()


def test_of_downloads_at_one_time_the_highest_number_counts(tmp_path):
    for name in ("a", "a (2)", "a (10)", "a (1)"):
        (tmp_path / f"{name}.ipynb").touch()
        os.utime(tmp_path / f"{name}.ipynb", (1, 1))
    order = ["a.ipynb", "a (1).ipynb", "a (2).ipynb", "a (10).ipynb"]
    assert [name for _, name in names(tmp_path)] == order


@pytest.mark.parametrize("content", [None, b"PK no zip", b""])
def test_what_holds_no_hand_ins_is_an_error(tmp_path, content):
    path = tmp_path / "class"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(HandinsError, match="class"):
        find_handins(path)


def place(root, *names):
    """Put files into a folder, one minute and more after another, each with its name in it."""
    for i, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        os.utime(path, (1e9 + 1000 * i, 1e9 + 1000 * i))
    return root


def pack(path, *names, when=(2026, 5, 1, 12, 0, 0)):
    """Write a zip file with one time for all, as Canvas does, each with its name in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, when), "" if name[-1] == "/" else name)
    return path


def both(tmp_path, *names):
    """Return the same class as a folder and as a zip file."""
    return place(tmp_path / "class", *names), pack(tmp_path / "class.zip", *names)


def counted(source, **options):
    """Return the file that counts, by student."""
    return {h.student: h.name for h in find_handins(source, **options)}


def held(source, **options):
    """Return the files between which it is not clear which counts, by student."""
    found = [handin for handin in find_handins(source, **options) if handin.held]
    return {handin.student: handin.problem.partition(": ")[2] for handin in found}


CANVAS = (
    "doejane_12345_678901_04_heads.ipynb",
    "doejane_LATE_77_678955_04_heads-1.ipynb",
    "o_neill_LATE_31_678900_04_heads.ipynb",
    "weißanna_9_678902_04_heads (1).ipynb",
    "roe2_8_678903_report.pdf",
    "poe_7_text.html",
    "lee_6_678905_work.html",
    "lee_6_678904_04_heads.ipynb",
)


def test_canvas_names_students_by_name_and_number_late_or_not(tmp_path):
    for source in both(tmp_path, *CANVAS):
        assert counted(source) == {
            "doejane (12345)": CANVAS[0],
            "doejane (77)": CANVAS[1],
            "o_neill": CANVAS[2],
            "weißanna": CANVAS[3],
            "roe2": "",
            "poe": "",
            "lee": CANVAS[7],
        }
        ids = {h.student: h.identifier for h in find_handins(source)}
        assert (ids["doejane (77)"], ids["poe"]) == ("77", "7")


def test_canvas_with_two_files_of_a_student_counts_the_higher_number(tmp_path):
    names = ("a_1_502_04_heads-2.ipynb", "a_1_503_04_heads.ipynb", "b_2_504_04_heads.ipynb")
    assert counted(pack(tmp_path / "c.zip", *names)) == {"a": names[0], "b": names[2]}


def test_anonymous_canvas_students_are_told_apart(tmp_path):
    names = ("anon_aB3x9_71_04.ipynb", "LATE_anon_bb222_72_04.ipynb", "anon_bb222_73_04-1.ipynb")
    source = pack(tmp_path / "c.zip", *names)
    assert counted(source) == {"anon_aB3x9": names[0], "anon_bb222": names[2]}


def test_names_that_canvas_cannot_have_made_are_files(tmp_path):
    names = ["lab_1_2_anna.ipynb", "lab_1_2_ben.ipynb"]
    assert list(counted(place(tmp_path, *names))) == ["lab_1_2_anna", "lab_1_2_ben"]


def test_canvas_names_among_others_are_a_question(tmp_path):
    source = place(tmp_path, *CANVAS, "by mail.ipynb")
    with pytest.raises(Question, match=r"--layout canvas .* --layout files"):
        find_handins(source)
    assert set(counted(source, layout="canvas")) >= {"doejane (77)", "poe", "by mail"}
    assert "doejane_12345_678901_04_heads" in counted(source, layout="files")
    with pytest.raises(HandinsError, match="Moodle"):
        find_handins(source, layout="moodle")


MOODLE = (
    "Anna Weiß_4711_assignsubmission_file_/04_heads.ipynb",
    "Anna Weiß_4711_assignsubmission_onlinetext_/onlinetext.html",
    "Anna Weiß_4712_assignsubmission_file/sub/04_heads.ipynb",
    "Ben O'Neill-Roe_4713_assignsubmission_onlinetext_/onlinetext.html",
    "Group 7_12_assignsubmission_file_/x.ipynb",
)


@pytest.mark.parametrize("flat", [False, True])
def test_moodle_gives_a_student_one_line_whatever_was_handed_in(tmp_path, flat):
    names = [name.replace("/", "_") if flat else name for name in MOODLE]
    for source in both(tmp_path, *names):
        assert counted(source) == {
            "Anna Weiß (4711)": names[0],
            "Anna Weiß (4712)": names[2],
            "Ben O'Neill-Roe": "",
            "Group 7": names[4],
        }


METADATA = """submission_11:
  :submitters:
  - :name: 'Anna O''Neill: Weiß'
    :sid: '007'
    :email: anna@example.org
  :created_at: 2026-04-26 17:34:00.861687000 Z
  :history:
  - :name: Eve
  :results:
    output: |-
      submission_12:
        :submitters:
        - :name: Eve
submission_12:
  :submitters:
  - :name: "J\\u00fcrgen"
    :email: j@example.org
  - :name: Ben Roe
    :sid: 9
submission_13:
  :submitters: []
"""


def test_gradescope_names_students_in_a_file_of_its_own(tmp_path):
    root = tmp_path / "assignment_1_export"
    place(root, *(f"submission_{n}/04.ipynb" for n in (11, 12, 13)))
    (root / "submission_metadata.yml").write_text(METADATA, encoding="utf-8")
    assert [(h.student, h.identifier, h.name[-18:]) for h in find_handins(root)] == [
        ("Anna O'Neill: Weiß", "007", "submission_11/04.ipynb"[-18:]),
        ("Ben Roe", "9", "submission_12/04.ipynb"[-18:]),
        ("Jürgen", "j@example.org", "submission_12/04.ipynb"[-18:]),
        ("submission_13", "13", "submission_13/04.ipynb"[-18:]),
    ]
    assert len(find_handins(tmp_path)) == 4


def test_names_of_gradescope_that_cannot_be_read_are_told(tmp_path):
    place(tmp_path, "submission_11/04.ipynb", "submission_12/04.ipynb")
    with (tmp_path / "submission_metadata.yml").open("wb") as file:
        file.truncate(21_000_000)
    with pytest.raises(HandinsError, match=r"larger than 20 MB.*--layout folders"):
        find_handins(tmp_path)
    assert list(counted(tmp_path, layout="folders")) == ["submission_11", "submission_12"]


def test_what_macos_adds_is_no_student_and_its_names_are_the_same_names(tmp_path):
    composed, apart = "M\u00fcller", "Mu\u0308ller"
    names = (
        f"{composed}/04.ipynb",
        f"{apart}/04 (1).ipynb",
        "__MACOSXI/04.ipynb",
        "__MACOSX/._Müller",
        f"__MACOSX/{apart}/._04.ipynb",
        f"{apart}/.DS_Store",
        f"{apart}/._04.ipynb",
        ".DS_Store",
    )
    source = pack(tmp_path / "class.zip", *names)
    assert counted(source) == {composed: names[1], "__MACOSXI": names[2]}
    assert find_handins(source)[1].read().decode() == names[1]


@pytest.mark.parametrize("around", ["Class/", "Class/05-01/", "C:\\Users\\me\\Class\\"])
def test_folders_around_all_are_taken_off(tmp_path, around):
    names = ("anna/04.ipynb", "ben/04.ipynb", "cem/notes.txt")
    source = pack(tmp_path / "c.zip", *(around + name for name in names), "__MACOSX/x")
    assert counted(source) == {"anna": around + names[0], "ben": around + names[1], "cem": ""}
    source = pack(tmp_path / "d.zip", *(around + name for name in CANVAS))
    assert len(counted(source)) == 7


def test_files_in_one_folder_are_a_class_or_a_student_as_the_answer_says(tmp_path):
    for source in both(tmp_path, "Class/anna.ipynb", "Class/ben.ipynb", "readme.txt"):
        with pytest.raises(Question, match="--layout files for the class"):
            find_handins(source)
        assert list(counted(source, layout="files")) == ["anna", "ben"]
        assert list(counted(source, layout="folders", notebook=["anna"])) == ["Class"]


def test_a_class_of_one_is_one(tmp_path):
    assert counted(place(tmp_path / "1", "anna.ipynb")) == {"anna": "anna.ipynb"}
    assert list(counted(place(tmp_path / "2", CANVAS[0]))) == ["doejane"]
    assert list(counted(place(tmp_path / "3", MOODLE[0]))) == ["Anna Weiß"]
    assert list(counted(place(tmp_path / "4", "anna/04.ipynb"), layout="folders")) == ["anna"]
    source = pack(tmp_path / "5.zip", "C:\\Users\\cem\\04.ipynb")
    assert list(counted(source, layout="folders")) == ["cem"]


def test_results_beside_the_class_are_no_students(tmp_path):
    source = place(
        tmp_path,
        "anna/04.ipynb",
        "ben/04.ipynb",
        "ben/batch.json",
        "ben/records/x.json",
        "results/batch.json",
        "results/records/x.json",
        "results/reports/anna/report.md",
    )
    assert list(counted(source)) == ["anna", "ben"]
    assert "results" in other_files(source)
    place(tmp_path, "batch.json", "records/x.json", "reports/anna/report.md", "underway/0f")
    assert list(counted(source)) == ["anna", "ben"]


def test_windows_paths_name_the_student_not_the_drive(tmp_path):
    source = pack(tmp_path / "c.zip", "C:\\cem.ipynb", "d:\\dora\\04.ipynb", "C:ben/04.ipynb")
    assert list(counted(source)) == ["C:ben", "cem", "dora"]


def test_a_zip_of_a_students_is_looked_into(tmp_path):
    pack(tmp_path / "anna/work.zip", "hw/04.ipynb", "__MACOSX/hw/._04.ipynb", "../x.txt")
    pack(tmp_path / "ben/a.zip", "notes.txt")
    (tmp_path / "cem").mkdir()
    (tmp_path / "cem/a.zip").write_bytes(b"PK no zip")
    place(tmp_path, "dora/04.ipynb")
    pack(tmp_path / "dora/old.zip", "03.ipynb")
    outer = tmp_path / "class.zip"
    with zipfile.ZipFile(outer, "w") as archive:
        for path in sorted(tmp_path.glob("*/*")):
            archive.write(path, path.relative_to(tmp_path))
    outer.rename(tmp_path.parent / f"{tmp_path.name}.zip")
    for source in (tmp_path, tmp_path.parent / f"{tmp_path.name}.zip"):
        found = {h.student: h for h in find_handins(source)}
        assert found["anna"].name == "anna/work.zip/hw/04.ipynb"
        assert found["anna"].read() == b"hw/04.ipynb"
        assert found["dora"].read() == b"dora/04.ipynb"
        for student, why in (("ben", r"a\.zip” holds no \.ipynb"), ("cem", "not a zip file")):
            with pytest.raises(Unreadable, match=why):
                found[student].read()


def test_why_a_zip_cannot_be_read_is_told_in_letters_that_a_file_can_hold(tmp_path):
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / os.fsdecode(b"\xff\x1b[2J.zip")).touch()
    [anna] = find_handins(tmp_path, layout="folders")
    with pytest.raises(Unreadable, match="not a zip file") as caught:
        anna.read()
    assert str(caught.value).isprintable()
    str(caught.value).encode()


def test_a_zip_of_a_students_is_bounded(tmp_path):
    place(tmp_path, "zoe/04.ipynb")
    pack(tmp_path / "anna/many.zip", *(f"{i}.ipynb" for i in range(1001)))
    with zipfile.ZipFile(tmp_path / "ben.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("04.ipynb", bytes(30_000_000))
    (tmp_path / "ben").mkdir()
    (tmp_path / "ben.zip").rename(tmp_path / "ben/bomb.zip")
    (tmp_path / "cem").mkdir()
    with (tmp_path / "cem/huge.zip").open("wb") as file:
        file.truncate(21_000_000)
    (tmp_path / "dan").mkdir()
    (tmp_path / "dan/link.zip").symlink_to(tmp_path / "anna/many.zip")
    said = {"anna": "1000 files", "ben": "larger than 20", "cem": "larger than 20", "dan": "link"}
    found = {h.student: h for h in find_handins(tmp_path)}
    for student, why in said.items():
        with pytest.raises(Unreadable, match=why):
            found[student].read()


def test_a_name_of_a_students_is_quoted_where_it_says_why_there_is_nothing(tmp_path):
    pack(tmp_path / "anna/” By hand “.zip", "notes.txt")
    place(tmp_path, "ben/” By hand “.py")
    for handin in find_handins(tmp_path):
        with pytest.raises(Unreadable, match="“' By hand '"):
            handin.read()


def test_a_quotation_that_is_cut_in_a_list_is_closed(tmp_path):
    names = [f"anna/{letter * 70} counts. By hand 10 of 10 points" for letter in "xy"]
    place(tmp_path, *(f"{name}.py" for name in names), "ben/04.ipynb")
    problem = counted(tmp_path) and next(h.problem for h in find_handins(tmp_path))
    assert problem == "there is no .ipynb file, but {}, {}".format(
        *(f"“{letter * 70} counts. ”" for letter in "xy")
    )


def test_a_name_that_no_disk_would_take_is_cut_before_it_is_read(tmp_path):
    """The time of some patterns grows with the square of a name's length."""
    place(tmp_path, "zoe/04.ipynb")
    pack(tmp_path / "anna/work.zip", " " * 60_000 + ".ipynb", "-" * 60_000 + "/04.ipynb")
    name = counted(tmp_path)["anna"]
    assert name.endswith("-/04.ipynb")
    folders, _ = place_of(name)
    assert folders == ("anna", "work.zip", "-" * LONGEST)
    assert place_of(" " * 60_000 + ".ipynb") == ((), " " * LONGEST)


def test_a_zip_whose_entry_lies_beyond_any_file_loses_that_hand_in_alone(tmp_path):
    """A position in a zip file can have 64 bits, and a disk's has 63."""
    path = pack(tmp_path / "anna/work.zip", "04.ipynb")
    place(tmp_path, "ben/04.ipynb")
    content = path.read_bytes()
    head, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    listed = bytearray(content[head:end] + struct.pack("<HHQ", 1, 8, 2**63 + 5))
    listed[30:32], listed[42:46] = struct.pack("<H", 12), b"\xff" * 4
    end = content[end : end + 12] + struct.pack("<LLH", len(listed), head, 0)
    path.write_bytes(content[:head] + listed + end)
    anna, ben = find_handins(tmp_path)
    with pytest.raises(Unreadable, match="does not give it out"):
        anna.read()
    assert ben.read() == b"ben/04.ipynb"


def test_a_zip_beside_the_hand_ins_is_a_question(tmp_path):
    place(tmp_path, "anna.ipynb")
    pack(tmp_path / "ben.zip", "04.ipynb")
    with pytest.raises(Question, match=r"ben\.zip holds notebooks"):
        find_handins(tmp_path)
    assert list(counted(tmp_path, layout="files")) == ["anna", "ben"]


def test_a_number_decides_before_times_that_a_copy_lost(tmp_path):
    place(tmp_path, "anna (1).ipynb", "anna.ipynb", "ben.ipynb")
    place(tmp_path, "cem/anna (1).ipynb", "cem/anna.ipynb")
    assert counted(tmp_path) == {
        "anna": "anna (1).ipynb",
        "ben": "ben.ipynb",
        "cem": "cem/anna (1).ipynb",
    }


@pytest.mark.parametrize(
    "copy", ["anna - Copy", "anna - Copy (2)", "anna-Copy1", "anna copy", "Kopie von anna"]
)
def test_a_copy_by_hand_counts_where_it_is_newer_and_is_held_at_one_time(tmp_path, copy):
    place(tmp_path, f"{copy}.ipynb", "anna.ipynb", "ben/anna.ipynb", f"ben/{copy}.ipynb")
    assert counted(tmp_path) == {"anna": "anna.ipynb", "ben": f"ben/{copy}.ipynb"}
    source = pack(tmp_path / "c.zip", "ben/anna.ipynb", f"ben/{copy}.ipynb", "cem/04.ipynb")
    assert list(held(source)) == ["ben"]


def test_the_assignments_name_decides_before_the_time(tmp_path):
    for student in ("anna", "ben"):
        place(tmp_path, *(f"{student}/{n}.ipynb" for n in ("heads", "h/04_heads", "practice")))
    place(tmp_path, "ben/heads (1).ipynb", "cem/04_heads.ipynb", "cem/zzz.ipynb", "dora/x.ipynb")
    found = {"anna": "anna/heads.ipynb", "ben": "ben/heads (1).ipynb"}
    found |= {"cem": "cem/04_heads.ipynb", "dora": "dora/x.ipynb"}
    assert counted(tmp_path, title="heads") == found


def test_a_text_chooses_where_there_was_a_question_and_nowhere_else(tmp_path):
    names = ["anna/a.ipynb", "anna/b.ipynb", "ben/c.ipynb", "ben/d.ipynb"]
    names += ["cem/a.ipynb", "cem/a (1).ipynb"]
    source = pack(tmp_path / "c.zip", *names)
    assert list(held(source, notebook=["a.ip"])) == ["ben"]
    found = {"anna": "anna/a.ipynb", "ben": "ben/c.ipynb", "cem": "cem/a (1).ipynb"}
    assert counted(source, notebook=["a.ip", "c.ip"]) == found
    source = pack(tmp_path / "d.zip", *(f"anna/{n}.ipynb" for n in ("a", "a (1)", "b")), "ben/")
    assert list(held(source, notebook=["a.ip"])) == ["anna"]


def test_a_text_that_no_notebook_has_in_its_name_is_told(tmp_path):
    place(tmp_path, "anna.ipynb", "ben.ipynb")
    with pytest.raises(HandinsError, match="--notebook zzz: no notebook"):
        find_handins(tmp_path, notebook=["zzz"])


def test_a_text_for_each_of_several_students_is_one_answer(tmp_path):
    source = pack(tmp_path / "c.zip", *(f"{s}/{n}.ipynb" for s in ("an", "ben") for n in s))
    given = ["grade", "heads", str(source), "--out", "x", "--notebook", "a.i", "--notebook", "b.i"]
    found = command_line._found(command_line._parser().parse_args(given))
    assert {h.student: h.name for h in found} == {"an": "an/a.ipynb", "ben": "ben/b.ipynb"}


def test_results_into_the_folder_of_the_class_are_refused(tmp_path, seed, capsys):
    place(tmp_path / "class", "anna.ipynb")
    given = ["grade", "heads", str(tmp_path / "class"), *seed(1), "--out"]
    assert command_line.main([*given, str(tmp_path / "x" / ".." / "class")]) == 1
    assert "holds the hand-ins: name another folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "class").iterdir()] == ["anna.ipynb"]


def test_files_that_bear_the_assignments_name_are_a_question(tmp_path):
    place(tmp_path, "heads.ipynb", "heads (1).ipynb", "heads (2).ipynb")
    with pytest.raises(Question, match="Whose are these"):
        find_handins(tmp_path, title="heads")
    assert list(counted(tmp_path, title="heads", layout="files")) == ["heads"]


@pytest.mark.parametrize(
    "names", [("Anna (2).ipynb", "anna.ipynb"), ("Anna/x.ipynb", "anna/x.ipynb")]
)
def test_names_that_differ_in_capitals_alone_are_held_and_nobody_else(tmp_path, names):
    source = pack(tmp_path / "c.zip", *names, "ben.ipynb")
    assert held(source) == dict.fromkeys(["Anna", "anna"], "“Anna” and “anna”")
    [question] = questions_of(find_handins(source))
    assert "One student or two?" in question
    assert "--layout files" in question
    assert held(source, layout="files") == {}
    assert list(counted(source, layout="files")) == ["Anna", "anna", "ben"]


def test_names_in_utf8_are_read_without_the_flag_that_says_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("J__rg/04.ipynb", "1")
        archive.writestr("R_my.ipynb", "2")
    content = (tmp_path / "c.zip").read_bytes()
    content = content.replace(b"J__rg", "Jörg".encode()).replace(b"R_my", "Rémy".encode("cp437"))
    (tmp_path / "c.zip").write_bytes(content)
    assert counted(tmp_path / "c.zip") == {"Jörg": "Jörg/04.ipynb", "Rémy": "Rémy.ipynb"}
    assert [h.read() for h in find_handins(tmp_path / "c.zip")] == [b"1", b"2"]


def test_a_file_that_cannot_be_looked_at_is_told(tmp_path, monkeypatch):
    lstat = os.lstat

    def closed(path, **given):  # stands in for a folder that may be listed and not entered
        if str(path).endswith("04.ipynb"):
            raise PermissionError(13, "Permission denied", path)
        return lstat(path, **given)

    place(tmp_path, "anna/04.ipynb", "ben/05.ipynb")
    monkeypatch.setattr(os, "lstat", closed)
    with pytest.raises(HandinsError, match=r"anna/04\.ipynb cannot be opened"):
        find_handins(tmp_path)


def test_a_number_behind_a_line_is_a_copy_in_a_folder_and_held_among_students(tmp_path):
    place(tmp_path, "anna/04-1.ipynb", "anna/04.ipynb", "ben/04_2.ipynb", "ben/04.ipynb")
    place(tmp_path, "cem/04.ipynb", "cem-1/04.ipynb")
    assert {"anna": "anna/04-1.ipynb", "ben": "ben/04_2.ipynb"}.items() <= counted(tmp_path).items()
    assert held(tmp_path) == {}
    place(tmp_path, "e07-1.ipynb", "e07.ipynb")
    assert held(tmp_path) == dict.fromkeys(["e07", "e07-1"], "“e07” and “e07-1”")
    assert list(counted(tmp_path, layout="files")) == [
        "anna",
        "ben",
        "cem",
        "cem-1",
        "e07",
        "e07-1",
    ]
    assert held(tmp_path, layout="files") == {}


def test_other_names_at_one_time_hold_their_student_and_nobody_else(tmp_path):
    source = pack(tmp_path / "c.zip", "anna/heads.ipynb", "anna/zzz.ipynb", "ben/04.ipynb")
    found = find_handins(source)
    assert [h.student for h in found if h.held] == ["anna"]
    [question] = questions_of(found)
    assert "tell for anna: “heads.ipynb”, “zzz.ipynb” (" in question
    assert "close: anna/zzz.ipynb for anna. 1 held, the others are graded" in question
    with pytest.raises(Unreadable, match="not clear which notebook counts"):
        found[1].read()
    for options, file in (({"notebook": ["Heads"]}, "heads"), ({"believe_times": True}, "zzz")):
        assert counted(source, **options)["anna"] == f"anna/{file}.ipynb"
        assert list(questions_of(find_handins(source, **options))) == []


OLD = ("anna/heads.ipynb", "anna/old/heads.ipynb", "ben/heads.ipynb")


def test_the_copy_nearest_to_the_top_counts_and_says_so(tmp_path):
    for source in (pack(tmp_path / "c.zip", *OLD), place(tmp_path / "c", *OLD)):
        found = find_handins(source, title="heads")
        assert [(h.name, h.why) for h in found[:2]] == [
            ("anna/old/heads.ipynb", ""),
            ("anna/heads.ipynb", "the one nearest to the top"),
        ]


def test_folders_count_in_the_name_of_a_notebook_where_names_do_not_tell(tmp_path):
    names = ("an/first/heads.ipynb", "an/then/heads.ipynb", "ben/heads.ipynb")
    source = pack(tmp_path / "c.zip", *names)
    assert held(source) == {"an": "“an/first/heads.ipynb”, “an/then/heads.ipynb”"}
    for text in ("first", "an/first", "first/heads"):
        assert counted(source, notebook=[text])["an"] == names[0]
        [_, an, _] = find_handins(source, notebook=[text])
        assert an.why == "the one that --notebook names"
    assert list(held(source, notebook=["heads"])) == ["an"]


WHYS = [
    (("heads.ipynb", "zzz.ipynb"), "the one with the assignment's name"),
    (("a.ipynb", "a (1).ipynb"), "the one with the highest number"),
    (("b.ipynb", "a.ipynb"), "the newest"),
    (("a.ipynb",), ""),
]


@pytest.mark.parametrize(("names", "why"), WHYS)
def test_of_several_the_one_that_counts_says_why(tmp_path, names, why):
    source = place(tmp_path, *(f"anna/{name}" for name in names), "ben/04.ipynb")
    *_, anna, _ = find_handins(source, title="heads")
    assert anna.why == why


@pytest.mark.parametrize("ending", [".ipynb.txt", ".ipynb.json", ".ipynb.txt.txt"])
def test_a_notebook_with_another_ending_is_read_where_there_is_no_other(tmp_path, ending):
    names = (f"anna/heads{ending}", f"ben/heads{ending}", "ben/heads.ipynb", f"cem{ending}")
    for source in both(tmp_path, *names):
        assert counted(source) == {"anna": names[0], "ben": names[2], "cem": names[3]}
        assert [h.read().decode() for h in find_handins(source)] == [names[0], *names[2:]]
        assert other_files(source) == []


def test_checkpoints_are_no_hand_ins_wherever_they_lie(tmp_path):
    inner = pack(tmp_path / "x/work.zip", ".ipynb_checkpoints/a-checkpoint.ipynb", "b.ipynb")
    flat = "anna_4_assignsubmission_file_.ipynb_checkpoints_04-checkpoint.ipynb"
    names = ("ben/.ipynb_checkpoints/04-checkpoint.ipynb", "ben/a/.ipynb_checkpoints/x.ipynb")
    source = place(tmp_path / "class", "ben/04.ipynb", *names, flat, ".ipynb_checkpoints/x.ipynb")
    (source / "cem").mkdir()
    inner.rename(source / "cem/work.zip")
    assert counted(source) == {"ben": "ben/04.ipynb", "cem": "cem/work.zip/b.ipynb"}


def test_a_zip_named_after_a_notebook_is_its_students(tmp_path):
    place(tmp_path, "anna.ipynb")
    pack(tmp_path / "ben.ipynb.zip", "heads.ipynb")
    assert counted(tmp_path) == {"anna": "anna.ipynb", "ben": "ben.ipynb.zip/heads.ipynb"}


ATTEMPT = "heads_{}_attempt_2026-11-{}-00-00{}"
BRIGHTSPACE = "{}-6789 - {} - {}"
ATTEMPTS = {
    "blackboard": (
        ATTEMPT.format("s1", "09-10", "_a.ipynb"),
        ATTEMPT.format("s1", "10-09", "_zz.ipynb"),
        ATTEMPT.format("s2", "20-12", "_x_y.ipynb"),
        ATTEMPT.format("s1", "10-09", ".txt"),
        ATTEMPT.format("s3", "10-09", ".txt"),
    ),
    "brightspace": (
        BRIGHTSPACE.format(17, "s1", "Sep 9, 2026 1000 PM/04.ipynb"),
        BRIGHTSPACE.format(17, "s1", "Sep 10, 2026 900 AM/04.ipynb"),
        BRIGHTSPACE.format(18, "s2", "9 September, 2026 10:00 AM/x.ipynb"),
        BRIGHTSPACE.format(19, "s3", "Sep 9, 2026 1000 AM/x.pdf"),
        "index.html",
    ),
    "brightspace, flat": (
        BRIGHTSPACE.format(17, "s1", "Sep 30, 2026 1159 AM - b.ipynb"),
        BRIGHTSPACE.format(17, "s1", "Oct 1, 2026 1200 PM - a.ipynb"),
        BRIGHTSPACE.format(18, "s2", "Sep 9, 2026 1000 AM - a.zip.ipynb"),
        BRIGHTSPACE.format(19, "s3", "Sep 9, 2026 1000 AM/"),
    ),
    "teams": (
        "Submitted files/s1/heads/Version 9/04.ipynb",
        "Submitted files/s1/heads/Version 10/04.ipynb",
        "Submitted files/s2/heads/Version 1/04.ipynb",
        "Submitted files/s3/heads/Version 1/x.pdf",
        "Working files/s3/heads/x.ipynb",
    ),
}


@pytest.mark.parametrize("names", ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.parametrize("around", ["", "Student Work/"])
def test_of_two_attempts_that_a_system_keeps_the_newest_counts(tmp_path, names, around):
    names = [around + name for name in names]
    source = pack(tmp_path / "c.zip", *names)
    assert counted(source) == {"s1": names[1], "s2": names[2], "s3": ""}
    older, newest, *_ = find_handins(source)
    assert (older.name, newest.why) == (names[0], "the one of the newest attempt")
    source = pack(tmp_path / "d.zip", *reversed(names))
    assert counted(source) == {"s1": names[1], "s2": names[2], "s3": ""}


def test_several_assignments_of_teams_are_a_question_that_a_pattern_answers(tmp_path):
    names = [f"Submitted files/{name}/04.ipynb" for name in ("a/heads/Version 1", "a/x/Version 2")]
    source = place(tmp_path, *names, "Submitted files/b/heads/Version 1/y.ipynb")
    with pytest.raises(Question, match=r"several assignments: heads, x.*/heads/Version") as asked:
        find_handins(source)
    pattern = pattern_of(str(asked.value).split('"')[1])
    assert counted(source / "Submitted files", layout=pattern) == {
        "a": names[0].partition("/")[2],
        "b": "b/heads/Version 1/y.ipynb",
    }


DATES = [
    ("Sep 9, 2026 102 AM", "Sep 9, 2026 958 AM", "Sep 9, 2026 1202 PM", "Sep 9, 2026 112 PM"),
    ("9 September, 2026 902", "9 September, 2026 1001", "10 September, 2026 1:00"),
    ("December 31, 2025 11:59 PM", "January 1, 2026 12:01 AM", "January 10, 2026 1201 AM"),
]


@pytest.mark.parametrize("dates", DATES)
def test_the_dates_of_brightspace_are_in_order(tmp_path, dates):
    names = [BRIGHTSPACE.format(17, "s1", f"{date}/04.ipynb") for date in dates]
    source = pack(tmp_path / "c.zip", *sorted(names), BRIGHTSPACE.format(18, "s2", dates[0] + "/"))
    assert [handin.name for handin in find_handins(source) if handin.name] == names


def test_of_an_attempt_the_zip_is_looked_into_whatever_earlier_ones_hold(tmp_path):
    old, new = (ATTEMPT.format("s1", day, "_a") for day in ("09-10", "10-09"))
    source = place(tmp_path / "c", f"{old}.ipynb", ATTEMPT.format("s2", "09-10", "_a.ipynb"))
    pack(source / f"{new}.zip", "04.ipynb")
    assert counted(source)["s1"] == f"{new}.zip/04.ipynb"


def test_names_that_blackboard_gives_to_users_with_a_line_in_theirs_are_no_ones(tmp_path):
    """Two users may be one by what stands behind the line, so nothing is read out of the names."""
    names = [ATTEMPT.format(user, "09-10", "_x.ipynb") for user in ("a_b", "c_b")]
    source = place(tmp_path, *names)
    assert len(counted(source)) == 2
    layout = pattern_of("heads_{id}_attempt_{attempt}_{file}")
    assert counted(source, layout=layout) == {"a_b": names[0], "c_b": names[1]}


SECOND = "/heads/Version 9/04.ipynb"
TAKING = {  # another's place, by the name of an own file
    "blackboard": (
        ATTEMPT.format("anna", "09-10", "_04.ipynb"),
        ATTEMPT.format("ben", "09-10", "_04.ipynb"),
        ATTEMPT.format("eve", "09-10", "_x_anna_attempt_2026-12-09-10-00-00_04.ipynb"),
    ),
    "teams": (
        "Submitted files/anna/heads/Version 1/04.ipynb",
        "Submitted files/ben/heads/Version 1/04.ipynb",
        "Submitted files/eve/heads/Version 1/Submitted files/anna" + SECOND,
        "Working files/eve/heads/Submitted files/anna" + SECOND,
        "Working files/eve/heads/Version 1/Submitted files/ben" + SECOND,
    ),
}


@pytest.mark.parametrize(("system", "names"), TAKING.items())
@pytest.mark.parametrize("around", ["", "Student Work/"])
@pytest.mark.parametrize("said", [False, True])
def test_nobody_takes_anothers_place_by_the_name_of_a_file(tmp_path, system, names, around, said):
    source = place(tmp_path / "c", *(around + name for name in names))
    found = counted(source, layout=system if said else None)
    students = ("anna", "ben", "eve")
    assert found == {who: around + name for who, name in zip(students, names, strict=False)}


WAYS = {
    "{name}/{attempt}_{file}": ("anna/9_a.ipynb", "anna/10_a.ipynb", "ben/1_b.ipynb"),
    "{id}/{attempt}/{file}": ("anna/2/a.ipynb", "anna/10/a.ipynb", "ben/1/b.ipynb"),
    "{name} - *": ("anna - b.ipynb", "anna - a (1).ipynb", "ben - a.ipynb"),
    "*/{name} - {id}/Rev {attempt} - {file}": (
        "mon/anna - 1/Rev 1 - a.ipynb",
        "mon/anna - 1/Rev 2 - sub/a.ipynb",
        "tue/ben - 2/Rev 1 - a.ipynb",
    ),
    "{name}({id})/Submission attachment*/{file}": (
        "anna(7)/Submission attachment(s)/old/a.ipynb",
        "anna(7)/Submission attachment(s)/a.ipynb",
        "ben(8)/Submission attachment(s)/old/a.ipynb",
    ),
}


@pytest.mark.parametrize(("pattern", "names"), WAYS.items())
@pytest.mark.parametrize("around", ["", "class/"])
def test_a_pattern_takes_the_names_of_any_system(tmp_path, pattern, names, around):
    source = place(tmp_path / "c", *(around + name for name in names), f"{around}readme.txt")
    found = counted(source, layout=pattern_of(pattern))
    assert found == {"anna": around + names[1], "ben": around + names[2]}


def test_a_pattern_of_many_parts_is_as_fast_with_every_name():
    """With each part tried at each length, one such name would take minutes."""
    pattern = pattern_of("*_{name}_{id}_{attempt}_*.ipynb")
    assert not pattern.fullmatch("class/" + "_" * 248 + ".IPYNB")
    found = pattern.fullmatch("class/a__b_c_d_e_.ipynb.ipynb")
    assert found.groupdict() == {"name": "_b", "id": "c", "attempt": "d"}
    found = pattern_of("{file}-{name}-{id}").fullmatch("class/a/b-c-d-e")
    assert found.groupdict() == {"file": "a/b-c", "name": "d", "id": "e"}


def test_a_notebook_that_a_pattern_does_not_fit_is_left_aside_and_told(tmp_path, capsys):
    source = place(tmp_path, "anna - a.ipynb", "anna - b.ipynb", "ben_heads.ipynb", "readme.txt")
    assert counted(source, layout=pattern_of("{name} - {file}")) == {"anna": "anna - b.ipynb"}
    given = ["grade", "heads", str(source), "--out", "x", "--who", "{name} - {file}"]
    given = command_line._parser().parse_args(given)
    command_line._warn(given, command_line._found(given))
    said = capsys.readouterr().err
    assert "Left aside, not as --who says (1): ben_heads.ipynb\n" in said
    with pytest.raises(HandinsError, match="nothing that is named as --who says"):
        find_handins(source, layout=pattern_of("{name}, {file}"))


@pytest.mark.parametrize("text", ["", "*", "{file}", "{name}{name}", "{who}", "{}", "{name", "{1}"])
def test_what_is_no_pattern_is_told(tmp_path, text, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["grade", "heads", str(tmp_path), "--out", "x", "--who", text])
    assert "is no pattern: expected {name} or {id}" in capsys.readouterr().err


def test_late_is_what_canvas_says_of_the_file_that_counts(tmp_path):
    names = (
        "a_1_502_x.ipynb",
        "a_LATE_1_503_x-1.ipynb",
        "b_LATE_2_504_x.ipynb",
        "late_3_5_x.ipynb",
    )
    last = {h.student: h.late for h in find_handins(pack(tmp_path / "c.zip", *names))}
    assert last == {"a": True, "b": True, "late": False}


def test_one_student_by_two_ways_is_one(tmp_path):
    place(tmp_path, "anna.ipynb", "anna/04.ipynb", "ben.ipynb")
    assert counted(tmp_path) == {"anna": "anna/04.ipynb", "ben": "ben.ipynb"}


def test_of_two_entries_of_a_zip_with_one_name_the_later_is_the_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("anna.ipynb", "old")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("anna.ipynb", "new")
    [anna] = find_handins(tmp_path / "c.zip")
    assert anna.read() == b"new"


def test_questions_print_no_control_characters(tmp_path):
    names = ("a\x1b[2J\u202e/x.ipynb", "a\x1b[2J\u202e/y.ipynb", "b/x.ipynb")
    [question] = questions_of(find_handins(pack(tmp_path / "c.zip", *names)))
    assert question.isprintable()


def random_names(rng, number):
    letters = "aeimnorstüößÅéłÇ" + " -'0123456789"
    names = set()
    while len(names) < number:
        name = "".join(rng.choice(letters) for _ in range(rng.randint(3, 20))).strip(" -'")
        if len(name) > 2:
            names.add(unicodedata.normalize("NFC", name))
    return sorted(names)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("way", ["files", "folders", "around", "canvas", "moodle", "flat"])
def test_three_hundred_students_go_in_and_three_hundred_come_out(tmp_path, way, form):
    names = random_names(random.Random(way + form), 300)
    shape = {
        "files": "{name}.ipynb",
        "folders": "{name}/04_heads.ipynb",
        "around": "a/b/{name}/04_heads.ipynb",
        "canvas": "{name}_{i}_{file}_04_heads.ipynb",
        "moodle": "{name}_{i}_assignsubmission_file_/04_heads.ipynb",
        "flat": "{name}_{i}_assignsubmission_file_04_heads.ipynb",
    }[way]
    placed = {
        name: unicodedata.normalize(form, shape.format(name=name, i=7 + i, file=9000 + 7 * i))
        for i, name in enumerate(names)
    }
    source = pack(tmp_path / "c.zip", *placed.values())
    found = find_handins(source, layout="files" if way == "files" else None)
    assert {h.student: h.name for h in found} == placed
    assert len(found) == 300
    assert all(h.read().decode() == h.name for h in found[:5])

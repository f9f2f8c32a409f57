"""A report says what the grader knows, shows a student's words as words, and finds its way back."""

import csv
import io
import json
import re
import unicodedata
import zipfile

import nbformat
import pytest

from coursework.grader import reports
from coursework.grader.inert import (
    digest_of,
    name_list,
    one_line,
    plain,
    report_folder_names,
    safe_table_cell,
)
from coursework.grader.records import KEPT
from tests.coursework.classes import FUNCTION, NAME, TASK, Seen, table, text_of

HOSTILE = "<script>x</script> [a](b) | *c* `d` & \\"
ESC = "\x1b]0;owned\x07\x1b[2J\x1b[1;31m"
WORDS = [
    HOSTILE,
    "https://evil.example/a.ipynb",
    "HTTP://evil.example and www.evil.example and eve@evil.example and <https://evil.example>",
    "![x](https://evil.example/a.png) [x]: https://evil.example",
    "`` ` `x` $x$ ~~x~~ __x__ # x\n# y\n\n> z\n- a\n1. b",
    "=1+1",
    "a;=1+1;b",
    "a\t@SUM(1)|+1|-1:=1,=2",
    "a;  =1",
    "'=1",
    "''@x",
    '"=1","=2"',
    "\uff1dcmd\uff5ccalc; \uff0b1;\uff0d1;\uff20x",
    "a\r=1\n=2\x0b=3\u2028=4",
    f"{ESC}x\rOK",
    "abc\u202egpj.exe\u2066\u200f",
    "&lt;b&gt; &#60;i&#62; ' onload=x \" >",
    "\udcff\ufeff\x00",
]
SIGNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
OURS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "table"}
OURS |= {"thead", "tbody", "tr", "th", "td"}


def result_of(said="right", earned=0, mistake="", points=3, kept=0):
    result = {"function": FUNCTION, "label": "a case", "points": points, "earned": earned}
    return result | {"said": said, "fits": [], "mistake": mistake, "kept": kept}


def record_of(*results, remarks=(), problem=""):
    return {"problem": problem, "remarks": list(remarks), "results": list(results)}


def report(out, *records, say=lambda sentence: None, each=(), **more):
    """Write the reports of students a, b, … with these records; return the lines of the table.

    `each` : for each student what an entry has besides `more`
    """
    (out / "records").mkdir(exist_ok=True)
    entries = []
    for i, record in enumerate(records):
        student = chr(ord("a") + i)
        entry = {"student": student, "id": student, "mark": digest_of(student), "record": student}
        entries.append(entry | {"file": "a.ipynb", "of": 1} | more | ({**each[i]} if each else {}))
        path = out / "records" / f"{entries[-1]['record']}.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    head = {"assignment": NAME, "points": {FUNCTION: 3}, "trusted": more.get("trusted", False)}
    batch = head | KEPT | {"handins": entries}
    return reports.write_reports(batch, out, say=say)


def packed(out):
    """The files in feedback.zip."""
    with zipfile.ZipFile(out / "feedback.zip") as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.mark.parametrize("words", WORDS)
def test_a_students_words_are_no_tags_no_markup_no_link_and_no_formula(tmp_path, words):
    words = plain(words)
    record = record_of(result_of(), remarks=[["Code cell 3 raised an error", words]])
    (tmp_path / "corrections.csv").write_text("student,function,points,remark\n")
    own = {"student": words, "file": words, "id": "x", "of": 2, "identifier": words}
    report(tmp_path, record, **own, back="a_1_2_x.ipynb")
    page = Seen((tmp_path / "reports" / "x" / "report.html").read_text("utf-8"))
    assert {tag for tag, _ in page.tags} <= OURS
    assert page.text.count(one_line(words)) >= 3
    [cell] = json.loads(packed(tmp_path)["a_1_2_x.ipynb"])["cells"]
    seen = Seen(cell["source"])
    assert {tag for tag, _ in seen.tags} <= OURS
    assert seen.text.count(one_line(words)) >= 3
    assert not re.search(r"[$\\`*_\[\]~\n]|://", cell["source"]), "Markdown has nothing to read"
    text = (tmp_path / "grades.csv").read_text("utf-8-sig")
    for separator in ",;\t|:":
        rows = csv.reader(text.splitlines(), delimiter=separator)
        cells = [cell for row in rows for cell in row]
        assert not [c for c in cells if c.strip().startswith(SIGNS)], separator


@pytest.mark.parametrize("words", WORDS)
def test_what_is_shown_is_one_line_that_a_terminal_prints_as_it_is(words):
    for text in (one_line(words), safe_table_cell(words), name_list([words])):
        assert text.isprintable()
        text.encode()


def test_lists_end_where_nobody_reads_on_and_numbers_and_ordinary_names_stay():
    assert name_list(list("abc")) == "a, b, c"
    assert name_list(["x"] * 15).endswith("x, and 5 more")
    assert name_list(["Doe, Jane", "Ann Roe"]) == "Ann Roe; Doe, Jane"
    assert name_list([f"“{'x' * 90}. By hand 10 of 10 points”"]) == f"“{'x' * 79}”"
    for cell in (-3, "Müller-Lüdenscheidt, Jürgen", "anna (1) - copy", "04_heads.ipynb", "O'Neill"):
        assert safe_table_cell(cell) == cell


MADE = result_of("a known mistake", mistake=TASK.mistakes[0].name)
VOIDED = result_of("it holds NaN or infinity", mistake=TASK.mistakes[1].name, points=0)
LIKE = safe_table_cell(plain(TASK.mistakes[0].says))
REASONS = [
    (record_of(result_of("it raised KeyError")), f"{FUNCTION}: it raised KeyError"),
    (record_of(result_of(earned=3), result_of("it raised KeyError")), "it raised KeyError"),
    (
        record_of(*map(result_of, ("there is no function; found: `g`", "there is no function"))),
        "found: `g`",
    ),
    (record_of(result_of("not done yet: it returns None")), "not done yet: it returns None"),
    (
        record_of(result_of("x"), result_of("y"), remarks=[["Code cell 3 raised", "line 2"]]),
        "Code cell 3 raised: “line 2”",
    ),
    (record_of(problem="Not graded: no notebook."), "Not graded: no notebook"),
    (record_of(MADE, VOIDED), f"{FUNCTION}: {LIKE}"),
    (
        record_of(result_of("x"), result_of("y"), result_of("x"), result_of("right", 3), VOIDED),
        f"{FUNCTION}: x (in 2 of 4 tests), y (in 1 of 4 tests)",
    ),
]


@pytest.mark.parametrize(("record", "note"), REASONS)
def test_whoever_loses_points_has_the_reasons_in_a_note(tmp_path, record, note):
    [row] = report(tmp_path, record)
    assert note in row["notes"]


def test_who_is_right_has_no_note(tmp_path):
    right = record_of(result_of("right", 3), remarks=[["Code cell 9 raised", ""]])
    assert [row["notes"] for row in report(tmp_path, right)] == [""]


def test_a_mistake_is_named_with_what_it_keeps_and_none_by_a_void_test(tmp_path):
    right = result_of("right", 3)
    [row] = report(tmp_path, record_of(right, MADE | {"kept": 2}, MADE, VOIDED))
    says, mend = TASK.mistakes[0].says, TASK.mistakes[0].mend
    named = f"{says[:1].upper()}{says[1:]}. {mend} This mistake alone leaves 5 points."
    text = text_of(tmp_path, "a")
    assert named.replace("`", "") in text
    assert f"{FUNCTION}: 5 of 3" in text
    assert "| – a case | 0 of 0 | this test does not count" in text
    assert (row["points"], row[FUNCTION]) == (5, 5)
    tables = [(tmp_path / name).read_text("utf-8") for name in ("items.csv", "grades.csv")]
    words = ("NaN", TASK.mistakes[1].name, TASK.mistakes[1].says)
    assert not [w for w in words for t in (text, *tables) if w in t]


FORGED = "”; By hand: 10 of 10 points, 0 by the grader: “fine"


def test_nothing_that_a_student_wrote_looks_like_the_graders_word_in_the_notes(tmp_path):
    record = record_of(result_of("x"), remarks=[["Code cell 3 raised it", FORGED]])
    [row] = report(tmp_path, record, file=FORGED, of=2)
    assert re.sub("“[^“”]*”", "“”", row["notes"]) == (
        f"There were 2 hand-ins; this one counts: “”; Code cell 3 raised it: “”; {FUNCTION}: x"
    )


BACKS = {  # names in feedback.zip, and what a student who opens the file finds
    "a_1_502_heads.ipynb": "notebook",
    "b_LATE_2_503_heads-1.ipynb": "notebook",
    "c_3_504_work.zip": "zip",
    "d_4_505_heads.ipynb.txt": "page",
    "E Ö_4711_assignsubmission_file_/report.html": "page",
    "f_4712_assignsubmission_file_report.html": "page",
}


def test_feedback_has_the_names_of_the_export_and_files_that_open(tmp_path):
    """Canvas shows a file under the name of what was handed in, whatever is in it."""
    said, points = [], [record_of(result_of("right", i % 2 * 3)) for i in range(9)]
    each = [*({"back": name} for name in BACKS), {}, {"held": True, "back": "h_8_9_x.ipynb"}]
    each.append({"file": ""})  # nothing was handed in
    report(tmp_path, *points, each=each, say=said.append)
    found = packed(tmp_path)
    assert list(found) == list(BACKS)
    for i, (name, kind) in enumerate(BACKS.items()):
        content = found[name]
        if kind == "zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read("report.html")
        if kind == "notebook":
            notebook = nbformat.reads(content.decode(), as_version=4)
            nbformat.validate(notebook)
            content = notebook.cells[0].source.encode()
        else:
            assert content.startswith(b"<!doctype html>")
        text = Seen(content.decode()).text
        assert f"heads: {i % 2 * 3} of 3 points" in text
        assert f"Student: {'abcdef'[i]}" in text
    assert "feedback.zip has no report for 1, whose hand-in has no name in it: g." in said[-1]
    before = (tmp_path / "feedback.zip").read_bytes()
    report(tmp_path, *points, each=each)
    assert (tmp_path / "feedback.zip").read_bytes() == before


def test_without_a_system_each_student_has_a_folder_and_a_line_for_an_email(tmp_path):
    each = [{"address": "a@uni.example"}, {"id": "b-1"}, {"held": True}]
    report(tmp_path, *[record_of(result_of("right", 3))] * 3, each=each)
    assert list(packed(tmp_path)) == ["a/report.html", "b-1/report.html"]
    with (tmp_path / "email.csv").open(encoding="utf-8-sig", newline="") as file:
        a, b = csv.DictReader(file)
    assert (a["student"], a["address"]) == ("a", "a@uni.example")
    assert (b["address"], b["points"], b["of"]) == ("", "3", "3")
    assert all((tmp_path / line["report"]).exists() for line in (a, b))


def test_who_is_held_has_no_points_until_there_is_an_answer_or_points_by_hand(tmp_path):
    said, record = [], record_of(result_of("not run"), problem="Not graded: which one?")
    [row] = report(tmp_path, record, say=said.append, held=True, of=2)
    assert (row["points"], row[FUNCTION], row["of"]) == ("", "", 3)
    assert row["notes"] == "Not graded: which one?"
    assert "1 held with a question: a" in said
    assert "heads: not graded yet" in text_of(tmp_path, "a")
    assert "not run" not in text_of(tmp_path, "a"), "a test of what could not be read"
    (tmp_path / "corrections.csv").write_text("student,function,points,remark\na,,2,\n")
    [row] = report(tmp_path, record, held=True)
    assert row["points"] == 2
    assert (tmp_path / "corrections.csv").read_text().endswith("\na,,2,\n"), "it is left alone"


def test_points_by_hand_for_a_known_mistake_reach_everyone_who_made_it(tmp_path):
    mistake = TASK.mistakes[0].name
    made = record_of(result_of(), result_of("a known mistake", mistake=mistake))
    (tmp_path / "corrections.csv").write_text(
        f"student,function,points,remark\nevery {mistake},{FUNCTION},2,\n"
    )
    rows = report(tmp_path, made, record_of(result_of()), made)
    assert [row["points"] for row in rows] == [2, 0, 2]


def test_items_say_of_each_test_how_many_solved_it_and_which_mistakes_were_made(tmp_path):
    right, mistake = result_of("right", 3), TASK.mistakes[0].name
    report(tmp_path, *map(record_of, (right, right, result_of("x"), MADE)))
    with (tmp_path / "items.csv").open(encoding="utf-8-sig", newline="") as file:
        [item] = csv.DictReader(file)
    expected = {"points": "3", "solved": "2", "of": "4", "mistakes": f"{mistake} 1"}
    assert expected.items() <= item.items()


def test_who_came_late_is_in_the_table_where_anybody_did(tmp_path):
    record = record_of(result_of())
    assert "late" not in report(tmp_path, record)[0]
    report(tmp_path, record, record, each=[{"late": True}, {}])
    assert [row["late"] for row in table(tmp_path).values()] == ["late", ""]


def test_whom_to_look_at_and_who_has_the_same_file_is_told_by_name(tmp_path):
    missing = record_of(result_of("there is no function `f`"))
    right = record_of(result_of(earned=3))
    broken, said = record_of(problem="Not graded: x."), []
    (tmp_path / "corrections.csv").write_text("student,function,points,remark\ne,,3,on paper\n")
    each = [{}, {"record": "same"}, {}, {"record": "same"}, {}, {}, {"of": 2}, {"of": 2}]
    more = record_of(result_of("it did not come back within 5 seconds")), record_of(MADE), right
    report(tmp_path, right, missing, broken, missing, broken, *more, each=each, say=said.append)
    assert said == [
        "6 graded",
        "1 with points by hand: e",
        "1 that could not be read or run: c",
        "1 with several notebooks and points lost: g",
        "2 with 0 points because their function was not found: b, d",
        "1 with 0 points because their function did not come back: f",
        "The reasons are in the notes of grades.csv",
        "The same file, to the byte: b, d",
    ]


def test_a_class_of_nobody_has_results_too(tmp_path):
    assert report(tmp_path) == []


def test_a_report_that_cannot_be_written_leaves_the_old_one_whole(tmp_path, monkeypatch):
    def kept():
        return {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.parent.name != "records"}

    def no_room(number):
        raise OSError(28, "No space left on device")

    report(tmp_path, record_of(result_of()))
    before = kept()
    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        report(tmp_path, record_of(result_of("right", 3)))
    assert kept() == before


def folders_of(*students):
    return report_folder_names([(plain(name), digest_of(name)) for name in students])


def test_a_students_folder_of_reports_is_a_name_that_a_disk_can_hold():
    assert folders_of("Anna Weiß-2") == ["Anna Weiß-2"]
    for hostile in ("..", "../../x", "a/b", "", " ", "\udcff", "x" * 300, "con\n", ".", ESC):
        [name] = folders_of(hostile)
        assert name
        assert len(name) < 80
        assert "/" not in name
        assert name.strip(". ") == name
        assert name.isprintable()


CLASHES = [
    ["Müller, Jürgen", "Müller_ Jürgen-e0783507"],
    ["Anna", "anna", "ANNA"],
    ["Anna", "anna", f"Anna-{digest_of('Anna')}"],
    ["Zoe\u0301", "Zoé"],
    ["a/b", "a\\b", "a_b"],
    ["x" * 61, "x" * 62, "x" * 60],
    ["Straße", "STRASSE"],
]


@pytest.mark.parametrize("students", CLASHES)
def test_two_students_never_share_a_folder_on_any_disk_in_any_order(students):
    found = folders_of(*students, "zoe")
    assert len({unicodedata.normalize("NFD", name.casefold()) for name in found}) == len(found)
    assert folders_of("zoe", *reversed(students)) == list(reversed(found))

"""A report says what the grader knows, and shows a student's words as words."""

import csv
import html
import json
import re
import unicodedata
from html.parser import HTMLParser

import pytest

from coursework.grader import reports
from coursework.grader.entries import kept_of
from coursework.grader.inert import digest_of, folders, in_markdown, in_table, listed, plain, shown
from tests.coursework.classes import FUNCTION, NAME, TASK

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


def batch_of(*entries, trusted=False):
    head = {"assignment": NAME, "points": {FUNCTION: 3}, "trusted": trusted}
    return head | kept_of({}) | {"handins": list(entries)}


def result_of(said="right", earned=0, mistake="", points=3):
    result = {"function": FUNCTION, "label": "a case", "points": points, "earned": earned}
    return result | {"said": said, "mistake": mistake}


def entry_of(student, **more):
    own = {"student": student, "mark": digest_of(student), "id": folders([(student, "")])[0]}
    return own | {"file": "a.ipynb", "of": 1, "record": own["mark"]} | more


def report(out, *records, say=lambda sentence: None, **more):
    """Write the reports of students a, b, … with these records; return the lines of the table."""
    (out / "records").mkdir(exist_ok=True)
    entries = [entry_of(chr(ord("a") + i), **more) for i in range(len(records))]
    for entry, record in zip(entries, records, strict=True):
        entry["id"] = entry["student"]
        (out / "records" / f"{entry['record']}.json").write_text(json.dumps(record))
    return reports.write_reports(batch_of(*entries), out, say=say)


def record_of(*results, remarks=(), problem=""):
    return {"problem": problem, "remarks": list(remarks), "results": list(results)}


@pytest.fixture
def written(tmp_path):
    """The reports of one student, whose every own word is hostile."""
    result = result_of("the largest difference is 4", mistake=TASK.mistakes[0].name)
    record = record_of(result, remarks=[["Code cell 3 raised an error", HOSTILE]])
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "k.json").write_text(json.dumps(record))
    entry = entry_of(HOSTILE, file=HOSTILE, id="x", of=2, record="k")
    rows = reports.write_reports(batch_of(entry, trusted=True), tmp_path)
    texts = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "reports" / "x").iterdir()}
    return rows, texts, TASK.mistakes[0]


def test_mistake_is_named_and_mended_in_all_three(written):
    _, texts, mistake = written
    assert set(texts) == {"report.md", "report.html", "results.json"}
    assert all(mistake.mend in text for text in texts.values())


def test_what_the_instructor_chose_and_what_counts_is_told(written):
    rows, texts, _ = written
    assert "without a sandbox" in texts["report.md"]
    assert "There were 2 hand-ins" in texts["report.html"]
    assert (rows[0]["points"], rows[0]["of"]) == (0, 3)


def test_results_for_gradescope_have_its_fields(written):
    _, texts, _ = written
    found = json.loads(texts["results.json"])
    assert found["score"] == 0
    assert f"Code cell 3 raised an error: “{HOSTILE}”" in found["output"].splitlines()
    assert found["tests"][0] | {"output": ""} == {
        "name": f"{FUNCTION}: a case",
        "score": 0,
        "max_score": 3,
        "status": "failed",
        "output": "",
    }


def test_an_empty_shard_has_reports_too(tmp_path):
    assert reports.write_reports(batch_of(), tmp_path) == []
    assert (tmp_path / "items.svg").exists()


class Seen(HTMLParser):
    """What a browser takes a page to hold."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("words", WORDS)
def test_a_students_words_are_no_tags_no_markup_no_link_and_no_formula(tmp_path, words):
    words = plain(words)
    record = record_of(result_of(), remarks=[["Code cell 3 raised an error", words]])
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "k.json").write_text(json.dumps(record))
    entry = entry_of(words, file=words, id="x", of=2, record="k", identifier=words)
    reports.write_reports(batch_of(entry), tmp_path)
    page = Seen((tmp_path / "reports" / "x" / "report.html").read_text(encoding="utf-8"))
    ours = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "table"}
    assert {tag for tag, _ in page.tags} <= ours | {"thead", "tbody", "tr", "th", "td"}
    assert page.text.count(shown(words)) >= 3
    for line in (tmp_path / "reports" / "x" / "report.md").read_text("utf-8").splitlines():
        if shown(words).replace("`", "'") in line and line.startswith(
            ("Student", "File", "Code cell")
        ):
            assert re.fullmatch(r"[^`]*: `[^`]*`", line), line
    with (tmp_path / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        text = file.read()
    for separator in ",;\t|:":
        cells = [cell for row in csv.reader(text.splitlines(), delimiter=separator) for cell in row]
        assert not [cell for cell in cells if cell.strip().startswith(SIGNS)], separator


@pytest.mark.parametrize("words", WORDS)
def test_what_is_shown_is_one_line_that_a_terminal_prints_as_it_is(words):
    for text in (shown(words), in_table(words), in_markdown(words), listed([words])):
        assert text.isprintable()
        text.encode()


@pytest.mark.parametrize("words", WORDS)
def test_markdown_of_a_note_has_no_link_no_html_and_no_code(words):
    line = in_markdown(words)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", line)
    assert not re.search(r"[`*_\[\]|<>~$@]|://|www\.", bare), line
    assert html.unescape(re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", line)) == shown(words)


def test_a_list_of_names_ends_where_nobody_reads_on():
    assert listed(list("abc")) == "a, b, c"
    assert listed(["x"] * 15).endswith("x, and 5 more")
    assert listed(["Doe, Jane", "Ann Roe"]) == "Ann Roe; Doe, Jane"


def test_numbers_of_a_table_stay_numbers_and_ordinary_names_as_they_are():
    assert in_table(-3) == -3
    for name in (
        "Müller-Lüdenscheidt, Jürgen",
        "anna (1) - copy",
        "04_multi_head_attention.ipynb",
        "O'Neill",
    ):
        assert in_table(name) == name


MADE = result_of("a known mistake", mistake=TASK.mistakes[0].name)
VOIDED = result_of("it holds NaN or infinity", mistake=TASK.mistakes[1].name, points=0)
LIKE = in_table(plain(TASK.mistakes[0].says))
REASONS = [
    (record_of(result_of("it raised KeyError")), f"{FUNCTION}: it raised KeyError"),
    (record_of(result_of(earned=3), result_of("it raised KeyError")), "it raised KeyError"),
    (
        record_of(
            result_of("there is no function `f`; found: `g`"),
            result_of("there is no function `f`"),
        ),
        "found: `g`",
    ),
    (record_of(result_of("not done yet: it returns None")), "not done yet: it returns None"),
    (
        record_of(
            result_of("x"), result_of("y"), remarks=[["Code cell 3 is not Python", "line 2"]]
        ),
        "Code cell 3 is not Python: “line 2”",
    ),
    (record_of(problem="Not graded: no notebook."), "Not graded: no notebook"),
    (
        record_of(MADE, VOIDED),
        f"{FUNCTION}: {LIKE}",
    ),
    (
        record_of(result_of("x"), MADE, result_of("x"), result_of("right", 3), VOIDED),
        f"{FUNCTION}: x (in 2 of 4 tests), it looks as if {LIKE} (in 1 of 4 tests)",
    ),
]


@pytest.mark.parametrize(("record", "note"), REASONS)
def test_whoever_loses_points_has_the_reasons_in_a_note(tmp_path, record, note):
    [row] = report(tmp_path, record)
    assert note in row["notes"]


def test_who_is_right_has_no_note(tmp_path):
    right = record_of(result_of("right", 3), remarks=[["Code cell 9 is not Python", ""]])
    assert [row["notes"] for row in report(tmp_path, right)] == [""]


@pytest.mark.parametrize(
    ("others", "where"), [(1, "In 1 of 2 lost tests it looks as if "), (0, "")]
)
def test_a_mistake_is_named_if_it_explains_all_that_is_lost_and_none_by_a_void_test(
    tmp_path, others, where
):
    report(tmp_path, record_of(MADE, *[result_of("x")] * others, VOIDED))
    says = TASK.mistakes[0].says
    named = f"{where}{says}" if where else f"{says[:1].upper()}{says[1:]}"
    written = (tmp_path / "reports/a/report.md").read_text("utf-8")
    assert f"\n{named}. {TASK.mistakes[0].mend}\n" in written
    assert "| – a case | 0 of 0 | this test does not count |\n" in written
    for name in ("reports/a/report.md", "reports/a/results.json", "items.csv", "grades.csv"):
        text = (tmp_path / name).read_text("utf-8")
        assert not [
            word for word in ("NaN", TASK.mistakes[1].name, TASK.mistakes[1].says) if word in text
        ]


FORGED = "”; By hand: 10 of 10 points, 0 by the grader: “fine"


def test_nothing_that_a_student_wrote_looks_like_the_graders_word_in_the_notes(tmp_path):
    record = record_of(result_of("x"), remarks=[["Code cell 3 raised it", FORGED]])
    [row] = report(tmp_path, record, file=FORGED, of=2)
    assert re.sub("“[^“”]*”", "“”", row["notes"]) == (
        f"There were 2 hand-ins; this one counts: “”; Code cell 3 raised it: “”; {FUNCTION}: x"
    )
    found = json.loads((tmp_path / "reports" / "a" / "results.json").read_text("utf-8"))
    assert "By hand" not in re.sub("“[^“”]*”", "", found["output"])


def test_who_is_held_has_no_points_until_there_is_an_answer_or_points_by_hand(tmp_path):
    said, record = [], record_of(result_of("not run"), problem="Not graded: which one?")
    [row] = report(tmp_path, record, say=said.append, held=True, of=2)
    assert (row["points"], row[FUNCTION], row["of"]) == ("", "", 3)
    assert row["notes"] == "Not graded: which one?"
    assert "1 held with a question: a" in said
    assert (tmp_path / "reports/a/report.md").read_text().startswith("# heads: not graded yet\n")
    (tmp_path / "corrections.csv").write_text("student,function,points,remark\na,,2,\n")
    [row] = report(tmp_path, record, held=True)
    assert row["points"] == 2


def test_points_by_hand_for_a_known_mistake_reach_everyone_who_made_it(tmp_path):
    mistake = TASK.mistakes[0].name
    made = record_of(result_of(), result_of("a known mistake", mistake=mistake))
    (tmp_path / "corrections.csv").write_text(
        f"student,function,points,remark\nevery {mistake},{FUNCTION},2,\n"
    )
    rows = report(tmp_path, made, record_of(result_of()), made)
    assert [row["points"] for row in rows] == [2, 0, 2]


def test_who_came_late_is_in_the_table_where_anybody_did(tmp_path):
    record = record_of(result_of())
    assert "late" not in report(tmp_path, record)[0]
    assert report(tmp_path, record, late=True)[0]["late"] == "late"
    with (tmp_path / "grades.csv").open(encoding="utf-8-sig") as file:
        assert next(csv.DictReader(file))["late"] == "late"


def test_of_a_hand_in_that_could_not_be_read_no_tests_are_told(tmp_path):
    said = "not run: the hand-in had used up its time, or could not be read"
    report(tmp_path, record_of(result_of(said), problem="Not graded: its JSON cannot be read."))
    text = (tmp_path / "reports" / "a" / "report.md").read_text(encoding="utf-8")
    assert "its JSON cannot be read" in text
    assert "not run" not in text
    found = json.loads((tmp_path / "reports" / "a" / "results.json").read_text("utf-8"))
    assert (found["score"], found["tests"]) == (0, [])
    assert found["output"] == "Not graded: its JSON cannot be read."


def test_whom_to_look_at_is_told_by_kind_and_by_name(tmp_path):
    missing = record_of(result_of("there is no function `f`"))
    broken, right = record_of(problem="Not graded: x."), record_of(result_of(earned=3))
    said = []
    report(tmp_path, right, missing, broken, missing, say=said.append)
    assert said == [
        "3 graded",
        "1 that could not be read or run: c",
        "2 with 0 points because their function was not found: b, d",
        "The reasons are in the notes of grades.csv",
    ]


def test_points_by_hand_do_not_make_a_hand_in_one_that_was_graded(tmp_path):
    (tmp_path / "corrections.csv").write_text("student,function,points,remark\na,,3,on paper\n")
    said = []
    report(tmp_path, record_of(problem="Not graded: x."), say=said.append, file="")
    assert said[:2] == ["0 graded", "1 with points by hand: a"]


def test_a_report_that_cannot_be_written_leaves_the_old_one_whole(tmp_path, monkeypatch):
    report(tmp_path, record_of(result_of()))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def no_room(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        report(tmp_path, record_of(result_of("right", 3)))
    left = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert {p: left[p] for p in before if p.parent.name != "records"} == {
        p: content for p, content in before.items() if p.parent.name != "records"
    }
    assert set(left) == set(before)


def folders_of(*students):
    return folders([(plain(name), digest_of(name)) for name in students])


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

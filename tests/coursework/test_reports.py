"""A report says what the grader knows, and shows a student's words as words."""

import json

import pytest

from coursework.grader import reports
from coursework.grader.assignment import read_assignment

NAME = "heads"
HOSTILE = "<script>x</script> [a](b) | *c* `d` & \\"


def batch_of(*entries, trusted=False):
    head = {"assignment": NAME, "seed": 1, "digest": "", "trusted": trusted}
    return head | {"handins": list(entries)}


@pytest.fixture
def written(tmp_path):
    """The reports of one student, whose every own word is hostile."""
    [task] = read_assignment(NAME).tasks
    result = {"function": task.function, "label": "a case", "points": 3, "earned": 0}
    result |= {"said": "the largest difference is 4", "mistake": task.mistakes[0].name}
    record = {"problem": "", "remarks": [["Cell 3 raised an error", HOSTILE]], "results": [result]}
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "k.json").write_text(json.dumps(record))
    entry = {"student": HOSTILE, "file": HOSTILE, "id": "x", "of": 2, "record": "k"}
    rows = reports.write_reports(batch_of(entry, trusted=True), tmp_path)
    texts = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "reports" / "x").iterdir()}
    return rows, texts, task.mistakes[0]


def test_mistake_is_named_and_mended_in_all_three(written):
    _, texts, mistake = written
    assert set(texts) == {"report.md", "report.html", "results.json"}
    assert all(mistake.mend in text for text in texts.values())


def test_a_students_words_are_no_html_and_no_markdown(written):
    _, texts, _ = written
    assert "<script" not in texts["report.html"]
    lines = [line for line in texts["report.md"].splitlines() if "script" in line]
    assert len(lines) == 4
    for line in lines:
        if "<" in line:
            assert line.count("`") == 2
            assert line.index("`") < line.index("<")
        else:
            assert "\\[a\\](b) \\| \\*c\\* \\`d\\` &amp; \\\\" in line


def test_what_the_instructor_chose_and_what_counts_is_told(written):
    rows, texts, _ = written
    assert "without a sandbox" in texts["report.md"]
    assert "There were 2 hand-ins" in texts["report.html"]
    assert (rows[0]["points"], rows[0]["of"]) == (0, 3)


def test_results_for_gradescope_have_its_fields(written):
    _, texts, _ = written
    found = json.loads(texts["results.json"])
    assert found["score"] == 0
    assert found["tests"][0] | {"output": ""} == {
        "name": "attend_in_groups: a case",
        "score": 0,
        "max_score": 3,
        "status": "failed",
        "output": "",
    }


def test_an_empty_shard_has_reports_too(tmp_path):
    assert reports.write_reports(batch_of(), tmp_path) == []
    assert (tmp_path / "items.svg").exists()

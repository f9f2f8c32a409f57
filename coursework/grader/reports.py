"""What an instructor and a student read of a batch, and what brings it there.

In a report what is ours may set code between two backticks; what is a student's is code itself.
"""

import hashlib
import html
import io
import json
import zipfile
from collections import Counter
from pathlib import Path

from coursework.grader.assignment import read_assignment
from coursework.grader.corrections import COLUMNS, CORRECTIONS, read_corrections
from coursework.grader.inert import name_list, one_line, quote, table_as_csv
from coursework.grader.judge import SAID, points
from coursework.grader.records import FILE_MODE, make_folder, read_record, write_file, write_json

FEEDBACK = "feedback.zip"
STYLE = """body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; font: 1rem/1.5 sans-serif }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #8888;
padding: .3rem .6rem; text-align: left } td:nth-child(2), th:nth-child(2) { white-space: nowrap }
:root { color-scheme: light dark } code { overflow-wrap: anywhere }"""
SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "$\\`*_[]~:"}  # of mark-up, formulas and links
HEAD = "<tr><th>test</th><th>points</th><th>what happened</th></tr>"
VOID = {"said": "this test does not count", "mistake": ""}
TOO_MANY = 3  # remarks, and reasons of a function, in a line of `grades.csv`


def write_reports(batch, out, *, say=lambda sentence: None):
    """Write what a batch comes to, with what its instructor has corrected.

    `grades.csv`, `items.csv` and `reports/STUDENT/report.html`, which `feedback.zip` and
    `email.csv` bring to students; nothing if there is a GraderError. Return the lines of
    `grades.csv`, as dicts.

    `batch` : as `grade_batch` returns it; what the next run needs is added: the digest of
        `grades.csv`, and who was `reported` with which record
    `out` : folder of the results, with `records/`
    `say` : called with each sentence for the instructor: whom to look at
    """
    out, entries = Path(out), batch["handins"]
    tasks = {task.function: task for task in read_assignment(batch["assignment"]).tasks}
    records = {entry["id"]: read_record(out, entry) for entry in entries}
    made = _students_by_mistake(tasks, records)
    corrections = read_corrections(out, entries, list(batch["points"]), made)
    reports = [_StudentReport(batch, e, records[e["id"]], corrections, tasks) for e in entries]
    make_folder(out / "reports")
    if not (out / CORRECTIONS).exists():
        write_file(out / CORRECTIONS, f"\ufeff{','.join(COLUMNS)}\r\n")
    for report in reports:
        make_folder(out / "reports" / report.entry["id"])
        write_file(out / "reports" / report.entry["id"] / "report.html", page_of(*report.page()))
    graded = [report for report in reports if not report.held]
    feedback = write_feedback(out, [(report.entry, *report.page()) for report in graded])
    changes, rows = [*_changes(batch, reports), feedback], [report.row() for report in reports]
    _write_grades(batch, out, rows, say)
    write_file(out / "items.csv", table_as_csv(_item_rows([*records.values()])))
    write_file(out / "email.csv", table_as_csv([report.email() for report in graded]))
    for line in filter(None, [*_students_to_look_at(reports), *changes]):
        say(line)
    return rows


def _students_by_mistake(tasks, records):
    """Return who made which mistake; a test that can give no points does not count."""
    made = {mistake.name: set() for task in tasks.values() for mistake in task.mistakes}
    for folder, record in records.items():
        record["results"] = [r if r["points"] else r | VOID for r in record["results"]]
        for result in record["results"]:
            made.get(result["mistake"], set()).add(folder)
    return made


class _StudentReport:
    """What is told of one student: the grader's record, and what was corrected by hand."""

    def __init__(self, batch, entry, record, corrections, tasks):
        self.entry, self.record, self.most = entry, record, batch["points"]
        self.title, self.trusted, self.tasks = batch["assignment"], batch["trusted"], tasks
        self.given = corrections.get(entry["id"], {})
        self.groups = {function: [] for function in self.most}
        for result in record["results"]:
            self.groups[result["function"]].append(result)
        self.graded = {f: points({"results": group}) for f, group in self.groups.items()}
        self.hand = {f: c.points for f, c in self.given.items() if c.points is not None}
        self.points = {name: self.hand.get(name, own) for name, own in self.graded.items()}
        self.total = self.hand.get("", sum(self.points.values()))
        self.any_late = any(each.get("late") for each in batch["handins"])
        self.held = bool(entry.get("held")) and not self.hand
        self.out_of = sum(self.most.values())

    def lost_all(self, reason_start):
        """Whether there is no point, and a reason that begins so."""
        said = [result["said"] for result in self.record["results"]]
        return not any(self.graded.values()) and any(s.startswith(reason_start) for s in said)

    def correction_sentence(self, function, given):
        """Return a sentence for a correction."""
        was = self.graded[function] if function else sum(self.graded.values())
        most = self.most[function] if function else self.out_of
        what = f" for {function}" if function else ""
        if function in self.hand:
            what = f": {given.points} of {most} points{what}, {was} by the grader"
        return f"By hand{what}" + (f": {given.remark}" if given.remark else "")

    def notes(self):
        """Return pairs of our words and the student's on the whole."""
        notes = [(self.correction_sentence(*correction), "") for correction in self.given.items()]
        if self.record["problem"]:
            notes.append((self.record["problem"], ""))
        if self.entry["of"] > 1 and not self.held:
            which = self.entry.get("why", "this one")
            ours = f"There were {self.entry['of']} hand-ins; {which} counts"
            notes.append((ours, self.entry["file"]))
        if self.trusted:
            notes.append(("Run without a sandbox, as the instructor chose", ""))
        return notes

    def reasons(self):
        """Return why points were lost, for `grades.csv`."""
        if self.record["problem"] or not _failed_results(self.record["results"]):
            return []
        remarks = [_words_of_pair(remark) for remark in self.record["remarks"]]
        whys = {name: _loss_reason(group, self.tasks[name]) for name, group in self.groups.items()}
        whys = [f"{name}: {why}" for name, why in whys.items() if why]
        return [*remarks[:TOO_MANY], *whys]

    def row(self):
        """Return the line of `grades.csv`."""
        row = {name: self.entry[name] for name in ("student", "identifier") if name in self.entry}
        row |= {"points": self.total, "of": self.out_of, **self.points}
        row |= {"late": "late" * bool(self.entry.get("late"))} if self.any_late else {}
        if self.held:
            row |= dict.fromkeys(("points", *self.points), "")
        notes = [*map(_words_of_pair, self.notes()), *self.reasons()]
        return row | {"file": self.entry["file"], "notes": "; ".join(n.rstrip(".") for n in notes)}

    def email(self):
        """Return the line of `email.csv`: whom to send which report, and the points in it."""
        line = {name: self.entry.get(name, "") for name in ("student", "address")}
        report = f"reports/{self.entry['id']}/report.html"
        return line | {"points": self.total, "of": self.out_of, "report": report}

    def page(self):
        """Return the title of the report and its HTML, without tests of what could not be read."""
        earned = "not graded yet" if self.held else f"{self.total} of {self.out_of} points"
        title = f"{self.title}: {earned}"
        body = [f"<h1>{escape(title)}</h1>", paragraph("Student", self.entry["student"])]
        body.append(paragraph("File", self.entry["file"] or "none"))
        body += [paragraph(*pair) for pair in (*self.notes(), *self.record["remarks"])]
        for function, results in self.groups.items() if not self.record["problem"] else ():
            hand = " (by hand)" if function in self.hand else ""
            earned = f"{self.points[function]} of {self.most[function]}{hand}"
            body.append(f"<h2>{escape(f'{function}: {earned}')}</h2>")
            if mistake := _explaining_mistake(results, self.tasks[function]):
                more = f" This mistake alone leaves {self.graded[function]} points."
                kept = any(result["kept"] for result in results)
                says = f"{mistake.says[:1].upper()}{mistake.says[1:]}"
                body.append(f"<p>{escape(f'{says}. {mistake.mend}{more * kept}')}</p>")
            rows = ["".join(f"<td>{escape(cell)}</td>" for cell in _cells(r)) for r in results]
            body.append(f"<table>{HEAD}{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        return title, "".join(body)


def _words_of_pair(pair):
    ours, words = pair
    return f"{ours}: {quote(words)}" if words else ours


def _failed_results(results):
    return [result for result in results if result["earned"] < result["points"]]


def _loss_reason(results, task):
    """Return what a function has lost points for: the known mistake, or what its tests say."""
    if mistake := _explaining_mistake(results, task):
        return mistake.says
    of, said = sum(r["points"] > 0 for r in results), [r["said"] for r in _failed_results(results)]
    kinds = Counter(min(filter(own.startswith, said), key=len) for own in said)
    found = []
    for kind, number in kinds.most_common(TOO_MANY):
        first = next(own for own in said if own.startswith(kind))  # it may say the place, too
        found.append(first if number == of else f"{first} (in {number} of {of} tests)")
    return ", ".join(found)


def _explaining_mistake(results, task):
    """Return the known mistake that explains every test that was lost; None: none does."""
    made = {result["mistake"] for result in _failed_results(results)}
    return next((mistake for mistake in task.mistakes if mistake.name in made), None)


def _cells(result):
    sign = ("✓" if result["earned"] == result["points"] else "✗") if result["points"] else "–"
    points = f"{result['earned']} of {result['points']}"
    return f"{sign} {result['label']}", points, result["said"]


def _students_to_look_at(reports):
    """Yield whom no number can be wrong about, who got none, and who has the file of another."""
    yield f"{sum(not report.record['problem'] for report in reports)} graded"
    seen = set()
    for kind, is_one in KINDS.items():
        found = [r for r in reports if r.entry["id"] not in seen and is_one(r)]
        seen |= {r.entry["id"] for r in found}
        if found:
            yield f"{len(found)} {kind}: {name_list(r.entry['student'] for r in found)}"
    if seen:
        yield "The reasons are in the notes of grades.csv"
    same = {}
    for report in [report for report in reports if report.entry.get("record")]:
        same.setdefault(report.entry["record"], []).append(report.entry["student"])
    for names in (names for names in same.values() if len(names) > 1):
        yield f"The same file, to the byte: {name_list(names)}"


KINDS = {
    "with points by hand": lambda report: report.hand,
    "held with a question": lambda report: report.held,
    "without a notebook": lambda report: not report.entry["file"],
    "that could not be read or run": lambda report: report.record["problem"],
    "with several notebooks and points lost": lambda r: r.entry["of"] > 1 and r.total < r.out_of,
    "with 0 points because their function was not found": lambda r: r.lost_all("there is no"),
    "with 0 points because their function returns None": lambda r: r.lost_all(SAID["nothing"]),
    "with 0 points because their function raised an error": lambda r: r.lost_all("it raised"),
    "with 0 points because their function did not come back": lambda r: r.lost_all("it did not"),
}


def _changes(batch, reports):
    """Yield who is gone, and whose points by hand are for an older hand-in than this one."""
    before = batch["reported"]
    now = {r.entry["mark"]: [r.entry["student"], r.entry.get("record", "")] for r in reports}
    for report in [r for r in reports if r.hand]:
        seen = before.get(report.entry["mark"], now[report.entry["mark"]])
        if seen[1] != report.entry.get("record", ""):
            yield (
                f"{report.entry['student']} handed in again after your correction, which still "
                f"counts: {report.total} points, {sum(report.graded.values())} by the grader. Take "
                f"the line out of {CORRECTIONS} if it should not"
            )
    records = {record for _, record in now.values()}  # a roster gives them other names
    yield from (
        f"{student} was here before and is not in the class any more"
        for mark, (student, record) in before.items()
        if mark not in now and not (record and record in records)
    )
    batch["reported"] = now


def _write_grades(batch, out, rows, say):
    """Write `grades.csv`; one that has been changed since the grader wrote it is kept beside it."""
    path, content = out / "grades.csv", table_as_csv(rows).encode()
    new = hashlib.sha256(content).hexdigest()
    old = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else new
    if old not in (batch["grades"], new):
        kept = out / f"grades-by-hand-{old[:8]}.csv"
        path.replace(kept)
        kept.chmod(FILE_MODE)
        say(
            f"{path} was changed by hand: it is {kept.name} now, and counts no longer. "
            f"Points and remarks by hand belong in {out / CORRECTIONS}, which every run uses."
        )
    write_file(path, content)
    batch["grades"] = new
    write_json(out / "batch.json", batch)


def _item_rows(records):
    """Return a row for each test that counts: how many solved it, which mistakes were made."""
    found = {}
    for record in records:
        for r in (result for result in record["results"] if result["points"]):
            found.setdefault((r["function"], r["label"]), []).append(r)
    rows = []
    for (function, label), results in found.items():
        made = Counter(r["mistake"] for r in results if r["mistake"]).most_common()
        row = {"function": function, "test": label, "points": results[0]["points"]}
        row |= {"solved": sum(r["earned"] == r["points"] for r in results), "of": len(records)}
        rows.append(row | {"mistakes": "; ".join(f"{name} {n}" for name, n in made)})
    return rows


def page_of(title, body):
    """Return a report as a page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def notebook_with_html(body):
    """Return a report as a notebook of one cell of text, which is HTML on one line."""
    text = body.translate(SIGNS)
    cell = {"cell_type": "markdown", "id": "report", "metadata": {}, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def paragraph(label, student_words=""):
    """Return a paragraph of our words, or an instructor's, and of a student's."""
    more = f": <code>{html.escape(one_line(student_words))}</code>" if student_words else ""
    return f"<p>{html.escape(one_line(label))}{more}</p>"


def escape(line):
    """Escape a line of ours, and set what stands between two backticks as code."""
    pieces = html.escape(line).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def write_feedback(out, reports):
    """Write the reports into `feedback.zip`, under the names that the system of the class knows.

    Return who has no place in it, in a sentence, "" for nobody.
    Where no system gave the hand-ins out, each student has a folder with the report.

    `out` : folder of the results
    `reports` : list of (entry, title of the report, its HTML)
    """
    known = any(entry.get("back") for entry, *_ in reports)
    left = [e["student"] for e, *_ in reports if known and e["file"] and not e.get("back")]
    packed = {}
    for entry, title, body in reports:
        name = entry.get("back", "" if known else f"{entry['id']}/report.html")
        kind = name.lower().rpartition(".")[2]  # Canvas shows it as what was handed in
        if name:
            packed[name] = notebook_with_html(body) if kind == "ipynb" else page_of(title, body)
        if kind == "zip":
            packed[name] = _zip_bytes({"report.html": packed[name]})
    write_file(out / FEEDBACK, _zip_bytes(packed))
    said = f"{FEEDBACK} has no report for {len(left)}, whose hand-in has no name in it"
    return f"{said}: {name_list(left)}. Their reports are in reports/" if left else ""


def _zip_bytes(files):
    """Return a zip file of some files, the same bytes whenever it is written."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()

"""What an instructor and a student read of a batch."""

import csv
import hashlib
import io
from collections import Counter
from operator import itemgetter
from pathlib import Path

from coursework.grader.assignment import read_assignment
from coursework.grader.corrections import NAME as CORRECTIONS
from coursework.grader.corrections import make_corrections, read_corrections
from coursework.grader.entries import record_of
from coursework.grader.feedback import TABLE, emails_of, write_feedback
from coursework.grader.inert import in_table, listed, quoted
from coursework.grader.judge import SAID, points
from coursework.grader.records import FILE_MODE, make_folder, put, put_json
from coursework.grader.rendering import page_of

MARK = {True: "✓", False: "✗"}
VOID = "this test does not count"
MOST_SAME = 5  # identical files that are told
TOO_MANY = 3  # remarks, and reasons of a function, in a line of `grades.csv`


def write_reports(batch, out, *, say=lambda sentence: None):
    """Write what a batch comes to, with what its instructor has corrected.

    `grades.csv`, `items.csv` with `items.svg`, in `reports/STUDENT/` a `report.html`, and
    `results.json` for Gradescope; `feedback.zip` and `email.csv` bring the reports to students.

    Parameters
    ----------
    batch : as `grade_batch` returns it; what the next run needs is added: the digest of
        `grades.csv`, who was `reported` with which record, and for which one was `corrected`
    out : folder of the results, with `records/`
    say : called with each sentence for the instructor: whom to look at

    Returns
    -------
    rows : list of dict, the lines of `grades.csv`

    Raises
    ------
    CorrectionsError, Damaged : nothing was written
    """
    out = Path(out)
    tasks = {task.function: task for task in read_assignment(batch["assignment"]).tasks}
    records = {entry["id"]: _without_void(record_of(out, entry)) for entry in batch["handins"]}
    made = _made(records, tasks.values())
    corrections = read_corrections(out, batch["handins"], list(batch["points"]), made)
    told = [_Told(batch, e, records[e["id"]], corrections, tasks) for e in batch["handins"]]
    make_folder(out / "reports")
    make_corrections(out)
    changed = [*_since_last(batch, told), _write_back(out, told)]
    rows = [each.row() for each in told]
    _write_grades(batch, out, rows, say)
    items = _items([each.record for each in told])
    put(out / "items.csv", _csv(items))
    _plot(items, len(told), out / "items.svg")
    for line in filter(None, [*_whom_to_look_at(told), *_identical(told), *changed]):
        say(line)
    return rows


def _write_back(out, told):
    """Write the report of each student, and what brings it there to all who were graded."""
    for each in told:
        folder = out / "reports" / each.entry["id"]
        make_folder(folder)
        put(folder / "report.html", page_of(_parts(each)))
        put_json(folder / "results.json", _gradescope(each))
    graded = [each for each in told if not each.held]
    rows, entries = [each.row() for each in graded], [each.entry for each in graded]
    put(out / TABLE, _csv(emails_of(rows, entries)))
    return write_feedback(out, [(each.entry, _parts(each)) for each in graded])


def _identical(told):
    """Yield who has handed in the same file as others, of five such files."""
    same = {}
    for each in told:
        same.setdefault(each.entry.get("record"), []).append(each.entry["student"])
    same = [listed(names) for key, names in same.items() if key and len(names) > 1]
    yield from (f"The same file, to the byte: {names}" for names in same[:MOST_SAME])
    if len(same) > MOST_SAME:
        yield f"and {len(same) - MOST_SAME} more files that several have handed in"


def _without_void(record):
    """Return a record in which a test without points says nothing."""
    void = {"said": VOID, "mistake": ""}
    return record | {"results": [r if r["points"] else r | void for r in record["results"]]}


def _made(records, tasks):
    """Return who made each known mistake: {name: folders of students}."""
    made = {mistake.name: set() for task in tasks for mistake in task.mistakes}
    for folder, record in records.items():
        for result in record["results"]:
            made.get(result["mistake"], set()).add(folder)
    return made


class _Told:
    """What is told of one student: the grader's record, and what was corrected by hand."""

    def __init__(self, batch, entry, record, corrections, tasks):
        self.entry, self.record, self.most = entry, record, batch["points"]
        self.title, self.trusted, self.tasks = batch["assignment"], batch["trusted"], tasks
        self.given = corrections.get(entry["id"], {})
        self.groups = {function: [] for function in self.most}
        for result in record["results"]:
            self.groups[result["function"]].append(result)
        self.graded = {function: _earned(group) for function, group in self.groups.items()}
        self.hand = {f: c.points for f, c in self.given.items() if c.points is not None}
        self.points = {name: self.hand.get(name, own) for name, own in self.graded.items()}
        self.total = self.hand.get("", sum(self.points.values()))
        self.late = bool(entry.get("late"))
        self.any_late = any(each.get("late") for each in batch["handins"])
        self.held = bool(entry.get("held")) and not self.hand
        self.out_of = sum(self.most.values())

    def by_hand(self):
        """Return a sentence for each correction."""
        sentences = []
        for function, given in self.given.items():
            was = self.graded[function] if function else sum(self.graded.values())
            most = self.most[function] if function else self.out_of
            what = f" for {function}" if function else ""
            remark = f": {given.remark}" if given.remark else ""
            points = f": {given.points} of {most} points{what}, {was} by the grader"
            sentences.append(f"By hand{what if function not in self.hand else points}{remark}")
        return sentences

    def notes(self):
        """Return pairs of our words and the student's on the whole."""
        notes = [(sentence, "") for sentence in self.by_hand()]
        if self.record["problem"]:
            notes.append((self.record["problem"], ""))
        if self.entry["of"] > 1 and not self.held:
            which = self.entry.get("why", "this one")
            said = f"There were {self.entry['of']} hand-ins; {which} counts"
            notes.append((said, self.entry["file"]))
        if seconds := self.record.get("seconds"):
            notes.append((f"Each test had up to {seconds:g} seconds here", ""))
        if self.trusted:
            notes.append(("Run without a sandbox, as the instructor chose", ""))
        return notes

    def tables(self):
        """Return the results of each function; of what could not be read there are none."""
        return {} if self.record["problem"] else self.groups

    def reasons(self):
        """Return why points were lost, for `grades.csv`."""
        lost = any(result["earned"] < result["points"] for result in self.record["results"])
        if self.record["problem"] or not lost:
            return []
        remarks = [_joined(remark) for remark in self.record["remarks"]]
        more = [f"and {len(remarks) - TOO_MANY} more remarks"] * (len(remarks) > TOO_MANY)
        whys = [f"{name}: {_why(group, self.tasks[name])}" for name, group in self.groups.items()]
        whys = [why for why in whys if not why.endswith(": ")]
        return [*remarks[:TOO_MANY], *more, *whys]

    def row(self):
        """Return the line of `grades.csv`."""
        row = {name: self.entry[name] for name in ("student", "identifier") if name in self.entry}
        row |= {"points": self.total, "of": self.out_of, **self.points}
        row |= {"late": "late" * self.late} if self.any_late else {}
        if self.held:
            row |= dict.fromkeys(("points", *self.points), "")
        notes = [*map(_joined, self.notes()), *self.reasons()]
        return row | {"file": self.entry["file"], "notes": "; ".join(n.rstrip(".") for n in notes)}


def _earned(results):
    return points({"results": results})


def _joined(pair):
    ours, words = pair
    return f"{ours}: {quoted(words)}" if words else ours


def _lost(results):
    return [result for result in results if result["earned"] < result["points"]]


def _why(results, task):
    """Return what a function has lost points for: the known mistake, or what its tests say."""
    if mistake := _named(results, task):
        return mistake.says
    of, said = sum(r["points"] > 0 for r in results), [r["said"] for r in _lost(results)]
    kinds = Counter(min(filter(own.startswith, said), key=len) for own in said)
    found = []
    for kind, number in kinds.most_common(TOO_MANY):
        first = next(own for own in said if own.startswith(kind))  # it may say the place, too
        found.append(first if number == of else f"{first} (in {number} of {of} tests)")
    return ", ".join(found)


def _whom_to_look_at(told):
    """Yield sentences that name students whom no number can be wrong about, and who got none."""
    groups, seen = dict.fromkeys(KINDS), set()
    for kind, is_one in KINDS.items():
        found = [t for t in told if t.entry["id"] not in seen and is_one(t)]
        seen |= {t.entry["id"] for t in found}
        groups[kind] = [t.entry["student"] for t in found]
    yield f"{sum(not each.record['problem'] for each in told)} graded"
    yield from (f"{len(names)} {kind}: {listed(names)}" for kind, names in groups.items() if names)
    if seen:
        yield "The reasons are in the notes of grades.csv"


def _since_last(batch, told):
    """Yield who is gone, and who handed in again after a correction; note it for the next run."""
    before, corrected = batch["reported"], {}
    for each in told:
        entry, record = each.entry, each.entry.get("record", "")
        _, seen = before.get(entry["mark"], ("", record))
        own = corrected[entry["mark"]] = _made_for(each, batch["corrected"], seen)
        if any(own[function][-1] != record for function in each.hand):
            yield (
                f"{entry['student']} handed in again after your correction, which still counts: "
                f"{each.total} points, {sum(each.graded.values())} by the grader. Take the line "
                f"out of {CORRECTIONS}, or change its remark to keep it"
            )
    now = {e.entry["mark"]: [e.entry["student"], e.entry.get("record", "")] for e in told}
    for student in [student for mark, (student, _) in before.items() if mark not in now]:
        yield f"{student} was here before and is not in the class any more"
    batch |= {"reported": now, "corrected": {mark: own for mark, own in corrected.items() if own}}


def _made_for(told, corrected, seen):
    """Return each correction of a student, and the record that was reported when it was written."""
    old, own = corrected.get(told.entry["mark"], {}), {}
    for function, given in told.given.items():
        now = [given.points, given.remark]
        *was, record = old.get(function, [None, None, seen])
        own[function] = [*now, record if was == now else seen]
    return own


def _nothing_because(beginning):
    """Return whether somebody has no point and a reason that begins so."""

    def is_one(told):
        said = [result["said"] for result in told.record["results"]]
        return not any(told.graded.values()) and any(s.startswith(beginning) for s in said)

    return is_one


ABSENT, UNREADABLE = "without a notebook", "that could not be read or run"
KINDS = {
    "with points by hand": lambda told: told.hand,
    "held with a question": lambda told: told.held,
    ABSENT: lambda told: not told.entry["file"],
    UNREADABLE: lambda told: told.record["problem"],
    "with 0 points because their function was not found": _nothing_because("there is no function"),
    "with 0 points because their function returns None": _nothing_because(SAID["nothing"]),
    "with 0 points because their function raised an error": _nothing_because("it raised"),
}


def _named(results, task):
    """Return the known mistake that explains every test that was lost; None: none does."""
    made = {result["mistake"] for result in _lost(results)}
    return next((mistake for mistake in task.mistakes if mistake.name in made), None)


def _diagnosis(results, mistake):
    said = f"{mistake.says[:1].upper()}{mistake.says[1:]}. {mistake.mend}"
    kept = any(result["kept"] for result in results)
    return said + f" This mistake alone leaves {_earned(results)} points." * kept


def _parts(told):
    """Return a report as `rendering` takes it."""
    entry, record = told.entry, told.record
    earned = "not graded yet" if told.held else f"{told.total} of {told.out_of} points"
    parts = [("title", f"{told.title}: {earned}")]
    parts.append(("code", ("Student", entry["student"])))
    parts.append(("code", ("File", entry["file"] or "none")))
    parts += [("code", (o, words)) if words else ("note", o) for o, words in told.notes()]
    parts += [("code", tuple(remark)) for remark in record["remarks"]]
    for function, results in told.tables().items():
        hand = " (by hand)" if function in told.hand else ""
        points, most = told.points[function], told.most[function]
        parts.append(("heading", f"{function}: {points} of {most}{hand}"))
        if mistake := _named(results, told.tasks[function]):
            parts.append(("text", _diagnosis(results, mistake)))
        parts.append(("table", [_line(result) for result in results]))
    return parts


def _line(result):
    sign = MARK[result["earned"] == result["points"]] if result["points"] else "–"
    points = f"{result['earned']} of {result['points']}"
    return f"{sign} {result['label']}", points, result["said"]


def _gradescope(told):
    tests = []
    for function, results in told.tables().items():
        mistake = _named(results, told.tasks[function])
        text = f"\n{_diagnosis(results, mistake)}" if mistake else ""
        for r in filter(itemgetter("points"), results):
            right = r["earned"] == r["points"]
            tests.append(
                {
                    "name": f"{function}: {r['label']}",
                    "score": r["earned"],
                    "max_score": r["points"],
                    "status": "passed" if right else "failed",
                    "output": r["said"] + text * bool(r["mistake"]),
                }
            )
    notes = "\n".join(map(_joined, [*told.notes(), *told.record["remarks"]]))
    whole = {"score": told.total, "output": notes, "output_format": "text", "tests": tests}
    return whole | {"visibility": "after_published"}


def _write_grades(batch, out, rows, say):
    """Write `grades.csv`; one that has been changed since the grader wrote it is kept beside it."""
    path, text = out / "grades.csv", _csv(rows)
    if path.exists():
        old = hashlib.sha256(path.read_bytes()).hexdigest()
        if old not in (batch["grades"], _sha256(text)):
            kept = out / f"grades-by-hand-{old[:8]}.csv"
            path.replace(kept)
            kept.chmod(FILE_MODE)
            say(
                f"{path} was changed by hand: it is {kept.name} now, and counts no longer. "
                f"Points and remarks by hand belong in {out / CORRECTIONS}, which every run uses."
            )
    put(path, text)
    batch["grades"] = _sha256(text)
    put_json(out / "batch.json", batch)


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _items(records):
    """Return a row for each test that counts: how many solved it, which mistakes were made."""
    found = {}
    for record in records:
        for r in filter(itemgetter("points"), record["results"]):
            found.setdefault((r["function"], r["label"]), []).append(r)
    rows = []
    for (function, label), results in found.items():
        made = Counter(r["mistake"] for r in results if r["mistake"]).most_common()
        row = {"function": function, "test": label, "points": results[0]["points"]}
        row |= {"solved": sum(r["earned"] == r["points"] for r in results), "of": len(records)}
        rows.append(row | {"mistakes": "; ".join(f"{name} {n}" for name, n in made)})
    return rows


def _csv(rows):
    """Return rows as a spreadsheet reads them, in which no text begins a formula."""
    file = io.StringIO("\ufeff", newline="")
    file.seek(0, io.SEEK_END)
    writer = csv.DictWriter(file, max(rows, key=len, default=[]), restval="")
    writer.writeheader()
    writer.writerows({name: in_table(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def _plot(items, of, path):
    """Draw how many students solved each test."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = [f"{item['function']}: {item['test']}" for item in items]
    solved = [item["solved"] for item in items]
    figure = Figure(figsize=(8, 1 + 0.35 * max(len(items), 1)), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(names, solved, color="#3b6ea5")
    axes.bar_label(bars, [f" {n} of {of}" for n in solved])
    axes.set(xlim=(0, 1.15 * max(of, 1)), xlabel="students who solved the test")
    axes.invert_yaxis()
    drawn = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "items"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    put(path, drawn.getvalue())

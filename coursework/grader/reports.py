"""What an instructor and a student read of a batch."""

import csv
import html
import json
import re
from collections import Counter
from pathlib import Path

from coursework.grader.assignment import read_assignment

MARK = {True: "✓", False: "✗"}
STYLE = """body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; font: 1rem/1.5 sans-serif }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #8888;
padding: .3rem .6rem; text-align: left } td:nth-child(2), th:nth-child(2) { white-space: nowrap }
:root { color-scheme: light dark } code { overflow-wrap: anywhere }"""


def write_reports(batch, out):
    """Write what a batch comes to.

    `grades.csv`, `items.csv` with `items.svg`, and in `reports/STUDENT/` a `report.md`, the same as
    `report.html`, and `results.json` for Gradescope.

    Parameters
    ----------
    batch : as `grade_batch` returns it
    out : folder of the results, with `records/`

    Returns
    -------
    rows : list of dict, the lines of `grades.csv`
    """
    out = Path(out)
    tasks = {task.function: task for task in read_assignment(batch["assignment"]).tasks}
    rows, records = [], []
    for entry in batch["handins"]:
        record = _record(out, entry)
        notes = _notes(batch, entry, record)
        folder = out / "reports" / entry["id"]
        _write_report(folder, batch["assignment"], (entry, record, notes), tasks)
        rows.append(_row(entry, record, notes, tasks))
        records.append(record)
    _write_csv(out / "grades.csv", rows)
    items = _items(records)
    _write_csv(out / "items.csv", items)
    _plot(items, len(records), out / "items.svg")
    return rows


def _write_report(folder, title, told, tasks):
    """Write the three files of one student; `told` is the entry, the record and the notes."""
    entry, record, notes = told
    folder.mkdir(parents=True, exist_ok=True)
    parts = _parts(title, entry, record, notes, tasks)
    (folder / "report.md").write_text(_markdown(parts), encoding="utf-8")
    (folder / "report.html").write_text(_html(parts), encoding="utf-8")
    (folder / "results.json").write_text(_gradescope(record, notes, tasks), encoding="utf-8")


def _record(out, entry):
    if "record" not in entry:
        return {"problem": entry["problem"], "remarks": [], "results": []}
    path = out / "records" / f"{entry['record']}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _notes(batch, entry, record):
    notes = [record["problem"]] if record["problem"] else []
    if entry["of"] > 1:
        notes.append(f"There were {entry['of']} hand-ins; the last one, {entry['file']}, counts.")
    if batch["trusted"]:
        notes.append("Run in a limited process without a sandbox, as the instructor chose.")
    return notes


def _total(results):
    return sum(r["earned"] for r in results), sum(r["points"] for r in results)


def _by_function(results):
    groups = {}
    for result in results:
        groups.setdefault(result["function"], []).append(result)
    return groups


def _named(results, task):
    """Return the known mistakes of a task's results, the most frequent first."""
    found = Counter(r["mistake"] for r in results if r["mistake"])
    return [m for name, _ in found.most_common() for m in task.mistakes if m.name == name]


def _parts(title, entry, record, notes, tasks):
    """Return a report as (kind, content) pairs, for Markdown and HTML alike."""
    earned, points = _total(record["results"])
    total = f"{earned} of {points} points" if points else "0 points"
    parts = [("title", f"{title}: {total}"), ("code", ("Student", entry["student"]))]
    parts += [("code", ("File", entry["file"] or "none"))]
    parts += [("note", note) for note in notes]
    parts += [("code", tuple(remark)) for remark in record["remarks"]]
    for function, results in _by_function(record["results"]).items():
        earned, points = _total(results)
        parts.append(("heading", f"{function}: {earned} of {points}"))
        for mistake in _named(results, tasks[function]):
            says = f"{mistake.says[:1].upper()}{mistake.says[1:]}."
            parts.append(("text", f"{says} {mistake.mend}"))
        rows = [
            (f"{MARK[r['earned'] == r['points']]} {r['label']}", r["said"], _of(r)) for r in results
        ]
        parts.append(("table", rows))
    return parts


def _of(result):
    return f"{result['earned']} of {result['points']}"


def _markdown(parts):
    lines = []
    for kind, content in parts:
        if kind == "table":
            lines += ["| test | points | what happened |", "|---|---|---|"]
            lines += [f"| {a} | {c} | {b} |" for a, b, c in content] + [""]
        elif kind == "code":
            label, text = content
            lines += [label + (f": `{text.replace('`', chr(39))}`" if text else ""), ""]
        else:
            sign = {"title": "# ", "heading": "## "}.get(kind, "")
            lines += [sign + (_cell(content) if kind == "note" else content), ""]
    return "\n".join(lines)


def _cell(text):
    """Keep Markdown and HTML of a student's own out of a line."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))


def _html(parts):
    pieces = []
    for kind, content in parts:
        if kind == "table":
            rows = [(a, c, b) for a, b, c in content]
            body = "".join(
                f"<tr>{''.join(f'<td>{_code(x)}</td>' for x in row)}</tr>" for row in rows
            )
            head = "<tr><th>test</th><th>points</th><th>what happened</th></tr>"
            pieces.append(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>")
        elif kind == "code":
            label, text = content
            shown = f": <code>{html.escape(text)}</code>" if text else ""
            pieces.append(f"<p>{label}{shown}</p>")
        else:
            tag = {"title": "h1", "heading": "h2"}.get(kind, "p")
            pieces.append(f"<{tag}>{_code(content)}</{tag}>")
    title = html.escape(parts[0][1])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{''.join(pieces)}</body></html>\n"
    )


def _code(text):
    """Escape a line, and set what stands between two backticks as code."""
    pieces = html.escape(text).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def _gradescope(record, notes, tasks):
    tests = []
    for function, results in _by_function(record["results"]).items():
        for r in results:
            named = [m for m in tasks[function].mistakes if m.name == r["mistake"]]
            output = [r["said"], *(f"{m.says}. {m.mend}" for m in named)]
            right = r["earned"] == r["points"]
            tests.append(
                {
                    "name": f"{function}: {r['label']}",
                    "score": r["earned"],
                    "max_score": r["points"],
                    "status": "passed" if right else "failed",
                    "output": "\n".join(output),
                }
            )
    whole = {"score": _total(record["results"])[0], "output": "\n".join(notes), "tests": tests}
    return json.dumps(whole | {"visibility": "after_published"}, indent=1, ensure_ascii=False)


def _row(entry, record, notes, tasks):
    earned, points = _total(record["results"])
    row = {"student": entry["student"], "points": earned, "of": points or ""}
    groups = _by_function(record["results"])
    row |= {function: _total(groups.get(function, []))[0] for function in tasks}
    return row | {"file": entry["file"], "notes": " ".join(notes)}


def _items(records):
    """Return a row for each test: how many solved it, and which mistakes were made."""
    found = {}
    for record in records:
        for r in record["results"]:
            key = (r["function"], r["label"])
            item = found.setdefault(
                key, {"points": r["points"], "solved": 0, "mistakes": Counter()}
            )
            item["solved"] += r["earned"] == r["points"]
            if r["mistake"]:
                item["mistakes"][r["mistake"]] += 1
    return [
        {
            "function": function,
            "test": label,
            "points": item["points"],
            "solved": item["solved"],
            "of": len(records),
            "mistakes": "; ".join(f"{name} {n}" for name, n in item["mistakes"].most_common()),
        }
        for (function, label), item in found.items()
    ]


def _write_csv(path, rows):
    """Write rows for a spreadsheet, which would take a text that begins with = for a formula."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        names = list(rows[0]) if rows else []
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)


def _inert(value):
    danger = isinstance(value, str) and re.search(r"(^|[;,\t])\s*[=+@-]", value)
    return f"'{value}" if danger else value


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
    with mpl.rc_context({"svg.hashsalt": "items"}):
        figure.savefig(path, metadata={"Date": None})

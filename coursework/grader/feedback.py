"""A report as a student gets it, and what brings it there.

A report is a list of (kind, content) pairs. Kinds are "title", "heading", "text" and "table", which
are ours; "note", an instructor's or ours; "code", a pair of our words and a student's.
"""

import html
import io
import json
import zipfile

from coursework.grader.inert import listed, shown
from coursework.grader.records import put

NAME = "feedback.zip"
STYLE = """body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; font: 1rem/1.5 sans-serif }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #8888;
padding: .3rem .6rem; text-align: left } td:nth-child(2), th:nth-child(2) { white-space: nowrap }
:root { color-scheme: light dark } code { overflow-wrap: anywhere }"""
SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "$\\`*_[]~:"}  # of mark-up, formulas and links


def page_of(parts):
    """Return a report as a page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(parts[0][1])}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{_body(parts)}</body></html>\n"
    )


def notebook_of(parts):
    """Return a report as a notebook of one cell of text, which is HTML on one line."""
    text = _body(parts).translate(SIGNS)
    cell = {"cell_type": "markdown", "id": "report", "metadata": {}, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _body(parts):
    return "".join(_element(*part) for part in parts)


def _element(kind, content):
    if kind == "table":
        rows = ("".join(f"<td>{_code(cell)}</td>" for cell in row) for row in content)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        head = "<tr><th>test</th><th>points</th><th>what happened</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    if kind == "code":
        label, text = content
        words = f": <code>{html.escape(shown(text))}</code>" if text else ""
        return f"<p>{html.escape(label)}{words}</p>"
    tag = {"title": "h1", "heading": "h2"}.get(kind, "p")
    return f"<{tag}>{html.escape(shown(content)) if kind == 'note' else _code(content)}</{tag}>"


def _code(text):
    """Escape a line of ours, and set what stands between two backticks as code."""
    pieces = html.escape(text).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def write_feedback(out, reports):
    """Write the reports into `feedback.zip`, under the names that the system of the class knows.

    Return who has no place in it, in a sentence, "" for nobody.
    Where no system gave the hand-ins out, each student has a folder with the report.

    `out` : folder of the results
    `reports` : list of (entry, parts of the report)
    """
    known = any(entry.get("back") for entry, _ in reports)
    left = [entry["student"] for entry, _ in reports if known and not entry.get("back")]
    packed = {}
    for entry, parts in reports:
        name = entry.get("back", "" if known else f"{entry['id']}/report.html")
        kind = name.lower().rpartition(".")[2]  # Canvas shows it as what was handed in
        if name:
            packed[name] = notebook_of(parts) if kind == "ipynb" else page_of(parts)
        if kind == "zip":
            packed[name] = _zip_of({"report.html": packed[name]})
    put(out / NAME, _zip_of(packed))
    said = f"{NAME} has no report for {len(left)}, whose hand-in has no name in it"
    return f"{said}: {listed(left)}. Their reports are in reports/" if left else ""


def _zip_of(files):
    """Return a zip file of some files, the same bytes whenever it is written."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()

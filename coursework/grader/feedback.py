"""A report as a student gets it, and what brings it there.

What is ours may set code between two backticks; what is a student's is code, whatever it holds.
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


def page_of(title, body):
    """Return a report as a page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def notebook_of(body):
    """Return a report as a notebook of one cell of text, which is HTML on one line."""
    text = body.translate(SIGNS)
    cell = {"cell_type": "markdown", "id": "report", "metadata": {}, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def told(ours, words=""):
    """Return a paragraph of our words, or an instructor's, and of a student's."""
    more = f": <code>{html.escape(shown(words))}</code>" if words else ""
    return f"<p>{html.escape(shown(ours))}{more}</p>"


def code(text):
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
    `reports` : list of (entry, title of the report, its HTML)
    """
    known = any(entry.get("back") for entry, *_ in reports)
    left = [entry["student"] for entry, *_ in reports if known and not entry.get("back")]
    packed = {}
    for entry, title, body in reports:
        name = entry.get("back", "" if known else f"{entry['id']}/report.html")
        kind = name.lower().rpartition(".")[2]  # Canvas shows it as what was handed in
        if name:
            packed[name] = notebook_of(body) if kind == "ipynb" else page_of(title, body)
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

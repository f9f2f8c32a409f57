"""What goes back to students: a zip file for the course's system, and a table for e-mails."""

import io
import zipfile

from coursework.grader.inert import listed
from coursework.grader.records import put
from coursework.grader.rendering import notebook_of, page_of

NAME, TABLE = "feedback.zip", "email.csv"


def write_feedback(out, reports):
    """Write the reports into `feedback.zip`, under the names that the system of the class knows.

    Where no system gave the hand-ins out, each student has a folder with the report.

    Parameters
    ----------
    out : folder of the results
    reports : list of (entry, parts of the report)

    Returns
    -------
    sentence : who has no place in it, "" for nobody
    """
    known = any(entry.get("back") for entry, _ in reports)
    left = [entry["student"] for entry, _ in reports if known and not entry.get("back")]
    packed = {}
    for entry, parts in reports:
        name = entry.get("back", "" if known else f"{entry['id']}/report.html")
        packed |= {name: _content(name, parts)} if name else {}
    put(out / NAME, _zip_of(packed))
    said = f"{NAME} has no report for {len(left)}, whose hand-in has no name in it"
    return f"{said}: {listed(left)}. Their reports are named in {TABLE}" if left else ""


def _content(name, parts):
    """Return a report as what its name ends in: Canvas shows it as what was handed in."""
    if name.lower().endswith(".zip"):
        return _zip_of({"report.html": page_of(parts)})
    return notebook_of(parts) if name.lower().endswith(".ipynb") else page_of(parts)


def _zip_of(files):
    """Return a zip file of some files, the same bytes whenever it is written."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def emails_of(rows, entries):
    """Return the lines of `email.csv`: whom to send which report, and the points in it."""
    return [
        {
            "student": entry["student"],
            "address": entry.get("address", ""),
            "points": row["points"],
            "of": row["of"],
            "report": f"reports/{entry['id']}/report.html",
        }
        for row, entry in zip(rows, entries, strict=True)
    ]

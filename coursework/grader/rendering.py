"""A report as HTML: (kind, content) pairs, in which a student's words are words.

Kinds are "title", "heading", "text" and "table", which are ours; "note", an instructor's or ours;
"code", a pair of our words and a student's.
"""

import html
import json

from coursework.grader.inert import shown

STYLE = """body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; font: 1rem/1.5 sans-serif }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid #8888;
padding: .3rem .6rem; text-align: left } td:nth-child(2), th:nth-child(2) { white-space: nowrap }
:root { color-scheme: light dark } code { overflow-wrap: anywhere }"""
SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "$\\`*_[]~:"}  # of mark-up, formulas and links


def page_of(parts):
    """Return a report as a page."""
    title, body = html.escape(parts[0][1]), "".join(_element(*part) for part in parts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def notebook_of(parts):
    """Return a report as a notebook of one cell of text, which is HTML on one line."""
    text = "".join(_element(*part) for part in parts).translate(SIGNS)
    cell = {"cell_type": "markdown", "id": "report", "metadata": {}, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


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

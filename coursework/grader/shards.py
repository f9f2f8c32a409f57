"""A class that is graded in parts: who belongs to which, and how the parts become one again."""

import hashlib
from pathlib import Path

from coursework.grader.corrections import read_corrections
from coursework.grader.entries import (
    CORRECTED,
    KEPT,
    AnotherBatch,
    in_order,
    kept_of,
    record_of,
    require_same_batch,
)
from coursework.grader.records import make_folder, put_json, read_batch

OWN = ("shard", "finished", "handins", *KEPT)  # of a part, besides what it shares with others
WHOLE = {"shard": [1, 1], "merged": True}


def in_shard(student, number, of):
    """Whether a student belongs to a shard; it depends on the name alone, not on the class."""
    digest = hashlib.sha256(student.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8]) % of == number - 1


def merge(parts, out):
    """Join the results of all shards of a class.

    Raises
    ------
    AnotherBatch : they are not of one class, assignment, seed and version, or not all and finished
    CorrectionsError, Damaged : nothing was written
    """
    batches, out = [_finished(folder) for folder in parts], Path(out)
    head = {name: value for name, value in batches[0].items() if name not in OWN}
    for folder in parts:
        require_same_batch(folder, head)
    old = require_same_batch(out, head | WHOLE, CORRECTED)
    _require_all(batches)
    entries = in_order([entry for batch in batches for entry in batch["handins"]])
    read_corrections([out, *parts], entries, list(head["points"]))
    records = {}
    for folder, batch in zip(parts, batches, strict=True):
        found = [entry for entry in batch["handins"] if "record" in entry]
        records |= {entry["record"]: record_of(folder, entry) for entry in found}
    make_folder(out)
    make_folder(out / "records")
    for key, record in records.items():
        put_json(out / "records" / f"{key}.json", record)
    batch = head | WHOLE | kept_of(old) | {"finished": True, "handins": entries}
    put_json(out / "batch.json", batch)
    return batch


def _finished(folder):
    batch = read_batch(folder)
    if not batch:
        raise AnotherBatch(f"{folder} holds no results: there is no batch.json")
    if not batch["finished"]:
        raise AnotherBatch(f"{folder} was stopped: repeat its command, then merge")
    return batch


def _require_all(batches):
    """Turn down a class of which a shard is missing or comes twice."""
    given = sorted(batch["shard"] for batch in batches)
    of = given[0][1]
    if given != [[number, of] for number in range(1, of + 1)]:
        said = ", ".join(f"{number}/{all_}" for number, all_ in given)
        raise AnotherBatch(f"merge takes each shard of a class once, and was given {said}")

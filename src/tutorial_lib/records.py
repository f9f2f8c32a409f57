"""The one reader of `data/` and of the rooms' banks: measurements, models, facts, questions.

    from tutorial_lib.records import record
    record("numpy_attention")["sizes"]

Every file of `data/` is compared with its sha256 in `data/sha256.json`, which
`experiments.measuring` writes together with the files. An installation from the repository holds
all of them. The copy in the page holds none: there the environment variable TUTORIAL_LIB_DATA,
which `run-worker.js` sets, is the address of the site's copy of `data/`, with a slash at its end,
and a file is fetched from it when a chapter reads it, the bank of a room too, which lies there
below `banks/`. Anyone else may set it too.
"""

import hashlib
import json
import os
import re
import sys
from importlib import resources
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import numpy as np

DATA = Path(__file__).parent / "data"
MANIFEST = DATA / "sha256.json"  # "results/gradients.json" -> sha256
ADDRESS = "TUTORIAL_LIB_DATA"
REPOSITORY = "https://github.com/attention-head-by-head/attention-head-by-head"
SITE = "https://attention-head-by-head.github.io/attention-head-by-head/"
RELEASE = "fd198f08548b8d068d4500d63fd805d292fe3757"  # as in the set-up cells: `make release`
INSTALL_COMMAND = f"pip install git+{REPOSITORY}@{RELEASE}"
SEAL_COMMAND = "python -m experiments.measuring"  # of facts, and of files that are new
TIMEOUT_S = 60  # seconds without an answer

HEAD_KEYS = ("script", "seed", "machine", "versions", "measured")  # of a record, in this order
FOLDERS = {"results": ".json", "checkpoints": ".npz", "facts": ".json"}
CHECKPOINT_KB = {
    "copying": 160,
    "known_text": 105,
    "known_block": 235,
    "look_less": 105,
}  # what each may weigh; 1000 together


def record(name):
    """Return what a script of experiments/ measured: a dict that begins with HEAD_KEYS.

    `seed` is a number, a list where a script draws from several, or None where nothing is drawn.

    Raises
    ------
    ValueError : no record of this name, a file that is not the one committed, or one without a head
    FileNotFoundError : neither installed nor to be fetched
    """
    record_dict = json.loads(_verified_bytes("results", name))
    require_record_metadata(name, record_dict)
    return record_dict


def checkpoint(name):
    """Return the arrays of a trained model, in their order, in float64.

    Raises
    ------
    ValueError : no checkpoint of this name, a file that is not the one committed, is too large or
        holds no arrays of numbers
    FileNotFoundError : neither installed nor to be fetched
    """
    npz_bytes = _verified_bytes("checkpoints", name)
    require_checkpoint_budget(name, npz_bytes)
    try:
        with np.load(BytesIO(npz_bytes)) as archive:
            return [array.astype(float) for array in archive.values()]
    except Exception as error:  # a flipped bit may raise nearly any of np.load
        raise ValueError(
            f"checkpoint {name!r} holds no arrays of numbers, or not whole: {error}. Expected what "
            f"np.savez writes. Let its script in experiments/ write it again."
        ) from error


def facts(name):
    """Return what others published, each entry with its source and its licence.

    Raises
    ------
    ValueError : no facts of this name, or a file that is not the one committed
    FileNotFoundError : neither installed nor to be fetched
    """
    return json.loads(_verified_bytes("facts", name))


def page_of_room(room):
    """Return the page that a room belongs to: "05_concatenation" of "ch05_concatenation".

    Python can import the name of a room. A review's room has the name of its page.
    """
    return re.sub(r"^ch(?=\d)", "", room)


def question_bank(page):
    """Read the questions of a page, such as "04_multi_head_attention" or "review_part_1".

    Raises
    ------
    ValueError : no room of that name, or a room without a bank
    """
    folders = resources.files("tutorial_lib").joinpath("practice").iterdir()
    rooms = {page_of_room(f.name): f for f in folders if f.joinpath("__init__.py").is_file()}
    if page not in rooms:
        raise ValueError(
            f"There is no chapter {page!r} with questions. There are: {sorted(rooms)}."
        )
    text = _question_bank_bytes(rooms[page], page).decode("utf-8")
    return json.loads(re.sub(r"<!--.*?-->", "", text))  # which tell tests where a number comes from


def require_record_metadata(name, record_dict):
    """Require that a record begins with HEAD_KEYS."""
    leading_keys = tuple(record_dict)[: len(HEAD_KEYS)]
    if leading_keys != HEAD_KEYS:
        raise ValueError(
            f"record {name!r} begins with {list(leading_keys)}; expected its head, "
            f"{list(HEAD_KEYS)}. Let its script begin it with "
            f"experiments.measuring.new_record(__file__, seed=SEED)."
        )


def require_checkpoint_budget(name, npz_bytes):
    """Require that a checkpoint has a budget in CHECKPOINT_KB and keeps to it."""
    size_kb, budget_kb = len(npz_bytes) / 1000, CHECKPOINT_KB.get(name, 0)
    if size_kb > budget_kb:
        raise ValueError(
            f"checkpoint {name!r} has {size_kb:.1f} kB; expected at most {budget_kb} kB, which "
            f"records.CHECKPOINT_KB allows. Keep fewer or shorter numbers, or allow more there."
        )


def _question_bank_bytes(room, page):
    """Return the bytes of a bank, which the page's copy of the library fetches as it does data."""
    bank_file = room.joinpath("bank.json")
    if bank_file.is_file():
        return bank_file.read_bytes()
    if f"banks/{page}.json" in json.loads(MANIFEST.read_bytes()):
        return _verified_bytes("banks", page)
    raise ValueError(
        f"The room practice/{room.name} has no bank.json: write the predictions, the quiz and the "
        f"Parsons problem of {page} there, with the keys of another room's bank."
    )


def _verified_bytes(folder, name):
    """Return the bytes of a file, which are those that were committed."""
    digests = json.loads(MANIFEST.read_bytes())
    path = f"{folder}/{name}{FOLDERS.get(folder, '.json')}"
    if path not in digests:
        known_names = [Path(entry).stem for entry in digests if entry.startswith(f"{folder}/")]
        raise ValueError(
            f"There is no {name!r} in data/{folder}; expected one of {known_names}. "
            f"After adding a file run: {SEAL_COMMAND}."
        )
    file_bytes = _local_or_fetched_bytes(path)
    digest = hashlib.sha256(file_bytes).hexdigest()
    if digest != digests[path]:
        raise ValueError(
            f"data/{path} has the sha256 {digest}; expected {digests[path]}. Load the page again, "
            f"or install anew: {INSTALL_COMMAND}. After a change of facts by hand run: "
            f"{SEAL_COMMAND}; a result or a checkpoint changes where its script in experiments/ "
            f"writes it."
        )
    return file_bytes


def _local_or_fetched_bytes(path):
    """Return the bytes of the installed file, or else of the one at the address."""
    if (DATA / path).is_file():
        return (DATA / path).read_bytes()
    if ADDRESS not in os.environ:
        raise FileNotFoundError(
            f"data/{path} is not installed, and {ADDRESS} names no address to fetch it from. "
            f"Install the library with its data: {INSTALL_COMMAND}."
        )
    address = os.environ[ADDRESS] + path
    try:
        return _download_in_browser(address) if sys.platform == "emscripten" else _download(address)
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"{address} did not load: {error}. Try again, or install the library with its data: "
            f"{INSTALL_COMMAND}."
        ) from None


def _download(address):
    with urlopen(address, timeout=TIMEOUT_S) as response:
        return response.read()


def _download_in_browser(address):
    """Return the same in Pyodide, whose worker may wait for an answer as urlopen does."""
    from js import XMLHttpRequest
    from pyodide.ffi import JsException

    request = XMLHttpRequest.new()
    request.open("GET", address, False)
    request.responseType = "arraybuffer"
    try:
        request.send()
    except JsException as error:
        raise OSError(error.message) from None
    if request.status != 200:
        raise OSError(f"the answer is {request.status}")
    return request.response.to_bytes()

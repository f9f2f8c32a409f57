"""The reader of data/: what it gives, and what it says of a file that is not as it should be."""

import hashlib
import itertools
import json
import re
import shutil
import socket
import sys
from io import BytesIO
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from tests.library.test_errors import refuse
from tutorial_lib import records
from tutorial_lib.records import CHECKPOINT_KB, DATA, HEAD_KEYS, MANIFEST, checkpoint, facts, record

INSTALL, SEAL = records.INSTALL_COMMAND, records.SEAL_COMMAND
READERS = {"results": record, "checkpoints": checkpoint, "facts": facts}
DIGESTS = json.loads(MANIFEST.read_text(encoding="utf-8"))
NAMES = [re.fullmatch(r"(\w+)/(\w+)\.\w+", path).groups() for path in DIGESTS]


@pytest.fixture
def empty_data(tmp_path, monkeypatch):
    """An installation without a file of data/, as in a page."""
    monkeypatch.setattr(records, "DATA", tmp_path)
    monkeypatch.delenv(records.ADDRESS, raising=False)
    return tmp_path


@pytest.fixture
def plant(empty_data, monkeypatch):
    """Put a file into the installation, and its sha256 into the manifest."""

    def write_file(path, content):
        (empty_data / path).parent.mkdir()
        (empty_data / path).write_bytes(content)
        monkeypatch.setattr(records, "MANIFEST", empty_data / "sha256.json")
        records.MANIFEST.write_text(json.dumps({path: sha256(content)}), encoding="utf-8")

    return write_file


def sha256(content):
    """The digest that the manifest has of a file."""
    return hashlib.sha256(content).hexdigest()


def test_every_file_has_its_sha256_and_every_sha256_its_file():
    files = [path for folder in records.FOLDERS for path in (DATA / folder).iterdir()]
    digests = {path.relative_to(DATA).as_posix(): sha256(path.read_bytes()) for path in files}
    assert digests == DIGESTS, f"after a change of facts run: {SEAL}"


def test_a_checkpoint_is_arrays_in_float64_in_the_order_in_which_they_were_saved():
    arrays = checkpoint("copying")
    with np.load(DATA / "checkpoints" / "copying.npz") as stored:
        assert list(stored) == sorted(stored)
        assert [array.shape for array in arrays] == [stored[name].shape for name in stored]
        assert all((a == stored[n]).all() for a, n in zip(arrays, stored, strict=True))
    assert {array.dtype for array in arrays} == {np.dtype(float)}


@pytest.mark.parametrize("folder", READERS)
def test_the_error_of_an_unknown_name_lists_the_known_ones(folder):
    known_names = [name for kind, name in NAMES if kind == folder]
    sentence = f"ValueError: There is no 'copyng' … expected one of {known_names} … {SEAL}"
    refuse(sentence, lambda: READERS[folder]("copyng"))


@pytest.mark.parametrize(("folder", "name"), NAMES)
def test_a_file_is_read_or_fetched_or_the_error_says_how_to_install_it(monkeypatch, folder, name):
    READERS[folder](name).clear()  # what is read may be changed, and read again
    content = READERS[folder](name)
    assert content
    monkeypatch.setattr(records, "DATA", DATA / "nothing")
    monkeypatch.setenv(records.ADDRESS, DATA.as_uri() + "/")
    np.testing.assert_equal(READERS[folder](name), content)
    monkeypatch.delenv(records.ADDRESS)
    sentence = f"data/{folder}/{name} … is not installed … {records.ADDRESS} … {INSTALL}"
    refuse(f"FileNotFoundError: {sentence}", lambda: READERS[folder](name))


@pytest.fixture
def closed_port():
    """A port of this machine that is bound, so that nobody else listens there; nor does this."""
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        yield bound_socket.getsockname()[1]


@pytest.mark.parametrize("address", ["here", "", "http://127.0.0.1:{port}/", "{folder}/nothing/"])
def test_the_error_of_an_address_that_gives_nothing_says_what_to_do(
    empty_data, monkeypatch, closed_port, address
):
    address = address.format(port=closed_port, folder=empty_data.as_uri())
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv(records.ADDRESS, address)
    sentence = f"{address}results/gradients.json did not load: … {INSTALL}"
    refuse(f"FileNotFoundError: {sentence}", lambda: record("gradients"))


@pytest.mark.parametrize("is_fetched", [False, True])
def test_another_file_is_refused_with_both_sha256_and_what_to_do(plant, monkeypatch, is_fetched):
    plant("results/a.json", b"{}")
    (records.DATA / "results" / "a.json").write_bytes(b"[]")
    if is_fetched:
        shutil.move(records.DATA / "results", records.DATA / "site" / "results")
        monkeypatch.setenv(records.ADDRESS, (records.DATA / "site").as_uri() + "/")
    digest_words = f"has the sha256 {sha256(b'[]')}; expected {sha256(b'{}')}"
    remedy = f"Load the page again … {INSTALL} … {SEAL}"
    refuse(f"ValueError: … {digest_words} … {remedy}", lambda: record("a"))


@pytest.mark.parametrize(
    "head", [{}, dict.fromkeys(HEAD_KEYS[:-1]), dict.fromkeys(HEAD_KEYS[::-1])]
)
def test_a_record_without_its_head_is_refused(plant, head):
    plant("results/a.json", json.dumps(head | {"times": 1}).encode())
    head_words = f"expected its head, {list(HEAD_KEYS)} … new_record(__file__, seed=SEED)"
    refuse(f"ValueError: record 'a' begins with … {head_words}", lambda: record("a"))


@pytest.mark.parametrize(("name", "n_bytes"), [("copying", 160_001), ("unknown", 1)])
def test_a_checkpoint_larger_than_its_budget_is_refused(plant, name, n_bytes):
    plant(f"checkpoints/{name}.npz", b"0" * n_bytes)
    size_limit = f"expected at most {CHECKPOINT_KB.get(name, 0)} kB"
    refuse(f"ValueError: … {size_limit} … records.CHECKPOINT_KB", lambda: checkpoint(name))


NPZ = (DATA / "checkpoints" / "known_text.npz").read_bytes()


def npy_bytes(array):
    """What np.save writes: an array alone, not a list of them."""
    np.save(file := BytesIO(), array)
    return file.getvalue()


CUT, ZEROS = len(NPZ) // 2, bytes(99)
BAD_FILES = [NPZ[:CUT], NPZ[:-30], b"", b"no zip", NPZ[:CUT] + ZEROS + NPZ[CUT + 99 :]]


@pytest.mark.parametrize("content", [*BAD_FILES, npy_bytes(np.eye(3)), npy_bytes(np.array(["a"]))])
def test_a_damaged_checkpoint_is_refused_by_its_sha256_or_because_it_was_sealed(plant, content):
    plant("checkpoints/known_text.npz", content)
    sentence = "checkpoint 'known_text' holds no arrays … Let its script in experiments/ write it"
    refuse(f"ValueError: {sentence} again.", lambda: checkpoint("known_text"))
    (records.DATA / "checkpoints" / "known_text.npz").write_bytes(content + b"0")
    sentence = "ValueError: … has the sha256 … a checkpoint changes where its script"
    refuse(sentence, lambda: checkpoint("known_text"))


@pytest.mark.parametrize("name", ["copying", "known_text"])
def test_bits_flipped_before_the_seal_are_refused_in_words(name, monkeypatch):
    original_bytes = (DATA / "checkpoints" / f"{name}.npz").read_bytes()
    rng, messages = np.random.default_rng(11), []
    for offset in [*rng.integers(300, size=75), *-rng.integers(1, 900, size=75)]:  # head and tail
        content = bytearray(original_bytes)
        content[offset] ^= 1 << rng.integers(8)
        monkeypatch.setattr(records, "_verified_bytes", lambda *_, content=content: bytes(content))
        try:
            checkpoint(name)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(text.startswith(f"checkpoint {name!r} holds no arrays") for text in messages)


def test_every_checkpoint_has_a_budget_and_together_they_are_at_most_1_mb():
    assert set(CHECKPOINT_KB) == {name for folder, name in NAMES if folder == "checkpoints"}
    assert sum(CHECKPOINT_KB.values()) <= 1000


@pytest.mark.parametrize("name", [name for folder, name in NAMES if folder == "facts"])
def test_facts_say_when_they_were_checked_whose_they_are_and_under_which_licence(name):
    fact_lists = facts(name)
    assert re.fullmatch(r"20\d\d-[01]\d", fact_lists.pop("checked"))
    assert "licence" in fact_lists.pop("taken")
    entries = [*itertools.chain(*fact_lists.values())]
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        assert re.match(r"https://\S+|arXiv:\d{4}\.\d{5}", entry["source"]), entry
        assert all(entry[key].strip() for key in ("source_kind", "licence")), entry


class Request:
    """Stands in for the browser's XMLHttpRequest; `answers` are by address."""

    answers: ClassVar = {}
    new = classmethod(lambda cls: cls())

    def open(self, method, address, asynchronous):
        """Take the address; a worker that waits asks for an answer at once."""
        assert (method, asynchronous) == ("GET", False)
        self.address = address

    def send(self):
        """Answer."""
        assert self.responseType == "arraybuffer"
        content = self.answers.get(self.address, b"")
        if isinstance(content, Exception):
            raise content
        self.status = 200 if content else 404
        self.response = SimpleNamespace(to_bytes=lambda: content)


class BrowserError(Exception):
    """Stands in for Pyodide's JsException."""

    message = "A network error occurred."


@pytest.fixture
def page_answers(empty_data, monkeypatch):
    """Python as Pyodide has it, with the browser's modules; return the answers to fill."""
    browser = {"js": {"XMLHttpRequest": Request}, "pyodide.ffi": {"JsException": BrowserError}}
    for name, content in browser.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr(Request, "answers", {})
    monkeypatch.setenv(records.ADDRESS, "https://book.example/_static/data/")
    return Request.answers


def test_in_the_page_the_browser_fetches_and_the_sha256_is_checked(page_answers):
    address = "https://book.example/_static/data/results/gradients.json"
    page_answers[address] = (DATA / "results" / "gradients.json").read_bytes()
    assert record("gradients")["size"]
    page_answers[address] += b"\n"
    refuse("ValueError: … Load the page again", lambda: record("gradients"))


@pytest.mark.parametrize(
    ("answer", "error_words"),
    [(b"", "the answer is 404"), (BrowserError(), "A network error occurred.")],
)
def test_in_the_page_a_file_that_does_not_come_is_an_error(page_answers, answer, error_words):
    page_answers["https://book.example/_static/data/facts/models.json"] = answer
    sentence = f"FileNotFoundError: … models.json did not load: {error_words}"
    refuse(sentence, lambda: facts("models"))

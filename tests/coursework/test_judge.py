"""A value earns by its numbers, and words come only from what the grader knows."""

import io
import struct

import numpy as np
import pytest

from coursework.grader import sandbox
from coursework.grader.assignment import Case, HiddenTest, Mistake, Task
from coursework.grader.judge import judge, read_account
from coursework.grader.sandbox import Lost, _reply, read_array

EXPECTED = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def twice(x):
    return 2 * x


def reply(value, expected=EXPECTED):
    mistake = Mistake("doubled", "it doubles", "Do not.", twice)
    task = Task("f", lambda rng: [], (mistake,))
    test = HiddenTest(task, Case("a case", (expected,)), expected, (2 * expected,))
    return judge(test, "value", np.asarray(value))


def test_right_value_is_right_within_rounding():
    assert reply(EXPECTED)[0]
    assert reply(EXPECTED * (1 + 1e-9))[0]
    assert not reply(EXPECTED * (1 + 1e-5))[0]


def test_known_mistake_is_named():
    assert reply(2 * EXPECTED) == (False, "the largest difference is 6", ["doubled"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (EXPECTED.T, "its shape is (3,\N{NO-BREAK SPACE}2); expected (2,\N{NO-BREAK SPACE}3)"),
        (EXPECTED + 0.04123, "the largest difference is 0.041"),
        (np.where(EXPECTED == 6, np.nan, EXPECTED), "it holds NaN or infinity"),
        (EXPECTED + np.inf, "it holds NaN or infinity"),
        (EXPECTED + 0j, "it returned complex numbers"),
        (np.zeros([1] * 20), "its shape is another one; expected (2,\N{NO-BREAK SPACE}3)"),
        (np.zeros((0, 1610131033)), "its shape is another one; expected (2,\N{NO-BREAK SPACE}3)"),
    ],
)
def test_wrong_value_is_told_by_shape_and_largest_difference_alone(value, said):
    assert reply(value) == (False, said, [])


def test_true_and_false_are_asked_for_where_the_answer_is_a_mask():
    mask = np.tri(3, dtype=bool)
    assert reply(mask, mask)[0]
    said = "it returned numbers where True and False were asked for"
    assert reply(mask.astype(float), mask) == (False, said, [])


@pytest.mark.parametrize(("name", "said"), [("ValueError", "ValueError"), ("Q_was_1", "an exc")])
def test_only_known_exceptions_are_named(name, said):
    right, words, _ = judge(None, "raised", name)
    assert not right
    assert words.startswith(f"it raised {said}")


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize("array", [EXPECTED, EXPECTED.T, np.array(3), np.tri(3, dtype=bool)])
def test_arrays_are_read_as_they_were_written(array):
    np.testing.assert_array_equal(read_array(npy(array)), array)


def header(text):
    padded = text.encode() + b" " * (118 - len(text) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"10 of 10 points",
        npy(np.array([{"a": 1}], dtype=object), allow_pickle=True),
        npy(np.array(["text"])),
        npy(np.zeros(3, dtype=[("a", float)])),
        npy(EXPECTED)[:-1],
        npy(EXPECTED) + b"0",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}") + bytes(8),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}") + bytes(8),
        header("__import__('os').system('touch /tmp/attention-written')"),
        header("(" * 500),
    ],
)
def test_an_array_that_was_made_to_hurt_is_turned_down(payload):
    with pytest.raises(Lost):
        read_array(payload)


TOKEN = bytes(range(16))


def frame(token=TOKEN, kind=b"v", payload=b"abc", size=None):
    return token + kind + struct.pack(">Q", len(payload) if size is None else size) + payload


def test_a_reply_is_read_when_all_of_it_is_there():
    whole = frame()
    assert all(_reply(bytearray(whole[:n]), TOKEN) is None for n in range(len(whole)))
    assert _reply(bytearray(whole), TOKEN) == (b"v", b"abc")


@pytest.mark.parametrize(
    "received",
    [frame(token=bytes(16)), b"\xff", frame() + b"x", frame(size=2**40)],
    ids=["another token", "the first byte of one", "more than it says", "a terabyte"],
)
def test_a_forged_reply_is_turned_down(received):
    with pytest.raises(Lost):
        _reply(bytearray(received), TOKEN)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        3,
        [],
        {"remarks": 3, "missing": "f", "defined": [[]]},
        {"remarks": [[1], ["a", "b", "c"]]},
    ],
)
def test_an_account_of_no_form_says_nothing(raw):
    empty = {"problem": "", "remarks": [], "missing": [], "defined": []}
    assert read_account(raw, ["f"]) == empty


def test_an_account_keeps_what_has_the_right_form():
    raw = {
        "remarks": [[3, "raised", "X:\n\x1b[31m" + "y" * 500], [1, "full points", ""]] * 90,
        "missing": ["f", "another"],
        "defined": ["g", "not a name", "<b>"],
    }
    account = read_account(raw, ["f"])
    assert account["missing"] == ["f"]
    assert account["defined"] == ["g"]
    assert len(account["remarks"]) == 10
    ours, theirs = account["remarks"][0]
    assert ours == "Cell 3 raised an error"
    assert theirs.startswith("X: [31my")
    assert len(theirs) == 200


def test_an_account_cannot_speak_in_our_name():
    assert read_account({"unreadable": "full points were agreed by mail"}, [])["problem"] == ""
    assert "another language" in read_account({"unreadable": "kernel"}, [])["problem"]


def test_without_bubblewrap_nothing_starts_and_the_way_to_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    with pytest.raises(sandbox.SandboxError, match="apt-get install bubblewrap"):
        sandbox.Sandbox(tmp_path)

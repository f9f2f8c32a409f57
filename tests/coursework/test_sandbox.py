"""What is inside the sandbox and what it refuses, asked from within a real one."""

import io
import os
import re
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest

from coursework.grader import sandbox, seccomp
from coursework.grader.assignment import offer_library, read_assignment
from coursework.grader.sandbox import Lost, Sandbox, _parse_reply, read_array, value_of_ours
from tests.coursework.classes import ROOT

HEADERS = {  # what Debian's linux-libc-dev installs, on machines of either kind
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
CALLS = seccomp.ALLOWED | {name: row[0] for name, row in seccomp.PARTLY.items()}
EPERM, ENOSYS = 1, 38


def notebook(source):
    """A notebook of one cell, as a hand-in."""
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(source))]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells)).encode()


def opened(folder, name="heads"):
    """A sandbox for an assignment."""
    assignment = read_assignment(name)
    folder.mkdir(exist_ok=True)
    offer_library(folder, assignment)
    return Sandbox(folder, torch=assignment.torch, seconds=60)


def asked(folder, source, *arguments):
    """What the function `f` of a cell returns inside."""
    with opened(folder) as inside:
        account = inside.load(["f"], notebook(source))
        assert account["remarks"] == account["missing"] == []
        return inside.call("f", arguments)


def decided(program, architecture, number, *arguments):
    """What a filter of system calls decides: a small interpreter of its program."""
    given = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    lines, at, held = list(struct.iter_unpack("<HBBI", program)), 0, 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == seccomp.LOAD:
            [held] = struct.unpack_from("<I", given, value)
        elif code == seccomp.RETURN:
            return value
        elif code == seccomp.EQUAL:
            at += yes if held == value else no
        elif code == seccomp.AT_LEAST:
            at += yes if held >= value else no
        else:
            raise AssertionError(f"{code} is no instruction of the filter")


def table(path):
    """The system calls that a header of the kernel defines: their numbers by name."""
    defined = dict(re.findall(r"#define (__NR\w*)\s+(\w+)", path.read_text()))
    numbers = {name: defined.get(given, given) for name, given in defined.items()}
    return {n.removeprefix("__NR_"): int(g) for n, g in numbers.items() if g.isdigit()}


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_allows_the_calls_of_its_list_by_the_numbers_of_the_kernel(machine):
    if not HEADERS[machine].exists():
        pytest.skip(f"the kernel's numbers for {machine} are not here: install linux-libc-dev")
    numbers = table(HEADERS[machine])
    column = list(seccomp.ARCHITECTURES).index(machine)
    program = seccomp.seccomp_filter(machine)
    own = seccomp.ARCHITECTURES[machine]
    decisions = {n: decided(program, own, n) for n in range(1000)}
    allowed = {number for number, decision in decisions.items() if decision == seccomp.ALLOW}
    here = {name: numbers[name] for name, row in CALLS.items() if row[column] is not None}
    assert allowed == set(here.values()) - {numbers["ioctl"], numbers["futex"]}
    assert {name: row[column] for name, row in CALLS.items() if name in here} == here
    for name in ("socket", "socketpair", "execve", "clone", "ptrace", "mount", "prctl", "seccomp"):
        assert decisions[numbers[name]] == seccomp.REFUSE
    assert decisions[numbers["clone3"]] == seccomp.UNKNOWN


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_looks_at_arguments_that_make_a_call_harmful_and_at_the_machine(machine):
    column = list(seccomp.ARCHITECTURES).index(machine)
    program, own = seccomp.seccomp_filter(machine), seccomp.ARCHITECTURES[machine]
    harmful = [("futex", 0, 0), ("fcntl", 0, 6), ("prlimit64", 1)]  # a page of another's, a lock
    harmful += [("ioctl", 0, 0x5412), ("ioctl", 0, 0x5412 | 2**32)]  # types into the terminal
    useful = [("futex", 0, 128), ("fcntl", 0, 1030), ("ioctl", 0, 0x5401), ("prlimit64", 0, 7)]
    for calls, expected in ((harmful, seccomp.REFUSE), (useful, seccomp.ALLOW)):
        for name, *arguments in calls:
            number = seccomp.PARTLY[name][0][column]
            assert decided(program, own, number, *arguments) == expected
    for other in {0x40000003, 0x40000028, 0xC000003E, 0xC00000B7} - {own}:  # i386, arm, these two
        assert {decided(program, other, n) for n in range(500)} == {seccomp.KILL}


@pytest.mark.usefixtures("bubblewrap")
def test_the_kernel_refuses_every_call_that_is_not_on_the_list(tmp_path):
    column = list(seccomp.ARCHITECTURES).index(os.uname().machine)
    own = {row[column] for row in CALLS.values()}
    if os.uname().machine == "x86_64":
        own |= {335, 336}  # uretprobe and uprobe pass by any filter, and end who is not probed
    refused = [n for n in range(1000) if n not in own]
    refused += [0x40000000 + n for n in (0, 39, 59, 512, 520)]  # the second set of x86_64
    kind, errors = asked(
        tmp_path,
        """
        import ctypes
        import numpy as np

        def f(numbers):
            call, errors = ctypes.CDLL(None, use_errno=True).syscall, []
            for number in numbers:
                ctypes.set_errno(0)
                came = call(ctypes.c_long(int(number)), *[ctypes.c_long(0)] * 6)
                errors.append(ctypes.get_errno() if came == -1 else 0)
            return np.array(errors)
        """,
        np.array(refused),
    )
    assert kind == "value"
    expected = [ENOSYS if number >= seccomp.RECENT else EPERM for number in refused]
    wrong = [(n, e) for n, e, x in zip(refused, errors, expected, strict=True) if e != x]
    assert wrong == []


def descendants(pid):
    """The processes that one has started, and they."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
    found = [pid]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("name", ["heads", pytest.param("pytorch", marks=pytest.mark.long)])
def test_the_worker_is_filtered_has_one_thread_no_rights_and_dies_first(tmp_path, name):
    if name == "pytorch":
        pytest.importorskip("torch")
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    with opened(tmp_path, name) as inside:
        processes = descendants(inside.process.pid)
        scores = [Path(f"/proc/{p}/oom_score_adj").read_text().strip() for p in processes]
        status = Path(f"/proc/{processes[-1]}/status").read_text()
    assert len(processes) > 1
    assert set(scores) == {"1000"}
    said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert said["Name"].startswith("python")
    # A filter laid by one thread does not bind those that there are already.
    assert (said["Seccomp"], said["Threads"], said["NoNewPrivs"]) == ("2", "1", "1")
    assert {int(said[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")} == {0}
    assert own.read_text() == before


SEARCH = """
import os
import sys
import numpy

def f():
    for name in ("tutorial_lib", "extra_package", "torch", "PIL"):
        sys.modules.pop(name, None)
        try:
            __import__(name)
        except ModuleNotFoundError:
            continue
        return name.encode().hex()
    for folder, folders, files in os.walk("/"):
        if folder == "/tmp":  # new and small: what is written there stays in memory
            folders.clear()
            continue
        if {"secret_answer.py", "reachable.pth"}.intersection(files):
            return folder.encode().hex()
        try:
            return os.open(folder + "/made", os.O_CREAT | os.O_EXCL)
        except OSError:
            continue
    return numpy.zeros(3)
"""
PROBE = """
import sys
from pathlib import Path
from coursework.grader.sandbox import Sandbox

with Sandbox(Path(sys.argv[1]), seconds=60) as inside:
    print(inside.load(["f"], Path(sys.argv[2]).read_bytes())["remarks"], *inside.call("f", ()))
"""


NEEDED = [Path(*pair) for pair in sandbox.locate(*sandbox.PACKAGES)]  # to start the grader


@pytest.fixture
def beside_numpy(tmp_path):
    """What else somebody has installed: the library with its answers, and a file that finds it."""
    folder = tmp_path / "beside"
    for name in ("tutorial_lib", "extra_package"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("from . import secret_answer")
        (folder / name / "secret_answer.py").touch()
    (folder / "reachable.pth").write_text(f"{folder}\nimport extra_package\n")
    return folder


@pytest.fixture
def probe(tmp_path):
    """Arguments of Python that look around in a sandbox, where nothing but NumPy is needed."""
    (tmp_path / "offered").mkdir()
    (tmp_path / "search.ipynb").write_bytes(notebook(SEARCH))
    return ["-c", PROBE, str(tmp_path / "offered"), str(tmp_path / "search.ipynb")]


def said_by(command):
    """What a command prints, where of the project's own folders only the root is on the path."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.usefixtures("bubblewrap")
def test_a_library_that_is_installed_in_the_environment_is_not_inside(
    tmp_path, beside_numpy, probe
):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"], check=True)
    python = tmp_path / "own" / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    folder = Path(said_by(where))
    for path in (*beside_numpy.iterdir(), *NEEDED):
        (folder / path.name).symlink_to(path)
    assert said_by([python, "-c", "import tutorial_lib as t; print(t.__file__)"])
    assert said_by([python, *probe]) == "[] value [0. 0. 0.]"


@pytest.mark.usefixtures("bubblewrap")
def test_for_a_plain_user_what_is_beside_pythons_own_is_not_inside_nor_can_be_written_to(
    beside_numpy, probe
):
    python = os.path.realpath(sys._base_executable)
    where = [python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    folder = said_by(where)
    if not os.path.isdir(folder):
        pytest.skip(f"{folder} is missing, so nothing can be laid over it")
    outer = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--dev-bind", "/", "/"]
    outer += ["--tmpfs", folder]
    for path in (*beside_numpy.iterdir(), *NEEDED):
        outer += ["--ro-bind", str(path), f"{folder}/{path.name}"]
    assert said_by([*outer, python, "-c", "import tutorial_lib as t; print(t.__file__)"])
    assert said_by([*outer, python, *probe]) == "[] value [0. 0. 0.]"


def stories():
    """The cells of `cells.txt` as parameters: what is said of each, and its source."""
    text = Path(__file__).with_name("cells.txt").read_text("utf-8")
    for block in re.split(r"(?m)^=== ", text)[1:]:
        head, _, source = block.partition("\n---\n")
        name, *lines = head.splitlines()
        yield pytest.param(lines, source.replace("FILE_MIB", str(sandbox.FILE_MIB)), id=name)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(("lines", "source"), [*stories()])
def test_a_cell_keeps_what_it_has_defined_and_what_goes_wrong_is_remarked(tmp_path, lines, source):
    short = "in half a second" in lines
    remarks = [line.removeprefix("remark ") for line in lines if line.startswith("remark ")]
    with opened(tmp_path) as inside:
        inside.seconds = 0.5 if short else 60
        handed_out = [source.strip()] * ("handed out" in lines)
        account = inside.load(["f"], notebook(source), handed_out=handed_out)
        kind, value = inside.call("f", ())
    assert (kind, f"returns {value.tolist()}") == ("value", lines[0])
    found = [f"{kind}: {words}" for _, kind, words in account["remarks"]]
    assert [f[: len(r)] for f, r in zip(found, remarks, strict=True)] == remarks
    assert not short or found[0].endswith(": OutOfTime: its time was used up")


OURS = """
import gc
import types
import numpy as np

def f(ours, X):
    \"\"\"Call a function of the grader's in each way, and look for what it is made of.\"\"\"
    called = [ours(X), ours(X, factor=ours(X)[0, 1]), ours(X=np.asfortranarray(X), factor=None)]
    try:
        ours("X")
    except ValueError as error:
        assert "not an array of numbers" in str(error)
    codes = [each.__code__ for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    held = int("98765") in [const for code in codes for const in code.co_consts]
    return np.array([*map(np.sum, called), called[2].flags.f_contiguous, held])
"""


@pytest.mark.usefixtures("bubblewrap")
def test_a_function_of_ours_is_called_from_inside_and_is_not_there(tmp_path):
    def ours(X, factor=None):
        return X * (1 if factor is None else factor) + 0 * (X == 98765)

    kind, value = asked(tmp_path, OURS, ours, np.arange(6.0).reshape(2, 3))
    assert (kind, value.tolist()) == ("value", [15, 15, 15, 1, 0])


def npy(array, *, allow_pickle=False):
    """An array as the worker sends it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


LONG = npy(np.ones(10**6))
QUESTIONS = {  # what a hand-in may ask of our function, and what the answer begins with
    b'[0, [["", 136]]]\0' + npy(np.float64(2)): b"v\x93NUMPY",
    b'[0, [["", 0]]]\0': b"eTypeError",
    b'[7, [["", 136]]]\0' + npy(np.float64(2)): b"eIndexError",
    b'[0, [["", 99]]]\0' + npy(np.float64(2)): b"eLost",
    b"[" * 900: b"eJSONDecodeError",
    b"[0, 3]\0": b"eTypeError",
    b"": b"eJSONDecodeError",
    b"\xff\0": b"eUnicodeDecodeError",
    b'[0, [[["X"], 136]]]\0' + npy(np.float64(2)): b"eTypeError",
    b'[0, [["", -1], ["", -1], ["", -1]]]\0' + LONG: b"eTypeError",
}


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_whatever_a_hand_in_asks_of_our_function_gets_an_array_or_an_error(question):
    answer = value_of_ours([lambda x: 3 * x], question)
    assert answer.startswith(QUESTIONS[question]), answer


@pytest.mark.usefixtures("bubblewrap")
def test_several_things_that_are_no_array_together_are_told_as_such(tmp_path):
    source = """
    import numpy as np

    def f(which):
        x = np.ones((2, 3))
        return [(x, None), (x, x[0]), [x, "x"], (x, x), {"x": x}][which]
    """
    with opened(tmp_path) as inside:
        inside.load(["f"], notebook(source))
        kinds = [inside.call("f", (np.array(i),))[0] for i in range(5)]
    assert kinds == ["several", "several", "several", "value", "no array"]


SPINS = "def f(n):\n    for _ in range(int(n)):\n        pass\n    return n\n"
SLEEPS = "import time\n\ndef f():\n    time.sleep(1e6)\n"


@pytest.fixture
def busy():
    """The number of a processor that eight other processes keep busy."""
    spin = [sys.executable, "-c", "while True: pass"]  # apart from us, so that each has its share
    others = [subprocess.Popen(spin, start_new_session=True) for _ in range(8)]
    number = min(os.sched_getaffinity(0))
    for other in others:
        os.sched_setaffinity(other.pid, {number})
    yield number
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("bubblewrap")
def test_processor_time_counts_and_a_wait_for_a_processor_does_not(tmp_path, busy):
    with opened(tmp_path) as inside:
        inside.load(["f"], notebook(SPINS))
        before, start = inside.used_s, time.monotonic()
        os.sched_setaffinity(inside.worker, {busy})
        assert inside.call("f", (np.array(2e7),))[0] == "value"
        assert 0 < inside.used_s - before < (time.monotonic() - start) / sandbox.WAITING / 1.2
        inside.seconds = 0.2
        with pytest.raises(Lost, match=r"within 0\.2 seconds"):
            inside.call("f", (np.array(1e10),))


@pytest.mark.usefixtures("bubblewrap")
def test_what_waits_without_end_is_lost_by_the_clock_and_of_a_cell_the_number_is_told(tmp_path):
    with opened(tmp_path) as inside:
        inside.seconds = 0.5
        inside.load(["f"], notebook(SLEEPS))
        with pytest.raises(Lost, match=r"within 0\.5 seconds"):
            inside.call("f", ())
    with opened(tmp_path / "again") as inside:
        inside.seconds = 0.5
        with pytest.raises(Lost, match=r"within 2\.5 seconds") as lost:
            inside.load(["f"], notebook(f"{SLEEPS}\nf()"))
    assert lost.value.cell == 1


@pytest.mark.long
@pytest.mark.usefixtures("bubblewrap")
def test_torch_has_no_threads_and_no_compilers_and_reads_what_it_has_saved(tmp_path):
    pytest.importorskip("torch")
    source = """
    import os
    import torch
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.attention.flex_attention import flex_attention

    torch.set_num_threads(os.cpu_count() + 3)
    torch.set_num_interop_threads(2)
    torch.save({"two": torch.tensor(2.0)}, "x.pt")
    two = torch.load("x.pt")["two"]
    causal = lambda score, b, h, q, k: torch.where(q >= k, score, -float("inf"))
    half = torch.compile(lambda x: x / 2, mode="reduce-overhead")

    @torch.compile
    def more(x):
        return x + two

    @torch.compile(fullgraph=True)
    def f(x):
        x = x[None, None]
        attended = flex_attention(x, x, x, score_mod=causal)
        expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        assert torch.allclose(attended, expected)
        return half(more(x[0, 0]) @ x[0, 0])
    """
    with opened(tmp_path, "pytorch") as inside:
        account = inside.load(["f"], notebook(source))
        assert account["remarks"] == account["missing"] == []
        x = np.eye(300)
        np.testing.assert_array_equal(inside.call("f", (x,))[1], (x + 2) @ x / 2)


@pytest.mark.parametrize("kind", "?bBhHiIlLefdgFDG")
def test_every_array_of_numbers_is_read_as_it_was_sent(kind):
    for shape in ((), (1,), (3,), (2, 3), (0, 3), (2, 3, 4), (1,) * 64):
        for order in "CF":
            array = np.asarray(np.arange(np.prod(shape)).reshape(shape), dtype=kind, order=order)
            read = read_array(npy(array))
            assert (read.dtype, read.shape) == (array.dtype, array.shape)
            assert np.array_equal(read, array)


def with_header(text):
    """Return an array with a header of one's own."""
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)


HEADERS_OF_ANOTHER_FORM = [
    r"{'descr': '\d<f8', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }",
    "{'descr': '<f8', 'fortran_order': 0or False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "-" * 800 + "1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 18 + ", " + "9" * 18 + "), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 70 + "), }",
    "__import__('os').system('touch /tmp/attention-written')",
    "(" * 500,
    "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
]
NO_ARRAYS = [
    b"",
    b"10 of 10 points",
    npy(np.array([{"a": 1}], dtype=object), allow_pickle=True),
    npy(np.array(["text"])),
    npy(np.zeros(3, dtype=[("a", float)])),
    npy(np.eye(3))[:-1],
    npy(np.eye(3)) + b"0",
]


@pytest.mark.parametrize("payload", [*map(with_header, HEADERS_OF_ANOTHER_FORM), *NO_ARRAYS])
def test_what_is_no_array_of_numbers_is_turned_down_without_a_word(payload, capfd):
    with pytest.raises(Lost):
        read_array(payload)
    assert capfd.readouterr() == ("", "")


TOKEN = bytes(range(16))


def frame(token=TOKEN, kind=b"v", payload=b"abc", size=None):
    return token + kind + struct.pack(">Q", len(payload) if size is None else size) + payload


def test_a_reply_is_read_when_all_of_it_is_there():
    whole = frame()
    assert all(_parse_reply(bytearray(whole[:n]), TOKEN) is None for n in range(len(whole)))
    assert _parse_reply(bytearray(whole), TOKEN) == (b"v", b"abc")


@pytest.mark.parametrize(
    "received",
    [frame(token=bytes(16)), b"\xff", frame() + b"x", frame(size=2**40)],
    ids=["another token", "the first byte of one", "more than it says", "a terabyte"],
)
def test_a_forged_reply_is_turned_down(received):
    with pytest.raises(Lost):
        _parse_reply(bytearray(received), TOKEN)


@pytest.mark.parametrize(
    ("owner", "name", "value", "said"),
    [
        (sandbox, "locate", lambda name: name != "scipy", "here: pip install scipy"),
        (sandbox.shutil, "which", lambda name: None, "apt-get install bubblewrap"),
        (sandbox, "START_S", 0, "Others did, so this machine has too much to do"),
    ],
)
@pytest.mark.usefixtures("bubblewrap")
def test_where_something_is_missing_nothing_starts_and_the_way_to_it_is_told(
    monkeypatch, tmp_path, owner, name, value, said
):
    monkeypatch.setattr(sandbox.Sandbox, "worked", True)
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(sandbox.SandboxError, match=said):
        sandbox.Sandbox(tmp_path)

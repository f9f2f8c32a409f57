"""A process for one hand-in, behind bubblewrap, and the channel to it.

What is inside, all of it read-only: Python's own library, the packages that the assignment needs,
the worker, a copy of `tutorial_lib`. What is not: other packages, network, other processes, this
repository, `/proc`, a way to start a process or a thread. What it writes stays in memory: `/tmp` is
small, new in each sandbox, and ends with it. Of empty files it can hold as many as the kernel lets
it, about an eighth of the memory; they end with the sandbox, which is the first to die.

The first request brings the filter of system calls, which the worker lays over itself; the next
ones bring the hand-in, name the cells to run one by one, and call its functions.

A request is a token of 16 random bytes, the length of its payload in 8, and the payload. The reply
repeats the token, then come a byte for its kind, the length and the payload. A reply with another
token was forged or came late; the process that sent it is ended.
"""

import contextlib
import io
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from coursework.grader import GraderError
from coursework.grader.seccomp import seccomp_filter

HERE = Path(__file__).resolve().parent
MIB = 2**20
MOST_REPLY_MIB = 33
FILE_MIB = 64  # of all files that a hand-in writes
START_S = 120
SECONDS, TORCH_SECONDS = 5, 20  # of one call
LOADING = 8  # so many times as long for all cells, and for one of them half of what is left
WAITING = 4  # so many times as long by the clock, whatever else the machine does meanwhile
MEMORY_GIB, TORCH_MEMORY_GIB = 2, 16  # of addresses: torch reserves more than it uses
SYSTEM = ("/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
LINKER = ("/etc/ld.so.cache", "/etc/alternatives")
GRADER, LIBRARY = "/grader", "/library"  # where the worker and `tutorial_lib` are inside
FILES = "/tmp"  # where a hand-in may write
WORKER = ("worker.py", "worker_cells.py", "worker_shell.py", "worker_silence.py")
PACKAGES = ("numpy", "scipy", "einops", "ipython")  # with what they require; torch where it is used
# Set here and not by `-I`, which would ignore them all.
ON = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")
ON += ("PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONUTF8")
ENVIRONMENT = dict.fromkeys(ON, "1") | {
    # Else some loops give the pages of each array back, and wait for them longer than they count.
    "MALLOC_MMAP_THRESHOLD_": str(32 * MIB),
    "MALLOC_TRIM_THRESHOLD_": str(256 * MIB),
    "PYTHONHASHSEED": "0",
    "HOME": FILES,
    "TMPDIR": FILES,
    "USER": "student",
}
# Where Colab's notebooks write.
DRIVE = (f"{FILES}/drive", f"{FILES}/drive/MyDrive")
COLAB = [o for path in DRIVE for o in ("--perms", "1777", "--dir", path)]
COLAB += ["--symlink", FILES, "/content"]
ALONE = ("bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname")
ALONE += ("sandbox", "--unshare-cgroup-try", "--die-with-parent", "--new-session")
# Root cannot be limited in processes, so the worker becomes nobody before it reads a hand-in.
AS_ROOT = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
AS_USER = ("--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL")
# Where memory ends, the kernel takes the process with the highest score: the sandbox, not us.
FIRST_TO_DIE = ("/bin/sh", "-c", 'echo 1000 > /proc/self/oom_score_adj; exec "$@"', "sh")
ENDED = "it ended the process that ran it"
HEADER = 25  # bytes of a reply before its payload
# A `.npy` of format 1.0 as NumPy writes it. NumPy's own reader would parse a header as Python.
ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00(?P<size>..)(?P<header>\{'descr': '(?P<dtype>[<>|][biufc]\d{1,2})', "
    rb"'fortran_order': (?P<by_columns>True|False), "
    rb"'shape': \((?P<shape>(?:\d{1,18}, ?){0,64}(?:\d{1,18})?)\), \} *\n)",
    re.DOTALL,
)
NOT_HERE = "hand-ins need packages that are not installed here:"
HOW_TO_GET = (
    "Students' code runs behind bubblewrap (0.7 or newer), and nothing was graded without it. "
    "Debian, Ubuntu: apt-get install bubblewrap. Where the system forbids it, or on macOS and "
    "Windows, run this in a separate Linux machine; with --trusted hand-ins run in a limited "
    "process that can read this machine's files and use its network, and every report says so."
)
OVERLOADED = "Others did, so this machine has too much to do: later the same command goes on."


class SandboxError(GraderError):
    """The machine, not a student, keeps a sandbox from starting or answering."""


class Lost(Exception):
    """A hand-in ended its sandbox, or had it ended; the message says how, for the report."""

    cell = 0  # number of the cell that did, 0 where it was none


def _options_for_parent_folders(*paths):
    """Return bubblewrap's options that make the folders above some paths, open to all."""
    above = {parent for path in paths for parent in Path(path).parents if parent != Path("/")}
    return [o for p in sorted(above) for o in ("--perms", "0755", "--dir", str(p))]


def _options_to_show(path):
    """Return bubblewrap's options that show a path, read-only, or a link as it is."""
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path] if os.path.exists(path) else []


@cache
def _library_folders():
    """Return the folders with Python's and the system's libraries, and the packages below them."""
    base, system = os.path.realpath(sys.base_prefix), f"/usr/lib/{os.uname().machine}-linux-gnu"
    if not os.path.isdir(system):
        system = "/usr/lib"  # Debian alone keeps libraries apart from all else
    own = [sysconfig.get_path("stdlib")] if base == "/usr" else [f"{base}/lib", f"{base}/lib64"]
    folders, packages = list(dict.fromkeys((*SYSTEM, system, *own))), []
    for folder in folders:
        for path, below, _ in os.walk(folder) if not os.path.islink(folder) else ():
            found = {"site-packages", "dist-packages"}.intersection(below)
            packages += [os.path.join(path, name) for name in found]
            below[:] = [name for name in below if name not in found]
    return folders, sorted(set(packages))


@cache
def locate(*names):
    """Return where some distributions and all that they require were installed.

    These are sorted (folder, name in it) pairs, without what changes the start of Python. Names
    that are not there, as for another system, are passed over.
    """
    places, seen, waiting = set(), set(), list(names)
    while waiting:
        name = re.match(r"[\w.-]+", waiting.pop())[0]
        if name in seen:
            continue
        seen.add(name)
        with contextlib.suppress(metadata.PackageNotFoundError):
            found = metadata.distribution(name)
            folder, top = os.path.realpath(found.locate_file("")), name.lower().replace("-", "_")
            files = found.files or map(Path, (top, f"{top}.py", f"{top}.libs"))  # a system's own
            tops = {str(f) if f.parts[0] == "__pycache__" else f.parts[0] for f in files}
            places |= {(folder, t) for t in tops - {"..", "/"} if not t.endswith(".pth")}
            waiting += [r for r in found.requires or () if "extra ==" not in r]
    return sorted(pair for pair in places if os.path.exists(os.path.join(*pair)))


def bubblewrap_command(library, places):
    """Return the command, up to the arguments of Python, that keeps it in.

    `library` : folder of the `tutorial_lib` that is shown inside
    `places` : the packages that are shown inside, as `locate` returns them; others are hidden
    """
    python = os.path.realpath(sys._base_executable)
    folders, packages = _library_folders()
    beside = [f for f, _ in places if any(Path(f).is_relative_to(folder) for folder in folders)]
    hidden, paths = sorted({*packages, *beside}), [os.path.join(*place) for place in places]
    shown = (*folders, *LINKER, python)
    files = {f"{GRADER}/{name}": str(HERE / name) for name in WORKER} | {LIBRARY: str(library)}
    bound = [*zip(paths, paths, strict=True), *files.items()]
    return [
        *(*ALONE, *(AS_ROOT if os.geteuid() == 0 else AS_USER)),
        *("--perms", "1777", "--size", str(FILE_MIB * MIB), "--tmpfs", FILES),
        *COLAB,
        *_options_for_parent_folders(*shown, *files, "/dev/null"),
        *[option for path in shown for option in _options_to_show(path)],
        *[o for path in hidden for o in ("--tmpfs", path)],
        *_options_for_parent_folders(*paths),
        *[o for inside, path in bound for o in ("--ro-bind", path, inside)],
        *[o for path in hidden for o in ("--remount-ro", path)],
        *[o for path in ("/dev/null", "/dev/urandom") for o in ("--dev-bind", path, path)],
        *("--remount-ro", "/", "--chdir", FILES, "--clearenv"),
        *[o for pair in ENVIRONMENT.items() for o in ("--setenv", *pair)],
        python,
    ]


class Sandbox(contextlib.AbstractContextManager):
    """One process that loads one hand-in and answers calls of its functions.

    SandboxError: it does not start.

    `library` : folder of the `tutorial_lib` that the hand-in may import
    `torch` : whether it may import torch; then arrays reach its functions as tensors
    `trusted` : leave bubblewrap out; the limits and the process of its own stay
    `seconds` : limit of each request
    """

    worked = False  # whether one has started before

    def __init__(self, library, *, torch=False, trusted=False, seconds=SECONDS):
        self.seconds = seconds
        if missing := [name for name in PACKAGES if not locate(name)]:
            raise SandboxError(f"{NOT_HERE} pip install {' '.join(missing)}")
        if not trusted and shutil.which("bwrap") is None:
            raise SandboxError(f"bubblewrap (bwrap) is not installed. {HOW_TO_GET}")
        self.folder = tempfile.TemporaryDirectory() if trusted else None
        self.worker, self.used_s = None, 0.0  # by `_spent_seconds` of all requests
        self.last = 0.0, 0.0  # what the worker had of a processor, and how long it waited for one
        self.process = self._start(library, torch=torch, trusted=trusted)
        os.set_blocking(self.process.stdin.fileno(), False)
        try:
            self._exchange(b"" if trusted else seccomp_filter(), START_S)
            self.worker, self.used_s = _innermost_child(self.process.pid), 0.0
            Sandbox.worked = True
        except (ValueError, Lost) as error:
            self.process.kill()
            os.set_blocking(self.process.stderr.fileno(), False)  # a child may hold it open
            why = (self.process.stderr.read(2000) or b"").decode(errors="replace").strip()
            self.close()
            slow = Sandbox.worked and not why
            how = OVERLOADED if slow else "" if trusted else HOW_TO_GET
            raise SandboxError(
                f"the sandbox does not start: {why or error}. {how}".strip()
            ) from None

    def _start(self, library, *, torch, trusted):
        memory_mib = 1024 * (TORCH_MEMORY_GIB if torch else MEMORY_GIB)
        options = [str(memory_mib), *["torch"] * torch]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        settings = {**pipes, "bufsize": 0, "start_new_session": True}
        if trusted:
            worker = [sys.executable, HERE / "worker.py", library, *options]
            own = dict.fromkeys(("HOME", "TMPDIR"), self.folder.name)
            settings |= {"cwd": self.folder.name, "env": ENVIRONMENT | own}
        else:
            places = locate(*PACKAGES, *["torch"] * torch)
            paths = os.pathsep.join(dict.fromkeys([LIBRARY, *(folder for folder, _ in places)]))
            worker = [*bubblewrap_command(library, places), f"{GRADER}/worker.py", paths, *options]
            worker += ["nobody"] * (os.geteuid() == 0)
        return subprocess.Popen([*FIRST_TO_DIE, *worker], **settings)

    def __exit__(self, *error):
        self.close()

    def close(self):
        """End the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        if self.folder:
            self.folder.cleanup()

    def load(self, functions, content, *, handed_out=(), left_out=()):
        """Run the cells of a notebook, each once; Lost: it did not come back.

        Return what the sandbox says of it, unchecked: see `judge.read_account`.

        `functions` : the names of those that are graded
        `content` : the bytes of the notebook
        `handed_out` : the sources of cells that are not the student's own
        `left_out` : numbers of cells that are not run
        """
        asked = {"functions": list(functions), "handed_out": list(handed_out)}
        begun = self._ask_worker(asked, self.seconds, content)
        left, cells = LOADING * self.seconds, begun.get("cells")
        for number in cells if isinstance(cells, list) else ():
            if type(number) is int and number not in left_out:
                before, seconds = self.used_s, left / 2
                try:
                    self._ask_worker({"cell": number, "seconds": seconds}, seconds + self.seconds)
                except Lost as lost:
                    lost.cell = number
                    raise
                left -= min(self.used_s - before, 1.5 * seconds)  # most of what it was given
        return begun if "unreadable" in begun else self._ask_worker({}, self.seconds)

    def _ask_worker(self, request, seconds, content=b""):
        """Ask something of the cells; return the dict of the reply, {} where it is none."""
        _, payload = self._exchange(b"\0" + json.dumps(request).encode() + b"\0" + content, seconds)
        try:
            return dict(json.loads(payload[:100_000]))
        except (ValueError, TypeError, RecursionError):
            return {}

    def call(self, function, arguments):
        """Call a function with arrays, numbers and functions of ours; Lost: it did not come back.

        Our functions stay here: the hand-in gets some that send us what they are called with.
        Return a pair: "value" and the array, "raised" and the name of the exception, or None behind
        "nothing", "no array", "several" or "too large".
        """
        file = io.BytesIO()
        ours = [each for each in arguments if callable(each)]
        np.savez(file, *(str(ours.index(a)) if callable(a) else np.asarray(a) for a in arguments))
        asked = function.encode() + b"\0" + file.getvalue()
        kind, payload = self._exchange(asked, self.seconds, ours)
        if kind == b"v":
            return "value", read_array(payload)
        if kind == b"e":
            return "raised", payload[:80].decode(errors="replace")
        kinds = {b"n": "nothing", b"o": "no array", b"s": "several", b"l": "too large"}
        if kind not in kinds:
            raise Lost("it wrote into the grader's channel")
        return kinds[kind], None

    def _exchange(self, payload, seconds, ours=()):
        """Send a request, wait for its reply, so long as `_spent_seconds` counts no more."""
        before, self.begun = self.used_s, self._clocks()
        try:
            kind, reply = self._await_reply(payload, seconds)
            while kind == b"f":
                kind, reply = self._await_reply(value_of_ours(ours, reply), seconds)
            return kind, reply
        finally:
            self.used_s = before + self._spent_seconds()

    def _await_reply(self, payload, seconds):
        token = os.urandom(16)
        rest = memoryview(struct.pack(">16sQ", token, len(payload)) + payload)
        received = bytearray()
        into, out_of = self.process.stdin.fileno(), self.process.stdout.fileno()
        while True:
            waiting = select.poll()
            waiting.register(out_of, select.POLLIN)
            if rest:
                waiting.register(into, select.POLLOUT)
            left = seconds - self._spent_seconds()
            if left <= 0:
                raise Lost(f"it did not come back within {seconds:.3g} seconds")
            events = dict(waiting.poll(1000 * left + 1))
            if into in events:
                rest = rest[self._write_some(into, rest) :]
            if out_of in events:
                piece = os.read(out_of, MIB)
                if not piece:
                    raise Lost(ENDED)
                received += piece
                if reply := _parse_reply(received, token):
                    return reply

    def _spent_seconds(self):
        """Return the seconds of a request: of the processor, or of waiting a part of the clock's.

        A worker that waits for a processor is not to blame, and spends nothing.
        """
        (processor, clock), (processor_then, clock_then) = self._clocks(), self.begun
        return max(processor - processor_then, (clock - clock_then) / WAITING)

    def _clocks(self):
        """Return the worker's processor time, and the time in which it could have had one."""
        now = time.monotonic()
        if self.worker is None:
            return now, now
        with contextlib.suppress(OSError):  # it has ended, or the system does not count this
            processor = time.clock_gettime(~self.worker << 3 | 2)  # as clock_getcpuclockid(3) does
            self.last = processor, self.last[1]
            queued = Path(f"/proc/{self.worker}/schedstat").read_text().split()[1]
            self.last = processor, int(queued) / 1e9
        return self.last[0], now - self.last[1]

    def _write_some(self, pipe, remaining):
        try:
            return os.write(pipe, remaining[:MIB])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise Lost(ENDED) from None


def _innermost_child(pid):
    """Return the process below others that have one child each: the worker, below bubblewrap."""
    with contextlib.suppress(OSError):
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[-1])
    return pid


def value_of_ours(functions, payload):
    """Call a function of ours as a hand-in asks, with whatever; return a `.npy`, or the error."""
    try:
        head, _, rest = payload.partition(b"\0")
        number, arguments = json.loads(head[:1000])
        given, named, file = [], {}, io.BytesIO(b"v")
        for name, size in arguments:
            value, rest = read_array(rest[:size]) if size > 0 else None, rest[size:]
            given, named = (given, named | {name: value}) if name else ([*given, value], named)
        file.seek(1)
        with np.errstate(all="ignore"):
            np.lib.format.write_array(file, functions[number](*given, **named))
        return file.getvalue()
    except Exception as error:
        return b"e" + f"{type(error).__name__}: {error}"[:300].encode(errors="replace")


def _parse_reply(received_bytes, token):
    """Return (kind, payload) once all of it is there, None before."""
    if received_bytes[:16] != token[: len(received_bytes)]:
        raise Lost("it wrote into the grader's channel")
    if len(received_bytes) < HEADER:
        return None
    kind, size = struct.unpack(">cQ", received_bytes[16:HEADER])
    if size > MOST_REPLY_MIB * MIB:
        raise Lost(f"it sent more than {MOST_REPLY_MIB} MiB")
    if len(received_bytes) > HEADER + size:
        raise Lost("it wrote into the grader's channel")
    return (kind, bytes(received_bytes[HEADER:])) if len(received_bytes) == HEADER + size else None


def read_array(payload):
    """Read a `.npy` that may have been made to hurt: numbers alone, and as many as it has bytes.

    All else is Lost.
    """
    try:
        found = ARRAY.match(payload)
        if found is None or int.from_bytes(found["size"], "little") != len(found["header"]):
            raise ValueError
        shape = tuple(int(length) for length in re.findall(rb"\d+", found["shape"]))
        flat = np.frombuffer(payload, np.dtype(found["dtype"].decode()), offset=found.end())
        return flat.reshape(shape, order="F" if found["by_columns"] == b"True" else "C")
    except (ValueError, TypeError):
        raise Lost("it sent something that is not an array of numbers") from None

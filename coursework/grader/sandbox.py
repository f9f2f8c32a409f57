"""A process for one hand-in, behind bubblewrap, and the channel to it.

What is inside: Python with its packages, the worker, a copy of `tutorial_lib`, 32 MiB of `/tmp`.
What is not: network, other processes, this repository, `/proc`, a way to start a process.

A request is a token of 16 random bytes, the length of its payload in 8, and the payload. The reply
repeats the token, then come a byte for its kind, the length and the payload. A reply with another
token was forged or came late; the process that sent it is ended.
"""

import contextlib
import io
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from coursework.grader.seccomp import seccomp_filter

HERE = Path(__file__).resolve().parent
MIB = 2**20
MOST_REPLY_MIB = 33
START_S = 120
SECONDS, TORCH_SECONDS = 5, 20  # of one request
LOADING = 4  # so many times as long for a hand-in to load
MEMORY_GIB, TORCH_MEMORY_GIB = 2, 16  # of addresses: torch reserves more than it uses
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives")
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "HOME": "/tmp",
}
HEADER = 25  # bytes of a reply before its payload
HOW_TO_GET = (
    "Students' code runs behind bubblewrap, and nothing was graded without it. Debian, Ubuntu: "
    "apt-get install bubblewrap. Where the system forbids it, or on macOS and Windows, run this in "
    "a Linux machine of its own; with --trusted hand-ins run in a limited process that can read "
    "this machine's files and use its network, and every report says so."
)


class SandboxError(Exception):
    """The machine, not a student, keeps a sandbox from starting or answering."""


class Lost(Exception):
    """A hand-in ended its sandbox, or had it ended; the message says how, for the report."""


def _parents(*paths):
    """Return bubblewrap's options that make the folders above some paths, open to all."""
    above = {parent for path in paths for parent in Path(path).parents if parent != Path("/")}
    return [o for p in sorted(above) for o in ("--perms", "0755", "--dir", str(p))]


def _shown(path):
    """Return bubblewrap's options that show a path, read-only, or a link as it is."""
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path] if os.path.exists(path) else []


def bubblewrap(library, filter_fd):
    """Return the command, up to the program that it runs, that keeps a process in.

    Parameters
    ----------
    library : folder of the `tutorial_lib` that is shown inside
    filter_fd : file descriptor from which bubblewrap reads the filter of system calls
    """
    pythons = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    pythons = sorted(path for path in pythons if not path.startswith("/usr"))
    files = [HERE / "worker.py", HERE / "needed.py"]
    # Root cannot be limited in processes, so the worker becomes nobody before it reads a hand-in.
    as_root = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    as_user = ["--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    return [
        "bwrap",
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *(as_root if os.geteuid() == 0 else as_user),
        *("--perms", "1777", "--size", str(32 * MIB), "--tmpfs", "/tmp"),
        *_parents(*SYSTEM, "/dev/null", *pythons, *files, library),
        *[option for path in (*SYSTEM, *pythons, str(library)) for option in _shown(path)],
        *[option for path in files for option in ("--ro-bind", str(path), str(path))],
        *[
            o
            for name in ("null", "urandom")
            for o in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        ],
        *("--remount-ro", "/", "--chdir", "/tmp", "--seccomp", str(filter_fd)),
        *[o for pair in ENVIRONMENT.items() for o in ("--setenv", *pair)],
    ]


class Sandbox:
    """One process that loads one hand-in and answers calls of its functions.

    Parameters
    ----------
    library : folder of the `tutorial_lib` that the hand-in may import
    torch : whether it may import torch; then arrays reach its functions as tensors
    trusted : leave bubblewrap out; the limits and the process of its own stay
    seconds : limit of each request

    Raises
    ------
    SandboxError : it does not start
    """

    def __init__(self, library, *, torch=False, trusted=False, seconds=SECONDS):
        self.seconds = seconds
        if not trusted and shutil.which("bwrap") is None:
            raise SandboxError(f"bubblewrap (bwrap) is not installed. {HOW_TO_GET}")
        self.folder = tempfile.TemporaryDirectory() if trusted else None
        self.process = self._start(library, torch=torch, trusted=trusted)
        os.set_blocking(self.process.stdin.fileno(), False)
        try:
            self._exchange(b"", START_S)
        except Lost as lost:
            self.process.kill()
            said = self.process.stderr.read(2000).decode(errors="replace").strip()
            self.close()
            why = said or str(lost)
            raise SandboxError(
                f"the sandbox does not start: {why}. {'' if trusted else HOW_TO_GET}".strip()
            ) from None

    def _start(self, library, *, torch, trusted):
        memory_mib = 1024 * (TORCH_MEMORY_GIB if torch else MEMORY_GIB)
        worker = [sys.executable, "-I", str(HERE / "worker.py"), str(library), str(memory_mib)]
        worker += ["torch"] * torch + ["nobody"] * (os.geteuid() == 0 and not trusted)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        options = {**pipes, "bufsize": 0, "start_new_session": True}
        if trusted:
            home = self.folder.name
            return subprocess.Popen(worker, cwd=home, env=ENVIRONMENT | {"HOME": home}, **options)
        read, write = os.pipe()
        try:
            os.write(write, seccomp_filter())
            os.close(write)
            command = [*bubblewrap(library, read), *worker]
            return subprocess.Popen(command, pass_fds=[read], **options)
        except ValueError as error:
            raise SandboxError(f"{error}. {HOW_TO_GET}") from None
        finally:
            os.close(read)

    def __enter__(self):
        return self

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

    def load(self, functions, content):
        """Run what some functions of a notebook need.

        Parameters
        ----------
        functions : their names
        content : the bytes of the notebook

        Returns
        -------
        account : what the sandbox says of it, unchecked: see `judge.read_account`

        Raises
        ------
        Lost : it did not come back
        """
        self._exchange(json.dumps(list(functions)).encode(), self.seconds)
        _, payload = self._exchange(content, LOADING * self.seconds)
        try:
            return json.loads(payload[:100_000])
        except (ValueError, RecursionError):
            return None

    def call(self, function, arguments):
        """Call a function with arrays and numbers.

        Returns
        -------
        kind : "value", "nothing", "no array", "too large", or "raised"
        value : the array of "value", the name of the exception of "raised", or None

        Raises
        ------
        Lost : it did not come back
        """
        file = io.BytesIO()
        np.savez(file, *map(np.asarray, arguments))
        kind, payload = self._exchange(function.encode() + b"\0" + file.getvalue(), self.seconds)
        if kind == b"v":
            return "value", read_array(payload)
        if kind == b"e":
            return "raised", payload[:80].decode(errors="replace")
        kinds = {b"n": "nothing", b"o": "no array", b"l": "too large"}
        if kind not in kinds:
            raise Lost("it wrote into the grader's channel")
        return kinds[kind], None

    def _exchange(self, payload, seconds):
        """Send a request, wait for its reply."""
        deadline = time.monotonic() + seconds
        token = os.urandom(16)
        rest = memoryview(struct.pack(">16sQ", token, len(payload)) + payload)
        received = bytearray()
        into, out_of = self.process.stdin.fileno(), self.process.stdout.fileno()
        while True:
            waiting = select.poll()
            waiting.register(out_of, select.POLLIN)
            if rest:
                waiting.register(into, select.POLLOUT)
            left = deadline - time.monotonic()
            events = dict(waiting.poll(1000 * left)) if left > 0 else {}
            if not events:
                raise Lost(f"it did not come back within {seconds} seconds")
            if into in events:
                rest = rest[self._write(into, rest) :]
            if out_of in events:
                piece = os.read(out_of, MIB)
                if not piece:
                    raise Lost("it ended the process that ran it")
                received += piece
                if reply := _reply(received, token):
                    return reply

    def _write(self, into, rest):
        try:
            return os.write(into, rest[:MIB])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise Lost("it ended the process that ran it") from None


def _reply(received, token):
    """Return (kind, payload) once all of it is there, None before."""
    if received[:16] != token[: len(received)]:
        raise Lost("it wrote into the grader's channel")
    if len(received) < HEADER:
        return None
    kind, size = struct.unpack(">cQ", received[16:HEADER])
    if size > MOST_REPLY_MIB * MIB:
        raise Lost(f"it sent more than {MOST_REPLY_MIB} MiB")
    if len(received) > HEADER + size:
        raise Lost("it wrote into the grader's channel")
    return (kind, bytes(received[HEADER:])) if len(received) == HEADER + size else None


def read_array(payload):
    """Read a `.npy` that may have been made to hurt: numbers alone, and as many as it has bytes.

    Raises
    ------
    Lost : it is not such an array
    """
    file = io.BytesIO(payload)
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError("another version")
        header = np.lib.format.read_array_header_1_0(file, max_header_size=1000)
        shape, by_columns, dtype = header
        if dtype.kind not in "biufc" or min(shape, default=0) < 0:
            raise ValueError("not numbers")
        flat = np.frombuffer(payload, dtype, offset=file.tell())
        return flat.reshape(shape, order="F" if by_columns else "C")
    except Exception:
        raise Lost("it sent something that is not an array of numbers") from None

"""Inside the sandbox: load a hand-in, call its functions, answer with `.npy` and nothing else.

    python worker.py FOLDERS MEMORY_MIB [torch] [nobody]

FOLDERS hold the `tutorial_lib` and the packages that students may import; `nobody` is whom root
becomes. The first request brings a filter of system calls, or nothing where there is no sandbox.
Requests come by standard input, replies go by standard output, both in the form that `sandbox`
describes. What a reply says is the word of the student's code: whoever reads it believes nothing
but a right value.
"""

import ctypes
import io
import json
import os
import resource
import struct
import sys
import tempfile
import types
import warnings

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), *sys.argv[1].split(os.pathsep)]

import numpy as np  # noqa: E402
import worker_cells as cells  # noqa: E402
import worker_shell  # noqa: E402
from worker_silence import SilentModuleFinder  # noqa: E402

if "torch" in sys.argv:
    import torch

    torch.set_num_threads(1)

NOBODY = 65534
MIB = 2**20
DEEPEST = 10_000  # calls within calls; with more, Python 3.13.0 can end where memory does
REPLY_MIB = 32
MOST_CELLS = 9999
FILE_MIB = 64  # of one file that a hand-in writes, and of all together


def set_resource_limits(memory_mib):
    """Set the limits that no later code can raise again; give up being root."""
    limits = {
        "AS": memory_mib * MIB,
        "CPU": 600,
        "FSIZE": FILE_MIB * MIB,
        "NOFILE": 32,
        "NPROC": 0,
        "CORE": 0,
        "MSGQUEUE": 0,
    }
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    if "nobody" in sys.argv:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def leave_uncompiled(function=None, **options):
    """Stand in for `torch.compile`, whose compilers are not here: the function stays as it is."""
    return leave_uncompiled if function is None else function


def install_stand_ins():
    """Put what is quiet or limited here into the place of what a hand-in asks for.

    Calls within calls are limited to DEEPEST, beyond which Python raises on every version. Without
    that a recursion that has no end fills the memory, and where that ends Python 3.11 raises an
    error, while 3.13.0 is ended by the system together with all that a hand-in has right.
    """
    real_limit = sys.setrecursionlimit
    sys.setrecursionlimit = lambda deepest: real_limit(min(deepest, DEEPEST))
    sys.meta_path.insert(0, SilentModuleFinder)
    if "torch" in sys.argv:
        torch.set_num_threads = torch.set_num_interop_threads = lambda number: None
        torch.compile = leave_uncompiled
    else:
        SilentModuleFinder.hidden = ("torch",)


def install_seccomp_filter(program):
    """Lay a filter of system calls over this process, which has one thread; it stays for good."""
    lines = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HP", len(program) // 8, ctypes.addressof(lines))  # struct sock_fprog
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.c_char_p(filter_), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def receive(channel):
    """Return (token, payload) of the next request; ends the process when there is none."""
    header = channel.read(24)
    if len(header) < 24:
        os._exit(0)
    token, size = struct.unpack(">16sQ", header)
    return token, channel.read(size)


def send(channel, token, kind, payload=b""):
    """Send a reply."""
    channel.write(struct.pack(">16scQ", token, kind, len(payload)) + payload)
    channel.flush()


class HandIn:
    """A notebook whose cells are run one by one, and its functions called.

    `functions` : names that are graded
    `handed_out` : sources of cells that are not the student's own, of which nothing is remarked
    `content` : the bytes of the notebook
    """

    def __init__(self, functions, handed_out, content):
        self.functions, self.handed_out, self.cells = functions, set(handed_out), {}
        os.chdir(tempfile.mkdtemp())
        self.shell = worker_shell.Shell.instance(functions=functions)
        self.space = self.shell.user_ns
        why = "json"
        try:
            book = self.notebook = cells.parse_notebook(content)
            why = "cells"
            self.cells, self.shell.newer = cells.code_cells(book), cells.newer_python_version(book)
        except (ValueError, RecursionError):
            self.begun = {"unreadable": why}
            return
        many = len(self.cells) > MOST_CELLS
        self.begun = {"unreadable": "many"} if many else {"cells": list(self.cells)}

    def loading_report(self):
        """Return what there is to say of it once its cells were run."""
        missing = [name for name in self.functions if not callable(self.space.get(name))]
        if missing == self.functions and cells.is_foreign(self.notebook):
            return {"unreadable": "kernel"}
        own = {n for n, source in self.cells.items() if source.strip() not in self.handed_out}
        remarks = [remark for remark in self.shell.remarks if remark[0] in own]
        return {
            "remarks": [*remarks, *self.shell.redefinition_remarks()][:20],
            "missing": missing,
            "defined": self.defined_functions()[:50] if missing else [],
            "cells": len(self.cells),
        }

    def defined_functions(self):
        """Return the names of the functions that the cells have defined."""
        found = [n for n, value in self.space.items() if isinstance(value, types.FunctionType)]
        return sorted(name for name in found if worker_shell.is_cell(self.space[name].__code__))


def call(function, arguments):
    """Call a function of the hand-in; return the kind of the reply and its payload."""
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments)
        if value is None:
            return b"n", b""
        warnings.simplefilter("ignore")
        try:
            array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
            kind = array.dtype.kind
        except (ValueError, TypeError, RuntimeError):
            kind = "O"
        if not isinstance(kind, str) or kind not in "biufc":
            return b"s" if isinstance(value, tuple | list) else b"o", b""
        if array.nbytes > REPLY_MIB * MIB:
            return b"l", b""
        return b"v", as_file(array)
    except BaseException as error:
        cell, line = worker_shell.cell_and_line_of(error)
        return b"e", f"{type(error).__name__[:60]} {cell} {line}".encode(errors="replace")


def read_call_arguments(npz_bytes, ask):
    """Return the arguments of a call: arrays, or tensors where torch is there, numbers, functions.

    A text is the number of a function that stays with the grader, whom `ask` asks for its values.
    """
    with np.load(io.BytesIO(npz_bytes), allow_pickle=False) as file:
        arrays = [file[name] for name in file.files]
    given = torch.from_numpy if "torch" in sys.argv else np.asarray
    found = [array.item() if array.ndim == 0 else given(array) for array in arrays]
    return [grader_function(int(a), ask) if isinstance(a, str) else a for a in found]


def grader_function(number, ask):
    """Return a function that stands for one of the grader's."""

    def implementation(*given, **named):
        values = *given, *named.values()
        files = [b"" if value is None else as_file(np.asarray(value)) for value in values]
        sizes = [*zip([""] * len(given) + [*named], map(len, files), strict=True)]
        reply = ask(json.dumps([number, sizes]).encode() + b"\0" + b"".join(files))
        if reply[:1] == b"e":
            raise ValueError(reply[1:].decode())
        return np.load(io.BytesIO(reply[1:]), allow_pickle=False)

    return implementation


def as_file(array):
    """Return an array as the bytes of a `.npy`."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def send_value(function, packed, token, channels):
    """Call a function of the hand-in, which may ask in between, and reply to the last request."""

    def ask(question):
        nonlocal token
        send(channels[1], token, b"f", question)
        token, found = receive(channels[0])
        return found

    reply = call(function, read_call_arguments(packed, ask))
    send(channels[1], token, *reply)


def handle_cell_request(hand_in, request, content):
    """Do what is asked of the cells; return the hand-in, and what there is to say."""
    if "functions" in request:
        hand_in = HandIn(content=content, **request)
        return hand_in, hand_in.begun
    if "cell" in request:
        number, seconds = request["cell"], request["seconds"]
        hand_in.shell.run_numbered(number, hand_in.cells[number], seconds)
        return hand_in, b""  # which needs nothing that a cell could have changed
    return hand_in, hand_in.loading_report()


def main():
    """Answer requests until there is none."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    install_stand_ins()
    token, program = receive(requests)
    set_resource_limits(int(sys.argv[2]))
    if program:
        install_seccomp_filter(program)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    send(replies, token, b"r")
    hand_in = None
    while True:
        token, payload = receive(requests)
        name, _, packed = payload.partition(b"\0")
        if name:
            send_value(hand_in.space.get(name.decode()), packed, token, (requests, replies))
        else:
            asked, _, content = packed.partition(b"\0")
            hand_in, account = handle_cell_request(hand_in, json.loads(asked), content)
            send(replies, token, b"a", account and json.dumps(account).encode())


if __name__ == "__main__":
    main()

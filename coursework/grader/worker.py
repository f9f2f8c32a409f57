"""Inside the sandbox: load a hand-in, call its functions, answer with `.npy` and nothing else.

    python worker.py FOLDERS MEMORY_MIB [torch] [nobody]

FOLDERS hold the `tutorial_lib` and the packages that students may import; `nobody` is whom root
becomes. The first request brings a filter of system calls, or nothing where there is no sandbox.
Requests come by standard input, replies go by standard output, both in the form that `sandbox`
describes. What a reply says is the word of the student's code: whoever reads it believes nothing
but a right value.
"""

import __future__

import ast
import ctypes
import importlib.machinery
import importlib.util
import inspect
import io
import json
import linecache
import opcode
import os
import re
import resource
import struct
import sys
import tempfile
import threading
import time
import types
import warnings

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), *sys.argv[1].split(os.pathsep)]

import needed  # noqa: E402
import numpy as np  # noqa: E402

if "torch" in sys.argv:
    import torch

    torch.set_num_threads(1)

NOBODY = 65534
MIB = 2**20
DRAW = ("IPython", "google", "ipywidgets", "matplotlib", "mpl_toolkits", "plotly", "pylab")
DRAW += ("seaborn",)
PYPLOT = ("pylab", "matplotlib.pylab", "matplotlib.pyplot")  # of which people import all names
DRAWN = "annotate axes axhline axis axvline bar cla clf close cm colorbar contour contourf draw "
DRAWN += "errorbar figure fill_between gca gcf grid hist hlines imshow ioff ion legend loglog "
DRAWN += "matshow pause pcolormesh plot plt rcParams savefig scatter semilogx semilogy show stem "
DRAWN += "style subplot subplots suptitle text tight_layout title vlines xlabel xlim xticks ylabel "
DRAWN += "ylim yticks"
PYTHONS = ("abs", "bool", "max", "min", "pow", "round")  # names that pylab leaves to Python
PASS_ON = ("icecream", "tqdm")
PRINT = tuple(f"tutorial_lib.{name}" for name in ("checks", "elements", "figures", "practice"))
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "neg")
OPERATORS += ("pos", "abs", "round", "lt", "le", "gt", "ge")
DEEPEST = 10_000  # calls within calls; with more, Python 3.13.0 can end where memory does
OWN = re.compile(r"cell \d{1,4}")  # the file of a cell's code
REPLY_MIB = 32
FILE_MIB = 64  # of one file that a hand-in writes, and of all together
REAL_LIMIT = sys.setrecursionlimit


class Silence(types.ModuleType):
    """Stands in for what draws, prints or is the notebook's: whatever is asked of it does nothing.

    It is empty and false, and as many things as an assignment takes apart: n, bins, bars = hist().
    """

    __path__ = ()

    def __init__(self, *args, **options):
        super().__init__("silence")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.divided if name == "subplots" else self

    def divided(self, nrows=1, ncols=1, *args, squeeze=True, **options):
        """Return what `subplots` does: of a module (figure, axes), of a figure axes alone."""
        axes = np.empty((nrows, ncols), object)
        for place in np.ndindex(axes.shape):
            axes[place] = Silence()
        if squeeze:
            axes = axes.item() if axes.size == 1 else axes.squeeze()
        return axes if self.__spec__ is None else (Silence(), axes)

    def __call__(self, *args, **options):
        """Return what is silent, too, and is no module; of a decorated function the function."""
        decorates = len(args) == 1 and not options and isinstance(args[0], types.FunctionType)
        silent = self if self.__spec__ is None else Silence()
        return args[0] if decorates else silent

    def __iter__(self):
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        return iter([self] * (code[at + 1] if code[at] == opcode.opmap["UNPACK_SEQUENCE"] else 0))

    def __len__(self):
        return 0

    __int__ = __len__

    def __float__(self):
        return 0.0

    def __format__(self, form):
        return ""

    def __getitem__(self, key):
        return self

    def __setitem__(self, key, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __mro_entries__(self, bases):
        return (type("Silent", (Silence,), {}),)  # one for each base, which may be twice the same


for _operator in OPERATORS:
    for _side in ("", "r", "i"):
        setattr(Silence, f"__{_side}{_operator}__", Silence.__call__)


class PassOn(Silence):
    """Stands in for what shows something and hands it on, as a bar of progress does."""

    def __getattr__(self, name):
        return range if name == "trange" else super().__getattr__(name)

    def __call__(self, *args, **options):
        """Return the first argument."""
        return args[0] if args else self


class Shell(Silence):
    """The notebook's IPython, of which only written files and new folders do something.

    Parameters
    ----------
    space : dict, the variables of all cells
    """

    def __init__(self, space):
        super().__init__()
        self.space = space

    def run_cell_magic(self, magic, line, cell):
        """Write the file of a cell."""
        words = line.split()
        if magic in ("writefile", "file") and words:
            with open(words[-1].strip("'\""), "a" if "-a" in words else "w") as file:
                file.write(cell)
        return self

    def run_line_magic(self, magic, line, *more):
        """Run a file that a cell has written, or make folders."""
        if magic == "run":
            path = line.strip().strip("'\"")
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), self.space)
        return self.system(f"mkdir {line}") if magic == "mkdir" else self

    def system(self, line):
        """Make folders; of the shell there is nothing else."""
        command, *words = line.split() or [""]
        for word in words if command == "mkdir" else ():
            if not word.startswith("-"):
                os.makedirs(word.strip("'\""), exist_ok=True)
        return self


class Silencer:
    """Finds the modules that are silent here, any module below them, and those that are written."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Return the spec of a silent module, or None."""
        if f"{name}.".startswith(tuple(f"{known}." for known in DRAW + PRINT + PASS_ON)):
            return importlib.machinery.ModuleSpec(name, cls, is_package=True)
        file = f"{name.replace('.', os.sep)}.py"
        return importlib.util.spec_from_file_location(name, file) if os.path.isfile(file) else None

    @staticmethod
    def create_module(spec):
        """Return the module."""
        return PassOn() if spec.name.partition(".")[0] in PASS_ON else Silence()

    @staticmethod
    def exec_module(module):
        """Give it the names that `import *` takes: it cannot ask for others."""
        if module.__spec__.name in PYPLOT:
            names = {name: getattr(module, name) for name in DRAWN.split()}
            for part in (np, np.fft, np.random, np.linalg) if "lab" in module.__spec__.name else ():
                names |= {n: getattr(part, n) for n in part.__all__ if n not in PYTHONS}
            vars(module).update(names)
            module.np = np


def limit(memory_mib):
    """Set the limits that no later code can raise again; give up being root."""
    limits = {
        "AS": memory_mib * MIB,
        "CPU": 120,
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


def tame_torch():
    """Leave to torch no threads and no compilers."""
    torch.set_num_threads = torch.set_num_interop_threads = lambda number: None
    torch.compile = leave_uncompiled


def limit_recursion(deepest):
    """Set the limit of calls within calls, up to DEEPEST: beyond it Python raises on every version.

    Without it a recursion that has no end fills the memory, and where that ends Python 3.11 raises
    an error, while 3.13.0 is ended by the system together with all that a hand-in has right.
    """
    REAL_LIMIT(min(deepest, DEEPEST))


def refuse_calls(program):
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


class Kernel:
    """Runs cells one after the other, as a notebook's kernel does.

    Parameters
    ----------
    space : dict, the variables of all cells
    """

    def __init__(self, space):
        self.space, self.flags, self.lacking = space, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, set()
        self.shown = None

    def run(self, number, statement, *, last=False):
        """Run a statement of a cell; return whether the cell goes on, and its error or None.

        Of the last one of a cell the value is `_`, as long as the hand-in gives `_` no other.
        """
        try:
            self._execute(statement, f"cell {number}", last=last)
        except BaseException as error:
            goes_on, kind = self._is_ours(error), type(error)
            if goes_on and issubclass(kind, NameError) and self._bared(statement):
                return self.run(number, statement, last=last)
            if goes_on:
                self.lacking |= needed.bound(statement)
            return goes_on, error
        return True, None

    def _execute(self, statement, name, *, last):
        shows = last and isinstance(statement, ast.Expr)
        tree = ast.Expression(statement.value) if shows else ast.Module([statement], [])
        code = compile(tree, name, "eval" if shows else "exec", self.flags, dont_inherit=True)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for feature in statement.names:
                self.flags |= getattr(__future__, feature.name).compiler_flag
        value = eval(code, self.space)
        if code.co_flags & inspect.CO_COROUTINE:
            value = run_until_complete(value)
        if shows and value is not None and self.space.get("_") is self.shown:
            self.space["_"] = self.shown = value

    def _bared(self, statement):
        """Take from a definition what names a missing package and changes no value it returns.

        These are annotations and decorators. Return whether there was any.
        """
        before, lacking = ast.dump(statement), self.lacking
        for node in ast.walk(statement):
            if isinstance(node, needed.DEFINES):
                node.decorator_list = [d for d in node.decorator_list if not names(d) & lacking]
            if isinstance(node, needed.FUNCTIONS):
                node.returns = None
            if isinstance(node, ast.arg):
                node.annotation = None
        return isinstance(statement, needed.DEFINES) and ast.dump(statement) != before

    def _is_ours(self, error):
        """Whether a cell ends early for what is missing here and is there on a student's machine.

        That is a package, a file, an answer to a question, memory, a thread, a withheld function,
        and what an earlier statement would have made of these.
        """
        kind = type(error)  # `isinstance` asks an error of the hand-in's own what it is
        if issubclass(kind, NameError):
            return said(NameError.name, error, str) in self.lacking
        if issubclass(kind, NotImplementedError):
            return is_library(error)
        if issubclass(kind, RuntimeError):
            return list(frames(error))[-1][0] == threading.__file__
        return issubclass(kind, ImportError | OSError | EOFError | MemoryError)


def names(node):
    """Return the names in a part of a statement."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def run_until_complete(coroutine):
    """Run what a cell awaits, in an event loop that needs no socket."""
    import asyncio

    class Loop(asyncio.BaseEventLoop):
        _selector = types.SimpleNamespace(select=lambda wait: time.sleep(wait or 0) or ())

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    loop = Loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(coroutine)


def said(part, error, kind):
    """Return a part of an error if it is of a kind, else the empty one; its class may lie."""
    value = part.__get__(error)
    return value if type(value) is kind else kind()


def frames(error):
    """Yield (file, line) of an error's way, the innermost last; a cell's file is its name."""
    step = BaseException.__traceback__.__get__(error)
    while step is not None:
        yield step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next


def is_library(error):
    """Whether `tutorial_lib` itself raised an error."""
    *_, (file, _) = frames(error)
    return f"{os.sep}tutorial_lib{os.sep}" in file


def place(error):
    """Return (number of the cell, line) of the innermost line of a hand-in, zeros where none is."""
    is_syntax = issubclass(type(error), SyntaxError)
    at = [(0, said(SyntaxError.lineno, error, int) if is_syntax else 0)]
    at += [(int(file[5:]), line) for file, line in frames(error) if OWN.fullmatch(file)]
    return at[-1]


def load(content, asked, space):
    """Run what the functions need, or every cell; return the account for the report.

    The student's own cells decide: where those that were handed out are all that seems not to
    matter, they stay out. What is remarked is of cells that seem to matter.
    """
    functions = asked["functions"]
    try:
        notebook = json.loads(as_text(content), parse_int=as_integer)
    except (ValueError, RecursionError):
        return {"unreadable": "json"}
    try:
        cells = needed.code_cells(notebook)
    except ValueError:
        return {"unreadable": "cells"}
    chosen, remarks = needed.needed(cells, functions)
    matter = {number for number, _ in chosen}
    left = {cell.source.strip() for cell in cells if cell.number not in matter}
    whole = left <= set(asked["handed_out"])
    if asked["every"] and not whole:
        chosen, _ = needed.needed(cells, functions, every=True)
    keep_lines(cells)
    remarks += [remark for remark in run_all(Kernel(space), chosen) if remark[0] in matter]
    missing = [name for name in functions if not callable(space.get(name))]
    if missing == functions and is_foreign(notebook):
        return {"unreadable": "kernel"}
    defined = needed.functions_of(cells) if missing else []
    account = {"remarks": remarks[:20], "missing": missing, "defined": defined[:50]}
    account |= {"in_text": needed.in_text(notebook, missing)}
    return account | {"whole": whole, "cells": len(cells), "python": python_of(notebook)}


def keep_lines(cells):
    """Let `inspect.getsource` find the text of what cells define."""
    for cell in cells:
        name, lines = f"cell {cell.number}", cell.source.splitlines(keepends=True)
        linecache.cache[name] = len(cell.source), None, lines, name


def run_all(kernel, chosen):
    """Run statements of cells; return what is to remark on them."""
    remarks, ended = [], set()
    last = dict(chosen)
    for number, statement in chosen:
        if number in ended:
            continue
        goes_on, error = kernel.run(number, statement, last=statement is last[number])
        if issubclass(type(error), ModuleNotFoundError) and goes_on:
            remark = number, "package", said(ImportError.name, error, str).partition(".")[0]
            remarks += [remark] if remark not in remarks else []
        elif error is not None:
            remarks.append((number, "raised", needed.told(error, place(error)[1])))
        ended |= set() if goes_on else {number}
    return remarks


def as_text(content):
    """Return a file's text: UTF-8, UTF-16 or UTF-32, with a mark at its beginning or without."""
    return content.decode(json.detect_encoding(content), "replace")


def as_integer(digits):
    """Return an integer of JSON, 0 for one that is longer than Python reads or a notebook needs."""
    return int(digits) if len(digits) < 20 else 0


def metadata(notebook, name):
    """Return a part of what a notebook says of itself, {} where it has not the form of one."""
    found = notebook.get("metadata")
    part = found.get(name) if isinstance(found, dict) else None
    return part if isinstance(part, dict) else {}


def is_foreign(notebook):
    """Whether a notebook says that it is in another language than Python."""
    for part in (metadata(notebook, "kernelspec"), metadata(notebook, "language_info")):
        said = part.get("language", part.get("name"))
        if isinstance(said, str) and said and "python" not in said.lower():
            return True
    return False


def python_of(notebook):
    """Return n where a notebook says that it ran on Python 3.n, and 0 where it does not."""
    found = re.match(r"3\.(\d{1,2})\b", str(metadata(notebook, "language_info").get("version")))
    return int(found[1]) if found else 0


def call(function, arguments):
    """Call a function of the hand-in; return the kind of the reply and its payload."""
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments)
        if value is None:
            return b"n", b""
        warnings.simplefilter("ignore")
        value, kind = as_array(value)
        if kind != b"v":
            return kind, b""
        file = io.BytesIO()
        np.lib.format.write_array(file, value, allow_pickle=False)
        return b"v", file.getvalue()
    except BaseException as error:
        cell, line = place(error)
        return b"e", f"{type(error).__name__[:60]} {cell} {line}".encode(errors="replace")


def as_array(value):
    """Return a returned value as an array, and the kind of the reply."""
    try:
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
        kind = array.dtype.kind
    except (ValueError, TypeError, RuntimeError):
        array, kind = None, "O"
    if not isinstance(kind, str) or kind not in "biufc":
        return array, b"s" if isinstance(value, tuple | list) else b"o"
    return array, b"l" if array.nbytes > REPLY_MIB * MIB else b"v"


def unpack(packed):
    """Return the arguments of a call: arrays, or tensors where torch is there, and numbers."""
    arguments = []
    with np.load(io.BytesIO(packed), allow_pickle=False) as file:
        for name in file.files:
            array = file[name]
            if array.ndim == 0:
                arguments.append(array.item())
            else:
                arguments.append(torch.from_numpy(array) if "torch" in sys.argv else array)
    return arguments


def begin_notebook():
    """Make a notebook the main program, as in a kernel; return the variables of all its cells."""
    sys.modules["__main__"] = notebook = types.ModuleType("__main__")
    shell = Shell(vars(notebook))
    vars(notebook).update(display=Silence(), get_ipython=lambda: shell)
    return vars(notebook)


def tame():
    """Put what is quiet or limited here into the place of what a hand-in asks for."""
    sys.meta_path.insert(0, Silencer)
    sys.modules.setdefault("torch", None)  # not in a task for NumPy: importing it raises
    sys.setrecursionlimit = limit_recursion
    if "torch" in sys.argv:
        tame_torch()


def main():
    """Answer requests until there is none."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    tame()
    token, program = receive(requests)
    limit(int(sys.argv[2]))
    if program:
        refuse_calls(program)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    send(replies, token, b"r")
    space = {}
    while True:
        token, payload = receive(requests)
        name, _, packed = payload.partition(b"\0")
        if name:
            send(replies, token, *call(space.get(name.decode()), unpack(packed)))
            continue
        send(replies, token, b"r")
        token, content = receive(requests)
        os.chdir(tempfile.mkdtemp())
        space = begin_notebook()
        account = load(content, json.loads(packed), space)
        del content
        send(replies, token, b"a", json.dumps(account).encode())


if __name__ == "__main__":
    main()

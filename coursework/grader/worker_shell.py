"""A hand-in's cells, run once in IPython's own shell: no history, no kernel, no thread.

A cell that raises loses itself, and where only the sandbox is to blame a single statement.
"""

import ast
import asyncio
import dis
import os
import re
import signal
import threading
import time
import types
from collections import defaultdict

from IPython.core.compilerop import CachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from worker_silence import Silent

OWN = re.compile(r"cell \d{1,4}")  # the file of a cell's code
PYLAB = "import numpy, numpy as np, matplotlib.pyplot as plt\nfrom pylab import *"
NOTHING = ("config", "conda", "gui", "mamba", "matplotlib", "pip", "uv")  # magics that do nothing
NOTHING += ("bash", "perl", "pypy", "python", "python2", "python3", "ruby", "script", "sh")
AGAIN_S = 1  # a cell that takes the end of its time for an error of its own is ended again


class OutOfTime(KeyboardInterrupt):
    """What ends a cell that takes too long, as its student would end it."""


class Compiler(CachingCompiler):
    """Names the file of a cell after its number, so that `inspect` and a report find its lines."""

    number = 0

    def get_code_name(self, *texts):
        """Return the name."""
        return f"cell {Compiler.number}"


class Shell(InteractiveShell):
    """IPython's shell, in which commands and errors show nothing.

    `functions` : names that are graded: a definition that does nothing never replaces one of them
    `newer` : the Python that the notebook names, "" where it is no newer than this one
    """

    def __init__(self, functions=(), **options):
        super().__init__(compiler_class=Compiler, **options)
        self.loop_runner = run_until_complete
        self.functions, self.definitions, self.remarks = functions, defaultdict(list), []
        self.timeit = self.find_line_magic("timeit")
        for magics in self.magics_manager.magics.values():
            magics.update(dict.fromkeys(NOTHING, self.nothing), timeit=self.time_once)

    def init_history(self):
        """Keep no history, which would be a database and a thread."""
        self.history_manager = HistoryManager(shell=self, parent=self, enabled=False)

    def run_numbered(self, number, source, seconds):
        """Run a cell, for so many seconds of processor time; remark on what it raises."""
        Compiler.number = number
        signal.signal(signal.SIGPROF, end_the_cell)
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_S)
        try:
            result = self.run_cell(source, store_history=True)
            found = ("syntax", result.error_before_exec), ("raised", result.error_in_exec)
        except BaseException as error:  # time may end behind the cell, too
            found = (("raised", error),)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for kind, error in found:
            if error is not None:
                self.remark(kind, error_text(error))

    def remark(self, kind, words=""):
        """Note something of the cell that runs, once; what a newer Python may have is told so."""
        if self.newer and (kind == "syntax" or "ImportError" in words):
            kind, words = "newer", f"{self.newer}, {words}"
        remark = (Compiler.number, kind, words)
        self.remarks += [remark] if remark not in self.remarks else []

    async def run_code(self, code_obj, result=None, *, async_=False):
        """Run a statement; where only the sandbox is to blame for its error, go on behind it.

        The names that it would have bound stand for things that do nothing, as far as they are new.
        """
        failed = await super().run_code(code_obj, result, async_=async_)
        error = result.error_in_exec if failed and result is not None else None
        if error is None or not is_fault_of_sandbox(error):
            return failed
        result.error_in_exec = None
        if issubclass(type(error), ModuleNotFoundError):
            self.remark("package", attribute(ImportError.name, error, str).partition(".")[0])
        else:
            self.remark("raised", error_text(error))
        for line in dis.get_instructions(code_obj):
            if line.opname in ("STORE_NAME", "STORE_GLOBAL"):
                self.user_ns.setdefault(line.argval, Silent())
        return False

    def transform_ast(self, node):
        """Take out definitions that do nothing where there is one; note where they all stand."""
        node = super().transform_ast(node)
        node.body = [statement for statement in node.body if not self.is_stub(statement)]
        return node

    def is_stub(self, statement):
        """Whether a statement would replace a graded function by one that does nothing."""
        name = getattr(statement, "name", None)
        if name not in self.functions:
            return False
        numbers = self.definitions[name]
        idle = does_nothing(statement) and (name in self.user_ns or bool(numbers))
        numbers.insert(0 if idle else len(numbers), Compiler.number)
        return idle

    def redefinition_remarks(self):
        """Return remarks on functions that are defined more than once, of which the last counts."""
        found = []
        for name, (*others, last) in self.definitions.items():
            cells = ", ".join(map(str, sorted({*others} - {last})))
            where = f"code cell {cells}" if cells else "the same cell"
            found += [(last, "again", f"{name}; also in {where}")] if others else []
        return found

    def nothing(self, *words, **options):
        """Do nothing, as a magic or a command for which the sandbox has no use."""
        self.remark("magic")
        return Silent()

    def _find_with_lazy_load(self, kind, name):
        return super()._find_with_lazy_load(kind, name) or self.nothing

    def time_once(self, line, cell=None, local_ns=None):
        """Run what `%timeit` is given once, or as often as it says."""
        once = "" if re.search(r"(^|\s)-[nr]", line) else "-n1 -r1 "
        return self.timeit(once + line, cell, local_ns)

    time_once.needs_local_scope = True

    def system(self, line):
        """Make folders; of the system's commands there is nothing else."""
        command, *words = line.split() or [""]
        for word in words if command == "mkdir" else ():
            if not word.startswith("-"):
                os.makedirs(word.strip("'\""), exist_ok=True)
        return self.nothing()

    getoutput = nothing

    def enable_pylab(self, *words, **options):
        """Give the names of pylab, which draw nothing."""
        exec(PYLAB, self.user_ns)
        return None, "inline", []

    def showtraceback(self, *words, **options):
        """Show nothing: nobody sees it, and it would take time."""

    showsyntaxerror = showindentationerror = showtraceback

    def _format_exception_for_storage(self, *words, **options):
        return {}


def end_the_cell(number, frame):
    """End a cell."""
    raise OutOfTime("its time was used up")


def run_until_complete(coroutine):
    """Run what a cell awaits, in an event loop that needs no socket."""

    class Loop(asyncio.BaseEventLoop):
        _selector = types.SimpleNamespace(select=lambda wait: time.sleep(wait or 0) or ())

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    loop = Loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(coroutine)


def does_nothing(statement):
    """Whether a definition is a stub, such as that of the hand-out: it is not done yet."""
    if not isinstance(statement, ast.FunctionDef) or statement.decorator_list:
        return False
    for line in statement.body:
        match line:
            case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
                continue
            case ast.Raise(ast.Name("NotImplementedError")):
                continue
            case ast.Raise(ast.Call(ast.Name("NotImplementedError"))):
                continue
        return False
    return True


def is_fault_of_sandbox(error):
    """Whether a statement ends early for what is missing here and is there on a student's machine.

    That is a package, a file, an answer to a question, memory, a thread or a withheld function.
    """
    kind = type(error)  # `isinstance` asks an error of the hand-in's own what it is
    file = [code.co_filename for code, _ in frames(error)][-1]
    if issubclass(kind, NotImplementedError):
        return f"{os.sep}tutorial_lib{os.sep}" in file
    if issubclass(kind, RuntimeError):
        return file == threading.__file__
    return issubclass(kind, ImportError | OSError | EOFError | MemoryError)


def attribute(descriptor, error, expected_type):
    """Return a part of an error if it is of a kind, else the empty one; its class may lie."""
    value = descriptor.__get__(error)
    return value if type(value) is expected_type else expected_type()


def frames(error):
    """Yield (code, line) of an error's way, the innermost last."""
    step = BaseException.__traceback__.__get__(error)
    while step is not None:
        yield step.tb_frame.f_code, step.tb_lineno
        step = step.tb_next


def is_cell(code):
    """Whether code stands in a cell."""
    return OWN.fullmatch(code.co_filename) is not None


def cell_and_line_of(error):
    """Return (number of the cell, line) of the innermost line of a hand-in, zeros where none is."""
    is_syntax = issubclass(type(error), SyntaxError)
    at = [(0, attribute(SyntaxError.lineno, error, int) if is_syntax else 0)]
    at += [(int(code.co_filename[5:]), line) for code, line in frames(error) if is_cell(code)]
    return at[-1]


def error_text(error):
    """Return what Python says of an error, and in which line of the cell, in 200 characters."""
    line = cell_and_line_of(error)[1]
    where = f"line {line}: " if line else ""
    try:
        return f"{where}{type(error).__name__}: {getattr(error, 'msg', None) or error}"[:200]
    except BaseException:  # what a hand-in's own error does when it is asked for its text
        return f"{where}an error without a text"

"""Run one code cell as a notebook does, and hand what it shows to the page.

`run-worker.js` calls `run_cell` in Pyodide; the tests call it in the book's own Python, with every
cell of the chapters that run in the page.
"""

import ast
import builtins
import contextlib
import io
import linecache
import time
import traceback
from html import escape

PAUSE = 0.1  # seconds between two portions, so that a loop that prints cannot flood the page
MOST = 20_000  # characters that one cell may print


class Outputs:
    """What a cell shows, in order: portions of one kind are joined before they are sent.

    Parameters
    ----------
    send : function of a kind, "stdout", "stderr", "html", "text", "error" or "live 1", "live 2"
        and so on, and a text
    """

    def __init__(self, send):
        self.send, self.waiting, self.sent, self.length = send, [], time.monotonic(), 0
        self.places = 0

    def put(self, kind, text):
        """Take a text; what a cell prints beyond MOST characters is left out, and that is said."""
        is_last = False
        if kind.startswith("std"):
            room = MOST - self.length
            self.length += len(text)
            if room < 0:
                return
            is_last = len(text) > room
            text = text[:room] + "\n… The rest is not shown.\n" if is_last else text
        if self.waiting and self.waiting[-1][0] == kind:
            self.waiting[-1][1].append(text)
        else:
            self.waiting.append((kind, [text]))
        if is_last or time.monotonic() - self.sent > PAUSE:  # after the last nothing comes
            self.flush()

    def flush(self):
        """Send what waits."""
        for kind, texts in self.waiting:
            self.send(kind, "".join(texts))
        self.waiting, self.sent = [], time.monotonic()


class Place:
    """Where one value is shown after the other, as IPython's `display` returns it."""

    def __init__(self, outputs):
        outputs.places += 1
        self.outputs, self.kind = outputs, f"live {outputs.places}"

    def update(self, value):
        """Show a value in place of the last."""
        kind, text = _written(value)
        self.outputs.flush()
        self.outputs.send(self.kind, text if kind == "html" else f"<pre>{escape(text)}</pre>")


class Stream(io.TextIOBase):
    """A standard stream that writes to the page."""

    def __init__(self, kind, outputs):
        super().__init__()
        self.kind, self.outputs = kind, outputs

    def write(self, text):
        """Hand a text on."""
        self.outputs.put(self.kind, text)
        return len(text)


def run_cell(source, name, namespace, send):
    """Run a cell, show what it prints and the value of its last line, and return whether it ended.

    Parameters
    ----------
    source : str, the code
    name : str, how a traceback names the cell
    namespace : dict, the variables of all cells
    send : see Outputs
    """
    file = f"<{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    outputs = Outputs(send)
    printed, warned = Stream("stdout", outputs), Stream("stderr", outputs)
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(warned),
        _displaying(outputs),
    ):
        try:
            _show(_run(source, file, namespace), outputs)
        except BaseException as error:
            outputs.put("error", _explain(error, file))
            return False
        finally:
            outputs.flush()
    return True


def _run(source, file, namespace):
    """Run all lines; return the value of the last if it is an expression."""
    body = ast.parse(source, file).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), file, "exec", dont_inherit=True), namespace)
    if last is not None:
        last = compile(ast.Expression(last.value), file, "eval", dont_inherit=True)
        return eval(last, namespace)
    return None


def _show(value, outputs):
    """Show a value, unless it is None."""
    if value is not None:
        outputs.put(*_written(value))


def _written(value):
    """Write a value: as HTML if it has that form, or else as Python does."""
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    if "text/html" in bundle:
        return "html", bundle["text/html"]
    return "text", repr(value)


@contextlib.contextmanager
def _displaying(outputs):
    """Give Python the `display` that notebooks have, while a cell runs."""

    def display(*values, display_id=None):
        places = [Place(outputs) for _ in values if display_id]
        for place, value in zip(places, values, strict=False):
            place.update(value)
        for value in values[len(places) :]:
            _show(value, outputs)
        return places[0] if places else None

    before = {name: value for name, value in vars(builtins).items() if name == "display"}
    builtins.display = display
    try:
        yield
    finally:
        vars(builtins).pop("display", None)
        vars(builtins).update(before)


def _explain(error, file):
    """Write a traceback that begins in the cell."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return "".join(traceback.format_exception(error.with_traceback(frames)))

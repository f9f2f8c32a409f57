"""Named mistakes: what each does wrong, how to mend it, and the edit that makes it.

A room keeps its mistakes as short diffs of the right function, in `mistakes.txt`:

    # softmax

    wrong_axis: columns sum to 1 instead of rows
        Sum along `axis`: -1 runs along a row.
        symptom: softmax-wrong-axis
        - exponentials.sum(axis=axis, keepdims=True)
        + exponentials.sum(axis=0, keepdims=True)

A section is called after the function that is checked. What a line `-` holds must stand exactly
once in the function's source, however it is spaced; several lines are one piece, and several pieces
are changed in their order. `in scale:` goes before the pieces of another function of ours, which
the right one calls. `symptom:` names the entry of the page *Symptoms* that describes how the
mistake shows in a program of one's own; many mistakes have none. `keeps: 5` says how many points of
a graded function this mistake alone leaves. `from room/function: names` takes mistakes over from
another section, with their symptoms.
"""

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType

import numpy as np

TOKEN = re.compile(r"\w+|[^\w\s]")
NOTE = re.compile(r"(symptom|keeps): ([a-z0-9-]+)")  # on a line of its own
HEAD = re.compile(r"(?P<name>[a-z0-9_]+): (?P<says>.+)")
TAKEN = re.compile(r"from ((?P<room>\w+)/)?(?P<function>\w+): (?P<names>.+)")


@dataclass(frozen=True)
class Edit:
    """A piece of a function's source, and what stands in its place.

    Parameters
    ----------
    where : name of the function that is edited; "": the right one itself
    old, new : the source
    """

    where: str
    old: str
    new: str


@dataclass(frozen=True)
class Mistake:
    """One wrong implementation.

    Parameters
    ----------
    name : short name, used by the tests
    says : what it does, a clause that a check prints behind the function's name
    mend : one sentence on how to put it right
    function : the wrong implementation of a mistake that no file holds; None: its edits make it
    edits : of the right function
    symptom : entry of the page *Symptoms*, without `symptom-`; "": none describes it
    keeps : points of a graded function that it leaves, if it is all that is wrong
    """

    name: str
    says: str
    mend: str
    function: Callable | None = None
    edits: tuple[Edit, ...] = ()
    symptom: str = ""
    keeps: int = 0

    def of(self, right):
        """Return the wrong function that it makes of the right one, as `apply_edits` does."""
        return self.function or apply_edits(right, self.edits)


def apply_edits(right, edits):
    """Return a function with edits of it, or of functions of the same package that it calls.

    Parameters
    ----------
    right : function, whose source can be read
    edits : sequence of Edit

    Raises
    ------
    ValueError : what an edit takes out is gone, or stands there more than once; `right` does not
        call the function that is edited
    """
    pieces, found = pieces_of(edits, _public_name(right)), {}
    wrong = _rebuild(inspect.unwrap(right), pieces, found)
    if left := set(pieces) - {_public_name(function) for function in found}:
        raise ValueError(
            f"{_public_name(right)} calls no function {', '.join(sorted(left))}: edit another"
        )
    return wrong


def pieces_of(edits, name):
    """Return what edits change, by function: {name: [(old, new), …]}; `name` is the right one's."""
    pieces = {}
    for edit in edits:
        pieces.setdefault(edit.where or name, []).append((edit.old, edit.new))
    return pieces


def _public_name(function):
    return function.__name__.lstrip("_")


def _rebuild(function, edits, rebuilt):
    """Return a function in which every edited one that it calls is the edited one."""
    if function in rebuilt:
        return rebuilt[function]
    rebuilt[function] = function  # where it calls itself, too
    other = _globals_with_edits(function, edits, rebuilt)
    scope = {**function.__globals__, **other} if other else function.__globals__
    changes = edits.get(_public_name(function))
    if changes:
        source = textwrap.dedent(inspect.getsource(function))
        source = replaced(source, changes, function.__name__)
        code = compile(source, f"<wrong {function.__name__}>", "exec")
        scope = {"np": np, **scope}
        exec(code, scope)
        rebuilt[function] = scope[function.__name__]
    elif scope is not function.__globals__:
        parts = function.__code__, scope, function.__name__, function.__defaults__
        rebuilt[function] = FunctionType(*parts, function.__closure__)
        rebuilt[function].__kwdefaults__ = function.__kwdefaults__
    return rebuilt[function]


def _globals_with_edits(function, edits, rebuilt):
    """Return the global names of a function that stand for something else in its wrong form."""
    scope, names = {}, _global_names(function.__code__)
    for name in names & set(function.__globals__):
        value = function.__globals__[name]
        if name == "require" or name.startswith("require_"):
            scope[name] = lambda *given, **options: None  # as in a reader's function
        elif isinstance(value, ModuleType) and _in_project(value.__name__):
            parts = {n: v for n, v in vars(value).items() if n in names and _can_be_edited(v)}
            if parts := _edited_functions(parts, edits, rebuilt):
                scope[name] = ModuleType(value.__name__)
                vars(scope[name]).update(vars(value) | parts)
        elif _can_be_edited(value):
            scope |= _edited_functions({name: value}, edits, rebuilt)
    return scope


def _global_names(code):
    inner = (const for const in code.co_consts if inspect.iscode(const))
    return set(code.co_names).union(*map(_global_names, inner))


def functions_called(function):
    """Return the functions of ours that a function calls, and those that these call, by name."""
    found, waiting = {}, [function]
    while waiting:
        scope, names = waiting[-1].__globals__, _global_names(waiting.pop().__code__)
        parts = {name: scope[name] for name in names & set(scope)}
        for module in [
            p for p in parts.values() if isinstance(p, ModuleType) and _in_project(p.__name__)
        ]:
            parts |= {name: value for name, value in vars(module).items() if name in names}
        for value in parts.values():
            if _can_be_edited(value) and _public_name(inspect.unwrap(value)) not in found:
                found[_public_name(inspect.unwrap(value))] = inspect.unwrap(value)
                waiting.append(inspect.unwrap(value))
    return found


def _in_project(module):
    return f"{module}.".startswith(("tutorial_lib.", "solution_"))  # a solution: of an assignment


def _can_be_edited(value):
    is_cached = hasattr(value, "cache_clear")  # its results are shared by right and wrong functions
    is_function = inspect.isfunction(inspect.unwrap(value))
    return is_function and not is_cached and _in_project(value.__module__)


def _edited_functions(functions, edits, rebuilt):
    """Return those of the functions that an edit reaches, in their new form."""
    pairs = {n: (f, _rebuild(inspect.unwrap(f), edits, rebuilt)) for n, f in functions.items()}
    return {name: new for name, (old, new) in pairs.items() if new is not inspect.unwrap(old)}


def replaced(source, replacements, name):
    """Return a function's source with pieces of it changed.

    Parameters
    ----------
    source : of the function that is called `name`
    replacements : (old, new) pieces of source, in the order in which they are changed
    """
    for old, new in replacements:
        start, end = _locate_unique(name, source, old)
        line = source[: start + 1].splitlines()[-1]
        margin = line[: len(line) - len(line.lstrip())] if start else ""
        source = source[:start] + textwrap.indent(new, margin).lstrip() + source[end:]
    return source


def _locate_unique(name, source, wanted_source):
    """Return where the one piece of source begins and ends that has the tokens of another."""
    tokens, wanted = list(TOKEN.finditer(source)), TOKEN.findall(wanted_source)
    texts, n = [token[0] for token in tokens], len(wanted)
    starts = [i for i in range(len(texts) - n + 1) if texts[i : i + n] == wanted]
    if len(starts) != 1:
        often = f"stands {len(starts)} times in" if starts else "is not in"
        raise ValueError(f"{wanted_source!r} {often} {name}: write the edit anew")
    return tokens[starts[0]].start(), tokens[starts[0] + n - 1].end()


def read_mistakes(path):
    """Read a file of mistakes.

    Parameters
    ----------
    path : Path of a `mistakes.txt`

    Returns
    -------
    mistakes : dict, a tuple of Mistake for each function

    Raises
    ------
    ValueError : a block that is no mistake; a name that is not there, or is used twice
    """
    sections, section = {}, None
    for block in re.split(r"\n+(?=\S)", path.read_text(encoding="utf-8").strip()):
        head, *lines = block.splitlines()
        try:
            if head.startswith("# "):
                section = sections[_require_new_name(head[2:], sections)] = {}
            elif section is None:
                raise ValueError("begin with `# function`")
            elif taken := TAKEN.fullmatch(head):
                for mistake in _inherited_mistakes(path, sections, **taken.groupdict()):
                    section[_require_new_name(mistake.name, section)] = mistake
            else:
                mistake = _parse_mistake(head, lines)
                section[_require_new_name(mistake.name, section)] = mistake
        except (LookupError, ValueError) as error:
            where = f"{path.parent.name}/{path.name}, at {head!r}"
            raise ValueError(f"{where}: {error}") from error
    return {function: tuple(section.values()) for function, section in sections.items()}


def _require_new_name(name, existing_names):
    if name in existing_names:
        raise ValueError(f"{name} stands here twice: give one of them another name")
    return name


def _inherited_mistakes(path, sections, *, room, function, names):
    """Return the mistakes that a line takes over; their edits say from now on where they are."""
    if room:
        mistakes = read_mistakes(path.parents[1] / room / path.name)[function]
        known = {mistake.name: mistake for mistake in mistakes}
    else:
        known = sections[function]
    for name in names.split(", "):
        edits = (replace(e, where=e.where or function.lstrip("_")) for e in known[name].edits)
        yield replace(known[name], edits=tuple(edits))


def _parse_mistake(head, lines):
    """Return the mistake of a block."""
    if not (first := HEAD.fullmatch(head)):
        raise ValueError("write `# function`, `name: what it does wrong` or `from function: names`")
    says, mend, edits, notes, where, last = [first["says"]], [], [], {}, "", ""
    for line in lines:
        mark, _, rest = line[4:].partition(" ")
        if line.startswith(8 * " ") and not edits:
            says.append(line.strip())
        elif mark == "-":
            old = f"{edits.pop().old}\n{rest}" if last == "-" else rest
            edits.append(Edit(where, old, ""))
        elif mark == "+":
            new = f"{edits[-1].new}\n{rest}" if last == "+" else rest
            edits[-1] = replace(edits[-1], new=new)
        elif mark == "in" and rest.endswith(":"):
            where = rest[:-1]
        elif note := NOTE.fullmatch(line.strip()):
            notes[note[1]] = note[2]
        else:
            mend.append(line.strip())
        last = mark
    if not edits or not mend:
        raise ValueError("give a sentence that mends it, and an edit")
    own = first["name"], " ".join(says), " ".join(mend), None, tuple(edits)
    return Mistake(*own, notes.get("symptom", ""), int(notes.get("keeps", 0)))


def mistake_by_name(mistakes, name):
    """Return the mistake of that name."""
    return next(mistake for mistake in mistakes if mistake.name == name)

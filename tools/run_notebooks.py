"""Run the chapters in fresh kernels and store their outputs: the only way to refresh them.

    python -m tools.run_notebooks                          every chapter
    python -m tools.run_notebooks 03_attention_weights     one of them

A chapter is run three times: as this processor runs it, and as two others would, see
`tools.blas_matrix`. A file is replaced when all of its cells have run and show the same each time,
and left untouched otherwise. A file that is given by its path is run once. A second run leaves the
bytes as they are. Whatever editor saved a file, it is stored in one form, see `normalise`; outputs
that differ from those that were stored are shown.
"""

import argparse
import copy
import html
import json
import os
import re
import sys
from difflib import unified_diff
from pathlib import Path

import nbformat
from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

SETTINGS = {"TUTORIAL_LIB_STRICT": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
CELL_TIMEOUT_S = 600  # a busy machine may take ten times as long as an idle one
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
VISIBLE_WORDS = "visible_words"  # the most words outside Deeper; the one key that authors set
FOLDED = {  # what Jupyter and the page read besides the tags, by the tag that asks for it
    "hide-output": {"jupyter": {"outputs_hidden": True}},
    "hide-cell": {
        "jupyter": {"outputs_hidden": True, "source_hidden": True},
        "mystnb": {
            "code_prompt_show": "Show a solution",
            "code_prompt_hide": "Hide the solution",
        },
    },
}
MOST_LINES = 8  # of an output that has changed, and so many such outputs
ALT = re.compile(r'role="img" aria-label="(.*?)"')  # of a figure, see its class Figure
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class CellFailed(Exception):
    """A cell raised, took too long, or took the kernel with it."""


class Unsteady(Exception):
    """A cell shows something else when it is run again."""


class Unreadable(Exception):
    """A file holds no notebook."""


class ThisPython(KernelSpecManager):
    """Offers one kernel, whatever its name: the Python that runs this file."""

    def get_kernel_spec(self, kernel_name):
        """Return the kernel of the running environment."""
        return self.kernel_spec_class(resource_dir=RESOURCES, **get_kernel_dict())


def parse_notebook(text):
    """Return the notebook that the text of a file holds, as any editor saves it.

    Raises
    ------
    Unreadable : says which line of the text is no JSON, or that it is another format
    """
    try:
        content = json.loads(text)
        list(content["cells"])
    except json.JSONDecodeError as error:
        raise Unreadable(f"{error}. Correct that line, or undo the edit.") from None
    except (KeyError, TypeError):
        raise Unreadable("it has no list of cells. Save it as a notebook of format 4.") from None
    return nbformat.reads(json.dumps(content | {"nbformat_minor": 5}), as_version=4)


def execute(notebook, folder, *, variables=SETTINGS):
    """Run every cell in a fresh kernel.

    Parameters
    ----------
    notebook : NotebookNode, not modified
    folder : the kernel's working directory
    variables : of the kernel's environment

    Returns
    -------
    executed : NotebookNode in its stored form, see `normalise`

    Raises
    ------
    CellFailed : says which cell, shows its source and the error
    """
    notebook = copy.deepcopy(notebook)
    kernel = AsyncKernelManager(kernel_spec_manager=ThisPython())
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=CELL_TIMEOUT_S,
        resources=resources,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # or each kernel warns that it listens on TCP
    )
    client.reset_execution_trackers()
    with client.setup_kernel(env=os.environ | variables, cleanup_kc=True):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                run_cell(client, cell, index)
    return normalise(notebook)


def run_cell(client, cell, index):
    """Run one cell, and say in words which one failed.

    Raises
    ------
    CellFailed : with number, id, source and error
    """
    try:
        client.execute_cell(cell, index)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        source = "\n".join("    " + line for line in cell.source.splitlines())
        stored = [output.traceback for output in cell.outputs if output.output_type == "error"]
        reason = ANSI_COLOUR.sub("", "\n".join(stored[-1] if stored else [str(error)]))
        raise CellFailed(
            f"cell {index + 1} (id {cell.id}) failed:\n\n{source}\n\n{reason}"
        ) from None


def normalise(notebook):
    """Bring a notebook into the form that is stored.

    Execution counts run from 1, metadata is what a reader's tools need and nothing else, adjacent
    pieces of one stream are joined. Cell ids and tags are kept; a cell is folded if a tag says so.

    Parameters
    ----------
    notebook : NotebookNode, modified

    Returns
    -------
    notebook : the same object
    """
    budget = {key: value for key, value in notebook.metadata.items() if key == VISIBLE_WORDS}
    notebook.metadata = nbformat.from_dict(METADATA | budget)
    code_cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    for number, cell in enumerate(code_cells, start=1):
        cell.execution_count = number
        cell.outputs = join_streams(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    for cell in notebook.cells:
        cell.source = cell.source.replace("\r\n", "\n")
        tags = cell.metadata.get("tags", [])
        folds = [FOLDED[tag] for tag in tags if tag in FOLDED]
        cell.metadata = nbformat.from_dict(({"tags": tags} if tags else {}) | (folds or [{}])[0])
    return notebook


def join_streams(outputs):
    """Join neighbouring outputs of one stream: how print calls are grouped depends on timing."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def notebook_text(notebook):
    """Return the text that is stored for a notebook."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def refresh(path, *, others=None, report=print):
    """Run one notebook and replace its file if all of its cells ran.

    Parameters
    ----------
    others : dict from other processors, in words, to the variables that make a kernel one of them;
        with each, every cell has to show the same

    Raises
    ------
    CellFailed, Unreadable, Unsteady : the file is as it was
    """
    report(path.stem)
    before = path.read_text(encoding="utf-8")
    executed = execute(parse_notebook(before), path.parent)
    for processor, variables in (others or {}).items():
        again = execute(parse_notebook(before), path.parent, variables=SETTINGS | variables)
        require_same_outputs(executed, again, processor)
    after = notebook_text(executed)
    if after != before:
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(after, encoding="utf-8")
        unfinished.replace(path)
    report("  unchanged" if after == before else "  refreshed")
    differing = changed_outputs(normalise(parse_notebook(before)), executed)
    if differing:
        cells = f"{len(differing)} of {len(executed.cells)} cells"
        show = "shows" if len(differing) == 1 else "show"
        report(f"  {cells} {show} something else than was stored. Is each change meant?")
    for lines in differing[:MOST_LINES]:
        report("\n".join(f"    {line}" for line in lines))


def require_same_outputs(executed, again, processor):
    """Require that the cells of a notebook show the same here and with another processor.

    Raises
    ------
    Unsteady : names the first cell that shows something else, with both outputs
    """
    differing = changed_outputs(executed, again)
    if differing:
        (head, *lines), *more = differing
        shown = "\n".join(f"    {line}" for line in lines)
        others = f"\nSo do {len(more)} other cells." if more else ""
        raise Unsteady(
            f"{head}\n\n{shown}\n\nThe cell shows the line with - here, and the line with + with "
            f"{processor}.{others}\nIts output depends on the processor or on chance. "
            "Show fewer digits, or a quantity that rounding does not decide: one that is far from "
            "the border of its rounding, that has one value where others are equal, and whose "
            "logarithm is not that of an error."
        )


def changed_outputs(old, new):
    """List the cells of two notebooks whose outputs differ: as lines, what went and what came."""
    old = {cell.id: cell for cell in old.cells if cell.cell_type == "code"}
    found = []
    for place, cell in enumerate(new.cells, start=1):
        if cell.cell_type == "code" and cell.id in old and _outputs(old[cell.id]) != _outputs(cell):
            texts = [_text(one).splitlines() for one in (old[cell.id], cell)]
            lines = [line for line in unified_diff(*texts, n=0, lineterm="") if line[:2] != "@@"]
            lines = lines[2:] or ["  a picture or an element"]
            if lines[MOST_LINES:]:
                lines[MOST_LINES:] = ["  …"]
            head = f"cell {place} (id {cell.id})  {cell.source.partition(chr(10))[0][:60]}"
            found.append([head, *lines])
    return found


def _outputs(cell):
    return [dict(output, execution_count=None) for output in cell.outputs]


def _text(cell):
    """Return what a cell shows as text, and the alt texts of its pictures."""
    lines = []
    for output in cell.outputs:
        data = output.get("data", {})
        lines.append(output.get("text") or data.get("text/plain", ""))
        lines += [f"alt: {html.unescape(alt)}" for alt in ALT.findall(data.get("text/html", ""))]
    return "\n".join(lines)


def are_paths(names):
    """Whether all of the arguments, and at least one, are paths and no names of chapters."""
    return bool(names) and all(Path(name).is_file() for name in names)


def find_notebooks(names):
    """Return the files that names or paths stand for; without any, all chapters.

    Raises
    ------
    FileNotFoundError : says which names there are
    """
    if are_paths(names):
        return [Path(name) for name in names]
    from tools.chapters import pages  # not above, for the same reason as below

    by_name = {page.name: page.path for page in pages()}
    paths = [by_name.get(name, Path(name)) for name in names or by_name]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no notebook {path}. Give a path, or one of {', '.join(by_name)}."
            )
    return paths


def main(arguments=None):
    """Run the notebooks named on the command line; 0 when all of them ran."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="chapters or paths; all chapters if left out")
    names = parser.parse_args(arguments).names
    try:
        paths, others = find_notebooks(names), {}
        if not are_paths(names):  # not above: Colab's environment has no `tools`
            from tools.blas_matrix import other_processors

            others = other_processors()
        for path in paths:
            refresh(path.resolve(), others=others, report=lambda line: print(line, flush=True))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    except (CellFailed, Unreadable, Unsteady) as error:
        then = "This command has stored nothing. Correct the file, and run it again."
        print(f"\n{path.name}: {error}\n{then}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

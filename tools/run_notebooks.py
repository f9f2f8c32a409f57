"""Run the chapters in fresh kernels and store their outputs: the only way to refresh them.

    python -m tools.run_notebooks                          every chapter
    python -m tools.run_notebooks 03_attention_weights     one of them; a path to a file works too

A file is replaced when all of its cells have run, and left untouched when one fails. A second run
leaves the bytes as they are.
"""

import argparse
import copy
import os
import re
import sys
from pathlib import Path

import nbformat
from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

SETTINGS = {"TUTORIAL_LIB_STRICT": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
CELL_TIMEOUT_S = 120
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_CELL_METADATA = {"tags", "jupyter", "mystnb"}
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class CellFailed(Exception):
    """A cell raised, took too long, or took the kernel with it."""


class ThisPython(KernelSpecManager):
    """Offers one kernel, whatever its name: the Python that runs this file."""

    def get_kernel_spec(self, kernel_name):
        """Return the kernel of the running environment."""
        return self.kernel_spec_class(resource_dir=RESOURCES, **get_kernel_dict())


def execute(notebook, folder, *, report=print):
    """Run every cell in a fresh kernel.

    Parameters
    ----------
    notebook : NotebookNode, not modified
    folder : the kernel's working directory
    report : called with one line before each cell

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
    with client.setup_kernel(env=os.environ | SETTINGS, cleanup_kc=True):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                first_line = cell.source.partition("\n")[0]
                report(f"  {index + 1:>3} of {len(notebook.cells)}  {first_line[:70]}")
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
    """Bring an executed notebook into the form that is stored.

    Execution counts run from 1, metadata is what a reader's tools need and nothing else, adjacent
    pieces of one stream are joined. Cell ids, tags and collapsed outputs are kept.

    Parameters
    ----------
    notebook : NotebookNode, modified

    Returns
    -------
    notebook : the same object
    """
    notebook.metadata = nbformat.from_dict(METADATA)
    code_cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    for count, cell in enumerate(code_cells, start=1):
        cell.execution_count = count
        cell.outputs = join_streams(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
    for cell in notebook.cells:
        kept = {key: value for key, value in cell.metadata.items() if key in KEPT_CELL_METADATA}
        cell.metadata = nbformat.from_dict(kept)
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


def dumps(notebook):
    """Return the text that is stored for a notebook."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def refresh(path, *, report=print):
    """Run one notebook and replace its file if all of its cells ran.

    Raises
    ------
    CellFailed : the file is as it was
    """
    report(path.stem)
    before = path.read_text(encoding="utf-8")
    after = dumps(execute(nbformat.reads(before, as_version=4), path.parent, report=report))
    if after == before:
        report("  unchanged")
        return
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(after, encoding="utf-8")
    unfinished.replace(path)
    report("  refreshed")


def find(names):
    """Return the files that names or paths stand for; without any, all chapters.

    Raises
    ------
    FileNotFoundError : says which names there are
    """
    paths = [Path(name) for name in names]
    if paths and all(path.is_file() for path in paths):
        return paths
    from tools.chapters import pages  # not above: Colab's environment cannot read the contents

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
    try:
        for path in find(parser.parse_args(arguments).names):
            refresh(path.resolve(), report=lambda line: print(line, flush=True))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    except CellFailed as error:
        print(f"\n{path.name}: {error}\nThe file is unchanged.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Two chapters of the real model run beside each other: each takes less than 0.8 GB."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.chapters.pages import code_cells, written
from tests.conftest import found_weights
from tools.chapters import ROOT, pages
from tools.run_notebooks import SETTINGS
from tutorial_lib.models.real.model import MISSING

MOST_BYTES = 800_000_000
STATUS = Path("/proc/self/status")
RUN = f"""
import json, sys
names = {{"__name__": "__main__"}}
for source in json.load(sys.stdin):
    exec(source, names)
print(open("{STATUS}").read())
"""


@pytest.mark.long
@pytest.mark.skipif(not STATUS.exists(), reason="the peak is read where Linux writes it")
@pytest.mark.parametrize("name", [page.name for page in pages() if page.needs_weights])
def test_a_chapter_of_the_real_model_takes_less_than_800_mb(name, monkeypatch):
    if not found_weights():
        pytest.skip(MISSING)
    for variable, value in SETTINGS.items():
        monkeypatch.setenv(variable, value)
    cells = json.dumps([cell.source for cell in code_cells(written(name))])
    run = partial(subprocess.run, [sys.executable, "-c", RUN], cwd=ROOT, input=cells)
    done = run(capture_output=True, text=True, check=True)
    peak = 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1])
    assert peak < MOST_BYTES, f"{name} takes {peak / 1e6:.0f} MB; expected less than 800"

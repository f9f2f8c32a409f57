"""`make check` does without PyTorch: what asks for it is skipped there, and fails elsewhere."""

import os
import subprocess
import sys

from tools.chapters import ROOT

CASES = """
def test_that_imports_it():
    import torch.nn.functional

def test_that_reports_its_absence():
    try:
        import torch
    except ImportError:
        raise ValueError("no answer")

def test_that_is_wrong():
    assert 1 == 2

def test_that_is_right():
    pass
"""


def test_what_asks_for_pytorch_is_skipped_and_what_is_wrong_fails(tmp_path):
    (tmp_path / "test_cases.py").write_text(CASES, encoding="utf-8")
    (tmp_path / "test_file.py").write_text("import torch\n\ndef test_it():\n    pass\n")
    (tmp_path / "test_slip.py").write_text("import torhc\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.without_torch"]
    command += ["--continue-on-collection-errors", str(tmp_path)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    *_, wrong, slip, _ = run.stdout.splitlines()
    assert "1 failed, 1 passed, 3 skipped, 1 error" in run.stdout
    assert "test_that_is_wrong" in wrong
    assert "ERROR test_slip.py" in slip

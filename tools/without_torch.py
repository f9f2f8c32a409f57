"""Let pytest do without PyTorch, whether it is installed or not: `pytest -p tools.without_torch`.

`make check` runs so. A test, or a file of tests, that fails because it has asked for PyTorch is
skipped there, and says why; without this plugin, as in `make test`, it fails.
"""

import sys
from importlib.abc import MetaPathFinder

import pytest


class Without(MetaPathFinder):
    """Refuses torch as where it is not installed, and remembers that somebody asked."""

    asked = False

    def find_spec(self, name, path, target=None):
        """Refuse torch; leave all else to the finders behind."""
        if name == "torch":
            self.asked = True
            raise ModuleNotFoundError("torch is left out here", name=name)


TORCH = Without()
SKIPPED = "needs PyTorch: `make test` runs it"
sys.meta_path.insert(0, TORCH)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file whose import fails once it has asked for torch."""
    TORCH.asked = False
    report = yield
    if report.failed and TORCH.asked:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, SKIPPED)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that fails once it has asked for torch."""
    TORCH.asked = False
    try:
        return (yield)
    except Exception:
        if TORCH.asked:
            pytest.skip(SKIPPED)
        raise

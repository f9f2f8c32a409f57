"""PyTorch, imported when something is asked of it: tests that need none run where it is not."""

from importlib import import_module


class LazyModule:
    """A module in name, which is imported with its first attribute."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(import_module(self._name), attribute)


torch = LazyModule("torch")
F = LazyModule("torch.nn.functional")
attention = LazyModule("torch.nn.attention")

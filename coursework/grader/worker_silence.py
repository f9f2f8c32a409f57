"""Stand-ins for what is not in the sandbox: they take anything, and do nothing."""

import importlib.machinery
import importlib.util
import opcode
import os
import sys
import types

import numpy as np

DRAW = ("google", "ipywidgets", "matplotlib", "mpl_toolkits", "plotly", "pylab", "seaborn")
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
EMPTY = {"len": 0, "int": 0, "float": 0.0, "format": "", "setitem": None, "exit": None}


class Silent(types.ModuleType):
    """Stands in for what draws, prints or is the notebook's: whatever is asked of it does nothing.

    It is empty and false, and as many things as an assignment takes apart: n, bins, bars = hist().
    """

    __path__ = ()

    def __init__(self, *args, **options):
        super().__init__("silence")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.subplots_result if name == "subplots" else self

    def subplots_result(self, nrows=1, ncols=1, *args, squeeze=True, **options):
        """Return what `subplots` does: of a module (figure, axes), of a figure axes alone."""
        axes = np.empty((nrows, ncols), object)
        for place in np.ndindex(axes.shape):
            axes[place] = Silent()
        if squeeze:
            axes = axes.item() if axes.size == 1 else axes.squeeze()
        return axes if self.__spec__ is None else (Silent(), axes)

    def __call__(self, *args, **options):
        """Return what is silent, too, and is no module; of a decorated function the function."""
        decorates = len(args) == 1 and not options and isinstance(args[0], types.FunctionType)
        silent = self if self.__spec__ is None else Silent()
        return args[0] if decorates else silent

    def __iter__(self):
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        return iter([self] * (code[at + 1] if code[at] == opcode.opmap["UNPACK_SEQUENCE"] else 0))

    def __mro_entries__(self, bases):
        return (type("Silent", (Silent,), {}),)  # one for each base, which may be twice the same


for _operator in OPERATORS:
    for _side in ("", "r", "i"):
        setattr(Silent, f"__{_side}{_operator}__", Silent.__call__)
for _name, _value in EMPTY.items():
    setattr(Silent, f"__{_name}__", lambda *args, value=_value: value)
for _name in ("getitem", "enter"):
    setattr(Silent, f"__{_name}__", lambda self, *args: self)


class PassThroughStandIn(Silent):
    """Stands in for what shows something and hands it on, as a bar of progress does."""

    def __getattr__(self, name):
        return range if name == "trange" else super().__getattr__(name)

    def __call__(self, *args, **options):
        return args[0] if args else self


class SilentModuleFinder:
    """Finds the modules that are silent here, any module below them, and those that are written."""

    hidden = ()  # packages that are not to be found, wherever this machine has them

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Return the spec of a silent module, or None."""
        if f"{name}.".startswith(tuple(f"{known}." for known in DRAW + PRINT + PASS_ON)):
            return importlib.machinery.ModuleSpec(name, cls, is_package=True)
        if name.partition(".")[0] in cls.hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        file = f"{name.replace('.', os.sep)}.py"
        return importlib.util.spec_from_file_location(name, file) if os.path.isfile(file) else None

    @staticmethod
    def create_module(spec):
        """Return the module."""
        return PassThroughStandIn() if spec.name.partition(".")[0] in PASS_ON else Silent()

    @staticmethod
    def exec_module(module):
        """Give it the names that `import *` takes: it cannot ask for others."""
        if module.__spec__.name in PYPLOT:
            names = {name: getattr(module, name) for name in DRAWN.split()}
            for part in (np, np.fft, np.random, np.linalg) if "lab" in module.__spec__.name else ():
                names |= {n: getattr(part, n) for n in part.__all__ if n not in PYTHONS}
            vars(module).update(names)
            module.np = np

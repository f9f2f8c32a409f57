"""Right answers written in other ways, which a check must accept, and too narrow ones.

A module a room: `VARIANTS` hold the name of a function, a label, and the answer; `NARROW` the name,
for what alone it is right, and the edit of the right function that makes it so, old and new.
"""

import pkgutil
from importlib import import_module

_MODULES = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
VARIANTS = [variant for module in _MODULES for variant in module.VARIANTS]
NARROW = [narrow for module in _MODULES for narrow in getattr(module, "NARROW", ())]

"""Takes itself for the main program, as every notebook is; is right.

Earns: 10
Says: right
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar, get_type_hints


@dataclass
class Sizes:
    name: ClassVar[str] = "sizes"
    heads: int = 1


if __name__ == "__main__":

    def attend_at_scales(Q, K, V):
        assert get_type_hints(Sizes)["heads"] is int
        assert sys.modules[Sizes.__module__].right is right
        return right(Q, K, V)

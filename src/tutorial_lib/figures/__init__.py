"""Static figures as inline SVG that carry their numbers: arrays and names in, a `Figure` out."""

import sys

try:
    from tutorial_lib.figures.arcs import arcs
    from tutorial_lib.figures.bars import bar_chart
    from tutorial_lib.figures.diagrams import Block, Diagram, block_diagram
    from tutorial_lib.figures.figure import Figure, Table
    from tutorial_lib.figures.growing import watch
    from tutorial_lib.figures.ink import HEAD_COLOURS
    from tutorial_lib.figures.lines import line_chart
    from tutorial_lib.figures.maps import attention_maps, signed_maps
    from tutorial_lib.figures.masks import mask_svg
    from tutorial_lib.figures.spreads import spread_chart
    from tutorial_lib.figures.streams import block_map
except ModuleNotFoundError as error:
    if error.name != "matplotlib":
        raise
    raise ModuleNotFoundError(
        "No module named 'matplotlib', with which tutorial_lib.figures draws; it comes with "
        f"tutorial_lib[plot]. Install it: {sys.executable or 'python'} -m pip install matplotlib",
        name=error.name,
    ) from None

__all__ = [
    "HEAD_COLOURS",
    "Block",
    "Diagram",
    "Figure",
    "Table",
    "arcs",
    "attention_maps",
    "bar_chart",
    "block_diagram",
    "block_map",
    "line_chart",
    "mask_svg",
    "signed_maps",
    "spread_chart",
    "watch",
]

"""Elements that know the layer, and so more than those of `tutorial_lib.elements`."""

from tutorial_lib.elements.exhibits.ask.element import ask_model
from tutorial_lib.elements.exhibits.bench.element import softmax_bench
from tutorial_lib.elements.exhibits.bytes.element import byte_calculator
from tutorial_lib.elements.exhibits.clock.element import rotation_clock
from tutorial_lib.elements.exhibits.drawing.element import mask_drawing
from tutorial_lib.elements.exhibits.heads.element import head_maps
from tutorial_lib.elements.exhibits.map.element import live_map
from tutorial_lib.elements.exhibits.paint.element import paint_mask
from tutorial_lib.elements.exhibits.plane.element import query_plane
from tutorial_lib.elements.exhibits.playground.element import playground
from tutorial_lib.elements.exhibits.strip.element import memory_strip
from tutorial_lib.elements.exhibits.sum.element import heads_sum
from tutorial_lib.elements.exhibits.tiles.element import fold_tiles

__all__ = [
    "ask_model",
    "byte_calculator",
    "fold_tiles",
    "head_maps",
    "heads_sum",
    "live_map",
    "mask_drawing",
    "memory_strip",
    "paint_mask",
    "playground",
    "query_plane",
    "rotation_clock",
    "softmax_bench",
]

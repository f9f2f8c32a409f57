"""Elements that know the layer, and so more than those of `tutorial_lib.elements`."""

from tutorial_lib.elements.exhibits.ask.element import ask_model
from tutorial_lib.elements.exhibits.bytes.element import byte_calculator
from tutorial_lib.elements.exhibits.clock.element import turn_clock
from tutorial_lib.elements.exhibits.drawing.element import mask_drawing
from tutorial_lib.elements.exhibits.map.element import live_map
from tutorial_lib.elements.exhibits.playground.element import playground
from tutorial_lib.elements.exhibits.sum.element import heads_sum

__all__ = [
    "ask_model",
    "byte_calculator",
    "heads_sum",
    "live_map",
    "mask_drawing",
    "playground",
    "turn_clock",
]

"""All attention maps of the real model on one sentence, one of them enlarged, groups ringed."""

import zlib
from base64 import b64decode, b64encode
from html import escape

import numpy as np

from tutorial_lib.describe import escaped_name
from tutorial_lib.elements.markup import HIDDEN, button_row, exhibit, fold_numbers, inline
from tutorial_lib.elements.tables import NO_MATH, grid, numbered_names, table
from tutorial_lib.records import record

_HEADS = 9  # of a layer
_FLOOR = 10  # percent of the colour for a weight of 0: where a query may attend
_QUESTION = "Most of these maps look alike. Which ones do not, and where do those heads attend?"
_HOW_TO = (
    "Tap a map to enlarge it, or go there by arrow keys and press Enter. A button rings the heads "
    "of a group."
)
_NO_GROUP = "No group is ringed."
_LEGEND = (
    "Each small map is a head: a row for each query, a column for each key, as in the large one. "
    "The stronger the colour, the larger the weight. A number in the large map is a weight in "
    "percent, left out below 1; a number in brackets is a position, counted from 0."
)


def head_maps():
    """Show the attention maps of all heads of the real model on one sentence.

    Introduced in chapter 25. The reader enlarges a map and rings the heads of a group. Maps,
    groups and what is known of them are read from the record `real_circuits`.
    """
    return draw_attention_map_atlas()


def draw_attention_map_atlas(*, head="16.0", group=""):
    """Draw the maps in a state: which one is large, and the group whose heads are ringed."""
    found = record("real_circuits")
    groups = found["groups"]
    names = numbered_names([escaped_name(token.strip()) for token in found["maps"]["tokens"]])
    percent = _weights_in_percent(found["maps"]["roots"], len(names))
    layers = len(percent) // _HEADS
    layer, h = map(int, head.split("."))
    large, title = percent[_HEADS * layer + h], f"Layer {layer}, head {h}"
    sizes = f"--layers:{layers};--heads:{_HEADS};--keys:{len(names)}"
    ringed = " data-ringed" * bool(group)
    about = inline(groups[group]["about"]) if group else _NO_GROUP
    parts = [
        f'<div class="tl-atlas {NO_MATH}" style="{sizes}"{ringed}><div class="tl-detail">',
        button_row(groups, [group]) + button_row(["Reset"]),
        f'<div class="tl-lists" {HIDDEN}><p class="tl-group">{about}</p></div>',
        _large_map(large, names, title),
        f'<p class="tl-legend">{_LEGEND}</p></div>\n{_all_maps(percent, layers)}</div>',
        _group_table(groups),
    ]
    text = _text_version(large, names, f"layer {layer}, head {h}", groups)
    return exhibit("heads", "Attention maps", _QUESTION, _HOW_TO, *parts, text=text)


def _weights_in_percent(roots, count):
    """Return (L*H, T, T) weights in percent, -1 where a key is hidden.

    A byte of the record is 255 times the root of a weight; whole numbers are the same everywhere.
    """
    squares = np.frombuffer(b64decode(roots), np.uint8).astype(int) ** 2
    rows, columns = np.tril_indices(count)
    percent = np.full((len(squares) // len(rows), count, count), -1)
    percent[:, rows, columns] = ((200 * squares + 255**2) // (2 * 255**2)).reshape(-1, len(rows))
    return percent


def _large_map(percent, names, title):
    """Draw a map with its words along both axes and its weights in percent."""
    rows = [escape(name) for name in names]
    columns = [f"<span>{name}</span>" for name in rows]
    cells = [map(_weight_cell, row) for row in percent.tolist()]
    caption = f"<b>{title}</b> <i>query ↓ key →</i>"
    return grid(cells, rows, columns, caption, 'class="tl-large"')


def _weight_cell(percent):
    """Draw a weight as a tint and a number, as the script does; a hidden key has neither."""
    return ("", "") if percent < 0 else (f'style="--n:{percent}"', f"<b>{percent or ''}</b>")


def _all_maps(percent, layers):
    """Draw all maps, of which one picture has the pixels; the script lays its cells over it."""
    across = "".join(f"<i>{head}</i>" for head in range(_HEADS))
    down = "".join(f"<i>{layer}</i>" for layer in range(layers))
    alt = f"The attention maps of {layers} layers, a row each, with {_HEADS} heads"
    return (
        '<div class="tl-all"><p><i>layer ↓ head →</i></p>'
        f'<div class="tl-columns" aria-hidden="true">{across}</div>'
        f'<div class="tl-rows" aria-hidden="true">{down}</div>'
        f'<div class="tl-maps" role="img" aria-label="{alt}" '
        f'style="mask-image:url(data:image/png;base64,{_png(_map_pixels(percent))})"></div></div>'
    )


def _map_pixels(percent):
    """Return the board: percent and 1, or 0 where nothing is, as on two edges of each map."""
    maps = np.pad(percent + 1, ((0, 0), (0, 1), (0, 1)))
    side = maps.shape[-1]
    return maps.reshape(-1, _HEADS, side, side).swapaxes(1, 2).reshape(-1, _HEADS * side)


def _png(pixels):
    """Write pixels from 0 to 101 as the opacity of a PNG.

    It is not compressed, since libraries do not all compress alike; a host does it on the way.
    """
    height, width = pixels.shape
    lines = b"".join(b"\0" + bytes(row) for row in pixels.tolist())
    opacity = [0, *((255 * (100 * _FLOOR + (100 - _FLOOR) * n)) // 10_000 for n in range(101))]
    length = len(lines).to_bytes(2, "little")
    stored = b"\x01" + length + bytes(255 - byte for byte in length) + lines
    chunks = {
        b"IHDR": width.to_bytes(4) + height.to_bytes(4) + b"\x08\x03\0\0\0",  # 8 bits, a palette
        b"PLTE": bytes(3 * len(opacity)),
        b"tRNS": bytes(opacity),
        b"IDAT": b"\x78\x01" + stored + zlib.adler32(lines).to_bytes(4),
        b"IEND": b"",
    }
    parts = [
        len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)
        for name, data in chunks.items()
    ]
    return b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def _group_table(groups):
    rows = [(name, inline(group["about"]), _heads_text(group)) for name, group in groups.items()]
    names = ("group", "what its heads do", "layer.head")
    return fold_numbers(table(names, rows), summary="The groups as a table")


def _heads_text(group):
    return ", ".join(f"{layer}.{head}" for layer, head in group["heads"])


def _text_version(percent, names, title, groups):
    """Name the strongest key of each query of the large map, and the heads of each group."""
    best = percent.argmax(axis=-1)
    keys = [f"{names[t]}: {names[s]} {percent[t, s] / 100:.2f}" for t, s in enumerate(best)]
    lines = [f"   {name}: {_heads_text(group)}" for name, group in groups.items()]
    return "\n".join([f"Attention maps, {title}", f"   {', '.join(keys)}", *lines])

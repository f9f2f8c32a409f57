"""The inspector: where one head lets one query look."""

from html import escape

from tutorial_lib.describe import escaped_name
from tutorial_lib.elements.maps import NO_MATH, TABLE, figure, headings, legend, picture
from tutorial_lib.elements.markup import HIDDEN, KEYS, ask, band, button_row
from tutorial_lib.elements.weights import read_weights

_QUESTION = "Where does a query look?"
_MAP = "The weights of the chosen head as a map: arrow keys choose a query and a key"
_HOW_TO = "In the map choose a query by its row, a key by its column, both by a cell."
_KEYS = "Arrow keys choose too: Enter goes to the strongest key of a row, Escape back to the row."
_FIRST = 5  # keys are listed at once, without asking for all


def inspector(weights, tokens, *, keys=None, mask=None):
    """Show where a head lets a query look, and which queries ask a key: the reader chooses them.

    Parameters
    ----------
    weights : (H, T, S), at most 16 heads, 64 queries and 64 keys
    tokens : T names of the queries
    keys : S names of the keys, where they are not the queries
    mask : True = may look, broadcastable to (H, T, S), such as causal_mask(T); what a query may
        not look at is drawn as hidden, not as a weight of 0

    Returns
    -------
    element : Element; its numbers are rounded to thousandths, or are fractions where all weights
        are, within a millionth, fractions with denominators up to 64

    Raises
    ------
    TypeError : weights is no array of numbers, or mask none of booleans
    ShapeError : other axes than H, T, S, one too long, or other than one name for each entry
    ValueError : a weight that is NaN, infinite, negative, or hidden by the mask and not 0; a row
        that sums neither to 1 nor to 0
    """
    keys = tokens if keys is None else keys
    looks = read_weights(weights, tokens, keys, mask)
    heads = [f"head {h}" for h in range(len(looks.rows))]
    placed = [
        [f"{i}: {escaped_name(name)}" for i, name in enumerate(names)] for names in (tokens, keys)
    ]
    menus = [_select("Head", heads), _select("Query", placed[0]), _select("Key", placed[1], "none")]
    body = [
        f'<div class="tl-live {NO_MATH}" {HIDDEN} {looks.packed()}>',
        f'<div class="tl-pick">{"".join(menus)}</div>',
        f'<div class="tl-sides">\n<div>{picture(looks, tokens, keys, _MAP, room=312)}</div>',
        f"<div>{ask(_QUESTION)}{band(_HOW_TO)}",
        _list("key", len(keys)),
        f"{_list('query', len(tokens))}</div>\n</div>",
        f"{legend(looks, tokens, keys, more=_KEYS)}{button_row([])}</div>",
    ]
    return figure("inspector", _QUESTION, body, looks)


def _list(name, length):
    """A table of weights, the strongest first, for the script to fill."""
    several = {"key": "keys", "query": "queries"}[name]
    every = f'<button type="button" aria-pressed="false" {KEYS}>All {length} {several}</button>'
    table = TABLE.format(headings(name, "weight") + "<td></td>", "")
    return f'<div class="tl-list"><p class="tl-title"></p>\n{table}\n' + (
        f"{every if length > _FIRST else ''}</div>"
    )


def _select(label, names, none=None):
    first = f'<option value="">{none}</option>' * (none is not None)
    options = [f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(names)]
    menu = f'<select autocomplete="off" {KEYS}>{first}{"".join(options)}</select>'
    return f"<label>{label} {menu}</label>"

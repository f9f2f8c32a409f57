"""The inspector: where one head lets one query look."""

from html import escape

from tutorial_lib.describe import printable
from tutorial_lib.elements.maps import NO_MATH, TABLE, figure, headings, legend, picture
from tutorial_lib.elements.markup import HIDDEN, KEYS, REGION
from tutorial_lib.elements.weights import read_weights

_FIRST = 5  # keys are listed at once, without asking for all


def inspector(weights, tokens, *, keys=None, mask=None):
    """Show where a head lets a query look: the reader chooses the head and the query.

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
    queries = [f"{t}: {printable(token)}" for t, token in enumerate(tokens)]
    every = f'<button type="button" aria-pressed="false" {KEYS}>All {len(keys)} keys</button>'
    body = [
        f'<div class="tl-live {NO_MATH}" {HIDDEN} {looks.packed()}>',
        f'<div class="tl-pick">{_select("Head", heads, 0)}',
        f"{_select('Query', queries, len(queries) - 1)}</div>",
        f'{REGION}\n<div class="tl-sides"><div>',
        TABLE.format(headings("key", "weight") + "<td></td>", ""),
        every if len(keys) > _FIRST else "",
        f"</div>{picture(tokens, keys, 'The weights of the chosen head as a map')}</div>",
        f"{legend(looks, tokens, keys)}</div>",
    ]
    return figure("inspector", "Where does a query look?", body, looks)


def _select(label, names, chosen):
    options = "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(name)}</option>'
        for i, name in enumerate(names)
    )
    return f'<label>{label} <select autocomplete="off" {KEYS}>{options}</select></label>'

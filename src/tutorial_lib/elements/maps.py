"""Weights as maps, the figure around them, and the tables of all elements."""

from hashlib import sha256
from html import escape

from tutorial_lib.describe import escaped_name
from tutorial_lib.elements.markup import Element, fold, fold_numbers, wrap

NO_MATH = "tex2jax_ignore mathjax_ignore"  # a token may be a dollar sign
TARGET = "target"
# Black or white, whichever the ink of the page is not: parts a ring from any tint.
_RIM = "oklch(from currentColor clamp(0, (.55 - l) * 1000, 1) 0 0 / 1)"
TABLE = '<table class="tl-table"><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table>'
_TOO_MANY = (
    "{} heads with {} queries each are too many for one table. "
    "In Python, describe_attention says where any one of them looks."
)


def figure(title, body, looks):
    """Put a gallery together with what reads without a script; its id is made of what it shows."""
    H, T = len(looks.rows), len(looks.tokens)
    size = f"{H} heads, {T} queries, {T} keys"
    strongest = looks.strongest()
    lines = [
        f'<tr><td>{h}</td><th scope="row">{escape(query)}</th>{_cells(said)}</tr>'
        for h, query, *said in strongest
    ]
    names = headings("head", "query", "strongest keys", *[TARGET] * bool(looks.target))
    table = TABLE.format(names, "\n".join(lines))
    too_many = _TOO_MANY.format(H, T)
    few = 0 < len(lines) < H * T
    which = "The strongest keys" + ", where a word decides the next" * few
    summary = f"{which}: {size}"
    shown = f'<div class="{NO_MATH}">{table}</div>'
    numbers = fold_numbers(shown, summary=summary) if lines else fold(summary, too_many)
    said = [f"; {TARGET}: ".join(said) for _, _, *said in strongest]
    rows = zip(strongest, said, strict=True)
    text = [f"{title} {size}", *(f"head {h}, {query}: {keys}" for (h, query, *_), keys in rows)]
    name = sha256("".join(body).encode()).hexdigest()[:8]
    html = wrap("gallery", f"tl-gallery-{name}", f"Gallery, {size}", [*body, numbers])
    return Element(html, "\n".join(text if lines else [*text, too_many]))


def legend(looks, tokens):
    """Say how to read a map: its tints and dots, and a number behind a name."""
    hidden = any(number is None for head in looks.rows for row in head for number in row)
    texts = ["The stronger the colour of the head, the larger the weight."]
    texts += ["A dot without a tint is a key that the query may not look at."] * hidden
    repeated = len(set(tokens)) < len(tokens)
    texts += ["A number in brackets is a position, counted from 0."] * repeated
    return f'<p class="tl-legend">{" ".join(texts)}</p>'


def headings(*names):
    """Draw the cells that name the columns of a table."""
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def table(names, rows):
    """Draw a table of texts: the names of its columns, and rows that each begin with a name."""
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{text}</td>" for text in rest)}</tr>'
        for first, *rest in rows
    ]
    return TABLE.format(headings(*names), "\n".join(lines))


def _cells(texts):
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def picture(looks, tokens, alt, *, room):
    """Draw a map without its cells, which the script draws: names along both axes, as they fit.

    Parameters
    ----------
    looks : Looks
    tokens : names
    alt : what is said to who cannot see it
    room : pixels for the cells; where they are large enough, numbers stand in them
    """
    names = [_short(escaped_name(name)) for name in tokens]
    side = max(4, min(44, room // len(names)))
    step = -(-14 // side)  # a line of text is 14 pixels high
    below = 12 + round(7.2 * max(map(len, names)))
    left, upright = max(below, 58), below - 8 <= side * step
    bottom, half = 20 + side * len(names), side / 2
    texts = [_text(left - 6, 10, "query ↓", "end"), _text(left - 6, bottom + 12, "key →", "end")]
    for i, name in list(enumerate(names))[::step]:
        texts.append(_text(left - 6, 20 + i * side + half, name, "end"))
        x, turn = left + i * side + half, "" if upright else " rotate(-90)"
        texts.append(_text(x, bottom + 12, name, "middle" if upright else "end", turn))
    fits = side >= 4 + 6 * looks.digits()
    wide = "wide" if side * len(names) > 180 else ""  # too small to read on a narrow screen
    numbers = f' data-numbers="{wide}"' * fits
    width, height = left + side * len(names) + 2, bottom + (24 if upright else below)
    return (
        f'<svg class="tl-weights" role="img" aria-label="{alt}" viewBox="0 0 {width} {height}" '
        f'style="max-width: {width}px">{"".join(texts)}'
        f'<g transform="translate({left} 20)" data-side="{side}"{numbers}></g>'
        f"{_rings(looks.target, side, left)}</svg>"
    )


def _rings(target, side, left):
    """Draw a ring in the cell of each target, or around it where the cell is small."""
    if not target:
        return ""
    size = side - 4 if side > 28 else max(8, side + 2)
    r, line, edge = 0.4 * size, 0.2 * size, (side - size) / 2
    a = f"a{r:g} {r:g} 0 0 1 "
    ring = f"h{line:g}{a}{r:g} {r:g}v{line:g}{a}{-r:g} {r:g}h{-line:g}{a}{-r:g} {-r:g}v{-line:g}"
    path = "".join(
        f"M{left + key * side + edge + r:g} {20 + t * side + edge:g}{ring}{a}{r:g} {-r:g}z"
        for t, key in enumerate(target)
        if key >= 0
    )
    thin = f'd="{path}" vector-effect="non-scaling-stroke"'
    return (
        f'<g fill="none" pointer-events="none"><path {thin} style="stroke:{_RIM}" '
        f'stroke-width="3.5"/><path {thin} stroke="currentColor" stroke-width="1.5"/></g>'
    )


def _text(x, y, text, anchor, turn=""):
    place = f"translate({x:g} {y:g}){turn}"
    return f'<text transform="{place}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(name):
    return name if len(name) <= 9 else name[:8] + "…"

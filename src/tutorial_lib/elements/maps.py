"""Inspector and gallery: figures of attention weights that answer a reader's questions."""

from hashlib import sha256
from html import escape

from tutorial_lib.describe import printable, round_stable
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    REGION,
    Element,
    answer_box,
    button_row,
    inline,
    wrap,
)
from tutorial_lib.elements.weights import read_weights
from tutorial_lib.errors import ShapeError

_FIRST = 5  # keys are listed at once, without asking for all
_NO_MATH = "tex2jax_ignore mathjax_ignore"  # a token may be a dollar sign
_TABLE = '<table class="tl-table"><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table>'
_TOO_MANY = (
    "{} heads with {} queries each are too many for one table. "
    "In Python, describe_attention says where any one of them looks."
)


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
        f'<div class="tl-live {_NO_MATH}" {HIDDEN} {looks.packed()}>',
        f'<div class="tl-pick">{_select("Head", heads, 0)}',
        f"{_select('Query', queries, len(queries) - 1)}</div>",
        f'{REGION}\n<div class="tl-sides"><div>',
        _TABLE.format(_headings("key", "weight") + "<td></td>", ""),
        every if len(keys) > _FIRST else "",
        f"</div>{_picture(tokens, keys, 'The weights of the chosen head as a map')}</div>",
        f"{_legend(looks, tokens, keys)}</div>",
    ]
    return _figure("inspector", "Where does a query look?", body, looks)


def gallery(weights, tokens, question, answers, *, mask=None):
    """Show all heads of a layer behind a question, which one of them answers best.

    Parameters
    ----------
    weights : (H, T, T), at most 16 heads and 64 tokens
    tokens : T names
    question : what to look for; `code` and *emphasis* are its only markup
    answers : for each head its score on that question and the reason, (number, text)
    mask : True = may look, broadcastable to (H, T, T)

    Returns
    -------
    element : Element; scores are rounded to hundredths

    Raises
    ------
    TypeError, ShapeError, ValueError : as `inspector`; other than H answers; a tie at the top
    """
    looks = read_weights(weights, tokens, tokens, mask)
    scores = _scores(answers, len(looks.rows))
    best = scores.index(max(scores, key=float))
    heads, reasons = [], []
    for h, (score, (_, why)) in enumerate(zip(scores, answers, strict=True)):
        name = f'<input type="radio" name="tl-heads" {KEYS}> <b data-head="{h % 4}">head {h}</b>'
        picture = _picture(tokens, tokens, f"The weights of head {h} as a map")
        heads.append(f"<div><label>{name}\n{picture}</label><p></p></div>")
        mark = f'<b class="tl-right">✓ {score}</b>' if h == best else f"<b>{score}</b>"
        reasons.append((f"head {h}", f"<dd>{mark} {inline(why)}</dd>"))
    body = [
        f"<fieldset>\n<legend>{inline(question)}</legend>",
        f'<div class="tl-live tl-heads {_NO_MATH}" {HIDDEN} {looks.packed()}>',
        *heads,
        f"</div>\n{_legend(looks, tokens)}\n{button_row(['Commit', 'Show me'])}\n{REGION}",
        f"{answer_box(reasons)}\n</fieldset>",
    ]
    return _figure("gallery", question, body, looks)


def _scores(answers, n_heads):
    """Return the scores as they are written, one of them the highest."""
    if len(answers) != n_heads:
        raise ShapeError(
            f"axis H of weights has {n_heads} heads, but {len(answers)} answers are given; "
            f"expected one for each. Give pairs of a score and its reason."
        )
    scores = [f"{round_stable(float(score), 2):.2f}" for score, _ in answers]
    top = max(map(float, scores))
    if [float(score) for score in scores].count(top) != 1:  # NaN equals nothing
        raise ValueError(
            f"the scores are {', '.join(scores)}; expected numbers, one of them the highest. "
            f"Ask what one head does best."
        )
    return scores


def _figure(kind, title, body, looks):
    """Put a figure together with what reads without a script; its id is made of what it shows."""
    size = f"{len(looks.rows)} heads, {len(looks.queries)} queries, {len(looks.keys)} keys"
    strongest = looks.strongest()
    lines = [
        f'<tr><td>{h}</td><th scope="row">{escape(query)}</th><td>{escape(keys)}</td></tr>'
        for h, query, keys in strongest
    ]
    table = _TABLE.format(_headings("head", "query", "strongest keys"), "\n".join(lines))
    too_many = _TOO_MANY.format(len(looks.rows), len(looks.queries))
    summary = f"<summary>The strongest keys: {size}</summary>"
    shown = f"{summary}\n{table if lines else too_many}"
    numbers = f'<details class="tl-numbers {_NO_MATH}">{shown}</details>'
    text = [f"{title} {size}", *(f"head {h}, {query}: {keys}" for h, query, keys in strongest)]
    name = sha256("".join(body).encode()).hexdigest()[:8]
    html = wrap(kind, f"tl-{kind}-{name}", f"{kind.capitalize()}, {size}", [*body, numbers])
    return Element(html, "\n".join(text if lines else [*text, too_many]))


def _legend(looks, *names):
    """Say how to read a map: what its tints and strokes are, and a number behind a name."""
    hidden = any(number is None for head in looks.rows for row in head for number in row)
    texts = ["The stronger the blue, the larger the weight."]
    texts += ["A line crosses out keys that the query may not look at."] * hidden
    repeated = any(len(set(tokens)) < len(tokens) for tokens in names)
    texts += ["A number in brackets is a place, counted from 0."] * repeated
    return f'<p class="tl-legend">{" ".join(texts)}</p>'


def _headings(*names):
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def _select(label, names, chosen):
    options = "".join(
        f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(name)}</option>'
        for i, name in enumerate(names)
    )
    return f'<label>{label} <select autocomplete="off" {KEYS}>{options}</select></label>'


def _picture(queries, keys, alt):
    """Draw a map without its cells, which the script draws: names along both axes, as they fit."""
    queries, keys = ([_short(printable(name)) for name in names] for names in (queries, keys))
    side = max(4, min(28, 320 // max(len(queries), len(keys))))
    step = -(-14 // side)  # a line of text is 14 pixels high
    left, below = (12 + round(7.2 * max(map(len, names))) for names in (queries, keys))
    left, upright = max(left, 54), below - 8 <= side * step
    bottom, half = 20 + side * len(queries), side / 2
    texts = [_text(left - 6, 10, "query ↓", "end"), _text(left - 6, bottom + 12, "key →", "end")]
    for t, name in list(enumerate(queries))[::step]:
        texts.append(_text(left - 6, 20 + t * side + half, name, "end"))
    for s, name in list(enumerate(keys))[::step]:
        x, turn = left + s * side + half, "" if upright else " rotate(-90)"
        texts.append(_text(x, bottom + 12, name, "middle" if upright else "end", turn))
    width, height = left + side * len(keys) + 2, bottom + (24 if upright else below)
    return (
        f'<svg class="tl-map" role="img" aria-label="{alt}" viewBox="0 0 {width} {height}" '
        f'style="max-width: {width}px">{"".join(texts)}'
        f'<g transform="translate({left} 20) scale({side})"></g></svg>'
    )


def _text(x, y, text, anchor, turn=""):
    place = f"translate({x:g} {y:g}){turn}"
    return f'<text transform="{place}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(name):
    return name if len(name) <= 9 else name[:8] + "…"

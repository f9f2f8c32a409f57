"""The gallery: all heads of a layer behind a question."""

from tutorial_lib.describe import round_unless_near_tie
from tutorial_lib.elements.maps import NO_MATH, figure, legend, picture
from tutorial_lib.elements.markup import HIDDEN, KEYS, NEWS, REGION, answer_box, button_row, inline
from tutorial_lib.elements.weights import read_targets, read_weights
from tutorial_lib.errors import ShapeError

_HOW_TO = (
    "Choose a cell to see its weight in every head: click it, tap it, or go to a map and use the "
    "arrow keys. To answer, choose the name of a head."
)
_RING = " A ring marks the target: the word that decides which word comes after the query."


def gallery(weights, tokens, question, answers, *, mask=None, target=None):
    """Show all heads of a layer behind a question, which one of them answers best.

    Parameters
    ----------
    weights : (H, T, T), at most 16 heads and 64 tokens
    tokens : T names
    question : what to look for; `code` and *emphasis* are its only markup
    answers : for each head its score on that question and the reason, (number, text)
    mask : True = may look, broadcastable to (H, T, T), such as causal_mask(T); what a query may
        not look at is drawn as hidden, not as a weight of 0
    target : (T,) whole numbers: for each query the position of the key that decides the word
        after it, -1 where none does; a ring marks it in each map

    Returns
    -------
    element : Element; scores are rounded to hundredths, weights to thousandths, or are fractions
        where all are, within a millionth, fractions with denominators up to 64

    Raises
    ------
    TypeError : weights is no array of numbers, or mask none of booleans
    ShapeError : other axes than H, T, T, one too long, other than T names or H answers
    ValueError : a weight that is NaN, infinite, negative, or hidden by the mask and not 0; a row
        that sums neither to 1 nor to 0; a tie at the top; a target that is no such position, or
        one that mask hides
    """
    looks = read_weights(weights, tokens, mask)
    looks = looks if target is None else read_targets(target, looks)
    scores = _scores(answers, len(looks.rows))
    best = scores.index(max(scores, key=float))
    ringed = "" if target is None else "; a ring is the target, the word that decides the next one"
    heads, reasons = [], []
    room = 256 if len(scores) in (1, 2, 4) else 168  # of others, three stand side by side
    for h, (score, (_, why)) in enumerate(zip(scores, answers, strict=True)):
        name = f'<input type="radio" name="tl-heads" {KEYS}> <b data-head="{h % 4}">head {h}</b>'
        alt = f"The weights of head {h} as a map: arrow keys choose a query and a key{ringed}"
        svg = picture(looks, tokens, alt, room=room)
        heads.append(f"<div><label>{name}</label>\n{svg}<p></p><p></p></div>")
        mark = f'<b class="tl-right">✓ {score}</b>' if h == best else f"<b>{score}</b>"
        reasons.append((f"head {h}", f"<dd>{mark} {inline(why)}</dd>"))
    body = [
        f"<fieldset>\n<legend>{inline(question)}</legend>",
        f'<p class="tl-how tl-lists" {HIDDEN}>{_HOW_TO if target is None else _HOW_TO + _RING}</p>',
        f'<div class="tl-live tl-heads {NO_MATH}" {HIDDEN} {looks.packed()}>',
        *heads,
        f"</div>\n{legend(looks, tokens)}",
        f"{button_row(['Commit', 'Show me'])}\n{REGION}\n{NEWS}",
        f"{answer_box(reasons)}\n</fieldset>",
    ]
    return figure(question, body, looks)


def _scores(answers, n_heads):
    """Return the scores as they are written, one of them the highest."""
    if len(answers) != n_heads:
        raise ShapeError(
            f"axis H of weights has {n_heads} heads, but {len(answers)} answers are given; "
            f"expected one for each. Give pairs of a score and its reason."
        )
    scores = [f"{round_unless_near_tie(float(score), 2):.2f}" for score, _ in answers]
    top = max(map(float, scores))
    if [float(score) for score in scores].count(top) != 1:  # NaN equals nothing
        raise ValueError(
            f"the scores are {', '.join(scores)}; expected numbers, one of them the highest. "
            f"Ask what one head does best."
        )
    return scores

"""The certificate: what the checks of chapter 23 have found, on one page that can be printed."""

from hashlib import sha256
from html import escape

from tutorial_lib.contract import require
from tutorial_lib.describe import escaped_name
from tutorial_lib.elements.markup import HIDDEN, KEYS, Element, inline, wrap

LONGEST_NAME = 60
TITLE = "Attention, Head by Head: what was shown"
NOTHING = "Nothing has been shown yet: no promise is kept and no claim is answered."
LIMITS = (
    "This does not prove who wrote the layer, nor that it is right on inputs that nobody tested."
    " A layer that was copied passes the same checks."
)


def certificate(name, shown=None):
    """Draw what was shown, and nothing that was not.

    Parameters
    ----------
    name : who shows it, at most 60 signs
    shown : what `show_results` of chapter 23's room returns; None: nothing yet

    Raises
    ------
    TypeError : a name that is no string, something else than results
    ValueError : a name that is too long
    """
    sentence = f"name is a {type(name).__name__}; expected a string. Write your name."
    require(isinstance(name, str), TypeError, sentence)
    require(
        shown is None or hasattr(shown, "promises"),
        TypeError,
        f"shown is a {type(shown).__name__}; expected what show_results(...) returns, since "
        f"a certificate says what checks have found. Let them run.",
    )
    blocks = _blocks(shown)
    text = "\n\n".join([_heading(name), *("\n".join(_plain(block)) for block in blocks), LIMITS])
    body = [
        f'<p class="tl-title">{escape(TITLE)}</p>',
        f"<p>{escape(_by(name))}</p>",
        *("\n".join(_html(block)) for block in blocks),
        f"<p>{LIMITS}</p>",
        f'<div class="tl-row" {HIDDEN}>',
        f'<button type="button" {KEYS}>Print only this page</button></div>',
    ]
    place = f"tl-certificate-{sha256(text.encode()).hexdigest()[:8]}"
    return Element(wrap("certificate", place, "Certificate", body), text)


def _by(name):
    require(
        len(name) <= LONGEST_NAME,
        ValueError,
        f"name has {len(name)} signs; expected {LONGEST_NAME} at most, which one line holds. "
        f"Shorten it.",
    )
    return f"Shown by {escaped_name(name)}" if name.strip() else "Shown by nobody yet"


def _heading(name):
    return f"{TITLE}\n{_by(name)}"


def _blocks(shown):
    """Return (title, lines) of each part that there is something to say of."""
    if shown is None or not (any(kept for *_, kept in shown.promises) or shown.claims):
        return [(NOTHING, [])]
    kept = [kept for *_, kept in shown.promises]
    layer = f"One layer, {_counted(shown.lines, 'line')} of code" if shown.lines else "One layer"
    title = f"{layer}: {sum(kept)} of {len(kept)} promises kept"
    marks = [f"{'✓' if kept else '✗'} {name}: {says}" for name, says, kept in shown.promises]
    blocks = [(title, marks)]
    claims = [
        f"{number}. {says} It {'holds' if holds else 'fails'}: {_written(value)}"
        for number, says, holds, value in shown.claims
    ]
    if claims:
        blocks.append((f"{_counted(len(claims), 'claim')} answered with own numbers", claims))
    if shown.nats is not None:
        line = f"{shown.nats:.3f} nats per token of excess loss, on documents it never saw"
        steps = _counted(shown.steps, "step")
        after = f"after {steps}, as the training counted; {shown.n_parameters:,} parameters"
        blocks.append(("Trained on the known text, and run with this layer", [f"{line}, {after}"]))
    return blocks


def _counted(number, noun):
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _written(value):
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _plain(block):
    title, lines = block
    return [title, *(f"  {line}" for line in lines)]


def _html(block):
    title, lines = block
    items = [f"<li>{inline(line)}</li>" for line in lines]
    return [f'<p class="tl-title">{inline(title)}</p>', *(["<ul>", *items, "</ul>"] * bool(items))]

"""Ask the model: its words, its heads, what they look at, and what each adds to the next word."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.describe import printable, round_stable
from tutorial_lib.elements.maps import NO_MATH, TABLE, headings
from tutorial_lib.elements.markup import HIDDEN, KEYS, Element, ask, button_row, wrap
from tutorial_lib.models.copying import run
from tutorial_lib.models.grammar import CLASSES, WORDS
from tutorial_lib.models.head_scores import paths
from tutorial_lib.models.language import KINDS, eight_bits, encode, in_eight_bits

_KEYS_SHOWN, _WORDS_SHOWN = 5, 6
_GROUPS = {  # of the chips: their names, and the classes of the grammar
    "nouns, one": ("noun:s",),
    "nouns, many": ("noun:p",),
    "verbs, one": ("rest:s",),
    "verbs, many": ("rest:p",),
    "verbs with an object, one": ("act:s",),
    "verbs with an object, many": ("act:p",),
    "names": ("given:f", "given:m"),
    "surnames": ("surname",),
    "adverbs": ("adverb",),
    "pronouns": ("pronoun", "reflexive"),
}
_LEGEND = (
    "An arc leads from the chosen word to a word that a head looks at, the thicker the larger its "
    "weight: above for the last layer, below for the first. Head 1.2 is head 2 of layer 1, both "
    "counted from 0; a number in brackets is a place. The parts add up to the logit. A silenced "
    "head adds nothing, so what the layers behind it see changes too. All numbers of the model "
    "are rounded to 8 bits."
)


def ask_model(model, words, sentence, *, question, name):
    """Show a model that answers: for any sentence where its heads look, and which word is next.

    Introduced in chapter 20. The model is rounded to 8 bits, which come with the element. Where
    every word is one letter, the letters of a sentence need no blanks between them.

    Parameters
    ----------
    model : TinyModel
    words : names of its tokens, in the order of their ids
    sentence : what it begins with
    question : what is asked before the first touch
    name : of the weights, which stand once on a page

    Raises
    ------
    ValueError : names that are not one for each token, a sentence without a word, one with a word
        that the model does not know, one longer than its places

    >>> from tutorial_lib.models.copying import init_model
    >>> model = init_model(np.random.default_rng(0))
    >>> letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
    >>> ask_model(model, letters, "abab", question="Which letter?", name="untrained").text[:11]
    'Model: abab'
    """
    words = [printable(word) for word in words]
    ids = _ids(model, words, sentence)
    rounded = in_eight_bits(model)
    answer = _Answer(rounded, words, ids)
    label, weights = packed(model)
    key = f"{name}-{label}"
    given = {"words": words, "ids": ids, "name": key, **_helps(words, sentence)}
    body = [
        ask(question),
        f'<div class="tl-asked {NO_MATH}" data-given="{_attribute(given)}">',
        _sentence(words, ids),
        _controls(words),
        answer.tables(),
        f'<p class="tl-legend">{_LEGEND}</p></div>',
        f'<script data-model="{escape(name)}">\n(globalThis.tlModels ??= {{}})'
        f"[{json.dumps(key)}] = {weights};\n</script>",
    ]
    html = wrap("ask", f"tl-ask-{name}", "Ask the model", body)
    return Element(html, answer.text())


def packed(model):
    """Return the arrays of a model in 8 bits as JSON, and the beginning of its sha256."""
    codes, steps = zip(*map(eight_bits, model.arrays), strict=True)
    parts = {
        "shapes": [array.shape for array in codes],
        "codes": _base64(codes, np.int8),
        "steps": _base64(steps, "<f4"),
    }
    text = json.dumps(parts, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:8], text


def _base64(arrays, kind):
    joined = np.concatenate([array.ravel() for array in arrays])
    return b64encode(joined.astype(kind).tobytes()).decode()


def _ids(model, words, sentence):
    """Return the ids of a sentence, of the known text behind <bos>."""
    if len(words) != len(model.E):
        raise ValueError(
            f"words has {len(words)} names, but the model has {len(model.E)} tokens; expected one "
            f"for each, in the order of their ids."
        )
    if tuple(words) == WORDS:
        return encode(sentence, length=len(model.P)).tolist()
    said = list("".join(sentence.split())) if max(map(len, words)) == 1 else sentence.split()
    unknown = [word for word in said if word not in words]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no word of this model; expected words of {words}.")
    if not 0 < len(said) <= len(model.P):
        raise ValueError(
            f"the sentence has {len(said)} words; expected 1 to {len(model.P)}, which are the "
            f"places that the model knows. Give a sentence of that length."
        )
    return [words.index(word) for word in said]


class _Answer:
    """What a model says of the last word of a sentence, as tables and as text."""

    def __init__(self, model, words, ids):
        logits, records = run(model, np.array(ids))
        self.words, self.ids = words, ids
        self.weights = np.concatenate([record.weights[:, -1] for record in records])
        self.heads = [f"{i}.{h}" for i, r in enumerate(records) for h in range(len(r.weights))]
        self.chances = softmax(logits[-1])
        self.best = int(self.chances.argmax())
        self.parts = [part[-1, self.best] for part in paths(model, np.array(ids))]

    def keys(self, weights):
        """Say of a head's weights which five are the largest."""
        names = _places([self.words[i] for i in self.ids])
        order = np.argsort(-weights, kind="stable")[:_KEYS_SHOWN]
        seen = [(names[s], _three(weights[s])) for s in order if weights[s] >= 0.0005]
        return ", ".join(f"{name} {weight}" for name, weight in seen)

    def next_words(self):
        """Return the most probable words, the first foremost."""
        order = np.argsort(-self.chances, kind="stable")[:_WORDS_SHOWN]
        return [(self.words[i], _three(self.chances[i])) for i in order]

    def rows(self):
        """Return of each path its name, the keys of its head, and what it adds."""
        keys = ["", *map(self.keys, self.weights), ""]
        names = ["the word itself", *(f"head {head}" for head in self.heads), "together"]
        return list(zip(names, keys, [*self.parts, sum(self.parts)], strict=True))

    def tables(self):
        """Draw the next words, and below them the paths."""
        words = "".join(
            f'<tr><th scope="row">{escape(word)}</th><td><span class="tl-bar" '
            f'style="width:{100 * float(chance):.1f}%"></span></td><td>{chance}</td></tr>'
            for word, chance in self.next_words()
        )
        most = max(map(abs, self.parts))
        rows = "".join(self._row(i, *row, most) for i, row in enumerate(self.rows()))
        name = escape(self.words[self.best])
        heads = _columns("part", "looks most at", f"adds to “{name}”", "")
        after = f"Behind <b>{escape(self.words[self.ids[-1]])}</b> comes:"
        return (
            f'<div class="tl-answer"><div><p class="tl-after">{after}</p>'
            f"{TABLE.format(_columns('next', '', 'probability'), words)}{_menus(self.words)}"
            f'</div><div class="tl-paths">{TABLE.format(heads, rows)}</div></div>'
        )

    def _row(self, i, name, keys, part, most):
        head = 0 < i <= len(self.heads)
        color = f' data-head="{(i - 1) % len(self._layer())}"' if head else ""
        bar = _bar(part, most) if i <= len(self.heads) else ""
        switch = button_row(["silence"]) if head else ""
        return (
            f'<tr{color}><th scope="row">{name}</th><td>{_unbroken(keys)}</td>'
            f"<td><span>{_signed(part)}</span>{bar}</td><td>{switch}</td></tr>"
        )

    def _layer(self):
        return [head for head in self.heads if head.startswith("0.")]

    def text(self):
        """Write the answer for terminals."""
        said = "".join if max(map(len, self.words)) == 1 else " ".join
        lines = [f"   {word} {chance}" for word, chance in self.next_words()]
        rows = [
            f"   {name}: " + "; ".join(filter(None, [keys, f"adds {_signed(part)}"]))
            for name, keys, part in self.rows()
        ]
        title = f"Model: {said([self.words[i] for i in self.ids])}"
        adds = f"what adds to the logit of {self.words[self.best]}, and where heads look:"
        return "\n".join([title, "next word:", *lines, adds, *rows])


def _helps(words, sentence):
    """Return what is said to who typed no word, or a strange one."""
    if tuple(words) == WORDS:
        return {"kinds": KINDS, "example": "the dogs that bark"}
    return {"kinds": f"It has: {' '.join(words)}", "example": sentence}


def _unbroken(keys):
    """Keep each key and its weight on one line."""
    return escape(keys).replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")


def _attribute(value):
    return escape(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _three(number):
    return f"{round_stable(float(number), 3):.3f}"


def _signed(number):
    return f"{round_stable(float(number), 2):+.2f}".replace("-", "−")


def _bar(part, most):
    """Draw a signed number as a bar to the left or to the right of a line."""
    x, width = 50 * min(part / most, 0), 50 * abs(part) / most
    return (
        '<svg viewBox="-51 0 102 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="6"/><path d="M0 0v8"/></svg>'
    )


def _columns(*names):
    """Draw the cells above columns; one without a name is no heading."""
    return headings(*names).replace('<th scope="col"></th>', "<td></td>")


def _places(names):
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _sentence(words, ids):
    cells = " ".join(
        f'<span class="tl-word">{escape(words[i])}<small aria-hidden="true">{place}</small></span>'
        for place, i in enumerate(ids)
    )
    return f'<div class="tl-sentence"><svg aria-hidden="true"></svg>{cells}</div>'


def _controls(words):
    """Draw the field, the buttons and the chips, which without a script stay hidden."""
    field = (
        '<label>Sentence <input type="text" autocomplete="off" autocapitalize="off" '
        f'spellcheck="false" {KEYS}></label>'
    )
    groups = [
        (label, [w for c in classes for w in CLASSES[c].split() if w in words])
        for label, classes in _GROUPS.items()
    ]
    grouped = {word for _, members in groups for word in members} | {"<bos>"}
    groups.insert(0, ("words", [word for word in words if word not in grouped]))
    lines = "".join(
        f"<p><i>{label}</i> " + " ".join(map(_chip, members)) + "</p>"
        for label, members in groups
        if members
    )
    chips = f"<details><summary>Words to put behind the chosen one</summary>{lines}</details>"
    buttons = button_row(["Take the word away", "Silence none", "Reset"])
    return f'<div class="tl-lists" {HIDDEN}>{field}{chips}</div>{buttons}'


def _chip(word):
    return f'<button type="button" {KEYS}>{escape(word)}</button>'


def _menus(words):
    """Draw the lists of the word whose logit is split, and of the one that is taken off it."""
    options = "".join(f"<option>{escape(word)}</option>" for word in words)
    lists = [
        f'<label>{label} <select {KEYS}><option value="">{none}</option>{options}</select></label>'
        for label, none in (("split the logit of", "the first"), ("minus that of", "nothing"))
    ]
    return f'<div class="tl-lists" {HIDDEN}><p class="tl-menus">{" ".join(lists)}</p></div>'

"""Ask the model: its words, its heads, what they look at, and what each adds to the logits."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.contract import require_instance
from tutorial_lib.describe import escaped_name, round_unless_near_tie
from tutorial_lib.elements.markup import (
    HIDDEN,
    KEYS,
    button_row,
    exhibit,
    fold,
    fold_numbers,
    given,
)
from tutorial_lib.elements.tables import NO_MATH, TABLE, headings, numbered_names
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.grammar import CLASSES, WORDS
from tutorial_lib.models.head_scores import logit_terms
from tutorial_lib.models.language import WORDS_HINT, encode, in_eight_bits, quantise_rows

_KEYS_SHOWN, _WORDS_SHOWN = 2, 6
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
_HOW_TO = (
    "Choose a {word} to see where its heads attend and which {word} comes next. Silence a head to "
    "see what it adds."
)
_LEGEND = (
    "An arc leads from the chosen {word} to each on which a head puts a weight of 0.05 or more, "
    "the thicker the larger: above for the last layer, below for the one before. Point at a head’s "
    "name, tap it, or go there by keys, to see only its arcs. Head {head} is head {h} of layer "
    "{layer}, both counted from 0."
)
_MORE = (
    "A number in brackets is a position. Of the next {word}s those that are compared come first, "
    "then the most probable ones. All bars keep their scale until Reset. The terms add up to the "
    "last line. A silenced head adds nothing, so later layers change too. "
    "Keys: arrows choose a {word}, Delete removes it, Enter on one in the list puts that after it. "
    "All parameters of the model are rounded to 8 bits."
)


def ask_model(model, words, sentence, *, question, split=None):
    """Show a model that answers: for any sentence where its heads look, and which word is next.

    Introduced in chapter 08. The model is rounded to 8 bits, which come with the element. Where
    every word is one letter, the letters of a sentence need no blanks between them.

    Parameters
    ----------
    model : TinyModel of one or two layers
    words : names of its tokens, in the order of their ids
    sentence : what it begins with
    question : what is asked before the first touch
    split : two of the words, the difference of whose logits is split at first, and behind which
        other next words are folded away; by default the logit of the most probable word is split

    Raises
    ------
    TypeError : no TinyModel, or a sentence that is no string
    ValueError : more layers than can be drawn, layers with unlike heads, names that are not one
        for each token, a sentence without a word, with a word that the model does not know, or
        longer than the model can read, a split of other than two different words

    >>> from tutorial_lib.models.copying import init_model
    >>> model = init_model(np.random.default_rng(0))
    >>> letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
    >>> ask_model(model, letters, "abab", question="Which letter?").text[:11]
    'Model: abab'
    """
    require_instance("model", model, TinyModel)
    _require_layers(model)
    words = _read_names(model, words)
    ids = _ids(model, words, sentence)
    answer = _Answer(in_eight_bits(model), words, ids, _pair(words, split))
    name, weights = packed(model)
    compared = {"word": answer.word, "minus": answer.minus}
    state = {"words": words, "ids": ids, "name": name, **compared, **_helps(words, sentence)}
    parts = [
        f'<div class="tl-asked {NO_MATH}" {given(state)}>',
        _sentence(words, ids),
        _switches(answer.heads) + _controls(words),
        answer.tables(),
        f'<p class="tl-legend">{_legend(words, answer.heads[-1])}</p>',
        fold("More", f"<p>{_MORE.format(word=_noun(words))}</p>"),
        "</div>",
        f'<script data-model="{name}">\n(globalThis.tlModels ??= {{}})'
        f"[{json.dumps(name)}] = {weights};\n</script>",
    ]
    how = _HOW_TO.format(word=_noun(words))
    heading = f"ask-{name}", "Ask the model", question, how
    return exhibit(*heading, *parts, text=answer.text())


def _require_layers(model):
    if not 1 <= len(model.layers) <= 2:
        raise ValueError(
            f"the model has {len(model.layers)} layers; expected 1 or 2, whose arcs are drawn "
            f"above and below the sentence. Give a model of so many."
        )
    counts = [len(params.W_Q) for params in model.layers]
    if len(set(counts)) > 1:
        raise ValueError(
            f"the layers have {' and '.join(map(str, counts))} heads; expected as many in each, "
            f"since a colour is a head of either layer. Give a model with equal layers."
        )


def _read_names(model, words):
    if len(words) != len(model.E):
        raise ValueError(
            f"words has {len(words)} names, but the model has {len(model.E)} tokens; expected one "
            f"for each, in the order of their ids."
        )
    for i, word in enumerate(words):
        if not isinstance(word, str) or word.split() != [word]:
            raise ValueError(
                f"words[{i}] is {word!r}; expected a name without a blank, since blanks separate "
                f"the words of a sentence. Rename it."
            )
        if word in words[:i]:
            raise ValueError(
                f"words[{i}] is {word!r}, as words[{words.index(word)}] is; expected a name of "
                f"its own for each token. Rename one."
            )
    return [escaped_name(word) for word in words]


def _pair(words, split):
    """Return the ids of the words whose logits are compared; -1 for none."""
    if split is None:
        return -1, -1
    pair = [split] if isinstance(split, str) else list(split)
    if len(set(pair)) != 2 or len(pair) != 2 or not set(pair) <= set(words):
        raise ValueError(
            f"split is {split!r}; expected two different words of the model, such as "
            f"{tuple(words[-2:])}. Name both."
        )
    return words.index(pair[0]), words.index(pair[1])


def packed(model):
    """Return the name of a model, a digest of its parameters, and these in 8 bits as JSON."""
    codes, steps = zip(*map(quantise_rows, model.arrays), strict=True)
    parts = {
        "shapes": [array.shape for array in codes],
        "codes": _base64(codes, np.int8),
        "steps": _base64(steps, "<f4"),
    }
    text = json.dumps(parts, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:12], text


def _base64(arrays, kind):
    joined = np.concatenate([array.ravel() for array in arrays])
    return b64encode(joined.astype(kind).tobytes()).decode()


def _ids(model, words, sentence):
    """Return the ids of a sentence; in the language of chapter 19, they begin with <bos>."""
    if tuple(words) == WORDS:
        return encode(sentence, length=len(model.P)).tolist()
    if not isinstance(sentence, str):
        raise TypeError(
            f"sentence is a {type(sentence).__name__}; expected one string. Join a list of words."
        )
    tokens = list("".join(sentence.split())) if _noun(words) == "letter" else sentence.split()
    unknown = [word for word in tokens if word not in words]
    if unknown:
        noun = _noun(words)
        raise ValueError(f"{unknown[0]!r} is no {noun} of this model; expected {noun}s of {words}.")
    if not 0 < len(tokens) <= len(model.P):
        raise ValueError(
            f"the sentence has {len(tokens)} {_noun(words)}s; expected 1 to {len(model.P)}, the "
            f"positions that the model has. Give a sentence of that length."
        )
    return [words.index(word) for word in tokens]


class _Answer:
    """What a model predicts after the last word of a sentence, as tables and as text."""

    def __init__(self, model, words, ids, split):
        logits, records = run(model, np.array(ids))
        self.words, self.ids = words, ids
        self.weights = np.concatenate([record.weights[:, -1] for record in records])
        self.heads = [f"{i}.{h}" for i, r in enumerate(records) for h in range(len(r.weights))]
        self.chances = softmax(logits[-1])
        self.word, self.minus = split
        word = int(self.chances.argmax()) if self.word < 0 else self.word
        added = [term[-1] for term in logit_terms(model, np.array(ids))]
        self.terms = [term[word] - (term[self.minus] if self.minus >= 0 else 0) for term in added]
        self.split = [words[i] for i in (word, self.minus) if i >= 0]

    def keys(self, weights):
        """Name the keys with the largest weights of a head."""
        names = numbered_names([self.words[i] for i in self.ids])
        order = np.argsort(-weights, kind="stable")[:_KEYS_SHOWN]
        shares = [(names[s], _three(weights[s])) for s in order if weights[s] >= 0.0005]
        return ", ".join(f"{name} {weight}" for name, weight in shares)

    def next_words(self):
        """Return the words that are compared, then the most probable ones, the first foremost."""
        pair = [i for i in (self.word, self.minus) if i >= 0]
        order = [i for i in np.argsort(-self.chances, kind="stable") if i not in pair]
        return [(self.words[i], self.chances[i]) for i in [*pair, *order][:_WORDS_SHOWN]]

    def rows(self):
        """Return the name of each term of the logits, the keys of its head, and what it adds."""
        keys = ["", *map(self.keys, self.weights), ""]
        names = [
            f"the {_noun(self.words)} itself",
            *(f"head {head}" for head in self.heads),
            "together",
        ]
        return list(zip(names, keys, [*self.terms, sum(self.terms)], strict=True))

    def tables(self):
        """Draw the next words, and below them the terms of the logits."""
        most = max(map(abs, self.terms))
        rows = "".join(self._row(i, *row, most) for i, row in enumerate(self.rows()))
        adds = " − ".join(f"“{escape(word)}”" for word in self.split)
        heads = _columns("term", "attends most to", f"adds to {adds}")
        after = f"After <b>{escape(self.words[self.ids[-1]])}</b> comes:"
        return (
            f'<div class="tl-answer"><div><p class="tl-after">{after}</p>'
            f"{self._next_tables()}{_menus(self.words)}"
            f'</div><div class="tl-paths">{TABLE.format(heads, rows)}</div></div>'
        )

    def _next_tables(self):
        """Draw the next words; where two are compared, others are folded away behind them."""
        probable = self.next_words()
        if self.word < 0:
            return self._next_table(probable)
        summary = f"Other next {_noun(self.words)}s"
        others = fold_numbers(self._next_table(probable[2:]), summary=summary)
        return self._next_table(probable[:2]) + others

    def _next_table(self, shown):
        most = max(chance for _, chance in shown)
        rows = [
            f"<tr{' data-asked' * (self.word >= 0 and word in self.split)}>"
            f'<th scope="row">{escape(word)}</th><td><span class="tl-bar" '
            f'style="width:{100 * chance / most:.1f}%"></span></td>'
            f"<td>{escape(_chance(chance))}</td></tr>"
            for word, chance in shown
        ]
        return TABLE.format(_columns("next", "", "probability"), "".join(rows))

    def _row(self, i, name, keys, term, most):
        head = 0 < i <= len(self.heads)
        color = f' data-head="{(i - 1) % len(self._layer())}"' if head else ""
        bar = _bar(term, most) if i <= len(self.heads) else ""
        return (
            f'<tr{color}><th scope="row">{name}</th><td>{_unbroken(keys)}</td>'
            f"<td><span>{_signed(term)}</span>{bar}</td></tr>"
        )

    def _layer(self):
        return [head for head in self.heads if head.startswith("0.")]

    def text(self):
        """Write the answer for terminals."""
        join_words = ("" if _noun(self.words) == "letter" else " ").join
        lines = [f"   {word} {_chance(chance)}" for word, chance in self.next_words()]
        rows = [
            f"   {name}: " + "; ".join(filter(None, [keys, f"adds {_signed(term)}"]))
            for name, keys, term in self.rows()
        ]
        title = f"Model: {join_words([self.words[i] for i in self.ids])}"
        adds = f"what adds to the logit of {' − '.join(self.split)}, and where heads attend:"
        return "\n".join([title, f"next {_noun(self.words)}:", *lines, adds, *rows])


def _helps(words, sentence):
    """Return what is shown to a reader who typed no word, or an unknown one."""
    if tuple(words) == WORDS:
        return {"kinds": WORDS_HINT, "example": "the dogs that bark"}
    return {"kinds": f"It has: {' '.join(words)}.", "example": sentence}


def _noun(words):
    """Return what the tokens are called."""
    return "letter" if max(map(len, words)) == 1 else "word"


def _legend(words, head):
    layer, h = head.split(".")
    return _LEGEND.format(word=_noun(words), head=head, layer=layer, h=h)


def _unbroken(keys):
    """Keep each key and its weight together; where it is narrow, only the first is shown."""
    first, *rest = escape(keys).replace(" ", "\N{NO-BREAK SPACE}").split(",\N{NO-BREAK SPACE}")
    return first + "".join(f"<span>, {key}</span>" for key in rest)


def _three(number):
    return f"{round_unless_near_tie(float(number), 3):.3f}"


def _chance(number):
    """Write a probability, which never is 0."""
    return _three(number) if number >= 0.0005 else "< 0.001"


def _signed(number):
    return f"{round_unless_near_tie(float(number), 2):+.2f}".replace("-", "−")


def _bar(term, most):
    """Draw a signed number as a bar to the left or to the right of a line."""
    fraction = term / most if most else 0
    x, width = 50 * min(fraction, 0), 50 * abs(fraction)
    return (
        '<svg viewBox="-51 0 102 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="6"/><path d="M0 0v8"/></svg>'
    )


def _columns(*names):
    """Draw the cells above columns; one without a name is no heading."""
    return headings(*names).replace('<th scope="col"></th>', "<td></td>")


def _sentence(words, ids):
    cells = " ".join(
        f'<span class="tl-word">{escape(words[i])}<small aria-hidden="true">{at}</small></span>'
        for at, i in enumerate(ids)
    )
    return f'<div class="tl-sentence"><svg aria-hidden="true"></svg>{cells}</div>'


def _switches(heads):
    """Draw a switch for each head, and one that lets all be heard again."""
    layer = len([head for head in heads if head.startswith("0.")])
    chips = "".join(
        f'<button type="button" data-head="{i % layer}" aria-label="silence head {head}" '
        f"{KEYS}>{head}</button>"
        for i, head in enumerate(heads)
    )
    none = f'<button type="button" aria-label="Silence none" {KEYS}>none</button>'
    role = 'role="group" aria-label="Silence a head"'
    return f'<div class="tl-row tl-silence" {role} {HIDDEN}><span>silence</span>{chips}{none}</div>'


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
    groups.insert(0, (f"{_noun(words)}s", [word for word in words if word not in grouped]))
    lines = "".join(
        f"<p><i>{label}</i> " + " ".join(map(_chip, members)) + "</p>"
        for label, members in groups
        if members
    )
    noun = _noun(words)
    title = f"{noun.capitalize()}s to put after the chosen one"
    role = f'role="region" tabindex="0" aria-label="{title}" {KEYS}'
    box = f'<div class="tl-chips" {role}>{lines}</div>'
    chips = f"<details><summary>{title}</summary>{box}</details>"
    buttons = button_row([f"Remove the {noun}", "Reset"])
    return f'<div class="tl-lists" {HIDDEN}>{field}{chips}</div>{buttons}'


def _chip(word):
    return f'<button type="button" {KEYS}>{escape(word)}</button>'


def _menus(words):
    """Draw the lists of the word whose logit is split, and of the one whose logit is subtracted."""
    options = "".join(f"<option>{escape(word)}</option>" for word in words)
    lists = [
        f'<label>{label} <select {KEYS}><option value="">{none}</option>{options}</select></label>'
        for label, none in (("split the logit of", "the first"), ("minus that of", "nothing"))
    ]
    return f'<div class="tl-lists" {HIDDEN}><p class="tl-menus">{" ".join(lists)}</p></div>'

"""Ask the model: its tokens, its heads, what they look at, and what each adds to the logits."""

import json
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import escape

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.describe import round_unless_near_tie
from tutorial_lib.elements.markup import HIDDEN, KEYS, button_row, exhibit, fold, given, text_field
from tutorial_lib.elements.tables import NO_MATH, TABLE, headings, numbered_names
from tutorial_lib.models.copying import run
from tutorial_lib.models.head_scores import logit_terms
from tutorial_lib.models.language import in_eight_bits, quantise_rows

_KEYS_SHOWN, _TOKENS_SHOWN = 2, 6
_BOS = "<bos>"  # stands in front of a sentence, if it is the first token
_HOW_TO = (
    "Choose a token to see where its heads attend and which token comes next. Silence a head to "
    "see what it adds."
)
_LEGEND = (
    "An arc leads from the chosen token to each on which a head puts a weight of 0.05 or more, the "
    "thicker the larger: above for the last layer, below for the one before. Point at the row of a "
    "head, or go to its switch by keys, to see only its arcs. Head {} is head {} of layer {}, both "
    "counted from 0."
)
_MORE = (
    "A number in brackets is a position. Of the next tokens those that are compared come first, "
    "then the most probable ones. The terms add up to the last line, and their bars have the scale "
    "of the model without a silenced head. A silenced head adds nothing, so later layers change "
    "too. All parameters of the model are rounded to 8 bits."
)


def ask_model(model, tokens, sentence, *, question, split=("", "")):
    """Show a model that answers: for any sentence where its heads look, and which token is next.

    Introduced in chapter 08. The model is rounded to 8 bits, which come with the element. Where
    every token is one letter, a sentence has no blanks between them.

    Parameters
    ----------
    model : TinyModel of one or two layers
    tokens : their names, in the order of their ids
    sentence : what it begins with
    question : what is asked before the first touch
    split : two tokens, the difference of whose logits is split at first; by default the logit of
        the most probable token is split

    >>> from tutorial_lib.models.copying import init_model
    >>> model = init_model(np.random.default_rng(0))
    >>> letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
    >>> ask_model(model, letters, "abab", question="Which letter?").text[:11]
    'Model: abab'
    """
    first = {"text": sentence, "query": "", "silenced": "", "word": split[0], "minus": split[1]}
    return draw_ask(model, tokens, question, first)


def draw_ask(model, tokens, question, first, **state):
    """Draw the exhibit in a state, of which `first` has all parts.

    Parameters
    ----------
    text : the sentence
    query : the chosen position; "" is the last one
    silenced : names of heads, with commas between
    word, minus : the token whose logit is split, and the one whose logit is subtracted; "" is none
    """
    answer = _ModelAnswer(in_eight_bits(model), list(tokens), {**first, **state})
    name, weights = name_and_packed_weights(model)
    begins = {"tokens": list(tokens), "positions": len(model.P), "name": name, "first": first}
    layer, head = answer.heads[-1].split(".")
    listed = " ".join(map(escape, answer.tokens))
    parts = [
        f'<div class="tl-asked {NO_MATH}" {given(begins)}>',
        answer.sentence_html(),
        answer.head_switches() + answer.controls_html(),
        answer.tables_html(),
        f'<p class="tl-legend">{_LEGEND.format(answer.heads[-1], head, layer)}</p>',
        fold("More, and all tokens", f"<p>{_MORE}</p><p>The tokens: {listed}</p>"),
        "</div>",
        f'<script data-model="{name}">\n(globalThis.tlModels ??= {{}})'
        f"[{json.dumps(name)}] = {weights};\n</script>",
    ]
    heading = f"ask-{name}", "Ask the model", question, _HOW_TO
    return exhibit(*heading, *parts, text=answer.as_text())


def name_and_packed_weights(model):
    """Return the name of a model, a digest of its parameters, and these in 8 bits as JSON."""
    codes, steps = zip(*map(quantise_rows, model.arrays), strict=True)
    parts = {
        "shapes": [array.shape for array in codes],
        "codes": _arrays_to_base64(codes, np.int8),
        "steps": _arrays_to_base64(steps, "<f4"),
    }
    text = json.dumps(parts, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:12], text


def _arrays_to_base64(arrays, dtype):
    joined = np.concatenate([array.ravel() for array in arrays])
    return b64encode(joined.astype(dtype).tobytes()).decode()


def _without_silenced_heads(model, silenced):
    """Return the model with zeros in the rows of W_O of each silenced head."""
    layers = []
    for i, params in enumerate(model.layers):
        W_O = params.W_O.reshape(params.n_heads, -1, params.W_O.shape[1]).copy()
        W_O[[h for h in range(params.n_heads) if f"{i}.{h}" in silenced]] = 0
        layers.append(replace(params, W_O=W_O.reshape(params.W_O.shape)))
    return replace(model, layers=tuple(layers))


class _ModelAnswer:
    """What a model predicts after a token of a sentence, as tables and as text."""

    def __init__(self, model, tokens, state):
        self.tokens, self.state = tokens, state
        self.blank = "" if max(map(len, tokens)) == 1 else " "
        typed = state["text"].split() if self.blank else state["text"]
        bos = [_BOS] * (tokens[0] == _BOS)
        self.ids = np.array([tokens.index(token) for token in [*bos, *typed]])
        self.names = [tokens[i] for i in self.ids]
        self.query = len(self.ids) - 1 if state["query"] == "" else int(state["query"])
        self.silenced = state["silenced"].split(",")
        silent = _without_silenced_heads(model, self.silenced)
        logits, records = run(silent, self.ids)
        self.weights = np.concatenate([record.weights[:, self.query] for record in records])
        self.heads = [f"{i}.{h}" for i, r in enumerate(records) for h in range(len(r.weights))]
        self.chances = softmax(logits[self.query])
        self.compared = [tokens.index(state[part]) for part in ("word", "minus") if state[part]]
        self.asked = tokens.index(state["word"] or tokens[self.chances.argmax()])
        self.terms = self._logit_terms(silent)
        self.most = max(map(abs, self._logit_terms(model)))

    def _logit_terms(self, model):
        """Return what each term adds to the logit, or to the difference of two."""
        added = [term[self.query] for term in logit_terms(model, self.ids)]
        minus = self.state["minus"]
        off = [term[self.tokens.index(minus)] if minus else 0 for term in added]
        return [term[self.asked] - less for term, less in zip(added, off, strict=True)]

    def strongest_keys_text(self, i):
        """Name the keys with the largest weights of a head."""
        if self.heads[i] in self.silenced:
            return "silenced"
        names, weights = numbered_names(self.names), self.weights[i]
        top = np.argsort(-weights, kind="stable")[:_KEYS_SHOWN]
        return ", ".join(f"{names[s]} {_decimals(weights[s])}" for s in top if weights[s] >= 0.0005)

    def next_tokens(self):
        """Return the tokens that are compared, then the most probable ones, the first foremost."""
        order = [i for i in np.argsort(-self.chances, kind="stable") if i not in self.compared]
        return [*self.compared, *order][:_TOKENS_SHOWN]

    def term_rows(self):
        """Return the name of each term of the logits, the keys of its head, and what it adds."""
        keys = ["", *map(self.strongest_keys_text, range(len(self.heads))), ""]
        names = ["the token itself", *(f"head {head}" for head in self.heads), "together"]
        return list(zip(names, keys, [*self.terms, sum(self.terms)], strict=True))

    def split_text(self):
        """Name what is split."""
        minus = self.state["minus"]
        return f"“{self.tokens[self.asked]}”" + (f" − “{minus}”" if minus else "")

    def sentence_html(self):
        """Draw the tokens of the sentence."""
        cells = " ".join(
            f'<span class="tl-word">{escape(name)}<small aria-hidden="true">{t}</small></span>'
            for t, name in enumerate(self.names)
        )
        return f'<div class="tl-sentence"><svg aria-hidden="true"></svg>{cells}</div>'

    def head_switches(self):
        """Draw a switch for each head."""
        pressed = ' aria-pressed="true"'
        chips = "".join(
            f'<button type="button" data-head="{self._head_colour(i)}" aria-label="silence head '
            f'{head}" {KEYS}{pressed * (head in self.silenced)}>{head}</button>'
            for i, head in enumerate(self.heads)
        )
        role = 'role="group" aria-label="Silence a head"'
        return f'<div class="tl-row tl-silence" {role} {HIDDEN}><span>silence</span>{chips}</div>'

    def controls_html(self):
        """Draw the field and the button below it."""
        field = text_field("Sentence", escape(self.state["text"]), f' autocapitalize="off" {KEYS}')
        label = f"<label>Sentence {field}</label>"
        return f'<div class="tl-lists" {HIDDEN}>{label}</div>{button_row(["Reset"])}'

    def tables_html(self):
        """Draw the next tokens, and beside them the terms of the logits."""
        rows = "".join(self._term_row(i, *row) for i, row in enumerate(self.term_rows(), start=-1))
        terms = _headings("term", "attends most to", f"adds to {escape(self.split_text())}")
        after = f"After <b>{escape(self.names[self.query])}</b> comes:"
        following = "".join(map(self._next_token_row, self.next_tokens()))
        return (
            f'<div class="tl-answer"><div><p class="tl-after">{after}</p>'
            f"{TABLE.format(_headings('next', '', 'probability'), following)}{self._menus()}"
            f'</div><div class="tl-paths">{TABLE.format(terms, rows)}</div></div>'
        )

    def _next_token_row(self, token):
        chance = self.chances[token]
        return (
            f"<tr{' data-asked' * (token in self.compared)}>"
            f'<th scope="row">{escape(self.tokens[token])}</th><td><span class="tl-bar" '
            f'style="width:{100 * chance:.2f}%"></span></td><td>{escape(_chance(chance))}</td></tr>'
        )

    def _term_row(self, i, name, keys, term):
        head = 0 <= i < len(self.heads)
        marks = f' data-head="{self._head_colour(i)}"' if head else ""
        marks += " data-quiet" * (keys == "silenced")
        bar = self._signed_bar(term) if i < len(self.heads) else ""
        return (
            f'<tr{marks}><th scope="row">{name}</th><td>{_unbroken_keys(keys)}</td>'
            f"<td><span>{_signed_text(term)}</span>{bar}</td></tr>"
        )

    def _signed_bar(self, term):
        """Draw a signed number as a bar to the left or to the right of a line."""
        width = min(50 * abs(term) / self.most, 50) if self.most else 0
        x = -width if term < 0 else 0
        return (
            '<svg viewBox="-51 0 102 8" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect x="{x:.2f}" y="1" width="{width:.2f}" height="6"/><path d="M0 0v8"/></svg>'
        )

    def _menus(self):
        """Draw the lists of the token whose logit is split, and of the one that is subtracted."""
        options = "".join(f"<option>{escape(token)}</option>" for token in self.tokens)
        lists = [
            f"<label>{label} <select {KEYS}>"
            f'<option value="">{none}</option>{options}</select></label>'
            for label, none in (("split the logit of", "the first"), ("minus that of", "nothing"))
        ]
        return f'<div class="tl-lists" {HIDDEN}><p class="tl-menus">{" ".join(lists)}</p></div>'

    def _head_colour(self, i):
        return i % (1 + int(self.heads[-1].split(".")[1]))

    def as_text(self):
        """Write the answer for terminals."""
        lines = [f"   {self.tokens[i]} {_chance(self.chances[i])}" for i in self.next_tokens()]
        rows = [
            f"   {name}: " + "; ".join(filter(None, [keys, f"adds {_signed_text(term)}"]))
            for name, keys, term in self.term_rows()
        ]
        adds = f"what adds to {self.split_text()}, and where heads attend:"
        return "\n".join([f"Model: {self.blank.join(self.names)}", "next:", *lines, adds, *rows])


def _unbroken_keys(keys):
    """Keep each key and its weight together; where it is narrow, only the first is shown."""
    first, *rest = escape(keys).replace(" ", "\N{NO-BREAK SPACE}").split(",\N{NO-BREAK SPACE}")
    return first + "".join(f"<span>, {key}</span>" for key in rest)


def _decimals(number):
    return f"{round_unless_near_tie(float(number), 3):.3f}"


def _chance(number):
    """Write a probability, which never is 0."""
    return _decimals(number) if number >= 0.0005 else "< 0.001"


def _signed_text(number):
    return f"{round_unless_near_tie(float(number), 2):+.2f}".replace("-", "−")


def _headings(*names):
    """Draw the cells above columns; one without a name is no heading."""
    return headings(*names).replace('<th scope="col"></th>', "<td></td>")

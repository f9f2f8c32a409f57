"""Attention weights as the gallery draws them: checked, rounded, named, packed."""

import json
from fractions import Fraction
from html import escape
from typing import NamedTuple

from tutorial_lib.contract import require, require_value_fits_annotation
from tutorial_lib.describe import escaped_name, round_unless_near_tie
from tutorial_lib.errors import ShapeError, first_true_index, require_finite, require_mask

_MOST = {"H": (16, "heads"), "T": (64, "queries")}
_MOST_ROWS = 48  # of the table that needs no script
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS = [a + b for a in _DIGITS for b in _DIGITS]


class Looks(NamedTuple):
    """Weights as they are drawn.

    Parameters
    ----------
    tokens : names; one that occurs twice is followed by its position
    rows : (H, T, T) lists of thousandths, None where a key is hidden
    fractions : dict of thousandths -> what is written instead, empty for decimals
    target : for each query the position of the key that decides its next word, -1 for none;
        empty where no targets are known
    """

    tokens: list
    rows: list
    fractions: dict
    target: tuple = ()

    def packed(self):
        """Return what the script reads, as attributes; the names are HTML.

        Two digits of base 36 are a weight in thousandths, "rs" is 1000 and "--" a hidden key; the
        hidden keys that end a row are left out, and blanks separate the rows.
        """
        rows = [
            "".join("--" if number is None else _PAIRS[number] for number in row).rstrip("-")
            for head in self.rows
            for row in head
        ]
        data = {
            "weights": " ".join(rows),
            "tokens": _json([escape(name) for name in self.tokens]),
            "fractions": _json(dict(sorted(self.fractions.items()))),
        }
        data |= {"target": _json(self.target)} if self.target else {}
        return " ".join(f'data-{key}="{escape(text)}"' for key, text in data.items())

    def strongest(self):
        """Return (head, query, its three strongest keys in words) for each row of weights.

        Where targets are known, the target and its weight come as a fourth. If all rows are too
        many to read, only those with a target are returned; if these are too many, none is.
        """
        known = [t for t, key in enumerate(self.target) if key >= 0]
        every = range(len(self.tokens))
        short = next((few for few in (every, known) if len(few) * len(self.rows) <= _MOST_ROWS), ())
        return [
            (str(h), self.tokens[t], self._in_words(head[t]), *self._deciding(head, t))
            for h, head in enumerate(self.rows)
            for t in short
        ]

    def digits(self):
        """Return the length of the longest weight as it is written."""
        numbers = {number for head in self.rows for row in head for number in row} - {None}
        return max(map(len, map(self._written, numbers)), default=0)

    def _written(self, number):
        return self.fractions.get(number, f"{number / 1000:.3f}")

    def _deciding(self, head, t):
        """Return the last cell of a query's line: its target and the weight on it, or "none".

        A list of that one text; without targets there is no such cell, and the list is empty.
        """
        if not self.target:
            return []
        key = self.target[t]
        if key < 0:
            return ["none"]
        weight = "hidden" if head[t][key] is None else self._written(head[t][key])
        return [f"{self.tokens[key]} {weight}"]

    def _in_words(self, row):
        order = sorted((s for s, number in enumerate(row) if number), key=lambda s: -row[s])
        texts = [self._written(row[s]) for s in order[:3]]
        named = zip(order[:3], texts, strict=True)
        return ", ".join(f"{self.tokens[s]} {text}" for s, text in named) or "nothing"


def read_weights(weights, tokens, mask):
    """Check weights and their names, and round the weights to thousandths.

    Parameters
    ----------
    weights : (H, T, T)
    tokens : T names
    mask : None, or True = may look, broadcastable to (H, T, T)

    Returns
    -------
    looks : Looks

    Raises
    ------
    TypeError, ShapeError, ValueError : see `gallery`
    """
    require_value_fits_annotation("weights", weights, "raw H T T")
    _require_lengths(weights.shape, len(tokens))
    require_finite("weights", weights)
    require_mask(mask, weights.shape)
    _require_rows(weights)
    seen = weights == weights
    seen = seen if mask is None else seen & mask
    if (hidden := (weights > 0) & ~seen).any():
        place = first_true_index(hidden)
        raise ValueError(
            f"mask hides position {place}, where the weight is {weights[place]}; expected 0. "
            f"Give the mask that made these weights: attention_weights(scores, mask=mask)."
        )
    numbers, fractions = _rounded(set(weights.ravel().tolist()))
    rows = [
        [
            [numbers[weight] if may_look else None for weight, may_look in zip(*row, strict=True)]
            for row in zip(*head, strict=True)
        ]
        for head in zip(weights.tolist(), seen.tolist(), strict=True)
    ]
    return Looks(token_names(tokens), rows, fractions)


def read_targets(target, looks):
    """Check the target of each query, the position of the key that decides its next word; add it.

    Scores of heads have a check of their own, `models.head_scores.require_target_positions`: they
    subtract positions, so these are signed and not after the query, and they average over the
    queries that have a target, so there is one. Here there may be none, and only `mask` says what a
    query sees.

    Raises
    ------
    TypeError : no array of whole numbers
    ShapeError : other than a position for each query
    ValueError : a position that is not there, or that no head may attend to
    """
    T = len(looks.tokens)
    require_value_fits_annotation("target", target, "raw T", T=T)
    if target.dtype.kind not in "iu":
        raise TypeError(
            f"target is an array of {target.dtype}; expected whole numbers, the positions of keys. "
            f"Convert it first: target.astype(int)."
        )
    for t, key in enumerate(target.tolist()):
        if not -1 <= key < T:
            raise ValueError(
                f"target is {key} at query {t}; expected -1 to {T - 1}. "
                f"Give the position of a key, or -1 where no word decides the next one."
            )
        if key >= 0 and all(head[t][key] is None for head in looks.rows):
            raise ValueError(
                f"target is {key} at query {t}, a key that mask hides from it in every head; "
                f"expected a key that it may look at. Give the position of an earlier word."
            )
    return looks._replace(target=tuple(target.tolist()))


def _require_lengths(shape, n_names):
    for length, (axis, (most, kind)) in zip(shape, _MOST.items(), strict=False):
        given = f"weights has shape {shape}: its axis {axis} has {length} {kind}"
        mend = "Choose some of them: weights[:16]." if axis == "H" else "Give a shorter sequence."
        require(length <= most, ShapeError, f"{given}; expected at most {most}. {mend}")
    sentence = f"{given}, but {n_names} names are given for them; expected one for each."
    require(n_names == shape[-1], ShapeError, sentence)


def _require_rows(weights):
    if (negative := weights < 0).any():
        place = first_true_index(negative)
        raise ValueError(
            f"weights is {weights[place]} at position {place}; expected 0 to 1. "
            f"If these are scores, attention_weights(scores) makes weights of them."
        )
    sums = weights.sum(axis=-1, dtype=float)
    if (misfits := (abs(sums - 1) > 1e-3) & (sums != 0)).any():  # float16 has 3 digits
        place = first_true_index(misfits)
        raise ValueError(
            f"the row of head {place[0]}, query {place[1]} sums to {sums[place]:.4g} along axis S; "
            f"expected 1, or 0 where a query sees nothing. Give all keys of a row, and weights "
            f"that a softmax over the last axis made."
        )


def _rounded(weights):
    """Return the thousandths of each weight, and the fractions if all weights are fractions."""
    near = {weight: Fraction(weight).limit_denominator(64) for weight in weights}
    near = {weight: fraction for weight, fraction in near.items() if abs(fraction - weight) < 1e-6}
    numbers = {
        weight: round(1000 * (near[weight] if weight in near else round_unless_near_tie(weight, 3)))
        for weight in weights
    }
    texts = {numbers[weight]: str(fraction) for weight, fraction in near.items()}
    exact = len(near) == len(weights) and len(texts) == len(set(near.values()))
    return numbers, texts if exact else {}


def token_names(tokens):
    """Name tokens, those that occur twice with their positions."""
    names = [escaped_name(token) for token in tokens]
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

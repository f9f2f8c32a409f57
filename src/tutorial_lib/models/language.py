"""Language models of blocks, sentences as ids, weights in 8 bits, and GPT-2's layer as Params."""

import re
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed
from tutorial_lib.errors import (
    require_length,
    require_operand,
    require_shape,
)
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.doors import require_kind, require_list, require_model, require_sequence
from tutorial_lib.models.grammar import ID, LENGTH
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params

KINDS = (
    "It has nouns such as dogs, verbs such as bark, names such as Anna Kern, adverbs such as "
    "often, pronouns such as they and themselves, and “the that . ( ) [ ]”."
)
LONGEST_SHOWN = 20  # letters of a word that is refused


@dataclass(frozen=True)
class BlockModel:
    """X = E[ids] + P; each block adds attention, then an MLP, of the normed X; norm(X) @ U.

    Introduced in chapter 19.

    Parameters
    ----------
    E, P : (vocabulary, d_model), (length, d_model)
    layers : tuple of Params
    feeds : tuple of pairs W_1, W_2: (d_model, d_feed), (d_feed, d_model), one for each layer
    U : (d_model, vocabulary)

    Raises
    ------
    TypeError, ShapeError, ValueError : arrays that do not fit together, or NaN: a damaged file
    """

    E: np.ndarray
    P: np.ndarray
    layers: tuple
    feeds: tuple
    U: np.ndarray

    def __post_init__(self):
        require_model(self)
        pairs = "pairs W_1, W_2, one for each layer"
        require_sequence("feeds", self.feeds, pairs, len(self.layers))
        for n, feed in enumerate(self.feeds):
            require_sequence(f"feed {n}", feed, "the matrices W_1 and W_2", 2)
            mlp.contract.check((self.E, *feed), {})

    @property
    def arrays(self):
        """All parameters, in one list: six matrices per block."""
        pairs = zip(self.layers, self.feeds, strict=True)
        matrices = [W for params, feed in pairs for W in (*vars(params).values(), *feed)]
        return [self.E, self.P, *matrices, self.U]

    @classmethod
    def of(cls, arrays):
        """Make a model of such a list."""
        require_list(arrays, "BlockModel")
        E, P, *matrices, U = arrays
        sixes = [matrices[i : i + 6] for i in range(0, len(matrices), 6)]
        layers = tuple(Params(*six[:4]) for six in sixes)
        return cls(E, P, layers, tuple(tuple(six[4:]) for six in sixes), U)


def run_blocks(model, ids):
    """Run the model: logits of the next word, (..., T, vocabulary), and the trace of each layer.

    Introduced in chapter 19. Each trace is of the normed X.

    Parameters
    ----------
    model : BlockModel
    ids : (..., T), at most as many as P has rows

    Returns
    -------
    logits, traces : (..., T, vocabulary), and a list of one Trace for each layer

    Raises
    ------
    TypeError : no BlockModel, or ids that are no whole numbers
    ShapeError : more ids than the model has positions
    ValueError : an id outside the vocabulary
    """
    require_kind(model, BlockModel)
    X, traces = embed(ids, model.E, model.P), []
    for params, feed in zip(model.layers, model.feeds, strict=True):
        traces.append(trace(rms_norm(X), params, mask=causal_mask(ids.shape[-1])))
        X = X + traces[-1].Y
        X = X + mlp(rms_norm(X), *feed)
    return rms_norm(X) @ model.U, traces


def encode(sentence, *, length=LENGTH):
    """Return the ids of a sentence of the known text, with <bos> in front.

    Introduced in chapter 20.

    Parameters
    ----------
    sentence : words of the text with blanks between them; `.` and brackets are words too
    length : number of positions that the model has, <bos> among them

    Returns
    -------
    ids : (words + 1,)

    Raises
    ------
    TypeError : no string, or a length that is no whole number
    ValueError : a length below 2; no word, `length` words or more, or a word that the text does
        not have

    >>> encode("the dogs that bark").tolist()
    [0, 2, 20, 3, 40]
    """
    require_length("length", length)
    if length < 2:
        raise ValueError(
            f"length={length}; expected at least 2, since <bos> takes the first position. "
            f"Give the number of positions that the model has, such as {LENGTH}."
        )
    if not isinstance(sentence, str):
        raise TypeError(
            f"sentence is a {type(sentence).__name__}; expected words in one string. "
            f"Join a list of them: ' '.join(sentence)."
        )
    words = sentence.split()
    if fault := _fault(words, length):
        raise ValueError(fault)
    return np.array([0, *(ID[word] for word in words)])


def _fault(words, length):
    """Describe what is wrong with the words of a sentence; nothing where all is right."""
    most = length - 1
    if not words:
        return (
            f"The sentence has no word; expected 1 to {most}. Write some, such as "
            f"“the dogs that bark”."
        )
    if len(words) > most:
        return (
            f"The sentence has {len(words)} words; expected at most {most}, since the model has "
            f"{length} positions and <bos> takes the first. Leave out {len(words) - most}."
        )
    unknown = [word for word in words if not ID.get(word)]  # None, or 0 for <bos>
    return _unknown(unknown[0]) if unknown else ""


def _unknown(word):
    """Explain that the text does not have a word, and what may have been meant."""
    if word in ID:
        return f"'{word}' is put in front by itself. Leave it out."
    parts = re.findall(r"[^\W_]+|[\W_]", word)
    shown = word if len(word) <= LONGEST_SHOWN else word[:LONGEST_SHOWN] + "…"
    refused = f"'{shown}' is no word of this text"
    if all(part in ID for part in parts):
        return f"{refused}, but its parts are. Put blanks between them: “{' '.join(parts)}”."
    if near := _near(shown):
        return f"{refused}; near it: {', '.join(near)}. Take one of its words."
    return f"{refused}. {KINDS}"


def _near(word):
    """Return up to three words of the text that a few changed letters make of this one."""
    changes = {known: _changes(word.lower(), known.lower()) for known in ID if ID[known]}
    most = min(max(2, len(word) // 2), len(word) - 1)
    return [known for known in sorted(changes, key=changes.get) if changes[known] <= most][:3]


def _changes(a, b):
    """Count the letters to insert, delete or replace to make b of a."""
    row = list(range(len(b) + 1))
    for x in a:
        last, row = row, [row[0] + 1]
        for j, y in enumerate(b):
            row.append(min(row[j] + 1, last[j + 1] + 1, last[j] + (x != y)))
    return row[-1]


def eight_bits(W):
    """Round a matrix to whole numbers from -127 to 127, a step for each row.

    Introduced in chapter 20. A number is off by at most half a step of its row; a row of zeros
    stays one.

    Parameters
    ----------
    W : (..., d)

    Returns
    -------
    codes, steps : (..., d) int8 and (...) float64; W is near codes * steps[..., None]

    Raises
    ------
    TypeError, ShapeError : no array of numbers, integers other than int64, or an empty axis
    ValueError : NaN or infinity

    >>> codes, steps = eight_bits(np.array([[127.0, -63.6], [0.0, 0.0]]))
    >>> codes.tolist(), steps.tolist()
    ([[127, -64], [0, 0]], [1.0, 0.0])
    """
    require_shape("W", W, "... d")
    require_operand("W", W)
    steps = np.abs(W.astype(float)).max(axis=-1) / 127
    return np.rint(W / np.where(steps, steps, 1)[..., None]).astype(np.int8), steps


def in_eight_bits(model):
    """Return the TinyModel whose arrays are rounded by `eight_bits`, in float64.

    Introduced in chapter 20.

    Raises
    ------
    TypeError : no TinyModel
    """
    require_kind(model, TinyModel)
    pairs = (eight_bits(array) for array in model.arrays)
    return TinyModel.of([codes * steps[..., None] for codes, steps in pairs])

"""Language models of blocks, sentences as ids, and weights in 8 bits."""

import re

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.contract import checked, checked_record, require
from tutorial_lib.embedding import embed
from tutorial_lib.errors import ShapeError
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import ID, LENGTH
from tutorial_lib.models.layers import split_arrays_into_layers
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params

WORDS_HINT = (
    "It has nouns such as dogs, verbs such as bark, names such as Anna Kern, adverbs such as "
    "often, pronouns such as they and themselves, and “the that . ( ) [ ]”."
)
MAX_SHOWN_LENGTH = 20  # letters of a word that is refused


@checked_record(made_by="Make one with BlockModel.of(checkpoint(name)).")
class BlockModel:
    """X = E[ids] + P; each block adds attention, then an MLP, of the normed X; norm(X) @ U.

    Introduced in chapter 19. `feeds` are the two matrices W_1 and W_2 of each layer.

    Raises
    ------
    TypeError, ShapeError, ValueError : layers or feeds of another width, or not as many
    """

    E: "vocabulary d_model"
    P: "length d_model"
    layers: list[Params]
    feeds: list[tuple]
    U: "d_model vocabulary"

    def require_consistent_fields(self):
        """Require feeds that fit the layers."""
        feed_lengths = [len(mlp_weights) for mlp_weights in self.feeds]
        require(
            feed_lengths == [2] * len(self.layers),
            ShapeError,
            f"feeds has entries of {feed_lengths} matrices; expected W_1 and W_2 for each of "
            f"{len(self.layers)} layers. Give as many pairs.",
        )
        for mlp_weights in self.feeds:
            mlp.contract.check_arguments((self.E, *mlp_weights), {})

    @property
    def arrays(self):
        """All parameters, in one list: six matrices per block."""
        layer_pairs = zip(self.layers, self.feeds, strict=True)
        matrices = [W for params, feed in layer_pairs for W in (*vars(params).values(), *feed)]
        return [self.E, self.P, *matrices, self.U]

    @classmethod
    def of(cls, arrays):
        """Make a model of such a list."""
        E, P, blocks, U = split_arrays_into_layers(arrays, "BlockModel")
        layers = tuple(Params(*matrices[:4]) for matrices in blocks)
        return cls(E, P, layers, tuple(tuple(matrices[4:]) for matrices in blocks), U)


@checked
def run_blocks(model: BlockModel, ids: "int ... T") -> tuple:
    """Run the model: logits of the next word, (..., T, vocabulary), and the trace of each layer.

    Introduced in chapter 19. Each trace is of the normed X.
    """
    X, traces = embed(ids, model.E, model.P), []
    for params, mlp_weights in zip(model.layers, model.feeds, strict=True):
        traces.append(trace(rms_norm(X), params, mask=causal_mask(ids.shape[-1])))
        X = X + traces[-1].Y
        X = X + mlp(rms_norm(X), *mlp_weights)
    return rms_norm(X) @ model.U, traces


@checked
def encode(sentence: str) -> "positions":
    """Return the ids of a sentence of the known text, with <bos> in front.

    Introduced in chapter 20. Words have blanks between them; `.` and brackets are words too.

    Raises
    ------
    ValueError : no word, as many words as the model has positions, or an unknown word

    >>> encode("the dogs that bark").tolist()
    [0, 2, 20, 3, 40]
    """
    words = sentence.split()
    limit = LENGTH - 1
    require(
        words,
        ValueError,
        f"The sentence has no word; expected 1 to {limit}. Write some, such as “the dogs that "
        f"bark”.",
    )
    require(
        len(words) <= limit,
        ValueError,
        f"The sentence has {len(words)} words; expected at most {limit}, since the model has "
        f"{LENGTH} positions and <bos> takes the first. Leave out {len(words) - limit}.",
    )
    if unknown_words := [word for word in words if not ID.get(word)]:  # None, or 0 for <bos>
        raise ValueError(_unknown_word_message(unknown_words[0]))
    return np.array([0, *(ID[word] for word in words)])


def _unknown_word_message(word):
    """Explain that the text does not have a word, and what may have been meant."""
    if word in ID:
        return f"'{word}' is put in front by itself. Leave it out."
    word_parts = re.findall(r"[^\W_]+|[\W_]", word)
    excerpt = word if len(word) <= MAX_SHOWN_LENGTH else word[:MAX_SHOWN_LENGTH] + "…"
    message = f"'{excerpt}' is no word of this text"
    if all(part in ID for part in word_parts):
        return f"{message}, but its parts are. Put blanks between them: “{' '.join(word_parts)}”."
    if neighbours := _similar_words(excerpt):
        return f"{message}; near it: {', '.join(neighbours)}. Take one of its words."
    return f"{message}. {WORDS_HINT}"


def _similar_words(word):
    """Return up to three words of the text that a few changed letters make of this one."""
    distances = {entry: _edit_distance(word.lower(), entry.lower()) for entry in ID if ID[entry]}
    max_distance = min(max(2, len(word) // 2), len(word) - 1)
    nearest_words = sorted(distances, key=distances.get)[:3]
    return [entry for entry in nearest_words if distances[entry] <= max_distance]


def _edit_distance(source, target):
    """Count the letters to insert, delete or replace to make b of a."""
    costs = list(range(len(target) + 1))
    for source_letter in source:
        previous, costs = costs, [costs[0] + 1]
        for j, y in enumerate(target):
            costs.append(min(costs[j] + 1, previous[j + 1] + 1, previous[j] + (source_letter != y)))
    return costs[-1]


@checked
def quantise_rows(W: "... d") -> tuple:
    """Round a matrix to whole numbers from -127 to 127, a step for each row.

    Introduced in chapter 20. Returns codes, (..., d) in int8, and steps, (...): W is near
    codes * steps[..., None], off by at most half a step of its row. A row of zeros stays one.

    >>> codes, steps = quantise_rows(np.array([[127.0, -63.6], [0.0, 0.0]]))
    >>> codes.tolist(), steps.tolist()
    ([[127, -64], [0, 0]], [1.0, 0.0])
    """
    steps = np.abs(W.astype(float)).max(axis=-1) / 127
    return np.rint(W / np.where(steps, steps, 1)[..., None]).astype(np.int8), steps


@checked
def in_eight_bits(model: TinyModel) -> TinyModel:
    """Return the TinyModel whose arrays are rounded by `quantise_rows`, in float64.

    Introduced in chapter 20.
    """
    rounded_arrays = (quantise_rows(array) for array in model.arrays)
    return TinyModel.of([codes * steps[..., None] for codes, steps in rounded_arrays])

"""The two worked examples of Part I: one to check by hand, one that was published."""

import random
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed
from tutorial_lib.heads import split_heads
from tutorial_lib.projection import Params
from tutorial_lib.text import Vocabulary


@dataclass(frozen=True)
class Example:
    """A sentence, its tables and the parameters of one layer.

    Parameters
    ----------
    tokens : tuple of str, the sentence
    vocabulary : Vocabulary
    E : (vocabulary size, d_model), a row for each token
    P : (at least T, d_model), a row for each position
    params : Params
    """

    tokens: tuple
    vocabulary: Vocabulary
    E: np.ndarray
    P: np.ndarray
    params: Params

    @property
    def ids(self):
        """The sentence as ids: (T,)."""
        return self.vocabulary.ids(self.tokens)

    @property
    def X(self):
        """The layer's input, E[ids] + P: (T, d_model)."""
        return embed(self.ids, self.E, self.P)

    @property
    def mask(self):
        """The causal mask of the sentence: (T, T)."""
        return causal_mask(len(self.tokens))


def running_example():
    """Return the example of Part I: 3 tokens, d_model 8, 2 heads of d_k = d_v = 4, causal.

    W_Q holds integers times 2·ln 2 and sqrt(d_k) is 2, so e to a score is a power of 2 and every
    weight is a fraction. The values of head 0 are the four features of the word, those of
    head 1 the four features of its position.
    """
    E = np.array(_TOKEN_TABLE, dtype=float)
    P = np.array(_POSITION_TABLE, dtype=float)
    packed = np.array([_QUERY_WEIGHTS, _KEY_WEIGHTS, np.eye(8)])  # (3, d_model, H*d_k)
    W_Q, W_K, W_V = split_heads(packed, 2).copy()  # each (H, d_model, d_k)
    params = Params(2 * np.log(2) * W_Q, W_K, W_V, np.array(_OUT, dtype=float))
    vocabulary = Vocabulary(("<pad>", "dogs", "that", "bark", "cats", "sleep"))
    return Example(("dogs", "that", "bark"), vocabulary, E, P, params)


def published_example():
    """Rebuild a widely read worked example: 5 tokens, d_model 16, 2 heads of 8, causal.

    Its numbers come from Python's own generator, seeded with 42, standard deviation 0.1, sampled
    row by row: token table, position table, W_Q and W_K and W_V of each head, W_O. That example
    computes its output as `concat @ W_O.T`, so W_O here is the transpose of the matrix it sampled.
    """
    rng = random.Random(42)

    def sample_matrix(*shape):
        entries = [rng.gauss(0, 0.1) for _ in range(int(np.prod(shape)))]
        return np.array(entries).reshape(shape)

    E, P = sample_matrix(6, 16), sample_matrix(5, 16)
    W_Q, W_K, W_V = sample_matrix(2, 16, 8), sample_matrix(2, 16, 8), sample_matrix(2, 16, 8)
    W_O = sample_matrix(16, 16)
    vocabulary = Vocabulary(("<PAD>", "<BOS>", "<EOS>", "I", "like", "transformers"))
    tokens = ("<BOS>", "I", "like", "transformers", "<EOS>")
    return Example(tokens, vocabulary, E, P, Params(W_Q, W_K, W_V, W_O.T))


_TOKEN_TABLE = [
    [0, 0, 0, 0, 0, 0, 0, 0],  # <pad>
    [1, 0, 1, 0, 0, 0, 0, 0],  # dogs
    [0, 1, 0, 1, 0, 0, 0, 0],  # that
    [1, 1, 0, 0, 0, 0, 0, 0],  # bark
    [1, 0, 1, 1, 0, 0, 0, 0],  # cats
    [1, 1, 0, 1, 0, 0, 0, 0],  # sleep
]
_POSITION_TABLE = [
    [0, 0, 0, 0, 0, 1, 0, 0],
    [0, 0, 0, 0, 1, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 0, 0, 0, 1],
]
# Columns 0 to 3 are those of head 0, columns 4 to 7 those of head 1.
_QUERY_WEIGHTS = [
    [1, 1, 1, -1, -1, -1, 0, -1],
    [0, 0, 0, 0, 1, 1, 1, 1],
    [1, 0, 0, 0, -1, -1, 0, 0],
    [-1, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, -1, -1, 0, 0, 0, 1],
    [0, -1, 1, 1, 0, 0, 0, 1],
    [0, -1, 0, 1, 0, 1, 1, -1],
    [-1, 1, 1, -1, 1, -1, 1, -1],
]
_KEY_WEIGHTS = [
    [0, 0, 1, -1, 0, -1, 1, 1],
    [1, 1, 0, 1, 0, 0, 1, -1],
    [1, 1, -1, -1, 1, 0, 0, -1],
    [-1, -1, -1, 1, 1, -1, -1, -1],
    [-1, 1, 1, 1, 0, 1, -1, 1],
    [1, -1, -1, 1, 1, 0, 0, 0],
    [-1, 1, -1, 1, 0, 1, -1, 0],
    [0, -1, 0, 0, -1, -1, -1, -1],
]
_OUT = [
    [0, 0, 1, 0, 1, -1, -1, 1],
    [0, 0, 0, 0, 0, 1, 0, -1],
    [0, 1, 0, 0, 0, -1, 0, 0],
    [-1, 0, 0, -1, 0, -1, 0, 1],
    [0, 0, 0, 0, 0, 0, 1, 1],
    [0, 0, 0, 0, 1, 1, 0, 0],
    [-1, 0, -1, -1, 0, 0, 0, 1],
    [1, -1, -1, 0, -1, 1, 0, 1],
]

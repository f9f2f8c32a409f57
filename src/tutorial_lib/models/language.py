"""Language models of blocks, sentences as ids, weights in 8 bits, and GPT-2's layer as Params."""

import difflib
from dataclasses import dataclass

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import ID, LENGTH
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params


@dataclass(frozen=True)
class BlockModel:
    """X = E[ids] + P; each block adds attention, then an MLP, of the normed X; norm(X) @ U.

    Introduced in chapter 19.

    Parameters
    ----------
    E, P : (vocabulary, d_model), (length, d_model)
    layers : tuple of Params
    feeds : tuple of pairs W_1, W_2: (d_model, d_feed), (d_feed, d_model)
    U : (d_model, vocabulary)
    """

    E: np.ndarray
    P: np.ndarray
    layers: tuple
    feeds: tuple
    U: np.ndarray

    @property
    def arrays(self):
        """All that is learned, in one list: six matrices a block."""
        pairs = zip(self.layers, self.feeds, strict=True)
        matrices = [W for params, feed in pairs for W in (*vars(params).values(), *feed)]
        return [self.E, self.P, *matrices, self.U]

    @classmethod
    def of(cls, arrays):
        """Make a model of such a list."""
        E, P, *matrices, U = arrays
        sixes = [matrices[i : i + 6] for i in range(0, len(matrices), 6)]
        layers = tuple(Params(*six[:4]) for six in sixes)
        return cls(E, P, layers, tuple(tuple(six[4:]) for six in sixes), U)


def run_blocks(model, ids):
    """Go forward: scores of the next word, (..., T, vocabulary), and the trace of each layer.

    Introduced in chapter 19. Each trace is of the normed X.
    """
    X, records = embed(ids, model.E, model.P), []
    for params, feed in zip(model.layers, model.feeds, strict=True):
        records.append(trace(rms_norm(X), params, mask=causal_mask(ids.shape[-1])))
        X = X + records[-1].Y
        X = X + mlp(rms_norm(X), *feed)
    return rms_norm(X) @ model.U, records


def encode(sentence, *, length=LENGTH):
    """Return the ids of a sentence of the known text behind <bos>, (words + 1,).

    Introduced in chapter 20.

    Raises
    ------
    ValueError : no word; more words than `length` - 1 places behind <bos>; an unknown word
    """
    words = sentence.split()
    unknown = [word for word in words if word not in ID]
    if unknown:
        near = difflib.get_close_matches(unknown[0], ID, n=3)
        raise ValueError(f"{unknown[0]!r} is no word of this text; near it are {near}.")
    return np.array([0, *(ID[word] for word in words)])


def eight_bits(W):
    """Round a matrix to whole numbers from -127 to 127, a step for each row.

    Introduced in chapter 20. codes, steps: W is near codes * steps[..., None].
    """
    steps = np.abs(W).max(axis=-1) / 127
    return np.rint(W / steps[..., None]).astype(np.int8), steps


def in_eight_bits(model):
    """Return the TinyModel whose arrays are rounded by `eight_bits`, in float64.

    Introduced in chapter 20.
    """
    pairs = (eight_bits(array) for array in model.arrays)
    return TinyModel.of([codes * steps[..., None] for codes, steps in pairs])


def params_of_gpt2(W, b, W_O, n_heads):
    """Make Params of GPT-2's c_attn and c_proj, for an X with a column of ones behind it.

    Introduced in chapter 20. W : (d_model, 3 * d_model), b : (3 * d_model,), W_O : (d_model,
    d_model): a bias is the row of weights of a number that is always 1.
    """
    d_model = len(W)
    wide = np.concatenate([W, b[None]]).reshape(d_model + 1, 3, n_heads, -1)
    W_Q, W_K, W_V = np.moveaxis(wide, (1, 2), (0, 1))  # each (H, d_model + 1, d_k)
    return Params(W_Q, W_K, W_V, np.pad(W_O, ((0, 0), (0, 1))))

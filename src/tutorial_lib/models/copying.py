"""A tiny attention-only language model, differentiated by hand: see chapter 08.

Its sequences repeat a random block with a random period. One way to know the next token, for any
period, is to find an earlier copy of the present one and to look one position further.
"""

import numpy as np

from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.contract import checked, checked_record, require
from tutorial_lib.embedding import embed
from tutorial_lib.gradients import linear_backward, multi_head_attention_backward
from tutorial_lib.models.layers import split_arrays_into_layers
from tutorial_lib.multihead import trace
from tutorial_lib.projection import Params, init_params

VOCABULARY = LENGTH = 32
PERIODS, BATCH = (4, 12), 32  # shortest and longest period; sequences in a step


@checked_record(made_by="Make one with TinyModel.of(checkpoint(name)).")
class TinyModel:
    """X = E[ids] + P; each layer adds its output to X; X @ U scores the next token.

    Introduced in chapter 08.

    Raises
    ------
    ShapeError : layers of another width
    """

    E: "vocabulary d_model"
    P: "length d_model"
    layers: list[Params]
    U: "d_model vocabulary"

    @property
    def arrays(self):
        """All parameters, in one list."""
        matrices = [W for params in self.layers for W in vars(params).values()]
        return [self.E, self.P, *matrices, self.U]

    @classmethod
    def of(cls, arrays):
        """Make a model of such a list."""
        E, P, layers, U = split_arrays_into_layers(arrays, "TinyModel")
        return cls(E, P, tuple(Params(*matrices) for matrices in layers), U)


def init_model(rng, *, n_layers=2, n_heads=2, d_model=64, **widths):
    """Initialise a model in which the entries of X, and the scores, begin with a variance near 1.

    `widths` are the d_k and d_v of its heads, by default d_model / n_heads.
    """
    E, P = rng.standard_normal((2, VOCABULARY, d_model)) / np.sqrt(2)
    layer_sizes = {"d_model": d_model, "n_heads": n_heads, **widths}
    layers = tuple(init_params(rng, **layer_sizes) for _ in range(n_layers))
    return TinyModel(E, P, layers, rng.standard_normal((d_model, VOCABULARY)) / np.sqrt(d_model))


@checked
def sample_sequences(
    rng: np.random.Generator, n: "length", *, periods: list["integer"] = PERIODS
) -> tuple:
    """Sample ids, (n, LENGTH + 1), and known, (n, LENGTH): True where a token is a copy."""
    require(
        len(periods) == 2 and 1 <= periods[0] <= periods[1] < LENGTH,
        ValueError,
        f"periods={tuple(periods)}; expected the shortest, at least 1, and then the longest, below "
        f"{LENGTH}, so that a block repeats. Give a pair such as (4, 12), or (6, 6).",
    )
    periods = rng.integers(periods[0], periods[1] + 1, (n, 1))
    token_orders = rng.permuted(np.tile(np.arange(VOCABULARY), (n, 1)), axis=1)  # no token twice
    ids = np.take_along_axis(token_orders, np.arange(LENGTH + 1) % periods, axis=1)
    return ids, np.arange(LENGTH) >= periods


@checked
def run(model: TinyModel, ids: "int ... T") -> tuple:
    """Run the forward pass: logits, (..., T, vocabulary), and the trace of each layer."""
    X, traces = embed(ids, model.E, model.P), []
    for params in model.layers:
        traces.append(trace(X, params, mask=causal_mask(ids.shape[-1])))
        X = X + traces[-1].Y
    return X @ model.U, traces


@checked
def loss_and_gradients(model: TinyModel, ids: "int n tokens", known: object) -> tuple:
    """Return the mean of -log(probability of the next token) where known, and its gradients.

    The gradients are a list in the order of `model.arrays`.
    """
    logits, traces = run(model, ids[:, :-1])
    probabilities, one_hot = softmax(logits), np.eye(len(model.E))[ids]
    token_weights = known / known.sum()
    loss = -(np.log((probabilities * one_hot[:, 1:]).sum(axis=-1)) * token_weights).sum()
    dlogits = (probabilities - one_hot[:, 1:]) * token_weights[..., None]
    dX, dU = linear_backward(traces[-1].X + traces[-1].Y, model.U, dlogits)
    gradients = [dU]
    for layer_trace in traces[::-1]:
        grads = multi_head_attention_backward(layer_trace, dX)
        gradients = [grads.dW_Q, grads.dW_K, grads.dW_V, grads.dW_O, *gradients]
        dX = dX + grads.dX  # around the layer, and through it
    _, dE = linear_backward(one_hot[:, :-1], model.E, dX)  # a lookup is a product: chapter 01
    dP = np.zeros(model.P.shape)
    dP[: dX.shape[1]] = dX.sum(axis=0)
    return loss, [dE, dP, *gradients]


@checked
def copy_accuracy(model: TinyModel, ids: "int n tokens", known: object) -> float:
    """Return the fraction of known next tokens that have the highest score."""
    logits, _ = run(model, ids[:, :-1])
    return (logits.argmax(axis=-1) == ids[:, 1:])[known].mean()

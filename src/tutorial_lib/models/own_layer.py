"""The layer of chapter 23 forwards and backwards, and a model of such layers on the known text.

The backward pass rotates back what was rotated and adds up what was copied, so groups, rotation,
window and sink need no new derivative. A sink has no value, so its gradient is minus its weight
times the weighted sum of the row's gradients.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tutorial_lib.attention import attention_scores, softmax
from tutorial_lib.contract import MADE_BY, checked, checked_record, require
from tutorial_lib.embedding import embed
from tutorial_lib.errors import require_float_array, require_gradient
from tutorial_lib.gradients import attention_backward, linear_backward, project_heads_backward
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.models.grammar import LENGTH, WORDS, sample_documents
from tutorial_lib.models.training import adam_step
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import attention_with_sink, require_sink_scores, window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate

D_MODEL, HEADS = 64, 4
BATCH, WARM_UP, TABLE_RATE, AVERAGE_LAG = 16, 200, 2.5, 4  # as experiments/known_text.py trains


@checked_record(made_by="Make it with OwnLayer(params, frequencies, window, sink).")
class OwnLayer:
    """What the layer of chapter 23 is given: its arrays and its options.

    Introduced in chapter 23.

    Parameters
    ----------
    frequencies : radians per token; None: nothing is rotated
    window : number of keys that a query sees; None: all before it
    sink : a score for each head, -inf for none; None: no sink

    Raises
    ------
    ValueError : NaN or +inf in sink
    """

    params: GroupedParams
    frequencies: "n" = None
    window: "length" = None
    sink: "any H" = None

    def require_consistent_fields(self):
        """Require scores of sinks."""
        if self.sink is not None:
            require_sink_scores(self.sink)

    @property
    def arrays(self):
        """All parameters, in one list: four matrices, and the sink where there is one."""
        return [*vars(self.params).values(), *([] if self.sink is None else [self.sink])]

    @property
    def options(self):
        """The options by name, without those that are not set."""
        fields = {**vars(self), "params": None}
        return {name: value for name, value in fields.items() if value is not None}

    def with_arrays(self, arrays):
        """Return the layer with other arrays."""
        *matrices, sink = arrays if len(arrays) == 5 else (*arrays, None)
        return replace(self, params=GroupedParams(*matrices), sink=sink)


@dataclass(frozen=True)
class ForwardRecord:
    """The arrays of one forward pass, which the backward pass needs.

    Introduced in chapter 23.
    """

    layer: OwnLayer
    X: "... T d_model"
    Q: "... H T d_k"  # rotated, as the keys are
    K: "... H T d_k"  # copied for each head of a group, as the values are
    V: "... H T d_v"
    weights: "... H T T"
    concat: "... T H*d_v"
    Y: "... T d_model"


MADE_BY[ForwardRecord] = "a ForwardRecord. Compute it with forward_pass(X, layer)."


@checked
def forward_pass(X: "... T d_model", layer: OwnLayer) -> ForwardRecord:
    """Run one layer, causally.

    Introduced in chapter 23.

    >>> layer = OwnLayer(GroupedParams(*np.ones((3, 2, 6, 4)), np.ones((8, 6))), window=3)
    >>> forward_pass(np.ones((5, 6)), layer).weights.shape
    (2, 5, 5)
    """
    params, T = layer.params, X.shape[-2]
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    if layer.frequencies is not None:
        Q, K = (rotate(Z, np.arange(T), layer.frequencies) for Z in (Q, K))
    K, V = (np.repeat(Z, params.n_heads // params.n_kv_heads, axis=-3) for Z in (K, V))
    sink = np.full(params.n_heads, -np.inf) if layer.sink is None else layer.sink
    mask = window_mask(T, T, layer.window or T)
    weights = attention_with_sink(attention_scores(Q, K), sink, mask=mask)
    concat = concat_heads(weights @ V)
    return ForwardRecord(layer, X, Q, K, V, weights, concat, concat @ params.W_O)


@checked
def backward_pass(record: ForwardRecord, dY: "any ...") -> tuple:
    """Compute dX and the gradients of one layer, in the order of `layer.arrays`, from dL/dY.

    Introduced in chapter 23. dY has the shape of record.Y.

    Raises
    ------
    TypeError : a pass of whole numbers
    """
    require_float_array("X", record.X)
    require_gradient("dY", dY, record.Y.shape)
    layer, params = record.layer, record.layer.params
    dconcat, dW_O = linear_backward(record.concat, params.W_O, dY)
    dheads = split_heads(dconcat, params.n_heads)
    dQ, dK, dV = attention_backward(record.Q, record.K, record.V, record.weights, dheads)
    dK, dV = (_sum_grouped_gradients(dZ, params.n_kv_heads) for dZ in (dK, dV))
    if layer.frequencies is not None:
        dQ, dK = (rotate(dZ, np.arange(dZ.shape[-2]), -layer.frequencies) for dZ in (dQ, dK))
    pairs = zip((params.W_Q, params.W_K, params.W_V), (dQ, dK, dV), strict=True)
    dX, matrices = zip(*(project_heads_backward(record.X, W, dZ) for W, dZ in pairs), strict=True)
    sink_gradients = [] if layer.sink is None else [_sink_gradient(record, dheads)]
    return sum(dX), [*matrices, dW_O, *sink_gradients]


def _sum_grouped_gradients(dZ, n_kv_heads):
    """Add up the gradients of the copies of each KV head: (..., H, T, d) to (..., G, T, d)."""
    *batch, H, T, d = dZ.shape
    return dZ.reshape(*batch, n_kv_heads, H // n_kv_heads, T, d).sum(axis=-3)


def _sink_gradient(record, dheads):
    """The gradient of a sink: minus its weight times the weighted sum of the row's gradients."""
    dweights = dheads @ np.swapaxes(record.V, -1, -2)
    row_mean = (record.weights * dweights).sum(axis=-1)  # (..., H, T)
    dscores = (record.weights.sum(axis=-1) - 1) * row_mean
    return dscores.sum(axis=-1).reshape(-1, dscores.shape[-2]).sum(axis=0)


@checked_record(made_by="Make one with init_own_model(rng).")
class OwnModel:
    """X = E[ids] + P; each layer adds its output to X; X @ U scores the next word.

    Introduced in chapter 23. A model whose layers rotate queries and keys has zeros for P, which
    are no parameters then. `steps` is how many steps it was trained for.
    """

    E: "any words d_model"
    P: "any positions d_model"
    layers: list[OwnLayer]
    U: "any d_model words"
    steps: "integer" = 0

    @property
    def arrays(self):
        """All parameters, in one list; the first and the last are E, P and U."""
        layer_arrays = [array for layer in self.layers for array in layer.arrays]
        return [self.E, *([self.P] if self.has_learned_positions else []), *layer_arrays, self.U]

    @property
    def has_learned_positions(self):
        """Whether it learns position embeddings."""
        return self.layers[0].frequencies is None

    @property
    def n_parameters(self):
        """The number of its parameters."""
        return sum(array.size for array in self.arrays)

    def with_arrays(self, arrays):
        """Return the model with other arrays, in the order of `arrays`."""
        E, *layer_arrays, U = arrays
        P = layer_arrays.pop(0) if self.has_learned_positions else self.P
        size = len(layer_arrays) // len(self.layers)
        parts = (layer_arrays[n * size :][:size] for n in range(len(self.layers)))
        layers = (layer.with_arrays(part) for layer, part in zip(self.layers, parts, strict=True))
        return replace(self, E=E, P=P, layers=tuple(layers), U=U)


@checked
def init_own_model(
    rng: np.random.Generator,
    *,
    n_kv_heads: "length" = HEADS,
    rotated: bool = False,
    window: "length" = None,
    sink: bool = False,
) -> OwnModel:
    """Initialise a model of two layers at random, of the widths of chapter 19's model.

    Introduced in chapter 23. Each layer has `n_kv_heads` KV heads, a divisor of 4; each head may
    have a sink. If queries and keys are rotated, P is zeros, and not learned.

    >>> init_own_model(np.random.default_rng(0)).n_parameters
    49664
    """
    d_k, n_terms = D_MODEL // HEADS, 1 if rotated else 2
    E = rng.standard_normal((len(WORDS), D_MODEL)) / np.sqrt(n_terms)
    P = np.zeros((LENGTH, D_MODEL)) if rotated else rng.standard_normal((LENGTH, D_MODEL)) / 2**0.5
    frequencies, layers = rope_frequencies(d_k) if rotated else None, []
    for _ in range(2):
        shapes = (HEADS, D_MODEL, d_k), *2 * [(n_kv_heads, D_MODEL, d_k)], (D_MODEL, D_MODEL)
        params = GroupedParams(*(rng.standard_normal(shape) / np.sqrt(D_MODEL) for shape in shapes))
        sink_scores = rng.standard_normal(HEADS) / 2 if sink else None
        layers.append(OwnLayer(params, frequencies, window, sink_scores))
    return OwnModel(E, P, tuple(layers), rng.standard_normal((D_MODEL, len(WORDS))) / D_MODEL**0.5)


@checked
def run_own_model(model: OwnModel, ids: "int ... T") -> tuple:
    """Return the logits of the next word, (..., T, words), and the ForwardRecord of each.

    Introduced in chapter 23.
    """
    X, passes = embed(ids, model.E, model.P), []
    for layer in model.layers:
        passes.append(forward_pass(X, layer))
        X = X + passes[-1].Y
    return X @ model.U, passes


@checked
def loss_and_gradients(model: OwnModel, ids: "int n tokens") -> tuple:
    """Return the mean of -log(probability of the next word), and its gradients.

    Introduced in chapter 23. The gradients are a list in the order of `model.arrays`.
    """
    logits, passes = run_own_model(model, ids[:, :-1])
    probabilities, one_hot = softmax(logits), np.eye(len(model.E))[ids]
    loss = -np.log((probabilities * one_hot[:, 1:]).sum(axis=-1)).mean()
    dlogits = (probabilities - one_hot[:, 1:]) / ids[:, 1:].size
    dX, dU = linear_backward(passes[-1].X + passes[-1].Y, model.U, dlogits)
    gradients = [dU]
    for layer_pass in passes[::-1]:
        dX_layer, grads = backward_pass(layer_pass, dX)
        dX, gradients = dX + dX_layer, [*grads, *gradients]  # around the layer, and through it
    _, dE = linear_backward(one_hot[:, :-1], model.E, dX)
    dP = np.zeros(model.P.shape)
    dP[: dX.shape[1]] = dX.sum(axis=0)
    return loss, [dE, *([dP] if model.has_learned_positions else []), *gradients]


@checked
def train_own(
    model: OwnModel, rng: np.random.Generator, *, steps: "length", rate: float = 4e-3
) -> Iterator:
    """Train on new documents in each step; yield its number, its loss and the model so far.

    Introduced in chapter 23. It trains as chapter 19's models were trained: with a warm-up and a
    larger learning rate for E, P and U. The model so far has an average of its parameters. `rate`
    is about the most by which a step of Adam changes an entry of a layer.

    Yields
    ------
    step, loss, model : from 1; the loss of the newest parameters before it; the average after it

    Raises
    ------
    ValueError : a rate that is no positive number
    """
    expectation = "expected a positive number, about the change of an entry in a step"
    require(0 < rate < np.inf, ValueError, f"rate={rate}; {expectation}. Begin with 4e-3.")
    arrays, averages, adam_memories = model.arrays, model.arrays, (None, None)
    for step in range(1, steps + 1):
        ids = sample_documents(rng, BATCH).ids
        loss, gradients = loss_and_gradients(model.with_arrays(arrays), ids)
        warm_rate = rate * min(1, step / WARM_UP)
        arrays, adam_memories = _adam_update(model, arrays, gradients, adam_memories, warm_rate)
        new_share = AVERAGE_LAG / (step + AVERAGE_LAG - 1)
        averages = [mean + new_share * (W - mean) for mean, W in zip(averages, arrays, strict=True)]
        yield step, loss, replace(model.with_arrays(averages), steps=model.steps + step)


def _adam_update(model, arrays, gradients, memories, rate):
    """One step of Adam, at a larger rate for E, P and U; return arrays and both memories."""
    n_tables = 2 if model.has_learned_positions else 1  # of E and P
    table_arrays = ([*array_list[:n_tables], array_list[-1]] for array_list in (arrays, gradients))
    tables, table_memory = adam_step(*table_arrays, memories[0], rate * TABLE_RATE)
    middle, layer_memory = adam_step(arrays[n_tables:-1], gradients[n_tables:-1], memories[1], rate)
    return [*tables[:-1], *middle, tables[-1]], (table_memory, layer_memory)

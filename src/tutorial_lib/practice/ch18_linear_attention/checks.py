"""Checks for chapter 18."""

import numpy as np

from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.inputs import D_K, D_V, WIDE, B, H, T, normal, qkv
from tutorial_lib.variants.state import chunked, delta_step, linear_attention

MISTAKES, cases_of = read_room(__file__)


def _qkv(seed, *batch, length=T, d_k=D_K):
    return qkv(seed, *batch, H, rows=(length, length), d_k=d_k)


@cases_of(linear_attention)
def check_linear_attention():
    yield "three heads", _qkv(90)
    yield "a batch", _qkv(93, B)
    yield "wider keys", _qkv(87, d_k=WIDE)


def _delta_case(seed, *batch):
    k = normal(seed + 1, *batch, H, D_K)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return {
        "state": normal(seed, *batch, H, D_K, D_V),
        "k": k,
        "v": normal(seed + 2, *batch, H, D_V),
    }


@cases_of(delta_step)
def check_delta_step():
    heads = np.linspace(0.2, 0.9, H).reshape(H, 1, 1)
    own = np.linspace(0.1, 0.9, B * H).reshape(B, H, 1, 1)
    channels = np.linspace(0.1, 1, H * D_K).reshape(H, D_K, 1)
    yield "the whole error", _delta_case(96)
    yield "half of the error, a decay", _delta_case(99), {"beta": 0.5, "decay": 0.8}
    yield "gates of each head", _delta_case(102, B), {"beta": heads, "decay": 1 - heads}
    yield "gates of each sentence and head", _delta_case(84, B), {"beta": own, "decay": 1 - own}
    yield "a decay of each channel", _delta_case(105), {"beta": 0.7, "decay": channels}


@cases_of(chunked)
def check_chunked():
    yield "chunks of 2, the last shorter", _qkv(108, length=19), {"size": 2}
    yield "chunks of 5, a batch", _qkv(111, B, length=17), {"size": 5}
    yield "one chunk", _qkv(114), {"size": T}
    yield "one token per chunk", _qkv(117), {"size": 1}


def _gated_delta(Q, K, V, betas, decays):
    """Write each token's key and value into a state by the delta rule, with gates, then read it.

    A key is first divided by its length, and a query is not.
    """
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    state, rows = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1])), []
    for t in range(Q.shape[-2]):
        gates = {"beta": betas[..., t, None, None], "decay": decays[..., t, None, None]}
        state = delta_step(state, K[..., t, :], V[..., t, :], **gates)
        rows.append(Q[..., t, None, :] @ state)
    return np.concatenate(rows, axis=-2)


@cases_of(_gated_delta)
def check_gated_delta():
    yield "gates of each head and token", _qkv(120) | _gates(123)
    yield "a batch", _qkv(126, B) | _gates(129, B)
    yield "nothing forgotten", _qkv(132) | _gates(135) | {"decays": np.ones((H, T))}


def _gates(seed, *batch):
    gates = 1 / (1 + np.exp(-normal(seed, 2, *batch, H, T)))
    return {"betas": gates[0], "decays": gates[1]}


def _chunked_decay(Q, K, V, decay, *, size):
    """Attend without a softmax, in chunks, where a key fades by `decay` with every step."""
    state, parts = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1])), []
    for start in range(0, Q.shape[-2], size):
        q, k, v = (A[..., start : start + size, :] for A in (Q, K, V))
        n = q.shape[-2]  # the last chunk may be shorter
        i = np.arange(n)[:, None]
        fades = np.tril(float(decay) ** np.maximum(i - i.T, 0))
        scores = q @ np.swapaxes(k, -1, -2) * fades
        parts.append(decay ** (i + 1) * (q @ state) + scores @ v)
        left = decay ** (n - 1 - i)
        state = decay**n * state + np.swapaxes(left * k, -1, -2) @ v
    return np.concatenate(parts, axis=-2)


@cases_of(_chunked_decay)
def check_chunked_decay():
    yield "chunks of 2", _qkv(138, length=19) | {"decay": 0.5}, {"size": 2}
    yield "chunks of 5, a batch", _qkv(141, B, length=17) | {"decay": 0.9}, {"size": 5}
    yield "one chunk", _qkv(144) | {"decay": 0.7}, {"size": T}

"""Small layers for the probe: right ones with every option, and one mistake for each name."""

import numpy as np

from tutorial_lib import init_params, project_heads
from tutorial_lib.probe import Cache

D_MODEL, H = 12, 3
PARAMS = init_params(np.random.default_rng(1), d_model=D_MODEL, n_heads=H)


def softmax(scores, axis=-1):
    exponentials = np.exp(
        scores - np.where(np.isfinite(m := scores.max(axis, keepdims=True)), m, 0)
    )
    total = exponentials.sum(axis, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)


def rotated(X, positions):
    """Rotate pairs of X (B, H, T, d) by positions (B, T)."""
    angles = positions[:, None, :, None] * np.array([1.0, 0.3])
    a, b = X[..., :2], X[..., 2:4]
    sin, cos = np.sin(angles), np.cos(angles)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, X[..., 4:]], axis=-1)


def band(window=None, ahead=0):
    """Return a mask, a function of T: causal, of a window, `ahead` tokens into the future."""

    def mask(T):
        i, j = np.arange(T)[:, None], np.arange(T)
        return (j <= i + ahead) & (True if window is None else i - j < window)

    return mask


CAUSAL = band()


def layer(mask=CAUSAL, *, rotary=False, split=None, join=None, hidden=-np.inf):
    """Return a layer of X (B, T, d_model) with keep= and positions=."""

    def attend(X, keep=None, positions=None):
        B, T, _ = X.shape
        Q, K, V = projected(X) if split is None else split(X)
        if rotary:
            positions = np.arange(T)[None] if positions is None else positions
            Q, K = rotated(Q, positions), rotated(K, positions)
        sees = mask(T)[None, None]
        sees = sees if keep is None else sees & keep[:, None, None]
        weights = softmax(np.where(sees, Q @ np.swapaxes(K, -1, -2) / 2, hidden))
        heads = weights @ V
        joined = heads if join else np.swapaxes(heads, 1, 2)
        return joined.reshape(B, T, -1) @ PARAMS.W_O

    return attend


def projected(X):
    return [project_heads(X, W) for W in (PARAMS.W_Q, PARAMS.W_K, PARAMS.W_V)]


def split_by_reshape(X):
    """Split heads without a transpose."""
    B, T, _ = X.shape
    return (np.swapaxes(Y, 1, 2).reshape(B, H, T, -1) for Y in projected(X))


def of_scores(weights, arrays=lambda Q, K, V: (Q, K, V)):
    """Return a function of Q, K, V whose weights are a function of scores and of what is seen."""

    def attend(Q, K, V):
        Q, K, V = arrays(Q, *(np.repeat(x, Q.shape[1] // x.shape[1], axis=1) for x in (K, V)))
        T, S = Q.shape[2], K.shape[2]
        scores = Q @ np.swapaxes(K, -1, -2) * Q.shape[-1] ** -0.5
        return weights(scores, np.tri(T, S, S - T, dtype=bool)) @ V

    return attend


def in_tiles(size):
    """Return attention over tiles of keys that does not rescale what earlier tiles added up."""

    def attend(Q, K, V):
        K, V = (np.repeat(x, Q.shape[1] // x.shape[1], axis=1) for x in (K, V))
        T, S = Q.shape[2], K.shape[2]
        scores = Q @ np.swapaxes(K, -1, -2) * Q.shape[-1] ** -0.5
        scores = np.where(np.tri(T, S, S - T, dtype=bool), scores, -np.inf)
        top = np.maximum.accumulate(scores, axis=-1)
        last = np.minimum(np.arange(S) // size * size + size, S) - 1
        weights = np.exp(scores - top[..., last])
        return weights / np.exp(scores - top[..., -1:]).sum(axis=-1, keepdims=True) @ V

    return attend


class Chunks:
    """A cache of a layer with rotary positions, right or with one mistake."""

    def __init__(self, mistake=None):
        self.mistake, self.left = mistake, ()

    def empty(self):
        return self.left if self.mistake == "state_between_calls" else ()

    def step(self, X, state):
        B, t, _ = X.shape
        start = 0 if not state else state[0].shape[2]
        Q, K, V = projected(X)
        jump = {"positions_restart": -start, "positions_offset_in_chunks": bool(start)}
        places = np.arange(t)[None] + start + jump.get(self.mistake, 0)
        stored = np.concatenate([*state[:1], K], axis=2)
        Q, K = rotated(Q, places), rotated(K, places)
        if state and self.mistake == "cached_keys_rotated_twice":
            state = rotated(state[0], np.arange(start)[None]), state[1]
        if state and self.mistake == "cache_of_other_sequence":
            state = [array[::-1] for array in state]
        if state and self.mistake != "cache_not_read":
            K, V = (np.concatenate(pair, axis=2) for pair in zip(state, (K, V), strict=True))
        S = K.shape[2]
        stored = stored if self.mistake == "cached_keys_unrotated" else K
        if self.mistake == "rounded_in_chunks":
            stored = stored.astype(np.float16).astype(float)
        mask = np.tri(t, S, S - t, dtype=bool)
        if self.mistake == "window_another_in_chunks":
            mask &= ~np.tri(t, S, S - t - 5, dtype=bool)
        if self.mistake == "fewer_seen_in_chunks" and start:
            mask[:, 0] = False
        if self.mistake == "mask_first_corner":
            mask = np.tri(t, S, dtype=bool)
        if self.mistake == "mask_dropped_in_chunks":
            mask[:] = True
        seen, values = K, V
        if start and self.mistake == "later_tokens_seen_in_chunks":
            mask = np.tri(t, S, S - t + 1, dtype=bool)
        if start and self.mistake == "weights_differ_in_chunks":
            Q = 2 * Q
        if self.mistake == "unwritten_rows_seen":
            room = ((0, 0), (0, 0), (0, 20 - S), (0, 0))
            seen, values = np.pad(K, room), np.pad(V, room)
            mask = np.pad(mask, ((0, 0), (0, 20 - S)), constant_values=True)
        weights = softmax(np.where(mask, Q @ np.swapaxes(seen, -1, -2) / 2, -np.inf))
        self.left = (stored, V * (0.5 if self.mistake == "cached_rows_altered" else 1))
        return np.swapaxes(weights @ values, 1, 2).reshape(B, t, -1) @ PARAMS.W_O, self.left

    def rewind(self, state, length):
        if self.mistake == "rewind_ignored":
            return state
        return tuple(array[:, :, :length] for array in state)


def chunks(mistake=None):
    """Return a Cache."""
    kept = Chunks(mistake)
    return Cache(kept.step, kept.empty, kept.rewind)


def attention(
    *,
    mask=CAUSAL,
    scale=lambda d: d**-0.5,
    axis=-1,
    order=np.repeat,
    after=False,
    shift=True,
    empty=0.0,
):
    """Return a function of Q, K, V with mask=."""

    def attend(Q, K, V, given=None):
        d, (T, S), groups = Q.shape[-1], (Q.shape[2], K.shape[2]), Q.shape[1] // K.shape[1]
        K, V = (
            np.repeat(x, groups, axis=1) if order is np.repeat else np.tile(x, (1, groups, 1, 1))
            for x in (K, V)
        )
        sees = mask(S)[S - T :] if given is None else given
        scores = Q @ np.swapaxes(K, -1, -2) * scale(d)
        scores = scores if after else np.where(sees, scores, -np.inf)
        weights = (
            softmax(scores, axis)
            if shift
            else np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        )
        weights = weights * sees if after else weights
        return np.where(sees.any(-1, keepdims=True), weights, empty) @ V

    return attend


def of_formula(formula):
    """Return a function of Q, K, V whose weights are a formula of Q Kᵀ, of d_k and the mask."""

    def attend(Q, K, V):
        K, V = (np.repeat(x, Q.shape[1] // K.shape[1], axis=1) for x in (K, V))
        return formula(Q @ np.swapaxes(K, -1, -2), Q.shape[-1], CAUSAL(K.shape[2])) @ V

    return attend


def hiding(scores, sees):
    return softmax(np.where(sees, scores, -np.inf))


def weights_of(Q, K, added=0.0, mask=CAUSAL):
    """Return the weights of two KV heads for four query heads."""
    scores = Q @ np.swapaxes(np.repeat(K, 2, axis=1), -1, -2) * Q.shape[-1] ** -0.5 + added
    return softmax(np.where(mask(K.shape[2])[-Q.shape[2] :], scores, -np.inf))


def full(T):
    return np.ones((T, T), bool)


def random_layer():
    """Return a layer whose dropout is never off."""
    return lambda X: layer()(X * (np.random.random(X.shape) < 0.9))  # noqa: NPY002


def remembering():
    """Return a layer that adds the mean of the call before."""
    left = [0.0]

    def call(X):
        Y = layer()(X) + left[0]
        left[0] = X.mean()
        return Y

    return call


def first_of(word):
    """Return a layer that uses keep or positions of the first sequence for all."""

    def call(X, **given):
        given = {name: value[:1] if name == word else value for name, value in given.items()}
        return layer(rotary=True)(X, **given)

    return call


def crossing(X, memory, keep=None, mask=None):
    """Attend from X to a memory of another width."""
    rng = np.random.default_rng(4)
    Q = project_heads(X, PARAMS.W_Q)
    K, V = (project_heads(memory, rng.normal(size=(H, memory.shape[-1], 4))) for _ in "KV")
    sees = np.ones((X.shape[1], memory.shape[1]), bool) if mask is None else mask
    sees = sees if keep is None else sees & keep[:, None, None]
    weights = softmax(np.where(sees, Q @ np.swapaxes(K, -1, -2) / 2, -np.inf))
    return np.swapaxes(weights @ V, 1, 2).reshape(*X.shape[:2], -1) @ PARAMS.W_O

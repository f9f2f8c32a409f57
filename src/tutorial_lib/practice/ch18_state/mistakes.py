"""Wrong forms of the functions of chapter 18."""

import numpy as np

from tutorial_lib.attention import attention_scores, attention_weights, causal_mask
from tutorial_lib.practice.mistake import Mistake
from tutorial_lib.variants.state import chunked, linear_attention


def _turned(A):
    return np.swapaxes(A, -1, -2)


def _reads_first(Q, K, V):
    return linear_attention(Q, K, V) - (Q * K).sum(axis=-1, keepdims=True) * V


def _last_write_alone(Q, K, V):
    return (Q * K).sum(axis=-1, keepdims=True) * V


def _with_softmax(Q, K, V):
    weights = attention_weights(attention_scores(Q, K), mask=causal_mask(Q.shape[-2]))
    return weights @ V


_LINEAR_ATTENTION = (
    Mistake(
        "reads_first",
        "a word reads before it writes, so it does not see itself",
        "Add k ⊗ v first, then read with q.",
        _reads_first,
    ),
    Mistake(
        "looks_ahead",
        "every word reads the state after the last one, and so the words after it",
        "Row t reads the state after word t: np.tril(scores), or a state that grows.",
        lambda Q, K, V: Q @ (_turned(K) @ V),
    ),
    Mistake(
        "last_write_alone",
        "the state holds the newest word alone",
        "Add to the state: state + k ⊗ v.",
        _last_write_alone,
    ),
    Mistake(
        "with_softmax",
        "the scores go through a softmax",
        "Mix with the scores themselves.",
        _with_softmax,
    ),
)


def _writing(*, faded_error=True, error=True, beta_on_value=False):
    """A step whose error is another, or is not taken."""

    def step(state, k, v, *, beta=1.0, decay=1.0):
        faded = decay * state
        read = error * (k[..., None, :] @ (faded if faded_error else state))  # (..., 1, d_v)
        new = beta * v[..., None, :] - (1.0 if beta_on_value else beta) * read
        return faded + k[..., :, None] * new

    return step


def _fades_all(state, k, v, *, beta=1.0, decay=1.0):
    return decay * _writing()(state, k, v, beta=beta)


_DELTA_STEP = (
    Mistake(
        "error_before_decay",
        "the error is that of the state before it fades",
        "Let the state fade first, then take the error: v - k @ (decay * state).",
        _writing(faded_error=False),
    ),
    Mistake(
        "write_fades_too",
        "the new value fades as it is written",
        "Let the old state fade, then write.",
        _fades_all,
    ),
    Mistake(
        "adds_the_value",
        "it adds the value, and not what the key reads too little",
        "Write the error, v - k @ state.",
        _writing(error=False),
    ),
    Mistake(
        "beta_on_the_value_alone",
        "beta scales the value, and the old reading is taken out whole",
        "beta scales the whole error: beta * (v - k @ state).",
        _writing(beta_on_value=True),
    ),
)


def _chunks(*, before=True, twice=False, ahead=False, all_written=True):
    """Chunks, with one of the four lines changed."""

    def heads(Q, K, V, *, size):
        state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
        parts = []
        for start in range(0, Q.shape[-2], size):
            q, k, v = (A[..., start : start + size, :] for A in (Q, K, V))
            new = (state if all_written else 0) + _turned(k) @ v
            scores = q @ _turned(k)
            within = (scores if ahead else np.tril(scores)) @ v
            parts.append(before * (q @ (new if twice else state)) + within)
            state = new
        return np.concatenate(parts, axis=-2)

    return heads


_CHUNKED = (
    Mistake(
        "chunks_alone",
        "a chunk does not see what was written before it",
        "Add q @ state to what the chunk finds in itself.",
        _chunks(before=False),
    ),
    Mistake(
        "written_twice",
        "the chunk is written before it is read, so its words count twice",
        "Read the state first, then add the chunk to it.",
        _chunks(twice=True),
    ),
    Mistake(
        "ahead_in_the_chunk",
        "within a chunk every word sees all others",
        "Scores of later words are 0: np.tril(scores).",
        _chunks(ahead=True),
    ),
    Mistake(
        "last_chunk_alone",
        "the state holds the chunk before, and no older one",
        "Add to the state: state + k_T @ v.",
        _chunks(all_written=False),
    ),
)


def _gated(step=None, *, unit=True, reads_first=False, exchanged=False, first_gates=False):
    """A layer of gated writes, with one of its parts changed."""
    step = step or _writing()

    def layer(Q, K, V, betas, decays):
        K = K / np.linalg.norm(K, axis=-1, keepdims=True) if unit else K
        betas, decays = (decays, betas) if exchanged else (betas, decays)
        state, rows = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1])), []
        for t in range(Q.shape[-2]):
            beta, decay = (g[..., 0 if first_gates else t, None, None] for g in (betas, decays))
            new = step(state, K[..., t, :], V[..., t, :], beta=beta, decay=decay)
            rows.append(Q[..., t, None, :] @ (state if reads_first else new))
            state = new
        return np.concatenate(rows, axis=-2)

    return layer


_GATED_DELTA = (
    Mistake(
        "keys_as_they_are",
        "keys are not divided by their length, so a write overshoots its value",
        "Divide each key: K / np.linalg.norm(K, axis=-1, keepdims=True).",
        _gated(unit=False),
    ),
    Mistake(
        "error_before_decay",
        "the error is that of the state before it fades",
        "delta_step lets the state fade first: pass it the decay, and change no order.",
        _gated(_writing(faded_error=False)),
    ),
    Mistake(
        "write_fades_too",
        "the new value fades as it is written",
        "The decay of word t is for what was written before it.",
        _gated(_fades_all),
    ),
    Mistake(
        "adds_the_value",
        "it adds the value, and not what the key reads too little",
        "Write with delta_step.",
        _gated(_writing(error=False)),
    ),
    Mistake(
        "reads_first",
        "a word reads before it writes, so it does not see itself",
        "Write word t, then read with its query.",
        _gated(reads_first=True),
    ),
    Mistake(
        "gates_exchanged",
        "the two gates are exchanged",
        "betas says how much is written, decays how much stays.",
        _gated(exchanged=True),
    ),
    Mistake(
        "first_gates",
        "every word gets the gates of the first",
        "Word t has gates of its own: betas[..., t] and decays[..., t].",
        _gated(first_gates=True),
    ),
)


def _decaying(*, once=False, within=True, read=1, written=-1):
    """Chunks with a decay; `read` and `written` are what is added to the powers of the two."""

    def heads(Q, K, V, decay, *, size):
        state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
        parts = []
        for start in range(0, Q.shape[-2], size):
            q, k, v = (A[..., start : start + size, :] for A in (Q, K, V))
            place = np.arange(q.shape[-2])[:, None]
            steps = np.maximum(place - place.T, 0) if within else 0
            inside = np.tril(q @ _turned(k)) * decay**steps
            parts.append(decay ** (place + read) * (q @ state) + inside @ v)
            stays = decay if once else decay ** len(place)
            left = 1.0 if written is None else decay ** (len(place) + written - place)
            state = stays * state + _turned(left * k) @ v
        return np.concatenate(parts, axis=-2)

    return heads


_CHUNKED_DECAY = (
    Mistake(
        "once_a_chunk",
        "what was written before fades once for each chunk, not once for each word",
        "After a chunk of n words the old state is left with decay to the power n.",
        _decaying(once=True),
    ),
    Mistake(
        "not_within",
        "words of one chunk do not fade for each other",
        "Within a chunk a score is left with decay to the power t - s.",
        _decaying(within=False),
    ),
    Mistake(
        "read_one_power_short",
        "the state is read with a power too low: the first word of a chunk finds it unfaded",
        "Word i of a chunk, counted from 0, reads the old state faded i + 1 times.",
        _decaying(read=0),
    ),
    Mistake(
        "writes_do_not_fade",
        "words of a chunk enter the state as new as its last one",
        "Word i of n is left with decay to the power n - 1 - i after the chunk.",
        _decaying(written=None),
    ),
    Mistake(
        "writes_fade_once_more",
        "words of a chunk enter the state one power too faded",
        "The last word of a chunk has not faded yet: its power is 0.",
        _decaying(written=0),
    ),
    Mistake(
        "no_decay",
        "nothing fades",
        "With decay below 1 older words count less, in the chunk and before it.",
        lambda Q, K, V, decay, *, size: chunked(Q, K, V, size=size),
    ),
)


MISTAKES = {
    "linear_attention": _LINEAR_ATTENTION,
    "delta_step": _DELTA_STEP,
    "chunked": _CHUNKED,
    "gated_delta": _GATED_DELTA,
    "chunked_decay": _CHUNKED_DECAY,
}

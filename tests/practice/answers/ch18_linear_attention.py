"""What computes the keys of chapter 18: states are written and read."""

import numpy as np

from tutorial_lib.records import facts
from tutorial_lib.variants.positions import alibi_bias
from tutorial_lib.variants.state import delta_step, linear_attention

UNIT = np.eye(4)


def what_a_key_written_twice_reads():
    """What the key of token 0 reads after five tokens, of which the last has the same key."""
    K = UNIT[[0, 1, 2, 3, 0]]
    V = np.array([[3, 0, 1], [1, 1, 0], [2, 4, 1], [0, 0, 2], [0, 2, 5]])
    read = linear_attention(np.tile(K[0], (5, 1)), K, V.astype(float))[-1].tolist()
    return [read == other.tolist() for other in (V[0], V[4], V[0] + V[4], V.sum(axis=0))]


def what_a_long_key_reads():
    """What a key of length 2 reads after each of three writes of 1, with beta 1/2 and with 1."""
    reads = {}
    for beta in (0.5, 1.0):  # the library refuses the second
        k, state, reads[beta] = 2 * UNIT[0], np.zeros(4), []
        for _ in range(3):
            state = state + beta * k * (1 - k @ state)
            reads[beta].append(float(k @ state))
    assert reads[1.0] == [4, -8, 28]
    added = [float(k @ (0.5 * n * k)) for n in (1, 2, 3)]
    assert added == [2, 4, 6]
    state = np.zeros((4, 1))
    for read in reads[0.5]:
        state = delta_step(state, k, np.ones(1), beta=0.5)
        assert (k @ state)[0] == read
    return [reads[0.5] == other for other in ([1, 1, 1], [2, 0, 2], reads[1.0], added)]


def powers_of_a_chunk_of_four():
    """How often an old write was halved when the first of four tokens reads, and after the last."""
    state, left = UNIT[:, :1].copy(), []
    for _ in range(4):
        state = delta_step(state, UNIT[1], np.zeros(1), decay=0.5)
        left.append(int(-np.log2(state[0, 0])))
    return f"{left[0]} and {left[-1]}"


def what_a_small_state_cannot_do():
    """Which of four things no state of 4 times 4 does."""
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((3, 5, 4))
    first = np.swapaxes(K[:3], -1, -2) @ V[:3]
    later = Q[3:] @ first + linear_attention(Q[3:], K[3:], V[3:])
    chunks = np.allclose(later, linear_attention(Q, K, V)[3:])
    state = delta_step(rng.standard_normal((4, 4)), UNIT[0], V[0])
    newest = np.allclose(UNIT[0] @ state, V[0])
    best = np.linalg.lstsq(K, V, rcond=None)[0]  # the state that reads with the least error
    all_five = np.allclose(K @ best, V)
    four = np.allclose(K[:4] @ np.linalg.solve(K[:4], V[:4]), V[:4])
    near = delta_step(np.ones((4, 1)), UNIT[0], np.ones(1), decay=0.5)[:2, 0]
    assert four
    return [not chunks, not newest, not all_five, not near[0] > near[1]]


def tokens_until_shared_keys_outgrow_a_state():
    """In Qwen3-Next: the numbers of a state layer over those of a token in a full one."""
    model = next(m for m in facts("models")["models"] if m["name"] == "Qwen3-Next 80B")
    state, per_token = model["state"], model["kv_heads"] * (model["d_k"] + model["d_v"])
    assert (model["kv_heads"], model["d_k"], state["heads"], state["d_k"]) == (2, 256, 32, 128)
    return state["heads"] * state["d_k"] * state["d_v"] // per_token


def slope_of_a_decay_of_a_quarter():
    """Which slope multiplies a token's contribution by 1/4 for each step."""
    slopes = 1 / 4, np.log(4), 4.0, np.log(2)
    parts = [np.exp(alibi_bias(1, 3, np.array([slope])))[0, 0] for slope in slopes]
    return [np.allclose(part, [1 / 16, 1 / 4, 1]) for part in parts]

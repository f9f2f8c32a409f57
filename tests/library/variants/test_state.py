"""A state in place of a cache: against loops, and in the limits in which older layers are back."""

import numpy as np
import pytest

import tutorial_lib as tl
from tests import oracle
from tutorial_lib import checks
from tutorial_lib.variants.state import (
    chunked,
    delta_step,
    linear_attention,
    linear_attention_parallel,
)

H, T, D_K, D_V = 3, 5, 4, 7
FORMS = {
    "recurrent": linear_attention,
    "parallel": linear_attention_parallel,
    **{f"chunks of {n}": lambda Q, K, V, n=n: chunked(Q, K, V, size=n) for n in (1, 2, 3, 5, 9)},
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def orthonormal_keys(normal):
    """Keys of T = D_K tokens that are orthogonal and of length 1."""
    return np.linalg.qr(normal(8, H, D_K, D_K))[0]


def final_state(K, V, **gates):
    """The state behind all tokens, written one by one."""
    state = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    for t in range(K.shape[-2]):
        state = delta_step(state, K[..., t, :], V[..., t, :], **gates)
    return state


def test_a_channel_for_each_token_gives_the_layer_back(X, params, assert_close):
    layer = tl.trace(X, params, mask=tl.causal_mask(T))
    heads = linear_attention(layer.weights, np.eye(T), layer.V)
    assert_close(tl.concat_heads(heads) @ params.W_O, layer.Y)


def test_orthonormal_keys_make_the_delta_rule_linear_attention(normal, assert_close):
    K, V = orthonormal_keys(normal), normal(9, H, D_K, D_V)
    assert_close(final_state(K, V, beta=1.0), np.swapaxes(K, -1, -2) @ V)


@pytest.mark.parametrize("decay", [1.0, 1, np.ones((H, 1, 1)), np.ones((H, D_K, 1))])
def test_a_decay_of_1_forgets_nothing(normal, decay):
    K, V = orthonormal_keys(normal), normal(9, H, D_K, D_V)
    np.testing.assert_array_equal(final_state(K, V, decay=decay), final_state(K, V))


LIMITS = {
    "Linear attention": test_a_channel_for_each_token_gives_the_layer_back,
    "Delta rule": test_orthonormal_keys_make_the_delta_rule_linear_attention,
    "Forget gate": test_a_decay_of_1_forgets_nothing,
}


@every_form
def test_every_form_equals_a_sum_over_pairs_of_tokens(form, normal, batch, assert_close):
    qkv = [normal(n, *batch, H, T, width) for n, width in enumerate((D_K, D_K, D_V), 4)]
    assert_close(form(*qkv), oracle.linear_attention(*qkv))


def test_linear_attention_is_the_layer_without_its_softmax(X, params, assert_close):
    layer = tl.trace(X, params)
    heads = linear_attention(layer.Q / np.sqrt(layer.Q.shape[-1]), layer.K, layer.V)
    assert_close(heads, np.tril(tl.attention_scores(layer.Q, layer.K)) @ layer.V)


@every_form
def test_the_running_example_stays_in_whole_numbers(form):
    example = tl.running_example()
    layer = tl.trace(example.X, example.params)
    scale = 2 * np.log(2)
    heads = form(np.rint(layer.Q / scale).astype(int), layer.K.astype(int), layer.V.astype(int))
    assert heads.dtype == np.int64
    assert heads[0, 2].tolist() == [1, -1, 1, -1]


GATES = {
    "numbers": (0.7, 0.9),
    "one per head": (np.array([[[0.2]], [[1.0]], [[1.7]]]), np.array([[[0.0]], [[0.5]], [[1.0]]])),
    "one per channel": (0.7, np.linspace(0, 1, H * D_K).reshape(H, D_K, 1)),
}


@pytest.mark.parametrize(("beta", "decay"), GATES.values(), ids=GATES)
def test_a_write_equals_loops(beta, decay, normal, batch, assert_close):
    state, v = normal(1, *batch, H, D_K, D_V), normal(3, *batch, H, D_V)
    k = normal(2, *batch, H, D_K)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    new_state = delta_step(state, k, v, beta=beta, decay=decay)
    betas, decays = np.broadcast_to(beta, (H, 1, 1)), np.broadcast_to(decay, (H, D_K, 1))
    for index in np.ndindex(*batch, H):
        gates = betas[index[-1], 0, 0], decays[index[-1], :, 0]
        assert_close(new_state[index], oracle.delta_step(state[index], k[index], v[index], *gates))


def test_a_key_that_is_written_again_reads_its_newest_value(normal, assert_close):
    K, V = orthonormal_keys(normal), normal(9, H, D_K, D_V)
    new_state = delta_step(final_state(K, V), K[:, 0], V[:, 3])
    assert_close(K[:, :1] @ new_state, V[:, 3:])
    assert_close(K[:, 1:] @ new_state, V[:, 1:])  # the other tokens read what they read before


ONES_STATE, HALF_KEY, ONES_VALUE = np.ones((H, D_K, D_V)), np.full((H, D_K), 0.5), np.ones((H, D_V))
BAD_GATES = [
    (1, {"decay": 1.01}, ValueError, "decay goes from 1.01 to 1.01; expected 0 to 1"),
    (1, {"decay": 1 + 1.1e-5}, ValueError, "decay goes from 1.00001"),
    (1, {"decay": -0.1}, ValueError, r"pass np\.exp"),
    (1, {"decay": np.nan}, ValueError, "decay goes from nan"),
    (1, {"decay": np.full((H, D_K, 1), 2)}, ValueError, "decay goes from 2"),
    (1, {"decay": np.ones(H)}, tl.ShapeError, r"decay\[..., None, None\]"),
    (1, {"decay": np.ones((H, D_K))}, tl.ShapeError, "decay has shape"),
    (1, {"decay": np.ones((D_K, 1))}, tl.ShapeError, "decay has shape"),
    (1, {"decay": np.ones((2, H, 1, 1))}, tl.ShapeError, "decay has shape"),
    (1, {"decay": "half"}, TypeError, "decay is a str"),
    (1, {"decay": None}, TypeError, "decay is a NoneType"),
    (1, {"beta": -0.1}, ValueError, r"beta · \|k\|² goes from -0.1 to -0.1; expected 0 to 2"),
    (1, {"beta": 2 + 1.1e-5}, ValueError, r"beta · \|k\|² goes from 2.00001"),
    (4, {"beta": 1}, ValueError, "goes from 16.0 .* Pass beta from 0 to 2, keys k / "),
    (1, {"beta": np.nan}, ValueError, "goes from nan"),
    (1, {"beta": np.ones(H)}, tl.ShapeError, r"beta\[..., None, None\]"),
    (1, {"beta": np.ones((H, D_K, 1))}, tl.ShapeError, "beta has shape"),
    (1, {"beta": True}, TypeError, "beta is a bool"),
]


@pytest.mark.parametrize(("key_length", "gates", "error", "message"), BAD_GATES)
def test_a_write_with_bad_gates_is_refused(key_length, gates, error, message):
    with pytest.raises(error, match=message):
        delta_step(ONES_STATE, key_length * HALF_KEY, ONES_VALUE, **gates)


def test_gates_that_were_rounded_up_do():
    k = np.random.default_rng(2).standard_normal((1000, D_K)).astype(np.float32)
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    state, v = np.zeros((1000, D_K, D_V), np.float32), np.ones((1000, D_V), np.float32)
    decay = np.nextafter(np.float32(1), np.float32(2))
    assert delta_step(state, k, v, beta=2.0, decay=decay).dtype == np.float32


def test_keys_too_long_for_their_beta_would_grow_without_end():
    """What delta_step refuses: 1 - beta · |k|² = -3 at every write."""
    k, v, state = np.array([2.0, 0.0]), np.array([1.0]), np.zeros((2, 1))
    read_values = []
    for _ in range(3):
        state = oracle.delta_step(state, k, v, 1.0, np.ones(2))
        read_values.append(float(k @ state[:, 0]))
    assert read_values == [4, -8, 28]


def stateful_layer(params, *, read_first=False, shared=False, padding_writes=False, lost=False):
    """`step` and `empty` of a layer whose cache is a state, as in chapter 18, or of a wrong one."""
    module_states = {}

    def empty(capacity, *, batch=(), pad=None):
        state = np.zeros((*batch, H, D_K, D_V))
        return state, np.zeros(batch, int) if pad is None else pad

    def step(X, cache):
        (state, pad), n = cache, X.shape[-2]
        state = module_states.get(state.shape, state) if shared else state
        Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        is_token = np.arange(n) >= pad[..., None]
        K = K if padding_writes else K * is_token[..., None, :, None]
        heads = Q @ state + linear_attention(Q, K, V)
        heads -= read_first * (Q * K).sum(axis=-1, keepdims=True) * V
        state = (0 if lost else state) + np.swapaxes(K, -1, -2) @ V
        module_states[state.shape] = state
        return tl.concat_heads(heads) @ params.W_O, (state, pad - n)

    return step, empty


@pytest.mark.parametrize(
    ("mistake_options", "message"),
    [
        ({}, "✓ cached: right on"),
        ({"read_first": True}, "✗ cached: a token does not attend to itself, only to those before"),
        ({"shared": True}, "✗ cached: a new cache is not empty"),
        ({"padding_writes": True}, "✗ cached: tokens attend to padding"),
        ({"lost": True}, "✗ cached: after cached tokens only the last are attended to"),
    ],
    ids=str,
)
def test_a_state_goes_on_as_a_cache_does_and_its_mistakes_are_named(
    mistake_options, message, params, capsys
):
    checks.check_cached(*stateful_layer(params, **mistake_options))
    assert capsys.readouterr().out.startswith(message)

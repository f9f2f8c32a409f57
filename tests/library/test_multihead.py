"""The whole layer, against plain loops."""

import dataclasses
import inspect

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, Trace, multi_head_attention, trace
from tutorial_lib.practice.ch03_attention_weights.checks import _causal_padding_mask

FIELDS = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")
# the batch axes of X, those of a context, and its length
CONTEXT_AXES = [((), (2,), 6), ((2,), (), 6), ((2,), (1,), 1), ((8, 1), (2,), 2), ((2,), (2,), 15)]


def test_all_heads_at_once_equal_a_loop_over_heads(X, params, square_mask, assert_close):
    expected = oracle.mha(X, params, mask=square_mask)
    assert_close(multi_head_attention(X, params, mask=square_mask), expected)


def test_every_step_of_a_trace_equals_the_loops(X, params, context, mask, assert_close):
    record = trace(X, params, context=context, mask=mask)
    expected = oracle.trace(X, params, context, mask)
    assert tuple(expected) == FIELDS
    for trace_field in FIELDS:
        assert_close(getattr(record, trace_field), expected[trace_field])


def test_trace_is_frozen_and_holds_its_inputs_and_its_arrays_in_order(X, params, context):
    assert tuple(f.name for f in dataclasses.fields(Trace)) == ("params", "X", "context", *FIELDS)
    record = trace(X, params, context=context)
    assert (record.params, record.X, record.context) == (params, X, context)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.Y = X


def test_without_context_a_layer_attends_to_its_own_input(X, params):
    record = trace(X, params)
    assert record.context is None
    np.testing.assert_array_equal(record.Y, trace(X, params, context=X).Y)


def test_layer_is_the_last_array_of_its_trace(X, params, context, mask):
    options = {"context": context, "mask": mask}
    np.testing.assert_array_equal(
        multi_head_attention(X, params, **options), trace(X, params, **options).Y
    )
    trace_signature, other = (inspect.signature(layer) for layer in (trace, multi_head_attention))
    assert trace_signature.parameters == other.parameters


@pytest.mark.parametrize(("X_axes", "context_axes", "S"), CONTEXT_AXES)
def test_context_of_another_batch_and_length_broadcasts(
    X_axes, context_axes, S, params, normal, assert_close
):
    batch = np.broadcast_shapes(X_axes, context_axes)
    X, context = normal(1, *X_axes, 5, 12), normal(2, *context_axes, S, 12)
    inputs = np.broadcast_to(X, (*batch, 5, 12)), params, np.broadcast_to(context, (*batch, S, 12))
    for mask in (None, normal(3, *batch, 3, 5, S) > 0):
        expected = oracle.mha(*inputs, mask)
        assert_close(multi_head_attention(X, params, context=context, mask=mask), expected)


def test_mask_of_the_padding_exercise_gives_zeros_to_padding_in_front(params, sizes, normal):
    is_token = np.arange(sizes.T) >= np.array([0, 2])[:, None]  # two paddings before sentence 1
    Y = multi_head_attention(normal(1, 2, 5, 12), params, mask=_causal_padding_mask(is_token))
    assert (Y[1, :2] == 0).all()
    assert (Y[1, 2:] != 0).all()
    assert (Y[0] != 0).all()


def test_permuted_heads_with_their_rows_of_w_o_give_the_same_layer(X, params, sizes, assert_close):
    order = [2, 0, 1]
    blocks = params.W_O.reshape(sizes.H, sizes.d_v, sizes.d_model)[order]
    W_O = blocks.reshape(-1, sizes.d_model)
    permuted_params = Params(params.W_Q[order], params.W_K[order], params.W_V[order], W_O)
    assert_close(multi_head_attention(X, permuted_params), multi_head_attention(X, params))


def test_without_mask_and_positions_permuted_tokens_give_permuted_outputs(X, params, assert_close):
    order = [3, 0, 4, 1, 2]
    Y = multi_head_attention(X, params)
    assert_close(multi_head_attention(X[..., order, :], params), Y[..., order, :])


def test_hidden_context_tokens_do_not_count(X, params, context, assert_close):
    mask = np.array([True, True, False, True, False, False])
    changed_context = context + 100.0 * ~mask[:, None]
    assert_close(
        multi_head_attention(X, params, context=changed_context, mask=mask),
        multi_head_attention(X, params, context=context[..., mask, :]),
    )

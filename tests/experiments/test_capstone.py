"""Layers of chapter 23 in training: right ones, wrong ones, and what the record says of them."""

import numpy as np
import pytest
import torch

from experiments import capstone, known_text
from experiments.capstone import FORMS, STEPS, WATCHED, WINDOW
from experiments.known_text import LENGTH, SEEDS
from tests.practice.rooms import ROOMS
from tests.sampling import long
from tutorial_lib import records
from tutorial_lib.models import own_layer
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.models.own_layer import (
    OwnLayer,
    OwnModel,
    init_own_model,
    run_own_model,
    train_own,
)
from tutorial_lib.practice.ch23_capstone.promises import attention
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.positions import rope_frequencies

RECORD = records.record("capstone")
ALL = {name: form for forms in FORMS.values() for name, form in forms.items()}
FOUND = {name: found for kind in FORMS for name, found in RECORD[kind].items()}
OPTIONS = {  # of a right layer, as a reader gives them to init_own_model
    "plain": {},
    "two KV heads": {"n_kv_heads": 2},
    "rotated": {"rotated": True},
    "window of 16": {"window": 16},
    "sink": {"sink": True},
}
MISTAKES = {"not scaled": "not_scaled", "KV heads tiled": "tiled", "one key ahead": "one_ahead"}
FEW = sample_documents(np.random.default_rng(6), 3)


def as_own(arrays, arm, window=None):
    """The model of the library that has the arrays of an arm."""
    E, *inner, U = (array.detach().double().numpy() for array in arrays)
    learned = arm.positions == "learned"
    P = inner.pop(0) if learned else np.zeros((LENGTH, known_text.D_MODEL))
    layers, size = [], len(inner) // arm.layers
    for first in range(0, len(inner), size):
        wide, *sink, W_O = inner[first : first + size]
        heads = np.swapaxes(wide.reshape(len(wide), -1, arm.d_k), 0, 1)
        parts = np.split(heads, [arm.heads, arm.heads + arm.kv_heads])
        frequencies = None if learned else rope_frequencies(arm.d_k)
        layers.append(OwnLayer(GroupedParams(*parts, W_O), frequencies, window, *sink))
    return OwnModel(E, P, tuple(layers), U)


def torch_logits(name, arrays, ids):
    """What a form of the script makes of texts."""
    arm, how = ALL[name]
    doubles = [array.detach().double() for array in arrays]

    def attend(*given):
        return capstone.attend_and_concat(*given, **how)

    return known_text.forward(doubles, torch.from_numpy(ids), arm, attend).numpy()


def with_layer(model, ids, layer):
    """The scores of the next word, with `layer` in every layer."""
    X = model.E[ids] + model.P[: ids.shape[-1]]
    for own in model.layers:
        X = X + layer(X, own.params, **own.options)[0]
    return X @ model.U


@pytest.mark.parametrize("T", [7, 20, LENGTH])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_right_form_is_the_layer_of_the_chapter(name, T):
    arm, how = FORMS["right"][name]
    arrays, ids = known_text.init_arrays(arm, 3), FEW.ids[:, :T]
    own = as_own(arrays, arm, how.get("window"))
    found = torch_logits(name, arrays, ids)
    np.testing.assert_allclose(found, run_own_model(own, ids)[0], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("T", [7, LENGTH])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_form_has_the_mistake_that_the_check_names(name, T):
    arm, _ = FORMS["wrong"][name]
    arrays, ids = known_text.init_arrays(arm, 3), FEW.ids[:, :T]
    wrong = {m.name: m for m in ROOMS["23_capstone"].MISTAKES["attention"]}
    own, found = as_own(arrays, arm), torch_logits(name, arrays, ids)
    expected = with_layer(own, ids, wrong[MISTAKES[name]].of(attention))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert np.abs(found - run_own_model(own, ids)[0]).max() > 0.1, "it is no mistake"


def test_a_reader_trains_as_the_script_does(monkeypatch):
    rng = np.random.default_rng(8)
    ids = np.concatenate([sample_documents(rng, known_text.BATCH).ids for _ in range(4)])
    monkeypatch.setattr(known_text, "training_ids", lambda seed, documents: ids)
    for module in (known_text, own_layer):
        monkeypatch.setattr(module, "WARM_UP", 3)
    arm, _ = FORMS["right"]["sink"]
    start = as_own(known_text.init_arrays(arm, 5), arm)
    *_, (_, average) = known_text.train(arm, 5, capstone.RATE, 4, capstone.attend_and_concat)
    *_, (_, _, own) = train_own(start, np.random.default_rng(8), steps=4, rate=capstone.RATE)
    for array, found in zip(own.arrays, as_own(average, arm).arrays, strict=True):
        np.testing.assert_allclose(found, array, rtol=0, atol=1e-4)  # float32 beside float64


# What the record says agrees with the script.


def test_the_record_is_of_the_script_as_it_is():
    assert list(RECORD) == [*records.HEAD_KEYS, "steps", "rate", "window", *FORMS]
    assert (RECORD["steps"], RECORD["rate"], RECORD["window"]) == (WATCHED, capstone.RATE, WINDOW)
    assert WATCHED[-1] == STEPS
    assert list(OPTIONS) == list(FORMS["right"])
    assert list(MISTAKES) == list(FORMS["wrong"])


@pytest.mark.parametrize("name", ALL)
def test_a_form_learns_as_many_numbers_as_the_layer_of_a_reader(name):
    arm, _ = ALL[name]
    options = OPTIONS.get(name, {"n_kv_heads": arm.kv_heads})
    readers = init_own_model(np.random.default_rng(0), **options).n_parameters
    assert FOUND[name]["parameters"] == readers


# Runs.


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder for the documents that are trained on, so that they are drawn once."""
    return tmp_path_factory.mktemp("kept")


@pytest.mark.parametrize("name", [n if n == "KV heads tiled" else long(n)[0] for n in ALL])
def test_the_first_steps_give_the_first_number_of_the_record_again(name, kept, monkeypatch):
    monkeypatch.setattr(known_text, "DONE", kept)
    monkeypatch.setattr(capstone, "STEPS", WATCHED[0])
    arm, how = ALL[name]
    found = capstone.run(arm, SEEDS[0], how, known_text.held_out_documents(known_text.TEST))
    right = FOUND[name]["runs"][0]["excess_loss"][0]
    # another machine rounds otherwise; any two forms are 0.02 apart here
    assert found["excess_loss"] == [pytest.approx(right, abs=1e-3)]

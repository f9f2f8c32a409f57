"""The record of the real model's circuits is what its script measures, and its pairs are pairs."""

import base64

import numpy as np
import pytest

from experiments import real_circuits
from experiments.real_circuits import (
    FRAMES,
    GIVING,
    NOUNS,
    NUMBER,
    OTHER_NAMES,
    OTHER_NOUNS,
    OTHER_PLACES,
    SEED,
    SENTENCE,
    VERBS,
    Pairs,
    agreement_pairs,
    evaluate_patches,
    giving_pairs,
    patch_paths,
    random_tokens,
    weights_of,
)
from tutorial_lib.models.real.model import SHA256, run_real
from tutorial_lib.records import record

RECORD = record("real_circuits")


@pytest.mark.long
def test_a_patch_is_measured_again(model):
    assert RECORD["model"]["sha256"] == SHA256
    verbs = Pairs(model, agreement_pairs(OTHER_NOUNS, FRAMES[1], VERBS[0]))
    stored = RECORD["number"]["tested"]["We know that the … behind the … was"]["26.0"]
    measured = evaluate_patches(model, verbs, {"26.0": NUMBER[:1]})["26.0"]
    assert measured["right"] == pytest.approx(stored["right"], abs=1e-3)
    mean = stored["difference"]["mean"]
    assert measured["difference"]["mean"] == pytest.approx(mean, abs=2e-3)


@pytest.mark.long
def test_paths_are_cut_again(model):
    trace = run_real(model, random_tokens(SEED, 2))
    weights = weights_of(model, 17, 4, trace.X[17], trace.X[17])
    np.testing.assert_allclose(weights, trace.weights[17][:, 4], atol=1e-5)
    for reader, writers in patch_paths(model, random_tokens(SEED + 1)).items():
        for writer, sides in writers.items():
            stored = RECORD["induction"]["paths"][reader][writer]
            for side, score in sides.items():
                assert score["mean"] == pytest.approx(stored[side]["mean"], abs=1e-3)


def test_maps_hold_the_roots_of_the_weights(model):
    weights = run_real(model, model.tokenizer.encode(SENTENCE)).weights
    bytes_ = np.frombuffer(base64.b64decode(RECORD["maps"]["roots"]), np.uint8)
    rows, columns = np.tril_indices(len(RECORD["maps"]["tokens"]))
    roots = 255 * np.sqrt(weights[:, :, rows, columns])
    assert np.abs(bytes_.reshape(roots.shape) - roots).max() < 0.51


def test_heads_are_tested_on_other_words_than_those_that_chose_them():
    assert not {*NOUNS} & {*OTHER_NOUNS}
    assert not {*real_circuits.NAMES} & {*OTHER_NAMES}
    seeds = [random_tokens(SEED + n, 8) for n in range(3)]
    assert not any((seeds[i] == seeds[j]).all() for i, j in ((0, 1), (0, 2), (1, 2)))


def test_the_texts_of_a_pair_differ_in_one_word():
    rows = [
        *agreement_pairs(NOUNS, FRAMES[0], VERBS[0]),
        *giving_pairs(OTHER_NAMES, GIVING, OTHER_PLACES),
    ]
    for text, other, right, wrong in rows:
        assert sum(a != b for a, b in zip(text.split(), other.split(), strict=True)) == 1
        assert right != wrong
    assert agreement_pairs(NOUNS, FRAMES[0], VERBS[0])[0] == (
        "The key near the dogs",
        "The keys near the dogs",
        " was",
        " were",
    )

"""Circuits read off weights: the script's tables by hand, and its record against the example."""

import numpy as np
import pytest

from experiments import induction, known_text, scored_heads
from experiments.induction import PATHS
from experiments.scored_heads import MODELS
from tests import oracle
from tests.rounding import unlike
from tutorial_lib import causal_mask, records
from tutorial_lib.models import copying
from tutorial_lib.models.copying import init_model
from tutorial_lib.models.grammar import SURNAME

RECORD = records.record("induction")
IDS = np.random.default_rng(1).integers(0, 32, (3, 9))


@pytest.fixture(scope="module")
def tiny():
    """An untrained model whose layers have heads of four different widths."""
    return init_model(np.random.default_rng(2), d_model=12, n_heads=3, d_k=4, d_v=5)


def test_a_diagonal_counts_its_rows_and_the_rest_by_hand():
    found = induction.diagonal_statistics(np.array([[3.0, 1, 0], [2, 1, 0], [0, 0, 5]]))
    assert found == {"own": 2, "diagonal": 3.0, "rest": 0.5}


def test_a_block_stands_twice_and_its_second_copy_looks_after_the_first():
    ids, target = induction.repeat_blocks(np.array([[7, 8, 9]]), [0])
    assert ids.tolist() == [[0, 7, 8, 9, 7, 8, 9]]
    assert target.tolist() == [[-1, -1, -1, -1, 2, 3, 4]]
    assert ids[0, target[0, 4]] == 8
    ids, target = induction.repeat_blocks(np.array([[7, 8, 9]]), [])
    assert target.tolist() == [[-1, -1, -1, 1, 2, 3]]


@pytest.mark.parametrize("paths", [(), ("keys",), ("queries",), ("values",), PATHS])
def test_a_path_is_cut_as_by_loops(paths, tiny):
    first, last = tiny.layers
    mean, pair = np.arange(5.0), [1, 2]
    heads = oracle.trace(oracle.embed(IDS, tiny.E, tiny.P), first, mask=causal_mask(9))["heads"]
    X = oracle.embed(IDS, tiny.E, tiny.P)
    rows = [first.W_O[h * 5 : h * 5 + 5] for h in range(3)]
    X = X + sum(heads[:, h] @ rows[h] for h in range(3))
    without = X - heads[:, 1] @ rows[1] + mean @ rows[1]
    found, weights = induction.run_cut(tiny, IDS, pair, mean, paths)
    Y = np.zeros(X.shape)
    into = {path: without if path in paths else X for path in PATHS}
    for h in range(3):
        Q, K, V = (
            into["queries"] @ last.W_Q[h],
            into["keys"] @ last.W_K[h],
            into["values"] @ last.W_V[h],
        )
        scores = np.where(causal_mask(9), Q @ K.swapaxes(-1, -2) / 2.0, -np.inf)
        shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(weights[:, h], shares, rtol=1e-9, atol=1e-12)
        Y = Y + shares @ V @ last.W_O[h * 5 : h * 5 + 5]
    np.testing.assert_allclose(found, (X + Y) @ tiny.U, rtol=1e-9, atol=1e-9)


def test_a_turned_matrix_keeps_its_singular_values():
    matrix = np.random.default_rng(3).standard_normal((9, 4)) @ np.ones((4, 9))
    left, right = induction.rotate_directions(np.random.default_rng(4), matrix, 4)
    values = [np.linalg.svd(W, compute_uv=False)[:4] for W in (matrix, left @ right.T)]
    np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-9)
    other = induction.rotate_directions(np.random.default_rng(5), np.diag(np.arange(9.0)), 9)
    product = left @ right.T @ other[0] @ other[1].T
    norms = np.linalg.norm(left @ right.T) * np.linalg.norm(other[0])
    share = induction._factor_composition((left, right), other)
    assert share == pytest.approx(np.linalg.norm(product) / norms)


def test_the_committed_model_is_the_first_seed_of_the_record(example):
    found = induction.rounded(
        induction.matching_scores(example)
        | induction.copying_scores(example)
        | {"induction": induction.repeated_word_scores(example)}
    )
    found["composition"] = induction.rounded(induction.compositions(*induction.circuits(example)))
    first = RECORD["models"]["two layers"][0]
    faults = unlike(found, {name: first[name] for name in found}, places=4, path="seed 0")
    assert not faults, "\n".join(faults)


def test_the_committed_model_loses_its_surnames_as_the_record_says(example, monkeypatch):
    monkeypatch.setattr(known_text, "TESTED", 60)  # fewer documents differ by chance
    first = RECORD["models"]["two layers"][0]
    found = induction.evaluate_cuts(example, first["pair"])
    for name, part in first["cut"].items():
        assert found[name]["weight"] == pytest.approx(part["weight"], abs=0.1)
        assert found[name]["right"] == pytest.approx(part["right"], abs=0.1)


def test_a_model_on_the_plateau_is_read_as_the_example_is(monkeypatch):
    arm = MODELS["two layers"]
    arrays = [array.detach().numpy() for array in known_text.init_arrays(arm, 5)]  # untrained
    asked = []

    def trained(*given):
        asked.append(given)
        return {}, arrays

    monkeypatch.setattr(known_text, "cached_run", trained)
    monkeypatch.setattr(known_text, "TESTED", 20)
    found = induction.analyse_plateau(3)
    steps = scored_heads.PLATEAUS["two layers"]
    assert asked == [(arm, 3, induction.RATE, steps, known_text.TEST)]
    model = known_text.as_model([array.astype(np.float16) for array in arrays], arm)
    assert found["match"] == induction.rounded(induction.matching_scores(model)["match"])
    assert found["copied"] == induction.rounded(induction.copying_scores(model)["copied"])
    last, documents = np.flatnonzero(SURNAME), known_text.held_out_documents(known_text.TEST)
    weights, on = copying.run(model, documents.ids[:, :-1])[1][1].weights, []
    for n, t in zip(*np.nonzero(documents.target_of("surname") >= 0), strict=True):
        places = [j for j in range(t + 1) if documents.ids[n, j] in last]
        on.append(sum(weights[n, :, t, j] for j in places))
    assert len(on) > 10
    np.testing.assert_allclose(found["on_surnames"], np.mean(on, axis=0), atol=1e-4)

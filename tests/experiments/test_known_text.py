"""The models of the known text: one architecture, its counts, its twin in NumPy, its record."""

from functools import partial

import numpy as np
import pytest
import torch

from experiments import known_text
from experiments.known_text import ARMS, EXAMPLE, LENGTH, Arm
from tests.experiments.test_trained import assert_tried_long_enough
from tests.rounding import unlike
from tutorial_lib import (
    attention_scores,
    attention_weights,
    causal_mask,
    concat_heads,
    records,
    split_heads,
)
from tutorial_lib.models import copying
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.models.grammar import sample_documents
from tutorial_lib.variants.grouped import group_params
from tutorial_lib.variants.latent import latent_params
from tutorial_lib.variants.patterns import attention_with_sink
from tutorial_lib.variants.positions import alibi_bias, alibi_slopes, rope_frequencies, rotate

RECORD = records.record("known_text")
MORE = [  # forms that other records train
    Arm("more", "a sink", sink=True),
    Arm("more", "a sink and slopes, 2 KV heads", kv_heads=2, positions="ALiBi", sink=True),
    Arm("more", "blocks", feed=24),
    Arm("more", "wide values", d_k=6, d_v=10),
    Arm("more", "no W_O", d_k=6, d_v=16, output="none"),
    Arm("more", "a frozen W_O", output="frozen"),
    Arm("more", "folded", heads=2, kv_heads=2, d_v=64, output="folded"),
]


def part(name):
    """A part of the record about the example with other keys and values."""
    return RECORD["quantised"][name] if name.startswith("per ") else RECORD[name]


@pytest.fixture(scope="module")
def tested():
    """The documents that the record speaks of."""
    return known_text.held_out_documents(known_text.TEST)


def by_the_chapters(arrays, ids, arm):
    """The scores of an arm for some texts, by the functions of the chapters."""
    E, *arrays, U = (array.detach().double().numpy() for array in arrays)
    X, norm = E[ids], rms_norm if arm.feed else np.asarray
    if arm.positions == "learned":
        X = X + arrays.pop(0)[: ids.shape[-1]]
    for _ in range(arm.layers):
        W, *low_rank = (arrays.pop(0) for _ in range(3 if arm.rank else 1))
        W_QKV = np.hstack([W, low_rank[0] @ low_rank[1]]) if arm.rank else W
        sink = arrays.pop(0) if arm.sink else None
        heads = heads_by_the_chapters(norm(X), W_QKV, sink, arm)
        W_O = arrays.pop(0) if arm.has_output else None
        merged = heads.sum(axis=-3) if arm.output == "folded" else concat_heads(heads)
        X = X + (merged if W_O is None else merged @ W_O)
        if arm.feed:
            X = X + mlp(norm(X), arrays.pop(0), arrays.pop(0))
    return norm(X) @ U


def heads_by_the_chapters(X, W_QKV, sink, arm):
    """The heads of a layer, (B, H, T, d_v)."""
    cuts = np.cumsum([arm.heads * arm.d_k, arm.kv_heads * arm.d_k])
    parts = zip(np.split(X @ W_QKV, cuts, axis=-1), (arm.heads, *[arm.kv_heads] * 2), strict=True)
    Q, K, V = (split_heads(part, n_heads) for part, n_heads in parts)
    T = X.shape[-2]
    if arm.positions == "RoPE":
        Q, K = (rotate(Z, np.arange(T), rope_frequencies(arm.d_k)) for Z in (Q, K))
    K, V = (np.repeat(Z, arm.heads // arm.kv_heads, axis=-3) for Z in (K, V))
    scores = attention_scores(Q, K)
    if arm.positions == "ALiBi":
        scores = scores + alibi_bias(T, T, alibi_slopes(arm.heads))
    if arm.sink:
        return attention_with_sink(scores, sink, mask=causal_mask(T)) @ V
    return attention_weights(scores, mask=causal_mask(T)) @ V


@pytest.mark.parametrize("arm", [*ARMS, *MORE], ids=lambda arm: f"{arm.group}, {arm.name}")
def test_an_arm_is_a_composition_of_the_functions_of_the_chapters(arm):
    arrays = [array.detach().double() for array in known_text.init_arrays(arm, 1)]
    ids = sample_documents(np.random.default_rng(1), 2, length=9).ids
    found = known_text.forward(arrays, torch.from_numpy(ids), arm).numpy()
    np.testing.assert_allclose(found, by_the_chapters(arrays, ids, arm), rtol=1e-9, atol=1e-10)


def test_numbers_are_counted_and_equal_where_they_are_said_to_be():
    numbers = {(a.group, a.name): sum(np.prod(s) for s in a.shapes) for a in ARMS}
    equal = [EXAMPLE.name, "6 heads, 2 KV heads", "7 heads, 1 KV head"]
    assert {numbers["heads", name] for name in equal} == {49_664}
    wide = [f"{places}, heads of 18" for places in known_text.PLACES]
    assert {numbers["positions", name] for name in (*wide, "learned")} == {49_664}
    assert {numbers["positions", name] for name in known_text.PLACES} == {49_664 - 64 * 64}
    assert numbers["heads", "4 heads, 2 KV heads"] == 41_472
    assert numbers["heads", "4 heads, 1 KV head"] == 37_376
    assert numbers["latent", "rank 32"] == 45_568


def require_judged(logits, tested, stored):
    """Require the loss and the accuracies that a record has, to the decimals that it keeps."""
    found = known_text.evaluate_logits(logits, tested)
    faults = unlike(found.pop("accuracy"), stored["accuracy"], places=4, path="accuracy")
    losses = {name: stored[name] for name in stored if name != "accuracy"}
    faults += unlike(found, losses, places=5, path="the example")
    assert not faults, "\n".join(faults)


def test_the_example_loses_and_answers_what_the_record_says(example, tested):
    logits = copying.run(example, tested.ids[:, :-1])[0]
    require_judged(logits, tested, RECORD["example"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("truncated", lambda rank: partial(latent_params, rank=rank)),
        ("pooled", lambda heads: partial(group_params, n_kv_heads=heads)),
    ],
)
def test_the_record_is_what_the_functions_of_the_chapters_leave(name, change, example, tested):
    few = list(part(name))[-2]
    other = known_text.replace_params(example, change(int(few)))
    require_judged(copying.run(other, tested.ids[:, :-1])[0], tested, part(name)[few])


@pytest.mark.parametrize(("way", "axis"), [("per token", -1), ("per channel", -2)])
def test_the_record_is_what_rounded_keys_leave(way, axis, example, tested):
    logits = known_text.run_rounded(example, tested.ids[:, :-1], bits=3, axis=axis)
    require_judged(logits, tested, part(way)["3"])


def test_a_rate_is_tried_again_where_no_run_left_the_plateau(monkeypatch):
    asked = []

    def run(arm, seed, rate, steps, tested):
        asked.append((seed, rate, steps))
        left = steps == known_text.STEPS and rate == 2e-3
        return {"excess_loss": [0.01 if left else 0.06]}, None

    monkeypatch.setattr(known_text, "cached_run", run)
    monkeypatch.setattr(known_text, "train_all_seeds", lambda arm, rate, tried: (rate, tried))
    rate, tried = known_text.tune_and_train(EXAMPLE)
    assert rate == 2e-3
    assert_tried_long_enough(tried)
    assert len(asked) == 3 + 2 * 3


def test_an_arm_that_answers_two_questions_is_the_same_in_both():
    assert RECORD["heads"][EXAMPLE.name] == RECORD["positions"]["learned"]


def test_no_document_is_seen_twice_and_orders_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(known_text, "DONE", tmp_path)
    one, other = (known_text.training_ids(seed, 300) for seed in (0, 1))
    assert one.shape == (300, LENGTH + 1)
    assert len({text.tobytes() for text in one}) == 300
    assert {text.tobytes() for text in one} == {text.tobytes() for text in other}
    assert (one != other).any()
    seen = {tuple(text) for text in one.tolist()}
    tested = known_text.held_out_documents(known_text.TEST)
    assert not seen & {tuple(text) for text in tested.ids.tolist()}
    assert RECORD["settings"]["documents"] == known_text.BATCH * known_text.STEPS


def test_guesses_and_settings_are_those_of_the_script():
    assert RECORD["guessed_surnames"] == known_text.guess_accuracy()
    assert RECORD["settings"] == known_text.settings()

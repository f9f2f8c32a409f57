"""The models of the known text: one architecture, its counts, its twin in NumPy, its record."""

import json
import re
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch

from experiments import known_text
from experiments.known_text import ARMS, EXAMPLE, LENGTH, SEEDS, Arm
from tests import oracle
from tests.rounding import unlike
from tutorial_lib import causal_mask, records
from tutorial_lib.models import copying
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.entropy import accuracy, excess_loss, expected_surprisal
from tutorial_lib.models.grammar import TASKS, WORDS, sample_documents
from tutorial_lib.variants.grouped import group_params
from tutorial_lib.variants.latent import latent_params
from tutorial_lib.variants.positions import alibi_bias, alibi_slopes, rope_frequencies, rotate

RECORD = records.record("known_text")
TRAINED = [(a, RECORD[a.group][a.name]) for a in ARMS if a.name in RECORD.get(a.group, {})]
MORE = [  # forms that other records train
    Arm("more", "a sink", sink=True),
    Arm("more", "a sink and slopes, 2 KV heads", kv_heads=2, positions="ALiBi", sink=True),
    Arm("more", "blocks", feed=24),
    Arm("more", "wide values", d_k=6, d_v=10),
    Arm("more", "no W_O", d_k=6, d_v=16, output="none"),
    Arm("more", "a frozen W_O", output="frozen"),
    Arm("more", "folded", heads=2, kv_heads=2, d_v=64, output="folded"),
]
UNTRAINED = ("truncated", "pooled", "per token", "per channel")


def part(name):
    """A part of the record about the example with other keys and values."""
    return RECORD["quantised"][name] if name.startswith("per ") else RECORD[name]


@pytest.fixture(scope="module")
def model():
    """The committed model."""
    return TinyModel.of(records.checkpoint("known_text"))


@pytest.fixture(scope="module")
def tested():
    """The documents that the record speaks of."""
    return known_text.drawn(known_text.TEST)


def fused(model):
    """The arrays of a model as the script keeps them, as tensors."""
    arrays = [model.E, model.P]
    for p in model.layers:
        arrays += [np.concatenate([*p.W_Q, *p.W_K, *p.W_V], axis=-1), p.W_O]
    return [torch.from_numpy(array) for array in (*arrays, model.U)]


def by_loops(arrays, ids, arm):
    """The scores of an arm for one text, by the plain loops of the oracle."""
    E, *arrays, U = (array.detach().double().numpy() for array in arrays)
    X = E[ids]
    if arm.positions == "learned":
        P, *arrays = arrays
        X = X + P[: len(ids)]
    size = len(arrays) // arm.layers
    for layer in range(arm.layers):
        matrices = arrays[layer * size : (layer + 1) * size]
        feed = [matrices.pop(-2), matrices.pop(-1)] if arm.feed else None
        W_O = matrices.pop() if arm.output in ("learned", "frozen") else None
        heads = list(heads_by_loops(normed(X, arm), matrices, arm))
        if arm.output == "folded":
            X = X + sum(heads)
        else:
            X = X + (np.hstack(heads) if W_O is None else np.hstack(heads) @ W_O)
        if feed:
            X = X + np.maximum(normed(X, arm) @ feed[0], 0) @ feed[1]
    return normed(X, arm) @ U


def normed(X, arm):
    """Rows of mean square 1, in front of each part of a block."""
    return np.array([x / (sum(x**2) / len(x)) ** 0.5 for x in X]) if arm.feed else X


def heads_by_loops(X, matrices, arm):
    """The heads of a layer, one after the other."""
    if arm.rank:
        W_Q, W_D, W_U = matrices
        wide = np.hstack([X @ W_Q, X @ W_D @ W_U])
    else:
        wide = X @ matrices[0]
    d_v = arm.d_v or arm.d_k
    widths = [arm.d_k] * (arm.heads + arm.kv_heads) + [d_v] * arm.kv_heads
    parts = np.split(wide, np.cumsum(widths)[:-1], axis=1)
    for h in range(arm.heads):
        group = arm.heads + h // (arm.heads // arm.kv_heads)
        Q, K, V = parts[h], parts[group], parts[group + arm.kv_heads]
        if arm.positions == "RoPE":
            Q, K = turned_by_loops(Q), turned_by_loops(K)
        slope = 2.0 ** (-8 * (h + 1) / arm.heads) if arm.positions == "ALiBi" else 0.0
        rows = []
        for t in range(len(X)):
            scores = [Q[t] @ K[s] / arm.d_k**0.5 - slope * (t - s) for s in range(t + 1)]
            scores += [matrices[-1][h]] * arm.sink
            rows.append(oracle.softmax(np.array([scores]))[0][: t + 1] @ V[: t + 1])
        yield np.array(rows)


def turned_by_loops(Z):
    """Each pair of neighbours turned by an angle that grows with the place."""
    turned, d_k = Z.copy(), Z.shape[1]
    for t in range(len(Z)):
        for i in range(0, d_k, 2):
            angle = t * 10_000 ** (-i / d_k)
            cos, sin = np.cos(angle), np.sin(angle)
            turned[t, i] = Z[t, i] * cos - Z[t, i + 1] * sin
            turned[t, i + 1] = Z[t, i] * sin + Z[t, i + 1] * cos
    return turned


@pytest.mark.parametrize("arm", [*ARMS, *MORE], ids=lambda arm: f"{arm.group}, {arm.name}")
def test_an_arm_goes_forward_as_plain_loops_do(arm):
    arrays = [array.detach().double() for array in known_text.begin(arm, 1)]
    ids = sample_documents(np.random.default_rng(1), 2, length=9).ids
    found = known_text.forward(arrays, torch.from_numpy(ids), arm).numpy()
    for text, logits in zip(ids, found, strict=True):
        np.testing.assert_allclose(logits, by_loops(arrays, text, arm), rtol=1e-9, atol=1e-10)


def test_numbers_are_counted_and_equal_where_they_are_said_to_be():
    numbers = {(a.group, a.name): sum(np.prod(s) for s in a.shapes) for a in ARMS}
    drawn = {(a.group, a.name): sum(p.numel() for p in known_text.begin(a, 0)) for a in ARMS}
    assert numbers == drawn
    equal = [EXAMPLE.name, "6 heads, 2 KV heads", "7 heads, 1 KV head"]
    assert {numbers["heads", name] for name in equal} == {49_664}
    wide = [f"{places}, heads of 18" for places in known_text.PLACES]
    assert {numbers["positions", name] for name in (*wide, "learned")} == {49_664}
    assert {numbers["positions", name] for name in known_text.PLACES} == {49_664 - 64 * 64}
    assert numbers["heads", "4 heads, 2 KV heads"] == 41_472
    assert numbers["heads", "4 heads, 1 KV head"] == 37_376
    assert numbers["latent", "rank 32"] == 45_568


def test_arms_of_a_group_differ_in_what_the_group_asks():
    changes = {"heads": {"heads", "kv_heads"}, "positions": {"d_k", "positions"}}
    changes["latent"] = {"rank"}
    for arm in ARMS:
        differs = {f for f in Arm._fields[2:] if getattr(arm, f) != getattr(EXAMPLE, f)}
        assert differs <= changes[arm.group]
        assert arm.heads % arm.kv_heads == 0


def test_torch_and_numpy_score_alike(model, tested):
    ids = tested.ids[:20, :-1]
    with torch.no_grad():
        found = known_text.forward(fused(model), torch.from_numpy(ids), EXAMPLE).numpy()
    np.testing.assert_allclose(copying.run(model, ids)[0], found, rtol=0, atol=1e-10)
    again = known_text.as_model(fused(model))
    for array, expected in zip(again.arrays, model.arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_the_checkpoint_is_the_example_in_half_precision(model):
    assert model.E.shape == (len(WORDS), known_text.D_MODEL)
    assert model.P.shape == (LENGTH, known_text.D_MODEL)
    assert [p.n_heads for p in model.layers] == [4, 4]
    assert sum(array.size for array in model.arrays) == 49_664
    for array in model.arrays:
        np.testing.assert_array_equal(array, array.astype(np.float16).astype(float))


def test_rounding_to_half_precision_hardly_changes_the_loss():
    single = RECORD["heads"][EXAMPLE.name]["runs"][0]
    assert single["seed"] == SEEDS[0]
    assert abs(RECORD["example"]["excess_loss"] - single["excess_loss"][-1]) <= 1e-5


def require_judged(logits, tested, stored):
    """Require the loss and the accuracies that a record has, to the decimals that it keeps."""
    found = known_text.judged(logits, tested)
    faults = unlike(found.pop("accuracy"), stored["accuracy"], places=4, path="accuracy")
    losses = {name: stored[name] for name in stored if name != "accuracy"}
    faults += unlike(found, losses, places=5, path="the example")
    assert not faults, "\n".join(faults)


def test_the_example_loses_and_answers_what_the_record_says(model, tested):
    logits = copying.run(model, tested.ids[:, :-1])[0]
    require_judged(logits, tested, RECORD["example"])
    assert excess_loss(logits, tested).mean() == pytest.approx(
        RECORD["example"]["excess_loss"], abs=1e-5
    )
    assert accuracy(logits, tested) == pytest.approx(RECORD["example"]["accuracy"], abs=1e-4)


def test_what_changes_nothing_gives_the_example_back():
    for name, whole in (("truncated", "64"), ("pooled", "4")):
        assert part(name)[whole] == RECORD["example"]


@pytest.mark.parametrize("n_heads", [4, 6, 8])
def test_slopes_and_turns_are_those_of_the_chapters(n_heads):
    X = torch.from_numpy(np.random.default_rng(2).standard_normal((2, n_heads, 9, 6)))
    right = rotate(X.numpy(), np.arange(9), rope_frequencies(6))
    np.testing.assert_allclose(known_text.turned(X), right, rtol=0, atol=1e-12)
    bias = known_text.slopes(n_heads, 9, torch.float64).numpy()
    right = np.where(causal_mask(9), alibi_bias(9, 9, alibi_slopes(n_heads)), -np.inf)
    np.testing.assert_array_equal(bias, right)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("truncated", lambda rank: partial(latent_params, rank=rank)),
        ("pooled", lambda heads: partial(group_params, n_kv_heads=heads)),
    ],
)
def test_the_record_is_what_the_functions_of_the_chapters_leave(name, change, model, tested):
    few = list(part(name))[-2]
    other = known_text.changed(model, change(int(few)))
    require_judged(copying.run(other, tested.ids[:, :-1])[0], tested, part(name)[few])


@pytest.mark.parametrize(("way", "axis"), [("per token", -1), ("per channel", -2)])
def test_the_record_is_what_rounded_keys_leave(way, axis, model, tested):
    logits = known_text.run_rounded(model, tested.ids[:, :-1], bits=3, axis=axis)
    require_judged(logits, tested, part(way)["3"])


def test_fewer_numbers_of_keys_and_values_never_help_much():
    for name in UNTRAINED:
        losses = [found["excess_loss"] for found in part(name).values()]  # from many to few
        errors = [found["standard_error"] for found in part(name).values()]
        for (more, less), error in zip(pairwise(losses), errors[1:], strict=True):
            assert less > more - 2 * error


def assert_tried_long_enough(tried):
    """The runs that choose a rate: one of half the steps that left the plateau, or two of all."""
    if tried[0]["steps"] == known_text.STEPS:
        assert all(len(row["seeds"]) == 2 for row in tried)
    else:
        assert {row["steps"] for row in tried} == {known_text.TRIED_FOR}
        assert min(row["excess_loss"] for row in tried) < known_text.PLATEAU
    for row in tried:
        assert row["excess_loss"] == pytest.approx(np.mean(row["seeds"]), abs=1e-5)


def test_a_rate_is_tried_again_where_no_run_left_the_plateau(monkeypatch):
    asked = []

    def run(arm, seed, rate, steps, tested):
        asked.append((seed, rate, steps))
        left = steps == known_text.STEPS and rate == 2e-3
        return {"excess_loss": [0.01 if left else 0.06]}, None

    monkeypatch.setattr(known_text, "kept", run)
    monkeypatch.setattr(known_text, "trained", lambda arm, rate, tried: (rate, tried))
    rate, tried = known_text.measure(EXAMPLE)
    assert rate == 2e-3
    assert_tried_long_enough(tried)
    assert len(asked) == 3 + 2 * 3


@pytest.mark.parametrize(("arm", "found"), TRAINED, ids=lambda x: getattr(x, "name", ""))
def test_an_arm_of_the_record_is_one_of_the_script(arm, found):
    named = ("heads", "kv_heads", "d_k", "positions", "rank")
    assert {name: found[name] for name in named} == {name: getattr(arm, name) for name in named}
    assert found["parameters"] == sum(np.prod(shape) for shape in arm.shapes)
    assert tuple(row["rate"] for row in found["tried"]) == known_text.RATES
    assert found["rate"] == known_text.best(found["tried"])["rate"]
    assert_tried_long_enough(found["tried"])
    assert found["steps"] == known_text.watched(known_text.STEPS)
    assert found["steps"][-3] * 2 == found["steps"][-1] == known_text.STEPS
    assert [run["seed"] for run in found["runs"]] == list(SEEDS)
    for run in found["runs"]:
        assert len(run["excess_loss"]) == len(found["steps"])
        assert set(run["accuracy"]) == set(TASKS)
        assert all(len(shares) == len(found["steps"]) for shares in run["accuracy"].values())
        assert 0 < run["standard_error"] < 0.01
        assert min(run["excess_loss"]) > 0


@pytest.mark.parametrize(("arm", "found"), TRAINED, ids=lambda x: getattr(x, "name", ""))
def test_what_the_seeds_have_in_common_follows_from_the_runs(arm, found):
    assert {n: found[n] for n in known_text.summary(found["runs"])} == known_text.summary(
        found["runs"]
    )
    last = sorted(run["excess_loss"][-1] for run in found["runs"])
    assert list(found["excess_loss"].values()) == [last[0], last[2], last[4]]
    half = sorted(run["excess_loss"][-3] for run in found["runs"])[2]
    assert found["doubling_change"] == pytest.approx(last[2] - half, abs=1e-9)
    changes = np.array([run["excess_loss"][-1] - run["excess_loss"][-3] for run in found["runs"]])
    error = changes.std(ddof=1) / 5**0.5
    assert found["change"] == pytest.approx(
        {"mean": changes.mean(), "standard_error": error}, abs=1e-5
    )
    assert found["flat"] == (-found["change"]["mean"] <= found["change"]["standard_error"])
    reach = {band for band, values in found["bands"].items() if values}
    assert reach == ({"0 to 63"} if arm.positions == "learned" else set(found["bands"]))


def test_an_arm_that_answers_two_questions_is_the_same_in_both():
    assert RECORD["heads"][EXAMPLE.name] == RECORD["positions"]["learned"]


def test_the_floor_of_the_record_is_that_of_the_text(tested):
    floor = RECORD["floor"]
    assert floor["expected"] == pytest.approx(expected_surprisal().mean(), abs=1e-5)
    assert floor["tested"] == pytest.approx(tested.surprisal.mean(), abs=1e-5)
    assert abs(floor["tested"] - floor["expected"]) < 3 * floor["standard_error"]


def test_no_document_is_seen_twice_and_orders_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(known_text, "DONE", tmp_path)
    one, other = (known_text.stream(seed, 300) for seed in (0, 1))
    assert one.shape == (300, LENGTH + 1)
    assert len({text.tobytes() for text in one}) == 300
    assert {text.tobytes() for text in one} == {text.tobytes() for text in other}
    assert (one != other).any()
    seen = {tuple(text) for text in one.tolist()}
    assert not seen & {tuple(text) for text in known_text.drawn(known_text.TEST).ids.tolist()}
    assert RECORD["settings"]["documents"] == known_text.BATCH * known_text.STEPS


@pytest.mark.long
def test_a_run_trains_resumes_and_is_read_from_what_is_kept(tmp_path, monkeypatch, capsys):
    few = {"DONE": tmp_path, "STEPS": 32, "TRIED_FOR": 16, "WARM_UP": 4, "TESTED": 40}
    few |= {"SEEDS": range(2), "RATES": (2e-3, 8e-3), "ARMS": ARMS[:2]}
    for name, value in few.items():
        monkeypatch.setattr(known_text, name, value)
    written = {}
    monkeypatch.setattr(known_text, "write", lambda _, r: written.update(json.loads(json.dumps(r))))
    monkeypatch.setattr(known_text, "write_checkpoint", lambda _, arrays: None)
    known_text.main()
    assert [len(found["runs"]) for found in written["heads"].values()] == [2]
    run = written["heads"][EXAMPLE.name]["runs"][1]
    assert run["excess_loss"][-1] < run["excess_loss"][0]
    assert written["heads"][EXAMPLE.name] == written["positions"]["learned"]
    monkeypatch.setattr(known_text, "train", None)  # all is kept
    first = json.dumps(written)
    written.clear()
    known_text.main()
    assert json.dumps(written) == first
    assert re.search(r"heads, 4 heads, 4 KV heads: .*rate 0.008", capsys.readouterr().out)


def test_guesses_of_surnames_are_counted_by_hand(monkeypatch):
    text = "<bos> " + "Anna Kern sees Emil Lang . " * 2 + "Emil Lang"
    ids = np.array([[known_text.grammar.ID[word] for word in text.split()]])
    monkeypatch.setattr(known_text, "drawn", lambda _: known_text.grammar.read_documents(ids))
    # Kern and Lang come back behind Lang, Kern; then Lang behind Lang: one of three, and halves
    assert known_text.guesses() == {"the last one said": 0.3333, "one said, evenly": 0.5}


def test_rates_of_all_steps_are_of_every_form_of_positions():
    assert list(RECORD["rates"]) == ["learned", "RoPE", "ALiBi", "none"]
    for tried in RECORD["rates"].values():
        assert [row["rate"] for row in tried] == list(known_text.RATES)
        assert {row["steps"] for row in tried} == {known_text.STEPS}
        assert_tried_long_enough(tried)


def test_the_record_holds_every_arm_and_every_guess():
    assert [arm for arm, _ in TRAINED] == list(ARMS)
    assert RECORD["guessed_surnames"] == known_text.guesses()
    assert RECORD["settings"] == known_text.settings()

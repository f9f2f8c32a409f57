"""Records of trained models: each is an arm of its script, and what its seeds share follows.

One table says which arm of a script stands where in a record; what all of them promise is asked of
each in turn.
"""

import importlib
import json

import numpy as np
import pytest

from experiments import capstone, how_many_heads, known_text, look_less, scored_heads
from experiments.known_text import ARMS, RATES, SEEDS, STEPS, TRIED_FOR
from tests.experiments.test_records import PARTS, parts
from tests.sampling import long
from tutorial_lib import records
from tutorial_lib.models.grammar import TASKS

ARM_AT = {  # path in the records -> the arm that is trained
    **{f"known_text/{arm.group}/{arm.name}": arm for arm in ARMS},
    **{f"scored_heads/models/{name}": arm for name, arm in scored_heads.MODELS.items()},
    **{f"how_many_heads/models/{name}": arm for name, arm in how_many_heads.MODELS.items()},
    **{f"look_less/models/{name}": arm for name, (arm, _) in look_less.MODELS.items()},
    **{
        f"capstone/{kind}/{name}": arm
        for kind, forms in capstone.FORMS.items()
        for name, (arm, _) in forms.items()
    },
}
AGAIN = {f"scored_heads/longer/{name}" for name in scored_heads.LONGER}  # for twice the steps
AGAIN |= {f"how_many_heads/models/{name}/second" for name in how_many_heads.MODELS}  # another rate
TIMES_RATE = {f"look_less/models/{name}": times for name, (_, times) in look_less.MODELS.items()}
TRIED = [path for path in ARM_AT if "tried" in PARTS[path]]
RUNS = [path for path in (*ARM_AT, *sorted(AGAIN)) if "runs" in PARTS[path]]
near = {"abs": 1.1e-5}  # five decimals, rounded twice


def test_the_records_hold_every_arm_and_no_other():
    trained = {path for path, part in PARTS.items() if {"parameters", "excess_loss"} <= set(part)}
    assert trained == set(ARM_AT)
    again = {p for p, part in PARTS.items() if {"runs", "excess_loss"} <= set(part)} - trained
    assert again == AGAIN


@pytest.mark.parametrize("path", ARM_AT)
def test_a_model_of_a_record_has_the_sizes_of_its_arm(path):
    found, arm = PARTS[path], ARM_AT[path]
    sizes = {name: size for name, size in found.items() if name in arm._fields}
    sizes.pop("sink", None)  # what it gets, in look_less
    assert sizes == {name: (arm._asdict() | {"d_v": arm.values})[name] for name in sizes}
    assert found["parameters"] == sum(np.prod(shape) for shape in arm.shapes)
    begun = known_text.init_arrays(arm, 0)
    assert found["parameters"] == sum(array.numel() for array in begun)
    learned = sum(array.numel() for array in begun if array.requires_grad)
    assert found.get("learned", learned) == learned


def assert_tried_long_enough(tried):
    """The runs that choose a rate: one of half the steps that left the plateau, or two of all."""
    if tried[0]["steps"] == STEPS:
        assert all(len(row["seeds"]) == 2 for row in tried)
    else:
        assert {row["steps"] for row in tried} == {TRIED_FOR}
        assert min(row["excess_loss"] for row in tried) < known_text.PLATEAU
    for row in tried:
        assert row["excess_loss"] == pytest.approx(np.mean(row["seeds"]), **near)


@pytest.mark.parametrize("path", TRIED)
def test_a_model_is_trained_at_the_best_of_its_rates(path):
    found, record = PARTS[path], path.partition("/")[0]
    is_block = record == "scored_heads" and ARM_AT[path].feed
    rates = scored_heads.BLOCK_RATES if is_block else RATES
    assert tuple(row["rate"] for row in found["tried"]) == rates
    assert_tried_long_enough(found["tried"])
    best, second, _ = sorted(found["tried"], key=lambda row: row["excess_loss"])
    assert found["rate"] == TIMES_RATE.get(path, 1) * best["rate"]
    if record == "how_many_heads":
        assert found["second"]["rate"] == second["rate"]
        assert {row["steps"] for row in found["tried"]} == {STEPS}


def steps_of(path):
    """The steps at which a model of a record is judged."""
    if path.startswith("capstone"):
        return capstone.WATCHED
    return known_text.evaluation_steps(2 * STEPS if "/longer/" in path else STEPS)


@pytest.mark.parametrize("path", RUNS)
def test_a_run_is_judged_at_each_step_and_at_each_task(path):
    found, steps = PARTS[path], steps_of(path)
    assert found.get("steps", steps) == steps
    assert [run["seed"] for run in found["runs"]] == list(SEEDS)
    for run in found["runs"]:
        assert len(run["excess_loss"]) == len(steps)
        assert 0 < run.get("standard_error", 0.001) < 0.01
        accuracy = run.get("accuracy", dict.fromkeys(TASKS, 0.5))
        assert set(accuracy) == set(TASKS)
        for shares in accuracy.values():
            assert np.size(shares) in (1, len(steps))
            assert 0 <= np.min(shares) <= np.max(shares) <= 1


@pytest.mark.parametrize("path", RUNS)
def test_what_the_seeds_have_in_common_follows_from_the_runs(path):
    found = PARTS[path]
    last = [run["excess_loss"][-1] for run in found["runs"]]
    assert found["excess_loss"] == known_text.spread(last)
    if "change" in found:
        assert found["change"] == known_text.paired_change(found["runs"])
        assert found["flat"] == (-found["change"]["mean"] <= found["change"]["standard_error"])
    if "accuracy" in found and "accuracy" in found["runs"][0]:
        for task in TASKS:
            shares = [run["accuracy"][task][-1] for run in found["runs"]]
            assert found["accuracy"][task] == known_text.spread(shares)


@pytest.mark.parametrize("path", [path for path in RUNS if "bands" in PARTS[path]])
def test_places_beyond_those_that_are_learned_are_not_judged(path):
    found = PARTS[path]
    common = known_text.summary(found["runs"])
    assert {name: found[name] for name in common} == common
    reached = {band for band, values in found["bands"].items() if values}
    learned = ARM_AT[path].positions == "learned"
    assert reached == ({"0 to 63"} if learned else set(found["bands"]))


FEW = {"STEPS": 32, "TRIED_FOR": 16, "WARM_UP": 4, "TESTED": 40, "SEEDS": range(2), "KEPT": (4,)}
FEW |= {"RATES": (2e-3, 8e-3), "BLOCK_RATES": (1e-3, 4e-3), "WATCHED": [16, 32], "PAIRS": 3}
CHOSEN = {  # what of a script is trained in miniature
    "capstone": {},
    "known_text": {"ARMS": ARMS[:2]},
    "look_less": {"MODELS": [look_less.SLOW, "learned sink"]},
    "scored_heads": {"MODELS": ["two layers", "norm and MLP"]},
}


@pytest.fixture
def miniature(request, tmp_path, monkeypatch, drawn_anew):
    """A script with little to train, in a folder of its own, which writes nothing."""
    script = importlib.import_module(f"experiments.{request.param}")
    own = {name: few(script, name, value) for name, value in CHOSEN[request.param].items()}
    small = FEW | own | {"DONE": tmp_path, "LONGER": ["two layers"], "PLATEAUS": {"two layers": 16}}
    small |= dict.fromkeys(("write", "write_checkpoint"), lambda *_: None)
    for module in (known_text, script):
        for name in small.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, small[name])
    return script


def few(script, name, value):
    """Those of a script's models that have these names; other values as they are."""
    models = getattr(script, name)
    return {n: models[n] for n in value if n in models} if isinstance(models, dict) else value


@pytest.mark.parametrize("miniature", ["capstone", *long(*CHOSEN)[1:]], indirect=True)
def test_a_run_in_miniature_has_the_parts_of_the_record_and_goes_on(miniature, monkeypatch):
    found, again, name = {}, {}, miniature.__name__.rpartition(".")[2]
    miniature.main(found)
    for path, part in parts(json.loads(json.dumps(found)), name):
        assert set(part) <= set(PARTS[path]), path
    left_out = {"latent"} if name == "known_text" else set()  # a group whose arms are not trained
    assert {*records.HEAD_KEYS, *found} == set(PARTS[name]) - left_out
    if name != "capstone":  # all that is trained is kept
        monkeypatch.setattr(known_text, "train", None)
        miniature.main(again)
        assert json.dumps(again) == json.dumps(found)

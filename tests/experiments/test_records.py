"""The numbers of a record agree with one another, with its script, and with what is done again.

A measured number that no other ties, such as a time that stands in no ratio, is held by its sha256
alone: `experiments.measuring` renews it only where the script writes the record.
"""

import json
import re
import subprocess
import sys
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch

from book._ext.content.models import faults, sources_of
from experiments import (
    decode,
    gradients,
    measuring,
    numpy_attention,
    packed_projection,
    tiny_model,
    torch_attention,
)
from experiments.measuring import MIB, SIZES, Size
from tests.experiments.test_measuring import RECORDS
from tests.rounding import rounding, unlike
from tools.chapters import ROOT
from tutorial_lib.counting import layer_kinds
from tutorial_lib.records import facts

REFERENCES = {  # ratio -> the row that it is over
    "times_sdpa": numpy_attention.FUSED,
    "times_bare": torch_attention.BARE,
    "times_ours": torch_attention.OURS,
    "times_one": packed_projection.ONE,
}
NAMED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RECORDS}
NUMPY, TORCH = NAMED["numpy_attention"], NAMED["torch_attention"]
TURNED = {"low": "high", "median": "median", "high": "low"}  # of one over a number
near = partial(pytest.approx, rel=1e-3)  # four digits


def parts(value, path=""):
    """Yield a path and a dict for each dict within a record."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict):
        yield path, value
    for key, child in children:
        if isinstance(child, dict | list):
            yield from parts(child, f"{path}/{key}")


PARTS = {f"{name}{path}": part for name, found in NAMED.items() for path, part in parts(found)}
TABLES = {  # with times and ratios
    path: {name: row for name, row in part.items() if "left_out" not in row}
    for path, part in PARTS.items()
    if any(isinstance(row, dict) and set(REFERENCES) & set(row) for row in part.values())
}


def test_a_median_lies_within_its_quartiles_and_has_four_digits():
    summaries = {p: found for p, found in PARTS.items() if {"low", "high"} & set(found)}
    assert {tuple(found) for found in summaries.values()} == {("median", "low", "high")}
    for path, found in summaries.items():
        least = -1 if path.endswith("start_ms") else 0  # a line through times may start below 0
        assert least < found["low"] <= found["median"] <= found["high"], path
        assert all(value == measuring.short(value) for value in found.values()), path


def require_quotient(ratio, time, reference):
    """Require a summary of ratios that each round can have given.

    Three quarters of the times are at least their low quartile, three quarters of the references
    at most their high one; in at least half of the rounds both hold, so half of the ratios, and
    with them the median, are at least low / high. The other bounds follow in the same way.
    """
    low, median, high = (ratio[name] for name in ("low", "median", "high"))
    slack = 1.001  # for four digits
    assert time["low"] / reference["high"] <= median * slack
    assert median <= time["high"] / reference["low"] * slack
    assert low <= time["median"] / reference["low"] * slack
    assert low <= time["high"] / reference["median"] * slack
    assert high * slack >= time["median"] / reference["high"]
    assert high * slack >= time["low"] / reference["median"]


@pytest.mark.parametrize("path", TABLES)
def test_a_ratio_is_the_quotient_of_its_times(path):
    rows = TABLES[path]
    for row in rows.values():
        for name in set(row) & set(REFERENCES):
            reference = rows[REFERENCES[name]]
            assert set(reference[name].values()) == {1.0}
            require_quotient(row[name], row["ms"], reference["ms"])


@pytest.mark.parametrize("name", SIZES)
def test_times_the_limit_are_over_the_time_of_as_many_flop_at_the_rate_of_a_product(name):
    found = NUMPY["sizes"][name]
    rates = found["gemm_gflop_per_s"]
    limit_ms = {here: found["flop"] / rates[there] / 1e6 for here, there in TURNED.items()}
    for row in found["forms"].values():
        require_quotient(row["times_limit"], row["ms"], limit_ms)


@pytest.mark.parametrize("library", ["NumPy", "torch"])
def test_a_step_is_held_against_its_bytes_at_the_rate_of_reading(library):
    rates = NAMED["decode"]["read_gb_per_s"]
    for row in NAMED["decode"]["forms"][library].values():
        for T, found in row["lengths"].items():
            needed = row["weight_bytes"] + int(T) * row["bytes_per_token"]
            limit_ms = {here: needed / rates[there] / 1e6 for here, there in TURNED.items()}
            require_quotient(found["times_limit"], found["ms"], limit_ms)
        limit = {here: row["bytes_per_token"] / rates[there] for here, there in TURNED.items()}
        require_quotient(row["slope_times_limit"], row["us_per_thousand"], limit)
        kept_mib = decode.FULL.lengths[-1] * row["bytes_per_token"] / MIB
        assert row["cache_mib"] == near(kept_mib)


def flop_by_hand(size):
    """Four projections, and half of the square of scores and of mixing; a multiply-add is 2."""
    projections = size.B * size.T * 4 * 2 * size.d * size.d
    return projections + size.B * size.T * size.T * 2 * 2 * size.d // 2


def test_sizes_and_settings_are_those_of_the_script():
    for name in ("numpy_attention", "torch_attention"):
        found = NAMED[name]["sizes"]
        assert {n: Size(*(size[k] for k in "BTdH")) for n, size in found.items()} == SIZES
    for name, size in SIZES.items():
        flop = flop_by_hand(size)
        assert NUMPY["sizes"][name]["flop"] == TORCH["sizes"][name]["flop"] == size.flop == flop
    assert NAMED["gradients"]["size"] == gradients.SIZE
    assert list(NAMED["gradients"]["errors_of_central_differences_of_W_Q"]) == [
        f"1e-{n:02}" for n in range(1, 13)
    ]


def test_memory_is_that_of_the_arrays_that_a_form_holds():
    for name in ("book", "gpt2"):
        B, T, d, H = SIZES[name]
        found = {n: row["peak_mib"] for n, row in NUMPY["sizes"][name]["forms"].items()}
        table, rows, matrices = (4 * n / MIB for n in (B * H * T * T, B * T * d, 4 * d * d))
        assert found["broadcasting"] == near(3 * table + 5 * rows)
        assert found["in place"] == near(table + 5 * rows + matrices)


def of_the_smallest_size():
    """Return the calls of the forms at the smallest size, and the exact result."""
    X, params = measuring.inputs(SIZES["book"])
    single = X.astype(np.float32), measuring.in_float32(params)
    forms = NUMPY["sizes"]["book"]["forms"]
    exact = numpy_attention.reference_output("book", X, params)
    return numpy_attention.calls(*single, forms), exact


def peaks():
    """Print the peak memory of each form, in MiB, as JSON."""
    with torch.inference_mode():
        calls, in_numpy = of_the_smallest_size()[0], numpy_attention.NUMPY
        weigh = {
            n: measuring.peak_mib if n in in_numpy else measuring.torch_peak_mib for n in calls
        }
        print(json.dumps({name: weigh[name](call) for name, call in calls.items()}))


@pytest.mark.long
def test_memory_of_the_smallest_size_is_found_again():
    # In a process of its own: what other tests have imported and cached is weighed too.
    command = "from tests.experiments.test_records import peaks; peaks()"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, check=True
    )
    found = {n: row["peak_mib"] for n, row in NUMPY["sizes"]["book"]["forms"].items()}
    assert found == pytest.approx(json.loads(done.stdout), rel=0.01)


def test_errors_of_the_smallest_size_are_those_of_single_precision_here_and_in_the_record():
    stored = NUMPY["sizes"]["book"]["forms"]
    with torch.inference_mode():
        again = numpy_attention.errors(*of_the_smallest_size())
    assert list(again) == list(stored)
    for name, error in again.items():
        for found, where in ((error, "here"), (stored[name]["error"], "in the record")):
            said = f"{name} is off by {found} {where}; expected at most {measuring.MOST_ERROR}"
            assert found <= measuring.MOST_ERROR, said


def test_gradients_by_hand_are_those_of_torch_but_for_rounding():
    T, d_model = gradients.SIZE["T"], gradients.SIZE["d_model"]
    most = rounding(d_model, T, d_model, gradients.SIZE["B"] * T)  # project, mix, project out, add
    stored = NAMED["gradients"]["differences_from_torch_in_float64"]
    for where, found in (("in the record", stored), ("here", gradients.compare_with_torch())):
        assert list(found) == list(gradients.NAMES)
        for name, error in found.items():
            said = f"the gradient of {name} {where} is off by {error} of its largest entry"
            assert error <= most, f"{said}; rounding explains {most:.1g}"


def test_errors_of_central_differences_are_those_of_the_step_and_of_rounding():
    stored = NAMED["gradients"]["errors_of_central_differences_of_W_Q"]
    again = gradients.compare_with_differences()
    assert list(again) == list(stored)
    for name, error in again.items():
        step = float(name)
        if step >= 1e-3:  # here the formula errs a hundred times as much as rounding may
            said = f"with steps of {name} the error is {error}, and the record has {stored[name]}"
            assert error == pytest.approx(stored[name], rel=0.05), said  # it has two digits
        most = 1.05 * again["1e-02"] * (step / 1e-2) ** 2 + rounding(60, size=60) / step
        for found, where in ((error, "here"), (stored[name], "in the record")):
            said = f"with steps of {name} the error {where} is {found}"
            assert found <= most, f"{said}; the formula and sums of 60 products explain {most:.1g}"


def test_the_model_that_copies_by_places_is_the_same_on_every_machine():
    stored = NAMED["tiny_model"]["by_positions"]  # its votes are whole numbers
    faults = unlike(tiny_model.position_record(), stored, places=4, path="by_positions")
    assert not faults, "\n".join(faults)


def test_a_trained_model_is_one_arm_of_the_script():
    found = NAMED["tiny_model"]
    for arm, row in zip(tiny_model.ARMS, found["variants"], strict=True):
        shape = ("group", "name", "layers", "heads", "d_k", "d_v", "tried_for")
        assert {name: row[name] for name in shape} == {n: getattr(arm, n) for n in shape}
        drawn = tiny_model.init(arm, np.random.default_rng(0))
        assert row["parameters"] == sum(array.size for array in drawn.arrays)
        assert row["steps"] == arm.watched
        assert [one["rate"] for one in row["tried"]] == list(tiny_model.RATES)
        assert row["rate"] == max(row["tried"], key=lambda one: one["copy_accuracy"])["rate"]
        assert [run["seed"] for run in row["runs"]] == list(tiny_model.SEEDS)
    compared = [row["parameters"] for row in found["variants"] if row["group"] == "layers"]
    assert compared == [38912] * 3
    for one, other in combinations(range(len(tiny_model.ARMS)), 2):
        if tiny_model.ARMS[one][2:] == tiny_model.ARMS[other][2:]:
            assert found["variants"][one]["runs"] == found["variants"][other]["runs"]
            assert found["variants"][one]["tried"] == found["variants"][other]["tried"]


MODELS = facts("models")["models"] + facts("models")["further"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["name"])
def test_the_facts_of_a_model_agree_with_one_another(model):
    assert faults(model) == []


SIZED = ["layers", "d_model", "heads", "d_k", "d_v", "kv_heads", "pattern", "positions", "context"]
SIZED += ["parameters_sum"]
POOLS = {"pool": 4, "keys": 512, "heads": 64, "d_k": 128}
WRONG = [
    ("GPT-2 small", {"d_k": 96}, "heads_times_d_k is not what its heads give"),
    ("Llama 2 70B", {"kv_heads": 7}, "kv_heads do not share its heads evenly"),
    ("Llama 2 70B", {"kvheads": 8}, "unknown kvheads"),
    ("Llama 2 70B", {"d_model": 8192.0}, "d_model is no whole number"),
    ("Llama 2 7B", {"parameters": 7_000_000_000}, "parameters are not their sum"),
    ("Llama 2 7B", {"source": "https://huggingface.co/meta-llama"}, "names no commit"),
    ("GPT-2 small", {"read": {"https://github.com/a/b/blob/main/c.py": []}}, "names no commit"),
    ("GPT-2 XL", {"first": ["full"]}, "first has no source"),
    ("GPT-2 XL", {"other": {"mix": "by half"}}, "other.mix has no source"),
    ("Mistral 7B", {"read": {"source": [*SIZED, "window", "window"]}}, "window has two sources"),
    (
        "Mistral 7B",
        {"read": {"source": [*SIZED, "window", "base"]}},
        "base has a source and no value",
    ),
    ("Mistral 7B", {"read": {"source": SIZED}}, "window has no source"),
    ("Mistral 7B", {"read": None}, "read is None; expected its parts by name"),
    ("DeepSeek-V4-Flash", {"chosen": POOLS | {"gathers": 6}}, "gather no whole number of strides"),
    ("DeepSeek-V4-Flash", {"chosen": POOLS}, "gather no whole number of strides"),
    ("GPT-2 small", {"positions": {"kind": "learnt"}}, "unknown positions learnt"),
    ("Llama 3 8B", {"positions": {"kind": "rope", "rotated": 256}}, "more is rotated than a key"),
    ("Llama 3 8B", {"positions": {"kind": "rope", "theta": 500_000}}, "unknown positions.theta"),
    ("DeepSeek-V3", {"latent": {"rank": 512, "rope_dim": 64, "v": 1}}, "unknown latent.v"),
    ("Mistral 7B", {"pattern": ["full"]}, "window without a layer"),
    ("Llama 3 8B", {"pattern": ["window"]}, "Llama 3 8B lacks window"),
    ("PaLM 540B", {"year": 2021}, "its year is not its paper's"),
    ("Gemma 3 27B", {"heads": 16}, "heads_times_d_k is not what its heads give"),
    ("BigBird base", {"source": "https://github.com/google-research/bigbird"}, "names no commit"),
    ("gpt-oss-120b", {"variants": {"Sinks": "one"}}, "unknown variants.Sinks"),
    ("Kimi K3", {"last": ["linear"]}, "'latent', 'linear']; expected a list of kinds of layers"),
    ("Kimi K3", {"layers": 1}, "Kimi K3 has 1 layers; expected more than the 1"),
    ("Gemma 4 E2B", {"shared": 35}, "and than the 35 without keys"),
    ("GLM-5", {"chosen": {"keys": 2048, "head": 32}}, "unknown chosen.head"),
    ("GLM-5", {"pattern": ["latent"]}, "chosen without a layer"),
    ("DeepSeek-V4-Flash", {"pattern": ["chosen pool"]}, "pool without a layer"),
    ("Mamba-2 2.7B", {"state": None}, "state is None; expected its parts by name"),
    ("Mamba-2 2.7B", {"layers": "64"}, "layers is no whole number"),
    ("Longformer base", {"sparse": {"window": 513, "wide": 1}}, "unknown sparse.wide"),
    ("Gemma 3 27B", {"positions": {"kind": "rope", "stretched": 8}}, "goes with its rule"),
    ("GPT-2 XL", {"other": {"out": "in groups"}}, "unknown other.out"),
]


@pytest.mark.parametrize(("name", "change", "told"), WRONG)
def test_a_wrong_entry_of_a_model_is_told_by_name(name, change, told):
    [model] = [model for model in MODELS if model["name"] == name]
    assert told in faults(model | change)[0]


def test_an_entry_that_lacks_a_width_or_a_source_is_told():
    model = {field: value for field, value in MODELS[0].items() if field not in ("d_v", "source")}
    assert faults(model) == ["no d_v", "no source"]


DEFAULTS = {  # entry -> the class of transformers whose defaults name its checkpoint
    "GPT-2 small": "GPT2LMHeadModel",
    "Llama 2 7B": "LlamaForCausalLM",
    "Mistral 7B": "MistralForCausalLM",
    "Falcon 7B": "FalconForCausalLM",
    "gpt-oss-120b": "GptOssForCausalLM",
    "DeepSeek-V3": "DeepseekV3ForCausalLM",
    "Qwen3-Next 80B": "Qwen3NextForCausalLM",
}
KINDS = {"sliding_attention": "window", "full_attention": "full", "linear_attention": "state"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_entry_has_the_sizes_of_the_class_that_loads_its_checkpoint(name):
    kind = getattr(pytest.importorskip("transformers"), DEFAULTS[name])
    [model] = [model for model in MODELS if model["name"] == name]
    config = kind.config_class()
    assert model["layers"] == config.num_hidden_layers
    assert model["d_model"] == config.hidden_size
    assert model["heads"] == config.num_attention_heads
    assert model.get("window") == getattr(config, "sliding_window", None)
    if found := getattr(config, "layer_types", None):
        assert [KINDS[each] for each in found] == layer_kinds(model)
    with torch.device("meta"):
        numbers = sum(parameter.numel() for parameter in kind(config).parameters())
    assert abs(numbers / model["parameters"] - 1) < 1e-6  # V3's gates: a buffer, or a parameter


CONFIGS = {  # entry -> the class of transformers that names its checkpoint, and what to compare
    "Longformer base": ("LongformerConfig", {"sparse.window": "attention_window"}),
    "BigBird base": ("BigBirdConfig", {"sparse.random": "num_random_blocks"}),
    "DeepSeek-V3.2": ("DeepseekV32Config", {"chosen.keys": "index_topk"}),
    "GLM-5": ("GlmMoeDsaConfig", {"chosen.heads": "index_n_heads"}),
    "Kimi Linear 48B": ("KimiLinearConfig", {"state.heads": "linear_num_heads"}),
    "DeepSeek-V4-Flash": ("DeepseekV4Config", {"window": "sliding_window"}),
}
SIZES_OF = {"layers": "num_hidden_layers", "d_model": "hidden_size", "heads": "num_attention_heads"}
LATENT = {"latent.rank": "kv_lora_rank", "latent.rope_dim": "qk_rope_head_dim", "d_v": "v_head_dim"}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_further_entry_has_the_sizes_of_the_class_that_names_its_checkpoint(name):
    kind, more = CONFIGS[name]
    config = getattr(pytest.importorskip("transformers"), kind)()
    [model] = [model for model in MODELS if model["name"] == name]
    for path, field in (SIZES_OF | more | (LATENT if "latent" in model else {})).items():
        found = model
        for part in path.split("."):
            found = found[part]
        even = path == "sparse.window"  # a class counts the neighbours, we the token too
        assert found == getattr(config, field) + even, path


def test_facts_read_in_one_file_name_one_commit_of_it():
    commits = {}
    quoted = [entry["source"] for entry in facts("quoted")["numbers"]]
    for address in [*quoted, *(address for model in MODELS for address in sources_of(model))]:
        if found := re.match(r"https://github\.com/(.+?)/blob/([0-9a-f]{40})/([^ #?]+)", address):
            commits.setdefault((found[1], found[3]), set()).add(found[2])
    assert {file: names for file, names in commits.items() if len(names) > 1} == {}

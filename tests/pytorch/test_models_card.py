"""The card of a configuration counts what transformers caches, or names the field it refuses."""

import json
import warnings

import pytest

from tests.probe.small_models import small_model
from tests.pytorch import config_defaults
from tutorial_lib import models_card
from tutorial_lib.counting import cache_entries, layer_kinds, model_cache_bytes
from tutorial_lib.models_card import (
    ConfigError,
    fill_in,
    read_config,
)
from tutorial_lib.records import DATA, facts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
MAPPING = transformers.models.auto.configuration_auto.CONFIG_MAPPING
LATENT = {"qk_nope_head_dim": 8, "head_dim": 4, "num_key_value_heads": 4}
STATE = {"num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2}
STATE |= {"linear_key_head_dim": 6, "linear_value_head_dim": 10}
SIZES = {  # model type -> its sizes, where those of the small models do not fit together
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "minicpm3", "youtu"), LATENT),
    "deepseek_v32": LATENT | {"index_n_heads": 2, "index_head_dim": 8, "index_topk": 4},
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"), STATE),
    "bamba": {"num_hidden_layers": 3, "attn_layer_indices": [1], "mamba_n_heads": 8}
    | {"mamba_d_head": 8, "mamba_d_state": 6, "mamba_n_groups": 2},
    "gemma3_text": {"num_hidden_layers": 6},
    "cohere2": {"num_hidden_layers": 4},
    "gptj": {"rotary_dim": 4},
    "codegen": {"rotary_dim": 4},
}
SAMPLE = (
    "gpt2",
    "falcon",
    "mistral",
    "gemma3_text",
    "gpt_oss",
    "deepseek_v3",
    "qwen3_next",
    "bamba",
)
DECODERS = sorted(
    set(transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - set(SAMPLE)
)
KEEPS_NONE = {"openai-gpt"}  # transformers computes all keys of it again
ENOUGH = 80  # model types that are read and counted, at the pinned version


def cached_bytes(model, tokens):
    """Return the bytes of all tensors of numbers in the cache of a model after so many tokens."""
    with torch.no_grad():
        cache = model(torch.arange(1, tokens + 1)[None], use_cache=True).past_key_values
    found = [value for layer in cache.layers for value in vars(layer).values()]
    found += [v for value in found if isinstance(value, dict) for v in value.values()]
    return sum(x.nbytes for x in found if torch.is_tensor(x) and x.is_floating_point())


def transformers_cache_bytes(entry, tokens, *, itemsize):
    """Return the bytes of `model_cache_bytes`, but for three habits of transformers 5.23.

    Of a window it keeps one row less, since the newest is computed with the query; of a convolution
    one column more; and states are in 32 bits.
    """
    kept = {**entry, "window": entry.get("window", 2) - 1}
    count = layer_kinds(entry).count("state")
    if not count:
        return model_cache_bytes(kept, tokens, itemsize=itemsize)
    state = entry["state"]
    kept["state"] = {**state, "convolution": state["convolution"] + 1}
    wider = (4 - itemsize) * count * state["heads"] * state["d_k"] * state["d_v"]
    return model_cache_bytes(kept, tokens, itemsize=itemsize) + wider


def require_equal_bytes(model_type):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small_model(model_type, **SIZES.get(model_type, {}))
    entry = read_config(model.config.to_dict())
    for itemsize, precision in {4: torch.float32, 2: torch.bfloat16}.items():
        for tokens in (3, 12):  # less than a window of 4, and more
            held = cached_bytes(model.to(precision), tokens)
            assert transformers_cache_bytes(entry, tokens, itemsize=itemsize) == held, tokens


@pytest.mark.parametrize("model_type", SAMPLE)
def test_the_bytes_are_those_of_the_cache_of_transformers(model_type):
    require_equal_bytes(model_type)


@pytest.mark.long
def test_they_are_so_for_every_decoder_that_is_read():
    read, refused, not_made = [], {}, {}
    for model_type in DECODERS:
        try:
            require_equal_bytes(model_type)
            read.append(model_type)
        except ConfigError as error:
            refused[model_type] = str(error)
        except AssertionError:
            assert model_type in KEEPS_NONE, model_type
        except Exception as error:  # a configuration that the small sizes do not fit
            not_made[model_type] = repr(error)
    print(len(read), "read;", json.dumps({"refused": refused, "not made": not_made}, indent=1))
    assert len(read) >= ENOUGH


LISTS = facts("models")
MADE = {m["name"]: m for m in LISTS["models"] + LISTS["further"] if "config" in m}


def test_the_numbers_of_a_card_are_those_that_its_configuration_gives():
    text = (DATA / "facts" / "models.json").read_text("utf-8")
    assert fill_in(text) == text
    for entry in MADE.values():
        made = {*entry["read"]["source"]} - {"parameters_sum"}
        bare = {field: value for field, value in entry.items() if field not in made}
        assert json.loads(fill_in(json.dumps(bare))) == entry


@pytest.mark.parametrize("name", MADE)
def test_a_class_that_loads_a_configuration_counts_as_its_card_with_its_layers_or_without(name):
    config = MADE[name]["config"]
    written = MAPPING[config["model_type"]](**config).to_dict()
    if name != "GLM-5":  # its class lists a kind of layer that is refused
        assert cache_entries(read_config(written)) == cache_entries(MADE[name])
    written.pop("layer_types", None)
    if name in ("gpt-oss-120b", "Qwen3-Next 80B", "GLM-5"):
        with pytest.raises(ConfigError, match=r"layer_types|indexer_types"):
            read_config(written)
    else:
        assert cache_entries(read_config(written)) == cache_entries(MADE[name])


def test_what_a_file_leaves_out_is_what_transformers_fills_in():
    assert config_defaults.FILE.read_text("utf-8") == config_defaults.written()
    mistral = {"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32}
    filled = read_config(mistral)
    assert filled["window"] == MAPPING["mistral"]().sliding_window
    assert filled["kv_heads"] == MAPPING["mistral"]().num_key_value_heads
    assert filled["assumed"]["num_key_value_heads"] == filled["kv_heads"]
    assert "window" not in read_config(mistral | {"sliding_window": None})


LLAMA = {"model_type": "llama", "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kv_latent_groups": 3}, "kv_latent_groups=3"),
        ({"num_hidden_layers": None}, "has no num_hidden_layers"),
        ({"num_attention_heads": 2.5}, "has 2.5 as num_attention_heads"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder=True"),
        ({"layer_types": ["full_attention", "conv"]}, "conv"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "linear_num_value_heads"),
        ({"sliding_window": 4}, "which layers have it"),
        ({"layer_types": ["full_attention"]}, "layer_types for 1"),
        ({"num_key_value_heads": 2}, "3 heads and 2 KV heads"),
        ({"num_attention_heads": 3, "n_head": 4}, "two names of one thing"),
        ({"architectures": ["BertForMaskedLM"]}, "published as BertForMaskedLM"),
        ({"kv_lora_rank": 8, "v_head_dim": 4}, "qk_nope_head_dim=None"),
        ({"num_key_value_heads": "3"}, "kv_heads"),
        ({"per_layer_config": {"0": {"head_dim": 5}}}, "per_layer_config"),
        ({"model_type": "mimo_v2_flash"}, "twice as many KV heads"),
        ({"model_type": "vit"}, "No test has counted vit, and its architectures are"),
        ({"model_type": "clip_text_model", "architectures": ["CLIPModel"]}, "'CLIPModel'"),
        ({"model_type": "olmo_hybrid"}, "which layers have it"),
    ],
)
def test_what_is_not_understood_is_named(fields, named):
    with pytest.raises(ConfigError, match=named):
        read_config(LLAMA | fields)


@pytest.mark.parametrize("model_type", ["llama", "deepseek_v3"])
def test_parameters_are_those_of_the_projections(model_type):
    model = small_model(model_type, **SIZES.get(model_type, {}))
    weights = {name: p.numel() for name, p in model.named_parameters() if name.endswith("weight")}
    held = sum(size for name, size in weights.items() if "attn" in name and "proj" in name)
    assert models_card.count_attention_parameters(read_config(model.config.to_dict())) == held


def test_the_command_prints_cards_side_by_side_and_refusals_in_a_line(tmp_path, capsys):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    files[0].write_text(json.dumps(LLAMA), "utf-8")
    files[1].write_text(json.dumps({"text_config": LLAMA | {"num_key_value_heads": 1}}), "utf-8")
    models_card.main([*map(str, files), "--tokens", "32768"])
    printed = capsys.readouterr().out
    assert "2 × full attention, layers 0, 1\n    ■ · · · · · · ·" in printed
    numbers = ["32,768", "6,291,456", "3,145,728", "2,097,152", "1,048,576"]  # 2 · 3 · 16 · 2 each
    assert printed.splitlines()[-1].split() == numbers
    files[0].write_text(json.dumps(LLAMA | {"attn_pools": 2}), "utf-8")
    with pytest.raises(SystemExit):
        models_card.main([str(files[0])])
    assert "attn_pools=2" in capsys.readouterr().err

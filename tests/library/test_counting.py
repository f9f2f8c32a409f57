"""What attention costs: against torch's own counter, and array by array."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.library.test_errors import refuse
from tutorial_lib.counting import (
    attention_bytes,
    attention_flop,
    cache_bytes,
    cache_entries,
    layer_kind_counts,
    layer_kinds,
    model_cache_bytes,
)
from tutorial_lib.records import facts
from tutorial_lib.variants.cache import KVCache


@pytest.fixture
def torch():
    """PyTorch, whose tensors are counted as arrays are."""
    return pytest.importorskip("torch")


def qkv(*, constructor=np.zeros, batch=(2, 3), **options):
    """Q, K and V with T=5, S=6, d_k=4, d_v=7."""
    return [constructor((*batch, *shape), **options) for shape in ((5, 4), (6, 4), (6, 7))]


def test_flop_are_those_that_torch_counts(torch):
    from torch.utils.flop_counter import FlopCounterMode

    Q, K, V = qkv(constructor=torch.empty, dtype=torch.float16, device="meta")
    with FlopCounterMode(display=False) as counter:
        (Q @ K.transpose(-2, -1)) @ V
    assert attention_flop(Q, K, V) == counter.get_total_flops() == 2 * 2 * 3 * 5 * 6 * (4 + 7)
    assert attention_flop(*qkv()) == counter.get_total_flops()


BYTE_COUNTS = [(True, 20 + 24 + 42 + 35), (False, 20 + 24 + 42 + 35 + 4 * 30)]


@pytest.mark.parametrize(("fused", "n_entries"), BYTE_COUNTS)
def test_bytes_are_counted_array_by_array(fused, n_entries):
    assert attention_bytes(*qkv(batch=(), dtype=np.float16), fused=fused) == 2 * n_entries
    assert attention_bytes(*qkv(dtype=np.float32), fused=fused) == 4 * 6 * n_entries
    assert attention_bytes(*qkv(), fused=fused) == 8 * 6 * n_entries


@pytest.mark.parametrize(("fused", "n_entries"), BYTE_COUNTS)
def test_bytes_of_tensors_are_those_of_arrays(torch, fused, n_entries):
    for dtype, entry_bytes in ((torch.bfloat16, 2), (torch.float64, 8)):
        tensors = qkv(constructor=torch.empty, dtype=dtype, device="meta")
        assert attention_bytes(*tensors, fused=fused) == entry_bytes * 6 * n_entries


def test_intensity_step_by_step_stays_below_a_bound_and_fused_grows_with_the_length():
    for T, d in ((256, 64), (4096, 64), (4096, 128)):
        arrays = np.empty((3, T, d), dtype=np.float16)
        n_flop = attention_flop(*arrays)
        assert n_flop / attention_bytes(*arrays, fused=True) == T / 2
        unfused_intensity = n_flop / attention_bytes(*arrays, fused=False)
        assert unfused_intensity == pytest.approx(T * d / (2 * (T + d)))
        assert unfused_intensity < d / 2


@pytest.mark.parametrize("count_function", [attention_flop, partial(attention_bytes, fused=True)])
def test_what_is_no_attention_is_refused(count_function):
    Q, K, V = qkv()
    sentence = "TypeError: K is a list; expected a NumPy array or a tensor … torch.empty("
    refuse(sentence, lambda: count_function(Q, K.tolist(), V))
    shape_only = SimpleNamespace(shape=K.shape)
    refuse("TypeError: K is a SimpleNamespace; expected", lambda: count_function(Q, shape_only, V))
    for arrays in ((Q, V, V), (Q, K, V[..., 1:, :]), (Q[0, 0, 0], K, V), (Q, K, V[0, 0, 0])):
        sentence = "ShapeError: Q, K and V have shapes … Make the widths of queries and keys agree"
        refuse(sentence, lambda arrays=arrays: count_function(*arrays))


def test_bytes_of_a_cache_are_those_that_a_cache_grows_by(params):
    caches = [KVCache.empty(params, capacity) for capacity in (5, 6)]
    grown = [sum(array.nbytes for array in cache.buffers) for cache in caches]
    assert grown[1] - grown[0] == cache_bytes(n_layers=1, n_kv_heads=3, d_k=4, d_v=7, itemsize=8)
    for itemsize in (0.5, np.int64(2), np.float32(2), np.dtype(np.float16).itemsize):
        n_bytes = cache_bytes(n_layers=6, n_kv_heads=3, d_k=4, d_v=7, itemsize=itemsize)
        assert n_bytes == 6 * 3 * 11 * itemsize


HEADS = {"layers": 5, "kv_heads": 3, "d_k": 4, "d_v": 7}
ENTRIES = {  # pattern of the layers -> (growing, windowed, fixed), counted token by token
    ("full",): (5 * 3 * 11, 0, 0),
    ("window",): (0, 5 * 3 * 11, 0),
    ("window", "full"): (2 * 3 * 11, 3 * 3 * 11, 0),
    ("latent",): (5 * (13 + 2), 0, 0),
    ("state", "state", "latent"): (13 + 2, 0, 4 * (6 * 8 * 9 + 17 * 3)),
    ("both",): (0, 0, 0),
    ("sparse",): (0, 0, 0),
    ("chosen",): (5 * (13 + 2 + 12), 0, 0),
    ("pool", "full"): (3 * (3 * 11 // 11) + 2 * 3 * 11, 3 * 3 * 11, 0),
    ("chosen pool",): (5 * (3 * 11 + 12) // 3, 5 * 3 * 11, 0),
}
FIELDS = {
    "window": 6,
    "pool": 11,
    "chosen": {"keys": 5, "heads": 2, "d_k": 12, "pool": 3},
    "sparse": {"window": 5, "globals": 1, "random": 0, "block": 1},
    "latent": {"rank": 13, "rope_dim": 2},
    "state": {"heads": 6, "d_k": 8, "d_v": 9, "channels": 17, "convolution": 4},
}


@pytest.mark.parametrize("pattern", ENTRIES, ids="-".join)
def test_each_kind_of_layer_caches_its_entries(pattern):
    model = HEADS | FIELDS | {"pattern": list(pattern)}
    growing_entries, windowed_entries, n_fixed = ENTRIES[pattern]
    assert cache_entries(model) == (growing_entries, windowed_entries, n_fixed)
    layer_counts = layer_kind_counts(model)
    assert layer_counts == {kind: [*pattern * 5][:5].count(kind) for kind in pattern}
    for tokens in (0, 1, 6, 7, 100):
        entries = n_fixed + sum(growing_entries + windowed_entries * (t < 6) for t in range(tokens))
        assert model_cache_bytes(model, tokens) == 2 * entries
        assert model_cache_bytes(model, tokens, itemsize=0.5) == entries / 2
    bytes_of_5, bytes_of_6 = (model_cache_bytes(model, tokens) for tokens in (5, 6))
    assert model_cache_bytes(model, 5.25) == pytest.approx(0.75 * bytes_of_5 + 0.25 * bytes_of_6)


PUBLISHED = {  # bytes of each token in 16 bits: without end, in the window; and once
    "GPT-2 small": (36_864, 0, 0),
    "PaLM 540B": (120_832, 0, 0),
    "Llama 2 7B": (524_288, 0, 0),
    "Llama 2 70B": (327_680, 0, 0),
    "Mistral 7B": (0, 131_072, 0),
    "Falcon 7B": (8_192, 0, 0),
    "Llama 3 8B": (131_072, 0, 0),
    "Llama 3.1 405B": (516_096, 0, 0),
    "DeepSeek-V3": (70_272, 0, 0),
    "gpt-oss-120b": (36_864, 36_864, 0),
    "Qwen3-Next 80B": (24_576, 0, 2 * 36 * (32 * 128 * 128 + 3 * 8192)),
}


def test_published_models_keep_the_bytes_that_their_configurations_give():
    models = {model["name"]: model for model in facts("models")["models"]}
    for name, n_bytes in PUBLISHED.items():
        assert tuple(2 * n for n in cache_entries(models[name])) == n_bytes, name
    llama_model = models["Llama 2 7B"]
    crossing_length = 2 * llama_model["parameters"] / 524_288
    assert round(crossing_length, -2) == 25_700
    assert model_cache_bytes(llama_model, int(crossing_length) + 1) > 2 * llama_model["parameters"]


def test_a_model_may_begin_and_end_otherwise_and_share_keys_between_layers():
    model = HEADS | FIELDS | {"pattern": ["window", "full"], "layers": 8}
    model |= {"first": ["latent"], "last": ["full", "state"]}
    assert layer_kinds(model) == ["latent", *["window", "full"] * 2, "window", "full", "state"]
    assert cache_entries(model | {"shared": 3}) == (15 + 2 * 33, 2 * 33, 0)


@pytest.mark.parametrize(
    ("model_fields", "entries"),
    [
        ({"full": {"kv_heads": 2, "d_k": 5, "d_v": 9}}, (28, 33, 0)),  # heads of their own
        ({"keys_are_values": True}, (3 * 4, 3 * 4, 0)),
        ({"pattern": ["latent"], "latent": {"rank": 13, "rope_dim": 0}}, (2 * 13, 0, 0)),
    ],
)
def test_a_model_may_differ_in_a_field(model_fields, entries):
    model = HEADS | FIELDS | {"pattern": ["window", "full"], "layers": 2}
    assert cache_entries(model | model_fields) == entries


REFUSED = {
    "ValueError: the model has the pattern None; expected": {"pattern": None},
    "ValueError: … expected a list of kinds of layers out of full, window, latent": {"pattern": []},
    "ValueError: the model has the pattern ['full', 'ring']": {"pattern": ["full", "ring"]},
    "ValueError: the model lacks window; its pattern": {"pattern": ["window"]},
    "ValueError: M lacks state; its pattern … Add": {"pattern": ["full", "state"], "name": "M"},
    "ValueError: … pattern ['full', 'ring']": {"last": ["ring"]},
    "ValueError: the model has 5 layers; expected more than the 5": {"first": ["full"] * 5},
    "ValueError: … and than the 5 without keys": {"shared": 5},
    "ValueError: d_k of the model=0; expected at least 1": {"full": {"d_k": 0}},
    "TypeError: kv_heads of the model is '3', a str": {"kv_heads": "3"},
    "TypeError: layers of the model is 2.5": {"layers": 2.5},
    "ValueError: d_v of M=0; expected at least 1": {"d_v": 0, "name": "M"},
    "ValueError: rope_dim of the model=-2": FIELDS
    | {"pattern": ["latent"], "latent": {"rank": 13, "rope_dim": -2}},
    "TypeError: heads of the model is None": FIELDS
    | {"pattern": ["state"], "state": FIELDS["state"] | {"heads": None}},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_model_that_does_not_say_what_it_caches_is_refused(sentence):
    refuse(sentence, lambda: cache_entries(HEADS | {"pattern": ["full"]} | REFUSED[sentence]))


token_bytes = partial(cache_bytes, n_layers=6, n_kv_heads=3, d_k=4, d_v=7)
model_bytes = partial(model_cache_bytes, HEADS | {"pattern": ["full"]})


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("TypeError: itemsize is a bool; expected a number", partial(token_bytes, itemsize=True)),
        ("ValueError: itemsize=0; … positive … bytes. Give 2", partial(token_bytes, itemsize=0)),
        ("ValueError: itemsize=nan; expected", partial(token_bytes, itemsize=np.nan)),
        ("ValueError: itemsize=0; expected", partial(model_bytes, 5, itemsize=0)),
        ("ValueError: itemsize=inf; expected", partial(model_bytes, 5, itemsize=np.inf)),
        ("ValueError: tokens=-1; expected 0 or more. Give 0", partial(model_bytes, -1)),
        ("ValueError: tokens=nan; expected", partial(model_bytes, np.nan)),
        ("ValueError: tokens=inf; expected", partial(model_bytes, np.inf)),
    ],
)
def test_a_cache_that_cannot_be_is_not_counted(sentence, call):
    refuse(sentence, call)

"""The model cards: one for each entry, numbers from the data, masks as plain loops count them."""

import math
import re
from itertools import combinations

import numpy as np
import pytest

from book._ext.content import cards
from book._ext.content.cards import (
    CardError,
    cache_kb_per_token,
    checked,
    links,
    numbers,
    table,
    variant_list,
)
from book._ext.content.models import (
    STEPS,
    keys_of,
    masks_of,
    max_context_length,
    models_with_card,
    receptive_field_size,
    scaled_for_drawing,
    share,
    sources_of,
    steps,
    variants_of,
    writes,
)
from book._ext.content.variants import every_row
from tools.chapters import ROOT, pages
from tutorial_lib.counting import cache_entries, layer_kind_counts, model_cache_bytes
from tutorial_lib.records import facts
from tutorial_lib.variants.patterns import receptive_field, window_mask

CHAPTERS = [page for page in pages() if page.has_variants]
BY_NAME = {model["name"]: model for model in models_with_card()}
NAMED = pytest.mark.parametrize("model", BY_NAME.values(), ids=BY_NAME)
WRITERS = [model for model in models_with_card() if writes(model)]
WRITING = pytest.mark.parametrize("model", WRITERS, ids=[model["name"] for model in WRITERS])
T = 16


def pairs(model, kind):
    """The pairs of a drawn mask, counted one by one: seen as a key of its own, or in a pool."""
    window, pool = model.get("window", 0), model.get("pool", 0)
    seen = 0
    for query in range(T):
        for key in range(T):
            near = 0 <= query - key < window
            whole = (key // pool + 1) * pool <= query + 1 if pool else False
            seen += {
                "both": True,
                "full": key <= query,
                "latent": key <= query,
                "state": key <= query,
                "window": near,
                "pool": near or whole,
            }[kind]
    return seen


@NAMED
def test_a_drawn_mask_has_the_pairs_that_a_plain_loop_counts(model):
    shrunk = scaled_for_drawing(model)
    for kind in layer_kind_counts(model):
        scored, through = masks_of(shrunk, kind)
        found = int((scored | through).sum())
        if kind == "chosen":
            assert found == sum(min(t + 1, shrunk["chosen"]["keys"]) for t in range(T))
            assert not np.triu(scored, 1).any()
        elif kind == "sparse":
            assert found == sum(sparse_keys(shrunk["sparse"], t, T) for t in range(T))
        elif kind != "chosen pool":
            assert found == pairs(shrunk, kind)


def sparse_keys(sparse, query, T):
    """The blocks that a block of an encoder looks at: window, ends, and others at random."""
    ends = {*range(sparse["globals"] - sparse["globals"] // 2)}
    ends |= {T - 1 - i for i in range(sparse["globals"] // 2)}
    if query in ends:
        return T
    half = sparse["window"] // 2
    near = {key for key in range(query - half, query + half + 1) if 0 <= key < T}
    return min(len(near | ends) + sparse["random"], T)


def test_chosen_pools_are_whole_and_as_many_as_are_chosen():
    model = scaled_for_drawing(BY_NAME["DeepSeek-V4-Flash"])
    near, pooled = masks_of(model, "chosen pool")
    size, count, width = (model["chosen"][part] for part in ("pool", "keys", "gathers"))
    assert (near == window_mask(T, T, model["window"])).all()
    for query, row in enumerate(pooled):
        ends = range(size, query + 2, size)  # of the pools that are full
        pools = [{*range(max(end - width, 0), end)} for end in ends]
        sets = combinations(pools, min(len(pools), count))
        assert {*np.flatnonzero(row)} in [set().union(*chosen) for chosen in sets]


def test_a_pool_of_v4_gathers_twice_its_stride():
    chosen = BY_NAME["DeepSeek-V4-Flash"]["chosen"]
    assert (chosen["gathers"], chosen["pool"]) == (8, 4)
    drawn = scaled_for_drawing(BY_NAME["DeepSeek-V4-Flash"])["chosen"]
    assert drawn["gathers"] * chosen["pool"] == chosen["gathers"] * drawn["pool"]
    told = "512 pools of 8 tokens at stride 4, by 64 heads of 128"
    assert variants_of(BY_NAME["DeepSeek-V4-Flash"])["Top-k attention"] == told
    name, small_one = cards.named(BY_NAME["DeepSeek-V4-Flash"], "chosen pool")
    assert name == "window of 128, top 512 pools of 8 at stride 4"
    assert small_one == ", drawn as 4, 2 pools of 4 at stride 2"


def test_shares_are_those_of_masks_of_the_same_size():
    length = 150
    for name, kind, sizes in [
        ("nanochat d24", "window", 33),
        ("Longformer base", "sparse", {"window": 21, "globals": 3, "random": 2, "block": 1}),
        ("DeepSeek-V3.2", "chosen", {"keys": 40}),
    ]:
        model = BY_NAME[name] | {kind: sizes}
        scored, _ = masks_of(model, kind, length)
        whole = length**2 if kind == "sparse" else length * (length + 1) / 2
        assert share(model, kind, length) == pytest.approx(scored.sum() / whole)
        assert (keys_of(model, kind, length) == scored.sum(axis=1)).all()
    big, v4 = BY_NAME["BigBird base"], BY_NAME["DeepSeek-V4-Flash"]
    blocks = [sparse_keys(big["sparse"], block, 64) for block in range(64)]
    assert share(big, "sparse", 4096) == sum(blocks) / 64**2
    for kind, scores in {
        "pool": lambda t: min(t, 128) + t // 128,
        "chosen pool": lambda t: min(t, 128) + min(t // 4, 512),
    }.items():
        assert keys_of(v4, kind, 5000).tolist() == [scores(t + 1) for t in range(5000)]


@pytest.mark.parametrize(("layers", "window"), [(1, 4), (2, 4), (3, 4), (5, 2), (6, 8)])
def test_the_furthest_token_is_the_one_that_reach_finds(layers, window):
    model = BY_NAME["Mistral 7B"] | {"window": window}
    tokens = receptive_field_size(model, ["window"] * layers)
    mask = window_mask(64, 64, window)
    assert tokens == receptive_field(mask, layers)[-1].sum()
    assert receptive_field_size(model, ["window", "full"]) is None


def test_every_entry_has_a_card_or_does_not_say_what_its_layers_are():
    entries = facts("models")["models"] + facts("models")["further"]
    assert len({cards.slug(model) for model in entries}) == len(entries)
    without = {m["name"] for m in entries} - set(BY_NAME)
    assert without == {"Transformer base", "Transformer big", "T5-11B", "GPT-3 175B"}
    rows = re.findall(r'<a href="#(.*?)">(.*?)</a>', table(models_with_card()))
    assert rows == [(cards.slug(model), model["name"]) for model in models_with_card()]
    assert [model["year"] for model in models_with_card()] == sorted(
        m["year"] for m in models_with_card()
    )


@NAMED
def test_every_arrow_of_a_card_leads_to_where_it_is_built(model):
    lines = variant_list(model, links(CHAPTERS))
    more = len(model.get("other", ())) + ("scale" in model)
    assert len(lines) == max(1, len(variants_of(model)) + more)
    for name, line in zip(variants_of(model), lines, strict=False):
        page, _ = every_row(CHAPTERS)[name]
        assert line.startswith(f"- [{name}](../notebooks/{page.name}.ipynb#")
        assert set(STEPS[name]) <= set(steps(model))


@NAMED
def test_the_numbers_of_a_card_are_those_of_its_entry(model):
    told = numbers(model)
    for kind, count in layer_kind_counts(model).items():
        name, _ = cards.named(model, kind)
        assert f'<th scope="row">{name}</th><td>{count}</td>' in told
    rows = re.findall(r'<th scope="row">([\d,]+)</th><td>(.*?)</td>', told)
    assert len(rows) == (
        sum(n <= cards.max_learned_positions(model) for n in cards.TOLD) if writes(model) else 0
    )
    for tokens, kept in rows:
        assert kept == cards.size(model_cache_bytes(model, int(tokens.replace(",", ""))))
    for address in sources_of(model):
        if address.startswith("https"):
            assert told.count(f'<a href="{address.split(" ")[0]}">') == 1
    kept = model_cache_bytes(model, 1024) / 1024_000
    assert cache_kb_per_token(model, 1024) == (
        f"{kept:,.{int(kept < 100)}f}" if writes(model) else "–"
    )


def test_what_grows_and_what_does_not_stand_apart_where_a_model_keeps_both():
    growing, windowed, fixed = cache_entries(BY_NAME["Qwen3-Next 80B"])
    assert (windowed, fixed) == (0, 36 * (32 * 128 * 128 + 3 * 8192))
    told = numbers(BY_NAME["Qwen3-Next 80B"])
    parts = [cards.size(2 * growing * 8192), cards.size(2 * fixed)]
    assert f"<td>{parts[0]}</td><td>{parts[1]}</td>" in told
    assert "fixed" not in numbers(BY_NAME["Llama 3 8B"])
    assert "growing" not in numbers(BY_NAME["Mamba-2 2.7B"])


def test_a_state_says_what_its_tables_weigh_in_32_bits():
    words = cards.cache_words(BY_NAME["Kimi K3"])
    wider = 4 * 69 * 96 * 128 * 128 + 2 * 69 * 3 * 36_864
    assert f"{cards.size(wider)} with states of 32 bits" in words
    assert "last 3 inputs of a short convolution" in words
    assert "32 bits" not in cards.cache_words(BY_NAME["gpt-oss-120b"])


def test_a_step_that_no_chapter_builds_is_told_and_not_linked():
    *_, line = variant_list(BY_NAME["DeepSeek-V4-Flash"], links(CHAPTERS))
    assert line.startswith("- project out: in 8 groups of heads")
    assert "](" not in line
    assert [m["name"] for m in models_with_card() if "project out" in steps(m)] == [
        "DeepSeek-V4-Flash"
    ]


def test_positions_are_told_of_all_layers_and_change_embed_where_none_are_added():
    words = variants_of(BY_NAME["DeepSeek-V4-Flash"])["RoPE"]
    assert words.startswith("base 160,000, 64 of 512 rotated, stretched 16 times (YaRN), ")
    assert words.endswith("base 10,000 in the 2 layers with only a window")
    assert steps(BY_NAME["Llama 2 7B"]) == ["embed", "score"]


def test_a_scale_that_is_not_that_of_the_width_is_told_as_a_step_of_score():
    scales = {m["name"]: m["scale"] for m in models_with_card() if "scale" in m}
    for name in ("DeepSeek-V3", "DeepSeek-V3.2", "gpt-oss-120b"):  # YaRN's, of keys and queries
        model = BY_NAME[name]
        factor = (0.1 * math.log(model["positions"]["stretched"]) + 1) ** 2
        width = model["d_k"]
        assert scales.pop(name).startswith(f"{factor:.2f}/√{width} instead of 1/√{width}")
    model = BY_NAME["Gemma 3 27B"]
    assert scales.pop("Gemma 3 27B") == f"1/√168 instead of 1/√{model['d_k']}"
    for name in ("Gemma 4 E2B", "Gemma 4 31B"):
        model = BY_NAME[name]
        widths = f"1/√{model['d_k']} in windows and 1/√{model['full']['d_k']} in full layers"
        assert scales.pop(name) == f"1 instead of {widths}"
    assert not scales
    for model in models_with_card():
        line = f"- score: scaled by {model.get('scale')}"
        assert (line in variant_list(model, links(CHAPTERS))) == ("scale" in model)
    assert steps(BY_NAME["GPT-2 small"] | {"scale": "1"}) == ["score"]


@WRITING
def test_a_text_is_pale_where_it_is_longer_than_any_that_is_named(model):
    pale = re.findall(r'<td class="beyond">', cards._row(model))
    assert len(pale) == sum(
        tokens > (max_context_length(model) or math.inf) for tokens in cards.COMPARED
    )


def test_learned_places_end_a_row():
    assert cache_kb_per_token(BY_NAME["GPT-2 small"], 1024) == "36.9"
    assert cache_kb_per_token(BY_NAME["GPT-2 small"], 1025) == "–"
    assert "1,048,576" not in numbers(BY_NAME["GPT-2 small"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"d_k": 96}, "GPT-2 small of models.json: heads_times_d_k is not what its heads give."),
        ({"pattern": ["ring"]}, "GPT-2 small of models.json: GPT-2 small has the pattern"),
        ({"source": "openai"}, "GPT-2 small of models.json: openai names no commit."),
        ({"pages": 3}, "GPT-2 small of models.json: unknown pages."),
    ],
)
def test_an_entry_out_of_form_ends_the_build_by_name(monkeypatch, change, told):
    wrong = BY_NAME["GPT-2 small"] | change
    monkeypatch.setattr(cards, "models_with_card", lambda: [wrong])
    with pytest.raises(CardError, match=re.escape(told)):
        checked()


def test_a_variant_that_no_chapter_builds_is_told():
    ways = {name: "" for name in STEPS if name != "Sink"}
    told = "gpt-oss-120b of models.json has the variant 'Sink'; expected one of the rows"
    with pytest.raises(CardError, match=told):
        variant_list(BY_NAME["gpt-oss-120b"], ways)


def test_the_built_page_has_a_card_for_each_entry():
    page = ROOT / "_build" / "html" / "book" / "models.html"
    if not page.exists():
        pytest.skip("no site is built here")
    found = re.findall(r'<section id="([^"]+)">\s*<h3>', page.read_text(encoding="utf-8"))
    assert found == [cards.slug(model) for model in models_with_card()]

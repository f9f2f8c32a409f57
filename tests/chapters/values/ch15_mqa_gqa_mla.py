"""What chapter 15 says of times and of trained models, computed from their results files."""

from tests.chapters.named import printed_under
from tutorial_lib.records import record


def rank_2_changes_the_output_less_than_rank_4():
    """Truncated to rank 2, K and V change Y less than truncated to rank 4."""
    *_, rank_4, rank_2 = printed_under("15_mqa_gqa_mla", "largest change of Y, by rank")
    return rank_2 < rank_4


def in_numpy():
    """The forms of one decoding step that NumPy ran."""
    return record("decode")["forms"]["NumPy"]


def us_per_thousand(form):
    """Microseconds for a thousand tokens of the cache, in one form."""
    return in_numpy()[form]["us_per_thousand"]


def gqa_in_pages_saves_more_than_half_of_the_time():
    """In pages, the slowest run of GQA takes less than half of the time of the fastest of MHA."""
    return 2 * us_per_thousand("GQA, in pages")["high"] < us_per_thousand("MHA, in pages")["low"]


def flop_per_byte_at_the_ridge():
    """This core computes as many flop, rounded, in the time in which it reads one byte."""
    decode = record("decode")
    return round(decode["gemm_gflop_per_s"]["median"] / decode["read_gb_per_s"]["median"])


def mqa_and_mla_are_compute_bound():
    """MQA and MLA have more flop per byte than this core at its fastest, while it reads slowest."""
    decode = record("decode")
    ridge = decode["gemm_gflop_per_s"]["high"] / decode["read_gb_per_s"]["low"]
    forms = [in_numpy()["MQA"], in_numpy()["MLA"]]
    return all(form["flop_per_token"] / form["bytes_per_token"] > ridge for form in forms)


def mla_is_slower_than_mha_in_numpy():
    """In one array and in pages, the fastest run of MLA is slower than the slowest of MHA."""
    array = us_per_thousand("MLA")["low"] > us_per_thousand("MHA")["high"]
    pages = us_per_thousand("MLA, in pages")["low"] > us_per_thousand("MHA, in pages")["high"]
    return array and pages


def mla_is_faster_than_mha_in_pytorch():
    """In PyTorch the slowest run of MLA is faster than the fastest of MHA."""
    forms = record("decode")["forms"]["torch"]
    return forms["MLA"]["us_per_thousand"]["high"] < forms["MHA"]["us_per_thousand"]["low"]


def attractors_are_below_a_coin_toss_at_ranks_16_and_8():
    """With latents of 16 and of 8, fewer than half of the verbs after an attractor are right."""
    truncated = record("known_text")["truncated"]
    return all(truncated[rank]["accuracy"]["attractor"] < 0.5 for rank in ("16", "8"))


def _trained():
    known = record("known_text")
    return [*known["heads"].values(), *known["latent"].values()]


def the_latent_has_half_the_rate_by_two_seeds_and_all_steps():
    """Its rate is half of that of MHA, and its trials were two of all steps at each rate."""
    known = record("known_text")
    one, steps = known["latent"]["rank 32"], known["settings"]["steps"]
    long = all(row["steps"] == steps and len(row["seeds"]) == 2 for row in one["tried"])
    return long and 2 * one["rate"] == known["heads"]["4 heads, 4 KV heads"]["rate"]


def no_two_ranges_lie_apart():
    """Any two of the ranges of five seeds overlap, that of MHA at half its rate among them."""
    at_half = record("how_many_heads")["models"]["4 heads"]
    assert at_half["rate"] == record("known_text")["latent"]["rank 32"]["rate"]
    ranges = [model["excess_loss"] for model in (*_trained(), at_half)]
    return max(each["min"] for each in ranges) < min(each["max"] for each in ranges)


def millinats_above_the_entropy_with_one_and_four_kv_heads():
    """The median excess losses of four heads with one KV head and with four, in millinats."""
    heads = record("known_text")["heads"]
    names = ["4 heads, 1 KV head", "4 heads, 4 KV heads"]
    return [round(1000 * heads[name]["excess_loss"]["median"], 1) for name in names]


def each_median_was_more_than_twice_as_high_at_half_of_the_steps():
    """The second half of the steps lowered each median by more than what is left of it."""
    return all(-model["doubling_change"] > model["excess_loss"]["median"] for model in _trained())

"""What chapter 16 says of rotated queries and of trained models, computed."""

import math
from statistics import median

from tests.chapters.named import printed_under
from tutorial_lib.elements.exhibits.clock import element as clock
from tutorial_lib.records import record


def query_of_bark_a_quarter_turn_ahead():
    """A quarter turn makes (−b, a) of each pair (a, b) of the query."""
    a, b, c, d = printed_under("16_rope_alibi", "queries of head 0 / c")[2]
    return [-b, a, -d, c]


def first_arrow_of_that_a_quarter_turn_ahead():
    """A quarter turn makes (−b, a) of the first pair of the query of that."""
    a, b, *_ = printed_under("16_rope_alibi", "queries of head 0 / c")[1]
    return [-b, a]


def clock_product(pair, distance):
    """What a pair of the clock adds to the product at a distance."""
    return clock._ClockState(m=distance, n=0).products()[pair]


def pairs_of_halves_change_head_1_only():
    """Head 0 has the same weights with both kinds of pairs, and head 1 has not."""
    interleaved = printed_under("16_rope_alibi", "bark, interleaved")
    halves = printed_under("16_rope_alibi", "bark, rotate_half")
    return (interleaved == halves).all(axis=1).tolist() == [True, False]


def random_scores_are_as_large_from_afar():
    """Scores of random queries and keys are as large at the farthest distance as at none."""
    spread = printed_under("16_rope_alibi", "standard deviation of a score")
    return abs(spread[-1] - spread[0]) < 0.02


def _kinds():
    return record("known_text")["positions"]


def _rope_and_others(band):
    """Return the ranges of five seeds at these positions, of RoPE and of the other kinds."""
    ranges = {name: kind["bands"][band] for name, kind in _kinds().items() if kind["bands"][band]}
    rope = [each for name, each in ranges.items() if name.startswith("RoPE")]
    others = [each for name, each in ranges.items() if not name.startswith("RoPE")]
    return rope, others


def rope_ends_lowest_at_positions_of_training():
    """At positions 0 to 63 each seed of RoPE is below every seed of every other kind."""
    rope, others = _rope_and_others("0 to 63")
    return max(each["max"] for each in rope) < min(each["min"] for each in others)


def rope_is_worst_beyond_positions_of_training():
    """At positions 96 to 127 each seed of RoPE is above every seed of every other kind."""
    rope, others = _rope_and_others("96 to 127")
    return min(each["min"] for each in rope) > max(each["max"] for each in others)


def curves_of_table_rope_and_alibi_still_fall():
    """None of the three curves is flat at its end."""
    return not any(_kinds()[name]["flat"] for name in ("learned", "RoPE", "ALiBi"))


def _by_rate(name):
    return [tried["excess_loss"] for tried in record("known_text")["rates"][name]]


def rope_is_ahead_of_the_table_at_two_rates_and_alibi_at_one():
    """From two seeds and all steps, at the lower two rates; ALiBi only at the second of them."""
    table = _by_rate("learned")[:2]
    rope = [one < other for one, other in zip(_by_rate("RoPE"), table, strict=False)]
    alibi = [one < other for one, other in zip(_by_rate("ALiBi"), table, strict=False)]
    return rope == [True, True] and alibi == [False, True]


def highest_rate_is_the_worst_for_all():
    """From two seeds and all steps, every kind ends higher at the last rate than at the others."""
    losses = [_by_rate(name) for name in record("known_text")["rates"]]
    return all(last > max(others) for *others, last in losses)


def millinats_between_rope_and_alibi():
    """The median excess loss of ALiBi is above that of RoPE by so many millinats."""
    alibi, rope = (_kinds()[name]["excess_loss"]["median"] for name in ("ALiBi", "RoPE"))
    return round(1000 * (alibi - rope), 2)


def no_seed_of_the_table_trained_longer_is_below_any_of_rope():
    """The best seed of the table, trained twice as long, is above the worst of RoPE."""
    longer = record("scored_heads")["longer"]["two layers"]["excess_loss"]
    return longer["min"] > _kinds()["RoPE"]["excess_loss"]["max"]


def _first_steps_right(task):
    """Return, of each kind and seed, the first step with accuracy 0.99, infinite for none."""
    steps = printed_under("16_rope_alibi", f"{task}, first step with accuracy 0.99").tolist()
    return dict(zip(_kinds(), steps, strict=True))


def no_seed_without_positions_learns_attractors_sooner():
    """Any seed without positions needs as many steps as any with positions, or more."""
    steps = _first_steps_right("attractor")
    without = steps.pop("none") + steps.pop("none, heads of 18")
    return min(without) >= max(max(seeds) for seeds in steps.values())


def steps_until_surnames_are_learned():
    """With as many parameters: the first seed without positions, medians of the table and RoPE."""
    steps = _first_steps_right("surname")
    without = min(steps["none, heads of 18"])
    return [without, median(steps["learned"]), median(steps["RoPE, heads of 18"])]


def seeds_that_learn_surnames(name):
    """With this kind of positions, so many seeds learn surnames."""
    return sum(step < math.inf for step in _first_steps_right("surname")[name])


def _last_accuracies():
    """Return how many of the surnames each seed without positions has right at its end."""
    runs = _kinds()["none"]["runs"] + _kinds()["none, heads of 18"]["runs"]
    return [run["accuracy"]["surname"][-1] for run in runs]


def surname_accuracy_of_the_seeds_above_one_half():
    """The least and the largest accuracy of the seeds between one half and 0.99 at the end."""
    ends = [end for end in _last_accuracies() if 0.5 < end < 0.99]
    return [round(min(ends), 2), round(max(ends), 2)]


def four_seeds_nearly_learn_surnames_and_three_do_not():
    """Of the seven seeds below 0.99, four end above one half and three below it."""
    ends = [end for end in _last_accuracies() if end < 0.99]
    return sum(end > 0.5 for end in ends) == 4 and sum(end < 0.5 for end in ends) == 3

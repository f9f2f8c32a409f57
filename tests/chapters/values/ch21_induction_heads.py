"""What chapter 21 states about the induction circuit and its controls, from results files."""

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib.records import record


def other_terms_of_the_score_add_up_to_little():
    """The score of Kern at the second Anna differs from its largest term by less than 2."""
    score = printed_under("21_induction_heads", "score of Kern at the second Anna")
    largest = printed_under("21_induction_heads", "of it, Anna with what 0.0 wrote")
    return abs(score - largest) < 2


def all_five_seeds_have_the_circuit():
    """In all five seeds, the pair of heads matches six given names and copies twelve surnames."""
    return all(_has_the_circuit(seed) for seed in _seeds("two layers"))


def only_in_seed_1_another_pair_composes_most():
    """Only in seed 1 is the largest composition through the keys not that of the pair."""
    through_keys = [(seed["composition"]["keys"], seed["pair"]) for seed in _seeds("two layers")]
    is_larger = [bool(np.max(table) > _entry(table, pair)) for table, pair in through_keys]
    return is_larger == [False, True, False, False, False]


def another_pair_matches_six_by_half_a_point():
    """In seed 4, heads 0.1 and 1.1 match six names too, but with a mean score of half a point."""
    match = _seeds("two layers")[4]["match"]
    return match["own"][1][1] == 6 and 0.4 < match["diagonal"][1][1] < 0.6


def surnames_right_on_the_plateau():
    """On the plateau, each seed's accuracy at surnames is between these two."""
    right = [seed["right"] for seed in record("scored_heads")["plateau"]["two layers"]]
    return [round(min(right), 2), round(max(right), 2)]


def surnames_are_learned_within_a_doubling_of_the_steps():
    """Two points before a seed is first right on over 90 % of the surnames, it is below half."""
    runs = record("scored_heads")["models"]["two layers"]["runs"]
    return all(_two_points_before_learned(run["accuracy"]["surname"]) < 0.5 for run in runs)


def _two_points_before_learned(curve):
    return curve[next(n for n, accuracy in enumerate(curve) if accuracy > 0.9) - 2]


def surnames_right_without_positions_when_cut():
    """Patched at the keys, the four models without positions have accuracies between these."""
    right = [seed["cut"]["keys"]["right"] for seed in _seeds("no positions")[:4]]
    return [round(min(right), 2), round(max(right), 2)]


def four_of_five_have_the_circuit_without_positions():
    """Without positions, the first four seeds have the circuit and know the surnames."""
    seeds = _seeds("no positions")[:4]
    return all(_has_the_circuit(seed) and seed["cut"]["none"]["right"] > 0.9 for seed in seeds)


def _seeds(model):
    return record("induction")["models"][model]


def _has_the_circuit(seed):
    matched = _entry(seed["match"]["own"], seed["pair"])
    copied = seed["copied"]["own"][seed["pair"][1]]
    return matched == 6 and copied == 12


def _entry(table, pair):
    first, second = pair
    return table[first][second]


def plateau_step():
    """The step at which the results file looks at two layers that are still on the plateau."""
    return record("scored_heads")["plateau"]["two layers"][0]["steps"]


def four_seeds_already_attend_to_surnames():
    """On the plateau, a head of layer 1 puts more than 0.8 on surnames in four of five seeds."""
    return sum(max(seed["on_surnames"]) > 0.8 for seed in _plateau()) == 4 and 0.8


def most_names_matched_on_the_plateau():
    """On the plateau, no pair of heads of any seed matches more given names than this."""
    return max(np.max(seed["match"]["own"]) for seed in _plateau())


def first_choices_were_said_before():
    """On the plateau, more than 99 % of the first choices at surnames are surnames of the text."""
    guesses = [
        seed["guesses"]["never_said"] for seed in record("scored_heads")["plateau"]["two layers"]
    ]
    return max(guesses) < 0.01 and 0.99


def loss_of_one_layer_falls_in_every_seed():
    """When the steps of one layer double to 12,288, the loss of each seed falls."""
    runs = record("scored_heads")["longer"]["one layer"]["runs"]
    return all(run["excess_loss"][-1] < run["excess_loss"][-3] for run in runs)


def fall_of_one_layer_when_the_steps_double():
    """So much does the loss of one layer fall then, in the mean of the seeds, in nats."""
    return round(-record("scored_heads")["longer"]["one layer"]["change"]["mean"], 4)


def _plateau():
    return record("induction")["plateau"]

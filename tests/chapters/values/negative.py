"""What the page of negative results says, computed from the records of the chapters."""

import numpy as np

from tests.chapters.training_records import induction_seeds
from tutorial_lib.records import record


def copied(**wanted):
    """Return the accuracy on copies of the models of chapter 08: (runs, steps)."""
    arms = record("tiny_model")["variants"]
    found = [arm for arm in arms if all(arm[key] == value for key, value in wanted.items())]
    return np.array([run["copy_accuracy"] for arm in found for run in arm["runs"]])


def one_and_two_heads_overlap():
    """Some seed with two heads ends as well as some seed with one, and none with more does."""
    worst, best = copied(group="heads", heads=1)[:, -1].min(), {}
    for heads in (2, 4, 8, 16):
        best[heads] = copied(group="heads", heads=heads)[:, -1].max()
    return [heads for heads, most in best.items() if most > worst] == [2]


def flex_attention_has_no_gradients_on_a_cpu():
    """FlexAttention refused the backward pass on a CPU."""
    backward = record("torch_attention")["sizes"]["gpt2"]["forward + backward"]
    return "does not support backward on CPU" in backward["FlexAttention"]["left_out"]


def _positions(name):
    return record("known_text")["positions"][name]


def millinats_above_the_entropy(name):
    """With such positions, the five seeds are between these two above the entropy."""
    above = _positions(name)["excess_loss"]
    return [round(1000 * above[end]) for end in ("min", "max")]


def one_of_five_seeds_finds_all_surnames():
    """Without positions, one of five seeds is right on all surnames, and two on less than half."""
    right = [run["accuracy"]["surname"][-1] for run in _positions("none, heads of 18")["runs"]]
    return sorted(right)[1] < 0.5 < sorted(right)[2] and right.count(1) == 1


def _losses_of_blocks():
    """Return how far the blocks of equal size are above the entropy, and the layers alone."""
    models = record("scored_heads")["models"]
    blocks = models["norm and MLP, equal parameters"]["runs"]
    return [run["excess_loss"][-1] for run in blocks], models["two layers"]["excess_loss"]


def three_blocks_are_nearer_to_the_entropy():
    """Three of five seeds of the blocks have a lower loss than every seed of attention alone."""
    blocks, alone = _losses_of_blocks()
    return sum(loss < alone["min"] for loss in blocks) == 3


def one_block_is_among_them_and_one_farther():
    """Of the other two, one is in the range of attention alone, and one, above it, misses names."""
    blocks, alone = _losses_of_blocks()
    within = sum(alone["min"] <= loss <= alone["max"] for loss in blocks)
    runs = record("scored_heads")["models"]["norm and MLP, equal parameters"]["runs"]
    worst = max(runs, key=lambda run: run["excess_loss"][-1])
    farther = worst["excess_loss"][-1] > alone["max"] and worst["accuracy"]["surname"][-1] < 0.95
    return within == 1 and farther


def early_layers_look_farther_in_every_model():
    """In each of five models the mean distance is smaller in layer 1 than in layer 0."""
    seeds = record("scored_heads")["heads"]["two layers"]["seeds"]
    return all(np.mean(seed["distance"][4:]) < np.mean(seed["distance"][:4]) for seed in seeds)


def composition_of_the_pair_in_seed_1():
    """In seed 1 the pair that does the work has this composition, over keys."""
    seed = induction_seeds()[1]
    first, second = seed["pair"]
    return round(seed["composition"]["keys"][first][second], 2)


def every_head_of_one_layer_scores_at_least():
    """At one fixed period, every head of one layer has at least this induction score."""
    scores = [seed["scores"] for seed in record("induction")["one_period"]["1 layer"]]
    return round(np.min(scores, axis=(0, 1))[2], 2)


def surnames_stay_right_without_queries_or_values():
    """With the pair's queries or values cut, accuracy on surnames changes by less than 0.005."""
    return all(
        abs(seed["cut"][way]["right"] - seed["cut"]["none"]["right"]) < 0.005
        for seed in induction_seeds()
        for way in ("queries", "values")
    )


def with_more_than_four_heads_few_seeds_know():
    """All seeds with 4 heads know the surnames at both rates, with 8 or 16 at most three do."""
    models, known = record("how_many_heads")["models"], {}
    for name in ("4 heads", "8 heads", "16 heads"):
        parts = models[name], models[name]["second"]
        known[name] = [sum(map(_knows, part["runs"])) for part in parts]
    return known.pop("4 heads") == [5, 5] and max(map(max, known.values())) == 3


def _knows(run):
    return run["accuracy"]["surname"][-1] > 0.99

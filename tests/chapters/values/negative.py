"""What the page of negative results says, computed from the records of the chapters."""

import numpy as np

from tutorial_lib.records import record


def _copied(**wanted):
    """Return the accuracy on copies of the models of chapter 08: (runs, steps)."""
    arms = record("tiny_model")["variants"]
    found = [arm for arm in arms if all(arm[key] == value for key, value in wanted.items())]
    return np.array([run["copy_accuracy"] for arm in found for run in arm["runs"]])


def root_of_d_model_copies_at_least():
    """Divided by the root of d_model, the worst seed ends with this accuracy."""
    return _copied(name="sqrt(d_model)")[:, -1].min()


def root_of_d_k_ends_above_0_999():
    """Divided by the root of d_k, every seed ends above 0.999."""
    return _copied(name="sqrt(d_k)")[:, -1].min() > 0.999


def small_start_copies_at_least_at_step_100():
    """Without a root but with a smaller start, the worst seed has this accuracy at step 100."""
    return _copied(name="no root, small start")[:, 4].min()


def root_of_d_k_copies_at_most_at_step_100():
    """Divided by the root of d_k, the best seed has this accuracy at step 100."""
    return _copied(name="sqrt(d_k)")[:, 4].max()


def models_with_more_heads_have_equal_size():
    """The models of one to sixteen heads have the same number of parameters."""
    arms = [arm for arm in record("tiny_model")["variants"] if arm["group"] == "heads"]
    return len({arm["parameters"] for arm in arms}) == 1


def one_head_copies_at_least():
    """The worst seed with one head ends with this accuracy."""
    return _copied(group="heads", heads=1)[:, -1].min()


def one_and_two_heads_overlap():
    """Some seed with two heads ends as well as some seed with one, and none with more does."""
    worst, best = _copied(group="heads", heads=1)[:, -1].min(), {}
    for heads in (2, 4, 8, 16):
        best[heads] = _copied(group="heads", heads=heads)[:, -1].max()
    return [heads for heads, most in best.items() if most > worst] == [2]


def sixteen_heads_copy_at_most():
    """The best seed with sixteen heads ends with this accuracy."""
    return _copied(group="heads", heads=16)[:, -1].max()


def one_layer_copies_at_most():
    """The best seed of one layer, with 8 heads or with 4, ends with this accuracy."""
    return max(run[-1] for heads in (8, 4) for run in _copied(layers=1, heads=heads))


def flex_attention_has_no_gradients_on_a_cpu():
    """FlexAttention refused the backward pass on a CPU."""
    backward = record("torch_attention")["sizes"]["gpt2"]["forward + backward"]
    return "does not support backward on CPU" in backward["FlexAttention"]["left_out"]


def _positions(name):
    return record("known_text")["positions"][name]


def _millinats_above_the_entropy(name):
    above = _positions(name)["excess_loss"]
    return [round(1000 * above[end]) for end in ("min", "max")]


def one_of_five_seeds_finds_all_surnames():
    """Without positions, one of five seeds is right on all surnames, and two on less than half."""
    right = [run["accuracy"]["surname"][-1] for run in _positions("none, heads of 18")["runs"]]
    return sorted(right)[1] < 0.5 < sorted(right)[2] and right.count(1) == 1


def millinats_without_positions():
    """Without positions, the five seeds are between these two above the entropy of the text."""
    return _millinats_above_the_entropy("none, heads of 18")


def millinats_with_learned_positions():
    """With learned positions, the five seeds are between these two above the entropy."""
    return _millinats_above_the_entropy("learned")


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


def one_layer_finds_surnames_at_most():
    """The best seed of one layer, trained longer, is right on this fraction of the surnames."""
    return round(record("scored_heads")["longer"]["one layer"]["accuracy"]["surname"]["max"], 2)


def loss_of_one_layer_falls_by_at_most():
    """With twice the steps, the loss of one layer falls in each seed, by at most this."""
    runs = record("scored_heads")["longer"]["one layer"]["runs"]
    falls = [run["excess_loss"][-3] - run["excess_loss"][-1] for run in runs]
    assert min(falls) > 0
    return round(max(falls), 4)


def _plateaus():
    return record("scored_heads")["plateau"]["two layers"]


def accuracy_on_the_plateau():
    """On the plateau the seeds are right on between these two fractions of the surnames."""
    right = [plateau["right"] for plateau in _plateaus()]
    return [round(min(right), 2), round(max(right), 2)]


def half_of_the_chances_lie_on_names_never_said():
    """On the plateau, more than half of the probability lies on surnames that were never said."""
    return all(plateau["expected"]["never_said"] > 0.5 for plateau in _plateaus())


def first_choices_were_said_before():
    """On the plateau, at least this fraction of the first choices was said before."""
    return min(1 - plateau["guesses"]["never_said"] for plateau in _plateaus())


def early_layers_look_farther_in_every_model():
    """In each of five models the mean distance is smaller in layer 1 than in layer 0."""
    seeds = record("scored_heads")["heads"]["two layers"]["seeds"]
    return all(np.mean(seed["distance"][4:]) < np.mean(seed["distance"][:4]) for seed in seeds)


def _induction():
    """Return what was measured in the five models of two layers, a dict for each seed."""
    return record("induction")["models"]["two layers"]


def largest_composition_of_keys_in_seed_1():
    """In seed 1 the largest composition of any pair of heads, over keys, is this."""
    return round(np.max(_induction()[1]["composition"]["keys"]), 2)


def composition_of_the_pair_in_seed_1():
    """In seed 1 the pair that does the work has this composition, over keys."""
    seed = _induction()[1]
    first, second = seed["pair"]
    return round(seed["composition"]["keys"][first][second], 2)


def induction_score_of_the_right_heads_at_most():
    """On random words, the head that finds the surnames has at most this induction score."""
    return round(max(seed["induction"]["words"][4 + seed["pair"][1]] for seed in _induction()), 2)


def every_head_of_one_layer_scores_at_least():
    """At one fixed period, every head of one layer has at least this induction score."""
    scores = [seed["scores"] for seed in record("induction")["one_period"]["1 layer"]]
    return round(np.min(scores, axis=(0, 1))[2], 2)


def surnames_stay_right_without_queries_or_values():
    """With the pair's queries or values cut, accuracy on surnames changes by less than 0.005."""
    return all(
        abs(seed["cut"][way]["right"] - seed["cut"]["none"]["right"]) < 0.005
        for seed in _induction()
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

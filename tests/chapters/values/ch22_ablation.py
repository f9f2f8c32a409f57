"""What chapter 22 states about removed heads and about training, from results files."""

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib.models.grammar import TASKS
from tutorial_lib.records import record


def largest_difference_of_zero_and_mean_ablation():
    """The losses of a head replaced by zero and by its mean differ by at most this many nats."""
    lost = printed_under("22_ablation", "increase in loss, all words")
    return max(abs(zero - mean) for zero, mean, _ in lost)


def last_doubling_lowers_the_loss_of_one_head_by():
    """The last doubling of the steps lowers the loss of the best seed by this many millinats."""
    best = record("how_many_heads")["models"]["1 head"]["runs"][0]
    after_3072, _, after_6144 = best["excess_loss"][-3:]
    return 1000 * (after_3072 - after_6144)


def most_nats_lost_with_gates_that_keep_one_task():
    """Over all seeds and tasks, gates that keep one task raise the loss of its form by this."""
    seeds = record("how_many_heads")["seeds"]
    return max(gates["keep"]["form"] for seed in seeds for gates in seed["gates"].values())


def only_the_brackets_of_seed_1_need_no_head_of_layer_1():
    """Of all functions and seeds, only these raise no loss of a form without a head of layer 1."""
    functions = [TASKS[:5], TASKS[5:6], TASKS[6:7], TASKS[7:9], TASKS[9:]]
    brackets, idle = functions[3], []
    for n, seed in enumerate(record("scored_heads")["heads"]["two layers"]["seeds"]):
        for function in functions:
            rises = np.mean([seed["form"][task] for task in function], axis=0)
            assert max(rises[4:]) > 0.2 or max(rises[4:]) < 0.005
            if max(rises[4:]) < 0.005:
                idle.append((n, function))
                assert rises[1] > 0.69
    together = record("how_many_heads")["seeds"][1]["together"]
    layer_1 = together["sets"].index("layer 1")
    assert all(together["form"][task][layer_1] < 0.005 for task in brackets)
    return idle == [(1, brackets)]

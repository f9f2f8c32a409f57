"""What chapter 22 states about removed heads and about training, from results files."""

from tests.chapters.named import printed_under
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
    """Over all seeds and tasks, gates that keep one task raise its loss by at most this."""
    seeds = record("how_many_heads")["seeds"]
    return max(gates["keep"]["nats"] for seed in seeds for gates in seed["gates"].values())

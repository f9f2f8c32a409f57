"""What chapter 17 says of masks, of top-k keys and of the first token, from what is recorded."""

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib import running_example, trace
from tutorial_lib.records import record


def _table(label):
    return printed_under("17_sparse_attention", label)


def _models():
    return record("look_less")["models"]


def index_queries_of_bark():
    """The first two entries of both queries of bark, in units of 2 ln 2."""
    return _traced().Q[:, 2, :2] / (2 * np.log(2))


def index_keys():
    """The first two entries of head 0's keys."""
    return _traced().K[0, :, :2]


def _traced():
    example = running_example()
    return trace(example.X, example.params, mask=example.mask)


def features_of_the_three_words():
    """Which of the first four features dogs, that and bark have."""
    features = [np.flatnonzero(row[:4]).tolist() for row in running_example().X]
    return features == [[0, 2], [1, 3], [0, 1]]


def two_layers_reach_the_first_token_in_four_masks():
    """The last row depends on token 0 under all masks but the window of 4 and every 4th."""
    reached = _table("pairs, and receptive fields")[:, 3]
    return reached.tolist() == [0, 0, 1, 1, 1, 1]


def best_8_cost_less_than_a_third_of_the_last_8():
    """The best 8 keys raise the loss by less than a third of what the last 8 raise it by."""
    more = _table("nats more than with all keys")
    last, best = more[0, 0], more[2, 0]
    return 3 * best < last


def least_accuracy_with(kind, task):
    """The accuracy of the worst seed at a task, with the last 8 keys or the best."""
    return _models()["attention only"]["less"][kind]["8"]["accuracy"][task]["min"]


def first_token_is_not_needed_in_the_window():
    """In place of the oldest key, the first token loses more with 8 keys, and no more with 16."""
    label = "loss with <bos>, minus loss with the oldest word"
    changes = printed_under("17_sparse_attention 17-63-b", label)
    (change_8, error_8), (change_16, error_16) = changes
    return change_8 > 2 * error_8 and abs(change_16) < error_16


def first_token_helps_in_two_of_six_models():
    """Its change is more than two errors below 0 only at half the rate and without positions."""
    changes = _table("nats more, means of 5 seeds")[:, 2:4]
    helps = [bool(change < -2 * error) for change, error in changes]
    return helps == [False, True, False, True, False, False]


def best_8_do_not_suffice_without_positions():
    """Without positions, the best 8 keys raise the loss of each seed by more than 3 nats."""
    return min(_models()["no positions"]["less"]["best"]["8"]["seeds"]) > 3


def learned_sinks_replace_the_first_token_but_for_one_seed():
    """With learned sinks, four seeds lose at most 0.0011 nats without it, and one over 0.04."""
    *others, worst = sorted(_models()["learned sink"]["without_first"]["seeds"])
    return max(others) < 0.0011 and worst > 0.04


def most_weight_on_the_first_token_is_the_same_at_both_rates():
    """The head with most weight on it gives it as much at the full learning rate as at half."""
    full, half = _models()["attention only"], _models()["attention only, half the rate"]
    weights = [round(model["sink"]["largest"]["median"], 2) for model in (full, half)]
    return weights[0] == weights[1]


def half_the_rate_did_worse_for_the_mlp():
    """Half of the learning rate of the MLP left a higher loss in chapter 19's results."""
    tried = record("scored_heads")["models"]["norm and MLP"]["tried"]
    above = {each["rate"]: each["excess_loss"] for each in tried}
    return above[0.001] > above[0.002]


def median_losses_still_fall_in_all_six():
    """When the steps doubled to those of the record, the median loss of each model fell."""
    changes = [model["doubling_change"] for model in _models().values()]
    return len(changes) == 6 and max(changes) < 0


def surnames_are_missed_in_all_models_but_two():
    """In all models but the first two, a seed is right on fewer than 60 % of the surnames."""
    least = [model["accuracy"]["surname"]["min"] for model in _models().values()]
    return [accuracy < 0.6 for accuracy in least] == [False, False, True, True, True, True]


def a_mask_costs_time_in_pytorch():
    """At each length, the masked layer takes more than 1.4 times as long as the full one."""
    return all(form["over_full"]["low"] > 1.4 for form in _timed("torch, window 128, masked"))


def numpy_takes_twice_the_fraction_of_all_pairs():
    """Where blocks are skipped, NumPy's time is 1.7 to 2.1 times the fraction of all pairs."""
    skipped = _timed("NumPy, window 128, skipped")
    return all(1.7 < form["times_fraction"]["of_all"] < 2.1 for form in skipped)


def pytorch_takes_more_than_twice_the_fraction_of_causal_pairs():
    """Where blocks are skipped, PyTorch's time is 2 to 3.6 times the fraction of causal pairs."""
    skipped = _timed("torch, window 128, skipped")
    return all(2 < form["times_fraction"]["of_causal"] < 3.6 for form in skipped)


def flex_attention_gains_little_over_skipped_blocks():
    """At each length, FlexAttention takes more than 0.9 times as long as a call for each block."""
    flex = _median_times("torch, window 128, FlexAttention")
    skipped = _median_times("torch, window 128, skipped")
    return all(one > 0.9 * other for one, other in zip(flex, skipped, strict=True))


def _timed(form):
    return [at["forms"][form] for at in record("windows")["lengths"].values()]


def _median_times(form):
    return [at["over_full"]["median"] for at in _timed(form)]

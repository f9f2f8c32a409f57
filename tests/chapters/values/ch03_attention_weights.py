"""What chapter 03 says of its weights, and of the four divisors that were trained."""

import numpy as np

from tests.chapters.named import printed_under
from tests.chapters.training_records import tiny_models
from tutorial_lib import running_example, trace

PAGE = "03_attention_weights"


def output_of_bark_in_head_0_as_a_sum():
    """Each weight of *bark* in head 0 is followed by the value that it multiplies."""
    layer = trace(running_example().X, running_example().params)
    return np.column_stack([layer.weights[0, 2], layer.V[0]])


def the_spread_is_the_root_to_within():
    """The measured standard deviations differ from the roots by at most so much, in whole %."""
    raw = printed_under(PAGE, "standard deviation of q · k")[0]
    off = np.abs(raw / np.sqrt([4, 16, 64, 512]) - 1).max()
    return np.ceil(100 * off) / 100


def a_fifth_of_the_queries_is_saturated():
    """At d_k = 64 a fifth of the unscaled queries give one key more than 0.99."""
    above = printed_under(PAGE, "unscaled: fraction of queries above 0.99")
    return round(float(above[2]), 1) == 1 / 5


def all_four_chose_the_second_rate():
    """All four variants chose the same learning rate, the second that was tried."""
    second = tiny_models("root")[0]["tried"][1]["rate"]
    return all(one["rate"] == second for one in tiny_models("root"))


def the_others_end_above():
    """At the last step the other three variants have at least this accuracy."""
    final = printed_under(PAGE, "accuracy, mean of five seeds")[-1]
    return np.delete(final, 1).min()


def a_small_start_is_the_quickest():
    """Its slowest run is sooner than the quickest run of the other three variants."""
    first = printed_under(PAGE, "first step evaluated with nine of ten right")
    return first[3].max() < first[:3].min()

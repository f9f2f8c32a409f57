"""What chapter 08 says of its slopes, of central differences and of the models it trained."""

import numpy as np

from tests.chapters.named import printed_under
from tests.chapters.training_records import least_and_most, tiny_models
from tutorial_lib.records import record

PAGE = "08_gradients"
ABLATED = "a head of the first layer ablated"


def _of_one_layer(heads):
    (found,) = (v for v in tiny_models("layers") if v["layers"] == 1 and v["heads"] == heads)
    return found


def _copied(variant):
    """Return the accuracy on copies: a row for each seed, a column for each step that was read."""
    return np.array([run["copy_accuracy"] for run in variant["runs"]])


def accuracies_of_one_layer(heads):
    """The five seeds of one layer with so many heads end between these two accuracies."""
    return least_and_most(_copied(_of_one_layer(heads))[:, -1])


def _errors():
    """Return the error of central differences by the step, in the order of the steps."""
    return record("gradients")["errors_of_central_differences_of_W_Q"]


def step_at_which_both_errors_are_equal():
    """Rounding, which falls with ε, and curvature, which grows with ε², cross at this step."""
    rounding = _errors()["1e-12"] * 1e-12  # over ε
    curvature = _errors()["1e-01"] / 1e-01**2  # times ε²
    return (rounding / curvature) ** (1 / 3)


def step_with_the_least_error():
    """Of the steps that were tried, this one has the least error."""
    return float(min(_errors(), key=_errors().get))


def steps_of_one_layer():
    """The models of one layer were trained for so many steps."""
    (steps,) = {_of_one_layer(heads)["steps"][-1] for heads in (4, 8)}
    return steps


def runs_of_one_layer_that_gained_since_half_time():
    """So many runs of one layer are better at the end than after half of the steps."""
    copied = np.concatenate([_copied(_of_one_layer(heads)) for heads in (8, 4)])
    return np.count_nonzero(copied[:, -1] > copied[:, -3])


def two_layers_are_further_at_step():
    """By this step the worst run of two layers is right on more than 0.94 of the copies."""
    worst = printed_under(f"{PAGE} 08-67", "accuracy on copies")[:, 1]
    return tiny_models("layers")[0]["steps"][(worst > 0.94).argmax()]


def a_third_of_the_weight_is_left():
    """With head 0 of layer 0 ablated, a third of the second layer's weight is still there."""
    left = printed_under(PAGE, ABLATED)[1, 1:].astype(float)
    return np.allclose(left, 1 / 3, rtol=0, atol=0.01)


def weight_left_over_uniform_weights():
    """What is left is so many times what uniform weights put there."""
    uniform = printed_under(PAGE, "second layer, weight after copies")[2]
    return round(printed_under(PAGE, ABLATED)[1, 1] / uniform)


def heads_of_the_second_layer():
    """The names of the heads of the second layer, in the model of two layers."""
    (found,) = (v for v in tiny_models("layers") if v["layers"] == 2)
    return [f"1.{head}" for head in range(found["heads"])]

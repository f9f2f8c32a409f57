"""What chapter 19 says of its models and how they train, computed from their records."""

from tutorial_lib.records import record


def _model(name):
    return record("scored_heads")["models"][name]


def _plateau():
    return record("scored_heads")["plateau"]["two layers"]


def _longer(name):
    return record("scored_heads")["longer"][name]


def agreement_comes_first_and_the_surname_last():
    """In every run of two layers, agreement is right before all other tasks, the surname after."""
    return all(_agreement_first_surname_last(run) for run in _model("two layers")["runs"])


def _agreement_first_surname_last(run):
    firsts = {task: _first_right(curve) for task, curve in run["accuracy"].items()}
    agreement, surname = firsts.pop("agreement"), firsts.pop("surname")
    return all(agreement < other < surname for other in firsts.values())


def _first_right(curve):
    return next(n for n, accuracy in enumerate(curve) if accuracy >= 0.99)


def attractor_accuracy_dips_to():
    """At its lowest, the accuracy of a seed at attractors is between these two."""
    lowest = [min(run["accuracy"]["attractor"]) for run in _model("two layers")["runs"]]
    return [round(min(lowest), 2), round(max(lowest), 2)]


def surnames_right_on_the_plateau():
    """On the plateau, each seed is right on a fraction of the surnames between these two."""
    right = [seed["right"] for seed in _plateau()]
    return [round(min(right), 2), round(max(right), 2)]


def most_probability_lies_on_new_surnames():
    """On the plateau, each seed gives more than half of its probability to new names."""
    return all(seed["expected"]["never_said"] > 0.5 for seed in _plateau())


def accuracy_above_the_uniform_guess():
    """For each seed, these are its accuracy less a uniform guess's, and the standard error."""
    above = [seed["over_chance"] for seed in _plateau()]
    return [[round(seed["mean"], 3), round(seed["standard_error"], 3)] for seed in above]


def learning_rate_was_chosen_with_heads_of_16():
    """Without positions, heads of 18 rely on the learning rates tried with heads of 16."""
    narrow = record("known_text")["positions"]["none"]
    wide = record("known_text")["positions"]["none, heads of 18"]
    return wide["tried"] == narrow["tried"] and narrow["d_k"] == 16


def equal_blocks_took_the_largest_rate():
    """The blocks with as many parameters took the largest learning rate that was tried."""
    equal = _model("norm and MLP, equal parameters")
    return equal["rate"] == max(tried["rate"] for tried in equal["tried"])


def seeds_without_surnames_stay_far_above_the_entropy():
    """A run is more than 0.04 nats above the entropy exactly where it misses the surnames."""
    names = "two layers", "one layer", "norm and MLP", "norm and MLP, equal parameters"
    models = [_model(name) for name in names]
    models.append(record("known_text")["positions"]["none, heads of 18"])
    return all(_is_far(run) == _misses_surnames(run) for one in models for run in one["runs"])


def _is_far(run):
    return run["excess_loss"][-1] > 0.04


def _misses_surnames(run):
    return run["accuracy"]["surname"][-1] < 0.8


def best_blocks_above_the_entropy():
    """The best seeds of the blocks, and of equal blocks, are this many nats above the entropy."""
    names = "norm and MLP", "norm and MLP, equal parameters"
    return [round(_model(name)["excess_loss"]["min"], 3) for name in names]


def trained_longer_all_blocks_find_the_surnames():
    """After twice the steps, the least accurate seed of the blocks is right on all surnames."""
    return _longer("norm and MLP")["accuracy"]["surname"]["min"] == 1


def trained_longer_all_blocks_beat_two_layers():
    """After twice the steps, the worst seed of the blocks is below the best of two layers."""
    worst = _longer("norm and MLP")["excess_loss"]["max"]
    return worst < _longer("two layers")["excess_loss"]["min"]


def trained_longer_no_curve_is_flat():
    """With twice the steps, the loss of each model still falls by more than its standard error."""
    return not any(model["flat"] for model in record("scored_heads")["longer"].values())


def loss_of_one_layer_falls_in_every_seed():
    """With twice the steps, the loss of one layer falls in each seed."""
    runs = _longer("one layer")["runs"]
    return all(run["excess_loss"][-1] < run["excess_loss"][-3] for run in runs)


def trained_longer_one_layer_is_right_on():
    """After twice the steps, the best seed of one layer is right on this fraction of surnames."""
    return round(_longer("one layer")["accuracy"]["surname"]["max"], 2)

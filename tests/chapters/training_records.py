"""What several pages quote of the records of training: expressions name these functions."""

from tutorial_lib.records import record


def least_and_most(values):
    """Return the range of some values, such as one for each seed."""
    values = list(values)
    return [min(values), max(values)]


def tiny_models(group):
    """Return what was measured of the models of one comparison, such as "heads", in its order."""
    return [one for one in record("tiny_model")["variants"] if one["group"] == group]


def plateau_seeds():
    """Return what was measured in two layers on their plateau, a dict for each seed."""
    return record("scored_heads")["plateau"]["two layers"]


def longer_training(name):
    """Return what a model of chapter 19 reached after twice the steps."""
    return record("scored_heads")["longer"][name]


def changes_of_loss(name):
    """Return how much the second half of the longer training changed the loss of each seed."""
    runs = longer_training(name)["runs"]
    return [run["excess_loss"][-1] - run["excess_loss"][-3] for run in runs]


def scored_seeds():
    """Return the scores of the eight heads of two layers, a dict for each seed."""
    return record("scored_heads")["heads"]["two layers"]["seeds"]


def induction_seeds(model="two layers"):
    """Return what was measured of the circuit of a model, a dict for each seed."""
    return record("induction")["models"][model]


def induction_of_matching_heads():
    """Return the induction score, on random words, of the head that matches names, by seed."""
    return [seed["induction"]["words"][4 + seed["pair"][1]] for seed in induction_seeds()]

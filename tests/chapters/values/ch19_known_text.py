"""What chapter 19 says of its models and how they train, computed from their records."""

from fractions import Fraction

import numpy as np

from tests.chapters.named import printed_under
from tests.chapters.training_records import changes_of_loss, longer_training, plateau_seeds
from tutorial_lib.models.grammar import GIVEN, GRAMMAR, ID, SURNAME, TASKS, WORDS, sample_documents
from tutorial_lib.records import record


def _model(name):
    return record("scored_heads")["models"][name]


def first_word_is(word):
    """The probability that the grammar gives to this word at the beginning of a document."""
    return Fraction(float(GRAMMAR.chances[0, ID[word]])).limit_denominator(100)


def agreement_comes_first_and_the_surname_last():
    """In every run of two layers, agreement is right before all other tasks, the surname after."""
    return all(_agreement_first_surname_last(run) for run in _model("two layers")["runs"])


def _agreement_first_surname_last(run):
    firsts = {task: _first_right(curve) for task, curve in run["accuracy"].items()}
    agreement, surname = firsts.pop("agreement"), firsts.pop("surname")
    return all(agreement < other < surname for other in firsts.values())


def _first_right(curve):
    return next(n for n, accuracy in enumerate(curve) if accuracy >= 0.99)


def agreement_closes_its_gap_first():
    """After the first logged steps, each seed has closed most of the gap at agreement."""
    base = printed_under("19_known_text", "from the base rate")[:, 0]
    return all(_gap_closed_most(run, base) == "agreement" for run in _model("two layers")["runs"])


def _gap_closed_most(run, base):
    first = np.array([run["accuracy"][task][0] for task in TASKS])
    return TASKS[np.argmax((first - base) / (1 - base))]


def attractor_accuracy_dips_to():
    """At its lowest, the accuracy of a seed at attractors is between these two."""
    lowest = [min(run["accuracy"]["attractor"]) for run in _model("two layers")["runs"]]
    return [round(min(lowest), 2), round(max(lowest), 2)]


def seeds_whose_choices_beat_their_chance():
    """In so many seeds this mean is more than two standard errors above 0."""
    beyond = [seed["over_chance"] for seed in plateau_seeds()]
    return sum(one["mean"] > 2 * one["standard_error"] for one in beyond) == 2


def right_by_the_most_given_names():
    """How often a rule is right that takes the surname with the most given names so far."""
    documents, chances = sample_documents(np.random.default_rng(1000), 600), []
    for ids, tasks in zip(documents.ids, documents.task, strict=True):
        for t in np.flatnonzero(tasks == TASKS.index("surname")):
            at = np.flatnonzero(GIVEN[ids[:t]])
            surnames = [*dict(zip(ids[at], ids[at + 1], strict=True)).values()]
            chances.append(max(surnames.count(one) for one in surnames) / len(surnames))
    assert len(chances) == record("scored_heads")["guess_rules"]["cases"]
    return np.mean(chances)


def most_subjects_are_always_singular():
    """At agreement and across asides, over half of the subjects are names, she, he or it."""
    documents = sample_documents(np.random.default_rng(1000), 600)
    singular = GIVEN | SURNAME | np.isin(WORDS, ["she", "he", "it"])
    tasks = [documents.task == TASKS.index(task) for task in ("agreement", "across aside")]
    rows = np.arange(600)[:, None]
    subjects = singular[documents.ids[rows, documents.decided_by]]
    return all(subjects[task].mean() > 0.5 for task in tasks)


def learning_rate_was_chosen_with_heads_of_16():
    """Without positions, heads of 18 rely on the learning rates tried with heads of 16."""
    narrow = record("known_text")["positions"]["none"]
    wide = record("known_text")["positions"]["none, heads of 18"]
    return wide["tried"] == narrow["tried"] and narrow["d_k"] == 16


def three_models_were_tried_from_two_seeds_for_all_steps():
    """One layer and both models of blocks were, and the other two from one seed for half."""
    models = record("scored_heads")["models"]
    steps = record("scored_heads")["settings"]["steps"]
    three = "one layer", "norm and MLP", "norm and MLP, equal parameters"
    rows = {name: one["tried"] for name, one in models.items()}
    rows["no positions"] = record("known_text")["positions"]["none, heads of 18"]["tried"]
    full = {n for n, rs in rows.items() if all(r["steps"] == steps for r in rs)}
    pairs = {n for n, rs in rows.items() if all(len(r["seeds"]) == 2 for r in rs)}
    return full == pairs == set(three)


def millinats_of_two_layers_by_rate():
    """The mean excess loss of two seeds at half the example's rate, and at its rate."""
    tried = record("known_text")["rates"]["learned"]
    return [round(1000 * row["excess_loss"], 1) for row in tried[:2]]


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


def trained_longer_all_blocks_beat_two_layers():
    """After twice the steps, the worst seed of the blocks is below the best of two layers."""
    worst = longer_training("norm and MLP")["excess_loss"]["max"]
    return worst < longer_training("two layers")["excess_loss"]["min"]


def loss_of_the_blocks_falls_most_in_two_seeds():
    """It falls in each seed, by over 40 millinats in the two far above the entropy, else by 1."""
    changes, runs = changes_of_loss("norm and MLP"), longer_training("norm and MLP")["runs"]
    far = [run["excess_loss"][-3] > 0.04 for run in runs]
    assert sum(far) == 2
    expected = [
        change < -0.04 if is_far else -0.001 < change < 0
        for change, is_far in zip(changes, far, strict=True)
    ]
    return all(expected)

"""What chapter 20 says of where heads look, computed from the scores of five seeds."""

from functools import cache

import numpy as np

from tests.chapters.training_records import least_and_most, scored_seeds
from tutorial_lib import concat_heads
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.grammar import FORMS, TASKS, sample_documents
from tutorial_lib.models.head_scores import best_offset, fixed_offset_score
from tutorial_lib.records import checkpoint, record


def is_in_layer_1(head):
    """Of eight heads, the first four are in layer 0."""
    return head > 3


def head_of_layer_0_costs_more_in_four_of_five():
    """At attractor in four of five seeds, a head of layer 0 costs more than the patched one."""
    found = [(seed["form"]["attractor"], seed["patch"]["attractor"]) for seed in scored_seeds()]
    return sum(max(cost[:4]) > cost[np.argmax(patch)] for cost, patch in found) == 4


def three_or_four_heads_beat_the_fixed_offset():
    """In each seed, three or four heads have more weight than the baseline in some task."""
    return {_n_heads_that_look(seed["weight"]) for seed in scored_seeds()} == {3, 4}


def _n_heads_that_look(weights):
    return int(_looks(weights).any(axis=0).sum())


def _looks(weights):
    """Which pairs of a task and a head have more weight than the baseline: (tasks, 8)."""
    return _by_task(weights) > _by_task(_baseline())[:, None] + 0.01


@cache
def _baseline():
    """The best fixed offset of each task as the chapter takes it, from two sets of documents."""
    sets = [sample_documents(np.random.default_rng(n), 10_000) for n in (3, 4)]
    pairs = {task: [part.target_of(task) for part in sets] for task in TASKS}
    return {task: fixed_offset_score(pair[1], best_offset(pair[0])) for task, pair in pairs.items()}


def _tasks():
    return [task for task in TASKS if task != "bracket"]


def _by_task(scores):
    return np.array([scores[task] for task in _tasks()])


def _pairs(kind="form", limit=0.05):
    """For each seed, which pairs look, and which matter by this kind of loss."""
    return [(_looks(seed["weight"]), _by_task(seed[kind]) > limit) for seed in scored_seeds()]


def _pairs_by_both_counts():
    return _pairs(), _pairs("fall", 0.01)


def of_those_that_do_not_look_matter():
    """Which fraction of the pairs that do not look matter by form, least and most of five seeds."""
    others = [matters[~looks].mean() for looks, matters in _pairs()]
    return [min(others), max(others)]


def those_that_matter_look_in_all_seeds_but_seed_2():
    """Which fraction of the pairs that matter look, least and most of four seeds, both counts."""
    counts = _pairs_by_both_counts()
    found = np.array([[looks[matters].mean() for looks, matters in pairs] for pairs in counts])
    assert (found[:, 2] < 0.5).all()
    return [np.delete(found, 2, axis=1).min(), np.delete(found, 2, axis=1).max()]


def most_that_matter_and_do_not_look_are_in_layer_0():
    """Of the pairs that matter and do not look, more than half are in layer 0, by both counts."""
    others = [matters & ~looks for pairs in _pairs_by_both_counts() for looks, matters in pairs]
    return all(pairs[:, :4].sum() > pairs.sum() / 2 for pairs in others)


def names():
    """The names of the eight heads."""
    return record("scored_heads")["heads"]["two layers"]["names"]


def _first(task, kind):
    """The scores of the eight heads of the checkpoint, which is seed 0."""
    return np.array(scored_seeds()[0][kind][task])


def head_of_attractor():
    """The head with the largest patching effect at verbs away from their subject."""
    return head_that_carries("attractor", "across clause", "across aside", "inside clause")


def head_of_agreement():
    """The head with the largest patching effect at agreement."""
    return head_that_carries("agreement")


def heads_of_surname():
    """The heads with a patching effect of more than a tenth at surname, the largest first."""
    effects = _first("surname", "patch")
    return [names()[head] for head in np.argsort(-effects) if effects[head] > 0.1]


def head_of_surname():
    """The head with the largest patching effect at surname."""
    return heads_of_surname()[0]


def second_head_of_surname():
    """The head with the second largest patching effect at surname."""
    return heads_of_surname()[1]


def head_that_surname_needs_most():
    """The head whose ablation raises the loss of the form most at surname."""
    return names()[int(np.argmax(_first("surname", "form")))]


def head_of_layer_0_that_attractor_needs():
    """The head of layer 0 whose ablation raises the loss of the form most at attractor."""
    return names()[int(np.argmax(_first("attractor", "form")[:4]))]


def heads_of_the_circuit():
    """The head that the surnames need most, and those that carry them."""
    return [head_that_surname_needs_most(), *heads_of_surname()]


def head_that_all_measures_support():
    """The head that is first by weight, loss of the form and patching effect at attractor."""
    [head] = {int(np.argmax(_first("attractor", kind))) for kind in ("weight", "form", "patch")}
    return names()[head]


def head_that_attends_in_vain():
    """The only head with most of its weight on the opening bracket that no form depends on."""
    needless = _first("bracket", "form") < 0.01
    [head] = np.flatnonzero((_first("bracket", "weight") > 0.5) & needless)
    return names()[head]


def head_above_the_offset_where_the_subject_is_far():
    """The only head far above the fixed offset at each task of a verb away from its subject."""
    tasks = ("inside clause", "across clause", "across aside", "attractor")
    above = [_first(task, "weight") > _baseline()[task] + 0.2 for task in tasks]
    [head] = np.flatnonzero(np.all(above, axis=0))
    return names()[head]


def head_that_only_the_whole_word_needs():
    """The head whose ablation raises the loss of the whole word most at outer bracket."""
    return names()[int(np.argmax(_first("outer bracket", "nats")))]


def head_that_carries(*tasks):
    """The head with the largest patching effect, the same at all these tasks."""
    [head] = {int(np.argmax(_first(task, "patch"))) for task in tasks}
    return names()[head]


def most_that_all_paths_change_in_one_case():
    """The virtual heads together change the logit difference of one case at most by this."""
    model = TinyModel.of(checkpoint("known_text"))
    documents = sample_documents(np.random.default_rng(2), 200)
    low, high = run(model, documents.ids[:, :-1])[1]
    values = low.Y[:, None] @ high.params.W_V  # of what layer 0 has written
    logits = concat_heads(high.weights @ values) @ high.params.W_O @ model.U
    n, t = np.nonzero(documents.task >= 0)
    right, found = documents.ids[n, t + 1], logits[n, t]
    others = FORMS[right][:, None] == FORMS
    own = found[np.arange(len(n)), right]
    mean = ((found * others).sum(axis=-1) - own) / (others.sum(axis=-1) - 1)
    return abs(own - mean).max()


def weight_on_the_previous_word():
    """The head that the surnames need gives the previous word this weight, over all queries."""
    model = TinyModel.of(checkpoint("known_text"))
    ids = sample_documents(np.random.default_rng(2), 200).ids[:, :-1]
    weights = run(model, ids)[1][0].weights[:, names().index(head_that_surname_needs_most())]
    return np.diagonal(weights, offset=-1, axis1=-2, axis2=-1).mean()


def _blocks():
    return record("scored_heads")["heads"]["norm and MLP"]["seeds"]


def _sharing(seed, task):
    return int((np.array(seed["patch"][task]) > 0.1).sum())


def attractor_has_one_head_in_four_block_models_bracket_up_to_three():
    """How many heads have an effect of more than a tenth, in the models with norms and MLPs."""
    attractor, bracket = ([_sharing(s, t) for s in _blocks()] for t in ("attractor", "bracket"))
    return attractor.count(1) == 4 and max(bracket) == 3


def costs_at_bracket(model):
    """The largest rise of the loss of the form by one head at bracket, over five seeds."""
    seeds = record("scored_heads")["heads"][model]["seeds"]
    return least_and_most(max(seed["form"]["bracket"]) for seed in seeds)


def surnames_found():
    """What of the surnames is right in models with norms and MLPs, where over 90 % are."""
    runs = record("scored_heads")["models"]["norm and MLP"]["runs"]
    right = [run["accuracy"]["surname"][-1] for run in runs]
    return [share for share in right if share > 0.9]


def no_plain_model_makes_a_mistake():
    """Each of the five models is right at every case of every task."""
    runs = record("scored_heads")["models"]["two layers"]["runs"]
    return all(curve[-1] == 1 for run in runs for curve in run["accuracy"].values())


def holders(task, kind="patch", most=8):
    """In each seed, the head with the largest score at a task, among the first of them."""
    return [int(np.argmax(seed[kind][task][:most])) for seed in scored_seeds()]


def one_head_for_both_brackets_and_one_for_himself_and_he():
    """In each of the five seeds these tasks share the head with the largest effect."""
    brackets = holders("bracket") == holders("outer bracket")
    return brackets and holders("reflexive") == holders("pronoun")


def in_four_seeds_it_has_the_surnames_too():
    """In four of five seeds the head of the reflexives has the largest effect at surnames."""
    pairs = zip(holders("reflexive"), holders("surname"), strict=True)
    return sum(one == other for one, other in pairs) == 4


def one_head_of_layer_0_serves_both_in_seeds_0_and_3():
    """In which seeds attractor and surname need the same head of layer 0 most."""
    both = (holders(task, "form", most=4) for task in ("attractor", "surname"))
    return [one == other for one, other in zip(*both, strict=True)] == [1, 0, 0, 1, 0]


def word_and_form_of_the_head_that_the_word_needs():
    """At outer bracket: least and most of the word's loss without this head, most of the form's."""
    word, form = np.transpose(heads_that_the_word_needs("outer bracket"))
    return [min(word), max(word), max(form)]


def heads_that_the_word_needs(task):
    """In each seed, of heads that cost less than a tenth in the form, the one that costs most."""
    both = [zip(seed["nats"][task], seed["form"][task], strict=True) for seed in scored_seeds()]
    return [max(pair for pair in pairs if pair[1] < pair[0] / 10) for pairs in both]


def counts_at_bracket_depend_on_the_limit():
    """How many heads of block seed 1 have an effect of more than 0.1, and of more than 0.05."""
    effects = np.array(_blocks()[1]["patch"]["bracket"])
    return [int((effects > limit).sum()) for limit in (0.1, 0.05)] == [1, 4]


def only_in_seed_0_the_two_losses_name_different_heads():
    """At outer bracket, the head with the largest rise of the word's loss and of the form's."""
    both = (holders("outer bracket", kind) for kind in ("nats", "form"))
    return [one == other for one, other in zip(*both, strict=True)] == [0, 1, 1, 1, 1]


def seeds_in_which_they_do_so_at_other_tasks():
    """The seeds in which the two losses name different heads at another task that needs one."""
    tasks = [task for task in _tasks() if task != "outer bracket"]
    return [
        n for n, seed in enumerate(scored_seeds()) if any(_names_two(seed, task) for task in tasks)
    ]


def _names_two(seed, task):
    form, nats = seed["form"][task], seed["nats"][task]
    return max(form) > 0.05 and np.argmax(form) != np.argmax(nats)


def weight_and_form_of_the_second_head_at_outer_bracket_of_seed_3():
    """Of seed 3, the second largest weight at outer bracket, and what that head's form loses."""
    weight, form = (scored_seeds()[3][kind]["outer bracket"] for kind in ("weight", "form"))
    return [sorted(weight)[-2], form[np.argsort(weight)[-2]]]

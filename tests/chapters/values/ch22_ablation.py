"""What chapter 22 states about removed heads and about training, from results files.

Names of heads are those of the example model, which is seed 0 of the results file.
"""

from functools import cache
from itertools import combinations

import numpy as np

from tests.chapters.named import printed_under
from tutorial_lib import causal_mask, concat_heads, trace
from tutorial_lib.models.ablation import replacement_outputs
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import accuracy, excess_loss, form_loss
from tutorial_lib.models.grammar import ID, TASKS, sample_documents
from tutorial_lib.models.head_scores import run_with
from tutorial_lib.records import checkpoint, record

ALL_HEADS = [(layer, head) for layer in range(2) for head in range(4)]
NAMES = [f"{layer}.{head}" for layer, head in ALL_HEADS]
LEVEL = 0.05  # of the usual rank test


@cache
def _seeds():
    return record("how_many_heads")["seeds"]


def _increases(task, seed=0, part="form"):
    """The increase in loss at a task without each head, and without each pair and more."""
    found = _seeds()[seed]
    single = dict(zip(NAMES, found["single"]["mean"][part][task], strict=True))
    sets = found["together"]["sets"]
    return single, dict(zip(sets, found["together"][part][task], strict=True))


def _most_beyond(task, seed=0, part="form"):
    """By how much a pair of heads exceeds the sum of the two at most, and this pair."""
    single, sets = _increases(task, seed, part)
    pairs = [pair.split() for pair in sets if "." in pair and " " in pair]
    return max((sets[" ".join(pair)] - sum(single[h] for h in pair), pair) for pair in pairs)


def _strongest(single, layer):
    return max((head for head in single if head.startswith(layer)), key=single.get)


def backups_at_surname():
    """The pair of heads whose increase at surname exceeds the sum of the two most."""
    return _most_beyond("surname")[1]


def chain(task, seed=0):
    """The heads of layer 0 and of layer 1 that raise the loss at a task most by themselves."""
    single, sets = _increases(task, seed)
    pair = [_strongest(single, "0"), _strongest(single, "1")]
    assert sets[" ".join(pair)] < sum(single[head] for head in pair) - 0.4
    return pair


def strongest_at_attractor():
    """The head that raises the loss of the form at attractor most, and that of all words 2nd."""
    losses = _seeds()[0]["single"]["mean"]["loss"]
    single = _increases("attractor")[0]
    strongest = max(single, key=single.get)
    assert NAMES.index(strongest) == np.argsort(losses)[-2]
    return strongest


def strongest_at_brackets_of_seed_1():
    """In seed 1, the head that raises the loss of the form at both kinds of brackets most."""
    strongest = {max(single, key=single.get) for single in map(_brackets_of_seed_1, TASKS[7:9])}
    return [*strongest]


def _brackets_of_seed_1(task):
    return _increases(task, 1)[0]


def most_that_the_second_head_of_the_chain_adds():
    """What the strongest head of layer 1 adds at surname to that of layer 0, most of five seeds."""
    added = []
    for seed in range(5):
        single, sets = _increases("surname", seed)
        pair = [_strongest(single, "0"), _strongest(single, "1")]
        added.append(sets[" ".join(pair)] - single[pair[0]])
    return max(added)


def most_that_is_left_to_lose_at_surname():
    """Without the strongest head of layer 0, a blind choice of a surname loses this much more."""
    singles = [_increases("surname", seed)[0] for seed in range(5)]
    return np.log(12) - min(single[_strongest(single, "0")] for single in singles)


def the_chain_of_each_seed_is_the_pair_of_chapter_21():
    """The two strongest heads at surname are the pair that matches most of the names."""
    found = []
    for n, seed in enumerate(record("induction")["models"]["two layers"]):
        single, (a, b) = _increases("surname", n)[0], seed["pair"]
        found.append([_strongest(single, "0"), _strongest(single, "1")] == [f"0.{a}", f"1.{b}"])
    return all(found)


def backup_heads_return_only_in_seed_2():
    """A pair exceeds its sum at surname by a nat in seeds 0 and 2, in the others by none of it."""
    beyond = [_most_beyond("surname", seed)[0] for seed in range(5)]
    lost = [record("how_many_heads")["seeds"][2][k] for k in ("single", "together")]
    pair = lost[1]["sets"].index(" ".join(_most_beyond("surname", 2)[1]))
    assert max(lost[0]["mean"]["fall"]["surname"][4:]) < 0.01  # each of them, by itself
    assert lost[1]["fall"]["surname"][pair] > 0.9
    return [n for n in range(5) if beyond[n] > 1] == [0, 2] and sorted(beyond)[2] < 0.05


def least_lost_by_the_one_head_of_layer_1():
    """In the seeds without backup heads, the strongest head of layer 1 loses this at surname."""
    seeds = [seed for seed in range(5) if _most_beyond("surname", seed)[0] < 0.05]
    singles = [_increases("surname", seed)[0] for seed in seeds]
    return min(single[_strongest(single, "1")] for single in singles)


def lost_by_one_head_at_outer_bracket_in_three_seeds():
    """The third largest of five seeds of what one head loses in the form at outer bracket."""
    return sorted(max(_increases("outer bracket", seed)[0].values()) for seed in range(5))[-3]


def most_beyond_at_outer_bracket(part):
    """The pair of a seed exceeds its sum at outer bracket most by this, least and most."""
    beyond = [_most_beyond("outer bracket", seed, part)[0] for seed in range(5)]
    return [round(min(beyond), 2), round(max(beyond), 2)]


def closing_brackets_after_one():
    """In the documents that are measured, a closing bracket follows another in so many cases."""
    ids = _measured()[2].ids
    closing = np.isin(ids, [ID[")"], ID["]"]])
    return closing[:, 1:][closing[:, :-1]].mean()


def gates(row, is_open):
    """The heads whose gates are open, or closed, in a row of the table that the chapter prints."""
    table = printed_under("22_ablation", "gates")
    gates = table[["keep surname", "ruin surname", "keep attractor", "ruin attractor"].index(row)]
    return [n for n, gate in zip(NAMES, gates, strict=True) if (gate > 0.5) == is_open]


def closed_to_ruin_attractor():
    """The heads whose gates close to ruin attractor."""
    return gates("ruin attractor", False)


@cache
def _measured():
    """The example, ids of the documents that means are of, and the documents that are measured."""
    model = TinyModel.of(checkpoint("known_text"))
    others, documents = (sample_documents(np.random.default_rng(seed), 100) for seed in (1, 2))
    return model, others.ids[:, :-1], documents


@cache
def _logits_by_mean_and_by_position():
    """The logits without each head, by one mean and by a mean for each position."""
    model, others, documents = _measured()
    traces, pairs = run(model, others)[1], []
    for head, output in replacement_outputs(model, ALL_HEADS, others).items():
        by_position = traces[head[0]].heads[:, head[1]].mean(axis=0)
        outputs = (output, by_position)
        pairs.append([run_with(model, documents.ids[:, :-1], {head: each}) for each in outputs])
    return pairs


def _by_mean_and_by_position(measure):
    """Yield for each head what its ablation gives, by one mean and by a mean for each position."""
    documents = _measured()[2]
    for pair in _logits_by_mean_and_by_position():
        yield [measure(logits, documents) for logits in pair]


def most_that_means_by_position_change():
    """A mean for each position, not one, changes no head's increase by more than this."""
    return max(abs(each.mean() - one.mean()) for one, each in _by_mean_and_by_position(excess_loss))


def most_that_means_by_position_change_at_a_task():
    """The same for the loss of the form at each task."""
    pairs = _by_mean_and_by_position(form_loss)
    return max(abs(each[task] - one[task]) for one, each in pairs for task in one)


def right_without_both_backups():
    """Without the backup heads, this fraction of surnames is right; with one of them all are."""
    model, others, documents = _measured()
    means, right = replacement_outputs(model, ALL_HEADS, others), []
    both = [ALL_HEADS[NAMES.index(name)] for name in backups_at_surname()]
    for removed in (both[:1], both[1:], both):
        outputs = {head: means[head] for head in removed}
        logits = run_with(model, documents.ids[:, :-1], outputs)
        right.append(accuracy(logits, documents)["surname"])
    assert min(right[:2]) > 0.995
    return right[2]


def weights_on_the_subject():
    """The weight of head 1.2 on the subject at attractor, and without heads 0.0 and 0.3."""
    model, others, documents = _measured()
    target = documents.target_of("attractor")
    n, t = np.nonzero(target >= 0)
    means, found = replacement_outputs(model, ALL_HEADS, others), []
    closed = [ALL_HEADS[NAMES.index(name)] for name in closed_to_ruin_attractor()]
    layer, head = ALL_HEADS[NAMES.index(strongest_at_attractor())]
    low = run(model, documents.ids[:, :-1])[1][0]
    for removed in ([], closed):
        heads = low.heads.copy()
        for _, h in removed:
            heads[:, h] = means[0, h]
        X = low.X + concat_heads(heads) @ low.params.W_O
        weights = trace(X, model.layers[layer], mask=causal_mask(X.shape[1])).weights
        found.append(weights[n, head, t, target[n, t]].mean())
    return found


def largest_difference_of_zero_and_mean_ablation():
    """The losses of a head replaced by zero and by its mean differ by at most this many nats."""
    lost = printed_under("22_ablation", "increase in loss, all words")
    return max(abs(zero - mean) for zero, mean, _ in lost)


def most_that_zero_and_mean_differ_in_five_seeds():
    """Over heads and seeds, the losses by zero and by the mean differ by at most this."""
    losses = [[seed["single"][how]["loss"] for how in ("zero", "mean")] for seed in _seeds()]
    return round(np.max(np.abs(np.diff(losses, axis=1))), 2)


def costs_twice_as_much_by_zero_in_seed_3():
    """The head of seed 3 by which the two differ most; its loss rises twice as much by zero."""
    zero, mean = (np.array(_seeds()[3]["single"][how]["loss"]) for how in ("zero", "mean"))
    most = np.argmax(abs(zero - mean))
    assert 1.9 < zero[most] / mean[most] < 2.1
    return NAMES[most]


def _best_sets(seed):
    return [set(names.split()) for names in _seeds()[seed]["greedy"]["best"]["sets"]]


def greedy_misses_the_best_set_in_seeds_1_3_and_4():
    """At one, five and two of the sizes the greedy set is not the best, elsewhere it is."""
    missed = []
    for n, seed in enumerate(_seeds()):
        greedy = [set(seed["greedy"]["order"][: size + 1]) for size in range(8)]
        missed.append(sum(one != best for one, best in zip(greedy, _best_sets(n), strict=True)))
    return missed == [0, 1, 0, 5, 2]


def removed_too_early_in_seed_3():
    """Its second choice, which is in the best pair and in no best set of three to seven heads."""
    second, best = _seeds()[3]["greedy"]["order"][1], _best_sets(3)
    assert second in best[1]
    assert not any(second in heads for heads in best[2:7])
    return second


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


def pairs_of_seeds_that_the_rank_test_tolerates():
    """The largest U of two groups of five whose two-sided rank test is below 5 percent."""
    sums = [sum(ranks) - 10 for ranks in combinations(range(5 + 5), 5)]
    chances = [2 * sum(total <= most for total in sums) / len(sums) for most in range(25)]
    return max(most for most, chance in enumerate(chances) if chance < LEVEL)


def _closed_to_ruin_attractor(seed):
    gates = _seeds()[seed]["gates"]["attractor"]["ruin"]["gates"]
    return [name for name, gate in zip(NAMES, gates, strict=True) if gate <= 0.5]


def how_the_gates_ruin_attractor_in_five_seeds():
    """Heads of each layer that are closed in each seed; the strongest of layer 1 never is."""
    closed, spared = [], []
    for seed in range(5):
        names = _closed_to_ruin_attractor(seed)
        closed.append(tuple(sum(name.startswith(layer) for name in names) for layer in "01"))
        spared.append(_strongest(_increases("attractor", seed)[0], "1") not in names)
    return sorted(closed) == [(1, 0), (2, 0), (2, 0), (2, 0), (2, 1)] and all(spared)


def loss_of_the_ruined_attractor():
    """The loss of the form with these gates rises by this, least and most of five seeds."""
    rises = [seed["gates"]["attractor"]["ruin"]["form"] for seed in _seeds()]
    return [min(rises), max(rises)]


def only_in_seed_0_the_strongest_head_is_left_open():
    """The strongest head at attractor is closed in all other seeds, where it is in layer 0."""
    found = []
    for seed in range(5):
        single = _increases("attractor", seed)[0]
        strongest = max(single, key=single.get)
        found.append((strongest[0], strongest in _closed_to_ruin_attractor(seed)))
    return found == [("1", False)] + 4 * [("0", True)]


def the_gate_that_keeps_brackets():
    """The only gate that is open at all to keep brackets, least and most of five seeds."""
    gates = [[g for g in s["gates"]["bracket"]["keep"]["gates"] if g > 0] for s in _seeds()]
    assert all(len(opened) == 1 for opened in gates)
    return [min(gates)[0], max(gates)[0]]


def at_most_three_gates_are_open_to_keep_a_task():
    """In no seed are more than three gates open above a half, for brackets in three seeds none."""
    opened = {}
    for seed in _seeds():
        for task, ways in seed["gates"].items():
            opened.setdefault(task, []).append(sum(g > 0.5 for g in ways["keep"]["gates"]))
    none = {task: n.count(0) for task, n in opened.items() if 0 in n}
    return max(max(n) for n in opened.values()) == 3 and none == {"bracket": 3}


def four_of_five_rounded_sets_are_the_best():
    """At all tasks but pronoun, the rounded gates raise the loss by as much as the best set."""
    table = printed_under("22_ablation", "increase in loss, seed 0")
    return [n for n, (gates, best) in enumerate(table) if gates != best] == [2]


@cache
def _models():
    return record("how_many_heads")["models"]


def _ends(part):
    return np.array([run["excess_loss"][-1] for run in part["runs"]])


def _opposite(one, other):
    """Of the pairs of a seed each, how many have the smaller loss in the worse of two models."""
    lower = int((_ends(one)[:, None] < _ends(other)).sum())
    return min(lower, 25 - lower)


def loss_at_which_many_surnames_are_missed():
    """The loss above which no run is right on 70 % of the surnames, and below which all are."""
    right = {loss > 0.05: [] for loss, _ in _runs()}
    for loss, known in _runs():
        right[loss > 0.05].append(known)
    assert max(right[True]) < 0.7 < min(right[False])
    return 0.05


def most_surnames_right_at_such_a_loss():
    """The largest fraction of surnames that is right in a run above this loss."""
    return max(known for loss, known in _runs() if loss > loss_at_which_many_surnames_are_missed())


def trials_above_this_loss_at_the_chosen_rate():
    """For 1 and 16 heads, and for no other model, one of the two trials ends above it."""
    most, found = loss_at_which_many_surnames_are_missed(), {}
    for name, model in _models().items():
        chosen = next(row for row in model["tried"] if row["rate"] == model["rate"])
        found[name] = sum(loss > most for loss in chosen["seeds"])
    return {name: n for name, n in found.items() if n} == {"1 head": 1, "16 heads": 1}


def pairs_of_seeds_that_favour(name):
    """At the chosen rates, so many pairs of seeds favour this number of heads over four."""
    return _opposite(_models()[name], _models()["4 heads"])


def none_is_distinguishable_at_the_chosen_rates():
    """At the chosen rates, the seeds of 1, 2, 8 and 16 heads overlap with those of 4."""
    models = _models()
    others = (name for name in models if "head" in name and name != "4 heads")
    return all(_opposite(models[name], models["4 heads"]) for name in others)


def one_and_sixteen_are_distinguishable_at_the_second_rates():
    """At the second-best rates, the seeds of 1 and of 16 heads all lie above those of 4."""
    models = {name: m["second"] for name, m in _models().items() if "head" in name}
    four = models.pop("4 heads")
    apart = [name for name, model in models.items() if not _opposite(model, four)]
    return apart == ["1 head", "16 heads"]


def no_variant_of_W_O_is_distinguishable():
    """No variant of W_O is distinguishable from a learned W_O, at the best or second-best rate."""
    return _overlap(*(name for name in _models() if "W_O" in name))


def _overlap(*names):
    four = _models()["4 heads"]
    pairs = [(_models()[name], four) for name in names]
    return all(_opposite(*pair) and _opposite(*(m["second"] for m in pair)) for pair in pairs)


def all_W_O_take_the_same_two_rates():
    """Models with 4 heads and all variants of W_O have the best rate 2e-3 and then 4e-3."""
    models = [model for name, model in _models().items() if "W_O" in name or name == "4 heads"]
    return {(model["rate"], model["second"]["rate"]) for model in models} == {(2e-3, 4e-3)}


def only_four_heads_know_in_all_seeds():
    """Only with 4 heads do all five seeds know the surnames, at both rates."""
    known = {}
    for name in (name for name in _models() if "W_O" not in name):
        for part in (_models()[name], _models()[name]["second"]):
            right = [run["accuracy"]["surname"][-1] > 0.99 for run in part["runs"]]
            known.setdefault(name, []).append(sum(right))
    return known.pop("4 heads") == [5, 5] and max(max(n) for n in known.values()) < 5


@cache
def _runs(*, second=True):
    """Of all numbers of heads, at the best rate and the second: loss and surnames right."""
    models = [model for name, model in _models().items() if "W_O" not in name]
    parts = [part for m in models for part in (m, m["second"])[: 1 + second]]
    runs = [run for part in parts for run in part["runs"]]
    return [(run["excess_loss"][-1], run["accuracy"]["surname"][-1]) for run in runs]


def surnames_of_runs_that_do_not_know(**given):
    """The fractions of surnames right in the runs that do not know them all."""
    return sorted(right for _, right in _runs(**given) if right <= 0.99)


def runs_that_do_not_know():
    """How many do not know the surnames: all, on the plateau, just off it, and the others."""
    right = np.array(surnames_of_runs_that_do_not_know())
    on, far = right <= 0.5, right >= 0.8
    return [len(right), sum(on), sum(~on & ~far), sum(far)]


def known_by_those_that_have_just_left():
    """The least and the largest fraction of surnames right of those just off the plateau."""
    _, on, off, _ = runs_that_do_not_know()
    right = surnames_of_runs_that_do_not_know()[on : on + off]
    return [right[0], right[-1]]


def six_of_eleven_are_on_the_plateau_at_the_chosen_rates():
    """At the chosen rates eleven seeds do not know the surnames, six of them at most half."""
    right = surnames_of_runs_that_do_not_know(second=False)
    return (len(right), sum(known <= 0.5 for known in right)) == (11, 6)


def last_doubling_lowers_sixteen_heads_by():
    """The last doubling of the steps lowers the median of sixteen heads by this many millinats."""
    curves = np.array([run["excess_loss"] for run in _models()["16 heads"]["runs"]])
    half, _, end = np.median(curves, axis=0)[-3:]
    return 1000 * (half - end)

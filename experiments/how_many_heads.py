"""Take heads away, and train models with other numbers of heads, and with other W_O.

Models of the known text, trained as `known_text` trains its arms: two layers of 1, 2, 4, 8 and 16
heads, which all have exactly as many numbers; and without W_O, with one that stays as it was drawn,
or merged into the values, each at equal widths and with equally many parameters. Three rates are
tried, each from two seeds and for all steps, since a run that is stopped on the plateau before the
surnames are found says little; the model then trains from five seeds at the best of them, and, as
two seeds can mislead, at the second best too. Then heads of the five models of four heads are
taken away: each by zero, by its mean and by what it gives for other documents; each pair, each
layer, all; one after the other, always the one that costs least, beside the best of all sets of
each size; and by gates that are learned, for each of five tasks, to keep it with few heads open, or
to ruin it with few closed. Pruning chooses on documents of its own, gates are learned on others,
and all is reported on a third set; the mean of a head is of a fourth.

Writes src/tutorial_lib/data/results/how_many_heads.json, anew behind each model. What is trained is
kept in _build/known_text, so a run that was stopped goes on where it was; heads are
taken away anew in each.
"""

from functools import partial
from itertools import combinations

import numpy as np

from experiments import known_text
from experiments.known_text import EXAMPLE, SEEDS, STEPS, TEST, VALIDATION, held_out_documents
from experiments.measuring import progress, rounded, write
from experiments.scored_heads import (
    MEANS,
    ablation_costs,
    all_heads,
    forward,
    group_by_task,
    head_name,
    losses_by_task,
)
from tutorial_lib import records
from tutorial_lib.models import entropy, grammar
from tutorial_lib.models.ablation import (
    gate_gradients,
    gated,
    learn_gates,
    prune_greedily,
    replacement_outputs,
)

GATED = 8000  # seed of the documents on which gates are learned
SEED = [*known_text.SEED, MEANS, GATED]
FOUR = EXAMPLE._replace(name="4 heads")
NO_OUTPUT = FOUR._replace(name="no W_O", output="none")
FROZEN = FOUR._replace(name="frozen W_O", output="frozen")
FOLDED = FOUR._replace(name="merged W_O", output="folded", d_v=64)
WIDER = {"d_k": 24, "d_v": 16}  # queries and keys get the numbers that W_O had
MODELS = {
    **{
        f"{h} head{'s' * (h > 1)}": FOUR._replace(heads=h, kv_heads=h, d_k=64 // h)
        for h in (1, 2, 4, 8, 16)
    },
    "no W_O, equal parameters": NO_OUTPUT._replace(**WIDER),
    "frozen W_O, equal parameters": FROZEN._replace(**WIDER),
    "merged W_O, equal parameters": FOLDED._replace(heads=2, kv_heads=2, d_k=32),
    "no W_O": NO_OUTPUT,
    "frozen W_O": FROZEN,
    "merged W_O": FOLDED,
}
WAYS = ("zero", "mean", "resample")
JOBS = ("attractor", "reflexive", "pronoun", "bracket", "surname")  # of which gates are learned
PRICE, LEARNED_ON = 0.3, 40  # nats of a gate that is open; documents


def count_trainable_parameters(arm):
    """Return how many numbers of an arm are learned."""
    return sum(array.numel() for array in known_text.init_arrays(arm, 0) if array.requires_grad)


def train_at_two_rates(name):
    """Train a model from every seed at its two best rates; return its part of the record."""
    arm = MODELS[name]
    tried = known_text.tried_rates(arm)
    chosen, second = sorted(tried, key=lambda row: row["excess_loss"])[:2]
    found, other = (known_text.train_all_seeds(arm, row["rate"], tried) for row in (chosen, second))
    for part in (found, *found["runs"], *other["runs"]):
        part.pop("bands")
    widths = {"d_v": arm.values, "learned": count_trainable_parameters(arm), "output": arm.output}
    found = {name: found[name] for name in ("heads", "d_k")} | widths | found
    return found | {"second": {part: other[part] for part in ("rate", "excess_loss", "runs")}}


def documents_and_baseline(model, seed):
    """Return documents of a seed with what there is before heads go: costs, and traces."""
    documents = held_out_documents(seed)
    logits, traces = forward(model, documents.ids[:, :-1])
    return documents, (losses_by_task(logits, documents), traces)


def ablate_singles(model, given, others):
    """Return by way what each head alone costs."""
    found = {}
    for how in WAYS:
        outputs = replacement_outputs(model, all_heads(model), others, how)
        rows = [ablation_costs(model, *given, {head: outputs[head]}) for head in all_heads(model)]
        found[how] = group_by_task(rows)
    return found


def ablate_groups(model, given, outputs):
    """Return what pairs, layers and all heads cost, by the mean."""
    pairs = list(combinations(all_heads(model), 2))
    groups = {"layer 0": [h for h in outputs if not h[0]], "layer 1": [h for h in outputs if h[0]]}
    groups["all"] = list(outputs)
    sets = {" ".join(map(head_name, pair)): pair for pair in pairs} | groups
    rows = [
        ablation_costs(model, *given, {head: outputs[head] for head in part})
        for part in sets.values()
    ]
    return {"sets": list(sets)} | group_by_task(rows)


def losses_of_sets(model, documents, outputs):
    """Return the loss over all words without each set of heads, the empty one first.

    Nothing comes after the last layer, so each of its heads changes the logits by a term of its
    own, and one run for each set of the first layer is enough.
    """
    below, above = (subsets([head for head in outputs if head[0] == layer]) for layer in (0, 1))
    params, found = model.layers[1], {}
    rows = params.W_O.reshape(params.n_heads, params.d_v, -1)
    for low in below:
        given = {head: outputs[head] for head in low}
        logits, (_, top) = forward(model, documents.ids[:, :-1], given)
        terms = {
            (1, h): (outputs[1, h] - top.heads[:, h]) @ rows[h] @ model.U for h in range(len(rows))
        }
        for high in above:
            end = logits + sum(terms[head] for head in high)
            found[low + high] = entropy.excess_loss(end, documents).mean()
    return found


def subsets(heads):
    """Return every set of heads, the empty one first."""
    return [part for n in range(len(heads) + 1) for part in combinations(heads, n)]


def prune(model, chosen_on, given, outputs):
    """Return the greedy order and the best set of each size, where chosen and elsewhere."""
    table, heads = losses_of_sets(model, chosen_on, outputs), all_heads(model)
    order, losses = prune_greedily(heads, lambda removed: table[tuple(sorted(removed))])
    sizes = range(1, len(heads) + 1)
    best = [min((part for part in table if len(part) == n), key=table.get) for n in sizes]
    rows, of_best = (
        [ablation_costs(model, *given, {head: outputs[head] for head in part}) for part in parts]
        for parts in ([order[:n] for n in sizes], best)
    )
    found = {"sets": [" ".join(map(head_name, part)) for part in best]}
    found |= {"chosen": [table[part] for part in best], "loss": [row["loss"] for row in of_best]}
    names = list(map(head_name, order))
    return {"order": names, "chosen": losses} | group_by_task(rows) | {"best": found}


def train_gates(model, few, outputs, task, sign):
    """Learn gates: sign 1 to keep a task with few open, -1 to ruin it with few closed."""

    def slopes(gates):
        found = gate_gradients(model, few, task, gates, outputs)[1]
        return {head: sign * (slope + PRICE) for head, slope in found.items()}

    return learn_gates(dict.fromkeys(outputs, float(sign > 0)), slopes, price=PRICE)


def evaluate_gates(model, given, outputs):
    """Return by task gates that are learned on its form, and how much they raise both losses."""
    few = grammar.sample_documents(np.random.default_rng(GATED), LEARNED_ON)
    documents, (before, _) = given
    found = {}
    for task, (name, sign) in ((t, w) for t in JOBS for w in (("keep", 1), ("ruin", -1))):
        gates = train_gates(model, few, outputs, task, sign)
        after = losses_by_task(gated(model, documents.ids[:, :-1], gates, outputs), documents)
        rise = {part: after[part][task] - before[part][task] for part in ("form", "nats")}
        row = {"gates": list(gates.values()), **rise}
        found.setdefault(task, {})[name] = row
        progress(f"gates, {task}, {name}")
    return found


def ablate_model(seed):
    """Return everything that is found when heads of one model, the example's, are taken away."""
    rate = records.record("known_text")["heads"][EXAMPLE.name]["rate"]
    model = known_text.half_precision_model(FOUR, seed, rate)
    given, others = documents_and_baseline(model, TEST), held_out_documents(MEANS).ids[:, :-1]
    outputs = replacement_outputs(model, all_heads(model), others)
    parts = {
        "single": partial(ablate_singles, model, given, others),
        "together": partial(ablate_groups, model, given, outputs),
        "greedy": partial(prune, model, held_out_documents(VALIDATION), given, outputs),
        "gates": partial(evaluate_gates, model, given, outputs),
    }
    found = {"seed": seed}
    for name, part in parts.items():
        progress(f"seed {seed}: {name}")
        found[name] = part()
    return rounded(found)


def settings():
    """Return what all models share, and which documents are which."""
    found = known_text.settings() | {"tried_for": STEPS, "price": PRICE, "learned_on": LEARNED_ON}
    seeds = {"test": TEST, "validation": VALIDATION, "means": MEANS, "gates": GATED}
    names = [head_name((layer, head)) for layer in range(2) for head in range(4)]
    return found | {"seeds": seeds, "heads": names}


def main(record):
    """Train every model and take heads away, and write the record anew behind each."""
    record["settings"] = settings()
    for name in MODELS:
        found = record.setdefault("models", {})[name] = train_at_two_rates(name)
        progress("")
        print(f"{name}: {found['excess_loss']}, rate {found['rate']}", flush=True)
        write("how_many_heads", record)
    for seed in SEEDS:
        record.setdefault("seeds", []).append(ablate_model(seed))
        write("how_many_heads", record)

"""What computes the keys of chapter 22: from the model, its documents, and small sums."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np

from tutorial_lib import init_params, multi_head_attention, trace
from tutorial_lib.models.ablation import gated, prune_greedily, replacement_outputs
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import excess_loss, form_loss
from tutorial_lib.models.grammar import TASKS, sample_documents
from tutorial_lib.models.head_scores import run_with
from tutorial_lib.records import checkpoint

HEADS = [(layer, head) for layer in range(2) for head in range(4)]


@cache
def measured():
    """The example, documents that the chapter does not sample, and replacement outputs of heads."""
    model = TinyModel.of(checkpoint("known_text"))
    others, documents = (sample_documents(np.random.default_rng(seed), 60) for seed in (7, 8))
    return model, documents, replacement_outputs(model, HEADS, others.ids[:, :-1])


@cache
def losses(removed):
    """The excess loss of each word, and the loss of the form by task, without these heads."""
    documents = measured()[1]
    logits = _logits(removed, documents)
    return excess_loss(logits, documents), form_loss(logits, documents)


def _increase(removed, task=None):
    """The increase in the loss of the whole word without these heads, everywhere or at one task."""
    task_of = measured()[1].task
    words = task_of == task_of if task is None else task_of == TASKS.index(task)
    return (losses(tuple(sorted(removed)))[0] - losses(())[0])[words].mean()


def _increase_of_form(removed, task):
    """The increase in the loss of the form at one task."""
    return losses(tuple(sorted(removed)))[1][task] - losses(())[1][task]


def increase_of_composed_heads():
    """Whether 0.0 and 1.0 raise the loss by their sum, as much as 0.0, more, or as 1.0."""
    sets = [(0, 0)], [(1, 0)], [(0, 0), (1, 0)]
    first, second, both = (_increase_of_form(removed, "surname") for removed in sets)
    assert abs(first - 2.47) < 0.2
    assert abs(second - 0.58) < 0.2
    return [
        abs(both - first - second) < 0.1,
        abs(both - first) < 0.1,
        both > first + second + 0.1,
        abs(both - second) < 0.1,
    ]


def removed_within_a_twentieth():
    """How many heads greedy pruning removes before 0.05 nats are lost."""
    single = [_increase([head]) for head in HEADS]
    assert abs(single[HEADS.index((1, 2))] - 0.15) < 0.02
    assert sum(loss > 0.05 for loss in single) == 5  # as the answer to "4" says
    _, losses = prune_greedily(HEADS, lambda removed: _increase(removed))
    assert losses[3] - losses[2] > 0.05
    return sum(loss < 0.05 for loss in losses)


def _logits(heads, documents):
    """The logits with the outputs of these heads replaced."""
    model, _, outputs = measured()
    return run_with(model, documents.ids[:, :-1], {head: outputs[head] for head in heads})


def _forms_of_all_sets(task):
    """The loss of the form at a task for each set of heads: heads of layer 1 add to the logits."""
    first, last, documents = HEADS[:4], HEADS[4:], measured()[1]
    some = (documents.task == TASKS.index(task)).any(axis=1)
    documents = replace(documents, **{name: A[some] for name, A in vars(documents).items()})
    for low in (s for n in range(5) for s in combinations(first, n)):
        start = _logits(low, documents)
        changes = {head: _logits([*low, head], documents) - start for head in last}
        for high in (s for n in range(5) for s in combinations(last, n)):
            logits = start + sum(changes[head] for head in high)
            yield low + high, form_loss(logits, documents)[task]


def who_ruins_attractor():
    """Which set raises the loss of the form most at a price of 0.3 nats a closed gate."""
    forms = dict(_forms_of_all_sets("attractor"))

    def gain(removed):
        return forms[removed] - forms[()] - 0.3 * len(removed)

    assert len(forms) == 256
    best = max(forms, key=gain)
    single = {head: forms[head,] - forms[()] for head in HEADS}
    idle = [head for head, rise in single.items() if rise < 0.02]
    assert abs(single[1, 2] - 1.08) < 0.2
    assert abs(single[0, 0] - 0.70) < 0.2
    assert len(idle) == 6
    assert gain(best) - gain(((0, 0), (1, 2))) > 1
    return [
        best == ((1, 2),),
        best == ((0, 0), (1, 2)),
        (0, 0) in best and len(best) == 2 and bool(set(best) & set(idle)),
        best == tuple(HEADS),
    ]


def beyond_the_sum():
    """The joint increase in loss minus the sum of the single ones."""
    whole, a, b, both = 1.0, 1.1, 1.2, 2.5
    increases = [loss - whole for loss in (a, b, both)]
    return f"{increases[2] - increases[0] - increases[1]:.1f}"


def logit_difference_of_a_half_open_gate():
    """What a gate of 0.5 leaves of a logit difference of 6, on a model whose last head adds it."""
    model, documents, outputs = measured()
    ids, head = documents.ids[:3, :-1], (1, 3)
    own, mean = run(model, ids)[0], run_with(model, ids, {head: outputs[head]})
    half = gated(model, ids, {head: 0.5}, outputs)
    fraction = (half - mean)[0, -1] / (own - mean)[0, -1]
    assert np.allclose(fraction, 0.5)
    return f"{fraction[0] * 6:.0f}"


def rows_that_ablate_a_head():
    """Which change of a layer's matrices gives the Y of a layer whose head 2 outputs zeros."""
    rng = np.random.default_rng(22)
    params, X = init_params(rng, d_model=12, n_heads=4), rng.standard_normal((5, 12))
    concat = trace(X, params).concat.copy()
    concat[:, 6:9] = 0
    right = concat @ params.W_O
    rows, columns, W_Q, W_K = map(np.copy, (params.W_O, params.W_O, params.W_Q, params.W_K))
    rows[6:9], columns[:, 6:9], W_Q[2], W_K[2] = 0, 0, 0, 0
    changes = {"W_O": rows}, {"W_O": columns}, {"W_Q": W_Q}, {"W_K": W_K}
    layers = [type(params)(**vars(params) | change) for change in changes]
    return [np.allclose(multi_head_attention(X, layer), right) for layer in layers]


def more_and_narrower():
    """How the parameters and the scores of a layer of 8 heads compare with those of 4."""
    rng, X = np.random.default_rng(4), np.ones((9, 64))
    layers = [init_params(rng, d_model=64, n_heads=H) for H in (4, 8)]
    assert [layer.d_k for layer in layers] == [16, 8]
    few, many = (sum(W.size for W in vars(layer).values()) for layer in layers)
    ratio = many / few, trace(X, layers[1]).scores.size / trace(X, layers[0]).scores.size
    return [ratio == (2, 2), ratio == (1, 2), ratio == (1, 1), ratio == (0.5, 1)]

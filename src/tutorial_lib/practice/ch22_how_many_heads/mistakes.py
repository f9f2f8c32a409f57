"""Wrong forms of the functions of chapter 22."""

import numpy as np

from tutorial_lib.models.ablation import gated, stand_ins
from tutorial_lib.models.copying import run
from tutorial_lib.models.head_scores import run_with
from tutorial_lib.practice.mistake import Mistake


def _always(way):
    def ablate(model, ids, heads, others, *, how="mean"):
        return run_with(model, ids, stand_ins(model, heads, others, way))

    return ablate


def _own_texts(model, ids, heads, others, *, how="mean"):
    return run_with(model, ids, stand_ins(model, heads, ids, how))


def _mean_by_place(model, ids, heads, others, *, how="mean"):
    outputs = stand_ins(model, heads, others, "resample")
    if how == "mean":
        outputs = {head: output.mean(axis=0) for head, output in outputs.items()}
    return run_with(model, ids, outputs if how != "zero" else stand_ins(model, heads, ids, how))


def _added_up(model, ids, heads, others, *, how="mean"):
    whole, _ = run(model, ids)
    outputs = stand_ins(model, heads, others, how)
    return whole + sum(run_with(model, ids, {head: outputs[head]}) - whole for head in heads)


def _last_alone(model, ids, heads, others, *, how="mean"):
    return run_with(model, ids, stand_ins(model, heads[-1:], others, how))


_ABLATE = (
    Mistake(
        "always_zero",
        "zero stands in, whatever was asked for",
        "Pass `how` on to stand_ins.",
        _always("zero"),
    ),
    Mistake(
        "always_mean",
        "the mean stands in, whatever was asked for",
        "Pass `how` on to stand_ins.",
        _always("mean"),
    ),
    Mistake(
        "own_texts",
        "what stands in comes from the same texts, and so still tells something of them",
        "Take it from `others`.",
        _own_texts,
    ),
    Mistake(
        "mean_by_place",
        "each place has a mean of its own, which still says where in the text it stands",
        "Take the mean over texts and places: mean(axis=(0, 1)).",
        _mean_by_place,
    ),
    Mistake(
        "added_up",
        "what each head alone changes is added up; heads of later layers never meet the whole gap",
        "Take all heads away in one run: run_with takes a dict of several.",
        _added_up,
    ),
    Mistake(
        "last_alone",
        "only one head of the list is gone",
        "Give run_with an output for every head of the list.",
        _last_alone,
    ),
)


def _grown(heads, loss, choose, gone_with):
    order, losses = [], []
    while left := [head for head in heads if head not in order]:
        found = {head: loss(gone_with(order, head)) for head in left}
        order.append(choose(found, key=found.get))
        losses.append(found[order[-1]])
    return tuple(order), tuple(losses)


def _once(heads, loss, *, report_single=False):
    order = sorted(heads, key=lambda head: loss([head]))
    sizes = range(1, len(heads) + 1)
    losses = (loss([order[n - 1]] if report_single else order[:n]) for n in sizes)
    return tuple(order), tuple(losses)


_PRUNE_GREEDILY = (
    Mistake(
        "ranked_once",
        "heads are ranked once, each alone, and the ranking is never asked again",
        "After each head that goes, try all that are left together with those that are gone.",
        _once,
    ),
    Mistake(
        "each_alone",
        "each loss is that of one head gone, not of all that are gone by then",
        "Ask loss([*order, head]).",
        lambda heads, loss: _once(heads, loss, report_single=True),
    ),
    Mistake(
        "worst_first",
        "the head whose loss is largest goes first",
        "Take away the one that is missed least: min.",
        lambda heads, loss: _grown(heads, loss, max, lambda gone, head: [*gone, head]),
    ),
    Mistake(
        "what_is_left",
        "loss is given the heads that are left, not those that are gone",
        "Ask loss([*order, head]): it takes the heads that are gone.",
        lambda heads, loss: _grown(
            heads, loss, min, lambda gone, head: [h for h in heads if h not in (*gone, head)]
        ),
    ),
)


def _upside_down(model, ids, gates, outputs):
    return gated(model, ids, {head: 1 - gate for head, gate in gates.items()}, outputs)


def _nothing_stands_in(model, ids, gates, outputs):
    return gated(model, ids, gates, {head: 0 * output for head, output in outputs.items()})


def _in_logits(model, ids, gates, outputs):
    """Each gate mixes logits, of the whole model and of the one without its head."""
    whole, _ = run(model, ids)
    return whole + sum(
        (1 - gate) * (run_with(model, ids, {head: outputs[head]}) - whole)
        for head, gate in gates.items()
    )


def _old_output(model, ids, gates, outputs):
    """Heads of later layers give what they gave before any gate moved."""
    _, records = run(model, ids)
    mixed = {}
    for (layer, head), gate in gates.items():
        own = records[layer].heads[..., head, :, :]
        mixed[layer, head] = gate * own + (1 - gate) * outputs[layer, head]
    return run_with(model, ids, mixed)


_GATED = (
    Mistake(
        "upside_down",
        "the gates are upside down: 1 closes",
        "A gate of 1 leaves the head's own output: gate * own + (1 - gate) * other.",
        _upside_down,
    ),
    Mistake(
        "nothing_stands_in",
        "a closed gate gives zeros instead of what stands in",
        "Add (1 - gate) times the head's entry of outputs.",
        _nothing_stands_in,
    ),
    Mistake(
        "in_logits",
        "the gates mix logits, so no layer reads what a gate has changed",
        "Mix the head's output, and let the rest run on.",
        _in_logits,
    ),
    Mistake(
        "old_output",
        "a head of a later layer gives what it gave before the earlier gates moved",
        "Trace each layer anew, on the X that the gates before it have made.",
        _old_output,
    ),
)


def _standard_error(values):
    values = np.asarray(values)
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half, 0.95


_INTERVAL = (
    Mistake(
        "standard_error",
        "it is 1.96 standard errors about the mean, as if five seeds showed their distribution",
        "Return the least, the most, and how surely the median lies between.",
        _standard_error,
    ),
    Mistake(
        "one_sided",
        "the confidence leaves out that all seeds may lie on the other side",
        "All on one side, or all on the other: 1 - 2 / 2**n.",
        lambda values: (min(values), max(values), 1 - 1 / 2 ** len(values)),
    ),
    Mistake(
        "most_first",
        "the most stands first",
        "Return the least, then the most.",
        lambda values: (max(values), min(values), 1 - 2 / 2 ** len(values)),
    ),
)


def _until(heads, loss, most, *, too_far=False):
    gone = []
    while left := [head for head in heads if head not in gone]:
        best = min(left, key=lambda head: loss([*gone, head]))
        if loss([*gone, best]) > most:
            return (*gone, best) if too_far else tuple(gone)
        gone.append(best)
    return tuple(gone)


def _rest(heads, gone):
    return tuple(head for head in heads if head not in gone)


def _ranked_once(heads, loss, most):
    gone = []
    for head in sorted(heads, key=lambda head: loss([head])):
        if loss([*gone, head]) > most:
            break
        gone.append(head)
    return _rest(heads, gone)


_PRUNE_TO = (
    Mistake(
        "one_by_one",
        "it keeps the heads that cost too much alone, and never takes two away together",
        "Ask what a head costs beside those that are gone already: loss([*gone, head]).",
        lambda heads, loss, most: tuple(head for head in heads if loss([head]) > most),
    ),
    Mistake(
        "one_too_many",
        "the head that makes the loss too large is gone too",
        "Ask first, and let the head go only if the loss stays within the limit.",
        lambda heads, loss, most: _rest(heads, _until(heads, loss, most, too_far=True)),
    ),
    Mistake(
        "ranked_once",
        "heads are ranked once, each alone",
        "After each head that goes, look for the next among all that are left.",
        _ranked_once,
    ),
    Mistake(
        "the_gone",
        "it returns the heads that are gone",
        "Return those that are left, in their order.",
        _until,
    ),
)


def _tokens(first, second):
    """Two standard errors over all documents of all seeds, as if each were a model."""
    a, b = first.ravel(), second.ravel()
    error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    return bool(abs(a.mean() - b.mean()) > 2 * error)


_SEEDS_APART = (
    Mistake(
        "over_documents",
        "documents are counted, not seeds: more of them make the same few models look sure",
        "One number for each seed first: mean(axis=1).",
        _tokens,
    ),
    Mistake(
        "pairs",
        "seed 0 is compared with seed 0 and so on, but equal numbers pair nothing",
        "Every seed of the one must lie on the same side of every seed of the other.",
        lambda first, second: len(set((first.mean(axis=1) < second.mean(axis=1)).tolist())) == 1,
    ),
    Mistake(
        "one_way",
        "it asks for the first to be lower, and misses the other way round",
        "Ask for both: all below, or all above.",
        lambda first, second: bool(first.mean(axis=1).max() < second.mean(axis=1).min()),
    ),
    Mistake(
        "every_document",
        "it wants every document of the one below every document of the other",
        "One number for each seed first: mean(axis=1).",
        lambda first, second: bool(first.max() < second.min() or second.max() < first.min()),
    ),
)


def _top(gates, n):
    hard = np.zeros(len(gates))
    hard[np.argsort(-gates, kind="stable")[:n]] = 1.0
    return hard


_WITH_N_OPEN = (
    Mistake(
        "scaled",
        "all gates are scaled, and some pass 1",
        "Shift all by one number and clip; look for the shift whose sum is n.",
        lambda gates, n: gates * n / gates.sum(),
    ),
    Mistake(
        "scaled_and_clipped",
        "after clipping their sum is no longer n",
        "Clip within the search: look for the shift whose clipped sum is n.",
        lambda gates, n: np.clip(gates * n / gates.sum(), 0, 1),
    ),
    Mistake(
        "shifted_once",
        "the shift is right before clipping, and the sum is not n after it",
        "Clip within the search: look for the shift whose clipped sum is n.",
        lambda gates, n: np.clip(gates + (n - gates.sum()) / len(gates), 0, 1),
    ),
    Mistake(
        "hard",
        "the n largest are 1 and the others 0: no gate is left that could turn round",
        "Move each gate as little as the sum allows: shift and clip.",
        _top,
    ),
)


MISTAKES = {
    "ablate": _ABLATE,
    "prune_greedily": _PRUNE_GREEDILY,
    "gated": _GATED,
    "interval": _INTERVAL,
    "prune_to": _PRUNE_TO,
    "seeds_apart": _SEEDS_APART,
    "with_n_open": _WITH_N_OPEN,
}

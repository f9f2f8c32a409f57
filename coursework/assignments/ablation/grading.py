"""Ablation: what each head is worth over all orders, greedy pruning, pairs of seeds."""

from math import comb, factorial
from statistics import NormalDist

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _n_heads(losses):
    return losses.shape[-1].bit_length() - 1


def _sizes(n):
    """How many heads are removed in each of n entries."""
    return np.array([entry.bit_count() for entry in range(n)])


def _rises(losses, h):
    """By how much the loss rises when head h is removed, and how many were before it."""
    before = np.flatnonzero(np.arange(losses.shape[-1]) >> h & 1 == 0)
    return losses[..., before | 1 << h] - losses[..., before], _sizes(losses.shape[-1])[before]


def _worth(losses, weight):
    """For each head the sum of its rises, each times `weight(H, how many went before)`."""
    H, found = _n_heads(losses), []
    for h in range(H):
        rises, before = _rises(losses, h)
        found.append(rises @ np.array([weight(H, n) for n in before]))
    return np.stack(found, axis=-1)


def _fair(H, before):
    return 1 / (H * comb(H - 1, before))


def one_by_one(losses):
    return _worth(losses, lambda H, before: before == 0)


def last_one_standing(losses):
    return _worth(losses, lambda H, before: before == H - 1)


def first_and_last(losses):
    return (one_by_one(losses) + last_one_standing(losses)) / 2


def all_sets_alike(losses):
    return _worth(losses, lambda H, before: 0.5 ** (H - 1))


def falls_not_rises(losses):
    return -_worth(losses, _fair)


def heads_from_the_left(losses):
    return _worth(losses, _fair)[..., ::-1]


def parts_of_1(losses):
    found = _worth(losses, _fair)
    return found / found.sum(axis=-1, keepdims=True)


def sets_of_one_more(losses):
    return _worth(losses, lambda H, before: 1 / (H * comb(H, before)))


def factorials_of_one_more(losses):
    return _worth(
        losses, lambda H, before: factorial(before) * factorial(H - before) / factorial(H)
    )


def sizes_summed(losses):
    return _worth(losses, lambda H, before: 1 / comb(H - 1, before))


def one_order(losses):
    entries = losses[..., [(1 << h) - 1 for h in range(_n_heads(losses) + 1)]]
    return np.diff(entries, axis=-1)


def an_order_and_its_reverse(losses):
    H = _n_heads(losses)
    full = 2**H - 1
    back = losses[..., [full ^ ((1 << h) - 1) for h in range(H + 1)]]
    return (one_order(losses) - np.diff(back, axis=-1)) / 2


def pairs_only(losses):
    singles = one_by_one(losses)
    found = singles.copy()
    for h in range(_n_heads(losses)):
        for other in range(_n_heads(losses)):
            if other != h:
                both = losses[..., 1 << h | 1 << other] - losses[..., 0]
                found[..., h] += (both - singles[..., h] - singles[..., other]) / 2
    return found


def first_in_the_order_left_out(losses):
    return _worth(losses, lambda H, before: (before > 0) / ((H - 1) * comb(H - 1, before)))


def rescaled_singles(losses):
    singles = one_by_one(losses)
    whole = losses[..., -1:] - losses[..., :1]
    return singles * whole / singles.sum(axis=-1, keepdims=True)


WORTHS = (
    Mistake(
        "one_by_one",
        "a head is worth the rise of the loss when only this head is removed",
        "Two heads that back each other up are then worth nothing. Take all orders.",
        one_by_one,
    ),
    Mistake(
        "last_one_standing",
        "a head is worth the rise of the loss when it is removed after all the others",
        "That is one rank of many in the order: take all.",
        last_one_standing,
    ),
    Mistake(
        "first_and_last",
        "it is the mean of being removed first and being removed last",
        "The ranks between count as much as these two.",
        first_and_last,
    ),
    Mistake(
        "all_sets_alike",
        "all sets of heads that are removed before count alike",
        "All *orders* count alike: sets of n heads have n! (H − 1 − n)! of H! orders each.",
        all_sets_alike,
    ),
    Mistake(
        "falls_not_rises",
        "the sign is wrong, or bits were read as heads that are still there",
        "A bit that is 1 means: removed. The loss after, minus the loss before.",
        falls_not_rises,
    ),
    Mistake(
        "heads_from_the_left",
        "the heads are in reverse order",
        "Head 0 is the bit of value 1, head h that of value 2ʰ.",
        heads_from_the_left,
    ),
    Mistake(
        "parts_of_1",
        "the worths are divided by their sum",
        "Leave them in nats: they add up to the loss without any head, minus that with all.",
        parts_of_1,
    ),
    Mistake(
        "sets_of_one_more",
        "a mean over the sets of n heads divides by how many there are among H heads",
        "Head h is none of them: there are comb(H − 1, n).",
        sets_of_one_more,
    ),
    Mistake(
        "factorials_of_one_more",
        "a set of n heads counts n! (H − n)! / H!",
        "After the n and the head itself H − 1 − n are left: n! (H − 1 − n)! / H!.",
        factorials_of_one_more,
    ),
    Mistake(
        "sizes_summed",
        "the means of each rank in the order are summed up",
        "There are H ranks: divide by H.",
        sizes_summed,
    ),
    Mistake(
        "one_order",
        "it is only one order: head 0 is removed first, then head 1",
        "Take the mean over all orders.",
        one_order,
    ),
    Mistake(
        "an_order_and_its_reverse",
        "it is the mean of one order and its reverse",
        "Take the mean over all orders.",
        an_order_and_its_reverse,
    ),
    Mistake(
        "pairs_only",
        "only single heads and pairs are looked at",
        "Three heads that back each other up show in no pair: use the whole table.",
        pairs_only,
    ),
    Mistake(
        "first_in_the_order_left_out",
        "orders in which the head is removed first are left out",
        "A head may be the first: none is removed before it, entry 0.",
        first_in_the_order_left_out,
    ),
    Mistake(
        "rescaled_singles",
        "single ablations are stretched until they add up",
        "That divides what no single head shows by a rule that does not depend on it.",
        rescaled_singles,
    ),
)


def _table(rng, *shape, H):
    """Losses that rise when heads are removed, with pairs and more that are backups."""
    return rng.random((*shape, 2**H)) + _sizes(2**H) * 0.3


def cases_of_worth(rng):
    """Fourteen heads have more orders than a call has time."""
    return [
        Case("three heads", (_table(rng, H=3),), 1),
        Case("six heads, five tasks", (_table(rng, 5, H=6),), 1),
        Case("two batch axes", (_table(rng, 2, 3, H=4),), 1),
        Case("fourteen heads", (_table(rng, H=14),), 1),
    ]


def _greedily(choose, pick=np.argmin):
    """The entries of greedy pruning; first, none is removed."""
    H, entries = _n_heads(choose), [0]
    for _ in range(H):
        left = [h for h in range(H) if not entries[-1] >> h & 1]
        found = [choose[entries[-1] | 1 << h] for h in left]
        entries.append(entries[-1] | 1 << left[pick(found)])
    return entries


def _best(choose, pick=np.argmin):
    """Of each number of heads the entry with the least loss."""
    sizes, entries = _sizes(len(choose)), []
    for n in range(_n_heads(choose) + 1):
        found = np.flatnonzero(sizes == n)
        entries.append(found[pick(choose[found])])
    return entries


def _last_least(losses):
    return np.flatnonzero(losses == np.min(losses))[-1]


def _reported(report, *entries):
    return np.stack([report[np.array(column)] for column in entries], axis=-1)


def _both(choose, report):
    return _reported(report, _greedily(choose), _best(choose))


def chosen_where_reported(losses):
    return _both(losses[1], losses[1])


def reported_where_chosen(losses):
    return _both(losses[0], losses[0])


def rows_exchanged(losses):
    return _both(losses[1], losses[0])


def ranked_once(losses):
    H = _n_heads(losses)
    order = np.argsort([losses[0, 1 << h] for h in range(H)], kind="stable")
    entries = [0, *np.cumsum(1 << order)]
    return _reported(losses[1], entries, _best(losses[0]))


def built_up_from_none(losses):
    H = _n_heads(losses)
    entries = [2**H - 1]
    for _ in range(H):
        there = [h for h in range(H) if entries[-1] >> h & 1]
        found = [losses[0, entries[-1] ^ 1 << h] for h in there]
        entries.append(entries[-1] ^ 1 << there[np.argmin(found)])
    return _reported(losses[1], entries[::-1], _best(losses[0]))


def most_harmful_first(losses):
    return _reported(losses[1], _greedily(losses[0], np.argmax), _best(losses[0]))


def last_of_a_tie(losses):
    return _reported(losses[1], _greedily(losses[0], _last_least), _best(losses[0], _last_least))


def last_of_a_tie_by_greed(losses):
    return _reported(losses[1], _greedily(losses[0], _last_least), _best(losses[0]))


def last_of_a_tie_of_the_best(losses):
    return _reported(losses[1], _greedily(losses[0]), _best(losses[0], _last_least))


def bits_of_heads_left(losses):
    return _both(losses[0, ::-1], losses[1, ::-1])


def best_chosen_where_reported(losses):
    return _reported(losses[1], _greedily(losses[0]), _best(losses[1]))


def best_goes_on_from_the_best(losses):
    greedy = _greedily(losses[0])
    return _reported(losses[1], greedy, greedy)


def greed_comes_second(losses):
    return _both(*losses)[:, ::-1]


def that_many_or_fewer(losses):
    sizes, entries = _sizes(losses.shape[-1]), []
    for n in range(_n_heads(losses) + 1):
        found = np.flatnonzero(sizes <= n)
        entries.append(found[np.argmin(losses[0, found])])
    return _reported(losses[1], _greedily(losses[0]), entries)


def rows_of_heads_left(losses):
    return _both(*losses)[::-1]


def rises_reported(losses):
    return _both(*losses) - losses[1, 0]


PRUNED = (
    Mistake(
        "chosen_where_reported",
        "heads are chosen on the documents that the loss is reported on",
        "Row 0 chooses, row 1 reports.",
        chosen_where_reported,
    ),
    Mistake(
        "reported_where_chosen",
        "the loss is that of the documents on which the heads were chosen",
        "Row 0 chooses, row 1 reports.",
        reported_where_chosen,
    ),
    Mistake(
        "rows_exchanged",
        "row 1 chooses and row 0 reports",
        "Row 0 chooses, row 1 reports.",
        rows_exchanged,
    ),
    Mistake(
        "ranked_once",
        "heads are ranked only once, by what each costs by itself",
        "Ask anew after each head: what is the smallest loss with one more removed?",
        ranked_once,
    ),
    Mistake(
        "built_up_from_none",
        "greedy pruning begins without heads and puts one back after the other",
        "Begin with all heads and remove one after the other.",
        built_up_from_none,
    ),
    Mistake(
        "most_harmful_first",
        "greedy pruning removes the head without which the loss is largest",
        "It removes the head without which the loss is smallest.",
        most_harmful_first,
    ),
    Mistake(
        "last_of_a_tie",
        "of equal losses the last is taken, in greedy pruning and among the best",
        "Greedy pruning takes the head with the smaller number; the best set is the smaller entry.",
        last_of_a_tie,
    ),
    Mistake(
        "last_of_a_tie_by_greed",
        "of equal losses greedy pruning takes the head with the larger number",
        "The smaller: np.argmin finds the first.",
        last_of_a_tie_by_greed,
    ),
    Mistake(
        "last_of_a_tie_of_the_best",
        "of equally good sets the larger entry is taken",
        "The smaller: np.argmin finds the first.",
        last_of_a_tie_of_the_best,
    ),
    Mistake(
        "bits_of_heads_left",
        "a bit is read as: this head is there",
        "A bit that is 1 means: removed. Entry 0 is the whole model.",
        bits_of_heads_left,
    ),
    Mistake(
        "best_chosen_where_reported",
        "the best set is the one with the smallest reported loss",
        "Choose it on row 0 too: what was picked for its loss looks better than it is.",
        best_chosen_where_reported,
    ),
    Mistake(
        "best_goes_on_from_the_best",
        "the best set of n holds the best set of n − 1",
        "That is greedy pruning. Look at all sets of n heads.",
        best_goes_on_from_the_best,
    ),
    Mistake(
        "greed_comes_second",
        "the two columns have changed places",
        "Greedy pruning first, then the best.",
        greed_comes_second,
    ),
    Mistake(
        "that_many_or_fewer",
        "the best set may remove fewer heads than the row says",
        "Row n is about exactly n heads.",
        that_many_or_fewer,
    ),
    Mistake(
        "rows_of_heads_left",
        "row n is about n heads that are left",
        "Row 0 is the whole model, row H is without any head.",
        rows_of_heads_left,
    ),
    Mistake(
        "rises_reported",
        "the loss of the whole model is subtracted",
        "Return the losses as they are in row 1.",
        rises_reported,
    ),
)


def _telling(sample):
    """Sample a table until each mistake gives a different value on it: not every tie matters."""
    while True:
        losses = sample()
        values = [_both(*losses), *(mistake.function(losses) for mistake in PRUNED)]
        if len({value.tobytes() for value in values}) == len(values):
            return losses


def cases_of_pruning(rng):
    """Two sets of documents that agree in part; losses in steps, so that some tie."""

    def table(H):
        shared = _table(rng, H=H)
        return shared + 0.4 * rng.standard_normal((2, 2**H))

    def steps():
        return np.stack([rng.integers(0, 4, 2**5), rng.permutation(2**5)]) + 0.0

    return [
        Case("four heads", (table(4),), 1),
        Case("five heads, losses that tie", (_telling(steps),), 1),
        Case("eight heads", (table(8),), 1),
    ]


def _differences(one, other, tokens):
    """For each seed by how many nats per token `one` is above `other`, sorted."""
    return np.sort((one - other).sum(axis=-1) / tokens.sum())


def _sure(n, k):
    """How sure the median lies between the k-th smallest and the k-th largest of n."""
    return 1 - 2 * sum(comb(n, i) for i in range(k)) / 2**n


def _between(values, wanted, *, sure=_sure, more=0, enough=np.greater_equal):
    """The narrowest interval that is sure enough, or the widest that there is."""
    n = len(values)
    ranks = [k for k in range(1, (n + 1) // 2 + 1) if enough(sure(n, k), wanted)]
    k = min(max(ranks, default=1) + more, (n + 1) // 2)
    return np.array([values[k - 1], values[-k], sure(n, k)])


def seeds_unpaired(one, other, tokens, wanted):
    values = (np.sort(each.sum(axis=-1)) / tokens.sum() for each in (one, other))
    first, second = values
    return _between(np.sort(first - second), wanted)


def subtracted_the_other_way(one, other, tokens, wanted):
    return _between(_differences(other, one, tokens), wanted)


def over_documents(one, other, tokens, wanted):
    return _between(np.sort((one - other).mean(axis=0) / tokens), wanted)


def all_documents_of_all_seeds(one, other, tokens, wanted):
    return _between(np.sort(((one - other) / tokens).ravel()), wanted)


def mean_of_ratios(one, other, tokens, wanted):
    return _between(np.sort(((one - other) / tokens).mean(axis=-1)), wanted)


def nats_per_document(one, other, tokens, wanted):
    return _between(np.sort((one - other).mean(axis=-1)), wanted)


def range_of_all_seeds(one, other, tokens, wanted):
    return _between(_differences(one, other, tokens), 1)


def one_side_only(one, other, tokens, wanted):
    def sure(n, k):
        return (1 + _sure(n, k)) / 2

    return _between(_differences(one, other, tokens), wanted, sure=sure)


def sum_goes_one_too_far(one, other, tokens, wanted):
    def sure(n, k):
        return _sure(n, k + 1)

    return _between(_differences(one, other, tokens), wanted, sure=sure)


def one_rank_too_narrow(one, other, tokens, wanted):
    return _between(_differences(one, other, tokens), wanted, more=1)


def more_than_wanted(one, other, tokens, wanted):
    return _between(_differences(one, other, tokens), wanted, enough=np.greater)


def confidence_that_was_wanted(one, other, tokens, wanted):
    return np.array([*_between(_differences(one, other, tokens), wanted)[:2], wanted])


def bell_of_the_mean(one, other, tokens, wanted):
    values = _differences(one, other, tokens)
    half = NormalDist().inv_cdf((1 + wanted) / 2) * values.std(ddof=1) / np.sqrt(len(values))
    return np.array([values.mean() - half, values.mean() + half, wanted])


def quantiles(one, other, tokens, wanted):
    values = _differences(one, other, tokens)
    return np.array([*np.quantile(values, [(1 - wanted) / 2, (1 + wanted) / 2]), wanted])


def intervals_subtracted(one, other, tokens, wanted):
    low, high = (np.sort(each.sum(axis=-1)) / tokens.sum() for each in (one, other))
    first, second = _between(low, wanted), _between(high, wanted)
    return np.array([first[0] - second[1], first[1] - second[0], first[2]])


INTERVALS = (
    Mistake(
        "seeds_unpaired",
        "the losses are sorted before they are subtracted, so seeds lose their partners",
        "Subtract row s of `other` from row s of `one`, then sort.",
        seeds_unpaired,
    ),
    Mistake(
        "subtracted_the_other_way",
        "it is the loss of `other`, minus that of `one`",
        "`one` minus `other`.",
        subtracted_the_other_way,
    ),
    Mistake(
        "over_documents",
        "the interval is over documents, with the seeds averaged",
        "More documents do not show what a different seed would give: one value for each seed.",
        over_documents,
    ),
    Mistake(
        "all_documents_of_all_seeds",
        "every document of every seed counts as one sample",
        "Documents of a seed share its training: one value for each seed.",
        all_documents_of_all_seeds,
    ),
    Mistake(
        "mean_of_ratios",
        "a seed's value is the mean over documents of nats per token, so short ones count too much",
        "All nats of a seed, divided by all tokens.",
        mean_of_ratios,
    ),
    Mistake(
        "nats_per_document",
        "a seed's value is in nats per document",
        "Divide by the tokens of all documents.",
        nats_per_document,
    ),
    Mistake(
        "range_of_all_seeds",
        "it is the range of all seeds, though a narrower interval is sure enough",
        "Take the largest k that has the wanted confidence.",
        range_of_all_seeds,
    ),
    Mistake(
        "one_side_only",
        "the chance is counted on only one side",
        "The median may lie below the interval or above it: twice the sum.",
        one_side_only,
    ),
    Mistake(
        "sum_goes_one_too_far",
        "the chance counts one case too many, that of k seeds on one side",
        "The median is missed if fewer than k seeds lie on one side: 0 to k − 1.",
        sum_goes_one_too_far,
    ),
    Mistake(
        "one_rank_too_narrow",
        "it is the first interval that is not sure enough",
        "Take the last k that still is.",
        one_rank_too_narrow,
    ),
    Mistake(
        "more_than_wanted",
        "an interval with exactly the wanted confidence is not taken",
        "At least as sure as wanted: >=.",
        more_than_wanted,
    ),
    Mistake(
        "confidence_that_was_wanted",
        "the third number is the confidence that was wanted",
        "Return the one that the interval has.",
        confidence_that_was_wanted,
    ),
    Mistake(
        "bell_of_the_mean",
        "it is the mean with so many standard errors, as if the seeds were normally distributed",
        "Few seeds show little of their distribution: count how many lie on each side.",
        bell_of_the_mean,
    ),
    Mistake(
        "quantiles",
        "it is the range of the middle of these seeds",
        "That shows where seeds lie, not where their median does: count how many are on each side.",
        quantiles,
    ),
    Mistake(
        "intervals_subtracted",
        "each setting has an interval of its own, and their ends are subtracted",
        "Subtract seed by seed first, then make one interval.",
        intervals_subtracted,
    ),
)


def cases_of_intervals(rng):
    """Seeds that differ more than the two settings do; documents of many lengths."""

    def arrays(seeds, documents, wanted):
        tokens = rng.integers(8, 90, documents)
        of_seed = rng.normal(2, 0.3, (seeds, 1)) + rng.normal(0, 0.2, (seeds, documents))
        change = rng.normal(0.1, 0.2, (seeds, 1)) + rng.normal(0, 0.05, (seeds, documents))
        return of_seed * tokens, (of_seed - change) * tokens, tokens, wanted

    return [
        Case("eight seeds", arrays(8, 6, 0.9), 1),
        Case("exactly as sure as wanted", arrays(10, 7, _sure(10, 3)), 1),
        Case("five seeds, more wanted than they give", arrays(5, 9, 0.99), 1),
    ]


ASSIGNMENT = Assignment(
    (
        Task("worth", cases_of_worth, WORTHS),
        Task("greed_and_best", cases_of_pruning, PRUNED),
        Task("paired_interval", cases_of_intervals, INTERVALS),
    )
)

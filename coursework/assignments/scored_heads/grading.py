"""Scored heads: what a head gets from earlier ones, a rule to beat, heads replaced together."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import Params, causal_mask, concat_heads, trace
from tutorial_lib.models.grammar import TASKS, WORDS, sample_documents


def _layers(matrices):
    """The Params of each layer."""
    return [Params(*each) for each in zip(*matrices, strict=True)]


def _terms(record):
    """What each head of a layer adds, (H, ..., T, d_model), and the rows of W_O of each."""
    rows = np.split(record.params.W_O, record.params.n_heads)
    heads = np.moveaxis(record.heads, -3, 0)
    return np.array([head @ W for head, W in zip(heads, rows, strict=True)]), rows


def _two_layers(X, matrices, *, mask=True, below=True):
    """The traces of two layers; `below` says whether the second reads what the first adds."""
    first, second = _layers(matrices)
    seen = causal_mask(X.shape[-2]) if mask else None
    one = trace(X, first, mask=seen)
    return one, trace(X + one.Y if below else X, second, mask=seen)


def _handed(parts, record, *, weights=None, rows=None, values=None):
    """What each head of the second layer makes of each part: (parts, H, ..., T, d_model)."""
    W_V = record.params.W_V if values is None else values
    rows = _terms(record)[1] if rows is None else rows
    weights = record.weights if weights is None else weights
    each = zip(np.moveaxis(weights, -3, 0), W_V, rows, strict=True)
    return np.stack([[w @ part @ W @ row for part in parts] for w, W, row in each], axis=1)


def _parts(X, one):
    return [X, *_terms(one)[0]]


def weights_of_the_part(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    mask = causal_mask(X.shape[-2])
    single = [trace(part, two.params, mask=mask) for part in _parts(X, one)]
    return np.array([_terms(record)[0] for record in single])


def weights_of_the_first_layer(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return _handed(_parts(X, one), two, weights=one.weights)


def weights_without_the_first_layer(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O), below=False)
    return _handed(_parts(X, one), two)


def each_position_by_itself(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    weights = np.broadcast_to(np.eye(X.shape[-2]), two.weights.shape)
    return _handed(_parts(X, one), two, weights=weights)


def first_layer_split_evenly(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    H = one.params.n_heads
    return _handed([X, *[one.Y / H] * H], two)


def rows_hold_all(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return _handed([X + one.Y, *_terms(one)[0]], two)


def parts_added_up(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return _handed(np.cumsum(_parts(X, one), axis=0), two)


def rows_come_last(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return _handed([*_terms(one)[0], X], two)


def values_of_the_first_layer(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return _handed(_parts(X, one), two, values=W_V[0])


def rows_of_another_head(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    W = two.params.W_O
    H = two.params.n_heads
    return _handed(_parts(X, one), two, rows=[W[h::H] for h in range(H)])


def not_causal(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O), mask=False)
    return _handed(_parts(X, one), two)


def from_and_to_exchanged(X, W_Q, W_K, W_V, W_O):
    one, two = _two_layers(X, (W_Q, W_K, W_V, W_O))
    return np.swapaxes(_handed(_parts(X, one), two), 0, 1)


HANDED = (
    Mistake(
        "weights_of_the_part",
        "each part gets weights of its own, as if it were the whole input",
        "A head has one row of weights for a query, from all that comes in: hold it fixed.",
        weights_of_the_part,
    ),
    Mistake(
        "weights_of_the_first_layer",
        "the parts are mixed by the weights of the first layer",
        "The second layer's heads look with their own weights.",
        weights_of_the_first_layer,
    ),
    Mistake(
        "weights_without_the_first_layer",
        "the second layer's weights are computed from X, without what the first adds",
        "The second layer reads X + Y of the first.",
        weights_without_the_first_layer,
    ),
    Mistake(
        "each_position_by_itself",
        "each position takes only from itself: the weights are left out",
        "Mix the values of a part by the head's weights.",
        each_position_by_itself,
    ),
    Mistake(
        "first_layer_split_evenly",
        "the first layer's output is split evenly among its heads",
        "Head g adds its own output times its own rows of W_O.",
        first_layer_split_evenly,
    ),
    Mistake(
        "rows_hold_all",
        "part 0 is all that comes in, what the first layer added too",
        "Part 0 is X itself; the parts add up to what comes in.",
        rows_hold_all,
    ),
    Mistake(
        "parts_added_up",
        "each part holds the parts before it, too",
        "One part at a time.",
        parts_added_up,
    ),
    Mistake(
        "rows_come_last",
        "X is the last part, not the first",
        "Part 0 is X, part g + 1 head g.",
        rows_come_last,
    ),
    Mistake(
        "values_of_the_first_layer",
        "the values are computed by W_V of the first layer",
        "The second layer's heads have W_V[1].",
        values_of_the_first_layer,
    ),
    Mistake(
        "rows_of_another_head",
        "the rows of W_O are dealt out by turns, not in blocks",
        "Head h has the d_v rows from h · d_v on: np.split.",
        rows_of_another_head,
    ),
    Mistake(
        "not_causal",
        "words look ahead",
        "Both layers are causal: mask=causal_mask(T).",
        not_causal,
    ),
    Mistake(
        "from_and_to_exchanged",
        "the first two axes have changed places",
        "Parts first, then the heads that read them: (H + 1, H, ..., T, d_model).",
        from_and_to_exchanged,
    ),
)


def _matrices(rng, L, H, d_model, d_k, d_v):
    """Strong weights of L layers."""
    shapes = (H, d_model, d_k), (H, d_model, d_k), (H, d_model, d_v), (H * d_v, d_model)
    return [rng.standard_normal((L, *s)) * 1.6 / np.sqrt(s[-2]) for s in shapes]


def cases_of_handed(rng):
    """Sizes all differ: none, one and two batch axes."""

    def arrays(*batch, T=5, H=3, d=(12, 4, 7)):
        return rng.standard_normal((*batch, T, d[0])), *_matrices(rng, 2, H, *d)

    return [
        Case("one sequence", arrays(), 1),
        Case("a batch, two heads", arrays(4, T=6, H=2, d=(10, 5, 3)), 1),
        Case("two batch axes", arrays(2, 3, T=7, H=4, d=(9, 3, 5)), 1),
    ]


def _pointed(marked, back):
    """The position of the back-th last marked word up to each query, -1 for none; (n, T)."""
    so_far = marked.cumsum(axis=1)
    wanted = (so_far - back + 1)[..., None]  # the number of the word that is meant, from 1
    position = (so_far[:, None] == wanted).argmax(axis=-1)
    return np.where(wanted[..., 0] > 0, position, -1)


def _hit(pointed, truth):
    return (pointed == truth) & (truth >= 0)


def _accuracy(hit, truth):
    return hit.sum() / (truth >= 0).sum()


def _rule(kinds, truth, sizes, *, point=_pointed, accuracy=_accuracy, sets=None):
    """Choose a rule on one set of documents and score it on another; parts may be wrong.

    `sizes` are first, n_kinds, furthest; `sets` those that the rule is chosen and reported on.
    """
    first, n_kinds, furthest = sizes
    chosen_on, reported = sets or (slice(first), slice(first, None))
    found = {
        (kind, back): _hit(point(kinds == kind, back), truth)
        for kind in range(n_kinds)
        for back in range(1, furthest + 1)
    }
    best = max(found, key=lambda rule: accuracy(found[rule][chosen_on], truth[chosen_on]))
    return np.array([*best, accuracy(found[best][reported], truth[reported])])


def chosen_on_all(kinds, truth, first, n_kinds, furthest):
    sets = slice(None), slice(first, None)
    return _rule(kinds, truth, (first, n_kinds, furthest), sets=sets)


def chosen_where_reported(kinds, truth, first, n_kinds, furthest):
    sets = slice(first, None), slice(first, None)
    return _rule(kinds, truth, (first, n_kinds, furthest), sets=sets)


def reported_where_chosen(kinds, truth, first, n_kinds, furthest):
    return _rule(kinds, truth, (first, n_kinds, furthest), sets=(slice(first), slice(first)))


def reported_on_all(kinds, truth, first, n_kinds, furthest):
    return _rule(kinds, truth, (first, n_kinds, furthest), sets=(slice(first), slice(None)))


def sets_exchanged(kinds, truth, first, n_kinds, furthest):
    sets = slice(first, None), slice(first)
    return _rule(kinds, truth, (first, n_kinds, furthest), sets=sets)


def own_word_left_out(kinds, truth, first, n_kinds, furthest):
    def point(marked, back):
        return np.pad(_pointed(marked, back), ((0, 0), (1, 0)), constant_values=-1)[:, :-1]

    return _rule(kinds, truth, (first, n_kinds, furthest), point=point)


def next_word_seen(kinds, truth, first, n_kinds, furthest):
    def point(marked, back):
        found = _pointed(marked, back)
        return np.concatenate([found[:, 1:], found[:, -1:]], axis=1)

    return _rule(kinds, truth, (first, n_kinds, furthest), point=point)


def counted_from_the_beginning(kinds, truth, first, n_kinds, furthest):
    def point(marked, back):
        so_far = marked.cumsum(axis=1)
        position = (so_far == back).argmax(axis=1)[:, None]
        return np.where(so_far >= back, position, -1)

    return _rule(kinds, truth, (first, n_kinds, furthest), point=point)


def counted_from_the_end(kinds, truth, first, n_kinds, furthest):
    def point(marked, back):
        return np.broadcast_to(_pointed(marked, back)[:, -1:], marked.shape)

    return _rule(kinds, truth, (first, n_kinds, furthest), point=point)


def all_positions_in_the_accuracy(kinds, truth, first, n_kinds, furthest):
    def accuracy(hit, truth):
        return hit.mean()

    return _rule(kinds, truth, (first, n_kinds, furthest), accuracy=accuracy)


def minus_ones_agree(kinds, truth, first, n_kinds, furthest):
    _, kind, back = max(
        (_accuracy(_hit(_pointed(kinds == kind, back), truth)[:first], truth[:first]), -kind, -back)
        for kind in range(n_kinds)
        for back in range(1, furthest + 1)
    )
    agree = _pointed(kinds == -kind, -back) == truth
    return np.array([-kind, -back, agree[first:].mean()])


def no_such_word_left_out(kinds, truth, first, n_kinds, furthest):
    best = _rule(kinds, truth, (first, n_kinds, furthest))
    pointed = _pointed(kinds == best[0], int(best[1]))[first:]
    found = (truth[first:] >= 0) & (pointed >= 0)
    return np.array([*best[:2], (pointed == truth[first:])[found].mean()])


def accuracies_of_documents(kinds, truth, first, n_kinds, furthest):
    def accuracy(hit, truth):
        cases = (truth >= 0).sum(axis=1)
        return (hit.sum(axis=1)[cases > 0] / cases[cases > 0]).mean()

    return _rule(kinds, truth, (first, n_kinds, furthest), accuracy=accuracy)


def nearest_alone(kinds, truth, first, n_kinds, furthest):
    return _rule(kinds, truth, (first, n_kinds, 1))


def back_from_0(kinds, truth, first, n_kinds, furthest):
    return _rule(kinds, truth, (first, n_kinds, furthest)) - np.array([0, 1, 0])


RULES = (
    Mistake(
        "chosen_on_all",
        "the rule is chosen on all documents, those of the report among them",
        "Choose only on the documents before `first`.",
        chosen_on_all,
    ),
    Mistake(
        "chosen_where_reported",
        "the rule is chosen on the documents that it is reported on",
        "Choose on the documents before `first`, and report on the others.",
        chosen_where_reported,
    ),
    Mistake(
        "reported_where_chosen",
        "the accuracy is that on the documents that the rule was chosen on",
        "Report on the documents from `first` on.",
        reported_where_chosen,
    ),
    Mistake(
        "reported_on_all",
        "the accuracy is that on all documents, those of the choice among them",
        "Report only on the documents from `first` on.",
        reported_on_all,
    ),
    Mistake(
        "sets_exchanged",
        "it chooses on the later documents and reports on the first",
        "The first `first` documents are for the choice.",
        sets_exchanged,
    ),
    Mistake(
        "own_word_left_out",
        "the query's own word is never counted",
        "Count words up to the query's own, and that one too.",
        own_word_left_out,
    ),
    Mistake(
        "next_word_seen",
        "the word after the query counts, which it cannot see",
        "Count words only up to the query's own.",
        next_word_seen,
    ),
    Mistake(
        "counted_from_the_beginning",
        "words of the kind are counted from the beginning of the document",
        "Count back from the query: 1 is the nearest.",
        counted_from_the_beginning,
    ),
    Mistake(
        "counted_from_the_end",
        "words of the kind are counted back from the end of the document",
        "Each query counts back from its own position.",
        counted_from_the_end,
    ),
    Mistake(
        "all_positions_in_the_accuracy",
        "the accuracy is over all positions, cases or not",
        "Divide by the number of positions with truth >= 0.",
        all_positions_in_the_accuracy,
    ),
    Mistake(
        "minus_ones_agree",
        "a position that is not a case counts as a hit where the rule finds no word",
        "A hit needs truth >= 0: two -1 are no agreement.",
        minus_ones_agree,
    ),
    Mistake(
        "no_such_word_left_out",
        "cases where the rule finds no word are left out, not counted as missed",
        "A rule that finds no word has missed: count the case in the number you divide by.",
        no_such_word_left_out,
    ),
    Mistake(
        "accuracies_of_documents",
        "each document has an accuracy first, so that one with few cases counts as much as one "
        "with many",
        "One accuracy over the cases of all documents.",
        accuracies_of_documents,
    ),
    Mistake(
        "nearest_alone",
        "only the nearest word of each kind is tried",
        "Try back = 1 to furthest.",
        nearest_alone,
    ),
    Mistake(
        "back_from_0",
        "the nearest word has the number 0",
        "The nearest word of a kind, which may be the query's own, is number 1.",
        back_from_0,
    ),
)


def _best_two(kinds, truth, n_kinds, furthest):
    """The two rules with the most hits, and how many each has."""
    rules = [(kind, back) for kind in range(n_kinds) for back in range(1, furthest + 1)]
    hits = [_hit(_pointed(kinds == kind, back), truth).sum() for kind, back in rules]
    first, second = np.argsort(hits)[::-1][:2]
    return rules[first], hits[first], hits[second]


def _telling(kinds, truth, first, *sizes, planted):
    """Whether no two rules tie, and each set of documents prefers the rule planted for it."""
    sets = slice(first), slice(first, None), slice(None)
    found = [_best_two(kinds[each], truth[each], *sizes) for each in sets]
    rules, most, second = zip(*found, strict=True)
    return all(np.greater(most, second)) and (planted is None or rules == planted)


def _until_telling(sample, planted=None):
    """Sample arguments until they tell."""
    while True:
        arguments = sample()
        if _telling(*arguments, planted=planted):
            return arguments


def cases_of_rules(rng):
    """Planted: one rule is best on the first documents, one on the others, a third on all."""

    def planted(n, T, n_kinds, furthest, rules):
        def sample():
            kinds = rng.choice(n_kinds + 1, size=(n, T))  # the last is no kind of any rule
            density = np.linspace(0.2, 0.9, n)[rng.permutation(n)][:, None]  # documents differ
            luck, anywhere = rng.random((n, T)), rng.integers(np.arange(T) + 1, size=(n, T))
            one, other, third = (_pointed(kinds == kind, back) for kind, back in rules)
            preferred = np.where(np.arange(n)[:, None] < n // 2, one, other)
            parts = [luck < 0.45, luck < 0.8, luck < 0.92]
            truth = np.select(parts, [preferred, third, one], anywhere)
            truth = np.where(rng.random((n, T)) < density, truth, -1)
            return kinds, truth, n // 2, n_kinds, furthest

        return _until_telling(sample, rules)

    def of_the_text():
        documents = sample_documents(rng, 200)
        starts = [WORDS.index(word) for word in ("dog", "dogs", "barks")]
        cases = documents.task == TASKS.index("attractor")
        truth = np.where(cases, documents.decided_by, -1)
        return np.digitize(documents.ids[:, :-1], starts), truth, 80, 4, 4

    return [
        Case("three kinds", planted(100, 15, 3, 3, ((1, 2), (0, 2), (2, 2))), 1),
        Case("two kinds, far back", planted(120, 24, 2, 5, ((0, 3), (1, 4), (1, 2))), 2),
        Case("verbs of the known text", _until_telling(of_the_text), 1),
    ]


def _run(X, layers, replace=None, *, seen=None):
    """The rows after the last layer, and the heads of each; `replace` is of (layer, heads).

    `seen` are rows that the layers read in place of their own, one array for each layer.
    """
    outputs = []
    for layer, params in enumerate(layers):
        read = X if seen is None else seen[layer]
        heads = trace(read, params, mask=causal_mask(X.shape[-2])).heads
        outputs.append(heads)
        if replace is not None:
            heads = replace(layer, heads)
        X = X + concat_heads(heads) @ params.W_O
    return X, outputs


def _put(given):
    """Make the function that puts the marked heads of `given` in place of a run's own."""

    def of(marked):
        def replace(layer, heads):
            return np.where(marked[layer][:, None, None], given[layer], heads)

        return replace

    return of


def _singles(marked):
    """The marked heads one by one: arrays of booleans like `marked`."""
    for layer, head in zip(*np.nonzero(marked), strict=True):
        single = np.zeros_like(marked)
        single[layer, head] = True
        yield single


def _beyond(X, layers, marked, of, *, base=None, run=_run):
    """Change by all marked heads together, minus the sum of the changes by each of them."""
    base = _run(X, layers)[0] if base is None else base
    together = run(X, layers, of(marked))[0] - base
    return together - sum(run(X, layers, of(one))[0] - base for one in _singles(marked))


def _as(form):
    """Make a mistake's function that puts `form(outputs of other)` in place of a head's own."""

    def found(X, other, matrices, marked):
        layers = _layers(matrices)
        return _beyond(X, layers, marked, _put([form(h) for h in _run(other, layers)[1]]))

    return found


def silenced(X, other, W_Q, W_K, W_V, W_O, marked):
    return _as(np.zeros_like)(X, other, (W_Q, W_K, W_V, W_O), marked)


def mean_over_positions(X, other, W_Q, W_K, W_V, W_O, marked):
    def form(heads):
        return np.broadcast_to(heads.mean(axis=-2, keepdims=True), heads.shape)

    return _as(form)(X, other, (W_Q, W_K, W_V, W_O), marked)


def mean_over_documents(X, other, W_Q, W_K, W_V, W_O, marked):
    def form(heads):
        return np.broadcast_to(heads.mean(axis=0, keepdims=True), heads.shape)

    return _as(form)(X, other, (W_Q, W_K, W_V, W_O), marked)


def last_position_only(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    given = _run(other, layers)[1]

    def of(marked):
        def replace(layer, heads):
            heads = heads.copy()
            heads[..., marked[layer], -1, :] = given[layer][..., marked[layer], -1, :]
            return heads

        return replace

    return _beyond(X, layers, marked, of)


def last_position_everywhere(X, other, W_Q, W_K, W_V, W_O, marked):
    def form(heads):
        return np.broadcast_to(heads[..., -1:, :], heads.shape)

    return _as(form)(X, other, (W_Q, W_K, W_V, W_O), marked)


def together_alone(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    of = _put(_run(other, layers)[1])
    return _run(X, layers, of(marked))[0] - _run(X, layers)[0]


def sum_alone(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    of, base = _put(_run(other, layers)[1]), _run(X, layers)[0]
    return sum(_run(X, layers, of(one))[0] - base for one in _singles(marked))


def other_way_round(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    return -_beyond(X, layers, marked, _put(_run(other, layers)[1]))


def rows_not_changes(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    return _beyond(X, layers, marked, _put(_run(other, layers)[1]), base=np.zeros(X.shape))


def later_layers_do_not_hear(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    rows, outputs = [X], _run(X, layers)[1]
    for heads, params in zip(outputs, layers, strict=True):
        rows.append(rows[-1] + concat_heads(heads) @ params.W_O)

    def run(X, layers, replace):
        return _run(X, layers, replace, seen=rows)

    return _beyond(X, layers, marked, _put(_run(other, layers)[1]), run=run)


def first_layer_alone(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    marked = marked & (np.arange(len(marked)) == 0)[:, None]
    return _beyond(X, layers, marked, _put(_run(other, layers)[1]))


def whole_layers(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    of = _put(_run(other, layers)[1])

    def wider(marked):
        return of(np.broadcast_to(marked.any(axis=1, keepdims=True), marked.shape))

    return _beyond(X, layers, marked, wider)


def unmarked_replaced(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    return _beyond(X, layers, ~marked, _put(_run(other, layers)[1]))


def layers_read_the_other(X, other, W_Q, W_K, W_V, W_O, marked):
    """Compute a head of a later layer for `other` with earlier marked heads of X put in."""
    layers = _layers((W_Q, W_K, W_V, W_O))
    own = _run(X, layers)[1]

    def of(marked):
        given = _run(other, layers, _put(own)(marked))[1]
        return _put(given)(marked)

    return _beyond(X, layers, marked, of)


def documents_exchanged(X, other, W_Q, W_K, W_V, W_O, marked):
    layers = _layers((W_Q, W_K, W_V, W_O))
    return _beyond(other, layers, marked, _put(_run(X, layers)[1]))


TOGETHER = (
    Mistake(
        "silenced",
        "a marked head gives 0, not what it gives for the other documents",
        "Put in the head's own output for `other`, at the same positions.",
        silenced,
    ),
    Mistake(
        "mean_over_positions",
        "a marked head gives its mean over the positions of the other document",
        "Position t gets what the head gives for the other document at position t.",
        mean_over_positions,
    ),
    Mistake(
        "mean_over_documents",
        "a marked head gives its mean over the other documents",
        "Document n gets what the head gives for document n of `other`.",
        mean_over_documents,
    ),
    Mistake(
        "last_position_only",
        "the heads are replaced only at the last position",
        "Replace a marked head's output at all positions.",
        last_position_only,
    ),
    Mistake(
        "last_position_everywhere",
        "every position gets what the head gives for the other document at the last position",
        "Position t gets what the head gives for the other document at position t.",
        last_position_everywhere,
    ),
    Mistake(
        "together_alone",
        "it is the change by all marked heads; the single changes are not subtracted",
        "Subtract the change by each marked head by itself.",
        together_alone,
    ),
    Mistake(
        "sum_alone",
        "it is the sum of the single changes; the change by all together is missing",
        "Begin with one run in which all marked heads are replaced.",
        sum_alone,
    ),
    Mistake(
        "other_way_round",
        "the change by all is subtracted from the sum, so every sign is wrong",
        "All together first, minus the sum of the single changes.",
        other_way_round,
    ),
    Mistake(
        "rows_not_changes",
        "the rows of the runs are added and subtracted, not their changes",
        "Subtract the rows without any replacement from those of each run first.",
        rows_not_changes,
    ),
    Mistake(
        "later_layers_do_not_hear",
        "later layers read the rows as they were before anything was replaced",
        "Add the replaced heads to the rows before the next layer reads them.",
        later_layers_do_not_hear,
    ),
    Mistake(
        "first_layer_alone",
        "only marked heads of the first layer are replaced",
        "Go through all rows of `marked`.",
        first_layer_alone,
    ),
    Mistake(
        "whole_layers",
        "with a marked head all heads of its layer are replaced",
        "Replace only heads[:, marked[layer]].",
        whole_layers,
    ),
    Mistake(
        "unmarked_replaced",
        "the heads that are not marked are replaced",
        "True in `marked` says: replace this head.",
        unmarked_replaced,
    ),
    Mistake(
        "layers_read_the_other",
        "what is put in comes from a run of `other` in which marked heads were replaced too",
        "Run `other` once, with nothing replaced, and store its heads.",
        layers_read_the_other,
    ),
    Mistake(
        "documents_exchanged",
        "it puts heads of these documents into the others",
        "X is what is run; heads of `other` are put in.",
        documents_exchanged,
    ),
)


def cases_of_together(rng):
    """Marked heads in several layers; strong weights, so that the sum is far from the whole."""

    def arrays(n, T, L, H, d_model, d_k, d_v, marked):
        X, other = rng.standard_normal((2, n, T, d_model))
        matrices = _matrices(rng, L, H, d_model, d_k, d_v)
        return X, other, *matrices, np.array(marked, dtype=bool)

    three = [[1, 0], [0, 1], [1, 1]]
    return [
        Case("two layers of three heads", arrays(2, 5, 2, 3, 12, 4, 7, [[1, 0, 1], [0, 1, 0]]), 1),
        Case("three layers", arrays(3, 6, 3, 2, 10, 5, 4, three), 1),
        Case("one document, neighbours", arrays(1, 8, 2, 4, 9, 3, 5, [[0, 1, 1, 0]] * 2), 1),
    ]


ASSIGNMENT = Assignment(
    (
        Task("handed_on", cases_of_handed, HANDED),
        Task("best_rule", cases_of_rules, RULES),
        Task("beyond_the_sum", cases_of_together, TOGETHER),
    )
)

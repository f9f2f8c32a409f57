"""Wrong forms of the functions of chapter 20."""

import numpy as np

from tutorial_lib.attention import causal_mask
from tutorial_lib.embedding import embed
from tutorial_lib.heads import concat_heads
from tutorial_lib.models.copying import run
from tutorial_lib.models.grammar import CLASSES, ID, read_documents
from tutorial_lib.models.head_scores import paths, run_with
from tutorial_lib.models.language import encode
from tutorial_lib.multihead import trace
from tutorial_lib.practice.mistake import Mistake

_NOUNS = [ID[word] for kind in "sp" for word in CLASSES[f"noun:{kind}"].split()]
_NOUNS += [ID[word] for kind in "fm" for word in CLASSES[f"given:{kind}"].split()]


def _asking(truth):
    n, t = np.nonzero(truth >= 0)
    return n, t, truth[n, t]


def _next_row(weights, truth):
    n, t, s = _asking(truth)
    return weights[n, :, t + 1, s].mean(axis=0)


def _over_all_places(weights, truth):
    n, t, s = _asking(truth)
    return weights[n, :, t, s].sum(axis=0) / truth.size


def _minus_one_too(weights, truth):
    n, t = np.indices(truth.shape)
    return weights[n, :, t, truth].mean(axis=(0, 1))


def _turned(weights, truth):
    n, t, s = _asking(truth)
    return weights[n, :, s, t].mean(axis=0)


_SCORE_HEAD = (
    Mistake(
        "next_row",
        "it reads the row of the word that is predicted, not of the word that predicts it",
        "Row t fetches for word t + 1, and truth[n, t] already speaks of that word.",
        _next_row,
    ),
    Mistake(
        "over_all_places",
        "it divides by all places, also by those that ask nothing",
        "Take the mean over the places whose truth is not -1.",
        _over_all_places,
    ),
    Mistake(
        "minus_one_too",
        "a truth of -1 picks the last key",
        "-1 says that nothing decides: leave these places out, np.nonzero(truth >= 0).",
        _minus_one_too,
    ),
    Mistake(
        "turned",
        "query and key are exchanged",
        "The query stands before the key: weights[n, :, t, truth[n, t]].",
        _turned,
    ),
)


def _distances(truth):
    _, t, s = _asking(truth)
    return t - s


_BEST_OFFSET = (
    Mistake(
        "mean_distance",
        "it rounds the mean distance",
        "Ask for the distance that is most frequent: np.bincount(...).argmax().",
        lambda truth: int(np.rint(_distances(truth).mean())),
    ),
    Mistake(
        "farthest",
        "it returns the largest distance",
        "Ask for the distance that is most frequent: np.bincount(...).argmax().",
        lambda truth: _distances(truth).max(),
    ),
    Mistake(
        "how_often",
        "it returns how often the best distance occurs, not the distance",
        "argmax tells which, max tells how often.",
        lambda truth: np.bincount(_distances(truth)).max(),
    ),
    Mistake(
        "from_the_start",
        "it returns the place where the deciding word stands most often, counted from the start",
        "Count back from the query: t - truth[n, t].",
        lambda truth: np.bincount(_asking(truth)[2]).argmax(),
    ),
)

_FIXED_OFFSET_SCORE = (
    Mistake(
        "over_all_places",
        "it divides by all places, also by those that ask nothing",
        "Take the mean over the places whose truth is not -1.",
        lambda truth, offset: (_distances(truth) == offset).sum() / truth.size,
    ),
    Mistake(
        "at_most",
        "it counts words that stand nearer too",
        "The fixed look goes to one place: the distance must equal the offset.",
        lambda truth, offset: (_distances(truth) <= offset).mean(),
    ),
    Mistake(
        "minus_one_too",
        "a truth of -1 counts as a word in front of the first",
        "-1 says that nothing decides: leave these places out, np.nonzero(truth >= 0).",
        lambda truth, offset: (np.arange(truth.shape[1]) - truth == offset).mean(),
    ),
)


def _from_the_last(model, ids):
    _, records = run(model, ids)
    return ((records[-1].X + records[-1].Y) @ model.U, *paths(model, ids)[1:])


def _rows_of_the_first(model, ids):
    parts = [paths(model, ids)[0]]
    for record in run(model, ids)[1]:
        rows = record.params.W_O[: record.params.d_v]
        parts += list(np.moveaxis(record.heads @ rows @ model.U, -3, 0))
    return tuple(parts)


def _without_the_word(model, ids):
    return tuple(paths(model, ids)[1:])


def _positions_left_out(model, ids):
    return (model.E[ids] @ model.U, *paths(model, ids)[1:])


_PATHS = (
    Mistake(
        "from_the_last",
        "its first part is the end of the stream, in which all heads are already",
        "The first part is what goes into layer 0: records[0].X @ model.U.",
        _from_the_last,
    ),
    Mistake(
        "rows_of_the_first",
        "every head goes through the rows of W_O that belong to head 0",
        "Each head has its own d_v rows of W_O, head 0 the first ones.",
        _rows_of_the_first,
    ),
    Mistake(
        "without_the_word",
        "the path of the word itself is missing",
        "Begin with records[0].X @ model.U: it goes around all heads.",
        _without_the_word,
    ),
    Mistake(
        "positions_left_out",
        "its first part has the word but not its position",
        "X is E[ids] + P: take records[0].X.",
        _positions_left_out,
    ),
)


def _changed(model, ids, change):
    """Run with the heads, (..., H, T, d_v), that `change(place, heads)` makes of a layer's own."""
    X = embed(ids, model.E, model.P)
    for place, params in enumerate(model.layers):
        heads = trace(X, params, mask=causal_mask(ids.shape[-1])).heads.copy()
        X = X + concat_heads(change(place, heads)) @ params.W_O
    return X @ model.U


def _set(model, ids, outputs, put):
    """Run with what `put(heads, place, layer, head, output)` changes for each output."""

    def change(place, heads):
        for (layer, head), output in outputs.items():
            put(heads, place, layer, head, output)
        return heads

    return _changed(model, ids, change)


def _all_heads(model, ids, outputs):
    def put(heads, place, layer, head, output):
        if place == layer:
            heads[:] = np.expand_dims(output, -3) if output.ndim > 1 else output

    return _set(model, ids, outputs, put)


def _every_layer(model, ids, outputs):
    def put(heads, place, layer, head, output):
        heads[..., head, :, :] = output

    return _set(model, ids, outputs, put)


def _added(model, ids, outputs):
    def put(heads, place, layer, head, output):
        heads[..., head, :, :] += output * (place == layer)

    return _set(model, ids, outputs, put)


def _head_alone(model, ids, layer, head, output):
    """What comes after the head is left as it was, except for the sum."""
    _, records = run(model, ids)
    params, own = model.layers[layer], records[layer].heads[..., head, :, :]
    rows = params.W_O[head * params.d_v : (head + 1) * params.d_v]
    return (output - own) @ rows @ model.U


def _nothing_follows(model, ids, outputs):
    added = (_head_alone(model, ids, *head, output) for head, output in outputs.items())
    return run(model, ids)[0] + sum(added)


def _last_alone(model, ids, outputs):
    head = list(outputs)[-1]
    return run_with(model, ids, {head: outputs[head]})


_RUN_WITH = (
    Mistake(
        "all_heads",
        "every head of the layer gives the output",
        "Set one head: heads[..., head, :, :] = output.",
        _all_heads,
    ),
    Mistake(
        "every_layer",
        "the head of this number is replaced in every layer",
        "Replace it where place == layer.",
        _every_layer,
    ),
    Mistake(
        "added",
        "the output is added to what the head gives",
        "The output stands in place of the head's own: = and not +=.",
        _added,
    ),
    Mistake(
        "nothing_follows",
        "the layers after it still see the old output",
        "Let the rest run on: compute the next layer from the changed X.",
        _nothing_follows,
    ),
    Mistake(
        "last_alone",
        "of several heads only the last one named gives its output",
        "Go through all of outputs in each layer: for (place, head), output in outputs.items().",
        _last_alone,
    ),
)


def _given_by(model, ids, layer):
    return run(model, ids)[1][layer].heads


def _whole_layer(model, ids, other, layer, head):
    theirs = _given_by(model, other, layer)
    return _changed(model, ids, lambda place, heads: theirs if place == layer else heads)


def _exchanged(model, ids, other, layer, head):
    own = _given_by(model, ids, layer)[..., head, :, :]
    return run_with(model, other, {(layer, head): own})


def _last_word_alone(model, ids, other, layer, head):
    output = _given_by(model, ids, layer)[..., head, :, :].copy()
    output[..., -1, :] = _given_by(model, other, layer)[..., head, -1, :]
    return run_with(model, ids, {(layer, head): output})


def _nothing_follows_a_patch(model, ids, other, layer, head):
    output = _given_by(model, other, layer)[..., head, :, :]
    return _nothing_follows(model, ids, {(layer, head): output})


_PATCH = (
    Mistake(
        "whole_layer",
        "every head of the layer is patched",
        "Patch one head: records[layer].heads[..., head, :, :].",
        _whole_layer,
    ),
    Mistake(
        "exchanged",
        "the texts are exchanged: the other one runs, with a head of this one",
        "Take the output from `other`, and run `ids` with it.",
        _exchanged,
    ),
    Mistake(
        "last_word_alone",
        "the head is patched at the last word alone",
        "Give the head's output at all words: later layers read the earlier ones too.",
        _last_word_alone,
    ),
    Mistake(
        "nothing_follows",
        "the layers after it still see the old output",
        "Let the rest run on: that is what run_with does.",
        _nothing_follows_a_patch,
    ),
)


def _means(picked, groups, *, over_all=False):
    parts = (picked[group] for group in groups)
    return np.array([p.sum(axis=0) / len(picked if over_all else p) for p in parts])


def _by_kind(which, *, over_all=False):
    """Scores of kinds, of the words that `which(ids, n, t, s)` picks."""

    def score(weights, truth, ids, kinds):
        n, t, s = _asking(truth)
        words = which(ids, n, t, s)
        groups = [np.isin(words, kind) for kind in kinds]
        return _means(weights[n, :, t, s], groups, over_all=over_all)

    return score


def _minus_one_by_kind(weights, truth, ids, kinds):
    n, t = (index.ravel() for index in np.indices(truth.shape))
    s = truth.ravel()
    return _means(weights[n, :, t, s], [np.isin(ids[n, s], kind) for kind in kinds])


_SCORE_BY_KIND = (
    Mistake(
        "kind_of_the_query",
        "a place belongs to the kind of the word that looks",
        "Ask the word that decides: ids[n, truth[n, t]].",
        _by_kind(lambda ids, n, t, s: ids[n, t]),
    ),
    Mistake(
        "kind_of_the_next",
        "a place belongs to the kind of the word that is predicted",
        "Ask the word that decides: ids[n, truth[n, t]].",
        _by_kind(lambda ids, n, t, s: ids[n, t + 1]),
    ),
    Mistake(
        "over_all_kinds",
        "each kind is divided by the places of all kinds",
        "Take the mean over a kind's own places.",
        _by_kind(lambda ids, n, t, s: ids[n, s], over_all=True),
    ),
    Mistake(
        "minus_one_too",
        "a truth of -1 picks the last key",
        "-1 says that nothing decides: leave these places out, np.nonzero(truth >= 0).",
        _minus_one_by_kind,
    ),
)


def _copies(ids, diagonal=-1):
    same = ids[:, :, None] == ids[:, None, :]
    return same & np.tri(ids.shape[1], k=diagonal, dtype=bool)


def _duplicates(weights, copies, asking):
    n, t = np.nonzero(asking)
    return (weights * copies[:, None]).sum(axis=-1)[n, :, t].mean(axis=0)


def _itself_too(weights, ids):
    return _duplicates(weights, _copies(ids, 0), _copies(ids).any(axis=-1))


def _over_all_words(weights, ids):
    return _duplicates(weights, _copies(ids), np.ones(ids.shape, dtype=bool))


def _one_copy(last):
    """The weight on one copy, the first or the last, in place of all."""

    def score(weights, ids):
        copies = _copies(ids)
        place = copies[..., ::-1].argmax(-1) if last else copies.argmax(-1)
        place = ids.shape[1] - 1 - place if last else place
        n, t = np.nonzero(copies.any(axis=-1))
        return weights[n, :, t, place[n, t]].mean(axis=0)

    return score


_DUPLICATE_SCORE = (
    Mistake(
        "itself_too",
        "a word counts as a copy of itself",
        "Only words that stand before it count: np.tri(T, T, -1, dtype=bool).",
        _itself_too,
    ),
    Mistake(
        "over_all_words",
        "it divides by all words, also by those that have no copy",
        "Take the mean over words that stood earlier: same.any(axis=-1).",
        _over_all_words,
    ),
    Mistake(
        "first_copy",
        "it looks at the first copy alone",
        "Sum the weights of all earlier copies.",
        _one_copy(last=False),
    ),
    Mistake(
        "last_copy",
        "it looks at the nearest copy alone",
        "Sum the weights of all earlier copies.",
        _one_copy(last=True),
    ),
)


def _at(place_of, *, whole=False):
    """The weight in the last row at the place that `place_of(words, decided_by)` gives."""

    def weight(model, sentence, layer, head):
        words = encode(sentence)
        place = place_of(words, read_documents(words[None]).decided_by[0, -1])
        _, records = run(model, words if whole else words[:-1])
        return records[layer].weights[head, -1, place]

    return weight


def _nearest_name_or_noun(words, place):
    kind = np.isin(words, _NOUNS)
    return np.flatnonzero(kind[:-1])[-1]


_WEIGHT_AT_SUBJECT = (
    Mistake(
        "row_of_the_verb",
        "it reads the row of the last word, which is the one to be predicted",
        "Run the model on the words before it: words[:-1].",
        _at(lambda words, place: place, whole=True),
    ),
    Mistake(
        "without_bos",
        "it counts places without <bos>, and so picks the word before the subject",
        "decided_by counts <bos> as place 0, as the keys do.",
        _at(lambda words, place: place - 1),
    ),
    Mistake(
        "nearest_noun",
        "it takes the noun or the name that stands nearest to the verb",
        "The truth is in decided_by: between subject and verb other nouns may stand.",
        _at(_nearest_name_or_noun),
    ),
)


MISTAKES = {
    "score_head": _SCORE_HEAD,
    "best_offset": _BEST_OFFSET,
    "fixed_offset_score": _FIXED_OFFSET_SCORE,
    "paths": _PATHS,
    "run_with": _RUN_WITH,
    "patch": _PATCH,
    "score_by_kind": _SCORE_BY_KIND,
    "duplicate_score": _DUPLICATE_SCORE,
    "weight_at_subject": _WEIGHT_AT_SUBJECT,
}

"""Measure which heads of a real model do what: induction, agreement, the indirect object.

The model is SmolLM2-135M-Instruct with 4-bit weights; texts are given without its chat template.
Layers, heads and tokens are counted from 0. A head is *replaced* when it outputs something else at
every position: its mean over other random tokens, or what it outputs in the other text of a pair.
The *difference* is the logit of the right word less that of the wrong one, and the *effect* of a
patch is how much of the way to the difference of the other text it goes (chapter 20): 0 to 1.
Means over N sequences or pairs, with standard errors. Heads are chosen on other tokens, nouns and
names than those that they are then tested on, and some of the sentences are new as well.

Writes src/tutorial_lib/data/results/real_circuits.json. Twenty minutes.
"""

import base64
from dataclasses import replace
from itertools import product

import numpy as np

from experiments.measuring import progress, rounded
from experiments.real_sinks import perturbed_models, summary
from experiments.scored_heads import head_name
from tutorial_lib import attention_scores, attention_weights, causal_mask
from tutorial_lib.models.circuits import composition, ov_circuit, qk_circuit
from tutorial_lib.models.real.heads import fold_gain, head_logits, run_real_with
from tutorial_lib.models.real.model import (
    SHA256,
    real_file,
    real_model,
    rms_norm_with_gain,
    run_real,
    token_losses,
)
from tutorial_lib.variants.cache import KVCache
from tutorial_lib.variants.positions import rope_frequencies, rotate

SEED, N, COPY, BATCH = 0, 48, 48, 8
SECOND = np.arange(COPY + 1, 2 * COPY - 1)  # places of the second copy
NEXT = SECOND - COPY + 1  # where the first copy has the token that comes next
COMMON = 200, 40_000  # random tokens are between these ids
PREVIOUS = (16, 0), (11, 1), (19, 3), (22, 1), (2, 1)  # the five highest such scores
MATCHERS = (18, 6), (17, 3), (17, 4), (17, 5)  # the four highest induction scores
WRITERS = (16, 0), (11, 1), (2, 1), (17, 8)  # 17.8 composes most with the keys of 18.6
NUMBER, NUMBER_OTHERS = ((26, 0), (27, 8), (27, 7)), ((26, 4), (27, 2), (27, 3))
NAME = (23, 3), (20, 0), (29, 1)
SUPPRESSOR, MOVERS = (23, 3), ((23, 0), (23, 1), (23, 2), (23, 7))
CHAIN = (14, 3), (17, 4), (20, 0)
GROUPS = {
    "sink": "The weight of the first token is over 0.9, from its ninth row on (chapter 24).",
    "previous": "The five highest previous-token scores (round 1), of which induction needs few.",
    "induction": "The four highest induction scores (round 1).",
    "number": "The three largest patching effects on the number of the verb (round 3).",
    "name": "The three largest patching effects on the indirect object (round 4).",
}
SENTENCE = "When Mary and John went to the store, John gave a drink to"

NOUNS, OTHER_NOUNS, NAMES, OTHER_NAMES = (
    words.split()
    for words in (
        "key dog car book boy friend teacher picture doctor tree",
        "cat girl house letter nurse horse student table bird flower",
        "Mary John Sarah David Jessica Michael Emily Robert James Anna",
        "Peter Laura Mark Alice Paul Emma Kevin Helen Steven Julia",
    )
)
FRAMES = "The {} near the {}", "We know that the {} behind the {}"
OTHER_FRAMES = (
    "I think that the {} beside the {}",
    "Last year the {} with the {}",
    "The {} that the {} liked",
)
VERBS = (" was", " were"), (" is", " are"), (" has", " have")
PLACES = ("store", "drink"), ("garden", "book"), ("office", "letter"), ("school", "ball")
OTHER_PLACES = ("park", "ring"), ("station", "map"), ("hotel", "key"), ("kitchen", "cup")
STEP = 0.02  # of the way, from which a slope is taken
GIVING = "When {} and {} went to the {}, {} gave a {} to"
THREE = "When {}, {} and {} went to the {}, {} gave a {} to"


class Pairs:
    """Texts in pairs, with right and wrong words: the other text has them the other way round."""

    def __init__(self, model, rows):
        encode = model.tokenizer.encode
        texts, others, right, wrong = zip(*rows, strict=True)
        self.ids, self.others = (np.stack([*map(encode, column)]) for column in (texts, others))
        assert self.ids.shape == self.others.shape, "a pair of two lengths"
        words = [[encode(word) for word in column] for column in (right, wrong)]
        assert {len(word) for column in words for word in column} == {1}, "a word of two tokens"
        self.right, self.wrong = np.array(words)[:, :, 0]

    def differences(self, trace):
        """Return the difference after each text, (n,)."""
        rows = np.arange(len(self.ids))
        logits = trace.normed[:, -1] @ trace.E.T
        return logits[rows, self.right] - logits[rows, self.wrong]


def agreement_pairs(nouns, frame, verbs, n=N, *, attractor=True):
    """Return pairs whose subjects differ in number; an attractor has the number of the other."""
    rows = []
    for step, i, plural in product(range(1, len(nouns)), range(len(nouns)), (0, 1)):
        subjects = nouns[i], nouns[i] + "s"
        near = nouns[(i + step) % len(nouns)] + "s" * ((1 - plural) if attractor else plural)
        texts = [frame.format(subjects[number], near) for number in (plural, 1 - plural)]
        rows.append((*texts, verbs[plural], verbs[1 - plural]))
    return rows[:n]


def giving_pairs(names, frame, places):
    """Return pairs that differ in the giver; the right name is that of the one who receives."""
    rows = []
    for step, i, (place, thing), turned in product((1, 5), range(len(names)), places, (0, 1)):
        first, second = names[i], names[(i + step) % len(names)]
        order = (second, first) if turned else (first, second)
        texts = [frame.format(*order, place, giver, thing) for giver in (second, first)]
        rows.append((*texts, f" {first}", f" {second}"))
    return rows[:: max(1, len(rows) // N)][:N]


def random_tokens(seed, n=N):
    """Return n sequences of random tokens, each a copy followed by itself, (n, 2 COPY)."""
    ids = np.random.default_rng(seed).integers(*COMMON, (n, COPY))
    return np.concatenate((ids, ids), axis=-1)


def batches(ids):
    """Return the sequences, a few at a time."""
    return np.split(ids, range(BATCH, len(ids), BATCH))


def mean_outputs(model, heads):
    """Return the mean output of each head over random tokens that are used for nothing else."""
    trace = run_real(model, random_tokens(SEED + 2, BATCH)[:, COPY:])
    return {(layer, head): trace.heads[layer][:, head].mean(axis=(0, 1)) for layer, head in heads}


def head_scores(trace):
    """Return the scores of the heads in each text, (n, L, H): previous and induction."""
    weights = np.moveaxis(trace.weights, 1, 0)  # (n, L, H, T, T)
    return {
        "previous": weights[..., SECOND, SECOND - 1].mean(axis=-1),
        "induction": weights[..., SECOND, NEXT].mean(axis=-1),
    }


def score_copies(model, ids, heads=()):
    """Return scores and the losses of both copies, text by text, without some heads."""
    found, outputs = {}, mean_outputs(model, heads)
    for part in batches(ids):
        trace = run_real_with(model, part, outputs)
        losses = token_losses(trace.logits, part)
        values = head_scores(trace) | {
            "loss, first copy": losses[:, : COPY - 1].mean(axis=-1),
            "loss, second copy": losses[:, COPY:].mean(axis=-1),
        }
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    return {name: np.concatenate(value) for name, value in found.items()}


def top_heads(scores, n):
    """Return the n heads with the highest scores, (L, H), the highest first."""
    order = np.argsort(-scores, axis=None)[:n]
    return [divmod(int(n), scores.shape[1]) for n in order]


def measure_induction(model):
    """Return the scores of all heads, and what the loss of the second copy is without some."""
    chosen = score_copies(model, random_tokens(SEED, BATCH))
    scores = {name: chosen[name].mean(axis=0) for name in ("previous", "induction")}
    for name, heads in {"previous": PREVIOUS, "induction": MATCHERS}.items():
        found = top_heads(scores[name], len(heads) + 2)
        assert set(found[: len(heads)]) == set(heads), found
    ids = random_tokens(SEED + 1)
    whole = score_copies(model, ids)
    return {
        "scores": {name: summary(value) for name, value in whole.items()},
        "without": ablate_previous(model, ids, whole["loss, second copy"]),
        "copying": copying_ranks(model, ids),
        "paths": patch_paths(model, ids),
    }


def ablate_previous(model, ids, losses):
    """Return losses and scores without each previous-token head."""
    table = {}
    for head in PREVIOUS:
        name = head_name(head)
        progress(f"without {name}")
        found = score_copies(model, ids, [head])
        first, second = (found[f"loss, {copy} copy"] for copy in ("first", "second"))
        table[name] = {"first copy": summary(first), "second copy": summary(second)}
        table[name]["more"] = summary(second - losses)
        table[name] |= {
            head_name(head): summary(found["induction"][:, head[0], head[1]]) for head in MATCHERS
        }
    return table


def copying_ranks(model, ids):
    """Return the median rank, in what a head adds to the logits, of the token it attends to."""
    heads, found = (*MATCHERS, (23, 2), SUPPRESSOR), {}
    for part in batches(ids):
        trace = run_real(model, part)
        for head in heads:
            found.setdefault(head_name(head), []).append(attended_ranks(model, trace, part, head))
    return {name: median(np.concatenate(parts)) for name, parts in found.items()}


def attended_ranks(model, trace, ids, head):
    """Return how many tokens a head prefers to the one it attends to, (n, queries)."""
    layer, head = head
    W_O = model.blocks[layer].params.W_O.reshape(9, 64, -1)[head]
    keys = trace.weights[layer][:, head][:, SECOND, 1:].argmax(axis=-1) + 1  # but for the sink
    logits = trace.heads[layer][:, head][:, SECOND] @ W_O * model.gain @ model.E.T
    attended = np.take_along_axis(ids, keys, axis=-1)
    own = np.take_along_axis(logits, attended[..., None], axis=-1)
    return (logits > own).sum(axis=-1)


def median(ranks):
    """Return the median of all ranks, (n, queries), and its error: that of samples of sequences."""
    rows = np.random.default_rng(SEED).integers(len(ranks), size=(1000, len(ranks)))
    medians = np.median(ranks[rows], axis=(1, 2))
    return {"median": float(np.median(ranks)), "error": float(medians.std(ddof=1))}


def patch_paths(model, ids):
    """Return the score of each matcher with one path into its keys, or its queries, replaced.

    What a head writes is replaced by its mean where this part of the matcher reads it, and stays
    everywhere else (path patching): so what reaches the matcher through other layers is as it was.
    """
    means, found = mean_outputs(model, WRITERS), {}
    paths = [(r, w) for r, w in product(MATCHERS, WRITERS) if w[0] < r[0]]
    scores = {path: {"keys": [], "queries": []} for path in paths}
    for part in batches(ids):
        trace = run_real(model, part)
        for reader, writer in paths:
            changed = scores_without_path(model, trace, reader, writer, means[writer])
            for side, score in changed.items():
                scores[reader, writer][side].append(score)
    for (reader, writer), sides in scores.items():
        own = {side: summary(np.concatenate(parts)) for side, parts in sides.items()}
        found.setdefault(head_name(reader), {})[head_name(writer)] = own
    return found


def scores_without_path(model, trace, reader, writer, mean):
    """Return a matcher's score in each text, (n,), for each part that does not read a writer."""
    (layer, head), (n, h) = reader, writer
    W_O = model.blocks[n].params.W_O.reshape(9, 64, -1)[h]
    whole = trace.X[layer]
    less = whole - (trace.heads[n][:, h] - mean) @ W_O
    return {
        side: weights_of(model, layer, head, *streams)[:, SECOND, NEXT].mean(axis=-1)
        for side, streams in {"keys": (whole, less), "queries": (less, whole)}.items()
    }


def weights_of(model, layer, head, queries_X, keys_X):
    """Return a head's weights, (n, T, T), where queries and keys read two residual streams."""
    block, epsilon = model.blocks[layer], model.epsilon
    Q = rms_norm_with_gain(queries_X, block.gain_1, epsilon) @ block.params.W_Q[head]
    K = rms_norm_with_gain(keys_X, block.gain_1, epsilon) @ block.params.W_K[head // 3]
    positions, frequencies = np.arange(Q.shape[-2]), rope_frequencies(64, base=model.base)
    Q, K = (rotate(rows, positions, frequencies) for rows in (Q, K))
    return attention_weights(attention_scores(Q, K), mask=causal_mask(len(positions)))


def composition_scores(model):
    """Return how much of what each earlier head writes the keys of the matchers read."""
    layers = [fold_gain(block) for block in model.blocks[: MATCHERS[0][0] + 1]]
    table = {}
    for layer, head in MATCHERS:
        progress(f"composition with {head_name((layer, head))}")
        reader = qk_circuit(layers[layer], head).T
        earlier = [[ov_circuit(block, h) for h in range(9)] for block in layers[:layer]]
        scores = np.array([[composition(W, reader) for W in row] for row in earlier])
        table[head_name((layer, head))] = {
            "best": [[head_name(one), float(scores[one])] for one in top_heads(scores, 3)],
            "heads": {head_name(one): float(scores[one]) for one in PREVIOUS if one[0] < layer},
            "mean": float(scores.mean()),
            "of": scores.size,
        }
    return table


def patched_differences(model, pairs, heads, part=1.0):
    """Return the differences when heads are patched, or go only a part of the way."""
    outputs = run_real(model, pairs.others).heads
    if part < 1:
        outputs = part * outputs + (1 - part) * run_real(model, pairs.ids).heads
    outputs = {(layer, head): outputs[layer][:, head] for layer, head in heads}
    return pairs.differences(run_real_with(model, pairs.ids, outputs))


def patch_all_heads(model, groups):
    """Return the patching effect of each head, (L, H), over pairs of several lengths."""
    effects = []
    for pairs in groups:
        start = int((pairs.ids != pairs.others).any(axis=0).argmax())  # equal before it
        own, other = run_real(model, pairs.ids), run_real(model, pairs.others)
        right, turned = pairs.differences(own), pairs.differences(other)
        sizes = {"capacity": pairs.ids.shape[-1], "batch": (len(right),)}
        prefix = [KVCache.empty(block.params, **sizes) for block in model.blocks]
        run_real(model, pairs.ids[:, :start], caches=prefix)
        values = np.zeros((30, 9, len(right)))
        for layer, head in np.ndindex(30, 9):
            progress(f"patch {layer}.{head}")
            output = other.heads[layer][:, head, start:]
            hooks = {(layer, head): lambda own, output=output: output}
            caches = [copy_cache(cache) for cache in prefix]
            changed = run_real(model, pairs.ids[:, start:], caches=caches, hooks=hooks)
            values[layer, head] = (right - pairs.differences(changed)) / (right - turned).mean()
        effects.append(values)
    effects = np.concatenate(effects, axis=-1)
    errors = effects.std(axis=-1, ddof=1) / effects.shape[-1] ** 0.5
    return {
        "effect": np.round(effects.mean(axis=-1), 3).tolist(),
        "error": np.round(errors, 3).tolist(),
        "pairs": effects.shape[-1],
    }


def copy_cache(cache):
    """Return a cache that can grow without that of which it is a copy."""
    buffers = tuple(buffer.copy() for buffer in cache.buffers)
    return replace(cache, buffers=buffers, written=cache.written.copy())


def evaluate_patches(model, pairs, sets):
    """Return how often the right word wins, and the difference, when sets of heads are patched."""
    other, found = run_real(model, pairs.others).heads, {"pairs": len(pairs.ids)}
    for name, heads in ({"none": ()} | sets).items():
        outputs = {(layer, head): other[layer][:, head] for layer, head in heads}
        differences = pairs.differences(run_real_with(model, pairs.ids, outputs))
        found[name] = {"right": float((differences > 0).mean()), "difference": summary(differences)}
    return found


def measure_number(model):
    """Return what the heads do for the number of the verb."""
    chosen = [Pairs(model, agreement_pairs(NOUNS, frame, VERBS[0], N // 2)) for frame in FRAMES]
    sets = {head_name(head): [head] for head in NUMBER} | {"three": NUMBER, "others": NUMBER_OTHERS}
    tested = {}
    conditions = [(frame, VERBS[0]) for frame in (*FRAMES, *OTHER_FRAMES)]
    for frame, verbs in (*conditions, *((FRAMES[1], verbs) for verbs in VERBS[1:])):
        progress(f"number, {frame}, {verbs}")
        pairs = Pairs(model, agreement_pairs(OTHER_NOUNS, frame, verbs))
        tested[f"{frame.format('…', '…')}{verbs[0]}"] = evaluate_patches(model, pairs, sets)
    plain = Pairs(model, agreement_pairs(OTHER_NOUNS, FRAMES[1], VERBS[0], attractor=False))
    tested["no attractor"] = evaluate_patches(model, plain, sets)
    return {
        "scan": patch_all_heads(model, chosen),
        "tested": tested,
        "attends": attention_targets(model),
    }


def attention_targets(model):
    """Return where the number's heads attend from the last word: subject, noun, first token."""
    pairs = Pairs(model, agreement_pairs(NOUNS, FRAMES[1], VERBS[0]))
    trace, rows = run_real(model, pairs.ids), np.arange(len(pairs.ids))
    subject = (pairs.ids != pairs.others).argmax(axis=-1)
    found = {}
    for layer, head in NUMBER:
        weights = trace.weights[layer][:, head, -1]
        found[head_name((layer, head))] = {
            "subject": summary(weights[rows, subject]),
            "near": summary(weights[:, -1]),
            "first": summary(weights[:, 0]),
        }
    return found


def name_positions(pairs):
    """Return where the right name stands, and the giver's first and second mention, each (n,)."""
    right, giver = pairs.ids == pairs.right[:, None], pairs.ids == pairs.wrong[:, None]
    last = pairs.ids.shape[-1] - 1 - giver[:, ::-1].argmax(axis=-1)
    return right.argmax(axis=-1), giver.argmax(axis=-1), last


def measure_name(model):
    """Return what the heads do for the indirect object."""
    chosen = Pairs(model, giving_pairs(NAMES, GIVING, PLACES))
    found = {"scan": patch_all_heads(model, [chosen])}
    effects = np.array(found["scan"]["effect"])
    heads = [*top_heads(effects, 10), *top_heads(-effects, 4)]
    pairs = Pairs(model, giving_pairs(OTHER_NAMES, GIVING, OTHER_PLACES))
    return found | {
        "roles": measure_roles(model, pairs),
        "chain": measure_chain(model, pairs),
        "slopes": compare_attribution(model, chosen, heads),
        "three names": three_names(model),
    }


def measure_roles(model, pairs):
    """Return where heads attend from the last word, and what they add to the names' logits."""
    trace, rows = run_real(model, pairs.ids), np.arange(len(pairs.ids))
    right, _, giver = name_positions(pairs)
    words = np.unique(np.concatenate((pairs.right, pairs.wrong)))
    added = head_logits(model, trace, words)  # (L, n, H, words)
    added = added - added.mean(axis=-1, keepdims=True)  # beside the other names
    found = {}
    for layer, head in (*NAME, *MOVERS, (24, 4)):
        weights, terms = trace.weights[layer][:, head, -1], added[layer][:, head]
        found[head_name((layer, head))] = {
            "to the right name": summary(weights[rows, right]),
            "to the giver": summary(weights[rows, giver]),
            "adds to the right name": summary(terms[rows, np.searchsorted(words, pairs.right)]),
            "adds to the giver": summary(terms[rows, np.searchsorted(words, pairs.wrong)]),
        }
    return found


def measure_chain(model, pairs):
    """Return the links: who attends to whom at the giver's second mention, and what movers lose."""
    trace, rows = run_real(model, pairs.ids), np.arange(len(pairs.ids))
    right, first, giver = name_positions(pairs)
    found = {"at the giver": {}, "movers": {}}
    for layer, head in (*CHAIN[:2], (16, 0)):
        weights = trace.weights[layer][:, head][rows, giver]
        found["at the giver"][head_name((layer, head))] = {
            "first mention": summary(weights[rows, first]),
            "the token after it": summary(weights[rows, first + 1]),
        }
    other = run_real(model, pairs.others)
    for heads in ((), *((head,) for head in CHAIN), (SUPPRESSOR,)):
        outputs = {(n, h): other.heads[n][:, h] for n, h in heads}
        changed = run_real_with(model, pairs.ids, outputs)
        last = {head: changed.weights[head[0]][:, head[1], -1] for head in MOVERS}
        found["movers"][", ".join(map(head_name, heads)) or "none"] = {
            head_name(head): summary(w[rows, right] - w[rows, first]) for head, w in last.items()
        }
    without = run_real_with(model, pairs.ids, mean_outputs(model, [(16, 0)]))
    weights = without.weights[17][:, 4][rows, giver]
    found["17.4 without 16.0"] = summary(weights[rows, first + 1])
    return found


def compare_attribution(model, pairs, heads):
    """Return for each head its patching effect, and attribution patching's estimate of it.

    The estimate is the slope at the beginning of the way, times the whole way.
    """
    differences = patched_differences(model, pairs, ())
    turned = pairs.differences(run_real(model, pairs.others))
    whole, found = (differences - turned).mean(), {}
    for head in heads:
        progress(f"slope {head_name(head)}")
        exact, small = (patched_differences(model, pairs, [head], part) for part in (1.0, STEP))
        lost = [(differences - changed) / whole for changed in (exact, small)]
        found[head_name(head)] = {"exact": summary(lost[0]), "estimate": summary(lost[1] / STEP)}
    return found


def three_names(model):
    """Return the log probability of the giver among three names, with heads replaced by means."""
    texts, givers = [], []
    steps = (3, 7), (1, 5)
    for more, i, (place, thing) in [*product(steps, range(len(OTHER_NAMES)), OTHER_PLACES)][:N]:
        first, second, third = (OTHER_NAMES[(i + k) % len(OTHER_NAMES)] for k in (0, *more))
        texts.append(THREE.format(first, second, third, place, second, thing))
        givers.append(model.tokenizer.encode(f" {second}")[0])
    ids, rows, found = np.stack([*map(model.tokenizer.encode, texts)]), np.arange(len(texts)), {}
    for heads in ((), *((head,) for head in NAME)):
        trace = run_real_with(model, ids, mean_outputs(model, heads))
        logits = (trace.normed[:, -1] @ trace.E.T).astype(float)
        logits -= logits.max(axis=-1, keepdims=True)
        log = logits[rows, givers] - np.log(np.exp(logits).sum(axis=-1))
        found[", ".join(map(head_name, heads)) or "none"] = summary(log)
    return found


def measure_perturbed():
    """Return scores and choices of the model, and of others whose weights have the same codes."""
    ids, found = random_tokens(SEED + 1), []
    for model in perturbed_models():
        whole, without = score_copies(model, ids), score_copies(model, ids, PREVIOUS[:1])
        verbs = Pairs(model, agreement_pairs(OTHER_NOUNS, FRAMES[1], VERBS[0]))
        names = Pairs(model, giving_pairs(OTHER_NAMES, GIVING, OTHER_PLACES))
        found.append(
            {
                "second copy": summary(whole["loss, second copy"]),
                "second copy without 16.0": summary(without["loss, second copy"]),
                "verb": summary(patched_differences(model, verbs, ()) > 0),
                "verb, 26.0 patched": summary(patched_differences(model, verbs, NUMBER[:1]) > 0),
                "name": summary(patched_differences(model, names, ()) > 0),
                "name, three patched": summary(patched_differences(model, names, NAME) > 0),
            }
        )
    return found


def attention_maps_of_sentence(model):
    """Return the maps of all heads for one sentence: roots of weights as bytes, and the groups."""
    ids = model.tokenizer.encode(SENTENCE)
    weights = run_real(model, ids).weights  # (L, H, T, T)
    rows, columns = np.tril_indices(len(ids))
    roots = np.rint(255 * np.sqrt(weights[:, :, rows, columns])).astype("u1")
    sinks = np.argwhere(weights[:, :, 8:, 0].mean(axis=-1) > 0.9).tolist()
    heads = dict(zip(GROUPS, (sinks, PREVIOUS, MATCHERS, NUMBER, NAME), strict=True))
    return {
        "maps": {
            "tokens": [model.tokenizer.decode([token]).strip() for token in ids],
            "roots": base64.b64encode(roots.tobytes()).decode(),
        },
        "groups": {
            group: {"heads": [list(map(int, head)) for head in heads[group]], "about": about}
            for group, about in GROUPS.items()
        },
    }


def main(record):
    """Run all measurements."""
    model = real_model()
    found = {
        "model": {"file": real_file().name, "sha256": SHA256},
        "settings": {"n": N, "tokens of a copy": COPY},
        **attention_maps_of_sentence(model),
        "composition": composition_scores(model),
        "induction": measure_induction(model),
        "number": measure_number(model),
        "name": measure_name(model),
        "doubt": measure_perturbed(),
    }
    record |= rounded(found)
    progress("")

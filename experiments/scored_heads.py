"""Give every head of trained models a score, against the truth of the known text.

Models of the known text, trained as `known_text` trains its arms: two layers of four heads; one
layer of eight, which has equally many parameters; no positions; the same heads in blocks with
norms and an MLP, at equal widths and with equally many parameters. Each takes the best of three
rates and trains from five seeds. A head is scored by four things at each task: the mean weight on
the word that decides, what its mean in its place costs, how much of the difference between two
texts its output carries when it is put from one into the other, and what it adds to the right
word's logit. A head is chosen for a task on documents of its own, and reported on others; the mean
of a head is of a third set. Of two layers that stand on a plateau, the guesses of surnames are
compared, place by place, with guesses among those said before. Models named in LONGER train again,
for twice the steps, to say how far a curve is from flat.

Writes src/tutorial_lib/data/results/scored_heads.json, anew behind each model, and the first seed
with norm and MLP, in half precision, to src/tutorial_lib/data/checkpoints/known_block.npz. What is
trained is kept in _build/known_text, so a run that was stopped goes on where it was; heads are
scored anew in each, since what scores them may have changed.
"""

from functools import cache

import numpy as np

from experiments import known_text
from experiments.known_text import (
    EXAMPLE,
    SEEDS,
    STEPS,
    TEST,
    VALIDATION,
    as_model,
    cached_run,
    held_out_documents,
)
from experiments.measuring import progress, rounded, write, write_checkpoint
from tutorial_lib import causal_mask, concat_heads, embed, trace
from tutorial_lib.attention import softmax
from tutorial_lib.models import entropy, grammar
from tutorial_lib.models.block import mlp, rms_norm
from tutorial_lib.models.grammar import CLASSES, FORMS, ID, SURNAME, TASKS
from tutorial_lib.models.head_scores import logit_terms, score_head
from tutorial_lib.models.language import BlockModel

MEANS, PAIRED = 3000, 4000  # seeds
SEED = [*known_text.SEED, MEANS, PAIRED]
MLP = EXAMPLE._replace(name="norm and MLP", feed=256)
MODELS = {
    "two layers": EXAMPLE._replace(name="two layers"),
    "one layer": EXAMPLE._replace(name="one layer", heads=8, kv_heads=8, layers=1),
    "norm and MLP": MLP,
    "no positions": EXAMPLE._replace(name="no positions", positions="none"),
    "norm and MLP, equal parameters": MLP._replace(name="equal parameters", d_k=8, feed=64),
}
SCORED = list(MODELS)[:3]
LONGER = ("two layers", "one layer", "norm and MLP")
BLOCK_RATES = (1e-3, 2e-3, 4e-3)
PLATEAUS = {"two layers": 1086}  # a watched step
PAIRS, BEFORE = 60, 24  # pairs of texts of each way; most words that stand before them
LOST = ("fall", "form", "nats")  # of a task: accuracy, loss of the form, loss of the whole word
KNOWN = 6  # most surnames that a text can have


def forward(model, ids, instead=None, known=None):
    """Go forward; return logits and traces. A head named in `instead` gives that output.

    `known` are the traces when nothing is replaced, which hold up to the first layer that is.
    """
    blocks, instead = isinstance(model, BlockModel), instead or {}
    norm = rms_norm if blocks else np.asarray
    same = min((layer for layer, _ in instead), default=-1) if known else -1
    X, traces = embed(ids, model.E, model.P), []
    for layer, params in enumerate(model.layers):
        mask = causal_mask(ids.shape[-1])
        traces.append(known[layer] if layer <= same else trace(norm(X), params, mask=mask))
        heads = traces[-1].heads.copy()
        for (place, head), output in instead.items():
            if place == layer:
                heads[:, head] = output
        X = X + concat_heads(heads) @ params.W_O
        if blocks:
            X = X + mlp(norm(X), *model.feeds[layer])
    return norm(X) @ model.U, traces


def all_heads(model):
    """Return (layer, head) of each head, layer by layer."""
    return [(i, h) for i, params in enumerate(model.layers) for h in range(len(params.W_Q))]


def head_name(head):
    """Return a head's name, "1.2" for the third of the second layer."""
    return ".".join(map(str, head))


def weights_on(traces, target):
    """Return the mean weight of each head on the deciding place, in one list."""
    return np.concatenate([score_head(record.weights, target) for record in traces])


def losses_by_task(logits, documents):
    """Return by task the accuracy and the losses of form and word, and the loss of all words.

    The loss of a form is that of the right one among the forms of its set, which the task decides;
    the excess loss of a whole word, `nats`, also says whether such a word was expected at all.
    """
    nats = entropy.excess_loss(logits, documents)
    return {
        "accuracy": entropy.accuracy(logits, documents),
        "form": entropy.form_loss(logits, documents),
        "nats": {task: nats[documents.task == i].mean() for i, task in enumerate(TASKS)},
        "loss": nats.mean(),
    }


def ablation_costs(model, documents, before, instead):
    """Return what is lost when heads give something else: `fall`, `form`, `nats` by task; `loss`.

    `before` is what there is otherwise: the costs, and the traces.
    """
    whole, traces = before
    found = losses_by_task(forward(model, documents.ids[:, :-1], instead, traces)[0], documents)
    fall = {task: whole["accuracy"][task] - found["accuracy"][task] for task in TASKS}
    rise = {part: {t: found[part][t] - whole[part][t] for t in TASKS} for part in ("form", "nats")}
    return {"fall": fall, **rise, "loss": found["loss"] - whole["loss"]}


def mean_outputs(model):
    """Return the mean output of each head, over places and documents of a set of its own."""
    _, traces = forward(model, held_out_documents(MEANS).ids[:, :-1])
    outputs = [record.heads.mean(axis=(0, 2)) for record in traces]
    return {head: outputs[head[0]][head[1]] for head in all_heads(model)}


def mean_distances(traces):
    """Return the mean distance back to the words that each head attends to, <bos> left out."""
    T = traces[0].weights.shape[-1]
    back = np.arange(T)[:, None] - np.arange(T)
    among = [r.weights[..., 1:] for r in traces]  # a model may put any weight on <bos>
    sums = [((w * back[:, 1:]).sum(axis=(0, 2, 3)), w.sum(axis=(0, 2, 3))) for w in among]
    return np.concatenate([distance / weight for distance, weight in sums])


def weights_on_copies(traces, documents):
    """Return the mean weight of each head on all copies so far of the right surname."""
    n, t = np.nonzero(documents.target_of("surname") >= 0)
    ids = documents.ids
    copies = ids[n, :-1] == ids[n, t + 1][:, None]  # (cases, T); the weights of later ones are 0
    return np.concatenate(
        [(r.weights[n, :, t] * copies[:, None]).sum(axis=-1).mean(axis=0) for r in traces]
    )


def logit_margins(logits, documents, task):
    """Return the right word's logit minus the mean of the other forms', for each word of a task."""
    asked = documents.task == TASKS.index(task)
    right, logits = documents.ids[:, 1:][asked], logits[asked]
    rivals = (FORMS[right][:, None] == FORMS) & (right[:, None] != np.arange(len(FORMS)))
    wrong = (logits * rivals).sum(axis=1) / rivals.sum(axis=1)
    return logits[np.arange(len(right)), right] - wrong


def sample_words(rng, *names):
    """Return a word of each class; classes of one kind give the same place of both."""
    place = rng.integers(min(len(CLASSES[name].split()) for name in names))
    return [CLASSES[name].split()[place] for name in names]


def words_between(rng, task, number):
    """Return the words between a subject and its verb that make a verb one of a task."""
    if task == "inside clause":
        return ["that"]
    if task == "across aside":
        opening, closing = (("(", ")"), ("[", "]"))[rng.integers(2)]
        return [opening, *sample_words(rng, "adverb"), closing]
    if task in ("across clause", "attractor"):
        other = number if task == "across clause" else {"s": "p", "p": "s"}[number]
        return [
            "that",
            "the",
            *sample_words(rng, f"noun:{other}"),
            *sample_words(rng, f"act:{other}"),
        ]
    return []


def noun_pair(rng, task):
    """Return a text with its right word, and its other: they differ in the subject's number."""
    nouns, verbs = sample_words(rng, "noun:s", "noun:p"), sample_words(rng, "rest:s", "rest:p")
    if task == "reflexive":
        verbs = sample_words(rng, "act:s", "act:p")
    order = list(rng.permutation(2))
    words = words_between(rng, task, "sp"[order[0]])
    ends = {"reflexive": ["itself", "themselves"], "pronoun": ["it", "they"]}.get(task, verbs)
    if task in ("reflexive", "pronoun"):  # here the verb differs too
        behind = [[verb, *["."] * (task == "pronoun")] for verb in verbs]
    else:
        behind = [words, words]
    return [(["the", nouns[i], *behind[i]], ends[i]) for i in order]


def name_pair(rng, task):
    """Return the same of texts that differ in a given name, of a woman and of a man."""
    (she,), (he,) = sample_words(rng, "given:f"), sample_words(rng, "given:m")
    first, second = rng.choice(CLASSES["surname"].split(), 2, replace=False)
    verb = sample_words(rng, "rest:s" if task == "pronoun" else "act:s")
    if task == "surname":
        begin = [she, first, *verb, he, second, "."]
        found = [([*begin, she], first), ([*begin, he], second)]
    else:
        ends = ["herself", "himself"] if task == "reflexive" else ["she", "he"]
        verb += ["."] * (task == "pronoun")
        found = [([name, first, *verb], end) for name, end in zip((she, he), ends, strict=True)]
    return [found[i] for i in rng.permutation(2)]


def bracket_pair(rng, task):
    """Return the same of texts that differ in the opening bracket that is still open."""
    inner = [["(", *sample_words(rng, "adverb"), ")"], ["[", *sample_words(rng, "adverb"), "]"]]
    inner = inner[rng.integers(2)] if task == "outer bracket" else []
    noun, adverb = sample_words(rng, "noun:s"), sample_words(rng, "adverb")
    found = [(["the", *noun, o, *adverb, *inner], c) for o, c in (("(", ")"), ("[", "]"))]
    return [found[i] for i in rng.permutation(2)]


def sample_context(rng):
    """Return whole sentences of the text, of at most BEFORE words."""
    ids = grammar.sample_documents(rng, 1, length=BEFORE).ids[0]
    ends = [0, *np.flatnonzero(ids == ID["."])]
    return list(ids[: rng.choice(ends) + 1])


def is_grammatical(text, task=None):
    """Say whether the rules allow a text, and, given a task, whether its last word is of it."""
    try:
        last = grammar.read_documents(np.array([text])).task[0, -1]
    except ValueError:
        return False
    return last == TASKS.index(task) if task else True


def sample_pair(rng, task, make):
    """Return ids of a text and of its other, and the right word of each, drawn until allowed."""
    while True:
        begin = sample_context(rng)
        (text, right), (other, its) = (
            ([*begin, *(ID[word] for word in words)], ID[end]) for words, end in make(rng, task)
        )
        if is_grammatical([*text, right], task) and is_grammatical([*other, its]):
            return text, other, right, its


WAYS = {task: (task, noun_pair) for task in TASKS}  # to make a pair of texts, and its task
WAYS |= {task: (task, name_pair) for task in ("reflexive", "pronoun", "surname")}
WAYS |= {task: (task, bracket_pair) for task in ("bracket", "outer bracket")}
WAYS |= {f"{task} of a noun": (task, noun_pair) for task in ("reflexive", "pronoun")}


@cache
def text_pairs():
    """Return ids and others, (n, T), where their last words stand, and the right words of each.

    Behind the last word follows <bos>, which no earlier place sees; PAIRS rows of each way.
    """
    rng = np.random.default_rng(PAIRED)
    found = [sample_pair(rng, *how) for how in WAYS.values() for _ in range(PAIRS)]
    texts, others, right, its = zip(*found, strict=True)
    last, width = np.array([len(text) - 1 for text in texts]), max(map(len, texts))
    padded = [
        np.array([[*row, *[0] * (width - len(row))] for row in rows]) for rows in (texts, others)
    ]
    return *padded, last, np.array(right), np.array(its)


def patching_shares(model):
    """Return by way to make a pair the share that each head carries, and the whole difference.

    In a text, a head gives what it gives in the other one. What it carries is a change of the
    difference of two logits, of the other text's right word and of this one's; the share is a ratio
    of sums over pairs. The whole is the mean of a pair: a share of nearly nothing says nothing.
    """
    ids, others, last, right, its = text_pairs()
    rows = np.arange(len(ids))

    def logit_change(logits):
        return (logits[rows, last, its] - logits[rows, last, right]).reshape(len(WAYS), PAIRS)

    (own, known), (given, traces) = forward(model, ids), forward(model, others)
    base = logit_change(own)
    whole = (logit_change(given) - base).sum(axis=1)
    shares = []
    for layer, head in all_heads(model):
        output = traces[layer].heads[:, head]
        moved = logit_change(forward(model, ids, {(layer, head): output}, known)[0]) - base
        shares.append(moved.sum(axis=1) / whole)
    by_way = (dict(zip(WAYS, rows, strict=True)) for rows in (np.transpose(shares), whole / PAIRS))
    return tuple(by_way)


def logit_difference_by_component(model, documents):
    """Return by task what the word itself and each head add to the right word's lead."""
    parts = logit_terms(model, documents.ids[:, :-1])
    return {task: [logit_margins(p, documents, task).mean() for p in parts] for task in TASKS}


def group_by_task(rows):
    """Turn what rows of heads lose into lists, by task and of the loss."""
    found = {part: {task: [row[part][task] for row in rows] for task in TASKS} for part in LOST}
    return found | {"loss": [row["loss"] for row in rows]}


def weight_statistics(traces, documents):
    """Return what the weights of each head say, without a head replaced."""
    return {
        "weight": {task: weights_on(traces, documents.target_of(task)) for task in TASKS},
        "distance": mean_distances(traces),
        "copies": weights_on_copies(traces, documents),
    }


def evaluate_heads(model, documents, instead):
    """Return everything that one set of documents says of each head, in a dict."""
    logits, traces = forward(model, documents.ids[:, :-1])
    before = losses_by_task(logits, documents), traces
    each = [
        ablation_costs(model, documents, before, {head: instead[head]}) for head in all_heads(model)
    ]
    return before, weight_statistics(traces, documents) | group_by_task(each)


def ablate_pairs(model, documents, before, instead, weight):
    """Return by task what it loses without the two heads that look at its deciding word most."""
    found, done = {}, {}
    for task, row in weight.items():
        two = tuple(sorted(int(h) for h in np.argsort(row)[-2:]))
        if two not in done:
            heads = [all_heads(model)[h] for h in two]
            done[two] = ablation_costs(
                model, documents, before, {head: instead[head] for head in heads}
            )
        names = [head_name(all_heads(model)[h]) for h in two]
        found[task] = {"heads": names} | {part: done[two][part][task] for part in LOST}
    return found


def score_heads(model):
    """Return every score of every head of a model: chosen on one set, reported on another."""
    instead, documents = mean_outputs(model), held_out_documents(TEST)
    _, first = evaluate_heads(model, held_out_documents(VALIDATION), instead)
    before, found = evaluate_heads(model, documents, instead)
    found["patch"], found["difference"] = patching_shares(model)
    if not isinstance(model, BlockModel):
        found["path"] = logit_difference_by_component(model, documents)
    found["pair"] = ablate_pairs(model, documents, before, instead, first["weight"])
    return rounded(found, 3)


def surnames_seen_before(documents, places):
    """Return for places, (n, T), which surnames were said before, (places, 12)."""
    n, t = np.nonzero(places)
    text = documents.ids[n][:, :-1]
    before = np.arange(text.shape[1]) <= t[:, None]
    words = np.flatnonzero(SURNAME)
    return ((text[..., None] == words) & before[..., None]).any(axis=1)


def repeated_surnames(documents):
    """Return of the surnames that were said before: document, place, who was said, who is right."""
    places = documents.task == TASKS.index("surname")
    n, t = np.nonzero(places)
    right = documents.ids[n, t + 1] - np.flatnonzero(SURNAME)[0]
    return n, t, surnames_seen_before(documents, places), right


@cache
def new_name_rates():
    """Return how often the given name before a surname is a new one, by how many were said."""
    documents = held_out_documents(VALIDATION)
    places = SURNAME[documents.ids[:, 1:]]
    new = documents.decided_by[places] < 0
    known = surnames_seen_before(documents, places).sum(axis=1)
    return np.array([new[known == k].sum() / max(1, (known == k).sum()) for k in range(KNOWN + 1)])


def uniform_guess(surnames_said):
    """Return even chances of the surnames said, (places, 12)."""
    return surnames_said / surnames_said.sum(axis=1, keepdims=True)


def blind_guess(surnames_said):
    """Return what to expect when it cannot be seen which given name stands before."""
    new = new_name_rates()[surnames_said.sum(axis=1)][:, None]
    return (1 - new) * uniform_guess(surnames_said) + new / surnames_said.shape[1]


def guess_rules():
    """Return what guesses are worth that know no names: how often right, and nats a surname."""
    n, _, said, right = repeated_surnames(held_out_documents(TEST))
    rows, found = np.arange(len(n)), {"cases": len(n)}
    for name, rule in (("uniform", uniform_guess(said)), ("blindly", blind_guess(said))):
        found[name] = {"nats": -np.log(rule[rows, right]).mean(), **unseen_weight(said, rule)}
    return rounded(found | {"right": uniform_guess(said)[rows, right].mean()})


def mean_and_error(values, n):
    """Return the mean of what places give, and its standard error over their documents."""
    apart = np.bincount(n, weights=values - values.mean())
    return {"mean": values.mean(), "standard_error": np.sqrt((apart**2).sum()) / len(values)}


def unseen_weight(surnames_said, weights):
    """Return how much of the weights, (places, 12), falls on surnames that were never said."""
    return {"never_said": (weights * ~surnames_said).sum(axis=1).mean()}


def evaluate_guesses(arm, seed, rate, steps):
    """Return how a model's guesses of surnames fall, and what they know beyond who was said.

    What it expects is taken among the surnames alone. `over_chance`: whether its guess is right,
    less the chance that the even rule gives to this guess, which is 0 if it was never said.
    """
    arrays, documents = cached_run(arm, seed, rate, steps, TEST)[1], held_out_documents(TEST)
    n, t, said, right = repeated_surnames(documents)
    logits = forward(as_model(arrays, arm), documents.ids[:, :-1])[0][n, t][:, SURNAME]
    expected, rows = softmax(logits), np.arange(len(n))
    guess = np.eye(expected.shape[1])[expected.argmax(axis=1)]
    chance = (guess * uniform_guess(said)).sum(axis=1)
    found = {"seed": seed, "steps": steps, "right": guess[rows, right].mean()}
    found |= {"guesses": unseen_weight(said, guess), "expected": unseen_weight(said, expected)}
    found["over_chance"] = mean_and_error(guess[rows, right] - chance, n)
    return rounded(found | {"nats": -np.log(expected[rows, right]).mean()})


def train_at_best_rate(name):
    """Train a model from every seed at its best rate; return its part of the record."""
    arm = MODELS[name]
    found = known_text.tune_and_train(arm, BLOCK_RATES if arm.feed else None)
    for part in (found, *found["runs"]):
        part.pop("bands")
    return {"layers": arm.layers, "feed": arm.feed} | found


def train_longer(name, rate):
    """Train a model for twice the steps from every seed; return how far its curve is from flat."""
    runs = [cached_run(MODELS[name], seed, rate, 2 * STEPS, TEST)[0] for seed in SEEDS]
    found = {"steps": known_text.evaluation_steps(2 * STEPS), **known_text.summary(runs)}
    found.pop("bands")
    rows = [{"seed": run["seed"], "excess_loss": run["excess_loss"]} for run in runs]
    return found | {"runs": rows}


def settings():
    """Return what all models share, and which documents are which."""
    found = known_text.settings()
    found.pop("layers")
    found |= {"pairs": PAIRS, "pairs_made": PAIRS * len(WAYS)}
    return found | {"seeds": {"test": TEST, "validation": VALIDATION, "means": MEANS}}


def score_seeds(name, rate):
    """Return the part of the record about the heads of a model, in half precision, by seed."""
    arm, seeds = MODELS[name], []
    for seed in SEEDS:
        progress(f"{name}, seed {seed}: heads")
        model = known_text.half_precision_model(arm, seed, rate)
        seeds.append({"seed": seed} | score_heads(model))
    names = [head_name((i, h)) for i in range(arm.layers) for h in range(arm.heads)]
    return {"names": names, "seeds": seeds}


def main(record):
    """Train and score every model, and write both files, anew behind each."""
    record |= {"settings": settings(), "guess_rules": guess_rules()}
    for name in MODELS:
        found = record.setdefault("models", {})[name] = train_at_best_rate(name)
        progress("")
        print(f"{name}: {found['excess_loss']}, rate {found['rate']}", flush=True)
        if name in PLATEAUS:
            runs = [evaluate_guesses(MODELS[name], s, found["rate"], PLATEAUS[name]) for s in SEEDS]
            record.setdefault("plateau", {})[name] = runs
        if name in SCORED:
            record.setdefault("heads", {})[name] = score_seeds(name, found["rate"])
        if name == MLP.name:
            write_checkpoint("known_block", known_text.checkpoint(MLP, found["rate"]))
        write("scored_heads", record)
    for name in LONGER:
        found = train_longer(name, record["models"][name]["rate"])
        record.setdefault("longer", {})[name] = found

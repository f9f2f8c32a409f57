"""Train models on the text whose truth is known, long enough to see which curves are flat.

The text is that of `models/grammar.py`, the architecture that of `copying.TinyModel`: two layers,
each adds its output. Arms differ in their key heads, in what they know of places, or in that keys
and values are made of a latent. All see the same documents, none of them twice, each seed in an
order of its own. The rate is constant behind a warm-up, and what is tested is an average of the
weights so far, so that one run tells what half of its steps would have given. A family of arms
takes the best of three rates, by the loss on documents kept for this choice: of one run of half the
steps, or, where the best of these has not left the plateau before the surnames are found, by the
mean of two runs of all steps. The seeds of these runs are not used again; each arm then trains from
five seeds. The loss is given in nats a word above the
exact surprise of the same documents. The first model of all is the example: the record also says
what it loses, without training, when its keys and values are truncated, averaged or rounded.

Writes src/tutorial_lib/data/results/known_text.json, anew behind each arm, and the example in half
precision to src/tutorial_lib/data/checkpoints/known_text.npz. What is done is kept in
_build/known_text, so a run that was stopped goes on where it was; empty that folder when seeds,
rates, the text or the training itself have changed.
"""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from experiments.measuring import cached, progress, write, write_checkpoint
from tutorial_lib import (
    Params,
    attention_scores,
    attention_weights,
    causal_mask,
    concat_heads,
    embed,
    project_heads,
    records,
)
from tutorial_lib.models import copying, entropy, grammar
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import LENGTH, WORDS
from tutorial_lib.models.language import BlockModel
from tutorial_lib.variants.cache import quantise
from tutorial_lib.variants.grouped import group_params
from tutorial_lib.variants.latent import latent_params
from tutorial_lib.variants.positions import alibi_slopes

SEEDS, RATES = range(5), (2e-3, 4e-3, 8e-3)
RATE_SEEDS = (100, 101)
STREAM, VALIDATION, TEST, LONG = 10_000, 2000, 1000, 1001  # seeds
SEED = [*SEEDS, *RATE_SEEDS, TEST, LONG, VALIDATION, STREAM]
BATCH, STEPS, TRIED_FOR, WARM_UP = 16, 6144, 3072, 200
TESTED, D_MODEL = 600, 64
OUTER = 2.5  # times the rate, for E, P and U: their entries begin larger
PLATEAU = 0.05  # nats; a model that does not know the surnames loses more
FORGETS = 4  # the average forgets what lies before a quarter of the steps, or nearly so
BANDS = (0, 64, 96, 128)  # places of long documents
DONE = Path("_build") / "known_text"


class Arm(NamedTuple):
    """One form of the model: what it is compared in, its name, its widths, its places.

    A model with `feed` numbers between two matrices is a stack of blocks: norms before each part.
    `output` says what W_O is: learned; "frozen" as drawn; "none", heads side by side are the
    output; "folded" into values of width d_model, one matrix a head, so that heads add up.
    """

    group: str
    name: str
    heads: int = 4
    kv_heads: int = 4
    d_k: int = 16
    positions: str = "learned"
    rank: int | None = None
    sink: bool = False
    feed: int = 0
    layers: int = 2
    d_v: int | None = None
    output: str = "learned"

    @property
    def values(self):
        """The width of a head's values: as that of its keys, where none is given."""
        return self.d_v or self.d_k

    @property
    def has_output(self):
        """Whether there is a W_O."""
        return self.output in ("learned", "frozen")

    @property
    def family(self):
        """The arm whose rates are tried for this one too."""
        split = self.kv_heads == self.heads != EXAMPLE.heads  # its width otherwise
        if self.layers == 1 or self.feed or self.output != "learned" or split:
            return self._replace(group="", name="")
        family = Arm("", "", positions=self.positions, sink=self.sink, rank=self.rank)
        return family._replace(kv_heads=self.kv_heads if self.rank else 4)

    @property
    def shapes(self):
        """The shapes of what is learned; queries, keys and values side by side."""
        wide, narrow = self.heads * self.d_k, self.kv_heads * (self.d_k + self.values)
        if self.rank:
            layer = [(D_MODEL, wide), (D_MODEL, self.rank), (self.rank, narrow)]
        else:
            layer = [(D_MODEL, wide + narrow)]
        layer += [(self.heads,)] * self.sink
        layer += [(self.heads * self.values, D_MODEL)] * self.has_output
        if self.feed:
            layer += [(D_MODEL, self.feed), (self.feed, D_MODEL)]
        places = [(LENGTH, D_MODEL)] * (self.positions == "learned")
        return [(len(WORDS), D_MODEL), *places, *layer * self.layers, (D_MODEL, len(WORDS))]


EXAMPLE = Arm("heads", "4 heads, 4 KV heads")
PLACES = ("RoPE", "ALiBi", "none")
ARMS = (
    EXAMPLE,
    EXAMPLE._replace(group="positions", name="learned"),
    *(Arm("positions", name, positions=name) for name in PLACES),
    *(Arm("heads", f"4 heads, {g} KV head{'s' * (g > 1)}", 4, g) for g in (2, 1)),
    *(Arm("positions", f"{name}, heads of 18", d_k=18, positions=name) for name in PLACES),
    Arm("heads", "6 heads, 2 KV heads", 6, 2),
    Arm("heads", "7 heads, 1 KV head", 7, 1),
    Arm("latent", "rank 32", rank=32),
)


def init_arrays(arm, seed):
    """Draw the untrained arrays of an arm, with a variance near 1 in what they make."""
    rng, shapes = np.random.default_rng(seed), arm.shapes
    sums = 1 + (arm.positions == "learned")  # arrays that are added up to X
    scales = [sums] * sums + [shape[0] for shape in shapes[sums:]]
    pairs = zip(shapes, scales, strict=True)
    arrays = [rng.standard_normal(shape) / np.sqrt(scale) for shape, scale in pairs]
    if arm.output == "folded":  # its heads are added up, and begin with the variance of a sum
        for array in arrays[sums:-1]:
            array[:, 2 * arm.heads * arm.d_k :] /= np.sqrt(arm.heads)
    arrays = [torch.tensor(array, dtype=torch.float32, requires_grad=True) for array in arrays]
    for array in arrays[sums + 1 : -1 : 2] if arm.output == "frozen" else ():
        array.requires_grad_(False)
    return arrays


def rotate_pairs(X, base=10_000.0):
    """Turn neighbours (2i, 2i + 1) of X, (..., T, d_k), by their place: RoPE."""
    T, d_k = X.shape[-2:]
    rates = base ** (-torch.arange(0, d_k, 2, dtype=X.dtype) / d_k)
    angles = torch.arange(T, dtype=X.dtype)[:, None] * rates
    pairs = torch.view_as_complex(X.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def alibi_bias(n_heads, T, dtype):
    """Return what ALiBi adds to the scores, -inf where a query may not look: (H, T, T)."""
    slope = torch.tensor(alibi_slopes(n_heads), dtype=dtype)
    steps = torch.arange(T, dtype=dtype)
    bias = -slope[:, None, None] * (steps[:, None] - steps)
    return bias.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)


def project_qkv(X, matrices, arm):
    """Return Q, (B, H, T, d_k), and K, V, (B, G, T, d_k), of X, (B, T, d_model)."""
    if arm.rank:
        W_Q, W_D, W_U = matrices
        wide = torch.cat([X @ W_Q, X @ W_D @ W_U], dim=-1)
    else:
        wide = X @ matrices[0]
    widths = [arm.heads * arm.d_k, arm.kv_heads * arm.d_k, arm.kv_heads * arm.values]
    parts = zip(wide.split(widths, dim=-1), (arm.heads, arm.kv_heads, arm.kv_heads), strict=True)
    return [part.unflatten(-1, (n, -1)).transpose(1, 2) for part, n in parts]


def qkv_per_head(X, matrices, arm, *, tiled=False):
    """Return Q, K and V as they meet: turned, and keys and values for each head.

    Key heads that are tiled go round, where others repeat.
    """
    Q, K, V = project_qkv(X, matrices, arm)
    if arm.positions == "RoPE":
        Q, K = rotate_pairs(Q), rotate_pairs(K)
    copies = arm.heads // arm.kv_heads
    if tiled:
        K, V = (Z.repeat(1, copies, 1, 1) for Z in (K, V))
    elif copies > 1:
        K, V = (Z.repeat_interleave(copies, dim=1) for Z in (K, V))
    return Q, K, V


def attend_and_concat(X, matrices, arm, *, seen=None, tiled=False, **options):
    """Return the heads side by side, (B, T, H * d_v), with options of SDPA such as `scale`.

    `seen`, (T, T), says which keys a query may see, in place of all before it.
    """
    Q, K, V = qkv_per_head(X, matrices, arm, tiled=tiled)
    T, bias = X.shape[1], None
    if arm.positions == "ALiBi":
        bias = alibi_bias(arm.heads, T, X.dtype)
    elif arm.sink or seen is not None:
        seen = torch.ones(T, T, dtype=torch.bool).tril() if seen is None else seen
        bias = torch.zeros(arm.heads, T, T, dtype=X.dtype).masked_fill(~seen, -torch.inf)
    if arm.sink:  # a token of zeros first: each softmax has one more term, that brings no value
        K, V = (functional.pad(Z, (0, 0, 1, 0)) for Z in (K, V))
        bias = torch.cat([matrices[-1][:, None, None].expand(-1, T, 1), bias], dim=-1)
    options |= {"attn_mask": bias, "is_causal": bias is None}
    heads = functional.scaled_dot_product_attention(Q, K, V, **options)
    return heads.transpose(1, 2).flatten(2)


def project_out(heads, W_O, arm):
    """Return what heads side by side, (B, T, H * d_v), add to X."""
    if arm.output == "folded":
        return heads.unflatten(-1, (arm.heads, -1)).sum(dim=-2)
    return heads @ W_O if arm.has_output else heads


def normed(X, arm):
    """Return X, its rows divided by their root mean square where the arm is a stack of blocks."""
    return functional.rms_norm(X, X.shape[-1:]) if arm.feed else X


def forward(arrays, ids, arm, attend=attend_and_concat):
    """Return the scores of the next word, (B, T, vocabulary): `copying.run` of any arm."""
    E, *arrays, U = arrays
    X = functional.embedding(ids, E)
    if arm.positions == "learned":
        P, *arrays = arrays
        X = X + P[: ids.shape[1]]
    size = len(arrays) // arm.layers
    for layer in range(arm.layers):
        matrices = arrays[layer * size : (layer + 1) * size]
        matrices = matrices[:-2] if arm.feed else matrices
        W_O = matrices.pop() if arm.has_output else None
        X = X + project_out(attend(normed(X, arm), matrices, arm), W_O, arm)
        if arm.feed:
            W_1, W_2 = arrays[(layer + 1) * size - 2 : (layer + 1) * size]
            X = X + functional.relu(normed(X, arm) @ W_1) @ W_2
    return normed(X, arm) @ U


def training_ids(seed, documents):
    """Return the ids that every arm trains on, in the order of a seed."""
    kept = DONE / f"stream-{documents}.npy"
    if not kept.exists():
        rng, parts = np.random.default_rng(STREAM), range(0, documents, 4096)
        drawn = [grammar.sample_documents(rng, min(4096, documents - p)).ids for p in parts]
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, np.concatenate(drawn).astype(np.int8))
    return np.random.default_rng(seed).permutation(np.load(kept))


def adam_optimizer(arrays, arm):
    """Return an Adam in which E, P and U move further than the layers' matrices."""
    first = 1 + (arm.positions == "learned")
    outer = {"params": [*arrays[:first], arrays[-1]], "times": OUTER}
    inner = {"params": [W for W in arrays[first:-1] if W.requires_grad], "times": 1.0}
    return torch.optim.Adam([outer, inner], betas=(0.9, 0.98), fused=True)


def train(arm, seed, rate, steps, attend=attend_and_concat):
    """Train an arm, and hand out each step and the average of its weights so far.

    `attend` is what its layers do between X and W_O.
    """
    arrays, ids = init_arrays(arm, seed), training_ids(seed, BATCH * max(steps, STEPS))
    average = [array.detach().clone() for array in arrays]
    optimizer = adam_optimizer(arrays, arm)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = group["times"] * rate * min(1, step / WARM_UP)
        batch = torch.from_numpy(ids[(step - 1) * BATCH : step * BATCH].astype(int))
        logits = forward(arrays, batch[:, :-1], arm, attend)
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = [array.detach() for array in arrays]
        torch._foreach_lerp_(average, now, FORGETS / (step + FORGETS - 1))
        yield step, average


def scores(arrays, documents, arm, attend=attend_and_concat):
    """Return what an arm expects behind each word, (n, T, vocabulary), in float64."""
    ids = torch.from_numpy(documents.ids[:, :-1])
    with torch.no_grad():
        return forward(arrays, ids, arm, attend).double().numpy()


def evaluate_logits(logits, documents):
    """Return nats above the floor, their standard error over documents, and accuracy by task."""
    loss = entropy.excess_loss(logits, documents).mean(axis=1)
    right = {task: round(share, 4) for task, share in entropy.accuracy(logits, documents).items()}
    error = loss.std(ddof=1) / np.sqrt(len(loss))
    return {"excess_loss": digits(loss.mean()), "standard_error": digits(error), "accuracy": right}


def digits(number):
    """Round to what a standard error of 600 documents leaves to be said."""
    return round(float(number), 5) + 0.0  # and never -0.0


def held_out_documents(seed, *, length=LENGTH):
    """Return documents that no training step sees."""
    return grammar.sample_documents(np.random.default_rng(seed), TESTED, length=length)


def evaluation_steps(steps):
    """Return the steps at which a run is judged: halvings of its steps, with one between two."""
    found = {round(steps / 2 ** (n / 2)) for n in range(11)}
    return sorted(found)


def run(arm, seed, rate, steps, documents):
    """Train one arm from one seed; return its part of the record, and its weights."""
    found = {"seed": seed, "excess_loss": [], "accuracy": {}}
    for step, average in train(arm, seed, rate, steps):
        if step in evaluation_steps(steps):
            now = evaluate_logits(scores(average, documents, arm), documents)
            found["excess_loss"].append(now["excess_loss"])
            for task, share in now["accuracy"].items():
                found["accuracy"].setdefault(task, []).append(share)
            progress(f"{arm.name}, seed {seed}, rate {rate}: step {step} {now['excess_loss']:.3f}")
    return found | {"standard_error": now["standard_error"]}, average


def loss_by_band(arrays, arm):
    """Return nats above the floor in each band of places of long documents; learned has no rows."""
    reach = LENGTH if arm.positions == "learned" else BANDS[-1]
    documents = held_out_documents(LONG, length=BANDS[-1])
    ids, surprise = documents.ids[:, : reach + 1], documents.surprisal[:, :reach]
    documents = grammar.Documents(ids, surprise, documents.task[:, :reach], None)
    loss, found = entropy.excess_loss(scores(arrays, documents, arm), documents), {}
    for low, high in pairwise(BANDS):
        found[f"{low} to {high - 1}"] = digits(loss[:, low:high].mean()) if high <= reach else None
    return found


def cached_run(arm, seed, rate, steps, tested):
    """Return what a run found, of _build if it is done; its weights lie beside it."""
    words = [*arm[2:], seed, rate, steps]
    file = DONE / ("-".join(map(str, words)) + ".json")

    def train_and_keep():
        found, average = run(arm, seed, rate, steps, held_out_documents(tested))
        np.savez(file.with_suffix(".npz"), *(array.numpy() for array in average))
        return found | {"bands": loss_by_band(average, arm)}

    found = cached(file, train_and_keep)
    with np.load(file.with_suffix(".npz")) as arrays:
        return found, list(arrays.values())


def spread(values):
    """Return the least, the middle and the most of what the seeds give."""
    values = sorted(values)
    return {"min": values[0], "median": values[len(values) // 2], "max": values[-1]}


def tune_and_train(arm, rates=None):
    """Choose the rate of an arm's family, train it from every seed; return its part of a record."""
    tried = tried_rates(arm, rates, seeds=RATE_SEEDS[:1], steps=TRIED_FOR)
    if min(row["excess_loss"] for row in tried) > PLATEAU:
        tried = tried_rates(arm, rates)
    best = min(tried, key=lambda row: row["excess_loss"])
    return train_all_seeds(arm, best["rate"], tried)


def tried_rates(arm, rates=None, *, seeds=RATE_SEEDS, steps=None):
    """Return the mean loss of an arm's family at each of its rates, and the loss of each seed."""
    tried, steps = [], steps or STEPS
    for rate in rates or RATES:
        runs = [cached_run(arm.family, seed, rate, steps, VALIDATION)[0] for seed in seeds]
        losses = [found["excess_loss"][-1] for found in runs]
        row = {"rate": rate, "steps": steps, "excess_loss": digits(np.mean(losses))}
        tried.append(row | {"seeds": losses})
    return tried


def rates_of_all_steps():
    """Return what a choice by two runs of all steps would rest on, by what models know of places.

    The rates of the record were chosen by one run of half the steps, which had found the surnames.
    """
    return {
        arm.name: tried_rates(arm) for arm in ARMS if arm.group == "positions" and arm.d_k == 16
    }


def train_all_seeds(arm, rate, tried):
    """Train an arm from every seed at a rate; return its part of a record."""
    runs = [cached_run(arm, seed, rate, STEPS, TEST)[0] for seed in SEEDS]
    found = {name: getattr(arm, name) for name in ("heads", "kv_heads", "d_k", "positions")}
    found |= {"rank": arm.rank, "parameters": sum(map(np.prod, arm.shapes)).item(), "rate": rate}
    found |= {"tried": tried, "steps": evaluation_steps(STEPS), **summary(runs), "runs": runs}
    return found


def summary(runs):
    """Return what the seeds have in common: last figures, and what doubling the steps moved."""
    last = [found["excess_loss"][-1] for found in runs]
    half = [found["excess_loss"][-3] for found in runs]  # one is between
    ends, moved = spread(last), spread(last)["median"] - spread(half)["median"]
    tasks = {t: spread([found["accuracy"][t][-1] for found in runs]) for t in grammar.TASKS}
    parts = {b: [found["bands"][b] for found in runs] for b in runs[0]["bands"]}
    parts = {b: None if None in values else spread(values) for b, values in parts.items()}
    change = paired_change(runs)
    return {
        "excess_loss": ends,
        "accuracy": tasks,
        "bands": parts,
        "doubling_change": digits(moved),
        "change": change,
        "flat": -change["mean"] <= change["standard_error"],
    }


def paired_change(runs):
    """Return how much the second half of the steps changed the loss, on average over seeds.

    Each seed is compared with itself. How much the seeds differ says nothing about a curve: all may
    fall by less than that.
    """
    changes = [found["excess_loss"][-1] - found["excess_loss"][-3] for found in runs]
    error = np.std(changes, ddof=1) / len(changes) ** 0.5 if len(changes) > 1 else 0.0
    return {"mean": digits(np.mean(changes)), "standard_error": digits(error)}


def as_model(arrays, arm=EXAMPLE):
    """Return the model of an arm's arrays, in float64; without places its P is zeros."""
    E, *arrays, U = (np.asarray(array, dtype=float) for array in arrays)
    P = arrays.pop(0) if arm.positions == "learned" else np.zeros((LENGTH, D_MODEL))
    layers, feeds, size = [], [], len(arrays) // arm.layers
    for first in range(0, len(arrays), size):
        wide, *feed = arrays[first : first + size]
        W_O = feed.pop(0) if arm.has_output else np.tile(np.eye(arm.values), (arm.heads, 1))
        W_O = np.eye(D_MODEL) if arm.output == "none" else W_O
        parts = np.split(wide, [arm.heads * arm.d_k, 2 * arm.heads * arm.d_k], axis=1)
        heads = (W.reshape(D_MODEL, arm.heads, -1).swapaxes(0, 1) for W in parts)
        layers.append(Params(*heads, W_O))
        feeds.append(tuple(feed))
    if arm.feed:
        return BlockModel(E, P, tuple(layers), tuple(feeds), U)
    return TinyModel(E, P, tuple(layers), U)


def half_precision_model(arm, seed, rate, steps=None):
    """Return the model that an arm has trained, its numbers rounded to half precision."""
    arrays = cached_run(arm, seed, rate, steps or STEPS, TEST)[1]
    return as_model([array.astype(np.float16) for array in arrays], arm)


def checkpoint(arm, rate):
    """Return the arrays of an arm's first seed in half precision, as a chapter loads them."""
    model = half_precision_model(arm, SEEDS[0], rate)
    return [array.astype(np.float16) for array in model.arrays]


def replace_params(model, change):
    """Return the model whose layers' Params are changed into a record that expands to Params."""
    layers = (change(params).expanded() for params in model.layers)
    return TinyModel(model.E, model.P, tuple(layers), model.U)


def quantise_dequantise(Z, **how):
    """Return what is left of Z, (..., H, T, d_k), when it is kept as `quantise` says."""
    codes, low, step = quantise(Z, **how)
    return low + step * codes


def run_rounded(model, ids, **how):
    """Go forward as `copying.run`, with keys and values rounded; return the scores."""
    X, mask = embed(ids, model.E, model.P), causal_mask(ids.shape[-1])
    for params in model.layers:
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        K, V = quantise_dequantise(K, **how), quantise_dequantise(V, **how)
        weights = attention_weights(attention_scores(Q, K), mask=mask)
        X = X + concat_heads(weights @ V) @ params.W_O
    return X @ model.U


def compressed_cache_losses(model):
    """Return the parts of the record about the example with other keys and values."""
    documents = held_out_documents(TEST)
    ids = documents.ids[:, :-1]

    def lost(change):
        return evaluate_logits(copying.run(replace_params(model, change), ids)[0], documents)

    ways = {"per token": -1, "per channel": -2}
    return {
        "truncated": {
            str(r): lost(partial(latent_params, rank=r)) for r in (64, 48, 32, 24, 16, 8)
        },
        "pooled": {str(g): lost(partial(group_params, n_kv_heads=g)) for g in (4, 2, 1)},
        "quantised": {
            way: {
                str(b): evaluate_logits(run_rounded(model, ids, bits=b, axis=axis), documents)
                for b in (8, 4, 3, 2)
            }
            for way, axis in ways.items()
        },
    }


def guess_accuracy():
    """Return how often a surname is right that is guessed among those said before."""
    documents = held_out_documents(TEST)
    chances = []
    for i, t in zip(*np.nonzero(documents.task == grammar.TASKS.index("surname")), strict=True):
        ids = documents.ids[i]
        chances.append(1 / len({word for word in ids[: t + 1] if grammar.SURNAME[word]}))
    return {"one said, evenly": round(float(np.mean(chances)), 4)}


def settings():
    """Return what all arms share."""
    return {
        "d_model": D_MODEL,
        "layers": EXAMPLE.layers,
        "vocabulary": len(WORDS),
        "length": LENGTH,
        "batch": BATCH,
        "times_the_rate_of_E_P_U": OUTER,
        "steps": STEPS,
        "tried_for": TRIED_FOR,
        "documents": BATCH * STEPS,
        "tested_documents": TESTED,
    }


def main(record):
    """Train every arm, print a line for each, and write both files, anew behind each arm."""
    record |= {"settings": settings(), "guessed_surnames": guess_accuracy()}
    record["rates"] = rates_of_all_steps()
    for arm in ARMS:
        found = tune_and_train(arm)
        record.setdefault(arm.group, {})[arm.name] = found
        progress("")
        print(f"{arm.group}, {arm.name}: {found['excess_loss']}, rate {found['rate']}", flush=True)
        if arm == EXAMPLE:
            write_checkpoint("known_text", checkpoint(EXAMPLE, found["rate"]))
            model = TinyModel.of(records.checkpoint("known_text"))
            documents = held_out_documents(TEST)
            record["example"] = evaluate_logits(
                copying.run(model, documents.ids[:, :-1])[0], documents
            )
            record |= compressed_cache_losses(model)
        write("known_text", record)

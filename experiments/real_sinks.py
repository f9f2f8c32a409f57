"""Measure the sink of a real model: where it is, what makes it, and what a window does without it.

The model is SmolLM2-135M-Instruct with 4-bit weights, the texts are the 48 of real_prose.txt,
which no model has read, each cut to LENGTH tokens and given without the model's chat template.
Layers, heads and tokens are counted from 0. A sink's weight is the mean over rows from FROM on;
losses are means over the same rows, in nats. What is compared with the model as it is, is compared
text by text: a mean over the 48 texts with its standard error.

Writes src/tutorial_lib/data/results/real_sinks.json. Half an hour.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.measuring import progress, rounded
from tutorial_lib import causal_mask
from tutorial_lib.models.real.gguf import FORMATS, Q4_1, read_gguf
from tutorial_lib.models.real.model import (
    FEED,
    SHA256,
    model_from_gguf,
    real_file,
    real_model,
    run_real,
    token_losses,
)

SEED = 0  # of the noise on the weights, and of the random row
TEXTS = Path(__file__).with_name("real_prose.txt")
LENGTH, FROM, WINDOW_FROM = 270, 60, 100
MAKER, ENTRY = 11, 507  # the layer whose feed makes the sink, and the entry that it writes
LATER = MAKER + 1  # the first layer that reads it
TO, CONTROL = 40, 5  # tokens: where the spike is moved, where it never was
FIRST = ("the", ".", "banana", "\n", "<|im_start|>")
WINDOWS = (16, 64)
STRIDE = 5  # of the tokens that get a text of their own
QUESTION, LAYOUT = "The capital of France is", 160  # tokens of the first text
DRAWS = 3


def sink_weight(trace, token):
    """Return the mean weight of a token in each head, (L, H), from rows that see it."""
    return trace.weights[:, :, FROM:, token].mean(axis=-1)


def later_sink_weight(trace, token):
    """Return the mean weight of a token over all heads behind the maker of the sink."""
    return float(sink_weight(trace, token)[LATER:].mean())


def loss(trace, ids, start=FROM):
    """Return the mean loss of the tokens from `start` on."""
    return float(token_losses(trace.logits, ids)[start - 1 :].mean())


def replace_row(feed, token):
    """Return what a feed adds, with an ordinary row at a token: the mean of rows 20 to 29."""
    feed = feed.copy()
    feed[token] = feed[20:30].mean(axis=0)  # of rows 1 to 9 one may hold a second spike
    return feed


def move_row(feed, *, entry=slice(None)):
    """Return what a feed adds, an ordinary row in row 0, its own or an entry of it in row TO."""
    changed = replace_row(feed, 0)
    changed[TO, entry] = feed[0, entry]
    return changed


def random_row(feed):
    """Return what a feed adds, an ordinary row in row 0, and in TO a random one as long as it."""
    changed, row = replace_row(feed, 0), np.random.default_rng(SEED).standard_normal(feed.shape[-1])
    changed[TO] = row * np.linalg.norm(feed[0]) / np.linalg.norm(row)
    return changed


def zero_entry(feed):
    """Return what a feed adds, without the largest entry of row 0 and with all its others."""
    changed = feed.copy()
    changed[0, ENTRY] = 0
    return changed


def isolation_mask(row):
    """Return the causal mask in which a row sees only itself."""
    mask = causal_mask(LENGTH)
    mask[row, :row] = False
    return mask


CHANGES = {
    "as it is": {},
    "token 0 replaced": {"hooks": {(MAKER, FEED): partial(replace_row, token=0)}},
    "token 5 replaced": {"hooks": {(MAKER, FEED): partial(replace_row, token=CONTROL)}},
    "moved to token 40": {"hooks": {(MAKER, FEED): move_row}},
    "one entry moved": {"hooks": {(MAKER, FEED): partial(move_row, entry=ENTRY)}},
    "a random row": {"hooks": {(MAKER, FEED): random_row}},
    "one entry zero": {"hooks": {(MAKER, FEED): zero_entry}},
    "row 40 sees only itself": {"mask": isolation_mask(TO)},
}


def recent_keys_mask(width, kept=()):
    """Return a mask: so many keys a row, the last ones and those that are kept."""
    rows, keys = np.arange(LENGTH)[:, None], np.arange(LENGTH)
    recent = keys > rows - (width - len(kept))
    return (keys <= rows) & (recent | np.isin(keys, kept))


def fresh_text_loss(model, ids, width):
    """Return the mean loss of every STRIDE-th token, each behind so many tokens as a whole text."""
    starts = np.arange(WINDOW_FROM - width, LENGTH - width, STRIDE)
    texts = [ids[start : start + width + 1] for start in starts]
    losses = [token_losses(run_real(model, text).logits, text)[-1] for text in texts]
    return float(np.mean(losses))


def compare_layouts(model, ids):
    """Return the next word and the loss with RoPE's pairs as the file has them, and as halves."""
    d_k = model.blocks[0].params.d_k
    order = np.arange(d_k).reshape(2, -1).T.ravel()  # entries i and i + d_k / 2 become neighbours
    blocks = []
    for block in model.blocks:
        params = block.params
        rows = {"W_Q": params.W_Q[..., order], "W_K": params.W_K[..., order]}
        blocks.append(replace(block, params=replace(params, **rows)))
    found = {}
    for name, one in (("neighbours", model), ("halves", replace(model, blocks=blocks))):
        asked = run_real(one, model.tokenizer.encode(QUESTION)).logits[-1]
        losses = token_losses(run_real(one, ids[:LAYOUT]).logits, ids[:LAYOUT])
        word = model.tokenizer.decode([int(asked.argmax())])
        found[name] = {"next": word, "loss": float(losses.mean())}
    return found


def summary(values):
    """Return the mean over the texts and its standard error."""
    values = np.array(values)
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return {"mean": values.mean(axis=0).round(4).tolist(), "error": error.round(4).tolist()}


def measure_changes(model, texts):
    """Return weights and loss of each change, and how much the loss differs, over the texts."""
    table = {}
    for name, options in CHANGES.items():
        progress(name)
        traces = ((run_real(model, ids, **options), ids) for ids in texts)
        table[name] = np.array(
            [(later_sink_weight(t, 0), later_sink_weight(t, TO), loss(t, ids)) for t, ids in traces]
        )
    names, plain = ("token 0", "token 40", "loss"), table["as it is"]
    return {
        name: {column: summary(rows[:, n]) for n, column in enumerate(names)}
        | {"more loss": summary(rows[:, 2] - plain[:, 2])}
        for name, rows in table.items()
    }


def compare_first_tokens(model, ids):
    """Return the median sink, and how the 270 heads correlate, for other first tokens."""
    plain = sink_weight(run_real(model, ids), 0)
    found = {}
    for word in FIRST:
        token = model.tokenizer.ids.get(word)
        token = model.tokenizer.encode(word)[0] if token is None else token
        sinks = sink_weight(run_real(model, np.concatenate(([token], ids[1:]))), 0)
        correlation = np.corrcoef(plain.ravel(), sinks.ravel())[0, 1]
        found[word] = {"median": float(np.median(sinks)), "correlation": float(correlation)}
    return found


def measure_windows(model, texts):
    """Return the perplexity of each kind of window, from token WINDOW_FROM on, over all texts."""
    table = {"all keys": {"all": None}}
    for width in WINDOWS:
        kept = {"last": (), "token 0": (0,), "tokens 0 to 3": (0, 1, 2, 3), "token 1": (1,)}
        masks = {name: recent_keys_mask(width, tokens) for name, tokens in kept.items()}
        table[str(width)] = masks | {
            "token 40, alone": recent_keys_mask(width, (TO,)) & isolation_mask(TO)
        }
    found = {}
    for width, masks in table.items():
        for name, mask in masks.items():
            progress(f"window {width}, {name}")
            losses = [loss(run_real(model, ids, mask=mask), ids, WINDOW_FROM) for ids in texts]
            found.setdefault(width, {})[name] = perplexity(losses)
        if width != "all keys":
            losses = [fresh_text_loss(model, ids, int(width)) for ids in texts]
            found[width]["a text of its own"] = perplexity(losses)
    return found


def perplexity(losses):
    """Return the perplexity of losses, and the standard error of their mean, in nats."""
    return {
        "perplexity": round(float(np.exp(np.mean(losses))), 2),
        "error of loss": summary(losses)["error"],
    }


class NoisyFile:
    """A file whose 4-bit numbers are each off by up to half a step: what rounding may have done."""

    def __init__(self, file, rng):
        self.path, self.facts, self.file, self.rng = file.path, file.facts, file, rng

    def array(self, name):
        """Return an array with its noise."""
        array, entry = self.file.array(name), self.file.entries[name]
        if entry.type != Q4_1:
            return array
        steps = self.file.blocks(name)["scale"].astype("f4")
        numbers = FORMATS[Q4_1][1]
        noise = self.rng.uniform(-0.5, 0.5, (len(steps), numbers)).astype("f4") * steps[:, None]
        return array + noise.reshape(array.shape)


def perturbed_models():
    """Yield the model, and others whose weights have the same codes."""
    file, rng = read_gguf(real_file()), np.random.default_rng(SEED)
    for draw in range(DRAWS + 1):  # the first one as it is
        progress(f"doubt {draw}")
        yield model_from_gguf(NoisyFile(file, rng) if draw else file)


def perturbed_sinks(texts):
    """Return sinks and losses of the model, and of others whose weights have the same codes."""
    plain, found = sink_weight(run_real(real_model(), texts[0]), 0), []
    for model in perturbed_models():
        trace = run_real(model, texts[0])
        sinks = sink_weight(trace, 0)
        gone = run_real(model, texts[0], **CHANGES["token 0 replaced"])
        found.append(
            {
                "correlation": float(np.corrcoef(plain.ravel(), sinks.ravel())[0, 1]),
                "median": float(np.median(sinks)),
                "spike": float(trace.X[LATER, 0, ENTRY]),
                "loss": loss(trace, texts[0]),
                "later": later_sink_weight(trace, 0),
                "later without": later_sink_weight(gone, 0),
                "loss without": loss(gone, texts[0]),
            }
        )
    return found


def main(record):
    """Run the model on all texts."""
    model = real_model()
    texts = [model.tokenizer.encode(text)[:LENGTH] for text in TEXTS.read_text().splitlines()]
    record |= {
        "model": {"file": real_file().name, "sha256": SHA256},
        "settings": {"length": LENGTH, "from": FROM, "window from": WINDOW_FROM},
        "text": TEXTS.read_text().splitlines()[0],
    }
    rows = {"sinks": [], "second": [], "spike": [], "others": []}
    for trace in (run_real(model, ids) for ids in texts):
        rows["sinks"].append(sink_weight(trace, 0))
        rows["second"].append(sink_weight(trace, 1))
        rows["spike"].append(trace.X[:, 0, ENTRY].copy())  # a view would keep all of X
        rows["others"].append(np.abs(trace.X[:, 1:, ENTRY]).max(axis=-1))
    record |= {name: summary(values) for name, values in rows.items()}
    for name in ("spike", "others"):  # before the layer that follows the maker, text by text
        record[name]["texts"] = [round(float(entries[LATER])) for entries in rows[name]]
    record["layouts"] = compare_layouts(model, texts[0])
    record["changes"] = measure_changes(model, texts)
    record["first tokens"] = compare_first_tokens(model, texts[0])
    record["windows"] = measure_windows(model, texts)
    record |= rounded(record | {"doubt": perturbed_sinks(texts)})
    progress("")

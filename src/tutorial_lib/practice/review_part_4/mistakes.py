"""Wrong forms of the task of Part IV's review, from two texts to a pair of heads, step by step."""

import numpy as np

from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.models.ablation import ablate
from tutorial_lib.models.circuits import composition, ov_circuit, qk_circuit
from tutorial_lib.models.copying import run
from tutorial_lib.models.head_scores import patch, run_with
from tutorial_lib.multihead import trace
from tutorial_lib.practice.mistake import Mistake


class Texts:
    """A model, texts and the other texts, and what is asked of them."""

    def __init__(self, model, ids, other):
        self.model, self.ids, self.other = model, ids, other
        self.n = np.arange(len(ids))
        self.place = (ids[:, :-1] == ids[:, -1:]).argmax(axis=1) + 1  # after the earlier copy
        self.heads = [[(n, h) for h in range(p.n_heads)] for n, p in enumerate(model.layers)]

    def weights(self, *, without=None):
        """What each head of layer 1 gives to the answer; one head of layer 0 may be ablated."""
        X = run(self.model, self.ids)[1][1].X
        if without is not None:
            _, [first, _] = run(self.model, self.ids)
            _, [usual, _] = run(self.model, self.other)
            heads = first.heads.copy()
            heads[:, without] = usual.heads[:, without].mean(axis=(0, 1))
            params, gone = first.params, heads[:, without] - first.heads[:, without]
            rows = params.W_O[without * params.d_v : (without + 1) * params.d_v]
            X = X + gone @ rows
        mask = causal_mask(self.ids.shape[1])
        weights = trace(X, self.model.layers[1], mask=mask).weights
        return weights[self.n, :, -1, self.place].mean(axis=0)

    def surprise(self, logits, *, ids=None):
        """The mean nats of the answer."""
        ids = self.ids if ids is None else ids
        return -np.log(softmax(logits[:, -1])[self.n, ids[self.n, self.place]]).mean()

    def leads(self, logits):
        """How far the answer of `ids` is ahead of that of `other`, in each text."""
        last, texts = logits[:, -1], (self.ids, self.other)
        here, there = (last[self.n, ids[self.n, self.place]] for ids in texts)
        return here - there


def second_by_patch(texts):
    """The head of layer 1 that moves most."""
    moved = [share_moved(texts, head) for head in texts.heads[1]]
    return int(np.argmax(moved))


def first_by_weight(texts, second):
    """The head of layer 0 without which the second finds the answer least."""
    left = [texts.weights(without=head)[second] for _, head in texts.heads[0]]
    return int(np.argmin(left))


def nats_lost(texts, head, *, others="other", how="mean"):
    """What the answer loses when the head gives what is usual in other texts."""
    model, ids = texts.model, texts.ids
    logits = ablate(model, ids, [head], getattr(texts, others), how=how)
    return texts.surprise(logits) - texts.surprise(run(model, ids)[0])


def share_moved(texts, head):
    """The share of the way from one answer to the other, a ratio of means."""
    start, end = (texts.leads(run(texts.model, ids)[0]) for ids in (texts.ids, texts.other))
    patched = texts.leads(patch(texts.model, texts.ids, texts.other, *head))
    return (patched - start).mean() / (end - start).mean()


def circuit_of(
    *, second=second_by_patch, first=first_by_weight, lost=nats_lost, moved=share_moved, swap=False
):
    """Make a `find_circuit` of its steps."""

    def find_circuit(model, ids, other):
        texts = Texts(model, ids, other)
        b = second(texts)
        a = first(texts, b)
        pair = [(0, a), (1, b)][:: -1 if swap else 1]
        costs = np.array([lost(texts, head) for head in pair])
        return np.array([head for _, head in pair]), costs, moved(texts, (1, b))

    return find_circuit


def _wrong(name, says, mend, **parts):
    return Mistake(name, says, mend, circuit_of(**parts))


def _second_by_weight(texts):
    return int(np.argmax(texts.weights()))


def _second_by_composition(texts):
    return int(np.argmax([max(row) for row in _compositions(texts).T]))


def _compositions(texts):
    first, second = texts.model.layers
    return np.array(
        [
            [composition(ov_circuit(first, a), qk_circuit(second, b).T) for _, b in texts.heads[1]]
            for _, a in texts.heads[0]
        ]
    )


def _first_by_composition(texts, second):
    return int(np.argmax(_compositions(texts)[:, second]))


def _first_by_nats(texts, second):
    return int(np.argmax([nats_lost(texts, head) for head in texts.heads[0]]))


def _nothing_follows(texts, head):
    """What the answer loses when layer 1 goes on as if nothing had happened."""
    model, (layer, h) = texts.model, head
    logits, records = run(model, texts.ids)
    usual = run(model, texts.other)[1][layer].heads[:, h].mean(axis=(0, 1))
    params = model.layers[layer]
    rows = params.W_O[h * params.d_v : (h + 1) * params.d_v]
    without = logits + (usual - records[layer].heads[:, h]) @ rows @ model.U
    return texts.surprise(without) - texts.surprise(logits)


def _mean_at_the_last_word(texts, head):
    model, (layer, h) = texts.model, head
    usual = run(model, texts.other)[1][layer].heads[:, h, -1].mean(axis=0)
    without = run_with(model, texts.ids, {head: usual})
    return texts.surprise(without) - texts.surprise(run(model, texts.ids)[0])


def _accuracy_lost(texts, head):
    def right(logits):
        return (logits[:, -1].argmax(axis=1) == texts.ids[texts.n, texts.place]).mean()

    whole, _ = run(texts.model, texts.ids)
    return right(whole) - right(ablate(texts.model, texts.ids, [head], texts.other))


def _mean_of_ratios(texts, head):
    start, end = (texts.leads(run(texts.model, ids)[0]) for ids in (texts.ids, texts.other))
    patched = texts.leads(patch(texts.model, texts.ids, texts.other, *head))
    return ((patched - start) / (end - start)).mean()


def _not_divided(texts, head):
    start = texts.leads(run(texts.model, texts.ids)[0])
    return (texts.leads(patch(texts.model, texts.ids, texts.other, *head)) - start).mean()


def _exchanged(texts, head):
    """Patch `other` with what the head gives for `ids`."""
    start, end = (texts.leads(run(texts.model, ids)[0]) for ids in (texts.ids, texts.other))
    patched = texts.leads(patch(texts.model, texts.other, texts.ids, *head))
    return (patched - start).mean() / (end - start).mean()


_PAIR = (
    _wrong(
        "by_weight",
        "it takes the head of layer 1 that looks most at the answer, and that one brings nothing",
        "Ask each head of layer 1 by a patch whether it brings the answer.",
        second=_second_by_weight,
    ),
    _wrong(
        "by_composition",
        "it takes the pair with the largest composition, and its first head writes one vector "
        "to all words, which moves no weight",
        "Take the composition for a hint, and ask by ablation and patch.",
        second=_second_by_composition,
        first=_first_by_composition,
    ),
    _wrong(
        "first_by_composition",
        "its second head is right, and its first is the one with the largest composition, which "
        "writes one vector to all words",
        "Ablate each head of layer 0, and see where the second then looks.",
        first=_first_by_composition,
    ),
    _wrong(
        "first_by_nats",
        "its first head is the one of layer 0 whose loss costs most, and that one has another job",
        "Ablate each head of layer 0, and see where the second then looks.",
        first=_first_by_nats,
    ),
    _wrong(
        "swapped",
        "the pair stands in the wrong order",
        "The head of layer 0 stands first: it hands on what the other one matches.",
        swap=True,
    ),
)
_LOST = (
    _wrong(
        "by_zeros",
        "a head that is taken away gives zeros",
        "Let it give its mean over `other`.",
        lost=lambda texts, head: nats_lost(texts, head, how="zero"),
    ),
    _wrong(
        "own_means",
        "the mean is taken over the texts that are asked",
        "Take a head's mean over `other`.",
        lost=lambda texts, head: nats_lost(texts, head, others="ids"),
    ),
    _wrong(
        "last_place_alone",
        "the mean is taken over the last place alone",
        "Take a head's mean over texts and places, mean(axis=(0, 1)).",
        lost=_mean_at_the_last_word,
    ),
    _wrong(
        "nothing_follows",
        "layer 1 still sees what the head of layer 0 gave",
        "Let the rest run on: that is what ablate and run_with do.",
        lost=_nothing_follows,
    ),
    _wrong(
        "accuracy",
        "it counts first choices that are lost, not nats",
        "Take the mean of −log p of the answer, without the head less with it.",
        lost=_accuracy_lost,
    ),
)
_MOVED = (
    _wrong(
        "mean_of_ratios",
        "it takes a mean of shares, one for each text",
        "Divide the mean of what is moved by the mean of the whole way.",
        moved=_mean_of_ratios,
    ),
    _wrong(
        "not_divided",
        "what is moved is not divided by the whole way",
        "Divide by what the lead is at `other` less what it is at `ids`.",
        moved=_not_divided,
    ),
    _wrong(
        "exchanged",
        "the texts are exchanged: `other` runs, with a head of `ids`",
        "Run `ids`, and let the head give what it gives for `other`.",
        moved=_exchanged,
    ),
)

MISTAKES = {
    "find_circuit": (*_PAIR, *_LOST, *_MOVED),
}

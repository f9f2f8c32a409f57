"""Twelve claims of the book, each a function that computes the number that settles it.

What goes wrong with one stands in `mistakes.txt` as an edit of its function, under its number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tutorial_lib.attention import softmax
from tutorial_lib.counting import cache_bytes
from tutorial_lib.example import running_example
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import accuracy, excess_loss
from tutorial_lib.models.grammar import ID, sample_documents
from tutorial_lib.models.head_scores import patch, run_with
from tutorial_lib.models.language import encode
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.projection import init_params
from tutorial_lib.records import checkpoint
from tutorial_lib.variants.grouped import group_params
from tutorial_lib.variants.patterns import receptive_field, window_mask
from tutorial_lib.variants.positions import rope_frequencies, rotate

SEED = 23
PARAMETERS, TOKENS, WIDTH, BYTES = 8_000_000_000, 8192, 128, 2  # of the model in claim 4
STEPS = 255  # of distance, in claim 6
SENTENCES = "the dog", "the dog that", "the cow that the birds hear", "the frog ( often )"


@dataclass(frozen=True)
class Claim:
    """A claim, the function that computes its number, and what number it holds with."""

    number: int
    function: Callable
    is_met: Callable

    @property
    def says(self):
        """The claim, in one sentence."""
        return " ".join(self.function.__doc__.split())

    @property
    def value(self):
        """The right number."""
        return float(self.function())

    @property
    def holds(self):
        """Whether it holds, by its number."""
        return bool(self.is_met(self.value))


def largest_weight():
    """Without the root of d_k, a softmax puts on average more than .9 of each row on one key."""
    Q, K = np.random.default_rng(SEED).standard_normal((2, 64, 64))
    return softmax(Q @ K.T).max(axis=-1).mean()


def parameters_of_eight_heads():
    """Eight heads have as many parameters as one."""
    return 3 * 8 * 64 * 8 + 8 * 8 * 64


def change_by_order():
    """Without a mask and without positions, a layer cannot tell in which order its tokens come."""
    example, order = running_example(), [2, 0, 1]
    Y = multi_head_attention(example.X, example.params)
    return np.abs(multi_head_attention(example.X[order], example.params) - Y[order]).max()


def cache_fraction():
    """After 8,192 tokens the cache of one sequence is larger than the model."""
    a_token = cache_bytes(n_layers=32, n_kv_heads=8, d_k=WIDTH, d_v=WIDTH, itemsize=BYTES)
    return TOKENS * a_token / (BYTES * PARAMETERS)


def parameter_fraction_of_half_the_kv_heads():
    """With half as many KV heads a layer has half as many parameters."""
    whole = init_params(np.random.default_rng(SEED), d_model=64, n_heads=4)
    names = "W_Q", "W_K", "W_V", "W_O"
    sizes = [[getattr(p, W).size for W in names] for p in (group_params(whole, 2), whole)]
    return sum(sizes[0]) / sum(sizes[1])


def count_score_increases_with_distance():
    """With RoPE, a score falls with every step of distance."""
    queries = rotate(np.ones((STEPS + 1, 64)), np.arange(STEPS + 1), rope_frequencies(64))
    return (np.diff(queries @ np.ones(64) / 8) > 0).sum()


def receptive_field_of_two_layers():
    """Two layers with a window of 16 have a receptive field of 32 tokens."""
    return receptive_field(window_mask(64, 64, 16), 2)[-1].sum()


def cache_tokens_larger_than_a_state():
    """A state has fewer entries than a cache, whatever the length of the sequence."""
    return 64 * 64 // (64 + 64) + 1


@cache
def example_model():
    """The example of the known text, and documents of a seed of this chapter."""
    texts = sample_documents(np.random.default_rng(SEED), 100)
    return TinyModel.of(checkpoint("known_text")), texts


@cache
def _excess_losses():
    model, texts = example_model()
    return excess_loss(run(model, texts.ids[:, :-1])[0], texts), texts.surprisal


def nats_above():
    """The model of chapter 19 has an excess loss of less than a hundredth of a nat per word."""
    excess, _ = _excess_losses()
    return excess.mean()


def _logit_difference(logits):
    return logits[-1, ID["bark"]] - logits[-1, ID["barks"]]


@cache
def _patching_changes(head):
    """The change of the logit difference by a patch, and the whole one, per pair of sentences."""
    model, changes, whole = example_model()[0], [], []
    for one in SENTENCES:
        words = one.split()
        ids, other = encode(one), encode(" ".join([words[0], f"{words[1]}s", *words[2:]]))
        start = _logit_difference(run(model, ids)[0])
        changes.append(_logit_difference(patch(model, ids, other, 1, head)) - start)
        whole.append(_logit_difference(run(model, other)[0]) - start)
    return np.array(changes), np.array(whole)


def effect_of_a_patch():
    """Over the four sentences below, the patching effect of head 1.2, from singular to plural,
    is more than nine tenths."""
    changes, whole = _patching_changes(2)
    return changes.sum() / whole.sum()


def largest_composition():
    """With the keys of some head of layer 1, head 0.0 has a composition score of .3 or more."""
    first, second = example_model()[0].layers
    W_OV = first.W_V[0] @ first.W_O[: first.d_v]
    norm, scores = np.linalg.norm, []
    for W_Q, W_K in zip(second.W_Q, second.W_K, strict=True):
        W_QK = W_K @ W_Q.T
        scores.append(norm(W_OV @ W_QK) / (norm(W_OV) * norm(W_QK)))
    return max(scores)


@cache
def _accuracy_drop(*heads):
    """The accuracy that surnames lose by zero ablation of heads of layer 1."""
    model, texts = example_model()
    ids, zeros = texts.ids[:, :-1], np.zeros(model.layers[1].d_v)
    ablated = run_with(model, ids, {(1, head): zeros for head in heads})
    return accuracy(run(model, ids)[0], texts)["surname"] - accuracy(ablated, texts)["surname"]


def fall_beyond_the_sum():
    """Ablating two heads together lowers the accuracy by the sum of the two single falls."""
    return _accuracy_drop(0, 3) - _accuracy_drop(0) - _accuracy_drop(3)


MET = {  # with what number each claim holds, in their order
    largest_weight: lambda weight: weight > 0.9,
    parameters_of_eight_heads: lambda number: number == 4 * 64 * 64,
    change_by_order: lambda change: is_close_enough(change, 0),
    cache_fraction: lambda fraction: fraction > 1,
    parameter_fraction_of_half_the_kv_heads: lambda fraction: is_close_enough(fraction, 1 / 2),
    count_score_increases_with_distance: lambda steps: steps == 0,
    receptive_field_of_two_layers: lambda tokens: tokens == 32,
    cache_tokens_larger_than_a_state: np.isinf,  # no number of tokens is too many
    nats_above: lambda nats: nats < 0.01,
    effect_of_a_patch: lambda effect: effect > 0.9,
    largest_composition: lambda score: score >= 0.3,
    fall_beyond_the_sum: lambda rest: is_close_enough(rest, 0),
}
CLAIMS = tuple(Claim(n, *claim) for n, claim in enumerate(MET.items(), start=1))


def is_close_enough(value, right):
    """Whether a number is right, to half a thousandth."""
    return abs(value - right) <= max(5e-4, 5e-4 * abs(right))

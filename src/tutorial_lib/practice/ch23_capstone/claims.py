"""Twelve claims of the book, each with the number that settles it and the numbers of mistakes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tutorial_lib.attention import causal_mask, softmax
from tutorial_lib.counting import cache_bytes
from tutorial_lib.example import running_example
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import accuracy, excess_loss
from tutorial_lib.models.grammar import ID, sample_documents
from tutorial_lib.models.head_scores import patch, run_with
from tutorial_lib.models.language import encode
from tutorial_lib.multihead import multi_head_attention
from tutorial_lib.practice.mistake import Mistake
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
    """A claim, whether it holds, the number that settles it, and what goes wrong.

    The chapter says what to compute; the function of a mistake gives its number.
    """

    number: int
    says: str
    holds: bool
    function: Callable
    wrong: tuple

    @property
    def value(self):
        """The right number."""
        return float(self.function())


def _products():
    Q, K = np.random.default_rng(SEED).standard_normal((2, 64, 64))
    return Q @ K.T


def _top(weights):
    return weights.max(axis=-1)


def _parameters(d_k, *, output=True):
    return 3 * 8 * 64 * d_k + output * 8 * d_k * 64


def _reordered(*, mask=None, back=True):
    example, order = running_example(), [2, 0, 1]
    Y = multi_head_attention(example.X, example.params, mask=mask)
    rows = multi_head_attention(example.X[order], example.params, mask=mask)
    return np.abs(rows - (Y[order] if back else Y)).max()


def _cache_fraction(*, n_kv_heads=8):
    sizes = {"n_layers": 32, "n_kv_heads": n_kv_heads, "d_k": WIDTH, "d_v": WIDTH}
    return TOKENS * cache_bytes(itemsize=BYTES, **sizes) / (BYTES * PARAMETERS)


@cache
def _layers():
    whole = init_params(np.random.default_rng(SEED), d_model=64, n_heads=4)
    return whole, group_params(whole, 2)


def _fraction_left(names):
    whole, grouped = _layers()
    sizes = [sum(getattr(params, W).size for W in names) for params in (grouped, whole)]
    return sizes[0] / sizes[1]


def _scores_by_distance():
    queries = rotate(np.ones((STEPS + 1, 64)), np.arange(STEPS + 1), rope_frequencies(64))
    return queries @ np.ones(64) / 8


def _steps_up(scores):
    return (np.diff(scores) > 0).sum()


@cache
def example_model():
    """The example of the known text, and documents of a seed of this chapter."""
    texts = sample_documents(np.random.default_rng(SEED), 100)
    return TinyModel.of(checkpoint("known_text")), texts


@cache
def _nats():
    model, texts = example_model()
    return excess_loss(run(model, texts.ids[:, :-1])[0], texts), texts.surprisal


def _lead(logits):
    return logits[-1, ID["bark"]] - logits[-1, ID["barks"]]


@cache
def _patched(head):
    """The change of the logit difference by a patch, and the whole one, per pair of sentences."""
    model, changes, whole = example_model()[0], [], []
    for one in SENTENCES:
        words = one.split()
        ids, other = encode(one), encode(" ".join([words[0], f"{words[1]}s", *words[2:]]))
        start = _lead(run(model, ids)[0])
        changes.append(_lead(patch(model, ids, other, 1, head)) - start)
        whole.append(_lead(run(model, other)[0]) - start)
    return np.array(changes), np.array(whole)


def _composed(*, through="K", divide=True):
    first, second = example_model()[0].layers
    d_v = first.d_v
    W_OV = first.W_V[0] @ first.W_O[:d_v]
    norm, found = np.linalg.norm, []
    for W_Q, W_K in zip(second.W_Q, second.W_K, strict=True):
        W_QK = W_Q @ W_K.T if through == "Q" else W_K @ W_Q.T
        found.append(norm(W_OV @ W_QK) / (norm(W_OV) * norm(W_QK) if divide else 1))
    return max(found)


@cache
def _fall(*heads):
    """The accuracy that surnames lose by zero ablation of heads of layer 1."""
    model, texts = example_model()
    ids, zeros = texts.ids[:, :-1], np.zeros(model.layers[1].d_v)
    ablated = run_with(model, ids, {(1, head): zeros for head in heads})
    return accuracy(run(model, ids)[0], texts)["surname"] - accuracy(ablated, texts)["surname"]


CLAIMS = (
    Claim(
        1,
        "Without the root of d_k, a softmax puts on average more than .9 of each row on one key.",
        False,
        lambda: _top(softmax(_products())).mean(),
        (
            Mistake(
                "divided",
                "the scores are divided by the root of d_k",
                "The claim is about what happens without it: softmax(Q @ K.T).",
                lambda: _top(softmax(_products() / 8)).mean(),
            ),
            Mistake(
                "over_queries",
                "the softmax runs over the queries",
                "The weights of each query sum to 1: axis=-1.",
                lambda: _top(softmax(_products(), axis=-2)).mean(),
            ),
        ),
    ),
    Claim(
        2,
        "Eight heads have as many parameters as one.",
        True,
        lambda: _parameters(8),
        (
            Mistake(
                "full_width",
                "each head has the full width",
                "A head has the width d_model / H, here 8.",
                lambda: _parameters(64),
            ),
            Mistake(
                "without_output",
                "W_O is left out",
                "W_O has H · d_v rows of d_model entries: count it too.",
                lambda: _parameters(8, output=False),
            ),
        ),
    ),
    Claim(
        3,
        "Without a mask and without positions, a layer cannot tell in which order its tokens come.",
        True,
        _reordered,
        (
            Mistake(
                "not_put_back",
                "the rows are compared position by position, where the tokens differ",
                "Put the rows of Y into the new order too: Y[order].",
                lambda: _reordered(back=False),
            ),
            Mistake(
                "causal",
                "the layer has a causal mask, so its rows depend on the order",
                "The claim is about a layer without a mask.",
                lambda: _reordered(mask=causal_mask(3)),
            ),
        ),
    ),
    Claim(
        4,
        "After 8,192 tokens the cache of one sequence is larger than the model.",
        False,
        _cache_fraction,
        (
            Mistake(
                "keys_only",
                "only the keys are counted",
                "A token adds a key and a value.",
                lambda: _cache_fraction() / 2,
            ),
            Mistake(
                "all_heads",
                "every query head has a KV head of its own",
                "Only the 8 KV heads are cached, which the query heads share.",
                lambda: _cache_fraction(n_kv_heads=32),
            ),
        ),
    ),
    Claim(
        5,
        "With half as many KV heads a layer has half as many parameters.",
        False,
        lambda: _fraction_left(("W_Q", "W_K", "W_V", "W_O")),
        (
            Mistake(
                "keys_and_values_only",
                "only W_K and W_V are counted",
                "W_Q and W_O have parameters too, and stay as they are.",
                lambda: _fraction_left(("W_K", "W_V")),
            ),
            Mistake(
                "without_output",
                "W_O is left out",
                "W_O has parameters too, and stays as it is.",
                lambda: _fraction_left(("W_Q", "W_K", "W_V")),
            ),
        ),
    ),
    Claim(
        6,
        "With RoPE, a score falls with every step of distance.",
        False,
        lambda: _steps_up(_scores_by_distance()),
        (
            Mistake(
                "falls",
                "it counts the steps at which the score falls",
                "A rise is what the claim denies: np.diff(scores) > 0.",
                lambda: _steps_up(-_scores_by_distance()),
            ),
            Mistake(
                "twice_the_distance",
                "both are rotated, one forwards and one back, so distances count twice",
                "Rotate the query by the distance, and leave the key at position 0.",
                lambda: _steps_up(
                    rotate(np.ones((256, 64)), 2.0 * np.arange(256), rope_frequencies(64)).sum(
                        axis=-1
                    )
                ),
            ),
        ),
    ),
    Claim(
        7,
        "Two layers with a window of 16 have a receptive field of 32 tokens.",
        False,
        lambda: receptive_field(window_mask(64, 64, 16), 2)[-1].sum(),
        (
            Mistake(
                "window_times_layers",
                "it is the window times the layers, but the last token of one window is the first "
                "of the next",
                "Each layer adds 15 tokens: 1 + 2 · 15.",
                lambda: 32,
            ),
            Mistake(
                "itself_forgotten",
                "the row's own token is missing",
                "A row depends on its own token too: 1 + 2 · 15.",
                lambda: 30,
            ),
        ),
    ),
    Claim(
        8,
        "A state has fewer entries than a cache, whatever the length of the sequence.",
        False,
        lambda: 64 * 64 // (64 + 64) + 1,
        (
            Mistake(
                "as_many",
                "with this many tokens both have the same size",
                "The cache must have more entries than the state: one token more.",
                lambda: 32,
            ),
            Mistake(
                "keys_only",
                "only the keys are counted",
                "A token adds a key and a value, 128 entries.",
                lambda: 65,
            ),
        ),
    ),
    Claim(
        9,
        "The model of chapter 19 has an excess loss of less than a hundredth of a nat per word.",
        True,
        lambda: _nats()[0].mean(),
        (
            Mistake(
                "surprisal_forgotten",
                "it is the loss itself, not the excess loss",
                "Subtract the surprisal of each word: excess_loss does.",
                lambda: sum(_nats()).mean(),
            ),
            Mistake(
                "by_document",
                "it is the sum over a document, averaged",
                "Take the mean over words too.",
                lambda: _nats()[0].sum(axis=1).mean(),
            ),
        ),
    ),
    Claim(
        10,
        "Over the four sentences below, the patching effect of head 1.2, from singular to plural, "
        "is more than nine tenths.",
        True,
        lambda: np.divide(*(part.sum() for part in _patched(2))),
        (
            Mistake(
                "mean_of_ratios",
                "it is a mean of ratios, in which a small difference counts as much as a large one",
                "Add first, then divide: the sum of the changes over that of the differences.",
                lambda: np.divide(*_patched(2)).mean(),
            ),
            Mistake(
                "different_head",
                "a different head is patched",
                "Head 1.2 is head 2 of layer 1, both counted from 0.",
                lambda: np.divide(*(part.sum() for part in _patched(1))),
            ),
        ),
    ),
    Claim(
        11,
        "With the keys of some head of layer 1, head 0.0 has a composition score of .3 or more.",
        True,
        _composed,
        (
            Mistake(
                "by_the_query",
                "it is Q-composition, through the queries of layer 1",
                "Keys are on the right of W_QK: transpose it, W_QK.T.",
                lambda: _composed(through="Q"),
            ),
            Mistake(
                "not_divided",
                "it is not divided by the norms of the two",
                "Divide by both norms, or large matrices compose with everything.",
                lambda: _composed(divide=False),
            ),
        ),
    ),
    Claim(
        12,
        "Ablating two heads together lowers the accuracy by the sum of the two single falls.",
        False,
        lambda: _fall(0, 3) - _fall(0) - _fall(3),
        (
            Mistake(
                "added_up",
                "it adds the two falls with one head ablated, and leaves out the pair",
                "Replace both in one run: run_with(model, ids, {(1, 0): zeros, (1, 3): zeros}).",
                lambda: _fall(0) + _fall(3),
            ),
            Mistake(
                "the_other_way",
                "its sign is reversed",
                "The fall with both ablated, minus the two falls with one.",
                lambda: _fall(0) + _fall(3) - _fall(0, 3),
            ),
        ),
    ),
)


def near(value, right):
    """Whether a number is right, to half a thousandth."""
    return abs(value - right) <= max(5e-4, 5e-4 * abs(right))

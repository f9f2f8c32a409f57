"""What computes the keys of chapter 19: sentences are sampled, documents read, blocks counted."""

import numpy as np

from tutorial_lib import init_params, softmax
from tutorial_lib.gradients import multi_head_attention_backward
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.entropy import excess_loss, expected_surprisal
from tutorial_lib.models.grammar import sample_documents, sentence
from tutorial_lib.multihead import trace
from tutorial_lib.records import checkpoint


def _sentences(n=4000):
    rng = np.random.default_rng(0)
    return [tuple(sentence(rng)) for _ in range(n)]


def _chances(words, sentences):
    """The fraction, of the sentences that begin like this one, with the same next word."""
    fractions = []
    for t in range(len(words)):
        begun = [one for one in sentences if one[:t] == words[:t]]
        fractions.append(np.mean([one[t] == words[t] for one in begun]))
    return np.array(fractions)


def words_with_a_surprisal():
    """Which words of *the dogs bark .* could have been another word."""
    words = ("the", "dogs", "bark", ".")
    free = tuple(np.array(words)[_chances(words, _sentences()) < 1].tolist())
    return [free == ("dogs",), free == ("dogs", "bark"), free == words[:3], free == words]


def how_a_loss_can_be_below_the_entropy():
    """What is true of the chapter's 50 documents."""
    model = TinyModel.of(checkpoint("known_text"))
    documents = sample_documents(np.random.default_rng(1), 50)
    above = excess_loss(run(model, documents.ids[:, :-1])[0], documents).mean()
    own, entropy = documents.surprisal.mean(), expected_surprisal().mean()
    assert own + above < entropy
    again = [expected_surprisal().mean() for _ in range(2)]
    fresh = sample_documents(np.random.default_rng(2), 50)  # as far from the rules on others
    others = excess_loss(run(model, fresh.ids[:, :-1])[0], fresh).mean()
    return [above < 0, own < entropy, above < others / 2, again[0] != again[1]]


def surprisal_with_a_clause_for_sure():
    """The mean surprisal of the sentences that have a clause, among one another."""
    long = [one for one in _sentences(20_000) if "that" in one]
    _, counts = np.unique(long, axis=0, return_counts=True)
    chances = counts / counts.sum()
    in_ln2 = -(chances * np.log2(chances)).sum()
    return [abs(in_ln2 - other) < 0.1 for other in (3, 5 / 2, 2, 1)]


def which_of_two_models_is_nearer():
    """Which of two losses is less above the surprisal of its own documents."""
    losses, surprisals = np.array([1.70, 1.73]), np.array([1.69, 1.725])
    first, second = losses - surprisals
    assert losses[0] < 1.726
    return [first < second, first < second, second < first, np.isclose(first, second)]


def parameters_of_a_block():
    """All parameters of a block 32 wide with two heads of 16 and 128 columns in its MLP."""
    params = init_params(np.random.default_rng(0), d_model=32, n_heads=2, d_k=16)
    W_1, W_2 = np.zeros((32, 128)), np.zeros((128, 32))
    return sum(W.size for W in (*vars(params).values(), W_1, W_2))


def logits_with_five_more():
    """How the surprisal of each word changes when 5 is added to all logits."""
    logits = np.random.default_rng(0).standard_normal(9)
    change = -np.log(softmax(logits + 5)) + np.log(softmax(logits))
    return [np.allclose(change, by) for by in (0, -5, 5, -np.log(5))]


def gradient_past_a_silent_layer():
    """The gradient of X where X + Y has the gradient G and W_O is zeros."""
    rng = np.random.default_rng(0)
    found, G = [], rng.standard_normal((5, 12))
    for _ in range(2):
        params = init_params(rng, d_model=12, n_heads=3)
        params.W_O[:] = 0
        record = trace(rng.standard_normal((5, 12)), params)
        found.append(G + multi_head_attention_backward(record, G).dX)
    return [
        np.allclose(found, 0),
        np.allclose(found, G),
        np.allclose(found, 2 * G),
        not np.allclose(*found),
    ]

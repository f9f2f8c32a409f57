"""Read circuits of two heads off trained models: who hands on, who matches, who copies.

The models are those of `scored_heads`, in half precision: two layers with places and without, five
seeds each. Of every pair of a head of layer 0 and one of layer 1 the record says how strongly a
given name, as a query, matches itself as the first head hands it on; of every head that reaches the
logits, whether a surname raises itself; and how much of what one writes the other reads, beside
the largest of sixteen random pairs: of the trained matrices with their singular values kept and
their directions drawn. The pair that matches most is then cut: the first
head's output is left out of the keys of layer 1 alone, of its queries, of its values, of all.
The usual induction score is taken where it belongs, on a block of random tokens that stands twice,
of these models and of chapter 08's model, trained on one period alone, whose heads can match
nothing and look back by places. Of two layers on the plateau the record says which half of the
circuit is there before surnames are found.

Writes src/tutorial_lib/data/results/induction.json. What `known_text` and `scored_heads` have
trained in _build/known_text is read there, and trained where it is missing.
"""

import numpy as np

from experiments.known_text import RATES, SEEDS, TEST, half_precision_model, held_out_documents
from experiments.measuring import progress, rounded, write
from experiments.scored_heads import MEANS, MODELS, PLATEAUS, forward
from tutorial_lib import (
    attention_scores,
    attention_weights,
    causal_mask,
    concat_heads,
    project_heads,
)
from tutorial_lib.models import copying, entropy
from tutorial_lib.models.circuits import composition, match_scores, ov_circuit, qk_circuit
from tutorial_lib.models.copying import BATCH, LENGTH, VOCABULARY, init_model, sample_sequences
from tutorial_lib.models.grammar import CLASSES, GIVEN, ID, SURNAME
from tutorial_lib.models.head_scores import score_head
from tutorial_lib.models.training import adam_step

REPEATED, TURNED = 5000, 6000  # seeds
SEED = [*SEEDS, TEST, MEANS, REPEATED, TURNED]
RATE, TURNS, TEXTS = RATES[1], 200, 256
RANK = 16  # of a head of these models
PERIOD, PERIODS, PERIOD_STEPS, PERIOD_RATE = 6, (4, 5, 6, 7, 8, 12), 80, 5e-3
BLOCK, NAMED = 8, 3  # random words, or given names with surnames, in a block that stands twice
PATHS = ("keys", "queries", "values")
READ = ("two layers", "no positions")


def circuits(model):
    """Return the OV circuits of layer 0, and the QK circuits of layer 1."""
    first, last = model.layers[0], model.layers[-1]
    return (
        [ov_circuit(first, head) for head in range(first.n_heads)],
        [qk_circuit(last, head) for head in range(last.n_heads)],
    )


def diagonal_statistics(table):
    """Return the mean of a table's diagonal, of all else, and rows whose largest is on it."""
    n, trace_ = len(table), np.trace(table)
    own = int((table.argmax(axis=1) == np.arange(n)).sum())
    return {"own": own, "diagonal": trace_ / n, "rest": (table.sum() - trace_) / (n * (n - 1))}


def matching_scores(model):
    """Return tables, (4, 4): how given names match themselves, for each pair of heads.

    Row: the head of layer 0 that hands on; column: the head of layer 1 that asks. Scores are
    divided by the root of d_k. Of the pair with the largest diagonal, also what its table is.
    """
    handed, asking = circuits(model)
    names, root = model.E[GIVEN], model.layers[-1].d_k ** 0.5
    tables = [[match_scores(names, W_QK, W_OV) / root for W_QK in asking] for W_OV in handed]
    found = [[diagonal_statistics(table) for table in row] for row in tables]
    parts = {name: [[cell[name] for cell in row] for row in found] for name in found[0][0]}
    pair = np.unravel_index(np.argmax(parts["diagonal"]), (len(handed), len(asking)))
    table = tables[pair[0]][pair[1]]
    return {
        "match": parts,
        "pair": [int(head) for head in pair],
        "singular_values": np.linalg.svd(table, compute_uv=False),
        "opposite": [int(i) for i in table.argmin(axis=1)],
    }


def copying_scores(model):
    """Return for each head of the last layer how surnames raise themselves among surnames."""
    params, rows = model.layers[-1], []
    for head in range(params.n_heads):
        table = model.E[SURNAME] @ ov_circuit(params, head) @ model.U[:, SURNAME]
        rows.append(diagonal_statistics(table))
    return {"copied": {name: [row[name] for row in rows] for name in rows[0]}}


def compositions(handed, asking):
    """Return the shares, (first heads, last heads), through keys."""
    return {"keys": [[composition(W_OV, W.T) for W in asking] for W_OV in handed]}


def rotate_directions(rng, matrix, rank):
    """Return the matrix's singular values in random directions, as two factors."""
    values = np.linalg.svd(matrix, compute_uv=False)[:rank]
    left, right = (np.linalg.qr(rng.standard_normal((len(matrix), rank)))[0] for _ in range(2))
    return left * values, right


def largest_rotated(rng, firsts, lasts):
    """Return how large the largest composition is when directions are drawn anew."""
    found = []
    for _ in range(TURNS):
        first = [rotate_directions(rng, W, RANK) for W in firsts]
        last = [rotate_directions(rng, W, RANK) for W in lasts]
        found.append(max(_factor_composition(A, B) for A in first for B in last))
    return dict(zip(("median", "95 %", "max"), np.quantile(found, [0.5, 0.95, 1]), strict=True))


def _factor_composition(A, B):
    """Return the composition of two matrices given by factors, the right ones orthonormal."""
    norms = np.linalg.norm(A[0]) * np.linalg.norm(B[0])
    return np.linalg.norm(A[0] @ (A[1].T @ B[0])) / norms


def run_cut(model, ids, pair, mean, paths):
    """Go forward with the mean in place of the pair's first head, in some paths of layer 1 alone.

    The residual stream keeps the head's own output, so no word itself says anything else.

    Returns
    -------
    logits, weights : (n, T, words), (n, H, T, T) of layer 1
    """
    first, last = model.layers
    _, traces = copying.run(model, ids)
    head, d_v = pair[0], first.d_v
    own, rows = traces[0].heads[:, head], first.W_O[head * d_v : (head + 1) * d_v]
    X = traces[1].X
    without = X + (mean - own) @ rows
    matrices = {"queries": last.W_Q, "keys": last.W_K, "values": last.W_V}
    Q, K, V = (project_heads(without if path in paths else X, W) for path, W in matrices.items())
    weights = attention_weights(attention_scores(Q, K), mask=causal_mask(ids.shape[-1]))
    return (X + concat_heads(weights @ V) @ last.W_O) @ model.U, weights


def evaluate_cuts(model, pair):
    """Return the weights on the surname and how often it is right, with paths of a pair cut."""
    documents = held_out_documents(TEST)
    usual = forward(model, held_out_documents(MEANS).ids[:, :-1])[1]
    mean = usual[0].heads[:, pair[0]].mean(axis=(0, 1))
    target, found = documents.target_of("surname"), {}
    for paths in ((), *((path,) for path in PATHS), PATHS):
        logits, weights = run_cut(model, documents.ids[:, :-1], pair, mean, paths)
        name = {0: "none", len(PATHS): "all"}.get(len(paths)) or paths[0]
        right = entropy.accuracy(logits, documents)["surname"]
        found[name] = {"weight": score_head(weights, target), "right": right}
    return found


def repeat_blocks(blocks, begin):
    """Return texts in which a block stands twice after ids `begin`, and where its second looks.

    A query of the second copy should find the place right after its first one.
    """
    p = blocks.shape[1]
    first = np.tile(np.array(begin, dtype=int), (len(blocks), 1))
    ids = np.concatenate([first, blocks, blocks], axis=1)
    target = np.full(ids.shape, -1)
    target[:, -p:] = np.arange(p) + len(begin) + 1
    return ids, target


def induction_scores(weights, target):
    """Return the usual score of each head of all layers, in one list."""
    return np.concatenate([score_head(part, target) for part in weights])


def repeated_word_scores(model):
    """Return the usual score of each head on random words, and at given names of random names."""
    rng, texts = np.random.default_rng(REPEATED), range(TEXTS)
    words = np.array([rng.permutation(np.arange(1, len(GIVEN)))[:BLOCK] for _ in texts])
    given, surnames = np.flatnonzero(GIVEN), np.flatnonzero(SURNAME)
    pairs = [(rng.permutation(given)[:NAMED], rng.permutation(surnames)[:NAMED]) for _ in texts]
    names = np.array([np.stack(pair, axis=1).ravel() for pair in pairs])
    found = {}
    for name, blocks in (("words", words), ("names", names)):
        ids, target = repeat_blocks(blocks, [ID["<bos>"]])
        if name == "names":
            target = np.where(GIVEN[ids], target, -1)
        found[name] = induction_scores([part.weights for part in forward(model, ids)[1]], target)
    return found


def analyse_model(name, seed):
    """Return what the weights of one model say, and what its pair does."""
    model = half_precision_model(MODELS[name], seed, RATE)
    progress(f"{name}, seed {seed}")
    found = {"seed": seed} | copying_scores(model) | {"induction": repeated_word_scores(model)}
    found |= matching_scores(model)
    handed, asking = circuits(model)
    found["composition"] = compositions(handed, asking)
    rng = np.random.default_rng(TURNED)
    found["largest_rotated"] = largest_rotated(rng, handed, [W.T for W in asking])
    return rounded(found | {"cut": evaluate_cuts(model, found["pair"])})


def analyse_plateau(seed):
    """Return how far matching and copying have come while surnames are half guessed.

    `own` of `match`: the given names, of six, that match themselves best, for each pair of heads;
    of `copied`: the surnames, of twelve, that raise themselves most, for each head of layer 1;
    `on_surnames`: its mean weight on surnames, of any name, where one is to be said again.
    """
    name = "two layers"
    model = half_precision_model(MODELS[name], seed, RATE, PLATEAUS[name])
    documents = held_out_documents(TEST)
    progress(f"plateau, seed {seed}")
    n, t = np.nonzero(documents.target_of("surname") >= 0)
    weights = forward(model, documents.ids[:, :-1])[1][-1].weights[n, :, t]  # (cases, H, T)
    on = (weights * SURNAME[documents.ids[n, :-1]][:, None]).sum(axis=-1).mean(axis=0)
    return rounded(
        {"seed": seed, "match": matching_scores(model)["match"], "on_surnames": on}
        | copying_scores(model)
    )


def trained_on_one_period(layers, seed):
    """Train chapter 08's model on sequences of one period alone."""
    rng, memory = np.random.default_rng(seed), None
    model = init_model(rng, n_layers=layers)
    for _ in range(PERIOD_STEPS):
        ids, known = sample_sequences(rng, BATCH, periods=(PERIOD, PERIOD))
        _, gradients = copying.loss_and_gradients(model, ids, known)
        arrays, memory = adam_step(model.arrays, gradients, memory, PERIOD_RATE)
        model = copying.TinyModel.of(arrays)
    return model


def evaluate_fixed_period(layers, seed):
    """Return the usual score by head and by the length of the block, (heads, PERIODS)."""
    progress(f"one period, {layers} layers, seed {seed}")
    model, rng = trained_on_one_period(layers, seed), np.random.default_rng(REPEATED)
    ids, known = sample_sequences(rng, TEXTS, periods=(PERIOD, PERIOD))
    found = {"seed": seed, "right": copying.copy_accuracy(model, ids, known)}
    columns = []
    for period in PERIODS:
        blocks = np.array([rng.permutation(VOCABULARY)[:period] for _ in range(TEXTS)])
        ids, target = repeat_blocks(blocks, [])
        weights = [part.weights for part in copying.run(model, ids)[1]]
        columns.append(induction_scores(weights, target))
    return rounded(found | {"scores": np.transpose(columns)})


def settings():
    """Return what is drawn and how much of it."""
    return {
        "turns": TURNS,
        "texts": TEXTS,
        "block": BLOCK,
        "names": NAMED,
        "length": LENGTH,
        "period": PERIOD,
        "periods": list(PERIODS),
        "period_steps": PERIOD_STEPS,
        "given": CLASSES["given:f"].split() + CLASSES["given:m"].split(),
    }


def main(record):
    """Read every model and write the record, anew after each kind."""
    record["settings"] = settings()
    record["one_period"] = {"1 layer": [evaluate_fixed_period(1, seed) for seed in SEEDS]}
    for name in READ:
        record.setdefault("models", {})[name] = [analyse_model(name, seed) for seed in SEEDS]
        progress("")
        print(name, flush=True)
        write("induction", record)
    record["plateau"] = [analyse_plateau(seed) for seed in SEEDS]

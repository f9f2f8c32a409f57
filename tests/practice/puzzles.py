"""What each Parsons problem asks for: a function a room that runs a program and judges it.

Each gets the text of a program, runs it on arrays whose lengths all differ, and says whether it
did what the task asks. A wrong program may also fail.
"""

import math
import sys
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np

import tutorial_lib as tl
from tutorial_lib.gradients import project_heads_backward
from tutorial_lib.models.block import block, mlp, rms_norm
from tutorial_lib.models.copying import init_model
from tutorial_lib.models.copying import run as run_model
from tutorial_lib.models.head_scores import run_with
from tutorial_lib.models.own_layer import OwnLayer, backward_pass, forward_pass
from tutorial_lib.models.real.heads import run_real_with
from tutorial_lib.models.real.model import (
    BlockParams,
    RealModel,
    rms_norm_with_gain,
    run_real,
    swiglu,
)
from tutorial_lib.models.real.tokenizer import Tokenizer
from tutorial_lib.onepass import fold_block
from tutorial_lib.variants.grouped import GroupedParams, grouped_attention
from tutorial_lib.variants.patterns import attention_with_sink
from tutorial_lib.variants.positions import rope_frequencies, rotate

B, T, H, D_MODEL, D_K = 2, 5, 3, 12, 4
MOST_STEPS = 10_000  # lines that a program may run; an order of lines may loop for ever


def run(program, **names):
    """The names that a program leaves behind, begun with the library's and some of a judge.

    One without an end is stopped.
    """
    names = {"np": np, "math": math} | vars(tl) | names
    steps, before = count(), sys.gettrace()

    def watch(frame, event, _):
        if frame.f_code.co_filename != "<program>":
            return None
        if next(steps) > MOST_STEPS:
            raise RuntimeError(f"the program is not at its end after {MOST_STEPS} lines")
        return watch

    sys.settrace(watch)
    try:
        exec(compile(program, "<program>", "exec"), names)
    finally:
        sys.settrace(before)
    return names


def same(result, expected):
    """Whether two arrays are equal in shape, and in their numbers to ten digits."""
    return result.shape == expected.shape and np.allclose(result, expected, rtol=1e-10, atol=1e-12)


def layer(rng):
    """The parameters of a layer, an input of two texts, and the causal mask."""
    params = tl.init_params(rng, d_model=D_MODEL, n_heads=H)
    return params, rng.standard_normal((B, T, D_MODEL)), tl.causal_mask(T)


def ch01_embeddings(program):
    """X of a sentence with sinusoidal positions."""
    rng = np.random.default_rng(1)
    vocabulary, E = tl.Vocabulary(tuple("abcdefgh")), rng.standard_normal((8, D_MODEL))
    tokens = tuple("hadda")
    left = run(program, vocabulary=vocabulary, tokens=tokens, E=E)
    ids = vocabulary.ids(tokens)
    return same(left["X"], tl.embed(ids, E, tl.sinusoidal_positions(len(ids), D_MODEL)))


def ch02_queries_keys_values(program):
    """Q of all heads by one wide product, for one text and for several."""
    rng = np.random.default_rng(2)
    W_Q = rng.standard_normal((H, D_MODEL, D_K))
    inputs = [rng.standard_normal((*batch, T, D_MODEL)) for batch in ((), (B,))]
    made = [run(program, X=X, W_Q=W_Q)["Q"] for X in inputs]
    return all(same(Q, tl.project_heads(X, W_Q)) for Q, X in zip(made, inputs, strict=True))


def ch03_attention_weights(program):
    """One masked head with scores too large for exp, the largest of them hidden."""
    rng = np.random.default_rng(3)
    Q, K = rng.standard_normal((2, T, D_K))
    Q[:, 0], K[:, 0], K[-1, 0] = (1, -1, 1, -1, 1), 2000, 4000
    V, mask = rng.standard_normal((T, 7)), tl.causal_mask(T)
    left = run(program, Q=Q, K=K, V=V, mask=mask)
    return same(left["head"], tl.scaled_dot_product_attention(Q, K, V, mask=mask))


def ch04_multi_head_attention(program):
    """The heads of a wide matrix in another order."""
    rng = np.random.default_rng(4)
    W_Q, order = rng.standard_normal((H, D_MODEL, D_K)), np.array([2, 0, 1])
    wide = np.concatenate(W_Q, axis=-1)
    left = run(program, wide=wide.copy(), H=H, order=order)
    return same(left["other"], np.concatenate(W_Q[order], axis=-1))


def ch05_concatenation(program):
    """Zeros for one head of concat, which itself stays; as the task says, before the join."""
    d_v, h = 7, 1
    heads = np.random.default_rng(5).standard_normal((B, H, T, d_v))
    concat = tl.concat_heads(heads)
    silent = heads.copy()
    silent[:, h] = 0
    left = run(program, concat=concat, B=B, T=T, H=H, d_v=d_v, h=h)
    right = same(left["without"], tl.concat_heads(silent))
    early = program.find("= 0") < program.find("without =")
    return right and early and same(concat, tl.concat_heads(heads))


def ch06_output_projection(program):
    """How far the output changes without a head; the record still says what happened."""
    params, X, mask = layer(np.random.default_rng(6))
    d_v, h = D_MODEL // H, 1
    left = run(program, X=X, params=params, mask=mask, h=h)
    record = tl.trace(X, params, mask=mask)
    moved = np.abs(record.heads[:, h] @ params.W_O[h * d_v : (h + 1) * d_v]).max()
    return same(left["change"], moved) and same(left["record"].heads, record.heads)


def ch07_vectorised(program):
    """Attention of one head, a block of keys after the other, with blocks far above others."""
    rng = np.random.default_rng(7)
    Q, K, V = (rng.standard_normal((n, D_K)) for n in (T, 8, 8))
    Q[:, 0], K[:, 0] = 1, np.repeat([800, 802, 801, -800], 2)
    V1 = np.concatenate([V, np.ones((8, 1))], axis=-1)
    names = {"Q": Q, "K_T": K.T, "V1": V1, "top": -np.inf, "mixed": 0}
    for start in (0, 2, 4, 6):
        names = run(program, **names | {"seen": slice(start, start + 2)})
    mixed = names["mixed"]
    head = tl.scaled_dot_product_attention(Q * math.sqrt(D_K), K, V)
    return same(mixed[:, :-1] / mixed[:, -1:], head)


def ch08_gradients(program):
    """One step of W_O, whose gradient is that of a linear layer."""
    params, X, mask = layer(np.random.default_rng(8))
    wanted, rate = np.ones_like(X), 0.1
    names = {"X": X, "params": params, "mask": mask, "wanted": wanted}
    stepped = run(program, rate=rate, **names)["params"]
    record = tl.trace(X, params, mask=mask)
    slopes = np.einsum("btk,btm->km", record.concat, 2 * (record.Y - wanted) / X.size)
    return same(stepped.W_O, params.W_O - rate * slopes) and stepped.W_Q is params.W_Q


def ch09_pytorch(program):
    """Matrices taken out of PyTorch's layer; NumPy's output is found right, or found wrong."""
    from tutorial_lib.pytorch import torch_mha_from_params

    params, X, mask = layer(np.random.default_rng(9))
    right = tl.multi_head_attention(X, params, mask=mask)

    def split_packed(weight, n_heads):
        return np.swapaxes(weight.reshape(3, n_heads, -1, D_MODEL), -1, -2)

    given = {"layer": torch_mha_from_params(params), "split_packed": split_packed, "hidden": ~mask}
    given |= {"X": X, "H": H}
    left = [run(program, expected=expected, **given) for expected in (right, -right)]
    found = [(same(names["Y"], right), names["equal"]) for names in left]
    return found == [(True, True), (True, False)]


def ch10_masks(program):
    """Which outputs change in three layers; begun with the output before the change."""
    X, at, s = np.random.default_rng(10).standard_normal((T, D_MODEL)), np.arange(T), 2

    def causal(X):
        return np.cumsum(X, axis=0)

    def leaky(X):  # sees what is left of each token without its own mean
        return X + (X - X.mean(axis=-1, keepdims=True)).sum(axis=0)

    def undefined(X):
        return np.where(at[:, None] == 0, np.nan, X)

    expected = {causal: at >= s, leaky: at >= 0, undefined: (at == s) | (at == 0)}
    found = []
    for layer, differs in expected.items():
        names = {"rng": np.random.default_rng(0), "X": X.copy(), "s": s, "layer": layer}
        left = run(program, **names)
        found += [same(left["differs"], differs), same(left["X"], X)]
    return all(found) and program.startswith("before =")


class SimulatedGPU:
    """Chapter 11's device: a launch takes one unit, the work 40, and the first call 1000 more."""

    def __init__(self):
        self.clock = self.done_at = self.calls = 0

    def call(self):
        """Launch work, and return the number of the call."""
        self.calls += 1
        self.clock += 1
        self.done_at = max(self.clock, self.done_at) + (40 if self.calls > 1 else 1040)
        return self.calls

    def synchronize(self):
        """Wait until all work is done."""
        self.clock = max(self.clock, self.done_at)


def ch11_gpu(program):
    """The time of one call that is warm, from its launch to its end."""
    gpu = SimulatedGPU()
    left = run(program, gpu=gpu, call=gpu.call, time=SimpleNamespace(sleep=lambda seconds: None))
    return (left["spent"], left["warm"], left["result"]) == (41, 1, 2)


def ch12_flash_attention(program):
    """One query over three pages of keys."""
    rng = np.random.default_rng(12)
    q, K, V = (rng.standard_normal((n, d)) for n, d in ((1, D_K), (6, D_K), (6, 7)))
    pages = [(K[:1], V[:1]), (K[1:4], V[1:4]), (K[4:], V[4:])]
    left = run(program, q=q, pages=pages, fold_block=fold_block)
    return same(left["head"], tl.scaled_dot_product_attention(q, K, V))


def _add_up(sums, calls, part):
    """The sum of what all processes give to this call, where it is known already."""
    calls.append(part)
    return sums[len(calls) - 1] if len(calls) <= len(sums) else part


def ch13_tensor_parallelism(program):
    """Three processes with a head each: every one ends with the Y of the whole layer."""
    from tutorial_lib.pytorch.parallel import shard_params

    params, X, mask = layer(np.random.default_rng(13))
    b_O, n = np.arange(D_MODEL) / 1.0, H
    names = {"shard_params": shard_params, "X": X, "params": params}
    names |= {"mask": mask, "b_O": b_O, "n": n}
    sums = []  # of the calls of all_reduce, in order: a round more, and one more is known
    for _ in range(3):
        calls, results = [[] for _ in range(n)], []
        for rank in range(n):
            shared = {"rank": rank, "all_reduce": partial(_add_up, sums, calls[rank])}
            results.append(run(program, **names, **shared)["Y"])
        sums = [sum(parts) for parts in zip(*calls, strict=True)]
    right = tl.multi_head_attention(X, params, mask=mask) + b_O
    return all(same(Y, right) for Y in results)


def ch14_kv_cache(program):
    """The rows of a sequence that lie in three of nine pages, the last filled in part."""
    rng, table, size, length = np.random.default_rng(14), [4, 1, 6], 4, 10
    pool = rng.standard_normal((9, size, D_K))
    left = run(program, pool=pool, table=table, size=size, length=length)
    return same(left["K"], pool[table].reshape(-1, D_K)[:length])


def ch16_rope_alibi(program):
    """What a new word finds in a cache of turned keys whose oldest were thrown out."""
    rng = np.random.default_rng(16)
    W_Q, W_K, W_V = rng.standard_normal((3, H, D_MODEL, D_K))
    X, frequencies, kept = rng.standard_normal((8, D_MODEL)), rope_frequencies(D_K), 4
    Q, K, V = (tl.project_heads(X, W) for W in (W_Q, W_K, W_V))
    Q, K = (rotate(A, np.arange(8), frequencies) for A in (Q, K))
    names = {"rotate": rotate, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "frequencies": frequencies}
    cache = {"K": K[:, 7 - kept : 7], "V": V[:, 7 - kept : 7], "seen": 7, "x": X[7:]}
    left = run(program, **names | cache)
    right = tl.scaled_dot_product_attention(Q[:, 7:], K[:, 7 - kept :], V[:, 7 - kept :])
    return same(left["head"], right) and same(left["K"], K[:, 7 - kept :])


def ch18_linear_attention(program):
    """A fifth word, whose mix of five values is divided by the sum of its scores."""
    rng = np.random.default_rng(18)
    K, V, q = rng.random((5, D_K)), rng.standard_normal((5, 6)), rng.random(D_K)
    ones = np.column_stack([V, np.ones(5)])
    word = {"q": q, "k": K[4], "v": V[4], "state": K[:4].T @ ones[:4]}
    left = run(program, **word)
    scores = K @ q
    return same(left["head"], scores @ V / scores.sum()) and same(left["state"], K.T @ ones)


def ch15_mqa_gqa_mla(program):
    """One new word, whose six heads look at the keys of two groups."""
    rng = np.random.default_rng(15)
    n_heads, n_groups = 6, 2
    q = rng.standard_normal((n_heads, 1, D_K))
    K, V = rng.standard_normal((n_groups, T, D_K)), rng.standard_normal((n_groups, T, 7))
    left = run(program, q=q, K=K, V=V, H=n_heads)
    each_own = (np.repeat(array, 3, axis=0) for array in (K, V))
    return same(left["heads"], tl.scaled_dot_product_attention(q, *each_own)[:, 0])


def ch17_sparse_attention(program):
    """One query over three blocks of keys, with a sink above some scores and below others."""
    rng = np.random.default_rng(17)
    q, K, V = rng.standard_normal(D_K), rng.standard_normal((7, D_K)), rng.standard_normal((7, 7))
    blocks = [(K[:2], V[:2]), (K[2:3], V[2:3]), (K[3:], V[3:])]
    found = []
    for sink in (-1.0, 900.0):
        names = {"q": q, "blocks": blocks, "sink": sink}
        scores = (K @ q / math.sqrt(D_K))[None, None]
        weights = attention_with_sink(scores, np.array([sink]))
        found.append(same(run(program, **names)["head"], weights[0, 0] @ V))
    return all(found)


def ch19_known_text(program):
    """A block on two texts, whose rows have other lengths than 1."""
    rng = np.random.default_rng(19)
    params, X, mask = layer(rng)
    W_1, W_2 = rng.standard_normal((D_MODEL, 20)), rng.standard_normal((20, D_MODEL))
    given = {"X": 3 * X, "params": params, "W_1": W_1, "W_2": W_2, "mask": mask}
    parts = {"rms_norm": rms_norm, "mlp": mlp}
    left = run(program, **parts, **given)
    return same(left["X"], block(**given))


def ch20_scoring_heads(program):
    """A head of the first layer, patched at one position to which a later head attends."""
    rng = np.random.default_rng(20)
    model = init_model(rng, d_model=D_MODEL, n_heads=H, d_k=D_K, d_v=7)
    ids, other = np.array([3, 1, 4, 1, 5]), np.array([3, 9, 4, 2, 5])
    names = {"run": run_model, "run_with": run_with, "layer": 0, "head": 2, "position": 1}

    def lead(logits):
        return logits[-1, 0] - logits[-1, 7]

    left = run(program, model=model, ids=ids, other=other, lead=lead, **names)
    start, end = (lead(run_model(model, text)[0]) for text in (ids, other))
    mine, theirs = (run_model(model, text)[1][0].heads[2] for text in (ids, other))
    one_position = np.where(np.arange(T)[:, None] == 1, theirs, mine)
    change = lead(run_with(model, ids, {(0, 2): one_position})) - start
    return same(np.array(left["effect"]), np.array(change / (end - start)))


def ch22_ablation(program):
    """Four heads, two of them backups: which ones are still removed when others are added back."""
    heads = [(0, 0), (0, 1), (1, 0), (1, 1)]
    single = dict(zip(heads, (0.2, 0.3, 0.1, 0.7), strict=True))

    def loss(removed):
        backups = {(0, 0), (1, 0)} <= set(removed)
        return sum(single[head] for head in removed) + backups * 1.0

    left = [run(program, heads=list(heads), loss=loss, n=n)["removed"] for n in (3, 2, 1)]
    return [set(heads) for heads in left] == [{(0, 1), (1, 0), (1, 1)}, {(0, 1), (1, 0)}, {(1, 0)}]


def ch23_capstone(program):
    """The gradient of W_K, back through the copies of a group and through the rotation."""
    rng, heads, G, T_, d_k = np.random.default_rng(23), 6, 3, 5, 4
    shapes = (heads, D_MODEL, d_k), (G, D_MODEL, d_k), (G, D_MODEL, 7), (heads * 7, D_MODEL)
    params = GroupedParams(*(rng.standard_normal(shape) for shape in shapes))
    X, dY = rng.standard_normal((2, T_, D_MODEL))
    record = forward_pass(X, OwnLayer(params, frequencies=rope_frequencies(d_k)))
    dheads = tl.split_heads(dY @ params.W_O.T, heads)
    dweights = dheads @ np.swapaxes(record.V, -1, -2)
    mean = (record.weights * dweights).sum(axis=-1, keepdims=True)
    dproducts = record.weights * (dweights - mean) / math.sqrt(d_k)
    names = {"rotate": rotate, "project_heads_backward": project_heads_backward}
    names |= {"H": heads, "G": G, "T": T_, "d_k": d_k, "frequencies": rope_frequencies(d_k)}
    left = run(program, dproducts=dproducts, Q=record.Q, X=X, W_K=params.W_K, **names)
    return same(left["dW_K"], backward_pass(record, dY)[1][1])


def ch21_induction_heads(program):
    """The fraction of words that a head of several copies, where some are copied and some not."""
    return all(_copied_as_judged(program, np.random.default_rng(seed)) for seed in range(21, 25))


def _copied_as_judged(program, rng):
    params = tl.init_params(rng, d_model=D_MODEL, n_heads=H, d_v=7)
    E, words, h = rng.standard_normal((9, D_MODEL)), np.array([7, 2, 5, 0, 8]), 1
    W_OV = params.W_V[h] @ params.W_O[7 * h : 7 * h + 7]
    U = 3 * (E @ W_OV).T + 12 * rng.standard_normal((D_MODEL, 9))
    left = run(program, params=params, E=E, U=U, words=words, h=h)
    raised = [[E[i] @ W_OV @ U[:, j] for j in words] for i in words]
    copied = [int(np.argmax(row)) == n for n, row in enumerate(raised)]
    return same(np.array(left["fraction"]), np.array(sum(copied) / len(words)))


def _block_of_heads(rng):
    """A block of the real model's kind: six heads on three KV heads, gains, and SwiGLU."""
    shapes = (6, D_MODEL, D_K), (3, D_MODEL, D_K), (3, D_MODEL, 7), (6 * 7, D_MODEL)
    shapes += (D_MODEL, 20), (D_MODEL, 20), (20, D_MODEL)
    *W, W_gate, W_up, W_down = (rng.standard_normal(shape) for shape in shapes)
    gain_1, gain_2 = rng.uniform(0.5, 2, (2, D_MODEL))
    return BlockParams(gain_1, GroupedParams(*W), gain_2, W_gate, W_up, W_down)


def ch24_real_model(program):
    """What a block of the real model's kind makes of the stream."""
    rng, epsilon = np.random.default_rng(24), 1e-5
    given = _block_of_heads(rng)

    def attend(X, params):
        Q, K, V = (tl.project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        Q, K = (rotate(rows, np.arange(T), rope_frequencies(D_K)) for rows in (Q, K))
        mixed = grouped_attention(Q, K, V, mask=tl.causal_mask(T))
        return tl.concat_heads(mixed) @ params.W_O

    parts = {"rms_norm_with_gain": rms_norm_with_gain, "swiglu": swiglu, "attend": attend}
    X = 3 * rng.standard_normal((T, D_MODEL))
    left = run(program, X=X, block=given, epsilon=epsilon, **parts)
    right = X + attend(rms_norm_with_gain(X, given.gain_1, epsilon), given.params)
    normed = rms_norm_with_gain(right, given.gain_2, epsilon)
    return same(left["X"], right + swiglu(normed, given.W_gate, given.W_up, given.W_down))


def ch25_real_circuits(program):
    """How many of 24 texts keep their sign when a head is patched, for each head of two layers."""
    rng = np.random.default_rng(25)
    blocks = [_block_of_heads(rng) for _ in range(2)]
    E, gain = rng.standard_normal((19, D_MODEL)), rng.uniform(0.5, 2, D_MODEL)
    model = RealModel(E, blocks, gain, 1e-5, 500.0, Tokenizer((), ()))
    ids = rng.integers(0, 19, (24, T))
    other_ids = np.where(np.arange(T) == 2, rng.integers(0, 19, (24, 1)), ids)
    texts = {"model": model, "ids": ids, "other_ids": other_ids, "was": 4, "were": 11}
    texts |= {"run_real": run_real, "run_real_with": run_real_with}
    return all(
        _kept_as_judged(program, layer=layer, head=head, **texts)
        for layer, head in np.ndindex(2, 6)
    )


def _kept_as_judged(program, **names):
    model, place = names["model"], (names["layer"], names["head"])
    left = run(program, **names)
    output = run_real(model, names["other_ids"]).heads[place[0], :, place[1]]
    logits = run_real(model, names["ids"], hooks={place: lambda own: output}).logits
    return left["right"] == sum(row[-1, 4] > row[-1, 11] for row in logits)

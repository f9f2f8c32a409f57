"""The decoder layer: a table of options and ways to feed it, each row equal to that of NumPy."""

import ast
import copy
import doctest
import itertools
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import functional_call

from tests.sampling import every
from tools.chapters import ROOT
from tutorial_lib import attention_scores, concat_heads, project_heads
from tutorial_lib.practice.mistake import Edit, apply_edits
from tutorial_lib.pytorch import decoder_attention, packed_weight
from tutorial_lib.pytorch.decoder_attention import (
    DecoderAttention,
    DecoderCache,
    Rotation,
    ScoreOptions,
    rotary_frequencies,
)
from tutorial_lib.variants.grouped import GroupedParams
from tutorial_lib.variants.patterns import attention_with_sink, window_mask
from tutorial_lib.variants.positions import rotate

B, T, H, D_MODEL, D_K, D_V = 3, 8, 4, 12, 6, 7
PAD = np.array([0, 2, 4])
SINK = np.array([0.5, -1.0, 2.0, 0.0])
RNG = np.random.default_rng(63)
X = RNG.standard_normal((B, T, D_MODEL))
X_T = torch.from_numpy(X)
FREQUENCIES = rotary_frequencies(D_K)
SHAPES = {"W_Q": (H, D_MODEL, D_K), "W_K": (0, D_MODEL, D_K), "W_V": (0, D_MODEL, D_V)}
WEIGHTS = {
    G: GroupedParams(
        *(RNG.standard_normal((n or G, *shape)) / 2 for n, *shape in SHAPES.values()),
        W_O=RNG.standard_normal((H * D_V, D_MODEL)) / 4,
    )
    for G in (1, 2, H)
}
GAINS = RNG.uniform(0.5, 3, (2, D_K))


@dataclass(frozen=True)
class Kind:
    """The options of a layer: a row of the table."""

    G: int = 2
    n_pairs: int = 3  # 0: no rotation; 2: in part
    half: bool = False
    window: int | None = None
    sink: bool = False
    norm_eps: float | None = None
    soft_cap: float | None = None

    def rows(self, X):
        """The rows of one sequence, in the library's NumPy."""
        params, frequencies = WEIGHTS[self.G], FREQUENCIES[: self.n_pairs].numpy()
        Q, K, V = (project_heads(X, W) for W in (params.W_Q, params.W_K, params.W_V))
        if self.norm_eps is not None:
            lengths = [np.sqrt((A**2).mean(-1, keepdims=True) + self.norm_eps) for A in (Q, K)]
            Q, K = Q / lengths[0] * GAINS[0], K / lengths[1] * GAINS[1]
        if self.n_pairs:
            positions = np.arange(len(X))
            Q, K = (rotate(A, positions, frequencies, half=self.half) for A in (Q, K))
        K, V = (np.repeat(A, H // self.G, axis=-3) for A in (K, V))
        scores = attention_scores(Q, K)
        scores = (
            scores if self.soft_cap is None else self.soft_cap * np.tanh(scores / self.soft_cap)
        )
        mask = window_mask(len(X), len(X), self.window or len(X))
        sink = SINK if self.sink else np.full(H, -np.inf)
        return concat_heads(attention_with_sink(scores, sink, mask=mask) @ V) @ params.W_O

    def padded_rows(self, pad):
        """The rows of each sequence by itself; zeros for its padding."""
        rows = np.zeros_like(X)
        for b, n in enumerate(PAD if pad else np.zeros(B, int)):
            rows[b, n:] = self.rows(X[b, n:])
        return rows


def options():
    """Every combination of options, in an order in which neighbours differ in all of them."""
    rotations = (0, False), (3, False), (3, True), (2, False), (2, True)
    others = {"norm_eps": 1e-6}, {"soft_cap": 2.0}, {"norm_eps": 0.3}, {}
    table = itertools.product((1, 2, H), rotations, (None, 1, 3, T + 9), (False, True), others)
    kinds = [
        Kind(G, n_pairs, half, window, sink, **other)
        for G, (n_pairs, half), window, sink, other in table
    ]
    return [kinds[i * 271 % len(kinds)] for i in range(len(kinds))]


def layer_of(kind):
    """The layer in PyTorch, with the weights of the table."""
    sight = {name: getattr(kind, name) for name in ("window", "sink", "norm_eps", "soft_cap")}
    frequencies = FREQUENCIES[: kind.n_pairs]
    rotation = Rotation(frequencies, half=kind.half) if kind.n_pairs else None
    options = {"rotation": rotation, "scores": ScoreOptions(**sight), "sizes": (D_K, D_V)}
    layer = DecoderAttention(D_MODEL, H, n_kv_heads=kind.G, **options).double()
    state = {
        "qkv_proj.weight": packed_weight(WEIGHTS[kind.G]),
        "out_proj.weight": WEIGHTS[kind.G].W_O.T,
        **({"sink": SINK} if kind.sink else {}),
        **({"q_norm.weight": GAINS[0], "k_norm.weight": GAINS[1]} if kind.norm_eps else {}),
    }
    layer.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return layer.requires_grad_(False)


def caches(layer, pad):
    """A cache of each kind."""
    window = layer.scores.window
    yield DecoderCache(layer, B, pad=pad)
    yield DecoderCache(layer, B, pad=pad, capacity=T + 2)
    if window is not None:
        yield DecoderCache(layer, B, pad=pad, capacity=window, ring=True)
        yield DecoderCache(layer, B, pad=pad, capacity=window + 2, ring=True)


def assert_rows(actual, expected):
    """Compare to eleven digits."""
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-11, atol=1e-12)


def in_chunks(layer, cache, n, X=X_T):
    """The rows of a layer that processes n tokens at a time."""
    return torch.cat([layer(chunk, cache=cache) for chunk in X.split(n, dim=1)], dim=1)


@pytest.mark.parametrize("kind", every(12, options()), ids=str)
def test_every_way_of_feeding_gives_the_rows_of_numpy(kind):
    layer = layer_of(kind)
    for pad in (None, torch.from_numpy(PAD)):
        expected = kind.padded_rows(pad is not None)
        assert_rows(layer(X_T, pad=pad), expected)
        for n in (1, 2, 3, T):
            for cache in caches(layer, pad):
                assert_rows(in_chunks(layer, cache, n), expected)


def test_a_row_of_padding_is_the_bias_of_the_last_projection():
    layer = DecoderAttention(D_MODEL, H, bias=True, scores=ScoreOptions(sink=True)).double()
    Y = layer(X_T, pad=torch.from_numpy(PAD))
    assert (Y[2, :4] == layer.out_proj.bias).all()
    assert (Y[2, 4:] != layer.out_proj.bias).any(dim=-1).all()


# --- packed sequences, drafted tokens ---


@pytest.mark.parametrize("kind", every(40, options()), ids=str)
def test_packed_documents_are_the_documents_one_by_one(kind):
    layer, lengths = layer_of(kind), (3, 1, T - 4)
    documents = torch.tensor([7, 7, 7, 2, 7, 7, 7, 7]).expand(B, T)  # 7 twice: two documents
    pieces = [
        kind.rows(X[b, start : start + n])
        for b in range(B)
        for start, n in zip((0, 3, 4), lengths, strict=True)
    ]
    assert_rows(layer(X_T, documents=documents).flatten(0, 1), np.concatenate(pieces))


@pytest.mark.parametrize("pad", [None, torch.from_numpy(PAD)], ids=["no padding", "padded"])
@pytest.mark.parametrize("rejected", [1, 2, 3])
def test_rejected_drafts_leave_no_trace(rejected, pad):
    kind = Kind(window=3, sink=True)
    layer, expected = layer_of(kind), kind.padded_rows(pad is not None)
    for cache in caches(layer, pad):
        if cache.ring and rejected > cache.n_spare + 1:
            continue
        in_chunks(layer, cache, 3, X_T[:, :5])
        in_chunks(layer, cache, rejected, 9 * X_T[:, 5 : 5 + rejected])
        cache.rewind(rejected)
        rows = in_chunks(layer, cache, 1, X_T[:, 5:])
        assert_rows(rows, expected[:, 5:])


def go_back(layer, cache, calls):
    """Rewind by so many tokens, one call after the other; -1: read one token more."""
    for n in calls:
        cache.rewind(n) if n >= 0 else in_chunks(layer, cache, 1, X_T[:, :1])


@pytest.mark.parametrize("calls", [(4, 0), (3, 1), (2, -1, 3), (1, 1, 2)], ids=str)
def test_a_full_ring_cannot_bring_back_what_was_overwritten(calls):
    layer = layer_of(Kind(window=3))
    cache = DecoderCache(layer, B, capacity=5, ring=True)
    in_chunks(layer, cache, 5, X_T[:, :5])
    cache.rewind(5)  # nothing was overwritten yet
    in_chunks(layer, cache, 2)
    with pytest.raises(ValueError, match=r"tokens; expected 0 to \d\.$"):
        go_back(layer, cache, calls)


# --- frequencies ---


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_frequencies_are_not_rounded_with_the_weights(dtype):
    layer = layer_of(Kind(half=True)).to(dtype)
    cos, _ = layer._rotary_tables(torch.tensor([[50_000]]), torch.float64)
    np.testing.assert_allclose(cos[0, 0, 0], np.cos(50_000 * FREQUENCIES.numpy()), rtol=1e-12)


# --- training, precision, graphs, storage ---


KINDS = [
    Kind(half=True),
    Kind(window=3, norm_eps=0.3),
    Kind(sink=True, soft_cap=2.0),
    Kind(G=1, window=3, sink=True, n_pairs=2),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("pad", [None, torch.from_numpy(PAD)], ids=["no padding", "padded"])
def test_gradients_are_those_of_small_changes(kind, pad):
    layer = layer_of(kind).requires_grad_()
    names, weights = zip(*layer.named_parameters(), strict=True)

    def loss(*weights):
        rows = functional_call(layer, dict(zip(names, weights, strict=True)), X_T, {"pad": pad})
        return (rows * X_T).sum()

    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_growing_cache_has_gradients(kind):
    layer = layer_of(kind).requires_grad_()
    whole = torch.autograd.grad((layer(X_T) * X_T).sum(), layer.parameters())
    chunks = torch.autograd.grad(
        (in_chunks(layer, DecoderCache(layer, B), 3) * X_T).sum(), layer.parameters()
    )
    for one, other in zip(whole, chunks, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def graphs_of(function, calls, **options):
    """How many graphs `torch.compile` makes of a function for some calls, one after the other."""
    graphs = []

    def log_graph(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend=log_graph, **options)
    for call in calls:
        call(compiled)
    torch.compiler.reset()
    return len(graphs)


@pytest.mark.parametrize("ring", [False, True])
def test_one_graph_serves_every_token_of_a_reserved_cache(ring):
    kind = Kind(window=3, half=True)
    layer, expected = layer_of(kind), kind.padded_rows(pad=True)
    cache = DecoderCache(layer, B, capacity=5 if ring else T, ring=ring, pad=torch.from_numpy(PAD))
    in_chunks(layer, cache, 2, X_T[:, :2])

    def call(compiled, t):
        assert_rows(compiled(X_T[:, t : t + 1], cache=cache), expected[:, t : t + 1])

    assert graphs_of(layer, [partial(call, t=t) for t in range(2, T)]) == 1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_half_precision_and_autocast_stay_near(kind):
    layer, expected = layer_of(kind), kind.padded_rows(pad=False)
    low = copy.deepcopy(layer).bfloat16()
    assert low(X_T.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for cache in (None, DecoderCache(layer.float(), B, capacity=T)):
            Y = layer.float()(X_T.float(), cache=cache)
            np.testing.assert_allclose(
                Y.float(), expected, rtol=0, atol=0.02 * np.abs(expected).max()
            )
    assert cache.buffers[0].dtype == torch.float32


# --- mistakes, refusals ---


def rows_match(kinds):
    """Whether the table finds nothing."""
    for kind in kinds:
        test_every_way_of_feeding_gives_the_rows_of_numpy(kind)


MISTAKES = {
    "window wider by one": (
        decoder_attention,
        "visible",
        "distance < window",
        "distance <= window",
    ),
    "padding is seen": (decoder_attention, "visible", "key_index >= 0", "key_index >= -5"),
    "the other layout of pairs": (
        decoder_attention,
        "apply_rotation",
        "cos, sin = tables",
        "(cos, sin), half = tables, not half",
    ),
    "positions that restart": (
        DecoderAttention,
        "_project",
        "index.clamp",
        "index.sub(index.min()).clamp",
    ),
    "rows of the ring that start anew": (DecoderCache, "_rows", "self.length + later", "later"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_noticed_by_the_table(mistake, monkeypatch):
    owner, name, *edit = MISTAKES[mistake]
    monkeypatch.setattr(owner, name, apply_edits(getattr(owner, name), [Edit("", *edit)]))
    with pytest.raises((AssertionError, IndexError)):
        rows_match(KINDS)


def layer(**options):
    return DecoderAttention(12, 6, n_kv_heads=2, **options).requires_grad_(False)


PLAIN, WINDOWED = layer(), layer(scores=ScoreOptions(window=3))
ROWS = torch.ones(2, 5, 12)
REFUSED = [
    (lambda: DecoderAttention(12, 6, n_kv_heads=4), "d_model=12, H=6, G=4; expected"),
    (
        lambda: layer(rotation=Rotation(torch.ones(2))),
        "for d_k=2; expected at most d_k/2 frequencies",
    ),
    (lambda: rotary_frequencies(5), "width=5; expected an even number"),
    (lambda: ScoreOptions(window=0), "window=0, .* expected a window and"),
    (lambda: PLAIN(ROWS[0]), r"X: \(5, 12\); expected \(B, T, 12\) with T >= 1"),
    (lambda: PLAIN(ROWS.double()), "X is in torch.float64; expected torch.float32"),
    (lambda: PLAIN(ROWS, pad=torch.ones(3)), r"pad: \(3,\); expected \(2,\)"),
    (lambda: PLAIN(ROWS, documents=torch.ones(5)), r"documents: \(5,\); expected \(2, 5"),
    (lambda: PLAIN(ROWS, pad=torch.ones(2), cache=DecoderCache(PLAIN, 2)), "expected one of them"),
    (lambda: DecoderCache(PLAIN, 2, capacity=3, ring=True), "window=None; expected"),
    (lambda: DecoderCache(PLAIN, 2, pad=torch.ones(3)), r"pad has shape \(3,\); expected"),
    (lambda: PLAIN(ROWS, cache=DecoderCache(WINDOWED, 2)), "one for each layer"),
    (
        lambda: PLAIN(ROWS, cache=DecoderCache(PLAIN, 3)),
        r"3 sequences, or of another layer; expected",
    ),
    (
        lambda: PLAIN(ROWS, cache=DecoderCache(PLAIN, 2, capacity=4)),
        "5 tokens; expected at most 4, the",
    ),
    (
        lambda: PLAIN(ROWS.clone().requires_grad_(), cache=DecoderCache(PLAIN, 2, capacity=9)),
        "expected torch.no_grad",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_bad_input_is_refused_in_a_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()


def test_the_file_imports_torch_alone_and_is_short():
    source = Path(decoder_attention.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {(getattr(n, "module", None) or n.names[0].name).split(".")[0] for n in imports}
    assert names == {"math", "dataclasses", "torch"}
    documented = [
        n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    docstrings = [ast.get_docstring(node, clean=False) or "" for node in documented]
    lines = len(source.splitlines())
    assert lines <= 350
    assert lines - sum(len(text.splitlines()) for text in docstrings) <= 250


def test_the_example_of_the_docstring_runs():
    assert doctest.testmod(decoder_attention) == (0, 4)


def test_the_examples_of_the_page_run(monkeypatch):
    page = (ROOT / "book/decoder_layer.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.setitem(sys.modules, "decoder_attention", decoder_attention)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3
    assert names["Y"].shape == (1, 1, 24)
    assert int(names["cache"].length) == 21
    assert names["layer"](torch.ones(1, 3, 256).bfloat16()).isfinite().all()

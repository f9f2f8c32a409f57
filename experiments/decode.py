"""Time one more token: with and without a cache, with fewer keys, in NumPy and in PyTorch.

One layer of the width of GPT-2 small reads the cached tokens and writes one more; float32, one
thread. A model steps through all its layers before it comes back to one, so layers take turns here:
neither the weights nor the keys of a step wait in a cache of the processor. What reading them takes
at the rate of `x.max()` over a large array, measured in the same round, is the limit. Times are
fitted by a + b*T, and b is held against the limit of one cached token.

Also measured: what a step holds at its peak, and by how much a cache changes the output. Writes
src/tutorial_lib/data/results/decode.json.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from experiments import measuring
from experiments.measuring import MIB, Size, inputs, normal
from tutorial_lib import (
    Params,
    concat_heads,
    project_heads,
    scaled_dot_product_attention,
    tiled_multi_head_attention,
)
from tutorial_lib.pytorch import module_from_params, packed_weight
from tutorial_lib.variants.cache import KVCache, decode_step
from tutorial_lib.variants.grouped import GroupedParams, grouped_attention
from tutorial_lib.variants.latent import LatentParams, absorbed_attention

SEED = 0
SMALL = Size(1, 64, 256, 4)  # where cached and uncached rows are compared
PAGE_SCORES = 1024  # more scores of a product, and OpenBLAS copies the keys first
KV_HEADS = {"MHA": 12, "GQA": 3, "MQA": 1}  # kind -> G
# widths of a model -> H, G, d_k, where two ways to share keys are compared
GROUPS = {"GPT-2 small, 3 KV heads": (12, 3, 64), "Llama 3 8B": (32, 8, 128)}


class Plan(NamedTuple):
    """What to measure."""

    d_model: int = 768
    n_heads: int = 12
    d_k: int = 64
    kv_heads: dict = KV_HEADS
    rank: int = 256  # of the latent
    rope_dim: int = 32  # width of the key beside the latent that holds the place
    lengths: tuple = (128, 512, 1024, 2048, 4096, 8192)  # cached tokens
    layers: int = 8  # that take turns
    read_mib: int = 256  # of the array that is read
    rounds: int = 61
    few: int = 5  # rounds where a call takes long
    groups: dict = GROUPS


FULL = Plan()
QUICK = FULL._replace(
    d_model=24,
    n_heads=6,
    d_k=4,
    kv_heads={"MHA": 6, "GQA": 2, "MQA": 1},
    rank=5,
    rope_dim=3,
    lengths=(5, 300, 600),
    layers=2,
    read_mib=1,
    rounds=2,
    few=2,
    groups={"tiny": (6, 2, 4)},
)


@dataclass(frozen=True)
class Layer:
    """The weights of a layer and its full cache, in float32 and shared by NumPy and PyTorch."""

    params: Params | GroupedParams | LatentParams
    cache: KVCache

    def at(self, T):
        """Return the cache as it was after T tokens."""
        return replace(self.cache, length=T, written=np.array(T))

    @property
    def bytes_per_token(self):
        """What the cache keeps of a token."""
        return sum(buffer[..., :1, :].nbytes for buffer in self.cache.buffers)

    @property
    def flop_per_token(self):
        """What a step computes for a cached token: its scores, and its share of the mixing."""
        params = self.params
        latent = isinstance(params, LatentParams)
        return 2 * params.n_heads * (2 * params.rank if latent else params.d_k + params.d_v)

    @property
    def weight_bytes(self):
        """What a step reads of weights."""
        return sum(W.nbytes for W in vars(self.params).values())


def sample_layer(rng, plan, kind, *, capacity):
    """Return a layer of a kind with drawn weights and a full cache."""
    if kind == "MLA":
        return sample_latent(rng, plan, capacity)
    H, G, d_model, d_k = plan.n_heads, plan.kv_heads[kind], plan.d_model, plan.d_k
    W_Q, W_O = normal(rng, H, d_model, d_k), normal(rng, H * d_k, d_model)
    W_K, W_V = normal(rng, 2, G, d_model, d_k)
    make = Params if G == H else GroupedParams
    params = make(*(W * np.float32(d_model**-0.5) for W in (W_Q, W_K, W_V, W_O)))
    rows = normal(rng, 2, G, capacity, plan.d_k)
    return Layer(params, KVCache.empty(params, capacity).append(*rows))


def sample_latent(rng, plan, capacity):
    """Return a layer with a latent, and beside it a key for all heads that holds the place.

    Both are kept in one row. The part of W_UK that meets that key is the identity, and its part of
    W_UV is zero, so `absorbed_attention` adds the two scores and mixes the latent alone.
    """
    H, d_k, kept = plan.n_heads, plan.d_k, plan.rank + plan.rope_dim
    up = normal(rng, 2, H, plan.rank, d_k) * np.float32(plan.rank**-0.5)
    W_UK = np.zeros((H, kept, d_k + plan.rope_dim), np.float32)
    W_UK[:, : plan.rank, :d_k] = up[0]
    W_UK[:, plan.rank :, d_k:] = np.eye(plan.rope_dim)
    W_UV = np.concatenate([up[1], np.zeros((H, plan.rope_dim, d_k), np.float32)], axis=1)
    scale = np.float32(plan.d_model**-0.5)
    W_Q = normal(rng, H, plan.d_model, d_k + plan.rope_dim) * scale
    W_D, W_O = normal(rng, plan.d_model, kept) * scale, normal(rng, H * d_k, plan.d_model) * scale
    params = LatentParams(W_Q, W_D, W_UK, W_UV, W_O)
    shapes = SimpleNamespace(W_K=np.zeros((1, plan.d_model, 0), np.float32), W_V=W_D[None])
    rows = normal(rng, 1, capacity, kept)
    cache = KVCache.empty(shapes, capacity)
    return Layer(params, cache.append(rows[..., :0], rows))


# A step in NumPy: (X, params, cache) -> (Y, longer cache), as `decode_step`.


def project_token(X, W):
    """`project_heads` for one token of each sequence, (B, 1, d_model) or (1, d_model).

    The sequences are the rows of one matrix, so the weights are read once and not once for each.
    """
    heads = project_heads(X.reshape(-1, X.shape[-1]), W)  # (heads, B, d)
    return np.swapaxes(heads, 0, 1).reshape(*X.shape[:-2], len(W), 1, -1)


def grouped_step(X, params, cache, attend=grouped_attention):
    """`decode_step` for one token, with fewer key heads; it looks at all that is kept."""
    Q, K, V = (project_token(X, W) for W in (params.W_Q, params.W_K, params.W_V))
    cache = cache.append(K, V)
    return concat_heads(attend(Q, cache.K, cache.V)) @ params.W_O, cache


def latent_step(X, params, cache, attend=absorbed_attention):
    """`decode_step` for one token, with latents in place of keys and values."""
    Q, C = project_token(X, params.W_Q), X @ params.W_D  # (..., H, 1, d), (..., 1, rank)
    cache = cache.append(C[..., None, :, :0], C[..., None, :, :])
    heads = attend(Q, cache.V[..., 0, :, :], params)
    return concat_heads(heads) @ params.W_O, cache


def in_pages(Q, K, V):
    """`grouped_attention` for one new token, a page of keys at a time.

    So small, products are made on the keys where they lie; larger ones copy them first. A single
    row of queries would go another way, which reads slower: it is there twice. Powers of 2 of the
    scores times log2(e) are powers of e, in half the time.
    """
    *batch, G, S, d_k = K.shape
    rows = Q.reshape(*batch, G, -1, d_k) * np.float32(math.log2(math.e) / math.sqrt(d_k))
    if Q.shape[-3] == G:
        rows = np.concatenate([rows, rows], axis=-2)
    scores, page = np.empty((*rows.shape[:-1], S), np.float32), PAGE_SCORES // rows.shape[-2]
    whole = slice(0, S - S % page), slice(S - S % page, S)
    cuts = [cut for cut in whole if cut.start < cut.stop]
    for cut in cuts:
        K_T = np.swapaxes(paged(K[..., cut, :], page), -1, -2)  # (..., G, pages, d_k, page)
        np.matmul(rows[..., None, :, :], K_T, out=columns(scores[..., cut], page))
    scores -= scores.max(axis=-1, keepdims=True)
    powers = np.exp2(scores, out=scores)
    parts = [columns(powers[..., cut], page) @ paged(V[..., cut, :], page) for cut in cuts]
    mixed = sum(part.sum(axis=-3) for part in parts)
    heads = mixed / (powers @ np.ones((S, 1), np.float32))  # (..., G, rows, d_v)
    return heads[..., : Q.shape[-3] // G, :].reshape(*Q.shape[:-1], V.shape[-1])


def paged(rows, page):
    """See rows as pages: (..., S, d) as (..., pages, page, d), without a copy."""
    *lead, S, d = rows.shape
    return rows.reshape(*lead, -1, min(S, page), d)


def columns(scores, page):
    """See scores as pages: (..., rows, S) as (..., pages, rows, page), without a copy."""
    pages = scores.reshape(*scores.shape[:-1], -1, min(scores.shape[-1], page))
    return np.swapaxes(pages, -2, -3)


def latent_in_pages(Q, C, latent):
    """`absorbed_attention` for one new token: the latents are one head's keys and its values."""
    seeking = Q @ np.swapaxes(latent.W_UK, -1, -2)  # (..., H, 1, rank)
    seeking *= np.float32(math.sqrt(C.shape[-1] / Q.shape[-1]))  # the root is that of d_k
    C = C[..., None, :, :]  # (..., 1, S, rank)
    return in_pages(seeking, C, C) @ latent.W_UV


def numpy_step(step, layer):
    """Return a call that decodes one more token behind T cached ones, again and again."""
    return lambda X, T: step(X, layer.params, layer.at(T))[0]


# A step in PyTorch, on the same keys and values.


class TorchStep:
    """The weights of a layer in two matrices, as a layer of PyTorch has them.

    Called on tokens X (..., n, d_model), with the buffers of keys and values and the number T of
    cached tokens, it writes the new rows behind them and attends to a view of the buffers.
    """

    def __init__(self, params, attend, dtype=torch.float32):
        groups = len(params.W_K)
        self.heads = params.n_heads, groups, groups
        self.widths = params.d_k, params.d_k, params.d_v
        self.W_QKV = torch.from_numpy(packed_weight(params)).to(dtype)
        self.W_O = torch.from_numpy(params.W_O.T.copy()).to(dtype)
        self.attend = attend

    def __call__(self, X, buffers, T):
        end, rows = T + X.shape[-2], [n * d for n, d in zip(self.heads, self.widths, strict=True)]
        parts = zip(F.linear(X, self.W_QKV).split(rows, dim=-1), self.heads, strict=True)
        Q, K, V = (A.unflatten(-1, (n, -1)).transpose(-3, -2) for A, n in parts)
        for buffer, A in zip(buffers, (K, V), strict=True):
            buffer[..., T:end, :] = A
        K, V = (buffer[..., :end, :] for buffer in buffers)
        heads = self.attend(Q, K, V, is_causal=X.shape[-2] > 1)
        return F.linear(heads.transpose(-3, -2).flatten(-2), self.W_O)

    def buffers(self, *shape):
        """Reserve keys and values for a batch and a number of tokens, (..., capacity)."""
        *batch, capacity = shape
        sizes = zip(self.heads[1:], self.widths[1:], strict=True)
        return tuple(self.W_O.new_zeros(*batch, n, capacity, d) for n, d in sizes)


def by_rows(Q, K, V, *, is_causal):
    """SDPA, a group's queries as the rows of one matrix; whole sequences with its own option."""
    if is_causal:
        return by_option(Q, K, V, is_causal=True)
    rows = Q.unflatten(-3, (K.shape[-3], -1)).squeeze(-2)  # (..., G, H/G, d)
    heads = F.scaled_dot_product_attention(*(A[None] if A.ndim == 3 else A for A in (rows, K, V)))
    return heads.reshape(*Q.shape[:-1], V.shape[-1])


def by_option(Q, K, V, *, is_causal):
    """SDPA with its own option for groups."""
    Q, K, V = (A[None] if A.ndim == 3 else A for A in (Q, K, V))
    heads = F.scaled_dot_product_attention(Q, K, V, is_causal=is_causal, enable_gqa=True)
    return heads.squeeze(0)


def by_products(Q, K, V, *, is_causal):
    """Two products around a softmax; the keys stand on the left, where one query is a vector."""
    *batch, H, T, d = Q.shape
    rows = Q.reshape(*batch, K.shape[-3], -1, d) / d**0.5  # (..., G, H/G*T, d)
    scores = (K @ rows.transpose(-1, -2)).transpose(-1, -2)  # (..., G, H/G*T, S)
    return (torch.softmax(scores, dim=-1) @ V).reshape(*batch, H, T, -1)


def as_written(Q, K, V, *, is_causal):
    """The formula, as most tutorials write it, with all scores in memory."""
    scores = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=Q.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    return torch.softmax(scores, dim=-1) @ V


def torch_step(attend, layer):
    """Return a call that decodes one more token behind T cached ones, again and again."""
    step = TorchStep(layer.params, attend)
    buffers = tuple(torch.from_numpy(buffer) for buffer in layer.cache.buffers)
    return lambda X, T: step(X, buffers, T)


def latent_in_torch(layer):
    """Return the same for a latent: the up-projections go to the query and to what is mixed."""
    params = layer.params
    buffer = torch.from_numpy(layer.cache.buffers[1])  # (..., 1, capacity, rank)
    H, width = params.n_heads, params.d_k
    wide = np.concatenate([concat_heads(params.W_Q), params.W_D], axis=-1)
    W_QC, W_O = (torch.from_numpy(W.T.copy()) for W in (wide, params.W_O))
    W_UK, W_UV = (torch.from_numpy(W) for W in (params.W_UK, params.W_UV))

    def call(X, T):
        q, c = F.linear(X, W_QC).split([H * width, params.rank], dim=-1)
        buffer[..., T : T + 1, :] = c[..., None, :, :]
        seen = buffer[..., : T + 1, :].reshape(-1, 1, T + 1, params.rank)
        Q = q.unflatten(-1, (H, -1)).transpose(-3, -2).reshape(-1, H, 1, width)
        rows = (Q @ W_UK.transpose(-1, -2)).transpose(1, 2)  # (B, 1, H, rank)
        mixed = F.scaled_dot_product_attention(rows, seen, seen, scale=width**-0.5)
        heads = mixed.transpose(1, 2) @ W_UV  # (B, H, 1, d_v)
        return F.linear(heads.flatten(1).view(*X.shape[:-1], -1), W_O)

    return call


def forms_of(kind):
    """Return the ways to decode with the keys of a kind: {(library, form): make}."""
    if kind == "MLA":
        paged_step = partial(latent_step, attend=latent_in_pages)
        return {
            ("NumPy", kind): partial(numpy_step, latent_step),
            ("NumPy", f"{kind}, in pages"): partial(numpy_step, paged_step),
            ("torch", kind): latent_in_torch,
        }
    paged_step = partial(grouped_step, attend=in_pages)
    return {
        ("NumPy", kind): partial(numpy_step, decode_step if kind == "MHA" else grouped_step),
        ("NumPy", f"{kind}, in pages"): partial(numpy_step, paged_step),
        ("torch", kind): partial(torch_step, by_rows),
    }


def token_of(library, X):
    """Return tokens as a library takes them."""
    return X if library == "NumPy" else torch.from_numpy(X)


def exact(layer, T, X):
    """Return in float64 what a step gives that looks at T cached tokens."""
    params = layer.params if isinstance(layer.params, Params) else layer.params.expanded()
    params = type(params)(*(W.astype(float) for W in vars(params).values()))
    old = [buffer.astype(float)[..., :T, :] for buffer in layer.cache.buffers]
    if isinstance(layer.params, LatentParams):
        ups = layer.params.W_UK, layer.params.W_UV
        old = [old[1] @ W.astype(float) for W in ups]
    heads = [np.repeat(A, params.n_heads // A.shape[-3], axis=-3) for A in old]
    new = [project_heads(X.astype(float), W) for W in (params.W_Q, params.W_K, params.W_V)]
    K, V = (np.concatenate(pair, axis=-2) for pair in zip(heads, new[1:], strict=True))
    return concat_heads(scaled_dot_product_attention(new[0], K, V)) @ params.W_O


def random_layers_by_kind(plan, *, capacity, layers):
    """Return some layers of each kind: {kind: list}."""
    rng = np.random.default_rng(SEED)
    return {
        kind: [sample_layer(rng, plan, kind, capacity=capacity) for _ in range(layers)]
        for kind in (*plan.kv_heads, "MLA")
    }


def forms(layers):
    """Yield (library, form, kind, make) for every form of the kinds."""
    for kind in layers:
        for (library, form), make in forms_of(kind).items():
            yield library, form, kind, make


def measure_steps(plan, X):
    """Check, time and weigh every form at every length: rates of the machine, and rows."""
    layers = random_layers_by_kind(plan, capacity=plan.lengths[-1] + 1, layers=plan.layers)
    calls = {}
    for library, form, kind, make in forms(layers):
        steps, token = [make(layer) for layer in layers[kind]], token_of(library, X)
        calls |= {(library, form, T): measuring.round_robin(steps, token, T) for T in plan.lengths}
    array = np.ones(plan.read_mib * MIB // 4, dtype=np.float32)
    limits = {"read": array.max, "gemm": measuring.gemm()}
    times_ms = measuring.time_in_rounds(calls | limits, rounds=plan.rounds, title="steps")
    rate = plan.read_mib * MIB / times_ms["read"]  # bytes a ms
    rows = {"NumPy": {}, "torch": {}}
    for library, form, kind, make in forms(layers):
        measuring.progress(f"memory: {library}, {form}")
        layer, times = layers[kind][0], [times_ms[library, form, T] for T in plan.lengths]
        rows[library][form] = {
            "kind": kind,
            **cost_of(library, make, layer, plan.lengths[-1], X),
            **row_of(plan.lengths, np.array(times), layer, rate),
        }
    measuring.progress("")
    return {
        "read_gb_per_s": measuring.summary(rate / 1e6),
        "gemm_gflop_per_s": measuring.summary(measuring.GEMM_FLOP / times_ms["gemm"] / 1e6),
        "forms": rows,
    }


def cost_of(library, make, layer, T, X):
    """Check and weigh a form: bytes that it keeps and reads, its peak memory, its error."""
    call = partial(make(layer), token_of(library, X), T)
    return {
        "bytes_per_token": layer.bytes_per_token,
        "flop_per_token": layer.flop_per_token,
        "weight_bytes": layer.weight_bytes,
        "cache_mib": measuring.short(T * layer.bytes_per_token / MIB),
        "peak_mib": measuring.PEAK_MIB[library](call),
        "error": measuring.error_of(call(), exact(layer, T, X), wrong="not the same step"),
    }


def row_of(lengths, times_ms, layer, rate):
    """Return times, (lengths, rounds), as multiples of the limit, and the line through them."""
    slope, start = np.polyfit(lengths, times_ms, 1)  # ms a token, ms
    spent = {}
    for T, ms in zip(lengths, times_ms, strict=True):
        limit_ms = (layer.weight_bytes + T * layer.bytes_per_token) / rate
        spent[str(T)] = {
            "ms": measuring.summary(ms),
            "times_limit": measuring.ratio(ms, limit_ms),
        }
    return {
        "lengths": spent,
        "start_ms": measuring.summary(start),
        "us_per_thousand": measuring.summary(1e6 * slope),
        "slope_times_limit": measuring.ratio(slope, layer.bytes_per_token / rate),
    }


def measure_without(plan):
    """Time the whole layer over all tokens, which a step without a cache must run."""
    rng = np.random.default_rng(SEED)
    [layer] = random_layers_by_kind(
        plan._replace(kv_heads={"MHA": plan.n_heads}), capacity=1, layers=1
    )["MHA"]
    X, params = normal(rng, 1, plan.lengths[-1], plan.d_model), layer.params
    module = module_from_params(params, dtype=torch.float32).eval()
    calls = {}
    for T in plan.lengths:
        calls["NumPy", T] = partial(tiled_multi_head_attention, X[:, :T], params, causal=True)
        calls["torch", T] = partial(module, torch.from_numpy(X[:, :T]), is_causal=True)
    times_ms = measuring.time_in_rounds(calls, rounds=plan.few, title="without a cache")
    return {
        library: {str(T): measuring.summary(times_ms[library, T]) for T in plan.lengths}
        for library in ("NumPy", "torch")
    }


def measure_groups(plan):
    """Time the attention alone, behind the longest cache, against SDPA's own option for groups."""
    rng, found = np.random.default_rng(SEED), {}
    for name, (H, G, d_k) in plan.groups.items():
        buffers = normal(rng, plan.layers, 2, G, plan.lengths[-1], d_k)
        Q, kept = torch.from_numpy(normal(rng, H, 1, d_k)), torch.from_numpy(buffers)
        ways = {"rows": by_rows, "products": by_products, "enable_gqa": by_option}
        calls = {
            way: measuring.round_robin([partial(attend, Q, *KV, is_causal=False) for KV in kept])
            for way, attend in ways.items()
        }
        times_ms = measuring.time_in_rounds(calls, rounds=plan.rounds, title=f"groups: {name}")
        option = times_ms["enable_gqa"]
        found[name] = {"heads": H, "kv_heads": G, "d_k": d_k}
        found[name] |= {f"{way}_ms": measuring.summary(ms) for way, ms in times_ms.items()}
        for way in ("rows", "products"):
            found[name][f"{way}_over_enable_gqa"] = measuring.ratio(times_ms[way], option)
    return found


def difference(cached, whole):
    """Compare rows: the largest difference, and how many are the same to the last bit."""
    pairs = [[np.asarray(A, dtype=float) for A in pair] for pair in zip(cached, whole, strict=True)]
    return {
        "largest": float(f"{max(np.abs(one - other).max() for one, other in pairs):.1e}"),
        "rows": len(pairs),
        "rows_identical": sum(np.array_equal(*pair) for pair in pairs),
    }


def measure_differences():
    """Compare cached with uncached rows in PyTorch: {attention: {precision: row}}."""
    X, params = inputs(SMALL)
    X, found = X[0], {"torch": {}, "torch, as written": {}}
    for name, attend in {"torch": by_rows, "torch, as written": as_written}.items():
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            step, tokens = TorchStep(params, attend, dtype), torch.from_numpy(X).to(dtype)
            buffers, whole = step.buffers(len(X)), step(tokens, step.buffers(len(X)), 0)
            cached = [step(x[None], buffers, T)[0] for T, x in enumerate(tokens)]
            pair = ([Y.double() for Y in rows] for rows in (cached, whole))
            found[name][str(dtype).removeprefix("torch.")] = difference(*pair)
    return found


def main(plan, record):
    """Measure everything."""
    record["plan"] = plan._asdict()
    X = normal(np.random.default_rng(SEED), 1, plan.d_model)
    with torch.inference_mode():
        record["differences"] = measure_differences()
        record |= measure_steps(plan, X)
        record["groups"] = measure_groups(plan)
        record["without_a_cache_ms"] = measure_without(plan)

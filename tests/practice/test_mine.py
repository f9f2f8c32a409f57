"""Check mine: functions of any names, arguments and axes are called, compared and named."""

import inspect
import re

import numpy as np
import pytest

from tests.chapters.pages import chapter_headings
from tests.sampling import every
from tutorial_lib import mine, scaled_dot_product_attention
from tutorial_lib.mine import kinds
from tutorial_lib.mine.__main__ import main
from tutorial_lib.variants.positions import rope_frequencies, rotate

ALIKE = {  # mistakes of a kind that give the same values as another
    ("attention", "queries and keys are exchanged"),  # of unequal lengths it is another shape
    ("attention", "the scores are those of the heads of one token"),  # right for tokens first
    ("grouped", "the scores are those of the heads of one token"),
    ("rotary", "the positions are those of the heads (pairs in halves)"),
    ("rotary", "the positions are those of the heads (pairs of neighbours)"),
    ("layer", "attention runs over the sequences of a batch and not over the tokens"),  # no mask
    ("softmax", "the softmax runs over the batch and not over the keys: use axis=-1"),  # axis 0
    ("weights", "the softmax runs over the batch and not over the keys: use axis=-1"),
    ("layer", "the heads are not split: one attention of the whole width"),  # needs n_heads
    ("cache", "the new tokens see each other in both directions"),  # one token is enough
}
KNOWN = [(kind, words) for kind, forms in mine.SPECS.items() for words in forms[-1]().wrong]
KNOWN = sorted({*KNOWN} - ALIKE)
OF_LAYERS = [row for row in KNOWN if row[0] in ("layer", "cache")]  # mistakes of attention, again
KNOWN = [*(row for row in KNOWN if row not in OF_LAYERS), *every(4, OF_LAYERS)]


def under_the_roles(function, roles, *, mask):
    """A function whose arguments have the names of its roles, and a mask where it takes one."""
    names = [*roles, *(["mask"] if mask and "mask" not in roles else [])]
    given = ", ".join(f"{name}={name}" for name in names)
    scope = {"function": function}
    source = f"def f({', '.join(n if n != 'mask' or n in roles else 'mask=None' for n in names)}):"
    says = "'mask: True = may look; zeros where that is nothing'"
    exec(f"{source}\n    {says}\n    return function({given})", scope)
    return scope["f"]


@pytest.mark.parametrize(("kind", "words"), KNOWN)
def test_a_known_mistake_is_named(kind, words, capsys):
    asked = mine.SPECS[kind][-1]()
    takes_mask = any("mask" in case.given for case in asked.cases)
    wrong = under_the_roles(asked.wrong[words], asked.roles, mask=takes_mask)
    assert mine.check(wrong, kind) == words
    said = " ".join(capsys.readouterr().out.split())
    assert words.split()[0] in said
    assert re.search(r"\(chapter \d\d, Round \d\)\.", said)


@pytest.mark.parametrize("mistake", [m for known in kinds.MISTAKES.values() for m in known])
def test_the_round_that_explains_a_mistake_is_there(mistake):
    number, heading = re.search(r"\(chapter (\d\d), (Round \d)\)\.$", mistake.mend).groups()
    assert any(title.startswith(f"{heading}: ") for title in chapter_headings(number)), mistake.mend


def test_what_no_mistake_gives_is_shown_with_the_kind_of_difference(capsys):
    def attend(Q, K, V):
        return 1.1 * scaled_dot_product_attention(Q, K, V)

    assert mine.check(attend, "attention") == "wrong"
    said = " ".join(capsys.readouterr().out.split())
    assert "row [0, 0, 0] is 1.202, -1.366" in said
    assert "and should be 1.093, -1.241" in said
    assert "In every case that differs, every number is 1.1 times the right one." in said


def softmax_of_columns(a):
    e = np.exp(a - a.max(-1)[..., None])
    return e / e.sum(-1)[..., None]


def tokens_first(values, queries, keys, allowed=None):
    scores = np.einsum("bthd,bshd->bhts", queries, keys) / keys.shape[-1] ** 0.5
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return np.einsum("bhts,bshd->bthd", softmax_of_columns(scores), values), scores


def packed(inp, wq, wk, wv, wo, n_heads, causal=False):
    q, k, v = (np.stack(np.split(inp @ w, n_heads, axis=-1), axis=1) for w in (wq, wk, wv))
    mask = np.tri(inp.shape[1]) > 0 if causal else None
    scores = np.swapaxes(q @ np.swapaxes(k, -1, -2), 0, 0) / q.shape[-1] ** 0.5
    weights = softmax_of_columns(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.concatenate(np.moveaxis(weights @ v, 1, 0), axis=-1) @ wo


def cut(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


def packed_rows(x, in_proj_weight, out_proj, n_heads):
    q, k, v = (cut(part, n_heads) for part in np.split(x @ in_proj_weight.T, 3, axis=-1))
    heads = softmax_of_columns(q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5) @ v
    return np.concatenate(np.moveaxis(heads, -3, 0), axis=-1) @ out_proj.T


def packed_by_head(a, b, c, n_heads):
    heads = []
    for part in np.split(a @ b, n_heads, axis=1):  # each has its queries, keys and values
        q, k, v = np.split(part, 3, axis=1)
        heads.append(softmax_of_columns(q @ k.T / q.shape[-1] ** 0.5) @ v)
    return np.hstack(heads) @ c


def step_of_x(x_t, W_qkv, W_o, cache, n_heads):
    q, k, v = (cut(part, n_heads) for part in np.split(x_t @ W_qkv, 3, axis=-1))
    heads, (cache["k"], cache["v"]) = by_pair(q, k, v, (cache["k"], cache["v"]))
    return np.concatenate(np.moveaxis(heads, -3, 0), axis=-1) @ W_o


def step_of_one_token(x, wq, wk, wv, k_cache, v_cache):
    K, V = np.vstack([k_cache, x @ wk]), np.vstack([v_cache, x @ wv])
    return softmax_of_columns(K @ (x @ wq) / len(x @ wq) ** 0.5) @ V, K, V


def by_pair(q, k, v, kv_cache):
    K, V = np.concatenate([kv_cache[0], k], -2), np.concatenate([kv_cache[1], v], -2)
    mask = np.tri(q.shape[-2], K.shape[-2], k=K.shape[-2] - q.shape[-2]) > 0
    scores = np.where(mask, q @ np.swapaxes(K, -1, -2) / q.shape[-1] ** 0.5, -np.inf)
    return softmax_of_columns(scores) @ V, (K, V)


def halves(vec):
    n = vec.shape[-1] // 2
    angles = np.arange(vec.shape[-2])[:, None] * 10_000.0 ** (-np.arange(n) / n)
    a, b, c, s = vec[..., :n], vec[..., n:], np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


def causal(x, wq, wk, wv, wo, n_heads):
    return packed(x, wq, wk, wv, wo, n_heads, causal=True)


def without_projection(x, wq, wk, wv, n_heads):
    return packed(x, wq, wk, wv, np.eye(wq.shape[1]), n_heads)


def weights_with_bias(scores, bias):
    weights = softmax_of_columns(np.where(np.isfinite(bias).any(-1)[..., None], scores + bias, 0.0))
    return weights * np.isfinite(bias).any(-1)[..., None]


def keys_first(att):
    """att: (keys, queries)"""
    return softmax_of_columns(att.T).T


def features_first(Q, K, V):
    return tokens_first(*(np.swapaxes(x, -1, -2)[None, :, None] for x in (V, Q, K)))[0][0, :, 0].T


def own_causal(scores):
    return softmax_of_columns(np.where(np.tri(scores.shape[-1]) > 0, scores, -np.inf))


def pads_hidden(scores, mask):
    """mask is 1.0 for padding and 0.0 for keys"""
    return weights_with_bias(scores, np.where(mask, -np.inf, 0.0))


def tokens_in_front(x, wq, wk, wv, wo, n_heads):
    """x of (T, B, d_model)"""
    return over_the_batch(x, wq, wk, wv, wo, n_heads)


def keeps_ones(q, k, v, mask):
    """mask: 1 to keep a key, 0 to ignore it"""
    return tokens_first(*(np.swapaxes(x, 1, 2) for x in (v, q, k)), mask)[0].swapaxes(1, 2)


def in_lists_of_a_dict(q, k, v, cache):
    cache["k"].append(k), cache["v"].append(v)
    return by_pair(q, k, v, [np.concatenate(cache[name], axis=-2)[..., :-1, :] for name in "kv"])[0]


def of_equal_lengths(q, k, v, causal=False):
    """q, k, v: (B, H, T, d)"""
    mask = np.tri(q.shape[-2], k.shape[-2]) > 0 if causal else True
    return tokens_first(*(np.swapaxes(x, 1, 2) for x in (v, q, k)), mask)[0].swapaxes(1, 2)


def three_in_one(qkv):
    q, k, v = qkv
    return softmax_of_columns(q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5) @ v


def of_a_buffer(x, rows, cols):
    return softmax_of_columns(x.reshape(rows, cols)).ravel()


def of_groups(q, k, v, group_size, scale):
    k, v = (np.repeat(x, group_size, axis=-3) for x in (k, v))
    return softmax_of_columns(q @ np.swapaxes(k, -1, -2) * scale) @ v


def of_three_inputs(query, key, value, wq, wk, wv, wo, n_heads):
    q, k, v = query @ wq, key @ wk, value @ wv
    eye = np.eye(len(wo))
    return packed_rows(np.concatenate([q, k, v], -1), np.eye(3 * len(wo)), eye, n_heads) @ wo


def in_lists(q, k, v, keys, values):
    """one token"""
    keys.append(k), values.append(v)
    return softmax_of_columns(np.stack(keys) @ q / len(q) ** 0.5) @ np.stack(values)


def rotated(x, position):
    return halves(np.insert(x, 0, np.zeros((position, 1)), axis=-2))[..., position:, :]


def with_tables(x, cos, sin):
    """x of (B, T, H, d)"""
    other = np.concatenate([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1)
    return x * cos + other * sin


def with_complex_numbers(x, freqs_cis, positions):
    z = (x[..., ::2] + 1j * x[..., 1::2]) * freqs_cis[positions]
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)


def turned_back(x, sin, cos):
    return with_tables(x, cos, -sin)


def over_the_batch(x, wq, wk, wv, wo, n_heads):
    return np.swapaxes(packed(np.swapaxes(x, 0, 1), wq, wk, wv, wo, n_heads), 0, 1)


def lowered_by_ten(q, k, v, mask):
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5 + (1 - mask) * -10
    return softmax_of_columns(scores) @ v


def queries_alone(q, k):
    return halves(q), k


def of_another_base(x, base=1000):
    angles = np.arange(x.shape[-2])[:, None] * base ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    return with_tables(x, *(np.tile(f(angles), 2) for f in (np.cos, np.sin)))


def rotating_step(q, k, v, k_cache, v_cache):
    S = k_cache.shape[-2]
    return by_pair(rotated(q, S), rotated(k, S), v, (k_cache, v_cache))


def in_a_buffer(q, k, v, k_buf, v_buf, pos):
    k_buf[..., pos, :], v_buf[..., pos, :] = k[..., 0, :], v[..., 0, :]
    past = k_buf[..., :pos, :], v_buf[..., :pos, :]
    return by_pair(q, k, v, past)[0]


def softmax_in_single(rows):
    return softmax_of_columns(rows.astype(np.float32))


def of_padded_keys(scores, key_valid):
    """scores (N, H, L, S); key_valid (N, S), True for real tokens"""
    return softmax_of_columns(np.where(key_valid[:, None, None, :], scores, -np.inf))


def of_lengths(q, k, v, lengths):
    """q (B, T, d), k, v (B, S, d)"""
    hidden = np.arange(k.shape[1]) >= lengths[:, None, None]
    return softmax_of_columns(np.where(hidden, -np.inf, q @ k.swapaxes(1, 2) / 4)) @ v


def with_a_full_mask(queries, keys, values, mask):
    """queries (b, t, d), keys, values (b, s, d); mask[b, i, j]: True if i may see j"""
    scores = queries @ keys.swapaxes(1, 2) / 4
    each = [softmax_of_columns(np.where(m, s, -np.inf)) for s, m in zip(scores, mask, strict=True)]
    return np.stack(each) @ values


def side_by_side(kHeads, vHeads, qHeads):
    """kHeads, vHeads: (nKv, T, d); qHeads: (nQ, T, d). Returns (T, nQ*d)"""
    k, v = (np.repeat(x, len(qHeads) // len(kHeads), axis=0) for x in (kHeads, vHeads))
    return np.concatenate(softmax_of_columns(qHeads @ k.swapaxes(1, 2) / 4) @ v, axis=1)


def in_groups(q, k, v):
    """q: [G, M, T, D], k, v: [G, T, D]"""
    return softmax_of_columns(q @ k[:, None].swapaxes(2, 3) / 4) @ v[:, None]


def of_one_query(query, keys, values):
    """query (d,), keys (n, d), values (n, e)"""
    return softmax_of_columns(keys @ query / 4) @ values


def as_in_keras(inputs):
    """inputs: [query, value, key]"""
    return three_in_one((inputs[0], inputs[2], inputs[1]))


def on_purpose(buf):
    """Overwrites buf."""
    buf[:] = softmax_of_columns(buf)
    return buf


def tiled(q, k, v):
    """q (H, T, d), k/v (G, T, d): head h uses KV head h % G"""
    k, v = (np.concatenate([x] * (len(q) // len(k))) for x in (k, v))
    return softmax_of_columns(q @ k.swapaxes(1, 2) / 4) @ v


def of_lists_of_rows(ks, vs, q, k, v):
    """ks, vs: (n, d); q, k, v: (d,)"""
    K, V = np.vstack([ks, k]), np.vstack([vs, v])
    return softmax_of_columns(K @ q / 4) @ V, K, V


def in_letters(X, A, B, C, D, n):
    """X: n_tok x m"""
    return packed(X[None], A, B, C, D, n)[0]


def of_a_record(eingabe, gewichte, koepfe):
    return packed(eingabe, *(gewichte["w" + name] for name in "qkvo"), koepfe)


def of_one_head(x, Wq, Wk, Wv, Wo, kbuf, vbuf, n_filled):
    """x: (D,); kbuf, vbuf: (max_tokens, d)"""
    kbuf[n_filled], vbuf[n_filled] = x @ Wk, x @ Wv
    rows = slice(n_filled + 1)
    return softmax_of_columns(kbuf[rows] @ (x @ Wq) / 4) @ vbuf[rows] @ Wo


def flagged(q, k, v, mask=None, causal=False, *, ignored=False):
    """Attention of as many queries as keys, if causal."""
    seen = np.tri(len(q), len(k)) > 0 if causal else np.ones((len(q), len(k)), bool)
    mask = seen if mask is None else mask if ignored else mask & seen
    return softmax_of_columns(np.where(mask, q @ k.T / q.shape[1] ** 0.5, -1e30)) @ v


def hidden_in_capitals(scores, mask):
    """mask is True where the key must be HIDDEN."""
    seen = np.where(mask, -1e30, scores)
    weights = np.where(mask, 0, np.exp(seen - seen.max(-1, keepdims=True)))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def of_jax(inputs):
    # inputs: [B, L, N, H]
    return halves(inputs.swapaxes(1, 2)).swapaxes(1, 2)


def even_where_all_is_hidden(scores, keep):
    return softmax_of_columns(np.where(keep, scores, -1e30))


def of_torch(x, w_q, w_k, w_v, w_o, n_head=3):
    # of nn.Linear: (out_features, in_features)
    B, T, C = x.shape
    return packed(x, w_q.T, w_k.T, w_v.T, w_o.T, n_head).reshape(B, T, C)


def with_position_ids(xq, xk, position_ids):
    """xq, xk: (batch, heads, seq, dim), position_ids: (batch, seq)"""
    angles = position_ids[:, None, :, None] * 10_000.0 ** (-np.arange(0, xq.shape[-1], 2) / 16)

    def turn(x):
        pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
        return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

    return turn(xq), turn(xk)


@pytest.mark.parametrize(
    ("function", "kind", "taken"),
    [
        (flagged, "attention", "a mask beside the causal flag"),
        (hidden_in_capitals, "weights", "mask = mask turned"),
        (of_jax, "rotary", "axes (B, T, H, d)"),
        (even_where_all_is_hidden, "weights", "asked: a causal mask, a scattered mask"),
        (of_torch, "layer", "n_head = 6; axes W (H·d, d_model)"),
        (with_position_ids, "rotary", "position_ids = positions of a batch"),
        (of_padded_keys, "weights", "asked: padded keys"),
        (of_lengths, "attention", "lengths = mask lengths"),
        (with_a_full_mask, "attention", "asked: a causal mask, a scattered mask"),
        (side_by_side, "grouped", "axes (H, T, d), output side by side"),
        (in_groups, "grouped", "axes queries (G, N, T, d)"),
        (of_one_query, "attention", "axes one query (d)"),
        (lambda q, kv: of_groups(q, *kv, 2, 0.25), "grouped", "kv = kv"),
        (as_in_keras, "attention", "inputs = inputs QVK"),
        (on_purpose, "softmax", "buf = scores"),
        (tiled, "grouped", "with KV heads tiled"),
        (of_lists_of_rows, "cache", "ks = past_K, vs = past_V"),
        (in_letters, "layer", "C = W_V, D = W_O, n = 6"),
        (of_a_record, "layer", "eingabe = X, gewichte = params"),
        (of_one_head, "cache", "n_filled = length of a buffer"),
        (lambda x, m: rotated(x[None], m)[0], "rotary", "axes one token (d)"),
        (causal, "layer", "asked: a causal mask of its own"),
        (without_projection, "layer", "without an output projection"),
        (weights_with_bias, "weights", "bias = mask"),
        (softmax_in_single, "softmax", "rows = scores"),
        (keys_first, "softmax", "axes (d, T), keys first"),
        (features_first, "attention", "axes (d, T)"),
        (own_causal, "weights", "asked: a causal mask of its own"),
        (pads_hidden, "weights", "mask = mask turned"),
        (with_tables, "rotary", "asked: positions from 0, positions from 40"),
        (with_complex_numbers, "rotary", "freqs_cis = turns half T many"),
        (rotating_step, "cache", "1 new on 7 cached"),
        (tokens_in_front, "layer", "X (T, B, d_model)"),
        (keeps_ones, "attention", "mask = mask;"),
        (in_lists_of_a_dict, "cache", "cache = cache in a list"),
        (of_equal_lengths, "attention", "as many keys as queries: its causal mask is aligned"),
        (three_in_one, "attention", "qkv = inputs"),
        (of_a_buffer, "softmax", "x = scores, rows = 5, cols = 7; axes (T·d)"),
        (of_groups, "grouped", "group_size = 2, scale = 0.25"),
        (of_three_inputs, "layer", "query = X, key = X, value = X"),
        (in_lists, "cache", "keys = past_K in a list"),
        (in_a_buffer, "cache", "pos = length of a buffer"),
        (softmax_of_columns, "softmax", "axes (B, H, T, d)"),
        (tokens_first, "attention", "values = V, queries = Q, keys = K, allowed = mask"),
        (tokens_first, "attention", "axes (B, T, H, d)"),
        (packed, "layer", "W (d_model, H·d)"),
        (packed_rows, "layer", "axes W_QKV (3·H·d, d_model), W_O (d_model, H·d)"),
        (packed_by_head, "layer", "b = W_QKV, c = W_O, n_heads = 6; axes W_QKV (d_model, H·3·d)"),
        (packed_by_head, "layer", "It was not right with a batch axis"),
        (step_of_x, "cache", "cache (B, H, S, d). It holds for these axes too: W_QKV"),
        (
            step_of_one_token,
            "cache",
            "asked: 1 new on 7 cached, 1 new, large scores. Taken as x = X",
        ),
        (by_pair, "cache", "kv_cache = cache"),
        (halves, "rotary", "vec = x"),
    ],
)
def test_a_right_function_in_its_own_style_is_right(function, kind, taken, capsys):
    assert mine.check(function, kind) == "right"
    assert taken.lower() in " ".join(capsys.readouterr().out.split()).lower()


def test_arguments_without_telling_names_are_tried_in_every_order():
    assert mine.check(lambda a, b, c: tokens_first(c, b, a)[0], "attention") == "right"


RNG = np.random.default_rng(0)


def in_place(scores):
    scores -= scores.max(-1, keepdims=True)
    return softmax_of_columns(scores)


def softmax_without_keepdims(scores):
    e = np.exp(scores - scores.max(-1))
    return e / e.sum(-1)


def softmax_of_the_largest(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum(-1, keepdims=True)


def attention_without_keepdims(q, k, v):
    e = np.exp(q @ k.T / k.shape[1] ** 0.5)
    return (e / e.sum(axis=1)) @ v


def unscaled_without_a_maximum(q, k, v):
    weights = np.exp(q @ k.T)
    return (weights / weights.sum(-1, keepdims=True)) @ v


def sees_the_next(q, k, v):
    hidden = np.triu(np.ones((len(q), len(k))), 2) > 0
    return softmax_of_columns(np.where(hidden, -np.inf, q @ k.T / q.shape[1] ** 0.5)) @ v


def step_that_forgets(x, W_qkv, W_o, cache, n_heads):
    y, cache["k"] = step_of_x(x, W_qkv, W_o, dict(cache), n_heads), cache["k"][..., :1, :]
    return y


def loses_the_cache(q, k, v, kv_cache):
    return by_pair(q, k, v, kv_cache)[0], kv_cache


def caches_keys_as_values(q, k, v, kv_cache):
    heads, (K, V) = by_pair(q, k, v, kv_cache)
    return heads, (K, K if V.shape == K.shape else V[..., :1, :])


def exchanges_the_cache(q, k, v, kv_cache):
    heads, (K, V) = by_pair(q, k, v, kv_cache)
    return heads, (V, K)


def not_moved_back(u, axis=-1):
    return softmax_of_columns(np.moveaxis(u, axis, -1))


def all_axes_turned(Q, K, V):
    """Q, K, V: (B, T, d)"""
    return softmax_of_columns(Q @ K.T / 4) @ V


def cut_unswapped(X, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = ((X @ W).reshape(n_heads, len(X), -1) for W in (W_q, W_k, W_v))
    heads = softmax_of_columns(q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5) @ v
    return np.concatenate(heads, axis=1) @ W_o


def right_without_a_batch(x, wq, wk, wv, wo, n_heads):
    """x is (T, D) or (N, T, D)"""
    if x.ndim == 3:
        return packed(x, wq, wk, wv, np.eye(len(wo)), n_heads)
    return packed(x[None], wq, wk, wv, wo, n_heads)[0]


def damages_the_cache(q, k, v, K, V):
    heads = by_pair(q, k, v, (K, V))
    K *= 2
    return heads


def a_hundred_lower(e, may_see):
    """may_see[i, j] is a bool"""
    return softmax_of_columns(np.where(may_see, e, -100.0))


def overflows(q, k, v, ks, vs):
    """q, k, v: (d,); ks, vs: (n, d)"""
    e = np.exp(np.vstack([ks, k]) @ q / 4)
    return e @ np.vstack([vs, v]) / e.sum()


def flag_ignored(q, k, v, mask=None, causal=False):
    return flagged(q, k, v, mask, causal, ignored=True)


def cut_by_head(x, w_qkv, w_out, n_head):
    """w_qkv (D, 3D): the first D columns are those of the queries"""
    return packed_by_head(x, w_qkv, w_out, n_head)


def adds_what_may_be_seen(e, is_ok):
    """is_ok: a bool"""
    return softmax_of_columns(e + is_ok)


def moved_to_the_front(scores, mask):
    """scores (T, S): the weights of the keys that are seen, True in the mask"""
    weights = np.zeros_like(scores)
    for row, each, seen in zip(weights, scores, mask, strict=True):
        found = np.exp(each[seen] - each[seen].max(initial=-1e30))
        row[: len(found)] = found / max(found.sum(), 1e-300)
    return weights


def prefill_chunk(Qn, Kn, Vn, Kc, Vc):
    """Qn, Kn, Vn: (t, d) of a chunk, Kc, Vc: (n, d) of the cache"""
    K, V = np.r_[Kc, Kn], np.r_[Vc, Vn]
    scores = Qn @ K.T / Qn.shape[1] ** 0.5
    scores[:, : len(Qn)][np.tri(len(Qn)) == 0] = -np.inf  # those of the cache
    return softmax_of_columns(scores) @ V, K, V


def appended_to_heads(q, k, v, cache_k, cache_v):
    # all of it: (batch, heads, time, dim)
    K, V = np.append(cache_k, k, axis=1), np.append(cache_v, v, axis=1)
    return softmax_of_columns(q @ K.swapaxes(2, 3) / q.shape[-1] ** 0.5) @ V


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (flag_ignored, "attention", "wrong"),
        (cut_by_head, "layer", "wrong"),
        (adds_what_may_be_seen, "weights", "the mask is added to the scores as 0 and 1"),
        (moved_to_the_front, "weights", "wrong"),
        (prefill_chunk, "cache", "wrong"),
        (appended_to_heads, "cache", "it raised ValueError: all the input array dimensions"),
        (not_moved_back, "softmax", "it returned [(2, 6, 7, 5)], expected (2, 6, 5, 7) on axis"),
        (all_axes_turned, "attention", "it raised ValueError: matmul"),
        (cut_unswapped, "layer", "queries, keys and values are cut into heads"),
        (right_without_a_batch, "layer", "the output projection W_O is missing"),
        (damages_the_cache, "cache", "it changes its argument K"),
        (a_hundred_lower, "weights", "wrong"),
        (overflows, "cache", "large scores overflow"),
        (in_place, "softmax", "it changes its argument scores"),
        (softmax_without_keepdims, "softmax", "the maximum and the sum of each row need keepdims"),
        (softmax_of_the_largest, "softmax", "the maximum is that of the whole array"),
        (attention_without_keepdims, "attention", "the sum of each row needs keepdims=True, and"),
        (unscaled_without_a_maximum, "attention", "the scores are not divided"),
        (sees_the_next, "attention", "a token sees the next one"),
        (turned_back, "rotary", "it rotates the other way"),
        (queries_alone, "rotary", "queries and keys are not rotated alike"),
        (of_another_base, "rotary", "the base is 1000"),
        (step_that_forgets, "cache", "the keys that it returns are not the cached ones"),
        (loses_the_cache, "cache", "the keys that it returns are not the cached ones"),
        (caches_keys_as_values, "cache", "the values that it returns are not the cached ones"),
        (exchanges_the_cache, "cache", "the keys and values that it returns are exchanged"),
        (over_the_batch, "layer", "attention runs over the sequences of a batch"),
        (lowered_by_ten, "attention", "hidden scores are lowered by 10"),
        (lambda a, b, c: softmax_of_columns(np.tanh(a @ b.T)) @ c, "attention", "wrong"),
        (lambda x: softmax_of_columns(x.T).T, "softmax", "the softmax runs over the queries"),
        (lambda scores: scores**2, "softmax", "wrong"),
        (lambda scores: softmax_of_columns(scores) * RNG.random(), "softmax", "it gives other"),
    ],
)
def test_a_wrong_function_in_its_own_style_is_said_to_be_wrong(function, kind, words):
    assert mine.check(function, kind).startswith(words)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: mine.check(in_place, "soft"), "give one of softmax"),
        (lambda: mine.check(lambda s: s.sum(), "softmax"), "No order of axes"),
        (lambda: mine.check(lambda s: None, "softmax"), "is its last line a return"),
        (lambda: mine.check_text("softmax", "x = 1"), "no function in the code"),
        (lambda: mine.check_text("softmax", "def f(:"), "Line 1 of your code is no Python"),
        (lambda: mine.check_text("softmax", "import torch_of_mine"), "raised ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_asked_is_said(use, said):
    with pytest.raises(mine.MineError, match=said):
        use()


def test_code_of_a_form_is_checked(capsys):
    mine.check_text("softmax", inspect.getsource(softmax_of_columns))
    assert capsys.readouterr().out.startswith("✓ softmax: right; asked: ordinary scores")


@pytest.mark.parametrize(
    ("target", "status", "told"),
    [
        ("f.py", 0, "✓ softmax: right"),
        ("f.py:softmax_of_the_largest", 1, "✗ softmax: the maximum is that of the whole array"),
        ("f.py:softmax", 2, "There is no function 'softmax'. Give one of softmax_of_the_largest"),
    ],
)
def test_a_terminal_says_the_same_by_words_and_status(target, status, told, tmp_path, capsys):
    functions = softmax_of_the_largest, softmax_of_columns
    source = "import numpy as np\n\n" + "\n".join(map(inspect.getsource, functions))
    (tmp_path / "f.py").write_text(source, encoding="utf-8")
    assert main([f"{tmp_path}/{target}", "--kind", "softmax"]) == status
    assert told in "".join(capsys.readouterr())


def test_a_file_that_is_not_there_is_said(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["no.py:softmax", "--kind", "softmax"])
    assert "there is no file 'no.py'; write FILE.py:NAME" in capsys.readouterr().err


def test_the_right_lines_give_what_the_library_gives():
    given = mine.SPECS["attention"][0]().cases[1].given
    right = scaled_dot_product_attention(given["Q"], given["K"], given["V"], mask=given["mask"])
    np.testing.assert_allclose(kinds.attend(**given), right, rtol=1e-10, atol=1e-12)
    x, positions = given["Q"], 40 + np.arange(5)
    for half in (False, True):
        right = rotate(x, positions, rope_frequencies(kinds.D_K), half=half)
        np.testing.assert_allclose(kinds.rope(x, positions, half), right, rtol=1e-10, atol=1e-12)

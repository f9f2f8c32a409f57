"""What makes the symptoms of book/symptoms.md occur: a function for each entry, named after it.

A function of a message first does what *Fix* says, which is silent, and its last statement gives
the message. A function of a behaviour asserts what a reader sees, and that the mend ends it. The
sizes in a message are those on the page. test_symptoms.py calls every function, with one seed.
"""

import sys
import warnings
from contextlib import nullcontext
from importlib import import_module
from importlib.machinery import BuiltinImporter
from unittest import mock

import numpy as np
import pytest

from tests.lazy import F, attention, torch


def _kept(call, *given, **options):
    """Return how many numbers each tensor holds that a call keeps for its backward pass."""
    from torch.autograd.graph import saved_tensors_hooks

    kept = []
    with saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()), lambda none: none):
        call(*given, **options)
    return kept


def _after_2_13():
    """Return whether PyTorch is newer than version 2.13."""
    return tuple(map(int, torch.__version__.split(".")[:2])) > (2, 13)


# Messages: shapes that do not fit


def view_not_contiguous():
    heads = torch.zeros(2, 4, 5, 3)  # (B, H, T, d_k)
    assert heads.transpose(1, 2).reshape(2, 5, 12).shape == (2, 5, 12)
    heads.transpose(1, 2).view(2, 5, 12)


def mat1_mat2_shapes():
    context = torch.zeros(2, 16, 2048)
    assert torch.nn.Linear(2048, 320)(context).shape == (2, 16, 320)
    torch.nn.Linear(768, 320)(context)


def numpy_broadcast():
    scores = np.zeros((2, 4, 5, 5))  # (B, H, T, S)
    mask = np.zeros((2, 5, 5))
    assert (scores + mask[:, None]).shape == (2, 4, 5, 5)
    return scores + mask


def numpy_matmul_core():
    Q, K = np.zeros((4, 8)), np.zeros((4, 8))
    assert (Q @ np.swapaxes(K, -1, -2)).shape == (4, 4)
    return Q @ K


def embed_dim_not_divisible():
    torch.nn.MultiheadAttention(embed_dim=100, num_heads=10)
    torch.nn.MultiheadAttention(embed_dim=100, num_heads=8)


def shape_invalid_for_size():
    torch.zeros(1, 1024, 4 * 16).view(1, 1024, 4, 16)
    torch.zeros(1, 1024, 8 * 16).view(1, 1024, 4, 16)


def einsum_size_mismatch():
    Q, K = torch.zeros(1, 2, 4, 8), torch.zeros(1, 2, 6, 8)
    assert torch.einsum("bhqd,bhkd->bhqk", Q, K).shape == (1, 2, 4, 6)
    torch.einsum("bhtd,bhtd->bht", Q, K)


def einsum_number_of_subscripts():
    Q = K = torch.zeros(2, 4, 8)  # (H, T, d_k)
    assert torch.einsum("bhqd,bhkd->bhqk", Q[None], K[None]).shape == (1, 2, 4, 4)
    assert torch.einsum("...qd,...kd->...qk", Q, K).shape == (2, 4, 4)
    torch.einsum("bhqd,bhkd->bhqk", Q, K)


def tensor_a_must_match_b():
    scores = torch.zeros(2, 16, 5, 5)  # (B, H, T, S)
    mask = torch.ones(2, 5, 5, dtype=torch.bool)
    scores.masked_fill(~mask[:, None], float("-inf"))
    scores.masked_fill(~mask, float("-inf"))


def attn_mask_2d_shape():
    X, mask = torch.zeros(1, 77, 16), torch.zeros(77, 77)
    torch.nn.MultiheadAttention(16, 4, batch_first=True)(X, X, X, attn_mask=mask)
    torch.nn.MultiheadAttention(16, 4)(X, X, X, attn_mask=mask)


def key_padding_mask_shape():
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    X = torch.zeros(2, 5, 16)
    layer(X, X, X, key_padding_mask=torch.zeros(2, 5, dtype=torch.bool))
    layer(X, X, X, key_padding_mask=torch.zeros(2, 4, dtype=torch.bool))


def numpy_cannot_reshape():
    np.zeros((2, 5, 12)).reshape(2, 5, 3, 4)
    np.zeros((2, 5, 10)).reshape(2, 5, 3, 4)


def axes_dont_match():
    X = np.zeros((5, 4, 8))  # (T, H, d_k), no batch
    assert np.swapaxes(X, -2, -3).shape == (4, 5, 8)
    assert X[None].transpose(0, 2, 1, 3).shape == (1, 4, 5, 8)
    X.transpose(0, 2, 1, 3)


# Messages: number formats and memory


def key_padding_mask_dtype():
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    X, real = torch.ones(2, 5, 16), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    hidden = layer(X, X, X, key_padding_mask=real == 0)[1] == 0
    assert hidden.all(1).equal(real == 0), "exactly the padded keys get no weight"
    layer(X, X, X, key_padding_mask=real)


def mat1_mat2_dtype():
    project = torch.nn.Linear(8, 8).half()
    X = torch.zeros(2, 5, 8)
    assert project(X.to(project.weight.dtype)).dtype == torch.float16
    project(X)


def sdpa_mask_dtype():
    Q, mask = torch.zeros(1, 2, 4, 8), torch.ones(1, 1, 1, 4, dtype=torch.long)
    F.scaled_dot_product_attention(Q, Q, Q, attn_mask=mask.bool())
    F.scaled_dot_product_attention(Q, Q, Q, attn_mask=mask)


def expected_scalar_type():
    weights, V = torch.zeros(2, 4, 5, 5), torch.zeros(2, 4, 5, 8).half()
    assert (weights.to(V.dtype) @ V).dtype == torch.float16
    return weights @ V


def half_overflow_masked_fill():
    scores, future = torch.zeros(4, 4).half(), torch.ones(4, 4).triu(1).bool()
    scores.masked_fill(future, float("-inf"))
    scores.masked_fill(future, torch.finfo(scores.dtype).min)
    scores.masked_fill(future, -1e9)


def index_out_of_range_in_self():
    positions, ids = torch.nn.Embedding(16, 8), torch.arange(17)[None]
    assert positions(torch.arange(ids[:, -16:].shape[1])).shape == (16, 8)
    positions(torch.arange(ids.shape[1]))


def cpu_allocator():
    Q = torch.zeros(1, 16, 100, 8)
    assert F.scaled_dot_product_attention(Q, Q, Q).shape == Q.shape
    torch.empty(1, 16, 10**8, 10**8)  # more bytes than a processor has addresses for


# Messages: overflow, masks and the two fused calls


def invalid_value_in_divide():
    scores = np.array([-np.inf, -np.inf])
    empty = np.isneginf(scores).all()
    summands = np.exp(np.where(empty, 0, scores))  # as if it saw every key
    assert np.where(empty, 0, summands / summands.sum()).tolist() == [0, 0]
    return np.exp(scores) / np.exp(scores).sum()


def invalid_value_in_subtract():
    scores = np.array([-np.inf, -np.inf])
    largest = scores.max()
    assert np.exp(scores - np.where(np.isneginf(largest), 0, largest)).tolist() == [0, 0]
    return scores - largest


def overflow_in_exp():
    scores = np.array([1001.0, 1002.0])
    summands = np.exp(scores - scores.max())
    assert np.isclose((summands / summands.sum()).sum(), 1)
    np.exp(scores)


def no_kernel_for_three_axes():
    Q = torch.zeros(2, 4, 8)
    refusal = pytest.raises(RuntimeError, match="No available kernel")
    with (
        attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION),
        nullcontext() if _after_2_13() else refusal,
    ):
        F.scaled_dot_product_attention(Q, Q, Q)


def attn_mask_and_is_causal():
    Q, mask = torch.zeros(1, 2, 4, 8), torch.ones(1, 1, 4, 4, dtype=torch.bool)
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        F.scaled_dot_product_attention(Q, Q, Q, attn_mask=mask.tril())
        F.scaled_dot_product_attention(Q, Q, Q, attn_mask=mask, is_causal=True)


def need_attn_mask_is_causal():
    layer, X = torch.nn.MultiheadAttention(16, 4, batch_first=True), torch.ones(2, 5, 16)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
    assert layer(X, X, X, attn_mask=causal, is_causal=True)[1].triu(1).sum() == 0
    layer(X, X, X, is_causal=True)


def no_available_kernel():
    Q, V = torch.zeros(1, 2, 4, 8), torch.zeros(1, 2, 4, 6)  # narrower than the queries
    with attention.sdpa_kernel([attention.SDPBackend.FLASH_ATTENTION, attention.SDPBackend.MATH]):
        F.scaled_dot_product_attention(Q, Q, V)
    with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
        F.scaled_dot_product_attention(Q, Q, Q)
        F.scaled_dot_product_attention(Q, Q, V)


# Messages: training, weights of another model, installing


def backward_second_time():
    W, kept, detached = torch.ones(8, 8, requires_grad=True), [], []
    for _ in range(2):
        detached.append((torch.ones(1, 1, 8) @ W).pow(2))
        torch.cat(detached).sum().backward()
        detached[-1] = detached[-1].detach()
    for _ in range(2):
        kept.append((torch.ones(1, 1, 8) @ W).pow(2))  # with its graph
        torch.cat(kept).sum().backward()


def modified_by_inplace():
    X, first = torch.ones(1, 4, 8, requires_grad=True), torch.arange(4) == 0
    scores = X @ X.transpose(-1, -2)
    torch.softmax(scores.masked_fill(first, float("-inf")), -1).sum().backward()
    weights = torch.softmax(X @ X.transpose(-1, -2), -1)
    weights[..., 0] = 0
    weights.sum().backward()


def missing_keys():
    saved = torch.nn.MultiheadAttention(8, 2).state_dict()
    layer = torch.nn.TransformerEncoderLayer(8, 2)
    whole = layer.state_dict() | {f"self_attn.{name}": saved[name] for name in saved}
    layer.load_state_dict(whole)
    layer.load_state_dict(saved)


def size_mismatch():
    saved = {"weight": torch.zeros(64, 8)}
    torch.nn.Embedding(64, 8).load_state_dict(saved)
    torch.nn.Embedding(16, 8).load_state_dict(saved, strict=False)


def no_module_torch():
    nothing_installed = mock.patch.object(sys, "meta_path", [BuiltinImporter])
    with mock.patch.dict(sys.modules), nothing_installed:
        sys.modules.pop("torch", None)
        import_module("torch")


# Behaviours: training


def loss_stays_at_ln_vocab():
    X, labels = torch.randn(5, 8), torch.randint(31, (5,))
    losses = {}
    for cut in (True, False):
        W = torch.zeros(8, 31, requires_grad=True)
        for _ in range(9):
            logits = (X @ W).detach().requires_grad_() if cut else X @ W
            losses[cut] = F.cross_entropy(logits, labels)
            losses[cut].backward()
            W = (W if W.grad is None else W - W.grad).detach().requires_grad_()
    assert torch.isclose(losses[True], torch.tensor(31.0).log())
    assert losses[False] < 1


def loss_far_above_ln_vocab():
    hidden, labels = F.layer_norm(torch.randn(32, 64), (64,)), torch.randint(500, (32,))
    table, ln_V = torch.randn(500, 64), torch.tensor(500.0).log()
    assert F.cross_entropy(hidden @ table.T, labels) > 2 * ln_V, "as nn.Embedding begins"
    assert abs(F.cross_entropy(hidden @ (0.02 * table).T, labels) - ln_V) < 0.1


def loss_zero_babble_mask_leaks():
    scores, future = torch.full((4, 4), -15000.0), torch.ones(4, 4).triu(1).bool()
    leaking = torch.softmax(scores.masked_fill(future, -1e4), -1)
    assert (leaking.triu(1).sum(-1)[:-1] > 0.99).all(), "the future has nearly all the weight"
    tight = torch.softmax(scores.masked_fill(future, float("-inf")), -1)
    assert tight.triu(1).sum() == 0


def labels_not_shifted():
    ids = torch.randint(20, (50,))
    logits = 10 * F.one_hot(ids, 20).float()  # of a model that answers with its own input
    assert F.cross_entropy(logits, ids) < 0.01
    assert F.cross_entropy(logits[:-1], ids[1:]) > 5, "it cannot predict"


def labels_shifted_twice():
    ids = torch.arange(21) % 7
    logits = 10 * F.one_hot((ids + 1) % 7, 7).float()  # of a model that is always right
    assert F.cross_entropy(logits[:-2], ids[2:]) > 5
    assert F.cross_entropy(logits[:-1], ids[1:]) < 0.01


def nan_after_some_steps():
    Q = K = torch.full((1, 64), 40.0, dtype=torch.float16)
    scores = (Q @ K.T) / 8  # the product passes the largest number before it is divided
    assert torch.softmax(scores, -1).isnan().all()
    assert ((Q / 8) @ K.T).isfinite().all()
    assert (Q.bfloat16() @ K.bfloat16().T / 8).isfinite().all()


def train_and_eval_differ():
    X = torch.randn(2, 5, 32)
    layer = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    assert not torch.allclose(layer(X), layer(X), atol=0.1), "it drops a tenth as it is made"
    layer.eval()
    assert torch.equal(layer(X), layer(X))


def sdpa_dropout_in_eval():
    module, Q = torch.nn.Module().eval(), torch.randn(1, 2, 6, 8)
    first, second = (F.scaled_dot_product_attention(Q, Q, Q, dropout_p=0.1) for _ in range(2))
    assert not torch.allclose(first, second, atol=0.1)
    p = 0.1 if module.training else 0.0
    first, second = (F.scaled_dot_product_attention(Q, Q, Q, dropout_p=p) for _ in range(2))
    assert torch.equal(first, second)


def no_gradient_for_wq_wk():
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    for tokens, learns in ((1, False), (5, True)):
        X = torch.randn(4, tokens, 8)
        layer.zero_grad()
        layer(X, X, X)[0].pow(2).sum().backward()
        W_Q, W_K, W_V = layer.in_proj_weight.grad.chunk(3)
        assert W_V.any()
        assert W_Q.any() == W_K.any() == learns
    Q, K, V = (torch.randn(4, 2, 1, 64, requires_grad=True) for _ in range(3))
    torch.nn.functional.scaled_dot_product_attention(Q, K, V).pow(2).sum().backward()
    assert max(Q.grad.abs().max(), K.grad.abs().max()) < 1e-4 * V.grad.abs().max(), "rounding"


def heads_all_the_same():
    X, W = torch.randn(5, 16), torch.randn(16, 12)
    for start, same in ((W[:, :4].repeat(1, 3), True), (W.clone(), False)):
        start.requires_grad_()
        Q = (X @ start).view(5, 3, 4).transpose(0, 1)  # (H, T, d_k)
        weights = torch.softmax(Q @ Q.transpose(-1, -2) / 2, -1)
        (weights @ Q).pow(2).sum().backward()
        step = start.grad.view(16, 3, 4)
        assert torch.allclose(weights, weights[:1].expand_as(weights), atol=1e-6) == same
        assert torch.allclose(step, step[:, :1].expand_as(step), rtol=1e-4, atol=1e-3) == same


# Behaviours: masks and NaN


def nan_fully_masked_row():
    layer, X = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 3, 8)
    hidden = torch.tensor([[False] * 3, [True] * 3, [False] * 3])
    second = [False, True, False]
    assert layer(X, X, X, attn_mask=hidden)[0][0].isnan().any(-1).tolist() == second
    assert layer(X, X, X, attn_mask=hidden, need_weights=False)[0].isfinite().all()
    with torch.no_grad():
        fast = layer.eval()(X, X, X, attn_mask=hidden, need_weights=False)[0]
    assert fast[0].isnan().any(-1).tolist() == second
    sees_itself = hidden & ~torch.eye(3, dtype=torch.bool)
    assert layer(X, X, X, attn_mask=sees_itself)[0].isfinite().all()


def nan_only_in_padded_rows():
    X, real = torch.randn(4, 8), torch.tensor([True, True, True, False])

    def layer(X, mask, hidden=float("-inf")):
        return torch.softmax((X @ X.T).masked_fill(~mask, hidden), -1) @ X

    both = real & real[:, None]
    once = layer(X, both)
    assert once.isnan().any(-1).tolist() == [False, False, False, True]
    assert layer(once, both).isnan().all(), "the next layer spreads it"
    assert layer(layer(X, real), real).isfinite().all(), "keys masked, queries not"


def nan_in_gradients():
    X, visible = torch.randn(3, 8), torch.ones(3, 3).tril().bool()
    visible[1] = False
    empty = ~visible.any(-1, keepdim=True)
    for keys, stays in ((visible, True), (visible | empty, False)):
        W_V = torch.ones(8, 8, requires_grad=True)
        weights = torch.softmax((X @ X.T).masked_fill(~keys, float("-inf")), -1)
        Y = (weights @ (X @ W_V)).masked_fill(empty, 0)
        Y.sum().backward()
        assert Y.isfinite().all()
        assert W_V.grad.isnan().any() == stays, "0 times NaN is NaN"


def fine_alone_wrong_in_batch():
    tokens, places, alone = torch.randn(20, 8), torch.randn(20, 8), torch.tensor([3, 7, 5])
    padded = torch.tensor([0, 0, 3, 7, 5])

    def last(ids, positions):
        X = (tokens[ids] + places[positions])[None]
        mask = (ids != 0) & torch.ones(len(ids), len(ids)).tril().bool()
        return F.scaled_dot_product_attention(X, X, X, attn_mask=mask)[0, -1]

    expected = last(alone, torch.arange(3))
    assert not torch.allclose(last(padded, torch.arange(5)), expected, atol=0.1)
    counted = ((padded != 0).cumsum(-1) - 1).clamp(min=0)
    assert torch.allclose(last(padded, counted), expected, atol=1e-6)


def mask_inverted():
    X, V, future = torch.randn(1, 4, 8), torch.eye(4)[None], torch.ones(4, 4).triu(1).bool()
    layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
    assert layer(X, X, X, attn_mask=future)[1].triu(1).sum() == 0, "True: leave out"
    weights = F.scaled_dot_product_attention(X, X, V, attn_mask=future)
    assert weights.tril().sum() == 0, "True: may look"
    assert F.scaled_dot_product_attention(X, X, V, attn_mask=~future).triu(1).sum() == 0


def mask_differs_in_generation():
    future = torch.ones(4, 4).triu(1).int()

    def weights(mask):
        return torch.softmax(torch.zeros(4, 4).masked_fill(mask == 0, -1e9), -1)

    assert weights(future)[1].tolist() == [0, 0, 0.5, 0.5], "it sees the future alone"
    assert weights(future)[3].tolist() == [0.25] * 4, "it sees nothing, hence all"
    assert weights((future == 0).int())[1].tolist() == [0.5, 0.5, 0, 0]


def masked_keys_still_get_weight():
    scores, mask = torch.randn(6), torch.tensor([True] * 3 + [False] * 3)
    assert torch.softmax(scores * mask, -1)[3:].sum() > 0.2, "0 is a score like any other"
    assert (torch.softmax(scores, -1) * mask).sum() < 0.95, "no longer 1"
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), -1)
    assert weights[3:].sum() == 0
    assert torch.isclose(weights.sum(), torch.tensor(1.0))


# Behaviours: generating, the cache, long texts


def wrong_once_cache_is_used():
    Q, K, positions = torch.randn(6, 8), torch.randn(6, 8), torch.arange(6.0)

    def rotate(x, positions):
        angle = positions[:, None] * 10000.0 ** (-torch.arange(4) / 4)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    cached = rotate(K, positions)
    expected = (rotate(Q, positions) @ cached.T)[-1:]
    from_zero = rotate(Q[-1:], positions[:1]) @ cached.T  # as if the new token were the first
    assert not torch.allclose(from_zero, expected, atol=0.1)
    assert torch.allclose(rotate(Q[-1:], positions[-1:]) @ cached.T, expected, atol=1e-5)


def is_causal_top_left():
    Q, K, V = (torch.randn(1, 2, 6, 8) for _ in range(3))
    expected = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
    step = F.scaled_dot_product_attention(Q[:, :, -1:], K, V, is_causal=True)
    assert torch.allclose(step, V[:, :, :1]), "the new query sees the first key alone"
    step = F.scaled_dot_product_attention(Q[:, :, -1:], K, V)
    assert torch.allclose(step, expected[:, :, -1:], atol=1e-6)
    mask = torch.ones(2, 6, dtype=torch.bool).tril(6 - 2)  # of two new tokens
    steps = F.scaled_dot_product_attention(Q[:, :, -2:], K, V, attn_mask=mask)
    assert torch.allclose(steps, expected[:, :, -2:], atol=1e-6)
    padded, seen = F.pad(K, (0, 0, 0, 3)), torch.arange(9) <= torch.tensor([4, 5])[:, None]
    values = F.pad(V, (0, 0, 0, 3))
    flag = torch.ones(2, 9, dtype=torch.bool).tril(9 - 2)  # at the bottom right of the buffer
    for mask, right in ((flag, False), (seen, True)):
        steps = F.scaled_dot_product_attention(Q[:, :, -2:], padded, values, attn_mask=mask)
        assert torch.allclose(steps, expected[:, :, -2:], atol=1e-6) == right


def wrong_beyond_training_length():
    tokens, table = torch.randn(4, 16, 8), torch.zeros(32, 8, requires_grad=True)
    X = tokens + table[:16]  # texts of 16 tokens
    F.scaled_dot_product_attention(X, X, X, is_causal=True).pow(2).sum().backward()
    assert table.grad[:16].abs().sum(-1).all()
    assert not table.grad[16:].any(), "these positions are never learned"
    t = torch.arange(8.0)
    for frequency, same in ((1.0, True), (0.5, False)):  # of the queries; that of cached keys is 1
        scores = (frequency * t[:, None] - t).cos()  # of the pair (1, 0) with itself, rotated
        assert torch.allclose(scores.diagonal(), scores[0, 0]) == same


def wrong_beyond_window():
    T, window = 7, 4
    Q, K, V = (torch.randn(T, 8) for _ in range(3))
    mask = torch.ones(T, T).tril().triu(1 - window).bool()
    expected = torch.softmax((Q @ K.T).masked_fill(~mask, float("-inf")), -1) @ V
    for kept, right in ((slice(None, window), False), (slice(-window, None), True)):
        steps = []
        for t in range(T):
            keys, values = K[: t + 1][kept], V[: t + 1][kept]
            steps.append(torch.softmax(Q[t] @ keys.T, -1) @ values)
        same = torch.isclose(torch.stack(steps), expected, atol=1e-5).all(-1)
        assert same.tolist() == [t < window or right for t in range(T)]

    def rotated(K, positions):  # rows of pairs, as complex numbers
        angle = positions[:, None] * 10000.0 ** (-torch.arange(4) / 4)
        return torch.view_as_complex(K.view(-1, 4, 2)) * torch.polar(torch.ones(()), angle)

    s, evicted = torch.arange(3.0, 7.0), 2
    moved = torch.view_as_real(rotated(K[3:], s)).flatten(1)
    expected = rotated(K[3:], s - evicted)
    assert torch.allclose(rotated(moved, torch.full((4,), -evicted)), expected, atol=1e-5)


def slower_with_every_token():
    X, W_K = np.random.default_rng(0).standard_normal((2, 9, 9))
    projected = []

    def keys(X):
        projected.append(len(X))
        return X @ W_K

    for t in range(9):
        K = keys(X[: t + 1])  # the whole text again
    assert sum(projected) == 9 * 10 / 2
    projected.clear()
    cached = np.concatenate([keys(X[t : t + 1]) for t in range(9)])
    assert sum(projected) == 9
    np.testing.assert_allclose(cached, K)


# Behaviours: other numbers


def other_numbers_gpu_bf16():
    Q, K, V = (torch.randn(3, 4, 16, 32, dtype=torch.float64) for _ in range(3))
    exact = F.scaled_dot_product_attention(Q, K, V)

    def error(dtype):
        rounded = F.scaled_dot_product_attention(Q.to(dtype), K.to(dtype), V.to(dtype))
        alone = F.scaled_dot_product_attention(*(x[:1].to(dtype) for x in (Q, K, V)))
        return max((y - exact[: len(y)]).abs().max() for y in (rounded, alone))

    assert error(torch.float32) < 1e-5 < error(torch.float16) < error(torch.bfloat16) < 0.05
    for dtype, most in ((torch.float32, 20), (torch.float16, 2), (torch.bfloat16, 2)):
        assert error(dtype) < most * torch.finfo(dtype).eps * exact.abs().max()


# Behaviours: attention weights that look wrong


def weights_do_not_sum_to_1():
    layer = torch.nn.MultiheadAttention(8, 1, dropout=0.2, batch_first=True)
    X = torch.randn(1, 6, 8)
    sums = layer(X, X, X)[1].sum(-1)
    assert not torch.allclose(sums, torch.ones(1, 6), atol=0.05)
    weights = layer(X, X[:, :1], X[:, :1])[1]
    assert {round(weight, 2) for weight in weights.flatten().tolist()} <= {0, 1.25}
    sums = layer.eval()(X, X, X)[1].sum(-1)
    assert torch.allclose(sums, torch.ones(1, 6))


def softmax_wrong_axis():
    scores = torch.randn(5, 5)
    assert not torch.allclose(torch.softmax(scores, -2).sum(-1), torch.ones(5), atol=0.1)
    assert torch.allclose(torch.softmax(scores, -1).sum(-1), torch.ones(5))
    scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
    changed = scores + 3 * (torch.arange(5) == 4)[:, None]  # of the last query
    first, after = torch.softmax(scores, -2)[0], torch.softmax(changed, -2)[0]
    assert not torch.allclose(first, after, atol=0.01), "the first one reads the future"
    assert torch.equal(torch.softmax(scores, -1)[:4], torch.softmax(changed, -1)[:4])


def softmax_over_batch():
    X = torch.randn(3, 4, 8)

    def attention(X, axis):
        return F.softmax(X @ X.transpose(-1, -2), axis) @ X

    with warnings.catch_warnings(action="ignore"):
        assert attention(X, None).equal(attention(X, 0)), "it takes the first of three axes"
    assert torch.allclose(attention(X[:1], 0)[0], X[0].sum(0).expand(4, 8)), "every weight is 1"
    assert not torch.allclose(attention(X, 0)[0], attention(X[:1], 0)[0], atol=0.1)
    assert torch.allclose(attention(X, -1)[0], attention(X[:1], -1)[0], atol=1e-6)


def batch_first_forgotten():
    X, other = torch.randn(3, 5, 8), (torch.arange(3) == 1)[:, None, None]
    for batch_first, shape in ((False, (5, 3, 3)), (True, (3, 5, 5))):
        layer = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
        Y, weights = layer(X, X, X)
        changed = X + other  # the second sentence becomes another one
        same = torch.allclose(layer(changed, changed, changed)[0][0], Y[0], atol=1e-3)
        assert weights.shape == shape
        assert same == batch_first, "else the first sentence feels it"


def same_output_everywhere():
    X, W_Q = torch.randn(1, 6, 8), torch.randn(8, 8)
    Y = F.scaled_dot_product_attention(X @ (0 * W_Q), X, X)
    assert torch.allclose(Y, X.mean(1, keepdim=True).expand_as(Y), atol=1e-6)
    assert F.scaled_dot_product_attention(X @ W_Q, X, X).std(1).max() > 0.1


def order_makes_no_difference():
    layer, order = torch.nn.MultiheadAttention(8, 2, batch_first=True), [3, 0, 4, 1, 2]
    X, places = torch.randn(1, 5, 8), torch.randn(5, 8)

    def same(X, shuffled):
        Y = layer(X, X, X)[0][:, order]
        return torch.allclose(layer(shuffled, shuffled, shuffled)[0], Y, atol=1e-6)

    assert same(X, X[:, order])
    assert not same(X + places, X[:, order] + places)


def weights_all_uniform():
    Q, V = torch.randn(1, 5, 8), torch.eye(5)[None]  # so the result is the weights
    for too_small in ({"query": Q, "key": Q, "scale": 0.0}, {"query": 0.02 * Q, "key": 0.02 * Q}):
        weights = F.scaled_dot_product_attention(value=V, **too_small)
        assert torch.allclose(weights, torch.full_like(weights, 1 / 5), atol=0.01)
    assert F.scaled_dot_product_attention(Q, Q, V).max() > 0.5


def one_hot_from_the_start():
    d_k = 512
    Q, K = torch.randn(100, 1, d_k), torch.randn(100, 8, d_k)
    scores = Q @ K.transpose(-1, -2)

    def largest(scores):
        return torch.softmax(scores, -1).amax(-1).mean()

    assert largest(scores) > 0.9
    assert largest(scores / d_k**0.5) < 0.5


def divided_by_the_wrong_root():
    H, d_k = 8, 32
    Q, K, V = (torch.randn(1, H, 10, d_k) for _ in range(3))
    scores = Q @ K.transpose(-1, -2)
    right, flat = (torch.softmax(scores / width**0.5, -1) for width in (d_k, H * d_k))
    assert flat.amax(-1).mean() < right.amax(-1).mean() - 0.1
    expected = F.scaled_dot_product_attention(Q, K, V)
    assert torch.allclose(right @ V, expected, atol=1e-5)
    assert not torch.allclose(flat @ V, expected, atol=0.1)


def all_weight_on_first_token():
    T = 64
    scores = torch.zeros(T, T).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
    column = torch.softmax(scores, -1).mean(0)
    assert column[0] > 4 / T, "without any learning"
    assert column.argmax() == 0


def need_weights_slower():
    layer, X = torch.nn.MultiheadAttention(24, 3, batch_first=True), torch.ones(1, 50, 24)
    assert 3 * 50 * 50 in _kept(layer, X, X, X), "the weights of three heads"
    assert 3 * 50 * 50 not in _kept(layer, X, X, X, need_weights=False)
    Y, none = layer(X, X, X, need_weights=False)
    assert none is None
    assert torch.allclose(layer(X, X, X)[0], Y, atol=1e-5)


def weights_averaged_over_heads():
    layer, X = torch.nn.MultiheadAttention(16, 8, batch_first=True), torch.randn(2, 5, 16)
    mean = layer(X, X, X)[1]
    each = layer(X, X, X, average_attn_weights=False)[1]
    assert mean.shape == (2, 5, 5)
    assert each.shape == (2, 8, 5, 5)
    assert torch.allclose(each.mean(1), mean, atol=1e-6)


def attention_weights_none():
    layer, X = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), torch.ones(1, 3, 8)
    seen = []
    layer.self_attn.register_forward_hook(lambda module, given, results: seen.append(results[1]))
    layer(X)
    assert seen == [None]
    assert layer.self_attn(X, X, X, need_weights=True)[1].shape == (1, 3, 3)


# Behaviours: weights loaded from another model


def loaded_weights_transposed():
    W, X = torch.randn(8, 8), torch.randn(3, 8)  # made for X @ W
    layer = torch.nn.Linear(8, 8, bias=False)
    layer.load_state_dict({"weight": W})
    assert not torch.allclose(layer(X), X @ W, atol=1)
    layer.load_state_dict({"weight": W.T})
    assert torch.allclose(layer(X), X @ W, atol=1e-5)


def qkv_packed_in_other_order():
    T, H, d_k, d_model = 5, 2, 4, 7
    X, packed = torch.randn(T, d_model), torch.randn(3 * H * d_k, d_model)
    by_head = (X @ packed.T).view(T, H, 3, d_k).unbind(2)  # Q, K, V of head 0, then of head 1

    def by_kind(packed):
        return [part.view(T, H, d_k) for part in (X @ packed.T).chunk(3, -1)]

    assert not torch.allclose(by_kind(packed)[0], by_head[0], atol=1)
    turned = packed.view(H, 3, d_k, d_model).transpose(0, 1).reshape(-1, d_model)
    assert all(map(torch.allclose, by_kind(turned), by_head))


def rope_interleaved_or_half():
    Q, K = torch.randn(6, 8), torch.randn(6, 8)
    angle = torch.arange(6.0)[:, None] * 10000.0 ** (-torch.arange(4) / 4)
    neighbours, halves = torch.arange(8).view(4, 2).T, torch.arange(8).view(2, 4)

    def scores(Q, K, pairs):
        a, b = (torch.complex(*x[:, pairs].unbind(1)) for x in (Q, K))
        turn = torch.polar(torch.ones(6, 4), angle)
        return ((a * turn) @ (b * turn).mH).real

    order, expected = neighbours.flatten(), scores(Q, K, neighbours)
    assert not torch.allclose(scores(Q, K, halves), expected, atol=0.1)
    assert torch.allclose(scores(Q[:, order], K[:, order], halves), expected, atol=1e-5)
    angle[:, 2:] = 0.0  # partial RoPE: the last two pairs are not rotated
    assert not torch.allclose(scores(Q, K, neighbours), expected, atol=0.1)


def heads_scrambled_by_reshape():
    B, H, T, d_k = 1, 2, 3, 2
    heads = torch.arange(B * H * T * d_k).view(B, H, T, d_k)  # head 0 holds 0 to 5
    assert heads.reshape(B, T, H * d_k)[0, 0].tolist() == [0, 1, 2, 3], "two tokens of one head"
    assert heads.transpose(1, 2).reshape(B, T, H * d_k)[0, 0].tolist() == [0, 1, 6, 7]
    X = torch.arange(B * T * H * d_k).view(B, T, H * d_k)
    assert X.view(B, H, T, d_k)[0, 0, 1].tolist() == [2, 3], "still of the first token"
    assert X.view(B, T, H, d_k).transpose(1, 2)[0, 0, 1].tolist() == [4, 5]


BESIDE = {  # a message without an entry of its own → the entry that tells it, and the words there
    "axes_dont_match": ("numpy_matmul_core", "axes don't match array"),
    "cpu_allocator": ("cuda_out_of_memory", "DefaultCPUAllocator: can't allocate memory"),
    "einsum_number_of_subscripts": (
        "einsum_size_mismatch",
        "the number of subscripts in the equation",
    ),
    "expected_scalar_type": ("mat1_mat2_dtype", "expected scalar type Float but found Half"),
    "invalid_value_in_subtract": ("invalid_value_in_divide", "subtract"),
    "no_module_torch": ("flash_attn_not_installed", "No module named 'torch'"),
    "numpy_cannot_reshape": (
        "shape_invalid_for_size",
        "cannot reshape array of size … into shape …",
    ),
}
FURTHER_CAUSES = {  # a behaviour without an entry of its own → the entry that names it as a cause
    "labels_shifted_twice": "labels_not_shifted",
    "mask_differs_in_generation": "mask_inverted",
    "nan_in_gradients": "nan_fully_masked_row",
    "nan_only_in_padded_rows": "nan_fully_masked_row",
    "no_kernel_for_three_axes": "no_available_kernel",
    "same_output_everywhere": "weights_all_uniform",
    "sdpa_dropout_in_eval": "train_and_eval_differ",
    "softmax_over_batch": "softmax_wrong_axis",
}

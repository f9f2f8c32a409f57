"""The answers of chapter 10, computed."""

import math

import numpy as np

from tests.lazy import F, torch
from tutorial_lib import causal_mask, init_params, multi_head_attention

T, D_MODEL = 6, 12
SEED = 0


def _sequence():
    """Sample one sequence of tokens."""
    return np.random.default_rng(SEED).standard_normal((T, D_MODEL))


def _depends(layer, change):
    """Find which outputs change with a token: a row for each output, a column for each token."""
    X, columns = _sequence(), []
    before = layer(X)
    for s in range(T):
        changed = X.copy()
        changed[s] = change(X[s])
        columns.append(~(np.abs(layer(changed) - before).max(axis=-1) <= 1e-9))
    return np.stack(columns, axis=1)


def _anew(token):
    """Replace a token by random numbers."""
    return np.random.default_rng(SEED + 1).standard_normal(token.shape)


def _seen_through_torch_layer(mask):
    """Give a mask to `nn.MultiheadAttention` on its path through SDPA, and change key after key."""
    from tutorial_lib.pytorch import bridge

    params = init_params(np.random.default_rng(SEED), d_model=D_MODEL, n_heads=3)
    layer = bridge.torch_mha_from_params(params).train()
    mask, queries = torch.from_numpy(mask), torch.from_numpy(_sequence())

    def run(X):
        keys = torch.from_numpy(X)
        return layer(queries, keys, keys, attn_mask=mask, need_weights=False)[0].detach().numpy()

    return _depends(run, _anew)


def what_the_last_token_sees():
    """Give the causal mask to a layer that hides where it is True; change each token in turn."""
    last = _seen_through_torch_layer(causal_mask(T))[-1].tolist()
    ours = causal_mask(T)[-1].tolist()
    return [all(last), not any(last), last == [False] * 5 + [True], last == ours]


def softmax_of_a_row_with_a_billion_less():
    """Add −10⁹ to the three scores of *bark*, in float64, and take the softmax."""
    scores = math.log(2) * np.array([1.0, -1.0, 0.0]) - 1e9
    exps = np.exp(scores - scores.max())
    weights = exps / exps.sum()

    def found(*numbers):
        return np.allclose(weights, numbers, atol=1e-6)  # the sum rounds the scores to 10⁻⁷

    return [
        bool(np.isnan(weights).any()),
        found(1 / 3, 1 / 3, 1 / 3),
        found(4 / 7, 1 / 7, 2 / 7),
        found(0, 0, 0),
    ]


def keys_of_the_second_query():
    """Let SDPA mix the rows of the identity, and count the keys of query 1."""
    Q, K, V = torch.ones(1, 1, 2, 5), torch.ones(1, 1, 5, 5), torch.eye(5)[None, None]
    weights = F.scaled_dot_product_attention(Q, K, V, is_causal=True)[0, 0]
    return int((weights[1] > 0).sum())


def why_the_loss_falls_so_fast():
    """Train with our mask in torch's layer: compare who looks where with each explanation."""
    mask = causal_mask(T)
    seen = _seen_through_torch_layer(mask)
    return [
        bool((seen.sum(axis=1) <= mask.sum(axis=1)).all()),
        bool(seen.all()),
        np.array_equal(seen, ~mask),
        bool(seen.diagonal().all()),
    ]


def what_replacing_nan_leaves():
    """Add −∞ to all of row 0, replace NaN by 0, and look at the weights and the gradients."""
    scores = torch.from_numpy(_sequence()[:, :T]).requires_grad_()
    mask = torch.from_numpy(causal_mask(T))
    mask[0] = False
    right = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)[1:]
    bias = torch.zeros(T, T).masked_fill(~mask, -math.inf)
    weights = (scores + bias).softmax(dim=-1).nan_to_num(0.0)
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    return [
        bool(gradient.isnan().any()),
        torch.equal(gradient[0], torch.zeros(T).double()),
        bool(weights[1:].isnan().any()),
        not torch.allclose(weights[1:], right),
    ]


def leaks_that_adding_one_misses():
    """Plant each leak, and compare a test that adds 1 with one that samples the token anew."""
    params = init_params(np.random.default_rng(SEED), d_model=D_MODEL, n_heads=3)

    def escapes(leak):
        def layer(X):
            return multi_head_attention(X, params, mask=causal_mask(T)) + leak(X)

        by_one, by_all = (_depends(layer, change) & ~causal_mask(T) for change in (_add_one, _anew))
        return bool(by_all.any() and not by_one.any())

    itself, last, centred = map(escapes, (np.tanh, _last_token, _left_of_the_mean))
    return [not (itself or last or centred), itself, last, centred]


def _add_one(token):
    """Change a token by adding 1 to every entry."""
    return token + 1


def _last_token(X):
    """Add the last token to every output."""
    return X[-1]


def _left_of_the_mean(X):
    """Add to every output the sum of the tokens, each without its own mean."""
    return (X - X.mean(axis=-1, keepdims=True)).sum(axis=0)


def computed_squares_that_hide_something():
    """Cut the causal mask of six tokens into squares of two by two, and count."""
    squares = causal_mask(T).reshape(3, 2, 3, 2)
    assert squares.shape[0] * squares.shape[2] == 9
    computed, whole = squares.any(axis=(1, 3)), squares.all(axis=(1, 3))
    return int((computed & ~whole).sum())


def what_torch_layer_returns():
    """Run `nn.MultiheadAttention` with dropout on one sequence, in training and in evaluation."""
    torch.manual_seed(0)
    layer, X = torch.nn.MultiheadAttention(D_MODEL, 3, dropout=0.5), torch.randn(T, D_MODEL)

    def weights(training, average):
        torch.manual_seed(1)  # the same numbers are dropped
        layer.train(training)
        return layer(X, X, X, average_attn_weights=average)[1].detach()

    dropped, whole, heads = weights(True, True), weights(False, True), weights(False, False)
    Q, K = (X @ W.T for W in layer.in_proj_weight.detach().chunk(3)[:2])
    wide = (Q @ K.T / math.sqrt(D_MODEL)).softmax(dim=-1)
    return [
        torch.allclose(whole, heads[0]),
        torch.allclose(whole, heads.amax(dim=0)),
        torch.allclose(whole, heads.mean(dim=0))
        and torch.allclose(dropped, weights(True, False).mean(dim=0))
        and not torch.allclose(dropped, whole),
        torch.allclose(whole, wide),
    ]

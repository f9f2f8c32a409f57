"""What computes the keys of chapter 08: backward passes, and small steps to check them."""

import numpy as np

import tutorial_lib as tl


def _head_0_of_the_example():
    example = tl.running_example()
    record = tl.trace(example.X, example.params, mask=example.mask)
    return [array[0] for array in (record.Q, record.K, record.V, record.weights)]


def keys_with_a_gradient():
    """Which keys of head 0 get one when (2, 1, −1) comes back to the weights of *bark* only."""
    Q, K, V, weights = _head_0_of_the_example()
    dheads = np.zeros(V.shape)
    dheads[2] = np.linalg.pinv(V) @ [2, 1, -1]
    _, dK, _ = tl.attention_backward(Q, K, V, weights, dheads)
    reached = np.flatnonzero(np.abs(dK).max(axis=-1) > 1e-12).tolist()
    dogs, that, bark = range(3)
    return [reached == other for other in ([bark], [dogs, bark], [dogs, that, bark], [])]


def gap_of_equal_heads():
    """How far apart two heads are that start alike, after each of 30 steps down the gradient."""
    rng = np.random.default_rng(0)
    one = tl.init_params(rng, d_model=12, n_heads=1, d_k=4, d_v=7)
    W_Q, W_K, W_V = (np.concatenate([W, W]) for W in (one.W_Q, one.W_K, one.W_V))
    params, gaps = tl.Params(W_Q, W_K, W_V, np.concatenate([one.W_O, one.W_O])), []
    for _ in range(30):
        X, wanted = rng.standard_normal((2, 5, 12))
        record = tl.trace(X, params, mask=tl.causal_mask(5))
        back = tl.multi_head_attention_backward(record, (record.Y - wanted) / wanted.size)
        params = tl.Params(
            *(W - 0.05 * getattr(back, f"d{name}") for name, W in vars(params).items())
        )
        gaps.append((params.W_Q[0] - params.W_Q[1]).sum())
    gap = np.abs(params.W_Q[0] - params.W_Q[1]).max()
    return [1e-9 < gap < 0.1, gap >= 0.1, min(gaps) < -1e-9 and max(gaps) > 1e-9, gap <= 1e-9]


def gradient_of_the_scores():
    """The derivatives of softmax(scores) · (3, 1, 9) by the scores, the weights 1/2, 1/2, 0."""
    return tl.softmax_backward(np.array([1 / 2, 1 / 2, 0]), np.array([3.0, 1.0, 9.0])).tolist()


def _attend_backward(Q, K, V, mask):
    """The weights, and dK and dV, when only the output of the first query has a gradient."""
    weights = tl.attention_weights(Q @ K.T / np.sqrt(Q.shape[-1]), mask=mask)
    dheads = np.zeros((len(Q), V.shape[-1]))
    dheads[0] = 1
    _, dK, dV = tl.attention_backward(Q, K, V, weights, dheads)
    return weights, dK[1:], dV[1:]


def why_no_mask_on_the_way_back():
    """What comes back from the first query to the keys that a causal mask hides from it."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((5, width)) for width in (4, 4, 7))
    weights, dK, dV = _attend_backward(Q, K, V, tl.causal_mask(5))
    _, dK_seen, dV_seen = _attend_backward(Q, K, V, None)
    sent = dK.any() or dV.any()
    dscores = tl.softmax_backward(weights, rng.standard_normal((5, 5)))
    X = rng.standard_normal((5, 12))
    return [
        not weights[0, 1:].any() and not sent and dK_seen.all() and dV_seen.all(),
        sent,
        np.isneginf(dscores[0, 1:]).all(),
        tl.split_heads(X, 3).shape[-2] < len(X),
    ]


def _error_of_differences(gradient, step, dtype=np.float64):
    """How far central differences are from a gradient, over its largest entry."""
    X, layer, dY = _small_layer()
    X, params = X.astype(dtype), tl.Params(*(W.astype(dtype) for W in vars(layer).values()))
    found = np.zeros(X.shape)
    for index in np.ndindex(X.shape):
        nudge = np.zeros(X.shape, dtype)
        nudge[index] = step
        up, down = (tl.multi_head_attention(moved, params) for moved in (X + nudge, X - nudge))
        found[index] = ((up * dY).sum() - (down * dY).sum()) / (2 * step)
    return np.abs(found - gradient).max() / np.abs(gradient).max()


def _small_layer():
    rng = np.random.default_rng(0)
    layer = tl.init_params(rng, d_model=6, n_heads=2, d_k=3, d_v=2)
    X, dY = rng.standard_normal((2, 4, 6))
    return X, layer, dY


def three_right_digits():
    """How well central differences agree with a right gradient and with one that lacks a term."""
    X, layer, dY = _small_layer()
    right = tl.multi_head_attention_backward(tl.trace(X, layer), dY).dX
    lacking = right.copy()
    lacking[0, 0] += 3e-4 * np.abs(right).max()
    step = 1 / (100 * 1000)  # a hundred-thousandth
    error = _error_of_differences(right, step)
    three_digits = 1e-4 < _error_of_differences(lacking, step) < 1e-3
    return [
        error > 1e-4,
        error < 1e-8 and three_digits,
        _error_of_differences(right, 1e-10) < error,
        _error_of_differences(right, 1e-5, np.float32) < error,
    ]


def way_back_of_concat(expressions):
    """Whether each expression is the derivative of (concat * dconcat).sum() by heads."""
    B, H, T, d_v = 2, 3, 5, 7
    dconcat = np.random.default_rng(0).standard_normal((B, T, H * d_v))
    names = {"np": np, "split_heads": tl.split_heads, "dconcat": dconcat}
    names |= {"B": B, "H": H, "T": T, "d_v": d_v}
    dheads = np.zeros((B, H, T, d_v))
    for index in np.ndindex(dheads.shape):
        one = np.zeros(dheads.shape)
        one[index] = 1
        dheads[index] = (tl.concat_heads(one) * dconcat).sum()
    return [np.array_equal(eval(text, names), dheads) for text in expressions]


def gradients_behind_rows_of_zeros():
    """Which gradients of head 1 are 0 when its rows of W_O are."""
    rng = np.random.default_rng(0)
    params = tl.init_params(rng, d_model=12, n_heads=3, d_k=4, d_v=7)
    params.W_O[7:14] = 0
    X, dY = rng.standard_normal((2, 5, 12))
    back = tl.multi_head_attention_backward(tl.trace(X, params), dY)
    of_head_1 = {"W_Q": back.dW_Q[1], "W_K": back.dW_K[1], "W_V": back.dW_V[1]}
    of_head_1["W_O"] = back.dW_O[7:14]
    zero = {name for name, gradient in of_head_1.items() if not gradient.any()}
    others = {"W_Q", "W_K", "W_V", "W_O"}, set(), {"W_O"}, {"W_Q", "W_K", "W_V"}
    return [zero == other for other in others]

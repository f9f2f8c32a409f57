"""Keys from a latent: squeezed and widened again, with a part that all heads share."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task


def _own(X, W_down, W_up):
    return (X @ W_down)[..., None, :, :] @ W_up


def _for_all(shared, n_heads):
    return np.stack([shared] * n_heads, axis=-3)


def _join(own, shared):
    return np.concatenate([own, shared], axis=-1)


def head_axis_forgotten(X, W_down, W_up, W_shared):
    own = X @ W_down @ W_up
    shared = X @ W_shared
    return _join(own, np.broadcast_to(shared, (*own.shape[:-1], shared.shape[-1])))


def first_matrix_for_all(X, W_down, W_up, W_shared):
    own = X @ W_down @ W_up[0]
    return _for_all(_join(own, X @ W_shared), len(W_up))


def heads_behind_tokens(X, W_down, W_up, W_shared):
    keys = _join(_own(X, W_down, W_up), _for_all(X @ W_shared, len(W_up)))
    return np.swapaxes(keys, -3, -2)


def cut_by_reshape(X, W_down, W_up, W_shared):
    wide = X @ W_down @ np.concatenate(W_up, axis=-1)  # (..., T, H*d_k)
    own = wide.reshape(*X.shape[:-2], len(W_up), X.shape[-2], W_up.shape[-1])
    return _join(own, _for_all(X @ W_shared, len(W_up)))


def shared_forgotten(X, W_down, W_up, W_shared):
    return _own(X, W_down, W_up)


def shared_in_front(X, W_down, W_up, W_shared):
    return _join(_for_all(X @ W_shared, len(W_up)), _own(X, W_down, W_up))


def shared_in_head_0(X, W_down, W_up, W_shared):
    shared = _for_all(X @ W_shared, len(W_up))
    first = np.arange(len(W_up)) == 0
    return _join(_own(X, W_down, W_up), shared * first[:, None, None])


def shared_repeated_in_a_row(X, W_down, W_up, W_shared):
    own = _own(X, W_down, W_up)
    shared = np.repeat(X @ W_shared, len(W_up), axis=-2)  # (..., T*H, d_r)
    return _join(own, shared.reshape(*own.shape[:-1], W_shared.shape[-1]))


def negatives_cut_off(X, W_down, W_up, W_shared):
    own = np.maximum(X @ W_down, 0)[..., None, :, :] @ W_up
    return _join(own, _for_all(X @ W_shared, len(W_up)))


MISTAKES = (
    Mistake(
        "head_axis_forgotten",
        "the latent has no head axis, so sequence b meets the matrix of head b and no other",
        "Every sequence meets every head: the head axis stands before the last two.",
        head_axis_forgotten,
    ),
    Mistake(
        "first_matrix_for_all",
        "every head widens the latent with the matrix of head 0",
        "The latent is the same for all heads, W_up is not: head h uses W_up[h].",
        first_matrix_for_all,
    ),
    Mistake(
        "heads_behind_tokens",
        "the head axis stands behind the token axis",
        "The result is (..., H, T, d_k + d_r): heads first, then tokens.",
        heads_behind_tokens,
    ),
    Mistake(
        "cut_by_reshape",
        "one wide product is cut with reshape alone, so heads hold other tokens' numbers",
        "A head is a slice of columns of the wide product. Reshape alone cuts rows apart.",
        cut_by_reshape,
    ),
    Mistake(
        "shared_forgotten",
        "the part that all heads share is missing",
        "Join it to each head's own part, along the last axis.",
        shared_forgotten,
    ),
    Mistake(
        "shared_in_front",
        "the shared part comes first, and the head's own part second",
        "The first d_k columns are the head's own.",
        shared_in_front,
    ),
    Mistake(
        "shared_in_head_0",
        "only head 0 gets the shared part, and the other heads get zeros",
        "All heads hold the same shared part.",
        shared_in_head_0,
    ),
    Mistake(
        "shared_repeated_in_a_row",
        "the shared part is repeated along the tokens, so a head holds other tokens' rows",
        "Copy the shared part along a new axis, the one for the heads.",
        shared_repeated_in_a_row,
    ),
    Mistake(
        "negatives_cut_off",
        "negative numbers of the latent are set to 0",
        "Two products follow one another with nothing in between.",
        negatives_cut_off,
    ),
)


def cases(rng):
    """Sizes all differ but where the label says otherwise."""

    def arrays(*batch, H=3, T=5, d_model=12, d_c=6, d_k=4, d_r=2):
        shapes = (*batch, T, d_model), (d_model, d_c), (H, d_c, d_k), (d_model, d_r)
        return tuple(rng.standard_normal(shape) for shape in shapes)

    return [
        Case("one sequence", arrays(), 3),
        Case("a batch", arrays(2, T=7, d_r=5), 2),
        Case("as many sequences as heads", arrays(3), 2),
        Case("two batch axes", arrays(5, 2, H=4, T=3, d_k=7, d_r=1), 1),
        Case("one head", arrays(2, H=1), 1),
        Case("one token, a latent of width 1", arrays(H=4, T=1, d_c=1, d_k=3), 1),
    ]


ASSIGNMENT = Assignment((Task("keys_from_latent", cases, MISTAKES),), withheld=("project_heads",))

"""Heads that each token chooses, and the bias of the values merged into that of the output."""

from coursework.grader.assignment import Assignment, Case, Task


def routed_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arguments(*batch, n, H, T, d_v, d_model, middle=0.0):
        heads = rng.standard_normal((*batch, H, T, d_v))
        gates = middle + rng.standard_normal((*batch, T, H))
        return heads, rng.standard_normal((H * d_v, d_model)), gates, n

    far = 1e4 * (rng.permutation(7)[:, None] - 3)  # above 0, below 0, and each row elsewhere
    return [
        Case("2 of 5 heads", arguments(n=2, H=5, T=8, d_v=7, d_model=12)),
        Case("3 of 4 heads, a batch", arguments(7, n=3, H=4, T=5, d_v=6, d_model=11)),
        Case("4 of 6 heads, two batch axes", arguments(3, 5, n=4, H=6, T=7, d_v=8, d_model=13)),
        Case("all heads", arguments(n=3, H=3, T=4, d_v=5, d_model=8)),
        Case("one head for each token", arguments(n=1, H=4, T=5, d_v=3, d_model=7)),
        Case("gates of any size", arguments(n=3, H=5, T=7, d_v=4, d_model=8, middle=far)),
    ]


def bias_cases(rng):
    """Sizes all differ, so that no axis can stand for another."""

    def arrays(H, d_v, d_model):
        shapes = (H, d_v), (H * d_v, d_model), (d_model,)
        return tuple(rng.standard_normal(shape) for shape in shapes)

    return [
        Case("3 heads", arrays(3, 4, 10), 2),
        Case("heads wider than the layer", arrays(2, 9, 5), 1),
        Case("one head", arrays(1, 6, 4), 1),
    ]


ASSIGNMENT = Assignment(
    (Task("project_out_routed", routed_cases), Task("folded_bias", bias_cases)),
)

"""Keys with the words before mixed in: a short causal filter behind the projection."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ but where the label says otherwise."""

    def arrays(*batch, H=4, T=6, d_model=11, d_k=5, n=3):
        shapes = (*batch, T, d_model), (H, d_model, d_k), (H, n, d_k)
        return tuple(rng.standard_normal(shape) for shape in shapes)

    return [
        Case("one sequence", arrays(), 3),
        Case("a batch", arrays(2, H=3, T=7, d_k=8, n=5), 2),
        Case("as many sequences as heads", arrays(4), 2),
        Case("two batch axes", arrays(5, 3, T=8, d_k=6, n=7), 1),
        Case("one head", arrays(2, H=1, T=7), 1),
        Case("more taps than tokens", arrays(2, H=3, T=5, d_k=8, n=7), 1),
    ]


ASSIGNMENT = Assignment((Task("convolved_keys", cases),), withheld=("project_heads",))

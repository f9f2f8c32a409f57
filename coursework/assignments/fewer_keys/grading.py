"""Keys and values as means of products: a factor for each head times a row that heads share."""

from coursework.grader.assignment import Assignment, Case, Task


def cases(rng):
    """Sizes all differ but in one case, in which factors of keys and values can be confused.

    In the last, keys or values of all heads take more than 2 GiB; what is kept of them, 30 MB.
    """

    def arrays(*batch, H, T, S, R, P, d_k, d_v, large=1.0):
        shapes = (H, T, d_k), (S, R, H), (S, R, d_k), (S, P, H), (S, P, d_v)
        Q, *kept = (rng.standard_normal((*batch, *shape)) for shape in shapes)
        return 2 * large * Q, *kept

    two_five = arrays(H=3, T=7, S=11, R=2, P=5, d_k=8, d_v=13)
    three_two = arrays(7, H=5, T=8, S=11, R=3, P=2, d_k=13, d_v=12)
    two_axes = arrays(3, 5, H=7, T=1, S=11, R=4, P=6, d_k=8, d_v=10)
    as_many = arrays(H=3, T=5, S=7, R=2, P=2, d_k=8, d_v=13)
    one_three = arrays(H=2, T=5, S=7, R=1, P=3, d_k=8, d_v=11)
    thousands = arrays(H=5, T=7, S=8, R=3, P=4, d_k=6, d_v=11, large=1e3)
    new = arrays(H=512, T=1, S=1_200, R=2, P=1, d_k=500, d_v=490)
    return [
        Case("two products per key, five per value", two_five, 2),
        Case("three products per key, two per value, a batch", three_two, 2),
        Case("two batch axes, one query", two_axes, 1),
        Case("as many products per key as per value", as_many, 1),
        Case("one product per key, three per value", one_three, 1),
        Case("scores in the thousands", thousands, 1),
        Case("keys of all heads do not fit into memory", new, 2),
    ]


ASSIGNMENT = Assignment((Task("attend_to_products", cases),))

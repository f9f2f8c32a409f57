"""Attention with one thing changed: what each mistake in a function of Q, K and V would return.

A right function is computed from what was measured of the candidate: its mask, which heads serve
which, and its bias. Then one part at a time is exchanged for a mistake. The mistake has its name if
no other explains the outputs as well, for two widths and two lengths.
"""

from functools import cache
from itertools import combinations, product

import numpy as np

from tutorial_lib.probe.dependence import Pattern
from tutorial_lib.probe.masks import candidates, mask_names
from tutorial_lib.probe.subject import largest

CAPS = (5, 10, 15, 20, 30, 50)  # of scores
LONG = 40  # tokens; beyond them only one mistake is sought


def stable_softmax(scores, axis=-1):
    """Return a softmax; a slice of which all is −∞ becomes 0."""
    top = scores.max(axis=axis, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(axis=axis, keepdims=True)
    return exponentials / np.where(total == 0, 1.0, total)


def hidden(scores, seen):
    """Return scores in which what is not seen is −∞."""
    return np.where(seen, scores, -np.inf)


def _log_softmax(scores, seen):
    found = stable_softmax(hidden(scores, seen))
    return np.log(np.where(found > 0, found, 1.0))


def _plus_one(scores, seen):
    powers = np.exp(hidden(scores, seen))
    return powers / (1 + powers.sum(axis=-1, keepdims=True))


# What is done to scores (B, H, T, S), already scaled by `scale`, where `seen` (T, S) is seen.
WEIGHTS = {
    None: lambda s, seen, scale: stable_softmax(hidden(s, seen)),
    "mask_after_softmax": lambda s, seen, scale: stable_softmax(s) * seen,
    "mask_added_as_number": lambda s, seen, scale: stable_softmax(s + seen),
    "hidden_score_zero": lambda s, seen, scale: stable_softmax(np.where(seen, s, 0.0)),
    "softmax_over_queries": lambda s, seen, scale: stable_softmax(hidden(s, seen), -2),
    "softmax_over_heads": lambda s, seen, scale: stable_softmax(hidden(s, seen), 1),
    "softmax_over_batch": lambda s, seen, scale: stable_softmax(hidden(s, seen), 0),
    "softmax_over_all_pairs": lambda s, seen, scale: stable_softmax(hidden(s, seen), (-2, -1)),
    "softmax_twice": lambda s, *seen: stable_softmax(hidden(WEIGHTS[None](s, *seen), seen[0])),
    "softmax_in_logarithms": lambda s, seen, scale: _log_softmax(s, seen),
    "softmax_in_base_2": lambda s, seen, scale: stable_softmax(hidden(s * np.log(2), seen)),
    "softmax_missing": lambda s, seen, scale: np.where(seen, s, 0.0),
    "softmax_not_normalised": lambda s, seen, scale: np.exp(hidden(s, seen)),
    "softmax_over_one": lambda s, seen, scale: np.where(seen, 1.0, 0.0 * s),
    "softmax_with_one_more": lambda s, seen, scale: _plus_one(s, seen),
    "sigmoid_for_softmax": lambda s, seen, scale: np.where(seen, 1 / (1 + np.exp(-s)), 0.0),
    "scale_after_softmax": lambda s, seen, scale: stable_softmax(hidden(s / scale, seen)) * scale,
    "weights_transposed": lambda s, seen, scale: stable_softmax(hidden(s, seen)).swapaxes(-1, -2),
    "scores_transposed": lambda s, seen, scale: stable_softmax(hidden(s.swapaxes(-1, -2), seen)),
}


def _soft_caps(c):
    yield "soft_cap", lambda s, seen, scale: stable_softmax(hidden(c * np.tanh(s / c), seen))
    after = "mask_before_soft_cap"
    yield after, lambda s, seen, scale: stable_softmax(c * np.tanh(hidden(s, seen) / c))


VARIANTS = [variant for cap in CAPS for variant in _soft_caps(cap)]
# What is handed over as Q, K and V (each of all heads) in place of them.
ARRAYS = {
    None: lambda Q, K, V: (Q, K, V),
    "keys_as_values": lambda Q, K, V: (Q, K, K),
    "queries_as_values": lambda Q, K, V: (Q, K, Q),
    "queries_as_keys": lambda Q, K, V: (Q, Q, V),
    "keys_as_queries": lambda Q, K, V: (K, K, V),
    "keys_and_values_exchanged": lambda Q, K, V: (Q, V, K),
    "keys_of_first_sequence": lambda Q, K, V: (Q, K[:1] + 0 * K, V),
    "values_of_first_sequence": lambda Q, K, V: (Q, K, V[:1] + 0 * V),
}
# What is done with the outputs (B, H, T, d) of all heads.
JOINS = {
    None: lambda Y, Q: Y,
    "queries_added": lambda Y, Q: Y + Q,
    "heads_joined_without_transpose": lambda Y, Q: Y.reshape(len(Y), *Y.shape[2:0:-1], -1).swapaxes(
        1, 2
    ),
}
LAWS = {  # the factor of the scores, of d_k, H, T
    "1/sqrt(d_k)": lambda d, H, T: d**-0.5,
    "1/d_k": lambda d, H, T: 1 / d,
    "1": lambda d, H, T: 1.0,
    "sqrt(d_k)": lambda d, H, T: d**0.5,
    "1/sqrt(H d_k)": lambda d, H, T: (H * d) ** -0.5,
    "1/sqrt(H)": lambda d, H, T: H**-0.5,
    "1/sqrt(T)": lambda d, H, T: T**-0.5,
    "1/d_k**0.25": lambda d, H, T: d**-0.25,
}
SCALES = {  # (claimed, found)
    ("1/sqrt(d_k)", "1"): "scale_missing",
    ("1/sqrt(d_k)", "1/d_k"): "scale_without_root",
    ("1/sqrt(d_k)", "sqrt(d_k)"): "scale_multiplied",
    ("1/sqrt(d_k)", "1/sqrt(H d_k)"): "scale_of_d_model",
    ("1/sqrt(d_k)", "1/sqrt(H)"): "scale_another",
    ("1/sqrt(d_k)", "1/sqrt(T)"): "scale_of_length",
}


def outputs_of(parts, Q, K, V):
    """Return what a function of these parts returns, (B, H, T, d).

    Each part is how it is computed: mask, of T; scale, of d_k, H and T; heads, two functions that
    make K and V (B, H, S, d) of those of the KV heads; bias, of T; exchanged, whether heads and
    tokens have changed places; weights, arrays and joins, as in the tables above.
    """
    of_keys, of_values = parts["heads"]
    Q, K, V = parts["arrays"](Q, of_keys(K), of_values(V))
    if parts["exchanged"]:
        Q, K, V = (np.swapaxes(x, 1, 2) for x in (Q, K, V))
    scale = parts["scale"](Q.shape[-1], *Q.shape[1:3])
    scores = Q @ np.swapaxes(K, -1, -2) * scale
    if parts["exchanged"]:
        return np.swapaxes(stable_softmax(scores) @ V, 1, 2)
    T = Q.shape[2]
    weights = parts["weights"](scores + parts["bias"](T), parts["mask"](T), scale)
    return parts["joins"](weights @ V, Q)


def depends_of(weights):
    """Return which query gives which key a weight, in any sequence and head, (T, S)."""
    return ~(abs(weights) <= 1e-30).all(axis=(0, 1))


def masks(function, claims, *, values):
    """Return the masks that may be used: a name, or None, and a function of T."""

    @cache
    def measured(T):
        width = max(T, function.widths[0])  # for values that are unit vectors
        return depends_of(function.weights(*function.inputs(T, T, width, seed=4)))

    if not claims.masks:  # what is measured is what is meant
        either = [(None, Pattern().mask), (None, Pattern(causal=True).mask)]
        return [(None, measured)] if values else either
    T, right = function.length, (claims.pattern() or Pattern(causal=True)).mask
    found = [(None, right), ("no_mask", Pattern().mask)]
    if not values:
        return [*found, *candidates(claims)]
    if claims.pattern() is None:  # what is seen of the past is not claimed
        found.append((None, lambda T: measured(T) & right(T) | np.eye(T, dtype=bool)))
    if not measured(T).all() and not np.array_equal(measured(T), found[-1][1](T)):
        name, _ = mask_names([measured(T), measured(T + 3)], claims)
        found.append((name, measured))
    return found


def scales(claims):
    """Return the scales that may be used: a name, or None, and a function of d_k, H and T."""
    claimed = claims.get("scale")
    if claimed is None:
        return [(None, law) for law in LAWS.values()]
    named = [(SCALES.get((claimed, word), "scale_not_used"), LAWS[word]) for word in LAWS]
    return [(None, LAWS[claimed]), *(option for option in named if option[1] is not LAWS[claimed])]


def kv_orders(function, claimed, *, values):
    """Return how KV heads may serve query heads: a name, or None, and two functions of arrays."""
    H, G = function.heads
    orders = function.orders
    repeated, tiled = orders.values()

    def served(*orders):
        return tuple(lambda K, order=order: K[:, order] for order in orders)

    def along_tokens(K):
        return np.repeat(K, H // G, axis=2).reshape(len(K), H, *K.shape[2:])

    found = [(None, served(*(orders.pop(claimed),) * 2))]
    if 1 < G < H:
        found += [(f"key_heads_{word}", served(order, order)) for word, order in orders.items()]
        for order in ((repeated, tiled), (tiled, repeated)):
            found.append(("keys_and_values_in_other_orders", served(*order)))
        found.append(("key_heads_along_tokens", (along_tokens, along_tokens)))
    order = _measured_order(function) if values else None
    if order and not any(
        np.array_equal(order, (k, v)) for k in (repeated, tiled) for v in (k, tiled)
    ):
        first = "first_key_head_for_all" if not np.any(order) else "key_heads_of_another_group"
        found.append((first, served(*order)))
    return found


def _measured_order(function):
    """Return which KV head serves each query head, for keys and values, if it is one each."""
    tables = [function.served(of) for of in (1, 2)]
    if any((table.sum(axis=1) != 1).any() for table in tables):
        return None
    return [table.argmax(axis=1) for table in tables]


class Explanation:
    """Which mistakes give what a function returns; `values`: its outputs depend on V."""

    def __init__(self, function, claims, *, values=True):
        order = claims.get("key_heads", "repeated")
        self.options = {  # what each part may be
            "mask": masks(function, claims, values=values),
            "scale": scales(claims),
            "heads": kv_orders(function, order, values=values),
            "weights": _weights(claims),
            "arrays": list(ARRAYS.items()),
            "joins": [*JOINS.items(), *(_head_orders(function) if values else ())],
            "exchanged": [(None, False), ("attention_over_heads", True)],
            "bias": [(None, bias) for bias in (_biases(function) if values else (lambda T: 0.0,))],
        }
        self.cases, self.allowed = [], 10 * function.tolerance
        for more, d_k in zip((0, 3), function.widths, strict=True):
            length = function.length + more
            given = function.example(length, length, d_k, seed=21 + more)
            self.cases.append((*given, function.outputs(*given)))

    def names(self, most=1):
        """Return the names on which all fitting functions of the fewest mistakes agree.

        If they do not agree, these are hints, the second of two tuples; both are empty where a
        right function fits, or none.
        """
        for number in range(most + 1):
            fits = {names for names, parts in self._changed(number) if self._fits(parts)}
            if fits:
                names = tuple(sorted(frozenset().union(*fits)))
                return (names, ()) if len(fits) == 1 else ((), names)
        return (), ()

    def right(self, Q, K, V, cases=2):
        """Return what each right function that fits so many cases would return."""
        fitting = (parts for _, parts in self._changed(0) if self._fits(parts, cases))
        return [outputs_of(parts, Q, K, V) for parts in fitting]

    def _changed(self, number):
        """Yield the names of so many mistakes, and the parts with them."""
        for kinds in combinations(self.options, number):
            named = [
                [option for option in options if (option[0] is not None) == (kind in kinds)]
                for kind, options in self.options.items()
            ]
            for chosen in product(*named):
                parts = {kind: how for kind, (_, how) in zip(self.options, chosen, strict=True)}
                yield frozenset(name for name, _ in chosen if name), parts

    def _fits(self, parts, cases=2):
        """Say whether a function of these parts returns what was returned, where that is finite."""
        for Q, K, V, found in self.cases[:cases]:
            out, finite = outputs_of(parts, Q, K, V), np.isfinite(found)
            if not finite.any() or largest(out[finite], found[finite]) > self.allowed:
                return False
        return True


def _weights(claims):
    """Return what may be done with scores; of rows that need not sum to 1 more is right."""
    right = {"softmax_with_one_more"} if claims.get("row_sum") != 1 else set()
    if "row_sum" in claims and claims["row_sum"] is None:
        right |= {"sigmoid_for_softmax", "softmax_not_normalised", "softmax_missing"}
    return [(None if name in right else name, of) for name, of in (*WEIGHTS.items(), *VARIANTS)]


def _head_orders(function):
    """Return in which other order the heads come back, if they do."""
    order = function.order
    if order is None or np.array_equal(order, np.arange(len(order))):
        return []
    return [("heads_in_another_order", lambda Y, Q: Y[:, order])]


def _biases(function):
    """Return what may be added to scores: nothing, or what weights without queries show."""

    def measured(T):
        Q, K = function.inputs(T, T, max(T, function.widths[0]), seed=4)
        weights = function.weights(0 * Q, K)
        found = np.log(weights / weights.max(axis=-1, keepdims=True))
        return np.where(np.isfinite(found), found, 0.0)

    Q, K = function.inputs()
    sums = function.weights(0 * Q, K).sum(axis=-1)
    if not function.same(sums, 1.0) or largest(measured(function.length), 0.0) <= 1e-6:
        return [lambda T: 0.0]
    return [lambda T: 0.0, cache(measured)]

"""Circuits: the parts of a score, compositions of a wide model, paths by their length."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import Params, causal_mask, concat_heads, softmax, trace


def _swap(array):
    return np.swapaxes(array, -1, -2)


def _layers(matrices):
    """The Params of each layer."""
    return [Params(*each) for each in zip(*matrices, strict=True)]


def _in_blocks(params):
    """The rows of W_O of each head, (H, d_v, d_model)."""
    return params.W_O.reshape(params.n_heads, params.d_v, -1)


def _in_turn(params):
    """The rows of W_O, dealt out by turns: a mistake."""
    return np.stack([params.W_O[h :: params.n_heads] for h in range(params.n_heads)])


def _record(X, params, *, causal=True):
    return trace(X, params, mask=causal_mask(X.shape[-2]) if causal else None)


def _added(record, rows=_in_blocks, heads=None):
    """What each head of a layer adds, (H, ..., T, d_model)."""
    heads = record.heads if heads is None else heads
    return np.moveaxis(heads @ rows(record.params), -3, 0)


def _parts(X, params, **options):
    """X, and what each head of the first layer adds: (H + 1, ..., T, d_model)."""
    return np.concatenate([X[None], _added(_record(X, params), **options)])


def _products(parts, W_Q, W_K, *, root=None):
    """The score of each pair of parts, (H + 1, H + 1, ..., H, T, T)."""
    Q, K = (parts[..., None, :, :] @ W for W in (W_Q, W_K))
    root = np.sqrt(W_Q.shape[-1]) if root is None else root
    return Q[:, None] @ _swap(K)[None] / root


def _score_parts(X, matrices, *, parts=None, **options):
    first, second = _layers(matrices)
    parts = _parts(X, first) if parts is None else parts
    return _products(parts, second.W_Q, second.W_K, **options)


def keys_come_first(X, W_Q, W_K, W_V, W_O):
    return np.swapaxes(_score_parts(X, (W_Q, W_K, W_V, W_O)), 0, 1)


def not_divided(X, W_Q, W_K, W_V, W_O):
    return _score_parts(X, (W_Q, W_K, W_V, W_O), root=1)


def root_of_d_model(X, W_Q, W_K, W_V, W_O):
    return _score_parts(X, (W_Q, W_K, W_V, W_O), root=np.sqrt(X.shape[-1]))


def scored_by_the_first_layer(X, W_Q, W_K, W_V, W_O):
    return _products(_parts(X, _layers((W_Q, W_K, W_V, W_O))[0]), W_Q[0], W_K[0])


def part_0_holds_all(X, W_Q, W_K, W_V, W_O):
    first, _ = _layers((W_Q, W_K, W_V, W_O))
    parts = _parts(X, first)
    parts[0] = parts.sum(axis=0)
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=parts)


def part_0_comes_last(X, W_Q, W_K, W_V, W_O):
    parts = _parts(X, _layers((W_Q, W_K, W_V, W_O))[0])
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=np.roll(parts, -1, axis=0))


def first_layer_looks_ahead(X, W_Q, W_K, W_V, W_O):
    first, _ = _layers((W_Q, W_K, W_V, W_O))
    added = _added(_record(X, first, causal=False))
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=np.concatenate([X[None], added]))


def rows_dealt_out_in_turn(X, W_Q, W_K, W_V, W_O):
    parts = _parts(X, _layers((W_Q, W_K, W_V, W_O))[0], rows=_in_turn)
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=parts)


def split_evenly(X, W_Q, W_K, W_V, W_O):
    first, _ = _layers((W_Q, W_K, W_V, W_O))
    H = first.n_heads
    parts = np.stack([X, *[_record(X, first).Y / H] * H])
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=parts)


def without_weights(X, W_Q, W_K, W_V, W_O):
    first, _ = _layers((W_Q, W_K, W_V, W_O))
    record = _record(X, first)
    added = _added(record, heads=record.V)
    return _score_parts(X, (W_Q, W_K, W_V, W_O), parts=np.concatenate([X[None], added]))


def same_part_on_both_sides(X, W_Q, W_K, W_V, W_O):
    found = _score_parts(X, (W_Q, W_K, W_V, W_O))
    same = np.eye(len(found)).reshape(*found.shape[:2], *[1] * (found.ndim - 2))
    return found * same


def hidden_pairs_are_0(X, W_Q, W_K, W_V, W_O):
    return _score_parts(X, (W_Q, W_K, W_V, W_O)) * causal_mask(X.shape[-2])


def weights_of_each_pair(X, W_Q, W_K, W_V, W_O):
    return softmax(_score_parts(X, (W_Q, W_K, W_V, W_O)))


def rows_are_keys(X, W_Q, W_K, W_V, W_O):
    return _swap(_score_parts(X, (W_Q, W_K, W_V, W_O)))


SCORES = (
    Mistake(
        "keys_come_first",
        "the first axis is the part of the key, the second that of the query",
        "Entry (i, j): part i of the query's row, part j of the key's row.",
        keys_come_first,
    ),
    Mistake(
        "not_divided",
        "the scores are not divided by √d_k",
        "Each of them is a part of the layer's score: divide each by √d_k.",
        not_divided,
    ),
    Mistake(
        "root_of_d_model",
        "the scores are divided by √d_model",
        "The layer divides by √d_k, the width of a query.",
        root_of_d_model,
    ),
    Mistake(
        "scored_by_the_first_layer",
        "queries and keys are computed by the first layer's matrices",
        "The scores are those of the second layer: W_Q[1] and W_K[1].",
        scored_by_the_first_layer,
    ),
    Mistake(
        "part_0_holds_all",
        "part 0 is all that comes in, what the first layer added too",
        "Part 0 is X itself; the parts add up to what comes in.",
        part_0_holds_all,
    ),
    Mistake(
        "part_0_comes_last",
        "X is the last part, not the first",
        "Part 0 is X, part g + 1 is head g.",
        part_0_comes_last,
    ),
    Mistake(
        "first_layer_looks_ahead",
        "the first layer's words look ahead",
        "It is causal: mask=causal_mask(T).",
        first_layer_looks_ahead,
    ),
    Mistake(
        "rows_dealt_out_in_turn",
        "the rows of W_O are dealt out by turns, not in blocks",
        "Head g has the d_v rows from g · d_v on.",
        rows_dealt_out_in_turn,
    ),
    Mistake(
        "split_evenly",
        "the first layer's output is split evenly among its heads",
        "Head g adds its own output times its own rows of W_O.",
        split_evenly,
    ),
    Mistake(
        "without_weights",
        "a head's part is computed from the row's own value, without the first layer's weights",
        "Head g adds weights @ values @ its rows of W_O.",
        without_weights,
    ),
    Mistake(
        "same_part_on_both_sides",
        "only pairs of a part with itself are there, the others are 0",
        "A query's part is multiplied by every part of the key: (H + 1)² pairs.",
        same_part_on_both_sides,
    ),
    Mistake(
        "hidden_pairs_are_0",
        "scores of later words are 0",
        "The scores are those before the mask: leave them.",
        hidden_pairs_are_0,
    ),
    Mistake(
        "weights_of_each_pair",
        "each pair of parts goes through a softmax of its own",
        "Return scores. A softmax of parts does not add up to one of the whole.",
        weights_of_each_pair,
    ),
    Mistake(
        "rows_are_keys",
        "the last two axes have changed places",
        "Queries are rows, keys are columns.",
        rows_are_keys,
    ),
)


def _matrices(rng, L, H, d, G=None):
    """Weights of L layers of H heads; `d` is d_model, d_k, d_v; G is the number of KV heads."""
    d_model, d_k, d_v = d
    G = G or H
    shapes = (H, d_model, d_k), (G, d_model, d_k), (G, d_model, d_v), (H * d_v, d_model)
    return [rng.standard_normal((L, *s)) * 1.6 / np.sqrt(s[-2]) for s in shapes]


def cases_of_scores(rng):
    """Sizes all differ: none, one and two batch axes."""

    def arrays(*batch, T=5, H=3, d=(12, 4, 7)):
        return rng.standard_normal((*batch, T, d[0])), *_matrices(rng, 2, H, d)

    return [
        Case("one sequence", arrays(), 1),
        Case("a batch, two heads", arrays(4, T=6, H=2, d=(10, 5, 3)), 1),
        Case("two batch axes", arrays(2, 3, T=7, H=4, d=(9, 3, 5)), 1),
    ]


def _norms(first, second):
    """‖A Bᵀ‖ of tall A, B that are given as `_short` of them."""
    return np.linalg.norm(first @ _swap(second), axis=(-2, -1))


def _short(W):
    """R of W = Q R: products of W with what follows have R's lengths."""
    return np.linalg.qr(W, mode="r")


def _shared_by_neighbours(W, H):
    return np.repeat(W, H // W.shape[1], axis=1)


def _dealt_to_heads(W, H):
    return np.concatenate([W] * (H // W.shape[1]), axis=1)


def _blocks(W_O, H):
    return W_O.reshape(len(W_O), H, -1, W_O.shape[-1])


def _factors(matrices, to_heads=_shared_by_neighbours, blocks=_blocks):
    """W_Q, W_K, W_V, each (2, H, d_model, d), and W_O (2, H, d_v, d_model)."""
    W_Q, W_K, W_V, W_O = matrices
    H = W_Q.shape[1]
    return W_Q, to_heads(W_K, H), to_heads(W_V, H), blocks(W_O, H)


def _kinds(Q, K, V, out, layer=1):
    """For queries, keys and values (B, C): what is read of a row is the product B Cᵀ."""
    return (Q[layer], K[layer]), (K[layer], Q[layer]), (V[layer], _swap(out[layer]))


def _composition(V, out, B, C, norms=_norms, whole=None):
    """‖V O B Cᵀ‖ over ‖V O‖ ‖B Cᵀ‖, (H, H): first heads are rows, second heads columns."""
    V, out, B, C = V[:, None], out[:, None], B[None], C[None]
    joint = norms(_short(V) @ (out @ B), _short(C))
    parts = norms(_short(V), _short(_swap(out))), norms(_short(B), _short(C))
    return joint / (parts[0] * parts[1] if whole is None else whole(*parts))


def _compositions(matrices, *, norms=_norms, whole=None, layer=1, **given):
    Q, K, V, out = _factors(matrices, **given)
    kinds = _kinds(Q, K, V, out, layer)
    return np.stack([_composition(V[0], out[0], B, C, norms, whole) for B, C in kinds])


def groups_in_turn(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O), to_heads=_dealt_to_heads)


def heads_rows_in_turn(W_Q, W_K, W_V, W_O):
    def blocks(W_O, H):
        return np.stack([W_O[:, h::H] for h in range(H)], axis=1)

    return _compositions((W_Q, W_K, W_V, W_O), blocks=blocks)


def second_layer_first(W_Q, W_K, W_V, W_O):
    Q, K, V, out = _factors((W_Q, W_K, W_V, W_O))
    kinds = [(B[:, None], C[:, None]) for B, C in _kinds(Q, K, V, out)]
    first = V[0][None], out[0][None]
    parts = _norms(_short(first[0]), _short(_swap(first[1])))
    found = []
    for B, C in kinds:
        joint = _norms(_short(B) @ (_swap(C) @ first[0]), _short(_swap(first[1])))
        found.append(_swap(joint / (parts * _norms(_short(B), _short(C)))))
    return np.stack(found)


def queries_and_keys_exchanged(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O))[[1, 0, 2]]


def keys_like_queries(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O))[[0, 0, 2]]


def second_heads_are_rows(W_Q, W_K, W_V, W_O):
    return _swap(_compositions((W_Q, W_K, W_V, W_O)))


def squared(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O)) ** 2


def not_divided_by_norms(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O), whole=lambda first, second: 1)


def first_norm_only(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O), whole=lambda first, second: first)


def sum_of_norms(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O), whole=lambda first, second: first + second)


def largest_stretch(W_Q, W_K, W_V, W_O):
    def norms(first, second):
        return np.linalg.norm(first @ _swap(second), 2, axis=(-2, -1))

    return _compositions((W_Q, W_K, W_V, W_O), norms=norms)


def one_layer_only(W_Q, W_K, W_V, W_O):
    return _compositions((W_Q, W_K, W_V, W_O), layer=0)


def reads_by_one_matrix(W_Q, W_K, W_V, W_O):
    Q, K, V, out = _factors((W_Q, W_K, W_V, W_O))
    own = np.broadcast_to(np.eye(Q.shape[-1]), (Q.shape[1], *[Q.shape[-1]] * 2))
    of_values = np.broadcast_to(np.eye(V.shape[-1]), (V.shape[1], *[V.shape[-1]] * 2))
    kinds = (Q[1], own), (K[1], own), (V[1], of_values)
    return np.stack([_composition(V[0], out[0], B, C) for B, C in kinds])


COMPOSITIONS = (
    Mistake(
        "groups_in_turn",
        "head h uses keys and values of group h % G: the heads of a group are not neighbours",
        "Head h uses group h // (H/G), which is the order of np.repeat.",
        groups_in_turn,
    ),
    Mistake(
        "heads_rows_in_turn",
        "the rows of W_O are dealt out by turns, not in blocks",
        "Head h has the d_v rows from h · d_v on.",
        heads_rows_in_turn,
    ),
    Mistake(
        "second_layer_first",
        "a row goes through the second head first",
        "Rows are multiplied from the right: W_OV of the first head, then what the second reads.",
        second_layer_first,
    ),
    Mistake(
        "queries_and_keys_exchanged",
        "what goes through the keys is where the queries belong, and the other way round",
        "For the queries W_OV is followed by W_Q W_Kᵀ, for the keys by W_K W_Qᵀ.",
        queries_and_keys_exchanged,
    ),
    Mistake(
        "keys_like_queries",
        "the keys have the values of the queries",
        "There the first head's output is on the side of the keys: W_OV, then W_K W_Qᵀ.",
        keys_like_queries,
    ),
    Mistake(
        "second_heads_are_rows",
        "heads of the second layer are rows, those of the first columns",
        "Entry (kind, g, h): head g of the first layer, head h of the second.",
        second_heads_are_rows,
    ),
    Mistake(
        "squared",
        "the scores are squares: a root is missing",
        "A norm is the root of the sum of squares.",
        squared,
    ),
    Mistake(
        "not_divided_by_norms",
        "the norm of the product is not divided by anything",
        "Divide by ‖A‖ ‖B‖.",
        not_divided_by_norms,
    ),
    Mistake(
        "first_norm_only",
        "the norm of the product is divided only by ‖A‖",
        "Divide by ‖A‖ ‖B‖.",
        first_norm_only,
    ),
    Mistake(
        "sum_of_norms",
        "the norm of the product is divided by ‖A‖ + ‖B‖",
        "Divide by the product of the two norms.",
        sum_of_norms,
    ),
    Mistake(
        "largest_stretch",
        "the norms are the largest singular values",
        "‖A‖ is the root of the sum of all squares: np.linalg.norm with no second argument.",
        largest_stretch,
    ),
    Mistake(
        "one_layer_only",
        "both heads are of the first layer",
        "The heads that read are of the second: W_Q[1], W_K[1], W_V[1] and W_O[1].",
        one_layer_only,
    ),
    Mistake(
        "reads_by_one_matrix",
        "the second head reads only by W_Q, W_K or W_V",
        "Take the whole circuit: W_Q W_Kᵀ, W_K W_Qᵀ, and W_V with the head's rows of W_O.",
        reads_by_one_matrix,
    ),
)


def cases_of_compositions(rng):
    """The wide model's matrices of (d_model, d_model) take too long, pair by pair."""

    def arrays(H, G, d):
        return tuple(_matrices(rng, 2, H, d, G))

    return [
        Case("four heads, two groups", arrays(4, 2, (12, 3, 5)), 1),
        Case("six heads, three groups", arrays(6, 3, (20, 5, 4)), 1),
        Case("a wide model of many heads", arrays(32, 8, (1536, 20, 24)), 2),
    ]


def _lengths(X, matrices, *, rows=_in_blocks, causal=True, step=None):
    """What comes through no head, one, two, …; `step` makes the next list of them."""
    found, step = [X], step or _through
    for params in _layers(matrices):
        record = _record(sum(found), params, causal=causal)
        found = step(found, lambda part, r=record: _mixed(part, r, rows))
    return np.stack(found)


def _mixed(part, record, rows=_in_blocks):
    """What a layer computes from a part of its input with the weights that it has."""
    V = part[..., None, :, :] @ record.params.W_V
    return _added(record, rows, record.weights @ V).sum(axis=0)


def _through(found, mixed):
    longer = [mixed(part) for part in found]
    own = [*found, np.zeros_like(found[0])]
    return [own[0], *(a + b for a, b in zip(own[1:], longer, strict=True))]


def own_weights_for_each_part(X, W_Q, W_K, W_V, W_O):
    found = [X]
    for params in _layers((W_Q, W_K, W_V, W_O)):
        found = _through(found, lambda part, p=params: _record(part, p).Y)
    return np.stack(found)


def weights_of_the_first_rows(X, W_Q, W_K, W_V, W_O):
    found = [X]
    for params in _layers((W_Q, W_K, W_V, W_O)):
        record = _record(X, params)
        found = _through(found, lambda part, r=record: _mixed(part, r))
    return np.stack(found)


def by_the_last_layer(X, W_Q, W_K, W_V, W_O):
    found = [X]
    for params in _layers((W_Q, W_K, W_V, W_O)):
        found.append(_record(sum(found), params).Y)
    return np.stack(found)


def that_length_or_less(X, W_Q, W_K, W_V, W_O):
    return np.cumsum(_lengths(X, (W_Q, W_K, W_V, W_O)), axis=0)


def a_layer_used_again(X, W_Q, W_K, W_V, W_O):
    def step(found, mixed):
        found = [*found, np.zeros_like(found[0])]
        for n in range(1, len(found)):
            found[n] = found[n] + mixed(found[n - 1])
        return found

    return _with_right_weights(X, (W_Q, W_K, W_V, W_O), step)


def no_way_round_a_layer(X, W_Q, W_K, W_V, W_O):
    def step(found, mixed):
        return [*found, mixed(found[-1])]

    return _with_right_weights(X, (W_Q, W_K, W_V, W_O), step)


def _with_right_weights(X, matrices, step):
    """Weights are those of the run; what becomes of the parts is up to `step`."""
    rows, found = X, [X]
    for params in _layers(matrices):
        record = _record(rows, params)
        found = step(found, lambda part, r=record: _mixed(part, r))
        rows = rows + record.Y
    return np.stack(found)


def mean_of_a_length(X, W_Q, W_K, W_V, W_O):
    found = _lengths(X, (W_Q, W_K, W_V, W_O))
    paths = np.ones(1)
    for _ in range(len(W_Q)):
        paths = np.append(paths, 0) + W_Q.shape[1] * np.append(0, paths)
    return found / paths.reshape(-1, *[1] * X.ndim)


def looks_ahead(X, W_Q, W_K, W_V, W_O):
    return _lengths(X, (W_Q, W_K, W_V, W_O), causal=False)


def own_rows_only(X, W_Q, W_K, W_V, W_O):
    def step(found, params):
        return _through(found, lambda part: _added_at_home(part, params))

    found = [X]
    for params in _layers((W_Q, W_K, W_V, W_O)):
        found = step(found, params)
    return np.stack(found)


def _added_at_home(part, params):
    """What the heads add to each row where all weight is on the row itself."""
    return concat_heads(part[..., None, :, :] @ params.W_V) @ params.W_O


def longest_first(X, W_Q, W_K, W_V, W_O):
    return _lengths(X, (W_Q, W_K, W_V, W_O))[::-1]


def last_layer_first(X, W_Q, W_K, W_V, W_O):
    return _lengths(X, [W[::-1] for W in (W_Q, W_K, W_V, W_O)])


def rows_in_turn_of_each_head(X, W_Q, W_K, W_V, W_O):
    return _lengths(X, (W_Q, W_K, W_V, W_O), rows=_in_turn)


def heads_in_a_row(X, W_Q, W_K, W_V, W_O):
    def through(found, record):
        for W_V, W_O, weights in zip(
            record.params.W_V,
            _in_blocks(record.params),
            np.moveaxis(record.weights, -3, 0),
            strict=True,
        ):
            found = _through(found, lambda part, w=weights, A=W_V, B=W_O: w @ part @ A @ B)
        return found

    rows, found = X, [X]
    L = len(W_Q)
    for params in _layers((W_Q, W_K, W_V, W_O)):
        record = _record(rows, params)
        found = through(found, record)
        rows = rows + record.Y
    return np.stack(found)[: L + 1]


LENGTHS = (
    Mistake(
        "own_weights_for_each_part",
        "each part gets weights of its own, as if it were the whole input",
        "A layer has one set of weights, from all that comes in: hold them fixed for every part.",
        own_weights_for_each_part,
    ),
    Mistake(
        "weights_of_the_first_rows",
        "every layer's weights are computed from X, without what earlier layers add",
        "A layer's weights come from the sum of all parts.",
        weights_of_the_first_rows,
    ),
    Mistake(
        "by_the_last_layer",
        "entry n is what layer n adds, whatever its paths went through before",
        "A layer adds paths of many lengths: sort what it adds by the number of heads.",
        by_the_last_layer,
    ),
    Mistake(
        "that_length_or_less",
        "an entry holds the shorter paths, too",
        "Entry n is what comes through exactly n heads.",
        that_length_or_less,
    ),
    Mistake(
        "a_layer_used_again",
        "a path goes through the same layer several times",
        "Compute all new entries from those before the layer, not from those just changed.",
        a_layer_used_again,
    ),
    Mistake(
        "no_way_round_a_layer",
        "entry n has only the paths that go through each of the first n layers",
        "A path may go past a layer: leave the parts, and add the mixed ones.",
        no_way_round_a_layer,
    ),
    Mistake(
        "mean_of_a_length",
        "an entry is the mean of its paths, not their sum",
        "All entries add up to the rows after the last layer.",
        mean_of_a_length,
    ),
    Mistake(
        "looks_ahead",
        "words look ahead",
        "All layers are causal: mask=causal_mask(T).",
        looks_ahead,
    ),
    Mistake(
        "own_rows_only",
        "each row takes only from itself: the weights are left out",
        "Mix the values of a part by the head's weights.",
        own_rows_only,
    ),
    Mistake(
        "longest_first",
        "the longest paths come first",
        "Entry 0 is X, which went through no head.",
        longest_first,
    ),
    Mistake(
        "last_layer_first",
        "the layers are gone through from the last to the first",
        "W_Q[0] and its like are of the layer that reads X.",
        last_layer_first,
    ),
    Mistake(
        "rows_in_turn_of_each_head",
        "the rows of W_O are dealt out by turns, not in blocks",
        "Head h has the d_v rows from h · d_v on; or use concat_heads.",
        rows_in_turn_of_each_head,
    ),
    Mistake(
        "heads_in_a_row",
        "a path goes through several heads of one layer",
        "Heads of a layer are parallel: of each layer a path takes one head, or none.",
        heads_in_a_row,
    ),
)


def cases_of_lengths(rng):
    """Ten layers of six heads have 7 to the power of 10 paths."""

    def arrays(*batch, T=5, L=2, H=3, d=(12, 4, 7)):
        *inner, W_O = _matrices(rng, L, H, d)
        return rng.standard_normal((*batch, T, d[0])), *inner, W_O / H

    return [
        Case("two layers", arrays(), 1),
        Case("three layers, a batch", arrays(2, T=6, L=3, H=2, d=(10, 5, 3)), 1),
        Case("ten layers of six heads", arrays(T=9, L=10, H=6, d=(24, 4, 3)), 1),
    ]


ASSIGNMENT = Assignment(
    (
        Task("score_parts", cases_of_scores, SCORES),
        Task("compositions", cases_of_compositions, COMPOSITIONS),
        Task("by_length", cases_of_lengths, LENGTHS),
    )
)

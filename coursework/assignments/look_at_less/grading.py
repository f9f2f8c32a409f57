"""Fewer pairs: how many layers a stack needs, blocks that are chosen, an endless sequence."""

import numpy as np

from coursework.grader.assignment import Assignment, Case, Mistake, Task
from tutorial_lib import causal_mask, scaled_dot_product_attention, softmax
from tutorial_lib.variants.positions import rotate


def _reached(masks, step):
    """Yield what has reached each row after each layer; `step` is of (mask, reached before)."""
    reached = np.eye(masks.shape[-1], dtype=bool)
    for mask in masks:
        reached = step(mask, reached)
        yield reached


def _moved(mask, reached):
    """One layer: a row takes up what those it sees have, and keeps its own."""
    return reached | (mask.astype(int) @ reached > 0)


def _first(states, own=0, never=-1):
    """The number of the first layer after which each pair is reached."""
    states = np.array(list(states))
    needed = np.where(states.any(axis=0), states.argmax(axis=0) + 1, never)
    np.fill_diagonal(needed, own)
    return needed


def _layers(masks):
    return _first(_reached(masks, _moved))


def multiplied_from_the_right(masks):
    return _first(_reached(masks, lambda mask, r: r | (r.astype(int) @ mask > 0)))


def last_layer_first(masks):
    return _layers(masks[::-1])


def own_row_lost(masks):
    return _first(_reached(masks, lambda mask, reached: mask.astype(int) @ reached > 0))


def one_too_few(masks):
    needed = _layers(masks)
    return np.where(needed > 0, needed - 1, needed)


def first_mask_throughout(masks):
    return _layers(np.stack([masks[0]] * len(masks)))


def no_chain(masks):
    return _first(_reached(masks, lambda mask, reached: reached | mask))


def rows_and_columns(masks):
    return _layers(masks).T


def never_is_0(masks):
    return _first(_reached(masks, _moved), never=0)


def never_is_one_more(masks):
    return _first(_reached(masks, _moved), never=len(masks) + 1)


def own_after_one(masks):
    return _first(_reached(masks, _moved), own=1)


def last_layer_counts(masks):
    needed = _layers(masks)
    return np.where(needed > 0, len(masks), needed)


def read_while_written(masks):
    def step(mask, reached):
        reached = reached.copy()
        for t, row in enumerate(mask):
            reached[t] |= reached[row].any(axis=0)
        return reached

    return _first(_reached(masks, step))


LAYERS = (
    Mistake(
        "multiplied_from_the_right",
        "what was reached is multiplied by the next mask from the wrong side",
        "Row t of the next layer takes up the rows that its mask shows: mask @ reached.",
        multiplied_from_the_right,
    ),
    Mistake(
        "last_layer_first",
        "the layers are gone through from the last to the first",
        "masks[0] is the first layer, which reads the tokens themselves.",
        last_layer_first,
    ),
    Mistake(
        "own_row_lost",
        "a row loses what it had, where its mask does not show the row itself",
        "A layer's output is added to its input: what a row has it keeps.",
        own_row_lost,
    ),
    Mistake(
        "one_too_few",
        "the layers are counted from 0",
        "What the first layer's mask shows needs 1 layer.",
        one_too_few,
    ),
    Mistake(
        "first_mask_throughout",
        "every layer has the mask of the first",
        "Layer n has masks[n].",
        first_mask_throughout,
    ),
    Mistake(
        "no_chain",
        "only a mask that shows the token itself counts, and none that shows a row which has it",
        "A row takes up all that the rows it sees have taken up: mask @ reached.",
        no_chain,
    ),
    Mistake(
        "rows_and_columns",
        "rows and columns have changed places",
        "Entry (t, s) is about row t, which depends on token s.",
        rows_and_columns,
    ),
    Mistake(
        "never_is_0",
        "a token that never gets there has 0, like the token of the row itself",
        "Write -1 where no layer reaches it.",
        never_is_0,
    ),
    Mistake(
        "never_is_one_more",
        "a token that never gets there has one layer more than there are",
        "Write -1 where no layer reaches it.",
        never_is_one_more,
    ),
    Mistake(
        "own_after_one",
        "the token of the row itself needs a layer",
        "It is in its row before any layer: 0.",
        own_after_one,
    ),
    Mistake(
        "last_layer_counts",
        "a pair that is reached has the number of the last layer, not of the first that does it",
        "Write a number once: where there is none yet.",
        last_layer_counts,
    ),
    Mistake(
        "read_while_written",
        "a layer's rows are changed one after another, and later ones read the changed",
        "All rows of a layer read the layer below: keep the old rows until it is done.",
        read_while_written,
    ),
)


def cases_of_layers(rng):
    """Random masks, with and without the row itself, causal or not."""

    def masks(L, T, density):
        return rng.random((L, T, T)) < density

    causal = masks(3, 7, 0.2) & causal_mask(7)
    return [
        Case("three causal layers", (causal,), 1),
        Case("four layers, both ways", (masks(4, 9, 0.12),), 1),
        Case("a deep stack of sparse layers", (masks(6, 12, 0.05),), 1),
    ]


def _own(Q, K, size):
    """The block of each query, (T, 1)."""
    return np.arange(K.shape[-2] - Q.shape[-2], K.shape[-2])[:, None] // size


def _blocks(array, size):
    """Cut rows, (..., S, d), into blocks; a list, whose last may be shorter."""
    return [array[..., s : s + size, :] for s in range(0, array.shape[-2], size)]


def _scores(Q, K, size, key=lambda block: block.mean(axis=-2)):
    """The score of each query with one row for each block, (..., H, T, n)."""
    return Q @ np.stack([key(block) for block in _blocks(K, size)], axis=-1)


def _best(scores, k, allowed):
    """Say which k blocks score best, of those that are allowed."""
    scores = np.where(allowed, scores, -np.inf)
    ranks = np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1)
    return (ranks < k) & allowed


def _within(chosen, size, S):
    return np.repeat(chosen, size, axis=-1)[..., :S]


def _attended(Q, K, V, size, k, *, own=None, scores=None):
    """Attend to blocks; `own` holds other blocks of the queries, `scores` other scores."""
    own = _own(Q, K, size) if own is None else own
    scores = _scores(Q, K, size) if scores is None else scores
    blocks = np.arange(scores.shape[-1])
    chosen = _best(scores, k, blocks < own) | (blocks == own)
    return _seeing(Q, K, V, _within(chosen, size, K.shape[-2]))


def _seeing(Q, K, V, seen):
    mask = seen & causal_mask(Q.shape[-2], K.shape[-2])
    return scaled_dot_product_attention(Q, K, V, mask=mask)


def own_block_whole(Q, K, V, size, k):
    scores, own = _scores(Q, K, size), _own(Q, K, size)
    blocks = np.arange(scores.shape[-1])
    seen = _within(_best(scores, k, blocks < own) | (blocks == own), size, K.shape[-2])
    return scaled_dot_product_attention(Q, K, V, mask=seen)


def own_block_is_one_of_k(Q, K, V, size, k):
    return _attended(Q, K, V, size, k - 1)


def own_block_must_win(Q, K, V, size, k):
    scores = _scores(Q, K, size)
    chosen = _best(scores, k, np.arange(scores.shape[-1]) <= _own(Q, K, size))
    return _seeing(Q, K, V, _within(chosen, size, K.shape[-2]))


def own_block_left_out(Q, K, V, size, k):
    scores = _scores(Q, K, size)
    chosen = _best(scores, k, np.arange(scores.shape[-1]) < _own(Q, K, size))
    return _seeing(Q, K, V, _within(chosen, size, K.shape[-2]))


def later_blocks_chosen(Q, K, V, size, k):
    scores = _scores(Q, K, size)
    blocks = np.arange(scores.shape[-1])
    chosen = _best(scores, k, blocks >= 0) | (blocks == _own(Q, K, size))
    return _seeing(Q, K, V, _within(chosen, size, K.shape[-2]))


def worst_blocks(Q, K, V, size, k):
    return _attended(Q, K, V, size, k, scores=-_scores(Q, K, size))


def nearest_blocks(Q, K, V, size, k):
    scores = _scores(Q, K, size)
    return _attended(Q, K, V, size, k, scores=0 * scores + np.arange(scores.shape[-1]))


def first_key_of_a_block(Q, K, V, size, k):
    scores = _scores(Q, K, size, lambda block: block[..., 0, :])
    return _attended(Q, K, V, size, k, scores=scores)


def best_key_of_a_block(Q, K, V, size, k):
    best = [(Q @ np.swapaxes(block, -1, -2)).max(axis=-1) for block in _blocks(K, size)]
    return _attended(Q, K, V, size, k, scores=np.stack(best, axis=-1))


def length_of_the_mean(Q, K, V, size, k):
    return _attended(Q, K, V, size, k, scores=np.abs(_scores(Q, K, size)))


def one_choice_for_all_heads(Q, K, V, size, k):
    scores = _scores(Q, K, size).sum(axis=-3, keepdims=True)
    return _attended(Q, K, V, size, k, scores=scores)


def one_choice_for_all_queries(Q, K, V, size, k):
    scores = _scores(Q, K, size)
    return _attended(Q, K, V, size, k, scores=0 * scores + scores.sum(axis=-2, keepdims=True))


def queries_counted_from_0(Q, K, V, size, k):
    return _attended(Q, K, V, size, k, own=np.arange(Q.shape[-2])[:, None] // size)


def blocks_counted_from_the_end(Q, K, V, size, k):
    extra = -K.shape[-2] % size
    K, V = (np.pad(A, [(0, 0)] * (A.ndim - 2) + [(extra, 0), (0, 0)]) for A in (K, V))
    scores, own = _scores(Q, K, size), _own(Q, K, size)
    blocks = np.arange(scores.shape[-1])
    chosen = _within(_best(scores, k, blocks < own) | (blocks == own), size, K.shape[-2])
    return _seeing(Q, K, V, chosen & (np.arange(K.shape[-2]) >= extra))


def keys_chosen(Q, K, V, size, k):
    positions = np.arange(K.shape[-2])
    own = _own(Q, K, size) * size
    chosen = _best(Q @ np.swapaxes(K, -1, -2), k, positions < own)
    return _seeing(Q, K, V, chosen | (positions >= own))


def softmax_for_each_block(Q, K, V, size, k):
    scores, own = _scores(Q, K, size), _own(Q, K, size)
    blocks = np.arange(scores.shape[-1])
    chosen = _best(scores, k, blocks < own) | (blocks == own)
    pairs = np.arange(K.shape[-2]) // size
    parts = [_seeing(Q, K, V, chosen[..., [b]] & (pairs == b)) for b in blocks]
    weights = np.moveaxis(chosen / chosen.sum(axis=-1, keepdims=True), -1, 0)[..., None]
    return (weights * np.array(parts)).sum(axis=0)


def hidden_after_the_softmax(Q, K, V, size, k):
    scores, own = _scores(Q, K, size), _own(Q, K, size)
    blocks = np.arange(scores.shape[-1])
    seen = _within(_best(scores, k, blocks < own) | (blocks == own), size, K.shape[-2])
    seen = seen & causal_mask(Q.shape[-2], K.shape[-2])
    return (softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])) * seen) @ V


BLOCKS = (
    Mistake(
        "own_block_whole",
        "a query sees the tokens of its own block that come after it",
        "Combine the chosen blocks with causal_mask(T, S).",
        own_block_whole,
    ),
    Mistake(
        "own_block_is_one_of_k",
        "the query's own block is one of the k, so that one block too few is chosen",
        "k counts earlier blocks. The own one comes on top.",
        own_block_is_one_of_k,
    ),
    Mistake(
        "own_block_must_win",
        "the query's own block is seen only where its mean scores well enough",
        "The own block is always seen; k blocks are chosen among those before it.",
        own_block_must_win,
    ),
    Mistake(
        "own_block_left_out",
        "the query's own block is not seen",
        "Add the own block to the chosen ones: a query always sees itself.",
        own_block_left_out,
    ),
    Mistake(
        "later_blocks_chosen",
        "blocks after the query's own are chosen, and then hidden: fewer than k are left",
        "Put -inf in place of the scores of blocks that are not earlier, before you choose.",
        later_blocks_chosen,
    ),
    Mistake(
        "worst_blocks",
        "the blocks with the smallest scores are chosen",
        "np.argsort begins with the smallest: sort -scores.",
        worst_blocks,
    ),
    Mistake(
        "nearest_blocks",
        "the k blocks before the query's own are chosen, whatever their scores: a window",
        "Rank the earlier blocks by the product of query and mean key.",
        nearest_blocks,
    ),
    Mistake(
        "first_key_of_a_block",
        "a block is judged only by its first key",
        "Take the mean of all its keys.",
        first_key_of_a_block,
    ),
    Mistake(
        "best_key_of_a_block",
        "a block is judged by its best key",
        "Take the mean of its keys first, then one product with the query.",
        best_key_of_a_block,
    ),
    Mistake(
        "length_of_the_mean",
        "a block counts by the size of its score, with the sign left out",
        "A score far below 0 is a bad one.",
        length_of_the_mean,
    ),
    Mistake(
        "one_choice_for_all_heads",
        "all heads take the same blocks",
        "Each head has queries and keys of its own, and chooses by them.",
        one_choice_for_all_heads,
    ),
    Mistake(
        "one_choice_for_all_queries",
        "all queries rank the blocks in the same order",
        "Each query chooses by its own scores.",
        one_choice_for_all_queries,
    ),
    Mistake(
        "queries_counted_from_0",
        "query i is taken for token i, though it is one of the last T of S tokens",
        "Query i is token S - T + i; its block is that number over size.",
        queries_counted_from_0,
    ),
    Mistake(
        "blocks_counted_from_the_end",
        "the blocks are cut from the end, so that the first is the short one",
        "Blocks begin at token 0; the last may be shorter.",
        blocks_counted_from_the_end,
    ),
    Mistake(
        "keys_chosen",
        "k earlier tokens are chosen, not k blocks",
        "Rank the blocks, and let a chosen block bring all its tokens.",
        keys_chosen,
    ),
    Mistake(
        "softmax_for_each_block",
        "each block has a softmax of its own, and the results are averaged",
        "One softmax over all tokens that are seen.",
        softmax_for_each_block,
    ),
    Mistake(
        "hidden_after_the_softmax",
        "tokens that are not seen get the weight 0 after the softmax: rows sum to less than 1",
        "Hide them before it: scaled_dot_product_attention(Q, K, V, mask=seen).",
        hidden_after_the_softmax,
    ),
)


def cases_of_blocks(rng):
    """Sizes all differ; in three cases the last block is not full."""

    def arrays(*batch, H=3, T=5, S=14, d_k=6, d_v=7, size=4, k=1):
        shapes = (H, T, d_k), (H, S, d_k), (H, S, d_v)
        return *(2 * rng.standard_normal((*batch, *shape)) for shape in shapes), size, k

    new = {"H": 5, "T": 1, "S": 17, "d_k": 4, "d_v": 6, "size": 3, "k": 2}
    whole = {"H": 4, "T": 15, "S": 15, "d_k": 5, "d_v": 8, "size": 3, "k": 2}
    return [
        Case("the last 5 of 14 tokens", arrays(), 1),
        Case("as many queries as tokens, a batch", arrays(2, **whole), 1),
        Case("one new token, two batch axes", arrays(3, 2, **new), 1),
        Case("blocks of two", arrays(H=2, T=9, S=13, size=2, k=3), 1),
    ]


def _kept(t, first, last):
    """The tokens that the query of token t sees."""
    return np.array([s for s in range(t + 1) if s < first or s > t - last])


def _positions(kept, t):
    return np.arange(len(kept)), len(kept) - 1


def _streamed(Q, K, V, rates, first, last, *, kept=_kept, positions=_positions, shift=None):
    """Attend query by query; `kept` and `positions` may be wrong, `shift` the first query's token.

    `positions` is of (kept, t): those of the keys, and that of the query.
    """
    shift, rows = K.shape[-2] - Q.shape[-2] if shift is None else shift, []
    for i in range(Q.shape[-2]):
        seen = kept(i + shift, first, last)
        of_keys, of_query = positions(seen, i + shift)
        q = rotate(Q[..., i : i + 1, :], np.array([of_query]), rates)
        k = rotate(K[..., seen, :], of_keys, rates)
        rows.append(scaled_dot_product_attention(q, k, V[..., seen, :]))
    return np.concatenate(rows, axis=-2)


def positions_of_the_text(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, last, positions=lambda kept, t: (kept, t))


def query_at_its_position_in_the_text(Q, K, V, rates, first, last):
    return _streamed(
        Q, K, V, rates, first, last, positions=lambda kept, t: (_positions(kept, t)[0], t)
    )


def query_behind_the_kept(Q, K, V, rates, first, last):
    def positions(kept, t):
        return np.arange(len(kept)), len(kept)

    return _streamed(Q, K, V, rates, first, last, positions=positions)


def query_not_rotated(Q, K, V, rates, first, last):
    def positions(kept, t):
        return np.arange(len(kept)), 0

    return _streamed(Q, K, V, rates, first, last, positions=positions)


def numbered_from_0_again(Q, K, V, rates, first, last):
    """Number the first tokens, and then the last ones, each from 0."""
    rows = []
    for i, t in enumerate(range(K.shape[-2] - Q.shape[-2], K.shape[-2])):
        kept = _kept(t, first, last)
        n = min(first, t + 1)
        q, k = Q[..., i : i + 1, :], K[..., kept, :]
        newest = np.arange(len(kept) - n)
        front = rotate(k[..., :n, :], np.arange(n), rates)
        behind = rotate(k[..., n:, :], newest, rates) if len(newest) else k[..., n:, :]
        q = rotate(q, newest[-1:] if len(newest) else np.array([n - 1]), rates)
        k = np.concatenate([front, behind], axis=-2)
        rows.append(scaled_dot_product_attention(q, k, V[..., kept, :]))
    return np.concatenate(rows, axis=-2)


def so_many_in_all(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, last - first)


def one_too_many(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, last + 1)


def one_too_few_kept(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, last - 1)


def kept_twice(Q, K, V, rates, first, last):
    def kept(t, first, last):
        newest = np.arange(max(0, t + 1 - last), t + 1)
        return np.concatenate([np.arange(min(first, t + 1)), newest])

    return _streamed(Q, K, V, rates, first, last, kept=kept)


def first_forgotten(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, 0, last)


def all_kept(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, K.shape[-2])


def queries_from_0(Q, K, V, rates, first, last):
    return _streamed(Q, K, V, rates, first, last, shift=0)


def values_rotated(Q, K, V, rates, first, last):
    rows = []
    for i, t in enumerate(range(K.shape[-2] - Q.shape[-2], K.shape[-2])):
        kept = _kept(t, first, last)
        positions = np.arange(len(kept))
        q = rotate(Q[..., i : i + 1, :], positions[-1:], rates)
        k, v = (rotate(A[..., kept, :], positions, rates) for A in (K, V))
        rows.append(scaled_dot_product_attention(q, k, v))
    return np.concatenate(rows, axis=-2)


def rotated_again_when_moved(Q, K, V, rates, first, last):
    """Cache keys that were rotated by their positions in the sequence, and rotate them again."""
    rotated = rotate(K, np.arange(K.shape[-2]), rates)
    return _streamed(Q, rotated, V, rates, first, last)


STREAM = (
    Mistake(
        "positions_of_the_text",
        "tokens have their positions in the sequence, with a gap where some were evicted",
        "Give the cached tokens new positions, from 0, for each query.",
        positions_of_the_text,
    ),
    Mistake(
        "query_at_its_position_in_the_text",
        "the keys have new positions, and the query has its position in the sequence",
        "The query has the position of its own key, the last of the new positions.",
        query_at_its_position_in_the_text,
    ),
    Mistake(
        "query_behind_the_kept",
        "the position of the query is one more than that of its own key",
        "The query's token is the last of those in the cache: len(kept) - 1.",
        query_behind_the_kept,
    ),
    Mistake(
        "query_not_rotated",
        "the query is not rotated",
        "Rotate it by the position of its own key.",
        query_not_rotated,
    ),
    Mistake(
        "numbered_from_0_again",
        "the positions of the last tokens begin at 0 again, like those of the first",
        "Count through all that is cached: the last tokens go on where the first end.",
        numbered_from_0_again,
    ),
    Mistake(
        "so_many_in_all",
        "the first tokens count as part of the last ones: too few are cached",
        "Cache the first `first` tokens, and in addition the last `last`.",
        so_many_in_all,
    ),
    Mistake(
        "one_too_many",
        "one token too many is cached: the query's own is not counted among the last",
        "The last `last` tokens end with the query's own: s > t - last.",
        one_too_many,
    ),
    Mistake(
        "one_too_few_kept",
        "one of the last tokens is missing",
        "The last `last` tokens end with the query's own: s > t - last.",
        one_too_few_kept,
    ),
    Mistake(
        "kept_twice",
        "near the beginning a token that is among the first and the last is cached twice",
        "Cache a token once: s < first or s > t - last.",
        kept_twice,
    ),
    Mistake(
        "first_forgotten",
        "the first tokens are not cached",
        "Cache s < first, however old they are.",
        first_forgotten,
    ),
    Mistake(
        "all_kept",
        "no token is evicted",
        "A query sees only the first `first` tokens and the last `last`.",
        all_kept,
    ),
    Mistake(
        "queries_from_0",
        "query i is taken for token i, though it is one of the last T of S tokens",
        "Query i is token S - T + i.",
        queries_from_0,
    ),
    Mistake(
        "values_rotated",
        "the values are rotated too",
        "Positions belong in the scores: rotate only queries and keys.",
        values_rotated,
    ),
    Mistake(
        "rotated_again_when_moved",
        "keys that were rotated by their positions in the sequence are rotated again",
        "Rotate the keys as they came, only by their new positions.",
        rotated_again_when_moved,
    ),
)


def cases_of_streams(rng):
    """In one case some entries are not rotated; in one, early queries still see all tokens."""

    def arrays(*batch, H=3, T=5, S=12, d=(6, 8), pairs=3, first=2, last=4):
        shapes = (H, T, d[0]), (H, S, d[0]), (H, S, d[1])
        rates = rng.uniform(0.2, 1.2, size=pairs)
        given = (1.5 * rng.standard_normal((*batch, *shape)) for shape in shapes)
        return *given, rates, first, last

    new = {"H": 4, "T": 1, "S": 15, "d": (8, 10), "pairs": 2, "first": 3, "last": 5}
    return [
        Case("the last 5 of 12 tokens", arrays(), 1),
        Case("from the first token on", arrays(2, T=11, S=11, d=(4, 6), pairs=2), 1),
        Case("one new token, a part of each head rotated", arrays(2, 3, **new), 1),
    ]


ASSIGNMENT = Assignment(
    (
        Task("layers_needed", cases_of_layers, LAYERS),
        Task("attend_to_blocks", cases_of_blocks, BLOCKS),
        Task("attend_to_kept", cases_of_streams, STREAM),
    )
)

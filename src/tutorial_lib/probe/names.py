"""The mistakes that the probe can name: what each means, and how it is told from its like.

A name is given only where two witnesses agree: what was seen first, and one prediction that this
mistake makes and its like do not. With the first alone, a report lists it as what would show this,
too.
"""

from typing import NamedTuple


class Name(NamedTuple):
    """A mistake.

    Parameters
    ----------
    meaning : what is wrong, as the end of "the mistake is that …"
    section : where the book explains it
    witness : the second witness: what only this mistake predicts
    """

    meaning: str
    section: str
    witness: str


NAMES = {
    "no_mask": Name(
        "nothing hides the later tokens",
        "chapter 03, Round 3",
        "all weights are those of a softmax over all keys; of hidden states without positions, "
        "the reversed text has the reversed outputs",
    ),
    "mask_after_softmax": Name(
        "weights are set to 0 after the softmax, so the rest no longer sums to 1",
        "chapter 03, Round 3",
        "the weights that are left equal those of a softmax over all keys",
    ),
    "softmax_over_queries": Name(
        "the softmax runs over the queries and not over the keys",
        "chapter 03, Round 2",
        "the weights of a column sum to 1, those of a row do not",
    ),
    "softmax_over_heads": Name(
        "the softmax runs over the heads",
        "chapter 03, Round 2",
        "the weights of a pair of tokens sum to 1 over the heads",
    ),
    "weights_transposed": Name(
        "the matrix of weights is used transposed",
        "chapter 03, Round 4",
        "columns sum to 1, and another query changes its own column and no other entry",
    ),
    "hidden_score_zero": Name(
        "hidden scores become about 0 in place of −∞",
        "chapter 10, Round 2",
        "hidden keys have equal weights; at large scores a row sees all of them or none",
    ),
    "mask_added_as_number": Name(
        "the mask is added to the scores as 0 and 1",
        "chapter 10, Round 1",
        "no key is hidden, and allowed ones have e times the weight",
    ),
    "mask_polarity": Name(
        "True and False of the mask are exchanged",
        "chapter 10, Round 1",
        "with the opposite mask everything is as it should be",
    ),
    "mask_transposed": Name(
        "the mask is transposed: tokens see the later ones",
        "chapter 03, Round 3",
        "the table is the transposed one at another length, too",
    ),
    "mask_one_ahead": Name(
        "the diagonal of the mask is off by one: a token sees the next one",
        "chapter 03, Round 3",
        "the next token, and no later one, is seen at another length, too",
    ),
    "mask_without_itself": Name(
        "a token does not see itself",
        "chapter 03, Round 3",
        "a query gives its own key no weight",
    ),
    "mask_first_corner": Name(
        "with fewer queries than keys, the causal mask is aligned to the first corner",
        "chapter 10, Round 3",
        "query i of the piece sees the keys 0 to i and no other",
    ),
    "mask_dropped_in_pieces": Name(
        "the tokens of one piece see each other in both directions",
        "chapter 14, Round 2",
        "later tokens are seen within the piece, and none is seen without a cache",
    ),
    "mask_dropped_with_padding": Name(
        "the mask is not used where there is a padding mask",
        "chapter 10, Round 4",
        "a padding mask that hides nothing lets later tokens be seen",
    ),
    "mask_dropped_in_training": Name(
        "the mask holds in evaluation only",
        "chapter 10, Round 4",
        "in training mode, with the same seed, later tokens are seen",
    ),
    "mask_not_low_enough": Name(
        "hidden scores get a finite number that large scores overcome",
        "chapter 10, Round 2",
        "later tokens are seen at large scores, and at small ones they are not",
    ),
    "window_dropped_in_pieces": Name(
        "behind a cache there is no window",
        "chapter 17, Round 1",
        "fed in pieces every earlier token is seen, and as a whole those of a window",
    ),
    "window_one_wide": Name(
        "the window is one key too wide: it does not count the token itself",
        "chapter 17, Round 1",
        "the reach is the same, one too many, at another length",
    ),
    "window_one_narrow": Name(
        "the window is one key too narrow",
        "chapter 17, Round 1",
        "the reach is the same, one too few, at another length",
    ),
    "window_missing": Name(
        "there is no window",
        "chapter 17, Round 1",
        "the first token is seen from the last one at another length, too",
    ),
    "heads_split_without_transpose": Name(
        "heads are split by a reshape alone, so a head gets the features of other tokens",
        "chapter 09, Round 2",
        "the table of blocks that this reshape gives, at two lengths",
    ),
    "heads_joined_without_transpose": Name(
        "heads are joined by a reshape alone, so a token gets the heads of other tokens",
        "chapter 05, Round 3",
        "the table that this reshape gives, at two lengths",
    ),
    "batch_as_tokens": Name(
        "the axes of batch and tokens are exchanged",
        "chapter 09, Round 4",
        "a token depends on the same position of the other sequences, and on no other token of "
        "its own",
    ),
    "padding_seen": Name(
        "the mask of the padding is not used",
        "chapter 10, Round 4",
        "other padding changes the outputs of real tokens, and without the mask they are the same",
    ),
    "padding_on_queries": Name(
        "the padding mask is laid on the queries and not on the keys",
        "chapter 10, Round 4",
        "it changes outputs of padding, and none of a real token",
    ),
    "padding_polarity": Name(
        "True and False of the padding mask are exchanged",
        "chapter 10, Round 1",
        "with the opposite padding mask everything is as it should be",
    ),
    "padding_of_first_sequence": Name(
        "the padding of the first sequence is used for all",
        "chapter 10, Round 4",
        "each sequence alone is right",
    ),
    "padding_of_other_sequences": Name(
        "a sequence gets the padding mask of another one, as by a wrong order of the heads",
        "chapter 10, Round 4",
        "other padding of one sequence moves another one, which other tokens of it do not",
    ),
    "padding_shifts_positions": Name(
        "padding on the left counts as positions",
        "chapter 16, Round 2",
        "right on the right; on the left the amount of padding matters and its tokens do not",
    ),
    "positions_missing": Name(
        "the positions of the keys do not reach the scores",
        "chapter 16, Round 2",
        "earlier tokens can be exchanged, in two ways, although positions are claimed",
    ),
    "positions_of_first_sequence": Name(
        "the positions of the first sequence are used for all",
        "chapter 16, Round 2",
        "the second sequence has the outputs that it has with the positions of the first",
    ),
    "positions_ignored": Name(
        "the positions that are handed over are not used",
        "chapter 16, Round 2",
        "other positions, of other distances too, change nothing, although order matters",
    ),
    "positions_restart": Name(
        "positions begin at 0 again in each piece",
        "chapter 14, Round 2",
        "each piece equals the whole text whose positions restart there",
    ),
    "cache_not_read": Name(
        "the keys of earlier pieces are not used",
        "chapter 14, Round 1",
        "each piece equals a text of its own",
    ),
    "unwritten_rows_seen": Name(
        "rows of the buffer that nobody has written yet are seen",
        "chapter 14, Round 2",
        "the first piece is already wrong, and equal tokens no longer have equal outputs",
    ),
    "rewind_ignored": Name(
        "a cache that was rewound keeps what it should forget",
        "chapter 14, Round 2",
        "the outputs depend on the tokens that were taken back",
    ),
    "state_between_calls": Name(
        "a call leaves something behind that changes the next one",
        "chapter 14, Round 2",
        "the same input has another output after a call with other tokens, and twice the same "
        "one after that",
    ),
    "random_in_evaluation": Name(
        "something random, such as dropout, is not switched off",
        "chapter 09, Round 3",
        "three calls with one input give three outputs",
    ),
    "key_heads_tiled": Name(
        "KV heads are tiled (0 1 0 1) where they should be repeated (0 0 1 1)",
        "chapter 15, Round 1",
        "a change of one KV head moves exactly the query heads of the tiled order, for keys and "
        "for values",
    ),
    "key_heads_of_another_group": Name(
        "query heads use the KV head of another group",
        "chapter 15, Round 1",
        "each query head is moved by one KV head, the same for keys and for values",
    ),
    "key_heads_repeated": Name(
        "KV heads are repeated (0 0 1 1) where they should be tiled (0 1 0 1)",
        "chapter 15, Round 1",
        "a change of one KV head moves exactly the query heads of the repeated order, for keys "
        "and for values",
    ),
    "scale_missing": Name(
        "scores are not divided by the root of d_k",
        "chapter 03, Round 1",
        "the scale is 1 at two widths",
    ),
    "scale_without_root": Name(
        "scores are divided by d_k: by d_k in place of its root, or by the root twice",
        "chapter 03, Round 1",
        "the scale is 1/d_k at two widths",
    ),
    "scale_of_d_model": Name(
        "scores are divided by the root of d_model, and not of d_k",
        "chapter 03, Round 1",
        "the scale is 1/sqrt(H d_k) at two widths",
    ),
    "scale_not_used": Name(
        "the claimed scale is not used, but 1/sqrt(d_k)",
        "chapter 03, Round 1",
        "the scale is 1/sqrt(d_k) at two widths",
    ),
    "scale_multiplied": Name(
        "scores are multiplied by the root of d_k and not divided",
        "chapter 03, Round 1",
        "the scale is the root of d_k at two widths",
    ),
    "maximum_not_subtracted": Name(
        "the exponential overflows: the largest score is not subtracted first",
        "chapter 03, Round 2",
        "scores of 80 are right, those of 10,000 are not finite",
    ),
    "empty_row_nan": Name(
        "a row in which everything is hidden is not finite",
        "chapter 10, Round 2",
        "every other row is right",
    ),
    "empty_row_mean": Name(
        "a row in which everything is hidden is the mean of all values",
        "chapter 10, Round 2",
        "the row equals that mean",
    ),
    "gradient_without_mask": Name(
        "the backward pass does not know the mask",
        "chapter 08, Round 2",
        "without a mask the gradients agree with differences",
    ),
    "gradient_of_shared_heads": Name(
        "the gradient of a KV head is not the sum over its query heads",
        "chapter 08, Round 3",
        "with as many KV heads as query heads the gradients agree with differences",
    ),
    "softmax_over_batch": Name(
        "the softmax runs over the sequences of the batch, alone or together with the queries",
        "chapter 03, Round 2",
        "the weights sum to 1 over these axes",
    ),
    "gradient_cut": Name(
        "part of the layer is cut out of the gradient",
        "chapter 08, Round 3",
        "a gradient is 0 throughout, and differences are not",
    ),
}

"""Checks for the reader's own functions: each says what is right, or names the mistake.

`check_softmax(my_softmax)` calls the function on a few inputs, compares it with the library's, and
prints one account that starts with ✓, ✗ or ○ (not done yet). A module for each chapter; `account`
is what they share.
"""

from tutorial_lib.checks.attention_weights import (
    check_attention_weights,
    check_causal_mask,
    check_causal_padding_mask,
    check_log_softmax,
    check_scaled_dot_product_attention,
    check_softmax,
    check_summed_axis,
)
from tutorial_lib.checks.concatenation import (
    check_attend_packed,
    check_concat_heads,
    check_concat_tokens_first,
    check_passes_round_trip,
)
from tutorial_lib.checks.embeddings import (
    check_embed,
    check_embed_padded,
    check_is_equivariant,
    check_positions_from_wavelengths,
    check_sinusoidal_positions,
)
from tutorial_lib.checks.flash_attention import (
    check_attend_rows,
    check_flash_backward,
    check_fold_block,
    check_merge_parts,
    check_tiles_to_score,
    check_weights_on,
)
from tutorial_lib.checks.gpu import (
    check_attention_bytes,
    check_attention_flop,
    check_least_times,
    check_median_time,
    check_within_rounding,
)
from tutorial_lib.checks.gradients import (
    check_attention_backward,
    check_input_gradients,
    check_linear_backward,
    check_multi_head_attention_backward,
    check_project_heads_backward,
    check_scale_gradients,
    check_softmax_backward,
    check_sum_copies,
    check_wrong_entries,
)
from tutorial_lib.checks.heads import (
    check_multiply_adds,
    check_same_token_weights,
    check_score_ranks,
    check_split_heads,
)
from tutorial_lib.checks.many_devices import (
    check_bytes_sent,
    check_pairs_seen,
    check_shard_params,
    check_shard_unevenly,
)
from tutorial_lib.checks.masks import (
    check_for_torch_layer,
    check_fused_attention,
    check_leaking_pairs,
    check_masked_softmax,
    check_may_look,
    check_packed_mask,
)
from tutorial_lib.checks.output_projection import (
    check_head_shares,
    check_layer_parameters,
    check_length_factor,
    check_multi_head_attention,
    check_trace,
)
from tutorial_lib.checks.pytorch import (
    check_from_interleaved,
    check_outputs_of,
    check_packed_weight,
    check_split_packed,
)
from tutorial_lib.checks.queries_keys_values import (
    check_count_parameters,
    check_project_heads,
    check_project_sliced_input,
    check_project_with_bias,
)
from tutorial_lib.checks.review_part_1 import check_attend_to_sentence
from tutorial_lib.checks.vectorised import (
    check_attend_block,
    check_attend_in_blocks,
    check_score_across_heads,
    check_tiled_multi_head_attention,
    check_weighted_norms,
    check_window_masks,
)

__all__ = [
    "check_attend_block",
    "check_attend_in_blocks",
    "check_attend_packed",
    "check_attend_rows",
    "check_attend_to_sentence",
    "check_attention_backward",
    "check_attention_bytes",
    "check_attention_flop",
    "check_attention_weights",
    "check_bytes_sent",
    "check_causal_mask",
    "check_causal_padding_mask",
    "check_concat_heads",
    "check_concat_tokens_first",
    "check_count_parameters",
    "check_embed",
    "check_embed_padded",
    "check_flash_backward",
    "check_fold_block",
    "check_for_torch_layer",
    "check_from_interleaved",
    "check_fused_attention",
    "check_head_shares",
    "check_input_gradients",
    "check_is_equivariant",
    "check_layer_parameters",
    "check_leaking_pairs",
    "check_least_times",
    "check_length_factor",
    "check_linear_backward",
    "check_log_softmax",
    "check_masked_softmax",
    "check_may_look",
    "check_median_time",
    "check_merge_parts",
    "check_multi_head_attention",
    "check_multi_head_attention_backward",
    "check_multiply_adds",
    "check_outputs_of",
    "check_packed_mask",
    "check_packed_weight",
    "check_pairs_seen",
    "check_passes_round_trip",
    "check_positions_from_wavelengths",
    "check_project_heads",
    "check_project_heads_backward",
    "check_project_sliced_input",
    "check_project_with_bias",
    "check_same_token_weights",
    "check_scale_gradients",
    "check_scaled_dot_product_attention",
    "check_score_across_heads",
    "check_score_ranks",
    "check_shard_params",
    "check_shard_unevenly",
    "check_sinusoidal_positions",
    "check_softmax",
    "check_softmax_backward",
    "check_split_heads",
    "check_split_packed",
    "check_sum_copies",
    "check_summed_axis",
    "check_tiled_multi_head_attention",
    "check_tiles_to_score",
    "check_trace",
    "check_weighted_norms",
    "check_weights_on",
    "check_window_masks",
    "check_within_rounding",
    "check_wrong_entries",
]

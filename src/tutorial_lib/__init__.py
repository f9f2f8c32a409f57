"""Multi-head attention in NumPy, one arrow of the data flow at a time."""

from tutorial_lib.attention import (
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
    softmax,
)
from tutorial_lib.describe import describe_attention, show, show_fractions
from tutorial_lib.embedding import embed, sinusoidal_positions
from tutorial_lib.errors import ShapeError
from tutorial_lib.example import Example, published_example, running_example
from tutorial_lib.gradients import (
    Gradients,
    attention_backward,
    linear_backward,
    multi_head_attention_backward,
    project_heads_backward,
    softmax_backward,
    sum_copies,
)
from tutorial_lib.heads import concat_heads, split_heads
from tutorial_lib.multihead import Trace, multi_head_attention, trace
from tutorial_lib.projection import Params, init_params, project_heads
from tutorial_lib.text import Vocabulary
from tutorial_lib.tiled import attend_block, attend_in_blocks, tiled_multi_head_attention

__all__ = [
    "Example",
    "Gradients",
    "Params",
    "ShapeError",
    "Trace",
    "Vocabulary",
    "attend_block",
    "attend_in_blocks",
    "attention_backward",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "concat_heads",
    "describe_attention",
    "embed",
    "init_params",
    "linear_backward",
    "multi_head_attention",
    "multi_head_attention_backward",
    "project_heads",
    "project_heads_backward",
    "published_example",
    "running_example",
    "scaled_dot_product_attention",
    "show",
    "show_fractions",
    "sinusoidal_positions",
    "softmax",
    "softmax_backward",
    "split_heads",
    "sum_copies",
    "tiled_multi_head_attention",
    "trace",
]

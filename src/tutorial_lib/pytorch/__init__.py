"""The layer in PyTorch. Imported explicitly: `import tutorial_lib` leaves torch alone."""

from tutorial_lib.pytorch.bridge import (
    module_from_params,
    packed_weight,
    torch_mha_from_params,
)
from tutorial_lib.pytorch.decoder_attention import (
    DecoderAttention,
    DecoderCache,
    Rotation,
    ScoreOptions,
)
from tutorial_lib.pytorch.device import (
    available_devices,
    best_device,
    best_dtype,
    cuda_compute_capability,
    describe_device,
    find_device,
    to_float64,
)
from tutorial_lib.pytorch.flash import flash_attention, flash_kernel, which_flash
from tutorial_lib.pytorch.mha import (
    MultiHeadAttention,
    attention_trace,
    fused_attention,
    masked_softmax,
    may_look,
    project_packed_qkv,
)
from tutorial_lib.pytorch.timing import Measurement, measure, peak_mib, time_in_rounds, time_ms

__all__ = [
    "DecoderAttention",
    "DecoderCache",
    "Measurement",
    "MultiHeadAttention",
    "Rotation",
    "ScoreOptions",
    "attention_trace",
    "available_devices",
    "best_device",
    "best_dtype",
    "cuda_compute_capability",
    "describe_device",
    "find_device",
    "flash_attention",
    "flash_kernel",
    "fused_attention",
    "masked_softmax",
    "may_look",
    "measure",
    "module_from_params",
    "packed_weight",
    "peak_mib",
    "project_packed_qkv",
    "time_in_rounds",
    "time_ms",
    "to_float64",
    "torch_mha_from_params",
    "which_flash",
]

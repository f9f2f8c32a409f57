"""What the probe says of small models of transformers: python -m tests.probe.small_models.

Each model type that can be made small is made with its own defaults but for the sizes, and asked
without a claim. The table goes to book/probed_models.csv, which the page shows. With a seed and a
precision, as in `python -m tests.probe.small_models 3 single`, the lines are only printed.
"""

import csv
import inspect
import sys
import warnings
from datetime import date
from pathlib import Path

import numpy as np

from tutorial_lib.probe import probe

FILE = Path(__file__).resolve().parents[2] / "book" / "probed_models.csv"
HEAD = ("mask", "what an output depends on", "positions", "padding", "cache", "broken")
DRAWN = 12  # tokens
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille sign, by row
MOST_PARAMETERS = 2_000_000
SIZES = {
    32: "hidden_size d_model n_embd embed_dim dim emb_dim embedding_size mamba_d_ssm",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_key_value_heads num_experts_per_tok",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads num_experts "
    "decoder_attention_heads num_local_experts n_routed_experts qk_rope_head_dim qk_nope_head_dim "
    "sliding_window attention_chunk_size mamba_n_heads",
    48: "intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner hidden_dim",
    64: "max_position_embeddings n_positions n_ctx",
    16: "moe_intermediate_size q_lora_rank kv_lora_rank",
    8: "head_dim d_kv v_head_dim mamba_chunk_size mamba_d_state mamba_d_head",
    50: "vocab_size",
    1: "first_k_dense_replace n_group topk_group eos_token_id",
    0: "pad_token_id bos_token_id",
}
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}


def small_model(model_type, seed=0, **sizes):
    """Return a model of a type, of two layers and width 32, or of given sizes, for evaluation."""
    import torch
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    known = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
    known |= set(inspect.signature(kind.__init__).parameters)
    small = {name: size for name, size in SMALL.items() if name in known}
    config = kind(**small | sizes)
    with torch.device("meta"):  # which holds no numbers
        size = sum(p.numel() for p in AutoModel.from_config(config).parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(f"{model_type} cannot be made small by these names: {size} parameters")
    torch.manual_seed(seed)
    return AutoModel.from_config(config, attn_implementation="eager").eval()


def first_layer_report(model_type, seed=0, *, double=True):
    """Return the report of the first layer of a small model of a type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probe.transformers(small_model(model_type, seed), seed=seed, double=double)


def drawing(depends):
    """Draw the first tokens of a mask, a dot for each key that is seen, as Markdown."""
    seen = (depends | np.eye(len(depends), dtype=bool))[:DRAWN, :DRAWN]
    lines = []
    for top in range(0, DRAWN, 4):
        signs = [seen[top : top + 4, left : left + 2] * DOTS for left in range(0, DRAWN, 2)]
        lines.append("".join(chr(0x2800 + int(sign.sum())) for sign in signs))
    return f"[{'<br>'.join(lines)}]{{.book-mask}}"


def row(model_type, report):
    """Return the line of a model type in the table."""
    signs = {}
    for finding in report.findings:
        signs.setdefault(finding.question.split(",")[0].split(" on ")[0], []).append(finding.sign)
    padding, cache = (_verdict(signs.get(word, ())) for word in ("padding", "cache"))
    broken = "; ".join(report.names or (f"{f.question}: {f.sentence}" for f in report.wrong))
    mask, position = str(report.pattern or "no regular form"), report.facts.get("position")
    drawn = drawing(report.depends)
    return (model_type, drawn, mask, position or "–", padding, cache, broken)


def _verdict(signs):
    if not signs:
        return "–"
    return "✗" if "✗" in signs else "✓" if "✓" in signs else "·"


def lines(seed=0, *, double=True):
    """Yield the lines of all model types that can be made small and asked."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for model_type in sorted(CONFIG_MAPPING):
        try:
            line = row(model_type, first_layer_report(model_type, seed, double=double))
        except Exception as error:
            print(f"{model_type}: {type(error).__name__}", file=sys.stderr)
            continue
        print(*line, sep=" | ")
        yield line


def main():
    """Ask all models, and write the table; with a seed and a precision, only print the lines."""
    import transformers

    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:  # such as: 3 single
        seed, precision = sys.argv[1:]
        for _ in lines(int(seed), double=precision == "double"):
            pass
        return
    rows = list(lines())
    first = f"type in transformers {transformers.__version__} on {date.today()}"
    with FILE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([(first, *HEAD), *rows])


if __name__ == "__main__":
    main()

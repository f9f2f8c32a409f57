"""What the classes of transformers fill in: python -m tests.pytorch.config_defaults.

Writes data/facts/config_defaults.json: of each decoder, the fields that a published file may leave
out and that the reader of configurations knows. Seal the data afterwards.
"""

import json

from tutorial_lib.models_card import NAMES, READ
from tutorial_lib.records import DATA

ALWAYS_WRITTEN = {name for field in ("layers", "d_model", "context") for name in NAMES[field]}
FILE = DATA / "facts" / "config_defaults.json"


def defaults():
    """Return {model type: {field: value}} of all decoders of the installed transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    found = {}
    for kind in sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) & set(CONFIG_MAPPING)):
        values = {
            name: getattr(CONFIG_MAPPING[kind], name, None)
            for name in sorted(READ - ALWAYS_WRITTEN)
        }
        plain = {name: v for name, v in values.items() if type(v) in (bool, int)}
        if plain and not hasattr(CONFIG_MAPPING[kind], "type_vocab_size"):
            found[kind] = plain
    return found


def written():
    """Return the text of the file: a line for each model type."""
    import transformers

    rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in defaults().items())
    return f'{{\n "transformers": "{transformers.__version__}",\n "fields": {{\n{rows}\n }}\n}}\n'


if __name__ == "__main__":
    FILE.write_text(written(), "utf-8")

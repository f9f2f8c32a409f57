"""What the classes of transformers fill in: python -m tests.pytorch.config_defaults.

Writes data/facts/config_defaults.json: of each decoder, the fields that a published file may leave
out and that the reader of configurations knows. Seal the data afterwards.
"""

import json

from tutorial_lib.models_card import NAMES, READ
from tutorial_lib.records import DATA

ALWAYS_WRITTEN = {name for field in ("layers", "d_model", "context") for name in NAMES[field]}
CHECKED = "2026-11"
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
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    tree = f"https://github.com/huggingface/transformers/tree/v{transformers.__version__}/src"
    folders = {kind: CONFIG_MAPPING[kind].__module__.rpartition(".")[0] for kind in defaults()}
    taken = "single numbers, which are facts; the licence named is that of the code they are in"
    rows = [
        {
            "name": kind,
            "fields": fields,
            "source": f"{tree}/{folders[kind].replace('.', '/')}",
            "source_kind": "defaults of a class",
            "licence": "Apache-2.0",
        }
        for kind, fields in defaults().items()
    ]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return f'{{\n "checked": "{CHECKED}",\n "taken": "{taken}",\n "types": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    FILE.write_text(written(), "utf-8")

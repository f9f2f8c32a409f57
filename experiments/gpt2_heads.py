"""Measure each head of GPT-2 small in the four ways of chapter 20, on two tasks.

The weights are OpenAI's, as transformers loads them: from a folder with --weights, else from its
cache or the network. Every head is measured on prompts whose deciding word is known, and beside the
weight stands the best fixed offset on the same prompts. Ten minutes on one thread. Writes
src/tutorial_lib/data/results/gpt2_heads.json.
"""

import argparse
import importlib

import numpy as np

from experiments.measuring import new_record, prepare, progress, short, write
from tutorial_lib.models.head_scores import best_offset, fixed_offset_score
from tutorial_lib.pytorch import gpt2

SEED = 0  # nothing is drawn
NEEDS = (
    "This needs the weights and the tokenizer of GPT-2 small, 550 MB: give their folder with "
    "--weights, or run it once where huggingface.co can be reached."
)


def load(source):
    """Return GPT-2 and its tokenizer; leave with one sentence where they are absent."""
    transformers = importlib.import_module("transformers")
    try:
        read = transformers.AutoTokenizer.from_pretrained(source)
        options = {"attn_implementation": "eager"}
        model = transformers.AutoModelForCausalLM.from_pretrained(source, **options).eval()
    except (OSError, ValueError) as fault:
        raise SystemExit(f"{NEEDS}\n({source}: {str(fault).splitlines()[0]})") from fault
    return model, read


def measure_task(model, read, task):
    """Return the four measures of every head, and what they are measured against."""
    prompts = gpt2.make_prompts(read, task)
    target = np.full(prompts.ids.shape, -1)
    target[:, -1] = prompts.target
    offset, found = best_offset(target), {}
    for layer, measures in gpt2.measure_heads(model, prompts):
        progress(f"{task}, layer {layer}")
        found[f"layer {layer}"] = [[short(x) for x in row] for row in measures.tolist()]
    logits = gpt2.run_gpt2(model, prompts.ids).logits
    differences = gpt2.lead(logits, prompts.right, prompts.wrong)
    return {
        "prompts": len(target),
        "right": short(float((differences > 0).double().mean())),
        "logit_difference": short(float(differences.mean())),
        "offset": int(offset),
        "fixed_offset_score": short(float(fixed_offset_score(target, offset))),
        "heads": found,
    }


def main(arguments=None):
    """Measure both tasks and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--weights", default="gpt2", help="a folder; else the cache or the network")
    model, read = load(parser.parse_args(arguments).weights)
    prepare()
    record = new_record(__file__, seed=SEED) | {"columns": list(gpt2.COLUMNS)}
    record["tasks"] = {task: measure_task(model, read.encode, task) for task in gpt2.FRAMES}
    write("gpt2_heads", record)


if __name__ == "__main__":
    main()

"""The measures of chapter 20 on a GPT-2 of transformers, by hooks on the inputs of its W_O."""

from contextlib import ExitStack
from typing import NamedTuple

import torch
import torch.nn.functional as F

from tutorial_lib.contract import require
from tutorial_lib.pytorch.known_layers import GPT2, require_layer

COLUMNS = "weight", "attribution", "form", "patching"
NAMES = "Mary", "John", "Sarah", "David", "Jessica", "Michael", "Jennifer", "Robert"
NOUNS = {"key": "keys", "dog": "dogs", "car": "cars", "book": "books", "boy": "boys"}
FRAMES = {
    "indirect object": [
        "When {right} and {wrong} went to the store, {giver} gave a drink to",
        "When {wrong} and {right} went to the store, {giver} gave a drink to",
    ],
    "attractor": [
        "We know that the {noun} near the old {near}",
        "We know that the old {noun} near the {near}",
    ],
}


class Prompts(NamedTuple):
    """Texts of one length; earlier words of each decide the next word.

    At *indirect object*, `target` is the right name, and `other` has another giver, so that the
    other name is right. At *attractor*, `target` is the subject, and `other` changes its number.
    """

    ids: torch.Tensor  # (n, T)
    other: torch.Tensor  # (n, T), texts that differ in one word and have the other answer
    target: torch.Tensor  # (n,), the position in ids of the right name or of the subject
    right: torch.Tensor  # (n,), the right next token after ids
    wrong: torch.Tensor  # (n,), the right next token after other


class Run(NamedTuple):
    """What a run leaves behind."""

    logits: torch.Tensor  # (n, vocabulary), at the last position
    weights: torch.Tensor  # (n, layers, H, T, T)
    heads: torch.Tensor  # (n, layers, H, T, d_v), with those that were replaced
    mlps: torch.Tensor  # (n, layers, d_model), what the MLPs add at the last position
    last: torch.Tensor  # (n, d_model), what the final norm gets at the last position


def make_prompts(read, task) -> Prompts:
    """Make the prompts of a task: `indirect object` or `attractor`.

    Introduced in chapter 20. At *indirect object*, two names stand in either order, one of them
    comes again, and the other one must follow. At *attractor*, a noun of the other number stands
    between a subject and *was* or *were*. `read` turns a text into its list of token ids, as
    `tokenizer.encode` does; ValueError if a word, with a space in front, is no single token.
    """
    tasks = ", ".join(map(repr, FRAMES))
    require(task in FRAMES, ValueError, f"task={task!r}; expected one of {tasks}.")
    prompts = []
    for frame in FRAMES[task]:
        for text, other_text, *words in _prompt_texts(frame, task):
            ids, (target, right_id, wrong_id) = read(text), (_token(read, word) for word in words)
            prompts.append([ids, read(other_text), ids.index(target), right_id, wrong_id])
    return Prompts(*(torch.tensor(prompt_column) for prompt_column in zip(*prompts, strict=True)))


def _prompt_texts(frame, task):
    """Yield a text, the other one, the word at target, the right and the wrong answer."""
    if task == "indirect object":
        for right, wrong in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True):
            texts = (frame.format(right=right, wrong=wrong, giver=g) for g in (wrong, right))
            yield *texts, right, right, wrong
        return
    nouns = list(NOUNS.items())
    for noun_forms, nears in zip(nouns, nouns[1:] + nouns[:1], strict=True):
        for n in (0, 1):  # singular, plural
            texts = (frame.format(noun=noun_forms[form], near=nears[1 - n]) for form in (n, 1 - n))
            verbs = ["was", "were"]
            yield *texts, noun_forms[n], verbs[n], verbs[1 - n]


def _token(read, word):
    token_ids = read(f" {word}")
    require(
        len(token_ids) == 1,
        ValueError,
        f"{word!r} with a space in front is {len(token_ids)} tokens; expected one. Give the "
        f"tokenizer of GPT-2, or choose other words in NAMES and NOUNS.",
    )
    return token_ids[0]


@torch.no_grad()
def run_gpt2(model: "GPT2LMHeadModel", ids: "n T", outputs: dict | None = None) -> Run:
    """Run a GPT-2 and keep what its heads do; some heads may be given other outputs.

    Introduced in chapter 20. The model is in eval mode, with `attn_implementation="eager"`, and its
    layers are what `require_layer` takes; TypeError or ValueError otherwise. `outputs` are from
    (layer, head), both counted from 0, to a tensor that broadcasts to (n, T, d_v).
    """
    blocks, outputs = _checked_blocks(model), outputs or {}
    activations = {"heads": [], "mlps": [], "last": []}
    H = blocks[0].attn.num_heads
    for layer, head in outputs:
        require(
            0 <= layer < len(blocks) and 0 <= head < H,
            ValueError,
            f"outputs has head {layer}.{head}; expected a layer from 0 to {len(blocks) - 1} "
            f"and a head from 0 to {H - 1}.",
        )
    with ExitStack() as hooks:
        for hook in _activation_hooks(model.transformer, H, outputs, activations):
            hooks.callback(hook.remove)
        model_output = model(ids, output_attentions=True, use_cache=False)
    heads, mlps = (torch.stack(activations[name], dim=1) for name in ("heads", "mlps"))
    weights = torch.stack(model_output.attentions, dim=1)
    return Run(model_output.logits[:, -1], weights, heads, mlps, activations["last"][0])


def _checked_blocks(model):
    blocks = getattr(getattr(model, "transformer", None), "h", None)
    if type(model).__name__ != "GPT2LMHeadModel" or blocks is None:
        raise TypeError(
            f"model is a {type(model).__name__}; expected a GPT2LMHeadModel of transformers: "
            f'AutoModelForCausalLM.from_pretrained("gpt2", attn_implementation="eager").'
        )
    mode_message = "model is in train mode, where dropout is on; expected model.eval()."
    require(not model.training, ValueError, mode_message)
    require(
        model.config._attn_implementation == "eager",
        ValueError,
        f"model computes attention by {model.config._attn_implementation!r}, which returns no "
        f'weights; load it with attn_implementation="eager".',
    )
    for block in blocks:
        require_layer(block.attn, GPT2)
    return model.transformer.h


def _activation_hooks(transformer, H, outputs, activations):
    """Yield the handles of hooks that replace outputs of heads and keep what a Run holds."""

    def replace(layer):
        def hook(_, inputs):
            heads = inputs[0].unflatten(-1, (H, -1)).clone()  # (n, T, H, d_v), head 0 first
            for head in (head for output_layer, head in outputs if output_layer == layer):
                heads[:, :, head] = outputs[layer, head]
            activations["heads"].append(heads.transpose(1, 2))
            return (heads.flatten(-2),)

        return hook

    def keep_mlp(_, inputs, output):
        activations["mlps"].append(output[:, -1])

    def keep_last(_, inputs):
        activations["last"].append(inputs[0][:, -1])

    for layer, block in enumerate(transformer.h):
        yield block.attn.c_proj.register_forward_pre_hook(replace(layer))
        yield block.mlp.register_forward_hook(keep_mlp)
    yield transformer.ln_f.register_forward_pre_hook(keep_last)


@torch.no_grad()
def attribute(model: "GPT2LMHeadModel", run: Run, right: "n", wrong: "n") -> tuple:
    """Split the logit difference of two tokens into terms: heads (n, layers, H), MLPs (n, layers).

    Introduced in chapter 20: direct logit attribution. The divisor of the final norm, one number
    per position, is that of this run. Left over are the embeddings' and the biases' terms.
    """
    final_norm, U = model.transformer.ln_f, model.lm_head.weight  # (vocabulary, d_model)
    divisor = (run.last.var(-1, correction=0) + final_norm.eps).sqrt()
    toward = (U[right] - U[wrong]) * final_norm.weight  # (n, d_model)
    toward = (toward - toward.mean(-1, keepdim=True)) / divisor[:, None]  # the norm takes the mean
    W_O = torch.stack([block.attn.c_proj.weight for block in model.transformer.h])
    W_O = W_O.unflatten(1, (run.heads.shape[2], -1))  # (layers, H, d_v, d_model)
    heads = torch.einsum("nlhd,lhdm,nm->nlh", run.heads[..., -1, :], W_O, toward)
    return heads, torch.einsum("nlm,nm->nl", run.mlps, toward)


def measure_heads(model, prompts):
    """Yield each layer's number, and the four measures of its heads, (H, 4).

    Introduced in chapter 20. In the order of COLUMNS, each a mean over the prompts: the weight on
    `target`, which is the right name at *indirect object* and the subject at *attractor*; the
    direct logit attribution of right - wrong; the increase in the loss of the form, -log of the
    right answer's probability among the two, when the head outputs its mean over all positions of
    these same prompts, `ids` and `other`, and not of other texts; the patching effect, with the
    head's output in `other`, where the giver or the subject differs, as a fraction of the whole
    change of right - wrong, NaN where nothing changes. Raises as `run_gpt2`.
    """
    ids, other, target, right, wrong = prompts
    passes = [run_gpt2(model, token_ids) for token_ids in (ids, other)]
    means = torch.cat([run.heads for run in passes]).mean(dim=(0, 3))  # (layers, H, d_v)
    prompt_index = torch.arange(len(ids))
    head_terms, _ = attribute(model, passes[0], right, wrong)
    base_lead, other_lead = (lead(run.logits, right, wrong) for run in passes)
    for layer in range(means.shape[0]):
        head_rows = []
        for head in range(means.shape[1]):
            weight = passes[0].weights[prompt_index, layer, head, -1, target].mean()
            patched_leads = []
            for output in (means[layer, head], passes[1].heads[:, layer, head]):
                logits = run_gpt2(model, ids, {(layer, head): output}).logits
                patched_leads.append(lead(logits, right, wrong))
            form_loss = F.softplus(-patched_leads[0]).mean() - F.softplus(-base_lead).mean()
            patching = (patched_leads[1] - base_lead).mean() / (other_lead - base_lead).mean()
            head_rows.append([weight, head_terms[:, layer, head].mean(), form_loss, patching])
        yield layer, torch.tensor(head_rows)


def lead(logits, right, wrong):
    """Return the logit of `right` less that of `wrong`, (n,)."""
    prompt_index = torch.arange(len(logits))
    return logits[prompt_index, right] - logits[prompt_index, wrong]

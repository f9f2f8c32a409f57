"""The real model against transformers and tokenizers, which are given its arrays and its merges."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.convert_slow_tokenizer import BPE, Tokenizer, decoders, pre_tokenizers

from tests.library.models.real import small
from tutorial_lib.models.real.model import real_file, real_model, run_real

TEXTS = (
    "The capital of France is Paris, and it isn't Lyon.",
    "def f(x):\n    return x**2 + 10  # 1024 times",
    "When Mary and John went to the store, John gave a drink to",
    "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.",
    "Le cœur a ses raisons que la raison ne connaît point.",
    "東京は日本の首都です。人口は1400万人。",
    "🙂🙃 emoji, tabs\tand   blanks \n\n\n end",
    "The key near the dogs was we'll they've I'm he'd",
    "__init__ a_b C++ $5.00 <html> [1, 2]",
    "Once upon a time there was a very small house by the sea.",
)


@pytest.fixture(scope="module", params=["small", "real"])
def model(request, tmp_path_factory):
    """The small random model, and the real one where its weights are."""
    if request.param == "small":
        return real_model(small.write_gguf(tmp_path_factory.mktemp("real") / "small.gguf"))
    try:
        return real_model(real_file())
    except FileNotFoundError as missing:
        return pytest.skip(str(missing))


def halves(W):
    """Rows of W_Q or W_K, neighbours in pairs → (H*d_k, d_model), pairs half a width apart."""
    H, d_model, d_k = W.shape
    rows = W.swapaxes(-1, -2).reshape(H, d_k // 2, 2, d_model).swapaxes(1, 2)
    return rows.reshape(H * d_k, d_model)


def llama(model):
    """The same model as transformers computes it."""
    params = model.blocks[0].params
    sizes = {"vocab_size": len(model.E), "hidden_size": params.d_model, "head_dim": params.d_k}
    sizes |= {"intermediate_size": model.blocks[0].d_feed, "num_hidden_layers": model.n_layers}
    sizes |= {"num_attention_heads": params.n_heads, "num_key_value_heads": params.n_kv_heads}
    config = LlamaConfig(
        **sizes,
        rms_norm_eps=model.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": model.base},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        theirs = LlamaForCausalLM(config)
    state = {"model.embed_tokens.weight": model.E, "lm_head.weight": model.E}
    state["model.norm.weight"] = model.gain
    for n, block in enumerate(model.blocks):
        params = block.params
        rows = {"self_attn.q_proj": halves(params.W_Q), "self_attn.k_proj": halves(params.W_K)}
        rows["self_attn.v_proj"] = params.W_V.swapaxes(-1, -2).reshape(-1, params.d_model)
        rows |= {"self_attn.o_proj": params.W_O.T, "mlp.gate_proj": block.W_gate.T}
        rows |= {"mlp.up_proj": block.W_up.T, "mlp.down_proj": block.W_down.T}
        rows |= {"input_layernorm": block.gain_1, "post_attention_layernorm": block.gain_2}
        state |= {f"model.layers.{n}.{name}.weight": array for name, array in rows.items()}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in state.items()}
    theirs.load_state_dict(tensors, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)  # its frequencies, off `meta`
    return theirs.eval()


@pytest.mark.parametrize("texts", [TEXTS[:1], pytest.param(TEXTS[1:], marks=pytest.mark.long)])
def test_logits_are_those_of_transformers(model, texts):
    theirs = llama(model)
    for text in texts:
        ids = model.tokenizer.encode(text)
        with torch.no_grad():
            logits = theirs(torch.from_numpy(ids)[None]).logits[0].numpy()
        np.testing.assert_allclose(run_real(model, ids).logits, logits, rtol=0, atol=3e-4)


def test_tokens_are_those_of_tokenizers(model):
    pairs = [tuple(pair.split(" ")) for pair in model.tokenizer.merges]
    theirs = Tokenizer(BPE(vocab=model.tokenizer.ids, merges=pairs))
    digits, letters = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel
    theirs.pre_tokenizer = pre_tokenizers.Sequence([digits, letters(add_prefix_space=False)])
    theirs.decoder = decoders.ByteLevel()
    for text in TEXTS:
        assert model.tokenizer.encode(text).tolist() == theirs.encode(text).ids, text

"""What chapter 18 says of the time for a prompt and of published layers."""

from tutorial_lib.records import facts, record


def chunks_need_less_than_a_twentieth_of_the_softmax():
    """Chunks of 16, 64 and 128 tokens need less than a twentieth of the time of the softmax."""
    chunks = record("state")["prefill"]["chunks"]
    return max(chunks[length]["over_softmax"]["high"] for length in ("16", "64", "128")) < 1 / 20


def tokens_before_in_the_short_convolution():
    """The convolution of Qwen3-Next mixes each token with this many tokens before it."""
    models = {model["name"]: model for model in facts("models")["models"]}
    return models["Qwen3-Next 80B"]["state"]["convolution"] - 1

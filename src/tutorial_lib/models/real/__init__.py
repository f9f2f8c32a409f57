"""A model that people use, from its file to its logits: SmolLM2-135M-Instruct, 4-bit weights.

`gguf` reads the file, `tokenizer` its text, `model` runs it, and `heads` changes and
reads its heads.
"""

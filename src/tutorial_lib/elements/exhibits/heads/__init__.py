"""All attention maps of the real model on one sentence."""

"""A mask that a reader draws, and its receptive field."""

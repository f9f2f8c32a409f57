"""RoPE as two hands of a clock."""

"""A mask to paint: what it lets through, and what moves."""

"""A mask to paint: what it lets through, and which outputs change."""

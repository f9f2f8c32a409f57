"""The prediction."""

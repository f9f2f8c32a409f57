"""The byte calculator."""

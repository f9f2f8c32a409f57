"""The plane of queries and keys."""

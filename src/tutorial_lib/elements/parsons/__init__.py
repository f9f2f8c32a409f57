"""The Parsons problem."""

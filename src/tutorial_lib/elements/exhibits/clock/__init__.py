"""The turn as two hands of a clock."""

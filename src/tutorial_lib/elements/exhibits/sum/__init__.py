"""Y as a sum over the heads."""

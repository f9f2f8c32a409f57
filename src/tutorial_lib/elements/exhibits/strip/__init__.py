"""An array and the strip of memory in which it lies."""

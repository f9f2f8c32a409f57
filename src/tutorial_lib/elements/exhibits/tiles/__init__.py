"""The softmax tile by tile."""

"""The softmax as a bench: three products, their divisor, exponentials and weights."""

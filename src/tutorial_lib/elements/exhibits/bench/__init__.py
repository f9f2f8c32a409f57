"""The softmax as a bench: three products, their divisor, powers and shares."""

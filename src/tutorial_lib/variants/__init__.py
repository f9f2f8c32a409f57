"""The variants of the layer, Part III: a file each, and a function for the one arrow it replaces.

The other arrows stay as the layer has them, so a variant is a composition of its function with
theirs, such as `attention_weights(attention_scores(Q, K) + bias, mask=mask)`, and never a flag of
theirs. Its first test is the limit in which it equals the layer. A variant imports the layer, and
what is fast or goes back; it imports no other variant.
"""

"""What the review of Part III asks, what is right, and what is wrong."""

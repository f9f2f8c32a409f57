"""What the review of Part IV asks, what is right, and what is wrong."""

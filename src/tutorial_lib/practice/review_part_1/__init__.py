"""What the review of Part I asks, what is right, and what is wrong."""

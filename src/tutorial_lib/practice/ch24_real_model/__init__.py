"""What chapter 24 asks, what is right, and what is wrong."""

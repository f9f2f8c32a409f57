"""What chapter 12 asks, what is right, and what is wrong."""

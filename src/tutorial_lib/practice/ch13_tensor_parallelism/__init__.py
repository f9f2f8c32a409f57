"""What chapter 13 asks, what is right, and what is wrong."""

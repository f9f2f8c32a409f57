"""What chapter 11 asks, what is right, and what is wrong."""

"""What chapter 16 asks, what is right, and what is wrong."""

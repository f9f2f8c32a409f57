"""What chapter 10 asks, what is right, and what is wrong."""

"""What chapter 22 asks, what is right, and what is wrong."""

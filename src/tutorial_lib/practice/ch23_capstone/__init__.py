"""What chapter 23 asks, what is right, and what is wrong."""

"""What chapter 17 asks, what is right, and what is wrong."""

"""What chapter 15 asks, what is right, and what is wrong."""

"""What chapter 21 asks, what is right, and what is wrong."""

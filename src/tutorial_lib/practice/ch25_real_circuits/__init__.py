"""What chapter 25 asks, what is right, and what is wrong."""

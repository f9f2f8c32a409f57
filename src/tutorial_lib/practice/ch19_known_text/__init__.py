"""What chapter 19 asks, what is right, and what is wrong."""

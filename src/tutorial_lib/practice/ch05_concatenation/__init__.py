"""What chapter 05 asks, what is right, and what is wrong."""

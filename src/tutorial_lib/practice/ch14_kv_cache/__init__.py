"""What chapter 14 asks, what is right, and what is wrong."""

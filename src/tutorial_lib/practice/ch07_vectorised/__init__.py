"""What chapter 07 asks, what is right, and what is wrong."""

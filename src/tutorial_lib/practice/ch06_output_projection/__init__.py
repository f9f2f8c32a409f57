"""What chapter 06 asks, what is right, and what is wrong."""

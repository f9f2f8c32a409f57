"""What chapter 09 asks, what is right, and what is wrong."""

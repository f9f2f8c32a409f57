"""What chapter 03 asks, what is right, and what is wrong."""

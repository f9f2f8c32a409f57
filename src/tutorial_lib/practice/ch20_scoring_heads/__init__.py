"""What chapter 20 asks, what is right, and what is wrong."""

"""What chapter 18 asks, what is right, and what is wrong."""

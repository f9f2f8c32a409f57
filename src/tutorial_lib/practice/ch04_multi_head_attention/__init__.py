"""What chapter 04 asks, what is right, and what is wrong."""

"""What chapter 02 asks, what is right, and what is wrong."""

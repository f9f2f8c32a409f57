"""What chapter 01 asks, what is right, and what is wrong."""

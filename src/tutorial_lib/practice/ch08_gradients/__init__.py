"""What chapter 08 asks, what is right, and what is wrong."""

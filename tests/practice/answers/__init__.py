"""What computes the key of a question: a module a room, and one for the inventory."""

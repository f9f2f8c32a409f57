"""What the text of a page says and an expression of one line does not hold: a module a page."""

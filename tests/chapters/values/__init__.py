"""What computes the numbers of a text where one short line does not: a module a page."""

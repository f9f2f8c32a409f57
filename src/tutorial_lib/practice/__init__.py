"""A room a chapter: its bank of questions, its checks, and the mistakes that they name.

`account` is the engine of a check, `mistake` the record of a wrong function, and `wrong` holds the
parts that wrong functions of several chapters share.
"""

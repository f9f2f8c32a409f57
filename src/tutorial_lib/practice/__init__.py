"""A room a chapter: its bank of questions, its checks, and the mistakes that they name.

`calls` calls a reader's function, `account` puts the result into words, `mistake` makes wrong
functions by edits of right ones, and where none fits, `diagnosis` says what kind of difference
there is, at last by the mutants of `slips`. `cache_tests` tests a layer with a cache from outside,
and `inputs` holds what checks give to functions.
"""

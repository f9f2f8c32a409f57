"""For instructors: make a chapter into an assignment, and grade a folder of hand-ins.

`python -m coursework --help` starts it.
"""

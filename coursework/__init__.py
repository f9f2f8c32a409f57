"""For instructors: assignments, and the grader of a class: `python -m coursework --help`."""

"""The engine of the grader.

Read in this order: `assignment` (what is asked), `needed` and `worker` (what runs in the sandbox),
`sandbox` (how it is kept in), `judge` (what a test earns), `batch` (a folder of hand-ins),
`reports` (what a student and an instructor read), `release` (what students get).
"""

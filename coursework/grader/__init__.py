"""The engine of the grader.

Read in this order:

- what is asked: `assignment`;
- what runs in the sandbox: `worker_cells`, `worker_silence`, `worker_shell`, `worker`; how it is
  kept in: `seccomp`, `sandbox`;
- what a test earns, and whose words are whose: `inert`, `kinds`, `judge`;
- what a class hands in: `files`, `handins`, `roster`;
- what a folder of results holds: `seeds`, `records`, `corrections`;
- a folder of hand-ins is graded: `batch`;
- what a student and an instructor read: `reports`;
- what students get: `release`.
"""


class GraderError(Exception):
    """What ends a command; the message is for the instructor."""

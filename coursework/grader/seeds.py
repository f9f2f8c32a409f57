"""The seed of the hidden cases, which stands in no command line and in no result."""

import getpass
import hashlib
import stat
import sys
from pathlib import Path

from coursework.grader import GraderError

ROUNDS = 200_000  # of hashing: a seed that can be guessed is dear to try
HOW = 'generate one with: python -c "import secrets; print(secrets.randbits(60))" > seed'


class SeedError(GraderError):
    """There is no seed, or what is given is none."""


def parse_seed(text):
    """Return the seed that a text gives; SeedError, which does not tell the text: it is none."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 100):
        what = "nothing" if not text else "not one whole number, 0 or more"
        raise SeedError(f"the seed is {what}: {HOW}")
    return int(text)


def read_seed(path, warn):
    """Return the seed of a file, or without one what is typed at the terminal.

    `warn` takes a sentence when others of this machine may read the file. It is a SeedError where
    there is no seed to be read, or no terminal to ask at.
    """
    if path is None:
        if not sys.stdin.isatty():
            raise SeedError(f"hidden cases are generated from a seed: give --seed-file; {HOW}")
        return parse_seed(getpass.getpass("Seed: "))
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")[:1000]
    except OSError as error:
        raise SeedError(f"{path} cannot be read ({error.strerror}): {HOW}") from None
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"{path} can be read by others on this machine: chmod 600 {path}")
    try:
        return parse_seed(text)
    except SeedError as error:
        raise SeedError(f"{path}: {error}") from None


def seal(exam):
    """Return what tells an exam's seed from another without telling the seed."""
    salt, seed = exam.name.encode(), str(exam.seed).encode()
    return hashlib.pbkdf2_hmac("sha256", seed, salt, ROUNDS).hex()[:32]

"""The Chromium that prints the book and in which the tests read the site.

The headless shell comes first, since it opens a page in half the time. Where the system has no
Chromium, the one that `playwright install` has fetched is taken.
"""

import shutil

from playwright.sync_api import Error

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NoChromium(Exception):
    """Neither the system nor playwright has a Chromium."""


def launch(playwright):
    """Start a headless Chromium, with scroll bars, which playwright would hide.

    Raises
    ------
    NoChromium : none is installed
    """
    own = next(filter(None, map(shutil.which, NAMES)), None)
    try:
        return playwright.chromium.launch(
            executable_path=own, args=FLAGS, ignore_default_args=["--hide-scrollbars"]
        )
    except Error:
        if own:
            raise
        raise NoChromium(
            "There is no Chromium here. Debian: apt-get install chromium-headless-shell"
        ) from None

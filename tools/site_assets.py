"""Put what Python in the page needs into the built site, for hosts that ask no one else for it.

`make site-assets` fetches every file that `book/_static/pyodide.json` locks, compares it with its
sha256, keeps it in `_build/pyodide`, and copies all of them into `_build/html/_static/pyodide`.
`make site-assets FROM=file:///path/` takes them from a folder instead, such as an unpacked
release of Pyodide.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "book" / "_static" / "pyodide.json"
CACHE = ROOT / "_build" / "pyodide"
SITE = ROOT / "_build" / "html" / "_static"
TIMEOUT = 60  # seconds without an answer


def fetch_file(name: str, expected_sha256: str, url: str) -> str | None:
    """Bring one file into the cache unless it is there; return what went wrong, if anything."""
    kept = CACHE / name
    if kept.is_file() and hashlib.sha256(kept.read_bytes()).hexdigest() == expected_sha256:
        return None
    try:
        with urlopen(url.rstrip("/") + "/" + name, timeout=TIMEOUT) as response:
            content = response.read()
    except (URLError, TimeoutError) as error:
        return f"{name} did not load from {url}: {getattr(error, 'reason', error)}"
    found = hashlib.sha256(content).hexdigest()
    if found != expected_sha256:
        return f"{name} from {url} has the sha256 {found}, not {expected_sha256}; it is not used"
    CACHE.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return None


def place_files(lock: dict):
    """Copy the files of the cache into the site, and let its pages load them from there."""
    target = SITE / "pyodide"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in lock["files"]:
        shutil.copyfile(CACHE / name, target / name)
    text = json.dumps(lock | {"base": "pyodide/"}, indent=2) + "\n"
    (SITE / LOCK.name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Fetch and place all files; say what was done or what could not be."""
    lock = json.loads(LOCK.read_text(encoding="utf-8"))
    if not (SITE / LOCK.name).is_file():
        print("The site is not built. Run `make book` first.", file=sys.stderr)
        return 1
    source = arguments[0] if arguments else lock["base"]
    troubles = [t for t in (fetch_file(n, s, source) for n, s in lock["files"].items()) if t]
    if troubles:
        print(*troubles, "The site is as it was.", sep="\n", file=sys.stderr)
        return 1
    place_files(lock)
    print(f"==> {len(lock['files'])} files of Pyodide {lock['version']} are in {SITE / 'pyodide'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Put what Python in the page needs into the built site, for hosts that ask no one else for it.

`make site-assets` fetches every file that `book/_static/pyodide.json` locks, compares it with its
sha256, keeps it in `_build/pyodide`, and copies all of them into `_build/html/_static/pyodide`.
`make site-assets FROM=file:///path/` takes them from a folder instead, such as an unpacked
release of Pyodide.

`python -m tools.site_assets --lock FOLDER` writes the lock anew from the unpacked npm package
`pyodide`, which holds the core and names the sha256 of every wheel.
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
HOST = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
CORE = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"),
    *("python_stdlib.zip", "pyodide-lock.json"),
)
PACKAGES = ("matplotlib", "numpy")
TIMEOUT = 60  # seconds without an answer


def sha256(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def with_dependencies(packages: dict, names) -> set[str]:
    """Return the packages of these names and all that they depend on."""
    found, waiting = set(), set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= set(packages[name]["depends"]) - found
    return found


def make_lock(folder: Path) -> dict:
    """Return the lock of an unpacked npm package `pyodide`: its files, and the wheels it names."""
    version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    packages = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    wheels = (packages[name] for name in with_dependencies(packages, PACKAGES))
    files = {name: sha256(folder / name) for name in CORE}
    files |= dict(sorted((wheel["file_name"], wheel["sha256"]) for wheel in wheels))
    base = HOST.format(version=version)
    return {"version": version, "base": base, "packages": list(PACKAGES), "files": files}


def fetch(name: str, expected: str, source: str) -> str | None:
    """Bring one file into the cache unless it is there; return what went wrong, if anything."""
    kept = CACHE / name
    if kept.is_file() and sha256(kept) == expected:
        return None
    try:
        with urlopen(source.rstrip("/") + "/" + name, timeout=TIMEOUT) as response:
            content = response.read()
    except (URLError, TimeoutError) as error:
        return f"{name} did not load from {source}: {getattr(error, 'reason', error)}"
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        return f"{name} from {source} has the sha256 {found}, not {expected}; it is not used"
    CACHE.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return None


def place(lock: dict):
    """Copy the files of the cache into the site, and let its pages load them from there."""
    target = SITE / "pyodide"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in lock["files"]:
        shutil.copyfile(CACHE / name, target / name)
    write(SITE / LOCK.name, lock | {"base": "pyodide/"})


def write(path: Path, lock: dict):
    """Write a lock as the repository has it."""
    path.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Fetch and place all files, or write the lock; say what was done or what could not be."""
    if arguments[:1] == ["--lock"]:
        write(LOCK, make_lock(Path(arguments[1])))
        return 0
    lock = json.loads(LOCK.read_text(encoding="utf-8"))
    if not (SITE / LOCK.name).is_file():
        print("The site is not built. Run `make book` first.", file=sys.stderr)
        return 1
    source = arguments[0] if arguments else lock["base"]
    troubles = [t for t in (fetch(n, s, source) for n, s in lock["files"].items()) if t]
    if troubles:
        print(*troubles, "The site is as it was.", sep="\n", file=sys.stderr)
        return 1
    place(lock)
    print(f"==> {len(lock['files'])} files of Pyodide {lock['version']} are in {SITE / 'pyodide'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

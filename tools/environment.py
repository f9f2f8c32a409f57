"""Make `.venv`, and put into it what a target of make needs: `python3 tools/environment.py book`.

| stage | what is there afterwards |
|---|---|
| `made` | Python alone |
| `book` | what the site needs |
| `pdf` | the same, and what its printing needs |
| `test` | the same, and what the tests need; no PyTorch |
| `torch` | the same, and PyTorch |
| `real` | the same, and the weights of a real model, where they can be fetched |
| `oldest` | in `_build/oldest`, the oldest versions that pyproject.toml promises |
| `colab` | in `_build/colab`, the versions of Colab's runtime, and the book's PyTorch |
| `lock` | requirements.lock, renewed by uv, for which an environment is made and removed |

A step installs its part of requirements.lock, files with these hashes and no others, and the
project itself without what it depends on. PyTorch alone has no hash: its builds differ. The weights
are those of requirements.real; without them make goes on, and the tests name what they skip.

What is there already, from the same requirements, is left alone. Two settings are make's own:
PYTHON is there when the caller has named one, and then `.venv` gets that version; CONSTRAINTS
names files that fix versions, in place of the lock, and none of them asks for the newest that
pyproject.toml allows, PyTorch's too. These go into `_build/newest`, and `.venv` stays as it is.

The caller's Python runs this file, whatever its version is: so the standard library alone, and
until the version is known nothing that Python 3.8 cannot read.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
THIS = ".".join(map(str, sys.version_info[:2]))
FILES = ("pyproject.toml", "requirements.txt", "requirements.lock", "requirements.real")
STEPS = ("build", "book", "pdf", "test", "torch", "real")
STAGES = {step: STEPS[:n] for n, step in enumerate(STEPS, start=1)} | {"made": ()}
OPTIONAL = {"real"}  # the steps without which make goes on
OF_THEIR_TIME = ("pyparsing<3.3",)  # which Matplotlib 3.10 calls by names that 3.3 warns of
COLAB = ("numpy==2.1.3", "matplotlib==3.10.0")  # its runtime, August 2026
RUNNER = ("ipykernel", "nbclient", "nbformat")  # runs a notebook there
EXTRAS = {  # of each step, in the order of requirements.lock
    "build": "build",
    "book": "book,plot",
    "pdf": "pdf",
    "test": "test",
    "torch": "torch",
    "lock": "lock",
}
WHAT = {  # where the name of a step does not say it
    "build": "pip",
    "book": "what the site needs",
    "test": "what the tests need besides PyTorch",
    "torch": "PyTorch, which takes some minutes",
    "real": "the weights of a real model",
}
LOCKED = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", "/dev/stdin"]
ITSELF = ["--no-deps", "--no-build-isolation", "--editable", "."]
HEAD = """\
# Every version that requirements.txt brings in, on every system and from the oldest Python on, with
# the sha256 of each of its files. Made by `make lock`; not edited by hand. Without PyTorch, whose
# builds differ from index to index: it is installed by its exact version, with what a build brings
# along, such as triton and the libraries of CUDA. A step of tools/environment.py installs the
# packages below its name that no step above it has.
"""


class CannotPrepare(Exception):
    """Something outside is missing; the message is one sentence that says what to do."""


def python_of(folder):
    """Return the path of an environment's Python."""
    return folder / "bin" / "python"


def version_of(folder):
    """Return the version of an environment's Python, such as "3.12", or None."""
    config = folder / "pyvenv.cfg"
    found = re.search(r"^version\S* *= *(\d+\.\d+)", text_of(config), re.MULTILINE)
    return found and found[1]


def text_of(path):
    """Return the text of a file, without what ends its last line; none where there is no file."""
    return path.read_text(encoding="utf-8").rstrip() if path.is_file() else ""


def is_usable(folder, named):
    """Whether an environment is there, made here, and with the Python that was `named`, if any."""
    here = os.access(str(python_of(folder)), os.X_OK) and text_of(folder / ".made") == str(ROOT)
    return here and (not named or version_of(folder) == THIS)


def require_python(name):
    """Refuse a Python, by the name the caller knows it by, that cannot make the environment.

    Raises
    ------
    CannotPrepare : another version, or without venv or ensurepip
    """
    complete = all(importlib.util.find_spec(module) for module in ("ensurepip", "venv"))
    if THIS in PYTHONS and complete:
        return
    needed = f"{', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}"
    found = f"Python {THIS}" + (" without them" if THIS in PYTHONS else "")
    raise CannotPrepare(
        f"The book needs Python {needed} with venv and ensurepip, and {name} is {found}: install "
        "one (Debian: apt-get install python3 python3-venv) and name it, for example "
        "make book PYTHON=python3.12"
    )


def make(folder, named=None):
    """Make an environment where it is missing or does not fit; one that make did not is kept."""
    if is_usable(folder, named):
        return
    require_python(named or "python3")
    print(f"==> Making {folder.relative_to(ROOT)} with Python {THIS}", flush=True)
    clear = ["--clear"] if (folder / ".made").exists() else []
    run(
        [sys.executable, "-m", "venv", *clear, str(folder)],
        f"Python's venv could not make {folder.relative_to(ROOT)}: its own words are above; "
        "remove that folder and repeat the command.",
    )
    (folder / ".made").write_text(str(ROOT), encoding="utf-8")


def run(command, trouble, **options):
    """Run a command in the tree.

    Raises
    ------
    CannotPrepare : it fails; the message is `trouble`
    """
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=str(ROOT), env=env, check=False, **options)
    if done.returncode:
        raise CannotPrepare(trouble)
    return done


def install(folder, step, calls):
    """Let pip install, unless it has installed the same from the same files.

    Parameters
    ----------
    calls : of pip, each its words and the lines that it reads
    """
    told = [word for words, _ in calls for word in words]
    read = [text_of(ROOT / name) for name in FILES]
    key = hashlib.sha256("\0".join([*told, *read]).encode("utf-8")).hexdigest()
    marker = folder / f".{step}"
    if text_of(marker) == key:
        return
    what = WHAT.get(step, step)
    print(f"==> Installing {what}", flush=True)
    trouble = (
        f"pip could not install {what}: its own words are above; it needs the network once "
        "(behind a proxy set HTTPS_PROXY), then repeat the command."
    )
    for words, lines in calls:
        command = [str(python_of(folder)), "-m", "pip", "install", *words]
        run(command, trouble, input=lines.encode("utf-8"))
    if step in ("test", "colab"):  # the first use of fonts prints a line, into a cell's output
        run([str(python_of(folder)), "-c", "import matplotlib.font_manager"], trouble)
    marker.write_text(key, encoding="utf-8")


def pip_calls(step):
    """Return what pip is told for a step of an environment, call by call."""
    if step == "real":
        return [(LOCKED, text_of(ROOT / "requirements.real"))]
    if "CONSTRAINTS" in os.environ:
        names = os.environ["CONSTRAINTS"].split()
        fixed = [word for name in names for word in ("--constraint", name)]
        return [([*fixed, "--editable", f".[{EXTRAS[step]}]"], "")]
    exactly = pinned(["torch", "triton"]) if step == "torch" else []
    after = [ITSELF] if step == "book" else [exactly] if exactly else []
    return [(LOCKED, lock_section(step)), *((words, "") for words in after)]


def lock_section(step):
    """Return the lines of requirements.lock that belong to a step."""
    lock = text_of(ROOT / "requirements.lock")
    return lock.partition(f"# [{step}]\n")[2].partition("# [")[0]


def locked_versions():
    """Return the packages of requirements.lock without their hashes, as pip reads them."""
    lock = text_of(ROOT / "requirements.lock")
    return re.findall(r"^(\w.*?) \\$", lock, flags=re.MULTILINE)


def pinned(names):
    """Return the lines of requirements.txt for these names, such as "torch==2.13.0"."""
    lines = text_of(ROOT / "requirements.txt").splitlines()
    return [line for line in lines if line.partition("==")[0] in names]


def oldest():
    """Make `_build/oldest`: the oldest versions of what is promised, the tests' tools as pinned."""
    named, folder = os.environ.get("PYTHON"), ROOT / "_build" / "oldest"
    require_python(named or "python3")
    make(folder, named)
    import tomllib  # which an older Python has not

    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    ranges = [re.fullmatch(r"([\w.-]+)>=([\d.]+)", line) for group in groups for line in group]
    least = [f"{found[1]}=={found[2]}" for found in ranges if found]
    wanted = [*least, *OF_THEIR_TIME, *pinned(project["optional-dependencies"]["test"])]
    install(folder, "build", pip_calls("build"))
    itself = ["--no-build-isolation", "--editable", ".[plot,test,torch]"]
    install(folder, "oldest", [([*wanted, *itself], "")])


def colab():
    """Make `_build/colab`, in which chapters are tried alone.

    Colab's own PyTorch would bring gigabytes of CUDA. What Colab does not fix is as the lock has
    it, without hashes, which Colab's own versions have not here.
    """
    folder, wanted = ROOT / "_build" / "colab", [*COLAB, *pinned(["torch", "setuptools"]), *RUNNER]
    make(folder, os.environ.get("PYTHON"))
    free = {line.partition("==")[0] for line in COLAB}
    fixed = [line for line in locked_versions() if line.partition("==")[0] not in free]
    (folder / "constraints.txt").write_text("\n".join(fixed), encoding="utf-8")
    words = ["--no-compile", "--constraint", str(folder / "constraints.txt")]
    install(folder, "colab", [([*words, *wanted], "")])


def lock():
    """Renew requirements.lock from requirements.txt."""
    folder = ROOT / "_build" / "lock"
    shutil.rmtree(str(folder), ignore_errors=True)
    make(folder)
    for step in ("build", "lock"):
        install(folder, step, pip_calls(step))
    text = locked(folder)
    (ROOT / "requirements.lock").write_text(text, encoding="utf-8")
    shutil.rmtree(str(folder))
    print("==> requirements.lock is renewed")


def locked(folder):
    """Return the text of requirements.lock, resolved by the uv of an environment.

    Of what PyTorch needs there is what it needs on Windows, where its build brings no CUDA.
    """
    every = resolved(folder, EXTRAS, "--universal", "--generate-hashes")
    (folder / "every").write_text("\n".join(every), encoding="utf-8")
    parts, told = [HEAD], {"torch"}
    for step in EXTRAS:
        where = ["--python-platform", "windows"] if step == "torch" else ["--universal"]
        found = resolved(folder, [step], *where, "--constraint", str(folder / "every"))
        names = {line.partition("==")[0] for line in found} - told
        lines = [line for line in every if line.partition("==")[0] in names]
        parts.append("\n".join([f"# [{step}]", *lines]) + "\n")
        told |= names
    return "\n".join(parts)


def resolved(folder, steps, *options):
    """Return what uv finds for the extras of some steps: a package an entry, hashes below it."""
    names = ",".join(EXTRAS[step] for step in steps).split(",")
    extras = [word for name in names for word in ("--extra", name)]
    uv = [str(python_of(folder)), "-m", "uv", "pip", "compile", "--quiet", "--no-build"]
    plain = ["--no-header", "--no-annotate", "--constraint", "requirements.txt"]
    pythons = ["--python-version", PYTHONS[0], "--fork-strategy", "fewest"]  # one version for all
    command = [*uv, *plain, *pythons, *extras, *options, "pyproject.toml"]
    trouble = "uv could not resolve requirements.txt: its own words are above."
    text = run(command, trouble, stdout=subprocess.PIPE).stdout.decode("utf-8")
    return re.split(r"\n(?=\w)", text.strip())


APART = {"oldest": oldest, "colab": colab, "lock": lock}  # environments of their own


def main(stage):
    """Prepare a stage; return 1 where something is missing, once it is said."""
    step = None
    try:
        if stage in APART:
            APART[stage]()
            return 0
        folder = ROOT / ("_build/newest" if "CONSTRAINTS" in os.environ else ".venv")
        make(folder, os.environ.get("PYTHON"))
        for step in STAGES[stage]:
            install(folder, step, pip_calls(step))
        return 0
    except CannotPrepare as trouble:
        print(trouble, file=sys.stderr)
        return int(step not in OPTIONAL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

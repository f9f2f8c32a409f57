"""The set-up: one Makefile, pinned versions, and the places that repeat either."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from tools import blas_matrix, environment

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
README, RUNNING = ((ROOT / p).read_text("utf-8") for p in ("README.md", "book/running.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = list(environment.PYTHONS)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COMES_WITH_JUPYTER_BOOK = {"docutils", "sphinx", "myst_nb"}
COMES_WITH_PYODIDE = {"js", "pyodide"}
PYTORCH = ["torch", "triton"]  # without hashes: builds differ from index to index
LOCKED = re.compile(r"[\w.-]+==[\w.]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")

# Stands in for Python: makes an environment of a stub.
FAKE_PYTHON = """\
#!/bin/sh
test "$1" = tools/environment.py || { echo "$(basename "$0") $@"; exit 0; }
test "$2" != "$FAILS" || { echo "One sentence." >&2; exit 1; }
mkdir -p .venv/bin
touch ".venv/.$2"
cp "$0" .venv/bin/jupyter-book
"""


def normalised(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file="requirements.txt") -> dict[str, str]:
    """Return the versions of a file of requirements, each of which must be exact."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    named = [line.partition(";")[0] for line in lines if line and not line.startswith("#")]
    pinned = [line.split("==") for line in named]
    assert all(len(pin) == 2 for pin in pinned), "a line of requirements.txt is no name==version"
    return {normalised(name): version for name, version in pinned}


def clean_environment() -> dict[str, str]:
    """Return the environment without what an outer make, or a caller's choice, puts there."""
    outer = ("MAKE", "MFLAGS", "PYTHON", "CONSTRAINTS", "JOBS", "GNUMAKEFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(outer)}


def make_here(*arguments: str) -> list[str]:
    """Run make in the tree itself and return the lines that it printed."""
    command, env = ["make", *arguments], clean_environment()
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_every_direct_dependency_is_pinned_and_the_lock_agrees():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    named = {normalised(re.match(r"[\w.-]+", line)[0]) for group in groups for line in group}
    assert named == pins().keys()
    lines = [line.partition(" ;")[0].split("==") for line in environment.locked_versions()]
    locked = {(normalised(name), version) for name, version in lines}
    missing = pins().items() - locked
    exempt = {normalised(line.partition("==")[0]) for line in environment.pinned(PYTORCH)}
    assert {name for name, _ in missing} == exempt, "run make lock"
    assert not [version for _, version in locked if "+" in version]


def test_every_package_of_the_lock_has_its_hashes():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").removeprefix(environment.HEAD)
    packages = re.split(r"\n(?=\w)", re.sub(r"^# \[\w+\]\n", "", lock, flags=re.M).strip())
    wrong = [package for package in packages if not LOCKED.fullmatch(package.strip())]
    assert not wrong, f"no name==version with hashes below it; run make lock: {wrong}"


def test_every_import_is_a_direct_dependency():
    folders = ("src", "tests", "tools", "experiments", "book", "coursework")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    beside = {path.stem for path in (ROOT / "coursework" / "grader").glob("worker_*.py")}
    own = {*folders, *beside, "tutorial_lib"}
    imported = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    foreign = imported - own - set(sys.stdlib_module_names)
    foreign -= COMES_WITH_JUPYTER_BOOK | COMES_WITH_PYODIDE | set(pins("requirements.peers"))
    distributions = packages_distributions()
    pinned = pins()
    unpinned = {
        n for n in foreign if not any(normalised(d) in pinned for d in distributions.get(n, ()))
    }
    assert not unpinned, f"add to pyproject.toml and requirements.txt, then `make lock`: {unpinned}"


def test_help_lists_the_eight_targets_of_a_contributor_and_help_all_every_target():
    targets = set(re.search(r"^\.PHONY: (help .*)$", MAKEFILE, re.MULTILINE)[1].split())
    few, every = make_here(), make_here("help-all")
    contributors = "help-all book serve chapter check test notebooks format"
    assert [line.split()[1] for line in few] == contributors.split()
    assert {line.split()[1] for line in every} == targets - {"browser", "colab", "oldest", "python"}
    assert all(len(line) < 110 for line in few + every)
    assert set(words(" ".join(few))) <= set(words(" ".join(every)))


def test_make_asks_for_its_environment_and_stops_after_one_sentence_without_it(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    fake = tmp_path / "fake-python"
    fake.write_text(FAKE_PYTHON, encoding="utf-8")
    fake.chmod(0o755)
    runs = {}
    for wrong in ("", "book"):
        env = clean_environment() | {"FAILS": wrong}
        command = ["make", "book", "PYTHON=./fake-python"]
        runs[wrong] = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "jupyter-book build . -W -n --keep-going --all" in runs[""].stdout
    assert runs["book"].returncode != 0
    sentence, made = runs["book"].stderr.splitlines()
    assert sentence == "One sentence."
    assert made.startswith("make: ***")


def test_the_number_that_the_guide_changes_is_said_by_its_chapter_once():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    chapter = (ROOT / "notebooks" / "05_concatenation.ipynb").read_text(encoding="utf-8")
    [(old, new)] = re.findall(r"Change the cell, for example `(.+)` to `(.+)`", guide)
    assert chapter.count(old) + chapter.count(new) == 1  # somebody may have followed it
    [(name, comment)] = re.findall(r"cell (\S+): the text says .*?(<!-- .+? -->)", guide, re.DOTALL)
    assert f'"id": "{name}"' in chapter
    assert comment in chapter


def test_what_assistants_are_told_is_in_the_guide():
    told = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = re.findall(r"`(make [^`]+)`", told)
    assert len(commands) == 2
    assert [command for command in commands if command not in guide] == []
    [rule] = re.findall(r"^- (What is shown is what was run.*)$", told, re.MULTILINE)
    assert rule.lower() in guide.lower()


def test_commands_without_make_are_those_that_make_runs(monkeypatch):
    monkeypatch.delenv("CONSTRAINTS", raising=False)
    section = RUNNING.partition("# Without make")[2].partition("```sh\n")[2].partition("```")[0]
    written = {tuple(words(line)) for line in section.replace("\\\n", " ").splitlines() if line}
    asked = re.compile(r"jupyter-book|pytest")
    lines = [line for line in make_here("-n", "-B", "test") if asked.search(line)]
    assert len(lines) == 2
    assert not [line for line in lines if tuple(words(line)) not in written]
    told = [list(line[4:]) for line in written if line[1:4] == ("-m", "pip", "install")]
    calls = [call for step in environment.STAGES["real"] for call, _ in environment.pip_calls(step)]
    files = "requirements.lock", "requirements.real"  # what a call of the same words reads
    whole = [[f if w == "/dev/stdin" else w for w in environment.LOCKED] for f in files]
    made = {tuple(call) for call in [*whole, *calls] if call != environment.LOCKED}
    assert made == set(map(tuple, told))


def words(line: str) -> list[str]:
    """Return a command's words without what sets one thread."""
    return [w for w in shlex.split(line) if not w.startswith(("OMP_NUM", "MKL_NUM"))]


def test_python_versions_agree():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert "3.11, 3.12, 3.13 or 3.14" in README
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS


def test_commands_for_windows_are_those_for_linux():
    linux, windows = (
        RUNNING.partition(f"### {heading}\n")[2].split("```")[1].replace("\\\n    ", "")
        for heading in ("Without make", "On Windows")
    )
    first, *lines = [line for line in windows.splitlines()[1:] if line]
    assert first.startswith("py -")
    for line in lines:
        said = re.sub(r"\$env:(\w+) = (\w+)", r"\1=\2", line)
        assert said.replace(".venv\\Scripts\\", ".venv/bin/") in linux


def runs_of(path, system):
    """Return the commands of a workflow's jobs on a system."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    steps = [step for job in jobs if job["runs-on"].endswith(system) for step in job["steps"]]
    return {step["run"] for step in steps if "run" in step}


def test_windows_installs_and_builds_by_the_commands_of_the_page():
    [path] = [path for path in WORKFLOWS if path.stem == "weekly"]
    block = RUNNING.partition("### On Windows\n")[2].split("```")[1]
    commands = runs_of(path, "windows-latest")
    [tests] = commands - set(block.splitlines())
    assert len(commands) == 5
    check = words(" ".join(line.rstrip("\\") for line in make_here("-n", "-B", "check")[-3:]))
    assert set(check[check.index("-p") : -1]) <= set(words(tests))


def test_the_container_prepares_the_stage_of_make_test_and_ends_in_it():
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == 'CMD ["make", "test"]'
    assert "RUN python3 tools/environment.py real" in lines
    assert re.search(r"^test: .*\$\(REAL\)", MAKEFILE, re.MULTILINE)


def test_continuous_integration_calls_targets_of_the_makefile_and_nothing_else():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    called = set()
    for path in WORKFLOWS:
        runs = runs_of(path, "-latest") - runs_of(path, "windows-latest")
        called |= {run.split()[1] for run in runs if run.startswith("make ")}
        assert all(run.startswith(("make ", "command -v ")) for run in runs), path.name
    assert called <= targets
    checks = {"check", "test", "test-all", "test-blas", "test-library", "test-oldest"}
    checks |= {"test-peers"}
    assert called == checks | {"book", "colab-check", "pdf", "pictures", "site-assets"}
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").split()[-1] == "test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_actions_by_commit_and_hands_out_no_rights(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"\buses: *(.*)", text)
    by_commit = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    wrong = [line for line in used if not by_commit.fullmatch(line)]
    assert not wrong, f"write owner/name@<commit, 40 digits> # v1.2.3: {wrong}"
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert {name for name, job in jobs.items() if "permissions" in job} <= {"publish"}
    if "publish" in jobs:
        publish = jobs.pop("publish")
        assert set(publish["needs"]) == set(jobs), "the job that publishes needs all the others"
        assert publish["if"] == "${{ github.ref == 'refs/heads/main' }}"
        assert len(publish["steps"]) == 1, "it runs nothing with its right to write"


@pytest.mark.parametrize(("kernel", "threads"), [("NoSuchKernel", "1"), (None, "64")])
def test_a_blas_run_with_another_kernel_or_thread_count_stops(monkeypatch, kernel, threads):
    monkeypatch.setenv("OPENBLAS_CORETYPE", kernel or blas_matrix.blas_in_use()[0])
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", threads)
    with pytest.raises(pytest.exit.Exception, match="was asked for"):
        blas_matrix.pytest_sessionstart(None)


def test_the_runs_of_the_blas_lane_hold_every_setting():
    values = blas_matrix.KERNELS["x86_64"], ("c", "b", "a"), ("2", "1"), ("", "x"), ("1", "2")
    factors = dict(zip(blas_matrix.OPTIONS, values, strict=True))
    runs = blas_matrix.choose_runs(factors)
    assert len(runs) == blas_matrix.MOST_RUNS
    for name, of in factors.items():
        assert {run[name] for run in runs} == set(of), f"{name} lacks a value"
    first, second = runs[:2]
    assert not first.items() & second.items()


def test_a_kernel_whose_products_are_wrong_or_that_is_not_used_is_left_out(monkeypatch):
    answers = {"A": None, "B": ["C", 1, "avx2", True], "D": ["D", 1, "avx2", False]}
    answers["E"] = ["E", 1, "avx2", True]
    monkeypatch.setattr(blas_matrix, "probe", lambda run: answers[run["OPENBLAS_CORETYPE"]])
    assert [kernel for kernel in answers if blas_matrix.is_usable(kernel)] == ["E"]


def test_the_blas_lane_fails_with_a_run_that_fails(monkeypatch, capfd, tmp_path):
    values = (("A", "B"), ("c",), ("d",), ("",), ("1",))
    factors = dict(zip(blas_matrix.OPTIONS, values, strict=True))
    monkeypatch.setattr(blas_matrix, "available_settings", lambda most: factors)
    monkeypatch.setattr(blas_matrix, "probe", lambda run: [run["OPENBLAS_CORETYPE"], 1, "c", True])
    script = tmp_path / "script.py"
    script.write_text('import os, sys; sys.exit(os.environ["OPENBLAS_CORETYPE"] == "A")', "utf-8")
    assert blas_matrix.main([sys.executable, str(script)]) == 1
    told = capfd.readouterr().out.splitlines()[-2:]
    assert [line.partition(": OPEN")[0] for line in told] == [
        "==> FAILED (pytest: 1)",
        "==> passed",
    ]

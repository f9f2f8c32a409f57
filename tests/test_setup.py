"""The set-up: one Makefile, pinned versions, and the places that repeat either."""

import ast
import json
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

from tests.site import browsing
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

# Stands in for Python: says which stage it is asked for, and makes it of stubs.
FAKE_PYTHON = """\
#!/bin/sh
echo "$@" >> "$LOG"
test "$1" = tools/environment.py || exit 0
test "$2" != "$FAILS" || { echo "One sentence." >&2; exit 1; }
mkdir -p .venv/bin
test -e ".venv/.$2" || touch ".venv/.$2"
for tool in python jupyter-book ruff; do cp "$0" .venv/bin/$tool; done
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


@pytest.fixture
def tree(tmp_path):
    """A folder with the Makefile, and a stand-in for Python."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    fake = tmp_path / "fake-python"
    fake.write_text(FAKE_PYTHON, encoding="utf-8")
    fake.chmod(0o755)
    return tmp_path


def clean_environment() -> dict[str, str]:
    """Return the environment without what an outer make, or a caller's choice, puts there."""
    outer = ("MAKE", "MFLAGS", "PYTHON", "CONSTRAINTS", "JOBS", "GNUMAKEFLAGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(outer)}


def make_here(*arguments: str) -> list[str]:
    """Run make in the tree itself and return the lines that it printed."""
    command, env = ["make", *arguments], clean_environment()
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def make(tree: Path, target: str, *, python: str = "./fake-python", fails: str = ""):
    """Run make and return its result, with the lines that reached the stand-in for Python."""
    log = tree / "log"
    log.write_text("", encoding="utf-8")
    env = clean_environment() | {"LOG": str(log), "FAILS": fails}
    command = ["make", target, f"PYTHON={python}"]
    run = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    return run, log.read_text(encoding="utf-8").splitlines()


def stages(lines: list[str]) -> list[str]:
    """Return the stages of the environment that were asked for, in order."""
    return [line.split()[1] for line in lines if line.startswith("tools/environment.py")]


@pytest.mark.parametrize(
    ("target", "needs"), [("book", {"book"}), ("lint", {"test"}), ("test", {"real"})]
)
def test_a_target_asks_for_what_it_needs_and_no_more(tree, target, needs):
    run, lines = make(tree, target)
    assert run.returncode == 0, run.stderr
    steps = {step for stage in stages(lines) for step in environment.STAGES[stage]}
    assert steps == {step for stage in needs for step in environment.STAGES[stage]}


def test_site_is_built_once_and_again_when_something_was_installed(tree):
    build = "build . -W -n --keep-going --all"
    assert build in make(tree, "book")[1]
    run, lines = make(tree, "book")
    assert run.returncode == 0, run.stderr
    assert lines == ["tools/environment.py book"]
    (tree / ".venv" / ".book").unlink()
    assert build in make(tree, "book")[1]


@pytest.mark.parametrize(
    ("python", "fails", "words"),
    [("./missing", "", "There is no ./missing here"), ("./fake-python", "book", "One sentence.")],
)
def test_without_its_environment_make_stops_after_one_sentence(tree, python, fails, words):
    run, lines = make(tree, "book", python=python, fails=fails)
    assert run.returncode != 0
    sentence, *rest = run.stderr.splitlines()
    assert words in sentence
    assert len(rest) == 1, "the rest is make's own line"
    assert rest[0].startswith("make: ***")
    assert lines == (["tools/environment.py book"] if fails else [])


def test_every_direct_dependency_is_pinned_and_the_lock_agrees():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    named = {normalised(re.match(r"[\w.-]+", line)[0]) for group in groups for line in group}
    assert named == pins().keys()
    lines = [line.partition(" ;")[0].split("==") for line in environment.locked_versions()]
    locked = {(normalised(name), version) for name, version in lines}
    missing = pins().items() - locked
    exempt = {normalised(line.partition("==")[0]) for line in environment.pins(PYTORCH)}
    assert {name for name, _ in missing} == exempt, "run make lock"
    assert not [version for _, version in locked if "+" in version]


def test_every_line_of_the_lock_has_its_hashes_and_every_step_its_part():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert lock.startswith(environment.HEAD)
    parts = re.split(r"^# \[(\w+)\]\n", lock.removeprefix(environment.HEAD), flags=re.MULTILINE)
    assert parts[1::2] == list(environment.EXTRAS)
    packages = [line for part in parts[2::2] for line in re.split(r"\n(?=\w)", part.strip())]
    wrong = [package for package in packages if not LOCKED.fullmatch(package)]
    assert not wrong, f"no name==version with hashes below it; run make lock: {wrong}"
    assert len(packages) == len(environment.locked_versions())


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


def test_what_check_reads_and_how_long_it_takes_is_said_alike():
    [line] = [line for line in make_here("help-all") if line.startswith("  make check ")]
    what, time = re.search(r"Check (.*) in (.*), without PyTorch", line).groups()
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"`make check` takes {time} and no PyTorch: {what}." in README
    assert re.search(rf"^make check .*# {time}: {what}; no PyTorch$", contributing, re.MULTILINE)
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert f"# {what[0].upper()}{what[1:]}: what needs neither PyTorch nor a browser." in workflow
    assert any('-m "not colab and not long"' in line for line in make_here("-n", "check"))
    assert make_here("-n", "check")[-1].split() == [
        *(f"tests/{folder}" for folder in ("chapters", "library", "practice")),
        "$names",
    ]


def test_number_that_the_guide_changes_is_in_one_cell_and_its_message_is_what_is_said():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [(old, new)] = re.findall(r"Change the cell, for example `(.+)` to `(.+)`", guide)
    either = re.compile(f"{re.escape(old)}|{re.escape(new)}")  # somebody may have followed it
    folders = ("notebooks", "book", "src", "coursework", "experiments", "tests")
    kinds = {".ipynb", ".md", ".py", ".json", ".txt", ".js"}
    files = [p for name in folders for p in (ROOT / name).rglob("*") if p.suffix in kinds]
    has_it = [path for path in files if either.search(path.read_text(encoding="utf-8"))]
    chapter = ROOT / "notebooks" / "05_concatenation.ipynb"
    assert has_it == [chapter], f"choose another example: {old} is in {has_it}"
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    assert sum(len(either.findall("".join(cell["source"]))) for cell in cells) == 1
    assert f"*1 of {len(cells)} cells shows something else" in guide
    told = r"cell (\S+): the text says \d+ in “(.+?)”,\s+but (<!-- .+? -->)"
    [(name, words, comment)] = re.findall(told, guide)
    [said] = ["".join(cell["source"]) for cell in cells if cell["id"] == name]
    assert re.search(re.sub(r"\d+", r"\\d+", re.escape(words)) + re.escape(comment), said)
    assert f'`"id": "{name}"`' in guide


def test_commands_without_make_are_those_that_make_runs(monkeypatch):
    monkeypatch.delenv("CONSTRAINTS", raising=False)
    section = RUNNING.partition("# Without make")[2].partition("```sh\n")[2].partition("```")[0]
    written = {tuple(words(line)) for line in section.replace("\\\n", " ").splitlines() if line}
    asked = re.compile(r"jupyter-book|pytest")
    lines = [line for line in make_here("-n", "-B", "test") if asked.search(line)]
    assert len(lines) == 2
    assert not [line for line in lines if tuple(words(line)) not in written]
    told = [list(line[4:]) for line in written if line[1:4] == ("-m", "pip", "install")]
    calls = [call for step in environment.STAGES["real"] for call, _ in environment.calls_of(step)]
    files = "requirements.lock", "requirements.real"  # what a call of the same words reads
    whole = [[f if w == "/dev/stdin" else w for w in environment.LOCKED] for f in files]
    made = {tuple(call) for call in [*whole, *calls] if call != environment.LOCKED}
    assert made == set(map(tuple, told))


def words(line: str) -> list[str]:
    """Return a command's words without what sets one thread."""
    return [w for w in shlex.split(line) if not w.startswith(("OMP_NUM", "MKL_NUM"))]


def test_a_browser_is_given_a_page_of_each_kind_and_in_test_all_every_page():
    given = browsing.sampled("page_name")
    assert sorted(name for name in given if isinstance(name, str)) == sorted(browsing.LIGHT)
    assert len(given) == len(browsing.PARAMETERS["page_name"])
    asked = {t: make_here("-n", t)[-1].split('"')[1] for t in ("test", "test-all")}
    assert asked["test"] == f"{asked['test-all']} and not picture and not long"


def test_python_versions_agree():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert "3.11, 3.12, 3.13 or 3.14" in README
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    assert tests["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS


def test_versions_and_port_in_the_commands_of_the_page_are_those_of_the_tools():
    named = re.findall(r"\b(?:python|py -)(3\.\d+)", RUNNING)
    assert named
    assert set(named) <= set(PYTHONS)
    assert f"http://localhost:{re.search(r'^PORT .= (.*)$', MAKEFILE, re.MULTILINE)[1]}," in RUNNING


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


def test_continuous_integration_calls_targets_of_the_makefile_and_nothing_else():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    called = set()
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        runs = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
        called |= {run.split()[1] for run in runs if run.startswith("make ")}
        assert all(run.startswith(("make ", "command -v ")) for run in runs), path.name
    assert called <= targets
    checks = {"check", "test", "test-all", "test-blas", "test-library", "test-oldest"}
    checks |= {"test-peers"}
    assert called == checks | {"book", "colab-check", "pdf", "pictures", "site-assets"}
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").split()[-1] == "test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def jobs() -> dict[str, dict]:
    """Return the jobs of all workflows, each below its file and name."""
    read = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS}
    return {f"{file}.{job}": read[file]["jobs"][job] for file in read for job in read[file]["jobs"]}


def steps(action: str) -> dict[str, dict]:
    """Return the steps that use an action, each below its job and place."""
    found = {f"{name}, step {i}": s for name, j in jobs().items() for i, s in enumerate(j["steps"])}
    return {where: s for where, s in found.items() if s.get("uses", "").startswith(f"{action}@")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_every_action_by_its_commit_and_says_the_version(path):
    used = re.findall(r"\buses: *(.*)", path.read_text(encoding="utf-8"))
    assert used
    wrong = [
        line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ]
    assert not wrong, f"write owner/name@<commit, 40 digits> # v1.2.3: {wrong}"


def test_a_checkout_leaves_no_credentials_behind():
    found = steps("actions/checkout")
    assert found
    wrong = [
        where
        for where, s in found.items()
        if s.get("with", {}).get("persist-credentials") is not False
    ]
    assert not wrong, f"say `persist-credentials: false`: {wrong}"


def test_a_workflow_may_read_and_the_job_that_publishes_alone_may_write():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path.name
    rights = {name: job["permissions"] for name, job in jobs().items() if "permissions" in job}
    assert rights == {"tests.publish": {"pages": "write", "id-token": "write"}}


def test_the_site_is_published_once_every_test_of_its_commit_has_passed():
    assert [where.partition(",")[0] for where in steps("actions/deploy-pages")] == ["tests.publish"]
    tests = {
        name.partition(".")[2]: job for name, job in jobs().items() if name.startswith("tests.")
    }
    publish = tests.pop("publish")
    assert set(publish["needs"]) == set(tests), "the job that publishes needs all the others"
    assert publish["if"] == "${{ github.ref == 'refs/heads/main' }}", "nor publishes a branch"
    assert len(publish["steps"]) == 1, "and runs nothing with its right to write"
    [where] = steps("actions/upload-pages-artifact")
    commands = [step.get("run") for step in tests["test"]["steps"]]
    assert where.startswith("tests.test,")
    place = int(where.rpartition(" ")[2])
    assert commands.index("make test") < commands.index("make pdf") < place, "what was tested"


def test_whoever_runs_every_test_has_a_browser_and_a_sandbox():
    for name, job in jobs().items():
        runs = [step.get("run", "") for step in job["steps"]]
        if any(re.match(r"make test(-all)?( |$)", run) for run in runs):
            tools = [run for run in runs if "apt-get install" in run]
            assert [run.split("install -y ")[1] for run in tools] == ["chromium bubblewrap; }"], (
                name
            )
            assert any("apparmor_restrict_unprivileged_userns=0" in run for run in runs), name


@pytest.mark.parametrize(("kernel", "threads"), [("NoSuchKernel", "1"), (None, "64")])
def test_a_blas_run_with_another_kernel_or_thread_count_stops(monkeypatch, kernel, threads):
    monkeypatch.setenv("OPENBLAS_CORETYPE", kernel or blas_matrix.blas_in_use()[0])
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", threads)
    with pytest.raises(pytest.exit.Exception, match="was asked for"):
        blas_matrix.pytest_sessionstart(None)


def test_the_runs_of_the_blas_lane_hold_every_setting_and_every_pair_that_eight_runs_can():
    kernels = blas_matrix.KERNELS["x86_64"]
    factors = {
        "kernel": kernels,
        "torch": ("c", "b", "a"),
        "mkl": ("2", "1"),
        "threads": ("1", "2"),
    }
    runs = blas_matrix.covering(factors)
    assert len(runs) == blas_matrix.MOST_RUNS
    for name, values in factors.items():
        assert {run[name] for run in runs} == set(values), f"{name} lacks a value"
    small = {name: values for name, values in factors.items() if name != "kernel"}
    pairs = {(run["torch"], run["mkl"]) for run in blas_matrix.covering(small)}
    assert len(pairs) == 6, "where eight runs are enough, every pair of two settings is there"


def test_a_kernel_whose_products_are_wrong_or_that_is_not_used_is_left_out(monkeypatch):
    answers = {"A": None, "B": ["C", 1, "avx2", True], "D": ["D", 1, "avx2", False]}
    answers["E"] = ["E", 1, "avx2", True]
    monkeypatch.setattr(blas_matrix, "probe", lambda run: answers[run["OPENBLAS_CORETYPE"]])
    reasons = {kernel: blas_matrix.why_left_out(kernel) for kernel in answers}
    assert reasons == {
        "A": "it crashes",
        "B": "NumPy uses C in its place",
        "D": "it gives wrong products",
        "E": "",
    }


def test_the_blas_lane_fails_with_a_run_that_fails(monkeypatch, capfd, tmp_path):
    values = (("A", "B"), ("c",), ("d",), ("",), ("1",))
    factors = dict(zip(blas_matrix.OPTIONS, values, strict=True))
    monkeypatch.setattr(blas_matrix, "factors_here", lambda most: factors)
    monkeypatch.setattr(blas_matrix, "probe", lambda run: [run["OPENBLAS_CORETYPE"], 1, "c", True])
    script = tmp_path / "script.py"
    script.write_text('import os, sys; sys.exit(os.environ["OPENBLAS_CORETYPE"] == "A")', "utf-8")
    assert blas_matrix.main([sys.executable, str(script)]) == 1
    told = capfd.readouterr().out.splitlines()[-2:]
    assert [line.partition(": OPEN")[0] for line in told] == [
        "==> FAILED (pytest: 1)",
        "==> passed",
    ]

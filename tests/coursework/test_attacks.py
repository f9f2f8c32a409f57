"""Hostile and broken hand-ins, in batches with honest ones: each gets what it earns.

The text of a file of `attacks/` is the graded cell of a hand-in, which may call the `right`
function; its docstring says what it tries, what it earns, and what the report then says.
`hostile_files` has what is wrong with a whole file.

Those that never come back are a batch of their own, with a short limit; the others have one that
only a hanging grader exceeds, so that a slow machine changes no result.
"""

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from coursework.grader.assignment import read_notebook, without_solutions
from coursework.grader.batch import as_bytes
from coursework.grader.records import BATCH, read_result
from tests.coursework.classes import NAME, ROOT, command, processes, table, text_of
from tests.coursework.hostile_files import FILES, Attack

HONEST = 2  # in each batch
PORT, FILE, NAP = "48765", "/tmp/attention-", "98.765"  # in attacks; each run has its own instead
SECONDS = {"endless": 3, "other": 60}  # of one test

pytestmark = pytest.mark.usefixtures("bubblewrap")


def hostile_cell(path):
    """Return the attack of a file, as its docstring promises."""
    text = path.read_text(encoding="utf-8")
    lines = dict(line.split(": ", 1) for line in text.split('"""')[1].splitlines() if ": " in line)
    return Attack(path.stem, int(lines["Earns"]), lines["Says"].replace("`", ""), text)


CELLS = [hostile_cell(path) for path in sorted(Path(__file__).with_name("attacks").glob("*.*py"))]


def right_cell():
    """Return a cell that gives an attack the right function, for what it does besides."""
    [cell] = [c for c in read_notebook(NAME).cells if "solution" in c.metadata.get("tags", [])]
    cell.metadata, cell.source = {}, cell.source.replace("attend_at_scales", "right")
    return cell


def put(attack, folder, content):
    """Put a file attack's hand-in into the class's folder; return its student."""
    before = set(os.listdir(folder))
    attack.act(folder, content)
    return sorted(set(os.listdir(folder)) - before)


def sampled(attacks):
    """The attacks as parameters; of those whose reports begin alike, all but the first are long."""
    seen, params = set(), []
    for attack in sorted(attacks):
        family = tuple(attack.words.split()[:2])
        is_long = [pytest.mark.long] * (family in seen)
        params.append(pytest.param(attack, id=attack.name, marks=is_long))
        seen.add(family)
    return params


@pytest.fixture(scope="module")
def chosen(request):
    """The attacks that this run asks for."""
    here = [item for item in request.session.items if item.path == request.path]
    return {item.callspec.params["attack"] for item in here if hasattr(item, "callspec")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder for all temporary ones, so that what runs there can be found."""
    return tmp_path_factory.mktemp("place")


def of_batch(attack):
    """Return the name of the batch that an attack belongs to."""
    return "endless" if "did not come back" in attack.words else "other"


class Target:
    """What attacks aim at: a port that listens, and a file that is there.

    Parameters
    ----------
    port : int
    folder : the file's
    """

    def __init__(self, port, folder):
        self.port, self.canary, self.nap = port, folder / "attention-canary", f"98.{port}"
        self.canary.touch()

    def aimed(self, text):
        """Return an attack's text, aimed at this."""
        text = text.replace(PORT, str(self.port)).replace(NAP, self.nap)
        return text.replace(FILE, str(self.canary).removesuffix("canary"))


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """What the attacks of this run aim at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Target(server.getsockname()[1], tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def classes(tmp_path_factory, chosen, target):
    """The folder of each batch, and which files attacks have put."""
    folders = {name: tmp_path_factory.mktemp(name) for name in SECONDS}
    for folder in folders.values():
        for i in range(HONEST):
            honest = read_notebook(NAME)
            honest.cells[0].source += f"\n\nStudent {i}"
            (folder / f"honest {i}.ipynb").write_bytes(as_bytes(honest))
    for attack in chosen.intersection(CELLS):
        notebook = without_solutions(read_notebook(NAME))
        [stub] = [c for c in notebook.cells if c.source.startswith("def attend_at_scales")]
        stub.source = target.aimed(attack.act)
        notebook.cells.insert(0, right_cell())
        (folders[of_batch(attack)] / f"{attack.name}.ipynb").write_bytes(as_bytes(notebook))
    right = as_bytes(read_notebook(NAME))
    files = sorted(chosen.intersection(FILES))
    return folders, {attack.name: put(attack, folders["other"], right) for attack in files}


@pytest.fixture(scope="module")
def said(tmp_path_factory, place, classes):
    """For each batch the folder of its results, and what the command has printed."""
    folders, _ = classes
    seed = tmp_path_factory.mktemp("seed") / "seed"
    seed.write_text("2027")
    seed.chmod(0o600)
    found = {}
    for name, seconds in SECONDS.items():
        out = tmp_path_factory.mktemp("results")
        options = ("--seconds", seconds, "--seed-file", seed, "--out", out)
        line, own = command("grade", NAME, folders[name], *options), {"TMPDIR": str(place)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        found[name] = out, subprocess.Popen(line, cwd=ROOT, env=os.environ | own, **pipes)
    return {name: (out, run.communicate()[0]) for name, (out, run) in found.items()}


@pytest.fixture(scope="module")
def graded(said, classes):
    """For each batch what it says and the folder of its results; which files attacks have put."""
    found = {name: (read_result(out / "batch.json", BATCH), out) for name, (out, _) in said.items()}
    return found, classes[1]


def row_of(graded, start, name="other"):
    """Return the line of a batch's grades.csv whose file begins so, and the student's report."""
    batch, out = graded[0][name]
    [entry] = [e for e in batch["handins"] if (e["file"] or e["student"]).startswith(start)]
    rows = [row for name, row in table(out).items() if name.lstrip("'") == entry["student"]]
    assert len(rows) == 1
    return rows[0], text_of(out, entry["id"])


@pytest.mark.parametrize("attack", sampled(CELLS))
def test_hostile_cell_gets_what_it_earns(graded, attack):
    row, report = row_of(graded, f"{attack.name}.ipynb", of_batch(attack))
    assert (int(row["points"]), attack.words in report) == (attack.points, True), report


FIRST = {
    "link_to_a_folder": "Folder of another",
    "name_from_right_to_left": "Mia",
    "name_in_no_alphabet": " ",
    "two_hand_ins": "twice (1)",
}


@pytest.mark.parametrize("attack", sampled(FILES))
def test_hostile_file_gets_what_it_earns(graded, attack):
    row, report = row_of(graded, FIRST.get(attack.name) or graded[1][attack.name][0])
    assert (int(row["points"]), attack.words in report) == (attack.points, True), report


def test_honest_students_in_the_same_batch_have_all_their_points(graded):
    for name in SECONDS:
        for i in range(HONEST):
            row, _ = row_of(graded, f"honest {i}", name)
            assert row["points"] == row["of"] == "10"


def test_nothing_is_left_running(graded, place, target):
    running = processes()
    assert target.nap not in running
    assert str(place) not in running


def test_what_the_command_prints_is_ours_and_printable(said):
    for _, text in said.values():
        assert re.search(r"\n\d+ students: ", text), text
        assert not re.search("Traceback|Warning|Error:", text), text
        assert re.sub(r"[\r\n]", "", text).isprintable()


def test_every_attack_aims_at_what_is_there(target):
    texts = [attack.act for attack in CELLS]
    for aim in (PORT, FILE, NAP):
        assert any(aim in text for text in texts)
        assert not any(aim in target.aimed(text) for text in texts)


def test_nothing_is_written_or_deleted_outside(graded, target):
    assert list(target.canary.parent.iterdir()) == [target.canary]


def test_no_report_holds_html_of_a_student_or_the_seed(graded, chosen):
    reports = [path for _, out in graded[0].values() for path in (out / "reports").glob("*/*")]
    assert len(reports) == len(chosen) + HONEST * len(SECONDS)
    for path in reports:
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "2027" not in text

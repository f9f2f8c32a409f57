"""A class's hand-ins are found in folders and zip files, and whose they are."""

import os
import random
import re
import shlex
import struct
import unicodedata
import zipfile
from pathlib import Path

import pytest

from coursework import __main__ as command_line
from coursework.grader import GraderError
from coursework.grader.files import Unreadable
from coursework.grader.handins import find_handins, who_pattern
from coursework.grader.roster import read_roster
from tests.coursework.classes import ROOT

ROSTERS = Path(__file__).with_name("rosters")
STORIES = Path(__file__).with_name("classes.txt").read_text("utf-8").partition("\n\n")[2]
STORIES = [line for line in STORIES.splitlines() if line]


def place(root, *names):
    """Put files into a folder, one minute and more after another, each with its name in it."""
    for i, name in enumerate(names):
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        os.utime(path, (1e9 + 1000 * i, 1e9 + 1000 * i))
    return root


def pack(path, *names, kind=zipfile.ZIP_STORED):
    """Write a zip file with one time for all, as Canvas does, each with its name in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name in names:
            content = "" if name[-1] == "/" else name
            archive.writestr(zipfile.ZipInfo(name, (2026, 5, 1, 12, 0, 0)), content, kind)
    return path


def given(root, form, names):
    """Return a class as a folder or as a zip file."""
    if form == "folder":
        return place(root / "class", *names)
    return pack(root / "class.zip", *names)


def counted(source, **options):
    """Return the file that counts, by student."""
    return {h.student: h.name for h in find_handins(source, **options)}


def why_not(source, student, **options):
    """Return why a student's hand-in cannot be read."""
    [handin] = [h for h in find_handins(source, **options) if h.student == student]
    with pytest.raises(Unreadable) as caught:
        handin.read()
    return str(caught.value)


def patterns_of_the_page():
    """The patterns of --who in the page's table, and what they are for."""
    page = (ROOT / "book" / "teaching_grading.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([\w, ]+) \| `([^`]*\{[^`]*)` \|", page, re.M))


def story(line):
    """Return the files of a line of `classes.txt`, and which of them counts for whom, and is so."""
    names, found, marks = [], {}, {}
    for piece in re.sub(r"\\u(\w{4})", lambda match: chr(int(match[1], 16)), line).split(" | "):
        name, _, rest = piece.partition(" > ")
        who, *own = rest.split("; ")
        names.append(name.strip())
        if who:
            found[who.removeprefix("no ")] = "" if who.startswith("no ") else name
            marks[who.removeprefix("no ")] = {*own}
    return names, found, marks


@pytest.mark.parametrize("line", STORIES)
def test_names_say_whose_hand_in_counts_and_what_can_be_read_in_two_ways_is_asked(tmp_path, line):
    files, options, asked = [*(part.strip() for part in line.split("||")), "", ""][:3]
    form, named = "folder zip", patterns_of_the_page()
    options = re.sub("<(.*?)>", lambda match: named[match[1]], options)
    if found := re.match("(zip|folder): ", files):
        form, files = found[1], files[found.end() :]
    names, found, marks = story(files)
    for source in [given(tmp_path, each, names) for each in form.split()]:
        words = ["grade", "heads", str(source), "--out", "x", *shlex.split(options)]
        words = command_line._argument_parser().parse_args(words)
        named = words.roster and read_roster(ROSTERS / f"{words.roster}.csv")
        if asked:
            with pytest.raises(GraderError, match=asked):
                command_line._hand_ins_of_class(words, named)
            continue
        handins = command_line._hand_ins_of_class(words, named)
        absent = {h.student for h in handins if h.problem == "nothing was handed in"}
        assert absent == {s.name for s in (named.students if named else ())} - {*found}
        handins = [handin for handin in handins if handin.student not in absent]
        assert {handin.student: handin.name for handin in handins} == found
        for handin in handins:
            own = {handin.why, f"back {handin.back}", f"id {handin.identifier or 'none'}"}
            own |= {"late" if handin.late else "on time", "held" * handin.held}
            assert marks[handin.student] <= own
            assert not handin.name or handin.problem or handin.read().decode() == handin.name


def test_what_a_pattern_leaves_aside_is_named(tmp_path):
    said, how = [], who_pattern("{name} - {file}")
    source = place(tmp_path, "an - 1.ipynb", "an.ipynb", "x.pdf", ".DS_Store")
    assert counted(source, layout=how, say=said.append) == {"an": "an - 1.ipynb"}
    aside = ["not as --who says (1): an.ipynb", "not notebooks (1): x.pdf"]
    assert said == [f"Left aside, {names}" for names in aside]


def test_every_pattern_of_the_page_is_tried():
    assert {*patterns_of_the_page()} == {*re.findall("<(.*?)>", "".join(STORIES))}


DATES = [
    ("Sep 9, 2026 102 AM", "Sep 9, 2026 958 AM", "Sep 9, 2026 1202 PM", "Sep 9, 2026 112 PM"),
    ("9 September, 2026 902", "9 September, 2026 1001", "10 September, 2026 1:00"),
    ("December 31, 2025 11:59 PM", "January 1, 2026 12:01 AM", "January 10, 2026 1201 AM"),
    ("2", "10"),
]


@pytest.mark.parametrize("dates", DATES)
def test_attempts_are_in_the_order_of_their_dates(tmp_path, dates):
    names = [f"anna - {date}/04.ipynb" for date in dates]
    for i in range(2, len(names) + 1):
        source = pack(tmp_path / "c.zip", *names[:i][::-1], "ben - 1/04.ipynb")
        found = find_handins(source, layout=who_pattern("{name} - {attempt}/{file}"))
        assert found[0].name == names[i - 1]
        assert (found[0].why, found[0].of) == ("the one of the newest attempt", i)


def test_a_pattern_of_many_parts_is_as_fast_with_every_name():
    """With each part tried at each length, one such name would take minutes."""
    pattern = who_pattern("*_{name}_{id}_{attempt}_*.ipynb")
    assert not pattern.fullmatch("_" * 248 + ".IPYNB")
    found = pattern.fullmatch("a__b_c_d_e_.ipynb.ipynb")
    assert found.groupdict() == {"name": "_b", "id": "c", "attempt": "d"}
    assert not who_pattern("*_{name}.ipynb").fullmatch("a/b_c.ipynb"), "a folder"
    found = who_pattern("{file}-{name}-{id}").fullmatch("a/b-c-d-e")
    assert found.groupdict() == {"file": "a/b-c", "name": "d", "id": "e"}


HELD = (  # a student's files, at one time; what is asked; which text answers it
    ("an/heads.ipynb | an/z.ipynb", "“heads.ipynb”, “z.ipynb”", "H"),
    ("a\x1b[2J/h.ipynb | a\x1b[2J/x.ipynb", "“h.ipynb”, “x.ipynb”", "h"),
    ("an/1/h.ipynb | an/2/h.ipynb", "“1/h.ipynb”, “2/h.ipynb”", "2/"),
    ("b/a.ipynb | b/a copy.ipynb", "“a copy.ipynb”, “a.ipynb”", "c"),
)


@pytest.mark.parametrize(("names", "why", "answer"), HELD)
def test_who_is_held_has_a_question_and_nobody_else(tmp_path, names, why, answer):
    names, said = names.split(" | "), []
    sources = [pack(tmp_path / "c.zip", *names, "zoe/x.ipynb")]
    sources.append(place(tmp_path / "class", *names, "zoe/x.ipynb"))
    for path in (tmp_path / "class").rglob("*"):
        os.utime(path, (1e9, 1e9 + len(path.name)))
    for source in sources:
        found, zoe = find_handins(source, say=said.append)
        assert (found.held, found.of, zoe.held) == (True, 2, False)
        with pytest.raises(Unreadable, match=f"not clear which notebook counts: {re.escape(why)}"):
            found.read()
        assert said[-1].isprintable()
        assert said[-1].startswith("1 held, the others are graded: it is not clear")
        assert f"{why}. Repeat the command with --notebook TEXT" in said[-1]
        found, _ = find_handins(source, notebook=[answer], say=said.append)
        assert (found.held, found.why) == (False, "the one that --notebook names")


METADATA = """submission_11:
  :submitters:
  - :name: 'Anna O''Neill: Weiß'
    :sid: '007'
    :email: anna@example.org
  :created_at: 2026-04-26 17:34:00.861687000 Z
  :history:
  - :name: Eve
  :results:
    output: |-
      submission_12:
        :submitters:
        - :name: Eve
submission_12:
  :submitters:
  - :name: "Jürgen"
    :email: j@example.org
  - :name: Ben Roe
    :sid: 9
submission_13:
  :submitters: []
"""


def test_gradescope_names_students_in_a_file_of_its_own(tmp_path):
    root = tmp_path / "assignment_1_export"
    place(root, *(f"submission_{n}/04.ipynb" for n in (11, 12, 13)))
    (root / "submission_metadata.yml").write_text(METADATA, encoding="utf-8")
    assert [(h.student, h.identifier, h.name[-15:-9]) for h in find_handins(root)] == [
        ("Anna O'Neill: Weiß", "007", "ion_11"),
        ("Ben Roe", "9", "ion_12"),
        ("Jürgen", "j@example.org", "ion_12"),
        ("submission_13", "13", "ion_13"),
    ]
    assert len(find_handins(tmp_path)) == 4
    huge(root / "submission_metadata.yml")
    with pytest.raises(GraderError, match=r"larger than 20 MB.*--layout folders"):
        find_handins(root)
    assert len(counted(root, layout="folders")) == 3


def test_a_zip_of_a_students_is_looked_into(tmp_path):
    root = place(tmp_path / "class", "dora/04.ipynb", "fay.ipynb")
    pack(root / "anna/work.zip", "hw/04.ipynb", "__MACOSX/hw/._04.ipynb", "../x.txt")
    pack(root / "dora/old.zip", "03.ipynb")
    pack(root / "eve" / "eve.ipynb.zip", "heads.ipynb")
    outer = tmp_path / "class.zip"
    with zipfile.ZipFile(outer, "w") as archive:
        for path in sorted(root.rglob("*.*")):
            archive.write(path, path.relative_to(root))
    for source in (root, outer):
        found = {h.student: h.read().decode() for h in find_handins(source)}
        assert list(found.values()) == ["hw/04.ipynb", "dora/04.ipynb", "heads.ipynb", "fay.ipynb"]
    pack(root / "ben.zip", "04.ipynb")
    assert counted(root, layout="files")["ben"] == "ben.zip"


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("04.ipynb", bytes(30_000_000))


def huge(path):
    path.touch()
    os.truncate(path, 21_000_000)


def beyond(path):
    """A position in a zip file can have 64 bits, and a disk's has 63."""
    content = pack(path, "04.ipynb").read_bytes()
    head, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    listed = bytearray(content[head:end] + struct.pack("<HHQ", 1, 8, 2**63 + 5))
    listed[30:32], listed[42:46] = struct.pack("<H", 12), b"\xff" * 4
    end = content[end : end + 12] + struct.pack("<LLH", len(listed), head, 0)
    path.write_bytes(content[:head] + listed + end)


def damaged(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("anna.ipynb", random.Random(0).randbytes(2000).hex())
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(content)


UNREADABLE = {  # the name of a student's file, what writes it, why it cannot be read
    "nothing": ("x.py", lambda path: path.touch(), r"no \.ipynb file, but “x\.py”"),
    "many": ("m.zip", lambda path: pack(path, *(f"{i}.ipynb" for i in range(1001))), "1000 files"),
    "a bomb": ("b.zip", bomb, "larger than 20 MB"),
    "huge": ("h.zip", huge, "larger than 20 MB"),
    "a large file": ("h.ipynb", huge, "larger than 20 MB"),
    "a link": ("l.zip", lambda path: path.symlink_to("/etc/passwd"), "link"),
    "unpacked whole": ("z.zip", lambda p: pack(p, "4.ipynb", kind=zipfile.ZIP_LZMA), "rare kind"),
    "beyond": ("z.zip", beyond, "does not give it out"),
    "damaged": ("d.zip", damaged, "does not give it out"),
    "no zip": ("a.zip", lambda path: path.write_bytes(b"PK no zip"), "does not give it out"),
    "no notebook": ("a.zip", lambda path: pack(path, "x.txt"), r"“a\.zip” holds no \.ipynb"),
    "quotes": ("” By hand “.zip", lambda path: pack(path, "x.txt"), "“' By hand '\\.zip”"),
    "bytes": (os.fsdecode(b"\xff\x1b[2J.zip"), lambda path: path.touch(), "does not give it out"),
}


@pytest.mark.parametrize(("name", "write", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_hand_in_that_cannot_be_read_says_why_and_is_lost_alone(tmp_path, name, write, said):
    place(tmp_path, "zoe/04.ipynb", "anna/")
    write(tmp_path / "anna" / name)
    told = why_not(tmp_path, "anna")
    assert re.search(said, told)
    assert told.isprintable()
    [_, zoe] = find_handins(tmp_path)
    assert zoe.read() == b"zoe/04.ipynb"


@pytest.mark.parametrize("content", [None, b"PK no zip", b"", "cut"])
def test_what_holds_no_hand_ins_is_an_error(tmp_path, content):
    path = tmp_path / "class"
    if content == "cut":
        whole = pack(path, "anna.ipynb", "ben.ipynb").read_bytes()
        content = whole.replace(b"PK\x01\x02", b"PK\x01\x09", 1)
    path.mkdir() if content is None else path.write_bytes(content)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(GraderError, match="class"):
        find_handins(path)
    assert set(tmp_path.rglob("*")) == before


def test_a_folder_that_cannot_be_opened_is_told_and_is_no_student_without_a_notebook(
    tmp_path, monkeypatch
):
    place(tmp_path, "anna/04.ipynb", "ben/05.ipynb")
    real = os.scandir

    def closed(path):  # stands in for a folder of another user; root can open them all
        if str(path) == str(tmp_path / "anna"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(GraderError, match="anna cannot be opened"):
        find_handins(tmp_path)


def test_a_name_that_no_disk_would_take_is_cut_before_it_is_read(tmp_path):
    """The time of some patterns grows with the square of a name's length."""
    place(tmp_path, "zoe/04.ipynb")
    pack(tmp_path / "anna/work.zip", " " * 60_000 + ".ipynb", "-" * 60_000 + "/04.ipynb")
    [anna] = [handin for handin in find_handins(tmp_path) if handin.student == "anna"]
    assert len(anna.own) < 600
    assert anna.read()


def test_names_in_utf8_are_read_without_the_flag_and_the_later_of_two_entries_is_the_file(tmp_path):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("J__rg/4.ipynb", "0"), ("R_my.ipynb", "2"), ("J__rg/4.ipynb", "1")):
            archive.NameToInfo.clear()
            archive.writestr(name, content)
    content = path.read_bytes().replace(b"J__rg", "Jörg".encode())
    path.write_bytes(content.replace(b"R_my", "Rémy".encode("cp437")))
    assert counted(path) == {"Jörg": "Jörg/4.ipynb", "Rémy": "Rémy.ipynb"}
    assert [handin.read() for handin in find_handins(path)] == [b"1", b"2"]


def test_nothing_is_written_among_the_hand_ins(tmp_path, seed, capsys):
    source = place(tmp_path / "class", "anna.ipynb")
    for out in (tmp_path / "x" / ".." / "class", source / "results"):
        assert command_line.main(["grade", "heads", str(source), *seed(1), "--out", str(out)]) == 1
        assert "is among the hand-ins: name another folder" in capsys.readouterr().err
    assert [path.name for path in source.iterdir()] == ["anna.ipynb"]


def random_names(rng, number):
    letters, names = "aeimnorstüößÅéłÇ -'0123456789", set()
    while len(names) < number:
        name = "".join(rng.choices(letters, k=rng.randint(3, 20))).strip(" -'")
        names |= {unicodedata.normalize("NFC", name)} if len(name) > 2 else set()
    return sorted(names)


SHAPES = {
    "files": "{name}.ipynb",
    "around": "a/b/{name}/04_heads.ipynb",
    "canvas": "{name}_{i}_{file}_04_heads.ipynb",
    "moodle": "{name}_{i}_assignsubmission_file_/04_heads.ipynb",
}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("way", SHAPES)
def test_three_hundred_students_go_in_and_three_hundred_come_out(tmp_path, way, form):
    placed = {}
    for i, name in enumerate(random_names(random.Random(way + form), 300)):
        shape = SHAPES[way].format(name=name, i=7 + i, file=9000 + 7 * i)
        placed[name] = unicodedata.normalize(form, shape)
    source = pack(tmp_path / "c.zip", *placed.values())
    assert counted(source, layout="files" if way == "files" else None) == placed

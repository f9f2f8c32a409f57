"""What is typed wrong gets a sentence and writes nothing; the seed stands in no command line."""

import os
import pathlib
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from coursework import __main__ as command_line
from coursework import grader
from coursework.__main__ import main
from coursework.grader import assignment, seeds
from coursework.grader.assignment import set_exam
from coursework.grader.seeds import SeedError, parse_seed, read_seed, seal
from tests.coursework.classes import NAME, ROOT, command, table

NO_NUMBERS = [
    *(("--jobs", text) for text in ("0", "-3", "1.5", "", "x", "\u0663", "99999")),
    *(("--seconds", text) for text in ("1e9", "0", "nan", "-1", "inf", "-inf", "x", "")),
    ("--seed", "2027"),
    ("--see", "2027"),
    *(("--who", text) for text in ("", "*", "{file}", "{name}{name}", "{who}", "{name", "{1}")),
]
WORDS = [("grade", "x", "--out", "x", *options) for options in NO_NUMBERS]
WORDS += [("check", "--seed", text) for text in ("-1", "1.5", "x", "nan", "9" * 5000)]


@pytest.mark.parametrize(("command", "words"), [(first, rest) for first, *rest in WORDS])
def test_arguments_that_make_no_sense_get_a_sentence(command, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, NAME, *words])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words[-2] in said
    assert "Traceback" not in said


def test_an_escape_in_an_argument_is_not_printed(folder, capsys):
    assert main(["grade", NAME, f"{folder}\x1b[2J\r", "--seed-file", "\x1b]0;x\x07", "--out", "x"])
    assert capsys.readouterr().err.replace("\n", "").isprintable()


NO_SEEDS = dict.fromkeys((b"", b" \n"), "the seed is nothing")
NO_SEEDS |= dict.fromkeys((b"-1", b"1 2", b"1.0", b"1_0", b"\xff1"), "the seed is not one whole")


@pytest.mark.parametrize(("text", "said"), NO_SEEDS.items())
def test_a_seed_file_without_a_seed_gets_a_sentence_that_does_not_quote_it(
    text, said, folder, out, tmp_path, capsys
):
    path = tmp_path / "seed"
    path.write_bytes(text)
    assert main(["grade", NAME, str(folder), "--seed-file", str(path), "--out", str(out)]) == 1
    told = capsys.readouterr().err
    assert str(path) in told
    assert said in told
    assert "secrets.randbits(60)" in told
    assert not out.exists()


def test_a_seed_or_results_that_cannot_be_are_told_in_a_sentence(
    folder, out, tmp_path, seed, capsys
):
    given = ["grade", NAME, str(folder)]
    for path in (tmp_path, tmp_path / "none"):
        assert main([*given, "--seed-file", str(path), "--out", str(out)]) == 1
        assert re.search(rf"{path} cannot be read \(.*\): generate one", capsys.readouterr().err)
    out.touch()
    for words in ([*given, *seed(1)], ["release", NAME]):
        for place in (out, out / "below"):
            assert main([*words, "--out", str(place)]) == 1
            said = capsys.readouterr().err
            assert f"{place} cannot be a folder, for a file is in its place" in said
            assert "Errno" not in said
    out.unlink()
    (out / "batch.json").mkdir(parents=True)
    assert main([*given, *seed(1), "--out", str(out)]) == 1
    assert f"{out / 'batch.json'}: Is a directory" in capsys.readouterr().err


def test_results_inside_the_repository_are_warned_of(out, capsys):
    command_line._warn_if_inside_repository(out)
    assert not capsys.readouterr().err
    command_line._warn_if_inside_repository(ROOT / "results")
    assert "a commit could publish what is about people" in capsys.readouterr().err


def test_a_seed_file_that_others_can_read_is_told(tmp_path):
    path, said = tmp_path / "seed", []
    path.write_text(" 7\r\n", encoding="utf-8-sig")
    for mode, told in ((0o644, 1), (0o640, 1), (0o600, 0), (0o400, 0)):
        path.chmod(mode)
        assert read_seed(path, said.append) == 7
        assert len(said) == told
        said.clear()


def test_a_seed_comes_through_a_pipe_and_without_a_file_from_a_terminal_alone(monkeypatch):
    read, write = os.pipe()
    os.write(write, b"12\n")
    os.close(write)
    assert read_seed(f"/dev/fd/{read}", pytest.fail) == 12
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(SeedError, match="give --seed-file"):
        read_seed(None, pytest.fail)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(seeds.getpass, "getpass", lambda prompt: "31")  # stands in for a terminal
    assert read_seed(None, pytest.fail) == 31


def test_what_stands_for_a_seed_tells_two_apart_and_not_what_they_are():
    exam = set_exam(NAME, 2027)
    one, same, other = (seal(e) for e in (exam, replace(exam, digest=""), set_exam(NAME, 2028)))
    assert one == same != other, "a different version of the assignment is no other seed"
    assert "2027" not in one
    assert seal(set_exam("concatenation", 2027)) != one
    assert parse_seed("2027") == 2027


@pytest.mark.long
@pytest.mark.usefixtures("bubblewrap")
def test_check_ends_well_where_the_locale_has_no_check_mark():
    own = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    run = subprocess.run(command("check", NAME), cwd=ROOT, env=own, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert b"fit to be given out" in run.stdout


@pytest.mark.usefixtures("bubblewrap")
def test_hostile_names_are_printed_as_names(folder, out, seed, capsys):
    for name in ("\x1b[2Jeve", "a\rb", "mal\u202elory"):
        (folder / f"{name}.ipynb").write_text("{")
        (folder / f"{name}.txt").touch()
    assert main(["grade", NAME, str(folder), *seed(1), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "3 that could not be read or run: [2Jeve, a b, mal lory" in said.out
    assert "Left aside, not notebooks (3)" in said.err
    assert (said.out + said.err).replace("\n", "").replace("\r", "").isprintable()
    assert "a\rb" not in said.err
    assert {row["of"] for row in table(out).values()} == {"10"}


def test_help_names_no_seed_and_every_option(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")  # lines are broken at the width of a terminal
    for words in (["--help"], ["grade", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
    said = capsys.readouterr().out
    assert "2027" not in said
    assert re.search(r"HANDINS +a folder or a zip file", said)
    assert all(option in said for option in ("--seed-file", "--who", "--jobs", "corrections.csv"))


def test_every_error_of_the_grader_is_told_in_a_sentence():
    """An exception that is no GraderError would end a command in a traceback."""
    inside = {"Lost", "Unreadable"}  # never leave the grader
    for path in pathlib.Path(assignment.__file__).parent.glob("[!_]*.py"):
        for name in re.findall(r"^class (\w+)\(Exception\)", path.read_text("utf-8"), re.M):
            assert name in inside, f"{path.name}: {name}"


def test_the_order_of_reading_names_each_module_of_the_grader():
    folder = pathlib.Path(assignment.__file__).parent
    modules = sorted(path.stem for path in folder.glob("[!_]*.py"))
    assert sorted(re.findall(r"`(\w+)`", grader.__doc__)) == modules

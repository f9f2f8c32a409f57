"""The pages for teachers: their commands are understood, their job scripts agree with themselves.

No comment fits into a block of code, so the numbers in it are read here.
"""

import re
import shlex

import pytest
import yaml

from coursework.__main__ import _parser
from coursework.grader.sandbox import MEMORY_GIB
from tools.chapters import ROOT

BLOCKS = [
    block
    for path in sorted(ROOT.glob("book/teaching*.md"))
    for block in re.findall(r"^```\w+\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.M)
]
VARIABLE = re.compile(r"\$\([^()]*\)|\$\(\([^()]*\)\)|\$\w+")


def commands(block):
    """Return the words of each `python -m coursework …` of a block; each variable of it is 1."""
    lines = re.sub(r"\\?\n +(?=--)", " ", VARIABLE.sub("1", block))
    return [shlex.split(words) for words in re.findall(r"python -m coursework (.*)", lines)]


WRITTEN = [words for block in BLOCKS for words in commands(block)]


def understood(words):
    """Return what the grader takes a command to say."""
    return _parser().parse_args(words)


@pytest.mark.parametrize("words", WRITTEN, ids=" ".join)
def test_a_command_of_the_pages_is_understood(words):
    understood(words)


def test_two_shards_are_the_whole_class_and_both_are_joined():
    graded = [understood(words) for words in WRITTEN if {"1/2", "2/2"} & {*words}]
    assert [given.shard for given in graded] == [(1, 2), (2, 2)]
    (merged,) = (understood(words) for words in WRITTEN if words[0] == "merge")
    assert merged.results == [given.out for given in graded]


def test_both_job_scripts_run_every_shard_and_ask_for_what_it_needs():
    (slurm,) = (block for block in BLOCKS if "#SBATCH" in block)
    (kubernetes,) = (block for block in BLOCKS if "kind: Job" in block)
    asked, job = dict(re.findall(r"#SBATCH --([\w-]+)=(\S+)", slurm)), yaml.safe_load(kubernetes)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    requests = container["resources"]["requests"]
    given, same = (understood(words) for words in commands(slurm) + commands(kubernetes))
    assert asked["array"] == f"1-{given.shard[1]}"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == same.shard[1]
    assert same.shard == given.shard
    assert int(asked["cpus-per-task"]) == int(requests["cpu"]) == given.jobs == same.jobs
    assert f"{asked['mem']}i" == requests["memory"]
    assert int(asked["mem"].removesuffix("G")) > given.jobs * MEMORY_GIB

"""The drawings of the site show the running example, and are small enough for every page."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
SPEC = spec_from_file_location("pictures", ROOT / "book" / "_ext" / "theme" / "pictures.py")
pictures = module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_picture_is_what_the_running_example_draws_today(name):
    committed = (STATIC / name).read_text(encoding="utf-8")
    assert committed == pictures.PICTURES[name](), (
        f"run `python book/_ext/theme/pictures.py` ({name})"
    )


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_picture_is_small_and_calls_on_nobody(name):
    source = (STATIC / name).read_text(encoding="utf-8")
    assert len(source.encode()) <= 20_000
    assert source.count("http") == 1, "only the namespace"
    ElementTree.fromstring(source)


def test_map_names_the_six_steps_in_order():
    words = [e.text for e in ElementTree.parse(STATIC / "map.svg").iter() if e.tag.endswith("text")]
    steps = [step[1] for step in pictures.STEPS]
    assert steps == ["embed", "project", "score", "mix", "concat", "project out"]
    assert [word for word in words if word in steps] == steps

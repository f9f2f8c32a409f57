"""The list of chapters in the README is that of the contents."""

import pytest

from tools import readme


def test_readme_lists_every_chapter_as_the_contents_do():
    text = readme.README.read_text(encoding="utf-8")
    assert text == readme.rewritten(text), "run: .venv/bin/python -m tools.readme"


def test_list_names_each_notebook_with_its_title():
    assert readme.chapters().startswith(
        "**Part I: By hand in NumPy**\n\n- [01_embeddings](https://"
    )
    assert "01_embeddings.html): Embeddings and positions: look the words up\n" in readme.chapters()


@pytest.mark.parametrize("text", ["", "<!-- chapters -->\n", "<!-- end of chapters -->"])
def test_readme_without_a_place_for_the_list_is_told(text):
    with pytest.raises(ValueError, match=r"has 0 places for the list of chapters; expected one"):
        readme.rewritten(text)

"""Every number in a chapter's prose comes from an output above it or from a source."""

import pytest
from nbformat.v4 import new_notebook

from tests.chapters.pages import NAMES, REPOSITORY, listed, written
from tests.chapters.planted import code, stdout, text
from tests.chapters.prose_numbers import REVIEWED, faults, needs_source, numbers, sentences

NAME = "03_attention_weights"


@pytest.mark.parametrize("name", NAMES)
def test_numbers_in_prose_are_measured_cited_or_reviewed(name):
    found = faults(name, written(name))
    assert not found, listed(found)


def test_each_reviewed_number_belongs_to_a_chapter():
    assert {entry["chapter"] for entry in REVIEWED} <= set(NAMES)
    assert all(set(entry) == {"chapter", "number", "reason"} for entry in REVIEWED)


def missing(prose, output="", reviewed=()):
    """Return the faults of a chapter that prints one output and then says something."""
    cells = [code("printed", "show()", stdout(output)), text("prose", prose)]
    return faults(NAME, new_notebook(cells=cells), list(reviewed))


@pytest.mark.parametrize(
    ("prose", "output"),
    [
        ("The mean is 0.583.", "0.583"),
        ("The mean is 0.58.", "0.583"),
        ("The mean is 0.6.", "0.583"),
        ("The mean is .58 here.", "0.583"),
        ("A weight of 0.571.", "4/7  1/7"),
        ("There are 3,072 parameters.", "parameters: 3072"),
        ("There are $3{,}072$ parameters.", "parameters: 3072"),
        ("There are 3072 of them.", "3,072"),
        ("Scores of 6.7·10⁴.", "scores: 66,757.3"),
        (r"Scores of $6.7 \cdot 10^{4}$.", "scores: 66757.3"),
        ("An error of 1.1 × 10⁻¹⁶.", "1.1102e-16"),
        ("An error of 1e-16.", "1.1102e-16"),
        ("A change of 0.26 %.", "0.0026"),
        ("A change of 0.26 %.", "0.26"),
        ("About 150 million of them.", "149,947,200"),
        ("About 150 M of them.", "149,947,200"),
        ("It is −0.0014602.", "-0.0014602"),
        ("It fell by 0.25.", "-0.25"),
        ("Between 0.1 and 0.2.", "0.1 0.2"),
        ("In code, `0.583`.", "0.583"),
        ("Twice, 2.0x.", "2"),
    ],
)
def test_a_number_is_found_by_rounding_an_output_above(prose, output):
    assert missing(prose, output) == []
    assert missing(prose) != []


@pytest.mark.parametrize(
    ("prose", "output"),
    [
        ("The mean is 0.584.", "0.583"),
        ("The mean is 0.59.", "0.583"),
        ("The mean is 0.583.", "0.58"),
        ("It is −0.25.", "0.25"),
        ("Scores of 6.8·10⁴.", "66757.3"),
        ("There are 3,073.", "3072"),
        ("A change of 0.27 %.", "0.0026"),
        ("# Only 0.5\n\n", "0.6"),
        ("<details><summary>Hint</summary>\n\nIt is 0.5.\n\n</details>", "0.6"),
        ("| a | 0.5 |\n|---|---|\n| b | 0.6 |", "0.6"),
        ("$$x^{0.5}$$", "0.6"),
        ("For x < 0.5 and y > 3.", "0.6"),
    ],
)
def test_another_number_is_rejected(prose, output):
    assert len(missing(prose, output)) == 1


def test_an_output_below_does_not_count():
    cells = [text("prose", "It is 0.5."), code("printed", "show()", stdout("0.5"))]
    assert faults(NAME, new_notebook(cells=cells), [])


def test_the_text_of_a_quiz_or_prediction_does_not_count():
    asked = code("asked", "quiz()", stdout("0.5"), tags=["remove-input"])
    assert faults(NAME, new_notebook(cells=[asked, text("prose", "It is 0.5.")]), [])


@pytest.mark.parametrize(
    "prose",
    [
        "4/7 and 12 of 16 in 2 rows, 16/17.",
        "Built in chapter 03 (Vaswani et al., 2017), after Raffel et al. 2020.",
        "`rng = np.random.default_rng(12087)` and `d_model=512`.",
        "```python\nx = 0.583\n```",
        "[Britz et al. 2017](https://arxiv.org/abs/1703.03906) tried 512.",
        "| GPT-2 | 768 | [config](https://huggingface.co/gpt2) |",
        "NumPy 2.4.6 and $W_{12}$ and $h_0$",
    ],
)
def test_these_need_no_output(prose):
    assert missing(prose) == []


def test_a_source_covers_its_own_sentence_alone():
    source = "[Britz et al. 2017](https://arxiv.org/abs/1703.03906)"
    assert len(missing(f"The first is 0.5. The second is 0.6, see {source}.")) == 1
    assert len(missing(f"{source} says 0.5. We say 0.6.")) == 1
    assert len(missing(f"{source} says 0.5.\n\n- We say 0.6.\n- and 0.7")) == 2
    assert len(missing(f"| 0.5 | a |\n|---|---|\n| 0.6 | {source} |")) == 1
    assert missing(f"It is 0.5 (as Vaswani et al. found, {source}).") == []


@pytest.mark.parametrize(
    "link",
    [f"{REPOSITORY}/blob/main/x.py", "../book/references.md", "https://colab.research.google.com"],
)
def test_a_link_within_the_book_is_no_source(link):
    assert missing(f"It is 0.5, see [here]({link}).")


def test_a_reviewed_number_needs_a_reason_and_a_use():
    entry = {"chapter": NAME, "number": "0.5", "reason": "by hand, in the same paragraph"}
    assert missing("It is 0.5.", reviewed=[entry]) == []
    assert missing("It is 0.5.", reviewed=[{**entry, "reason": " "}]) != []
    assert missing("It is 0.5.", reviewed=[{**entry, "chapter": "01_embeddings"}]) != []
    assert "not needed" in missing("It is one half.", reviewed=[entry])[0]
    assert "not needed" in missing("It is 0.5.", "0.5", reviewed=[entry])[0]


def test_sentences_end_at_stops_but_not_at_abbreviations():
    split = [sentence.strip() for sentence, _ in sentences("One is 4. Two, cf. Figure, e.g. A. B.")]
    assert split == ["One is 4.", "Two, cf. Figure, e.g. A.", "B."]


def test_small_integers_need_no_source():
    assert [n.text for n in numbers("12, 99, 100 and 1.5") if needs_source(n)] == ["100", "1.5"]

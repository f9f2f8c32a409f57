"""What chapter 20 computes in its cells is what the script of its record computes."""

import ast

import numpy as np
import pytest

from experiments import scored_heads
from tests.chapters.pages import code_cells, written
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.grammar import CLASSES, FORMS, ID, sample_documents
from tutorial_lib.models.head_scores import patch
from tutorial_lib.models.language import encode
from tutorial_lib.records import checkpoint

MODEL = TinyModel.of(checkpoint("known_text"))
ALL_HEADS = [(layer, head) for layer in range(2) for head in range(4)]


def in_the_chapter(name):
    """The function of this name, as a cell of the chapter defines it, which may do more."""
    cells = code_cells(written("20_scoring_heads"))
    nodes = [node for cell in cells for node in ast.parse(cell.source).body]
    [source] = [ast.unparse(node) for node in nodes if getattr(node, "name", None) == name]
    known = {"np": np, "FORMS": FORMS, "ID": ID, "encode": encode, "run": run, "patch": patch}
    known |= {"model": MODEL, "all_heads": ALL_HEADS}
    exec(source, known)
    return known[name]


@pytest.mark.parametrize("task", ["attractor", "surname"])
def test_the_chapter_has_the_logit_differences_of_the_script(task):
    documents = sample_documents(np.random.default_rng(5), 20)
    logits = run(MODEL, documents.ids[:, :-1])[0]
    ours = in_the_chapter("logit_difference")(logits, documents, documents.target_of(task))
    np.testing.assert_allclose(
        ours, scored_heads.logit_margins(logits, documents, task), rtol=1e-10
    )


def test_the_chapter_has_the_patching_effects_of_the_script(monkeypatch):
    one, many = (CLASSES[kind].split()[:3] for kind in ("noun:s", "noun:p"))
    texts = [[f"the {noun} that the cats see" for noun in nouns] for nouns in (one, many)]
    ids = [np.stack([encode(text) for text in side]) for side in texts]
    ends = [np.full(len(one), ID[verb]) for verb in ("barks", "bark")]
    last = np.full(len(one), ids[0].shape[1] - 1)
    monkeypatch.setattr(scored_heads, "text_pairs", lambda: (*ids, last, *ends))
    monkeypatch.setattr(scored_heads, "WAYS", {"attractor": None})
    monkeypatch.setattr(scored_heads, "PAIRS", len(one))
    ours = in_the_chapter("patching_effect")(*texts, ["bark"], ["barks"])
    theirs = scored_heads.patching_shares(MODEL)[0]["attractor"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert ours.max() > 0.5

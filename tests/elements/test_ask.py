"""Ask the model, as bytes: without a script it holds what the rounded model says."""

import gzip
import json
import re
from base64 import b64decode
from hashlib import sha256

import numpy as np
import pytest

from book._ext.theme.lighten import fold_models
from tests.elements.test_elements import Tree, page_elsewhere
from tools.chapters import pages
from tutorial_lib.attention import softmax
from tutorial_lib.elements.exhibits import ask_model
from tutorial_lib.elements.exhibits.ask.element import draw_ask
from tutorial_lib.models.copying import TinyModel, init_model, run
from tutorial_lib.models.grammar import ID, WORDS
from tutorial_lib.models.head_scores import logit_terms, run_with
from tutorial_lib.models.language import in_eight_bits, quantise_rows
from tutorial_lib.records import checkpoint

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF"
MODEL = TinyModel.of(checkpoint("known_text"))
ELEMENT = ask_model(MODEL, WORDS, "the dogs that", question="Which head looks at *dogs*?")
WEIGHTS = r'<script data-model="(\w+)">\n(.*?)\n</script>'
[(NAME, SCRIPT)] = re.findall(WEIGHTS, ELEMENT.html, re.S)


def page():
    """The exhibit, for another process."""
    return ask_model(MODEL, WORDS, "the dogs that", question="Which?").html


def rows():
    """The rows of the two tables of no split: next words, and terms of the logits."""
    for table in re.findall(r"<tbody>(.*?)</tbody>", ELEMENT.html, re.S):
        lines = re.findall(r"<tr.*?</tr>", table, re.S)
        yield [[Tree(c).text for c in re.findall(r"<t[hd].*?</t[hd]>", r, re.S)] for r in lines]


def test_form_without_a_script_holds_the_numbers_of_the_rounded_model():
    model, ids = in_eight_bits(MODEL), np.array([0, ID["the"], ID["dogs"], ID["that"]])
    logits, records = run(model, ids)
    chances = softmax(logits[-1])
    following, parts = rows()
    order = np.argsort(-chances)[:6]
    assert [(name, share) for name, _, share in following] == [
        (WORDS[i], f"{chances[i]:.3f}") for i in order
    ]
    added = [part[-1, order[0]] for part in logit_terms(model, ids)]
    shown = [float(row[2].replace("−", "-")) for row in parts]
    np.testing.assert_allclose(shown, [*added, logits[-1, order[0]]], atol=0.005)
    weights = np.concatenate([record.weights[:, -1] for record in records])
    names = ["<bos>", "the", "dogs", "that"]
    for head, (name, keys, *_) in enumerate(parts[1:-1]):
        assert name == f"head {head // 4}.{head % 4}"
        top = [s for s in np.argsort(-weights[head])[:2] if weights[head, s] >= 0.0005]
        assert keys == ", ".join(f"{names[s]} {weights[head, s]:.3f}" for s in top)
    assert "head 1.2: dogs 1.000; adds +0.16" in ELEMENT.text
    assert ELEMENT.text.startswith("Model: <bos> the dogs that\nnext:\n")


def test_weights_are_the_codes_of_eight_bits_and_stay_light():
    key, text = re.fullmatch(r"\(globalThis\.tlModels \?\?= {}\)\[(.*?)\] = (.*);", SCRIPT).groups()
    packed = json.loads(text)
    codes = np.frombuffer(b64decode(packed["codes"]), np.int8)
    steps = np.frombuffer(b64decode(packed["steps"]), "<f4")
    for shape, array in zip(packed["shapes"], MODEL.arrays, strict=True):
        assert tuple(shape) == array.shape
        right, step = quantise_rows(array)
        (mine, codes), (my_step, steps) = (
            (flat[:n], flat[n:]) for flat, n in ((codes, array.size), (steps, step.size))
        )
        np.testing.assert_array_equal(mine.reshape(shape), right)
        np.testing.assert_allclose(my_step.reshape(step.shape), step, rtol=1e-7)
    assert codes.size == steps.size == 0
    assert NAME == json.loads(key) == sha256(text.encode()).hexdigest()[:12]
    assert len(gzip.compress(SCRIPT.encode())) <= 60_000


@pytest.mark.long
def test_is_the_same_element_in_another_process_and_well_formed():
    assert page_elsewhere(__name__) == page()
    tree = Tree(ELEMENT.html)
    assert (tree.open, tree.faults) == ([], [])
    ids = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_a_notebook_holds_the_weights_of_a_model_once():
    for chapter in pages():
        text = chapter.path.read_text(encoding="utf-8")
        names = re.findall(r'<script data-model=\\"(\w+)\\">', text)
        assert len(names) == len(set(names)), chapter.name


SMALL = init_model(np.random.default_rng(0))


def test_a_split_begins_with_the_difference_of_two_logits():
    element = ask_model(SMALL, LETTERS, "abab", question="?", split=("c", "d"))
    model, ids = in_eight_bits(SMALL), np.array([0, 1, 0, 1])
    added = [part[-1, 2] - part[-1, 3] for part in logit_terms(model, ids)]
    said = [float(n.replace("−", "-")) for n in re.findall(r"adds ([+−][\d.]+)", element.text)]
    np.testing.assert_allclose(said, [*added, sum(added)], atol=0.005)
    assert "adds to “c” − “d”" in element.html
    assert element.html.count("data-asked>") == 2
    assert "what adds to “c” − “d”," in element.text


def test_a_model_that_scores_no_word_has_bars_of_no_width():
    silent = TinyModel(SMALL.E, SMALL.P, SMALL.layers, np.zeros_like(SMALL.U))
    with np.errstate(all="raise"):
        html = ask_model(silent, LETTERS, "abab", question="?").html
    assert set(re.findall(r'<rect x="[-.0]+" y="1" width="(.*?)"', html)) == {"0.00"}


def test_a_silenced_head_is_one_whose_output_is_zero():
    ids, first = np.array([0, 1, 0, 1]), {"text": "abab", "query": "", "silenced": "1.0"}
    html = draw_ask(SMALL, LETTERS, "?", {**first, "word": "c", "minus": ""}).text
    logits = run_with(in_eight_bits(SMALL), ids, {(1, 0): np.zeros(SMALL.layers[1].W_V.shape[-1])})
    assert f"   c {softmax(logits[-1])[2]:.3f}\n" in html
    assert "head 1.0: silenced; adds +0.00" in html


def test_weights_of_two_models_become_two_files_that_their_exhibits_name(tmp_path):
    (tmp_path / "_static").mkdir()
    other = ask_model(SMALL, LETTERS, "abab", question="?").html
    head = '<html{}><script src="a.js"></script>'
    pages_ = {
        tmp_path / "a": head.format(' data-content_root="../"') + ELEMENT.html + other,
        tmp_path / "b": head.format("") + ELEMENT.html,  # a page that names no root
        tmp_path / "c": head.format(""),
    }
    fold_models(tmp_path, pages_)
    [(second, _)] = re.findall(WEIGHTS, other, re.S)
    a, b, c = pages_.values()
    files = {path.name for path in tmp_path.glob("_static/*")}
    assert files == {f"model-{NAME}.js", f"model-{second}.js"}
    assert (tmp_path / f"_static/model-{NAME}.js").read_text(encoding="utf-8") == SCRIPT + "\n"
    for name in (NAME, second):
        assert a.count(f'<template data-model="../_static/model-{name}.js"></template>\n</tl-') == 1
    assert b.count(f'<template data-model="_static/model-{NAME}.js"></template>') == 1
    assert "tlModels ??=" not in a + b + c
    assert c == head.format("")

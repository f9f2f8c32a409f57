"""Ask the model in Chromium: its numbers are the library's, by any means, and nothing is dead."""


from functools import cache

import numpy as np
import pytest

from tutorial_lib import Params
from tutorial_lib.attention import softmax
from tutorial_lib.elements.exhibits import ask_model
from tutorial_lib.elements.sources import FOLDER
from tutorial_lib.models.copying import TinyModel, run
from tutorial_lib.models.grammar import ID, WORDS, draw_documents
from tutorial_lib.models.head_scores import paths, run_with
from tutorial_lib.models.language import in_eight_bits
from tutorial_lib.records import checkpoint

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEF"
QUESTION = "At *that*: which head looks at *dogs*?"
HEADS = [f"{layer}.{head}" for layer in range(2) for head in range(4)]
BEGINS = "the dogs that the cats see"
# The forward pass as its file holds it, on the weights that stand in the page.
ANSWER = """(asked) => {{
  {source}
  const [packed] = Object.values(globalThis.tlModels);
  const model = unpack(packed);
  return asked.map(({{ ids, silenced, t }}) => {{
    const made = forward(model, ids, silenced);
    const parts = paths(model, made, t);
    const weights = made.heads.flat().map(({{ weights }}) => weights[t]);
    return {{ weights, parts: parts.map((part) => [...part]), chances: chances(parts) }};
  }});
}}"""
TIME = """() => {{
  {source}
  const [packed] = Object.values(globalThis.tlModels);
  const model = unpack(packed);
  const ids = Array.from({{ length: 64 }}, (_, i) => (i * 37) % 100);
  const passes = Array.from({{ length: 15 }}, () => {{
    const begin = performance.now();
    paths(model, forward(model, ids), 63);
    return performance.now() - begin;
  }});
  return passes.sort((a, b) => a - b)[7];
}}"""
SOURCE = (FOLDER / "exhibits/model.js").read_text(encoding="utf-8").replace("export ", "")
SET = "(hash) => { location.hash = hash; }"
# What the exhibit shows: the sentence, the chosen place, the next words, and of each path its row.
READ = """(ask) => {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent);
  const [next, rows] = [...ask.querySelectorAll("tbody")].map((body) => [...body.rows].map(texts));
  const cells = [...ask.querySelectorAll(".tl-word")];
  return {
    sentence: cells.map((cell) => cell.firstChild.textContent),
    query: cells.findIndex((cell) => cell.ariaChecked == "true"),
    adds: ask.querySelector(".tl-paths th:nth-child(3)").textContent,
    next, rows,
  };
}"""


@cache
def known_text():
    """The model of the known text, as it is committed."""
    return TinyModel.of(checkpoint("known_text"))


@cache
def element():
    """The exhibit of that model, drawn once."""
    return ask_model(known_text(), WORDS, BEGINS, question=QUESTION, name="known_text").html


def without(model, silenced):
    """The model with zeros in the rows of W_O of each silenced head."""
    layers = []
    for layer, params in enumerate(model.layers):
        W_O = np.array(np.split(params.W_O, 4))
        W_O[[head for head in range(4) if f"{layer}.{head}" in silenced]] = 0
        layers.append(Params(params.W_Q, params.W_K, params.W_V, np.concatenate(W_O)))
    return TinyModel(model.E, model.P, tuple(layers), model.U)


def sentences(count):
    """Documents of the text and words in any order, of all lengths; in half, heads are silenced."""
    rng = np.random.default_rng(20)
    documents = draw_documents(rng, count).ids
    for i, document in enumerate(documents):
        length = 64 if i == 0 else int(rng.integers(1, 65))
        ids = document[:length] if i % 3 else np.append(0, rng.integers(1, 100, length - 1))
        silenced = [head for head in HEADS if i % 2 and rng.random() < 0.3]
        yield {"ids": ids.tolist(), "silenced": silenced, "t": int(rng.integers(0, length))}


def library(ids, silenced, t):
    """The weights at a place, what each path adds to each word, and the chances."""
    model = without(in_eight_bits(known_text()), silenced)
    logits, records = run(model, np.array(ids))
    weights = np.concatenate([record.weights[:, t, : t + 1] for record in records])
    return weights, np.array(paths(model, np.array(ids)))[:, t], softmax(logits[t])


@pytest.fixture
def shown(show):
    """The exhibit on a page of its own."""
    return show(element()).locator("tl-ask")


def said(shown):
    """What is spoken and shown."""
    return shown.locator(".tl-said").text_content()


def agrees(shown, sentence, *, query=None, silenced=(), word=None, minus=None):
    """Require that all that is shown is the library's, to what three or two decimals can say."""
    seen = shown.evaluate(READ)
    words = ["<bos>", *sentence.split()]
    t = len(words) - 1 if query is None else query
    weights, parts, chances = library([ID[w] for w in words], silenced, t)
    assert (seen["sentence"], seen["query"]) == (words, t)
    for name, _, chance in seen["next"]:
        assert float(chance) == pytest.approx(chances[ID[name]], abs=1e-3)
    assert float(seen["next"][0][2]) == pytest.approx(chances.max(), abs=1e-3)
    word = word or WORDS[chances.argmax()]
    added = parts[:, ID[word]] - (parts[:, ID[minus]] if minus else 0)
    assert seen["adds"] == f"adds to “{word}”" + (f" − “{minus}”" if minus else "")
    found = [float(row[2].replace("−", "-")) for row in seen["rows"]]
    np.testing.assert_allclose(found, [*added, added.sum()], rtol=0, atol=0.006)
    names = [f"{w} ({i})" if words.count(w) > 1 else w for i, w in enumerate(words)]
    for head, row, text in zip(HEADS, weights, [row[1] for row in seen["rows"][1:-1]], strict=True):
        if head in silenced:
            assert text == "silenced"
            continue
        pairs = [pair.rpartition(" ") for pair in text.split(", ")]
        top = np.sort(row)[::-1][:5]
        np.testing.assert_allclose([float(p[2]) for p in pairs], top[top > 5e-4], atol=1e-3)
        for name, _, weight in pairs:
            assert float(weight) == pytest.approx(row[names.index(name)], abs=1e-3)


def test_a_hundred_sentences_have_the_librarys_weights_paths_and_chances(show):
    page = show(element())
    asked = list(sentences(100))
    answers = page.evaluate(ANSWER.format(source=SOURCE), asked)
    assert len(answers) == 100
    assert sum(bool(one["silenced"]) for one in asked) > 30
    for one, answer in zip(asked, answers, strict=True):
        weights, parts, chances = library(**one)
        for name, right in (("weights", weights), ("parts", parts), ("chances", chances)):
            np.testing.assert_allclose(answer[name], right, rtol=0, atol=1e-3, err_msg=str(one))


def test_a_silenced_head_is_one_whose_output_is_zero():
    model, ids = in_eight_bits(known_text()), np.array([ID[w] for w in BEGINS.split()])
    for i, head in enumerate(HEADS):
        logits = run_with(model, ids, i // 4, i % 4, np.zeros(16))
        np.testing.assert_allclose(logits, run(without(model, [head]), ids)[0], atol=1e-9)


def test_a_pass_takes_a_moment(show):
    page = show(element())
    median = page.evaluate(TIME.format(source=SOURCE))
    print(f"a pass of 64 words: {median:.1f} ms")
    assert median < 60  # ms; on a quiet machine a few

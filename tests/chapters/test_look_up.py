"""Glossary and notation say what the library does: every shape, product and name on them.

What the page on notation says below *Where PyTorch does otherwise* is called, word by word, in
tests/pytorch/test_differences.py.
"""

import builtins
import inspect
import json
import re
from functools import cache as cache_calls
from functools import reduce
from itertools import pairwise
from math import prod, sqrt

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tutorial_lib as tl
from tools.chapters import ROOT, pages
from tutorial_lib.models import block
from tutorial_lib.models.circuits import ov_circuit, qk_circuit
from tutorial_lib.pytorch import bridge
from tutorial_lib.variants import cache, grouped, latent, positions
from tutorial_lib.variants import state as states

B, T, S, H, G, d_k, d_v, d_model = 2, 5, 6, 3, 1, 4, 7, 12
SIZES = {"B": B, "T": T, "S": S, "H": H, "d_k": d_k, "d_v": d_v, "d_model": d_model, "d": d_k}
SIZES |= {"G": G, "vocabulary size": 11}

COMMENT = re.compile(r" ?<!--.*?-->", re.DOTALL)
GLOSSARY, NOTATION = (
    COMMENT.sub("", (ROOT / "book" / name).read_text(encoding="utf-8"))
    for name in ("glossary.md", "notation.md")
)
ENTRIES = dict(re.findall(r"^(\w[^\n]*)\n((?:  [^\n]*\n|\n(?=  ))+)", GLOSSARY, re.MULTILINE))
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", NOTATION, re.MULTILINE | re.DOTALL))
NAME = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+)+|\b[A-Za-z_]\w{2,}")
SHAPE = re.compile(r"(?<![\w)])\(((?:[\w.* ]+, )+[\w.* ]+)\)")
SHAPES = {  # entry -> the arrays whose shapes it names, in their order
    "attention weights": ["weights"],
    "axis": ["weights"],
    "broadcasting": ["X[:, None]", "W_Q", "Q"],
    "causal mask": ["tl.causal_mask(T, S)"],
    "concat": ["heads", "tl.concat_heads(heads)"],
    "embed": ["ids", "tl.embed(ids, E, P)"],
    "embedding": ["E"],
    "multiplied out": ["W_Q[0] @ W_K[0].T"],
    "gate": ["heads"],
    "head": ["W_Q[0]", "W_K[0]", "W_V[0]"],
    "heads": ["heads"],
    "key": ["K"],
    "KV cache": ["K[:, :G]", "V[:, :G]"],
    "mask": ["scores"],
    "multi-head attention": ["X", "Y"],
    "multiply-add": ["Q[0, 0]", "K[0, 0].T"],
    "OV circuit": ["W_V[0] @ W_O[:d_v]"],
    "padding": ["np.ones((B, S))[:, None, None, :]"],
    "contribution of a head": ["heads[:, 0]", "heads @ W_O.reshape(H, d_v, d_model)"],
    "prefill": ["tl.causal_mask(T, S)"],
    "project": ["X", "W_Q[0]", "X @ W_Q[0]"],
    "project out": ["concat", "W_O"],
    "QK circuit": ["W_Q[0] @ W_K[0].T"],
    "query": ["Q"],
    "scores": ["scores"],
    "shape": ["Q[0]"],
    "sinusoidal positions": ["tl.sinusoidal_positions(T, d_model)"],
    "state": ["np.swapaxes(K, -1, -2) @ V"],
    "stride": ["np.ones((3, 8))"],
    "unembedding": ["E.T"],
    "value": ["V"],
    "X": ["X"],
    "Y": ["Y"],
}
EQUAL = {  # a product of the glossary -> what it is
    "E[ids]": "np.eye(len(E))[ids] @ E",
    "Q @ K_T / sqrt(d_k)": "tl.attention_scores(Q, K)",
    "weights @ V": "heads",
    "concat @ W_O": "Y",
}
LABELS = ["Shape", "Formula", "Chapter", "Paper", "Also called"]  # of an entry, in this order
MOST_WORDS = 45  # of a definition, which a hover card shows without the rest
DRAWN = np.random.default_rng(0)


def names_of(record, **more):
    """Everything that code on the pages may name: the fields of a pass, the lengths, NumPy."""
    given = vars(record) | vars(record.params) | SIZES | more
    return given | {"np": np, "tl": tl, "sqrt": sqrt, "K_T": np.swapaxes(record.K, -1, -2)}


def passed(d_v=d_v):
    """A pass of X over another sequence, with all lengths different."""
    params = tl.init_params(DRAWN, d_model=d_model, n_heads=H, d_k=d_k, d_v=d_v)
    X, context = (DRAWN.standard_normal((B, n, d_model)) for n in (T, S))
    return tl.trace(X, params, context=context, mask=tl.causal_mask(T, S))


ids, E, P = DRAWN.integers(0, 11, (B, T)), *DRAWN.standard_normal((2, 11, d_model))
ARRAYS = names_of(passed(), ids=ids, E=E, P=P, mask=tl.causal_mask(T, S))


def codes(text):
    """Return what stands as code in a text, without the roles, such as {term}`mask`."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"\{\w+\}`[^`]*`", "", text))


def shapes_in(text, sizes=SIZES):
    """Every shape that stands as code in a text, in numbers; the dots are one batch axis."""

    def length(name):
        return B if name == "..." else prod(sizes.get(n) or int(n) for n in name.split("*"))

    found = SHAPE.findall(" ".join(codes(text)))
    return [tuple(map(length, shape.split(", "))) for shape in found]


def rows_of(section):
    """The rows of the tables of a section, each a list of cells; the first is of headings."""
    rows = re.findall(r"^\| (.*) \|$", SECTIONS[section], re.MULTILINE)
    return [re.split(r" \| ", row) for row in rows]


def named_in(section):
    """The rows of a section by the name in their first cell."""
    return {codes(row[0])[0]: row for row in rows_of(section) if codes(row[0])}


def test_terms_of_the_glossary_stand_in_the_order_of_their_letters():
    wrong = [one for one, after in pairwise(ENTRIES) if one.lower() > after.lower()]
    assert not wrong, f"book/glossary.md: move {wrong} to their letters"


def as_read(text):
    """Return a text without roles, links, marks and case, and with one form of axis."""
    text = re.sub(r"\{term\}`([^`<]*?)(?: <[^`]*)?`", r"\1", text)
    text = re.sub(r"\[([^][]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[*`]", "", text).replace("axes", "axis").casefold().split())


@cache_calls
def read_chapter(chapter):
    """Return what the text of a chapter says, the words that it sets in bold, and those in code."""
    path = ROOT / "notebooks" / chapter
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else []
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    prose = re.sub(r"(?m)^\W*embed\W* · .*$", "", text)  # without the map and its steps in bold
    marked = (re.findall(mark, prose) for mark in (r"\*\*([^*]+)\*\*", r"`([^`\n]+)`"))
    bold, code = ({as_read(words).strip(".,:;") for words in found} for found in marked)
    return as_read(text), bold, code


def introduces(chapter, term, others):
    """Return whether a chapter uses a term, or sets another name of it in bold or in code."""
    text, bold, code = read_chapter(chapter)
    used = re.search(rf"(?<!\w){re.escape(as_read(term))}(s|d|ed)?(?!\w)", text)
    return bool(used) or any({name, f"{name}s"} & (bold | code) for name in map(as_read, others))


def in_bold_before(chapter, term):
    """Return the chapters before this one that set the term in bold."""
    earlier = [page.path.name for page in pages() if page.name[:2].isdigit()]
    forms = {as_read(term), f"{as_read(term)}s"}
    return [name for name in earlier if name < chapter and forms & read_chapter(name)[1]]


@pytest.mark.parametrize("term", ENTRIES)
def test_an_entry_begins_with_a_definition_and_ends_with_its_labels(term):
    first, last = (ENTRIES[term].split("\n\n")[i].strip() for i in (0, -1))
    told = f"book/glossary.md, {term}: "
    length = len(as_read(first).split())
    assert length <= MOST_WORDS, f"{told}define it in {MOST_WORDS} words, not in {length}"
    bold = [
        set(re.findall(r"[\w-]+", part)) for part in re.findall(r"\*\*(.+?)\*\*", first.lower())
    ]
    named = [words for words in bold if words & set(term.lower().split()) - {"a", "and", "of"}]
    assert len(named) == 1, f"{told}set the term, or a word of it, in bold once in its definition"
    labels = dict(re.findall(r"(?:^| · )\*([^*]+):\* (.+?)(?= · \*|$)", last))
    right = [label for label in LABELS if label in labels]
    assert list(labels) == right, f"{told}end it with labels of {LABELS}, in this order"
    others = labels.get("Also called", "")
    assert not re.search(r"[*{[]", others), f"{told}write its other names as plain text"
    chapters = re.findall(r"\]\(\.\./notebooks/(.+?)[#)]", labels.get("Chapter", ""))
    assert chapters, f"{told}link the chapter that introduces it behind *Chapter:*"
    for chapter in chapters:
        found = introduces(chapter, term, others.split(", "))
        assert found, f"{told}{chapter} does not use the term, nor mark one of: {others}"
    assert not (earlier := in_bold_before(chapters[0], term)), f"{told}{earlier} has it in bold"


@pytest.mark.parametrize("term", {**SHAPES, **{t: 1 for t in ENTRIES if shapes_in(ENTRIES[t])}})
def test_a_shape_in_the_glossary_is_that_of_its_array(term):
    expected = [np.shape(eval(array, ARRAYS)) for array in SHAPES.get(term, [])]
    found = shapes_in(ENTRIES[term])
    assert found == expected, (
        f"the entry {term} has shapes of {found}, its arrays have {expected}: correct the shape, "
        f"or SHAPES[{term!r}] in tests/chapters/test_look_up.py, which names an array for each"
    )


def test_a_product_in_the_glossary_is_what_it_is_said_to_be():
    alone = tl.trace(ARRAYS["X"], ARRAYS["params"])  # self-attention: its keys come from X too
    given = names_of(alone, ids=ids, E=E) | {"X": alone.X[:, None]}
    found = [code for text in ENTRIES.values() for code in codes(text)]
    products = [code for code in found if re.match(r"[^(]+ @ |E\[", code)]
    assert set(EQUAL) < set(products)
    for code in products:
        name, _, product = code.rpartition(" = ")
        expected = eval(name or EQUAL[code], given)
        np.testing.assert_allclose(eval(product, given), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("section", ["Arrays", "Learned matrices"])
def test_a_shape_in_the_notation_is_that_of_its_array(section):
    rows = named_in(section)
    fields = {"mask": "scores"}  # a mask fits the scores
    for name, row in rows.items():
        told = f"book/notation.md, {section}: correct the shape of {name}"
        assert shapes_in(row[1]) == [np.shape(ARRAYS[fields.get(name, name)])], told
    record = ARRAYS["params"] if section == "Learned matrices" else passed()
    assert {name for name in vars(record) if name != "params"} <= set(rows)


def variants():
    """The arrays of Part III by their names in the notation, with G = 2 of 6 heads and rank 8."""
    whole = tl.init_params(DRAWN, d_model=d_model, n_heads=6, d_k=d_k, d_v=d_v)
    X, few = DRAWN.standard_normal((B, S, d_model)), grouped.group_params(whole, 2)
    K, V = (tl.project_heads(X, W) for W in (few.W_K, few.W_V))
    short, slopes = latent.latent_params(whole, 8), positions.alibi_slopes(6)
    made = {"W_K": few.W_K, "W_V": few.W_V, "K": K, "V": V, "C": X @ short.W_D, "slopes": slopes}
    made |= {"positions": np.arange(T), "frequencies": positions.rope_frequencies(d_k)}
    made |= {"bias": positions.alibi_bias(T, S, slopes)}
    made |= gated()
    made |= {"sink": slopes, "W_G": whole.W_V}  # as wide as these
    return made | {name: getattr(short, name) for name in ("W_D", "W_UK", "W_UV")}


def gated():
    """A state of six heads, and gates that its writes take."""
    gates = {"beta": np.ones((6, 1, 1)), "decay": np.ones((6, d_k, 1))}
    k, v = np.zeros((B, 6, d_k)), np.ones((B, 6, d_v))
    return gates | {"state": states.delta_step(np.ones((B, 6, d_k, d_v)), k, v, **gates)}


def test_a_shape_among_the_variants_is_that_of_its_array():
    sizes = SIZES | {"H": 6, "G": 2, "rank": 8, "n": d_k // 2}
    made, left = variants(), set()
    for row in rows_of("Variants")[1:]:
        one_axis = [(sizes[name],) for name in re.findall(r"`\(([\w/]+),\)`", row[2])]
        found = shapes_in(row[2], sizes) + one_axis
        expected = [made[name].shape for name in codes(row[0]) if name in made]
        assert found == expected, f"book/notation.md, Variants: correct the shapes of {row[0]}"
        left |= set(codes(row[0])) - set(made)
    assert left == {"n_kv_heads", "rank", "capacity", "length"}


def models():
    """The arrays of Part IV by their names in the notation, with 20 places and 9 words of feed."""
    rows = {"U": (d_model, 11), "W_1": (d_model, 9), "W_2": (9, d_model), "P": (20, d_model)}
    made = {name: DRAWN.standard_normal(shape) for name, shape in rows.items()} | {"E": E}
    X = tl.embed(ids, E, made["P"])
    fed = block.block(X, ARRAYS["params"], made["W_1"], made["W_2"], mask=tl.causal_mask(T))
    made |= {"rms_norm(X)": block.rms_norm(fed), "X": fed, "logits": fed @ made["U"]}
    circuits = {"W_QK": qk_circuit(ARRAYS["params"], 1), "W_OV": ov_circuit(ARRAYS["params"], 1)}
    return made | circuits | {"target": np.full((B, T), -1)}


def test_a_shape_among_the_models_is_that_of_its_array():
    sizes, made = SIZES | {"positions": 20, "d_feed": 9}, models()
    rows = rows_of("Models")[1:]
    assert {name for row in rows for name in codes(row[0])} == set(made)
    for row in rows:
        expected = [made[name].shape for name in codes(row[0])]
        told = f"book/notation.md, Models: correct the shapes of {row[0]}"
        assert shapes_in(row[2], sizes) == expected, told


def test_the_arguments_and_results_in_the_notation_are_those_of_the_calls():
    record, rows = passed(d_v=d_k), named_in("Arrays")
    arrays = vars(record) | {"mask": tl.causal_mask(T, S)}

    def given(column, names):
        return {a: torch.tensor(arrays[n]) for n in names for a in codes(rows[n][column])}

    heads = F.scaled_dot_product_attention(**given(4, ["Q", "K", "V", "mask"]))
    assert rows["heads"][4] == "the result"
    np.testing.assert_allclose(heads, record.heads, rtol=1e-10, atol=1e-12)
    layer = bridge.torch_mha_from_params(record.params)
    call = given(3, ["X", "context"]) | {"attn_mask": ~torch.tensor(arrays["mask"])}
    results = dict(zip(("first result", "second result"), layer(**call), strict=True))
    for name, expected in {"Y": record.Y, "weights": record.weights.mean(axis=1)}.items():
        found = results[rows[name][3]].detach()
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_learned_matrices_of_the_notation_are_where_it_says():
    params = passed(d_v=d_k).params
    layer, rows = bridge.torch_mha_from_params(params), named_in("Learned matrices")
    [rest] = re.findall(r"`in_proj_weight` has shape `(.*?)`, .* is `(.*?)`", NOTATION)
    assert shapes_in(f"`{rest[0]}`", {"embed_dim": d_model}) == [tuple(layer.in_proj_weight.shape)]
    thirds = dict(
        zip(("first", "second", "last"), layer.in_proj_weight.detach().chunk(3), strict=True)
    )
    for name in ("W_Q", "W_K", "W_V"):
        stored, place = re.match(r"`(.*)`, (\w+) third", rows[name][3]).groups()
        expected = eval(rest[1].replace("W_Q", name), {"np": np, **vars(params)})
        assert stored == "in_proj_weight"
        np.testing.assert_allclose(thirds[place], expected)
    stored, how = re.match(r"`(.*)`, (\w+)", rows["W_O"][3]).groups()
    assert how == "transposed"
    np.testing.assert_allclose(reduce(getattr, stored.split("."), layer).detach().T, params.W_O)


def test_the_two_causal_masks_are_drawn_as_they_are():
    lines = re.findall(r"^([✓·] .*[✓·])  +([✓·] .*)$", NOTATION, re.MULTILINE)
    ours, torchs = (
        np.array([list(row.split()) for row in rows]) == "✓" for rows in zip(*lines, strict=True)
    )
    assert (ours == tl.causal_mask(2, 5)).all()
    V = torch.eye(5)[None]  # then a query's result shows the keys that it sees
    seen = F.scaled_dot_product_attention(
        torch.zeros(1, 2, 4), torch.zeros(1, 5, 4), V, is_causal=True
    )
    assert (torchs == (seen[0] > 0).numpy()).all()


def test_every_name_in_code_is_one_of_the_library_or_of_pytorch():
    layer, told = nn.MultiheadAttention(d_model, H), F.scaled_dot_product_attention.__doc__
    known = {name: getattr(layer, name) for name in dir(layer)} | vars(tl) | vars(np) | ARRAYS
    known |= variants() | models() | vars(block)
    known |= vars(builtins) | {"torch": torch, "nn": nn, "F": F}
    arguments = re.findall(r"(\w+)=", told.partition("->")[0])
    arguments += [word for name in SIZES for word in name.split()] + ["places", "d_feed"]
    calls = [nn.MultiheadAttention.__init__, nn.MultiheadAttention.forward, np.concatenate]
    calls += [grouped.group_params, latent.latent_params, positions.rope_frequencies]
    calls += [cache.KVCache.empty, cache.gather_pages]
    for call in calls:
        arguments += inspect.signature(call).parameters
    known |= dict.fromkeys(arguments)
    away = "Where PyTorch does otherwise"
    pages = SECTIONS | ENTRIES | {away: re.sub(r"(?m)^\|.*$", "", SECTIONS[away])}
    # Names of transformers are compared with its own classes.
    for section in ("Lengths", "Variants", "Models"):
        pages[section] = re.sub(r"(?m)[^|]*\|$", "", SECTIONS[section])
    for code in codes("".join(pages.values())):
        for name in NAME.findall(code):
            first, *rest = name.split(".")
            assert first in known, f"`{code}` names {first}, which neither has: correct the name"
            reduce(getattr, rest, known[first])

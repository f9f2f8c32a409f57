"""Quiz, prediction, Parsons problem, exhibits as bytes: what they hold, hide, weigh, refuse."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.elements.sample_bank import CHAPTER, REVIEW, option, sample_bank, sample_review
from tutorial_lib import running_example, trace
from tutorial_lib.elements import parsons, prediction, quiz
from tutorial_lib.elements.banks import as_number, check_bank, load_bank
from tutorial_lib.elements.exhibits import live_map, playground
from tutorial_lib.elements.markup import inline, text_of
from tutorial_lib.elements.parsons.element import draw_parsons, judge, shuffled
from tutorial_lib.elements.prediction.element import draw_prediction
from tutorial_lib.elements.quiz.element import draw_quiz
from tutorial_lib.elements.sources import FOLDER, KINDS, needed, script, style
from tutorial_lib.figures import HEAD_COLOURS

LIMITS = {
    "ask": 25_900,
    "bench": 18_900,
    "quiz": 3000,
    "predict-choice": 3400,
    "predict-number": 4000,
    "parsons": 7000,
    "bytes": 13_400,
    "map": 23_900,
    "playground": 25_300,
    "clock": 15_600,
    "drawing": 17_800,
    "heads": 11_900,
    "strip": 16_000,
    "plane": 18_000,
    "paint": 24_500,
    "tiles": 20_300,
    "sum": 18_700,
}
STYLE_LIMITS = {
    "ask": 10_700,
    "bench": 10_100,
    "parsons": 4500,
    "bytes": 7700,
    "map": 10_000,
    "playground": 14_400,
    "clock": 7700,
    "strip": 8800,
    "plane": 8800,
    "drawing": 8600,
    "heads": 9600,
    "paint": 11_100,
    "tiles": 8900,
    "sum": 9100,
}
VOID = {"input", "br", "img", "wbr"}


class Tree(HTMLParser):
    """Every tag with its attributes, and the text outside of style and script."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.open, self.faults = [], [], [], []
        self.feed(html)
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)


def drawn(bank=None):
    """All five elements of a bank."""
    bank = check_bank(bank or sample_bank(), CHAPTER)
    predictions = [draw_prediction(bank, CHAPTER, i) for i in (1, 2, 3)]
    return [*predictions, draw_quiz(bank, CHAPTER), draw_parsons(bank, CHAPTER)]


def page(bank=None):
    """All five elements, one after the other."""
    return "\n".join(element.html for element in drawn(bank))


def test_element_has_html_and_text_and_prints_as_its_text():
    for element in drawn():
        bundle = element._repr_mimebundle_(include=None, exclude=None)
        assert bundle == {"text/html": element.html, "text/plain": element.text}
        assert repr(element) == element.text


def page_elsewhere(module):
    """What `page()` of a test module gives in another process, with other hashes."""
    code = f"import {module} as t; print(t.page())"
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": path, "PYTHONUTF8": "1"}
    again = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return again.stdout.decode().removesuffix("\n")


def test_bytes_are_the_same_in_another_process():
    assert page_elsewhere(__name__) == page()


def test_five_elements_on_a_page_share_no_id_and_no_group_of_radio_buttons():
    tree = Tree(page())
    ids = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    boxes = re.findall(r"<fieldset>.*?</fieldset>", page(), re.S)
    groups = [{a["name"] for _, a in Tree(box).tags if "name" in a} for box in boxes]
    assert [len(group) for group in groups] == [1] * 6
    assert len(set.union(*groups)) == 6


def test_html_closes_what_it_opens_and_prefixes_every_class():
    for element in drawn():
        tree = Tree(element.html)
        assert (tree.open, tree.faults) == ([], [])
        classes = " ".join(attrs.get("class", "") for _, attrs in tree.tags).split()
        assert classes
        assert all(name == "tl" or name.startswith("tl-") for name in classes)


def test_every_control_keeps_its_keys_from_jupyterlab():
    controls = [attrs for tag, attrs in Tree(page()).tags if tag in ("input", "button")]
    assert len(controls) == 18 + 2 + 6 + 5 + 1
    assert all("data-lm-suppress-shortcuts" in attrs for attrs in controls)
    assert "element.dataset.lmSuppressShortcuts" in script("parsons")


@pytest.mark.parametrize("kind", KINDS)
def test_script_stays_small(kind):
    assert len(script(kind).encode()) <= LIMITS[kind]


def test_no_style_asks_what_a_box_holds_to_draw_what_is_in_it():
    """After such a rule a browser draws the whole page anew whenever anything changes."""
    asks = re.compile(r":has\((?:[^()]|\([^()]*\))*\)\)*[^\s,{>+~]*\s*[>+~ ]\s*[^\s,{]")
    for sheet in FOLDER.rglob("*.css"):
        rules = [line.partition("{")[0] for line in sheet.read_text(encoding="utf-8").splitlines()]
        ours = [rule for rule in rules if not rule.startswith(".jp-")]  # of JupyterLab's own page
        assert [rule for rule in ours if asks.search(rule)] == [], sheet.name
    assert asks.search(".tl:has(> p) > td")
    assert asks.search(".a:not(:has(> [b])) > c")


@pytest.mark.parametrize("kind", KINDS)
def test_style_stays_small(kind):
    assert len(style(kind).encode()) <= STYLE_LIMITS.get(kind, 3500)


def test_every_element_has_a_limit():
    assert set(KINDS) == set(LIMITS)


@pytest.mark.parametrize("kind", KINDS)
def test_script_of_an_element_is_that_of_its_files_in_a_block(kind):
    source = "\n".join(path.read_text(encoding="utf-8") for path in needed(kind))
    wanted = {line.strip().removeprefix("export ") for line in source.splitlines()}
    lines = script(kind).splitlines()
    assert (lines[0], lines[-1]) == ("{", "}")  # a block, so that a repeat declares nothing
    assert set(lines[1:-1]) <= wanted
    assert not any(line.startswith(("//", "import ", "export ")) for line in lines)
    assert re.findall(r'define\("(.+?)"', script(kind)) == [f"tl-{kind}"]


def test_every_file_beside_the_elements_comes_with_one_of_them():
    files = {path for path in FOLDER.rglob("*.*s") if path.suffix in (".js", ".css")}
    scripts = needed(*KINDS)
    assert files - {path.with_suffix(".css") for path in scripts} == set(scripts)


REACHES = [
    *("http", "fetch", "import(", "@import", "XMLHttpRequest", "url(", "</", "document.write"),
    *("localStorage", "sessionStorage", "indexedDB", "cookie", "eval"),
    *("Math.random", "Date", "setTimeout"),
]


@pytest.mark.parametrize("word", REACHES)
def test_script_and_style_reach_for_nothing_and_keep_nothing(word):
    code = style(*KINDS) + script(*KINDS)
    assert word not in re.sub(r"</(b|em|g|span|td|text|th|tr)>", "", code)


def test_style_mixes_every_colour_with_that_of_the_text_and_moves_nothing():
    sheet = style(*KINDS)
    assert re.findall(r"#[0-9a-f]{3,8}\b(?! [68]0%, currentColor\))", sheet) == []
    for property_ in ("transition", "animation", "transform"):
        assert property_ not in sheet
    for value in re.findall(r"(?:^|[\s;{])(?:color|background): ([^;]+);", sheet):
        allowed = r"inherit|none|var\(--tl-(tint|ink|paper)\)|color-mix\(|Canvas|currentColor"
        assert re.match(allowed, value), value


def test_heads_have_the_colours_of_the_figures():
    colours = re.findall(r'\[data-head="(\d)"\] \{ color: color-mix\(in srgb, (#\w+)', style("ask"))
    assert colours == [(str(h), colour) for h, colour in enumerate(HEAD_COLOURS)]


def test_form_without_a_script_holds_every_question_option_and_reason():
    bank = sample_bank()
    tree = Tree(page(bank))
    plain = {"`": "", "*": ""}
    for question in [*bank["predictions"], *bank["quiz"]]:
        reasons = [*question.get("options", []), *question.get("near", []), question]
        for text in [question["question"], *(r["why"] for r in reasons if "why" in r)]:
            assert text.translate(str.maketrans(plain)) in tree.text
    for distractor in bank["parsons"]["distractors"]:
        assert distractor["why"].replace("*", "") in tree.text
    solution = "\n".join(bank["parsons"]["lines"])
    assert f"<pre>{solution}</pre>" in page(bank)


def test_details_are_closed_and_hold_every_verdict():
    for element in drawn():
        assert "<details open" not in element.html
        outside = re.sub(r"<(details|script|style)>.*?</\1>", "", element.html, flags=re.S)
        assert "✓" not in outside
        assert "✗" not in outside


def test_one_right_answer_in_each_question():
    choice, fraction, whole, asked, _ = drawn()
    for element, count in ((choice, 1), (fraction, 1), (whole, 1), (asked, 5)):
        body = re.sub(r"<(script|style)>.*?</\1>", "", element.html, flags=re.S)
        assert body.count("✓ Right.") == count


def test_earlier_question_says_where_it_comes_from():
    html = draw_quiz(sample_bank(), CHAPTER).html
    assert html.count("From chapter 02.") == 3
    assert html.count("From chapter 01.") == 3


def test_text_asks_and_does_not_answer():
    bank = sample_bank()
    text = "\n".join(element.text for element in drawn(bank))
    for question in [*bank["predictions"], *bank["quiz"]]:
        assert question["question"] in text
        for given in question.get("options", []):
            assert given["text"] in text
            assert given["why"] not in text
    assert "✓" not in text
    assert "4/7" not in text
    assert "\n".join(bank["parsons"]["lines"]) not in text.replace("\n   ", "\n")


NASTY = "<img src=x onerror=alert(1)> & \"quotes\" 'too' </script><b>"


def test_texts_of_a_bank_are_escaped():
    bank = sample_bank()
    for question in [*bank["predictions"], *bank["quiz"]]:
        question["question"] = NASTY
        for record in [*question.get("options", []), *question.get("near", [])]:
            record["why"] = NASTY
        for i, given in enumerate(question.get("options", [])):
            given["text"] = f"{NASTY} {i}"
    for line in bank["parsons"]["distractors"]:
        line["why"], line["line"] = NASTY, line["line"] + NASTY
    bank["parsons"]["task"] = NASTY
    bank["parsons"]["lines"][0] = NASTY
    tree = Tree(page(bank))
    assert "img" not in [tag for tag, _ in tree.tags]
    assert tree.text.count("onerror=alert(1)") == page(bank).count("onerror=alert(1)") > 50
    assert (tree.open, tree.faults) == ([], [])


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a `b * c` d", "a <code>b * c</code> d"),
        ("*dogs* that *bark*", "<em>dogs</em> that <em>bark</em>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("H*d_v and T*d_k", "H*d_v and T*d_k"),
        ("`<b>` & *x*", "<code>&lt;b&gt;</code> &amp; <em>x</em>"),
        ("**no**, $x$, [no](link)", "**no**, $x$, [no](link)"),
    ],
)
def test_code_and_emphasis_are_the_only_markup(text, html):
    assert inline(text) == html


def test_lines_are_shuffled_by_their_text_alone_and_never_lie_in_order():
    for i in range(300):
        problem = {"lines": [f"a{i}", f"b{i}", f"c{i}"], "distractors": [{"line": f"d{i}"}]}
        pieces = shuffled(problem)
        assert pieces == shuffled(problem)
        assert sorted(line for line, *_ in pieces) == [f"{c}{i}" for c in "abcd"]
        assert [line for line, kind, _ in pieces if kind == "place"] != problem["lines"]


SOLUTION = sample_bank()["parsons"]["lines"]
BUG = sample_bank()["parsons"]["distractors"][1]["line"]
FIRST = "Every line so far is in its place."
VERDICTS = [
    ([], "Not complete. 4 lines are missing.", -1),
    (SOLUTION[:3], f"Not complete. {FIRST} 1 line is missing.", -1),
    (SOLUTION, "✓ Right. Every line is in its place.", -1),
    ([*SOLUTION, BUG], "Line 5: ✗ A bug. Then only the whole sums to 1.", 4),
    (SOLUTION[1:3], "✗ Not yet. Line 1 is the first out of place. 2 lines are missing.", 0),
]


def test_program_is_judged_by_its_first_wrong_line():
    for program, verdict, wrong in VERDICTS:
        html, place = judge(sample_bank()["parsons"], program)
        assert (" ".join(text_of(html).split()), place) == (verdict, wrong)


def test_quiz_counts_first_tries_and_names_what_to_read_again_each_once():
    bank = sample_bank()
    asked = [(text_of(inline(q["question"])), q["options"][1]["text"]) for q in bank["quiz"]]
    html = draw_quiz(bank, CHAPTER, {text: {"first": wrong} for text, wrong in asked}).html
    score = html.partition("</tl-quiz>")[0].rpartition("<p")[2]
    again = "Round 1: all of it; chapter 02, Round 1: all of it; chapter 01, Round 1: all of it"
    words = f"1 of 5 right at the first try. Read again: {again}"
    assert text_of(f"<p{score}").strip() == words
    pages = ["", "02_queries_keys_values.ipynb", "01_embeddings.ipynb"]
    assert re.findall('href="(.*?)#', score) == pages


def test_line_keeps_its_indentation_in_html_and_text():
    element = draw_parsons(sample_bank(), CHAPTER)
    assert '">    powers = np.exp(scores - top)</code>' in element.html
    assert "\n       powers = np.exp(scores - top)" in element.text


@pytest.mark.parametrize(
    ("value", "number"), [("4/7", 4 / 7), (0.25, 0.25), ("0.25", 0.25), (-3, -3.0), ("-1/4", -0.25)]
)
def test_bank_writes_a_number_or_a_fraction(value, number):
    assert as_number(value) == number


@pytest.mark.parametrize("value", ["4/0", "four", "", True, None, [1], float("nan"), float("inf")])
def test_bank_writes_no_other_number(value):
    with pytest.raises(ValueError, match=r"is not a number\. Write 0\.25"):
        as_number(value)


@pytest.mark.parametrize("show", [quiz, parsons, lambda chapter: prediction(chapter, 1)])
@pytest.mark.parametrize("chapter", ["3", "03", "", None, 3, "../errors"])
def test_unknown_chapter_names_those_that_there_are(show, chapter):
    with pytest.raises(ValueError, match=r"There is no chapter .* There are: \['01_embeddings'"):
        show(chapter)


@pytest.mark.parametrize("number", [0, 4, -1, "1", None, True, 1.0])
def test_unknown_prediction_names_those_that_there_are(number):
    with pytest.raises(ValueError, match=r"no prediction .* It has: \[1, 2, 3\]"):
        prediction("01_embeddings", number)


def test_review_has_a_quiz_and_says_that_it_has_no_puzzle_and_no_prediction():
    bank = check_bank(sample_review(), REVIEW)
    drawn = draw_quiz(bank, REVIEW)
    assert drawn.html.count("<fieldset>") == 16
    assert "From chapter 08." in drawn.html
    with pytest.raises(ValueError, match=r"review_part_1 has no Parsons problem"):
        draw_parsons(bank, REVIEW)
    with pytest.raises(ValueError, match=r"no prediction 1\. It has: \[\]"):
        draw_prediction(bank, REVIEW, 1)


def test_chapter_shows_its_own_bank():
    bank = load_bank("01_embeddings")
    assert quiz("01_embeddings") == draw_quiz(bank, "01_embeddings")
    assert parsons("01_embeddings") == draw_parsons(bank, "01_embeddings")
    assert prediction("01_embeddings", 2) == draw_prediction(bank, "01_embeddings", 2)


def tables():
    """The playground's tables without a script: caption → (names of columns, rows of text)."""
    found = {}
    _, below = playground().html.split('<div class="tl-step">', 1)
    for table in re.findall(r"<table.*?</table>", below, re.S):
        [caption] = re.findall(r"<caption>(.*?)</caption>", table)
        rows = [re.findall(r"<t([hd])>(.*?)</t", row) for row in re.findall(r"<tr>.*?</tr>", table)]
        found[re.sub("<.*?>", "", caption)] = [[text for _, text in row] for row in rows]
    return found


def test_playground_shows_every_number_of_the_layer_as_a_fraction():
    example, unit = running_example(), np.log(2)
    params, record = example.params, trace(example.X, example.params, mask=example.mask)
    heads = {
        "W_Q, head {} × 2 ln 2": params.W_Q / (2 * unit),
        "Q, head {} × 2 ln 2": record.Q / (2 * unit),
        "scores, head {} × ln 2": record.scores / unit,
    }
    heads |= {f"{name}, head {{}}": getattr(params, name) for name in ("W_K", "W_V")}
    heads |= {
        f"{name}, head {{}}": getattr(record, name) for name in ("K", "V", "weights", "heads")
    }
    expected = {title.format(h): array[h] for title, array in heads.items() for h in (0, 1)}
    expected |= {name: getattr(record, name) for name in ("X", "concat", "Y")}
    expected |= {"W_O": params.W_O, "mask": example.mask, "scale": np.array([[2]])}
    assert set(tables()) == set(expected)
    for title, (_, *rows) in tables().items():
        words = [[{"✓": "1", "·": "0"}.get(text, text) for text in row[1:]] for row in rows]
        numbers = [[float(Fraction(word.replace("−", "-"))) for word in row] for row in words]
        np.testing.assert_allclose(numbers, expected[title], rtol=1e-12, atol=1e-12, err_msg=title)


def test_playground_shows_what_makes_a_number_before_the_number():
    names = list(dict.fromkeys(title.split(",")[0] for title in tables()))
    assert names == [
        *("X", "W_Q", "Q", "W_K", "K", "W_V", "V", "scale", "scores", "mask", "weights"),
        *("heads", "concat", "W_O", "Y"),
    ]


def test_playground_names_rows_and_columns():
    shown = tables()
    words = list(running_example().tokens)
    for title in ("scores, head 1 × ln 2", "weights, head 0", "mask"):
        assert shown[title][0] == ["", *words]
        assert [row[0] for row in shown[title][1:]] == words
    assert [row[0] for row in shown["Y"]] == ["", *words]
    assert [row[0] for row in shown["W_V, head 0"]] == ["", *"01234567"]


def test_map_leads_to_the_chapters_of_its_steps_and_to_the_playground():
    tree = Tree(live_map(("score",), links={"score": "03.html"}, playground="06.html#look").html)
    assert [attrs["href"] for tag, attrs in tree.tags if tag == "a"] == ["03.html", "06.html#look"]


@pytest.mark.parametrize("given", [{"steps": ("look",)}, {"links": {"scores": "03.html"}}])
def test_map_refuses_a_step_that_is_none(given):
    with pytest.raises(ValueError, match=r"'\w+' is no step; expected one of embed, project"):
        live_map(**given)


def set_at(bank, path, value):
    """Set, or with `del` remove, what stands at a path of keys."""
    *outer, last = path
    for key in outer:
        bank = bank[key]
    if value == "del":
        del bank[last]
    else:
        bank[last] = value


FAULTS = {
    "a key is missing": (["quiz"], "del", r"\.quiz is missing"),
    "a key too many": (["notes"], [], r"\.notes is not a key"),
    "no list": (["quiz"], {}, r"\.quiz is \{\}; it should be a list"),
    "no object": (["quiz", 1], "why?", r"\.quiz\[1\] is 'why\?'; it should be an object"),
    "no text": (["quiz", 1, "question"], "", r"\.quiz\[1\]\.question is ''; .* a text"),
    "no source": (["quiz", 1, "from"], "del", r"\.quiz\[1\]\.from is missing"),
    "a source that is no text": (["quiz", 1, "from"], 2, r"\.quiz\[1\]\.from is 2"),
    "no reason": (["quiz", 2, "options", 1, "why"], "del", r"quiz\[2\]\.options\[1\]\.why is miss"),
    "an empty reason": (["quiz", 2, "options", 1, "why"], " ", r"options\[1\]\.why is ' '"),
    "correct is no boolean": (["quiz", 2, "options", 1, "correct"], 1, r"write true or false"),
    "no right option": (["quiz", 2, "options", 0, "correct"], False, r"has 0 correct options"),
    "two right options": (["quiz", 2, "options", 1, "correct"], True, r"has 2 correct options"),
    "an option twice": (["quiz", 2, "options", 1, "text"], "none", r"says the same thing twice"),
    "no answer": (["predictions", 1, "answer"], "del", r"predictions\[1\]\.answer is missing"),
    "no number": (["predictions", 1, "answer"], "a third", r"\.answer: 'a third' is not a number"),
    "a tolerance below 0": (["predictions", 1, "tolerance"], -1, r"should be 0 or more"),
    "a near value that is right": (
        ["predictions", 1, "near", 0, "value"],
        0.58,
        r"keep them apart",
    ),
    "two near values that are one": (
        ["predictions", 1, "near"],
        [{"value": value, "why": "No."} for value in (0.2, "1/5")],
        r"near\[1\]\.value, 0\.2, .* keep them apart",
    ),
    "an option that is no text": (["quiz", 2, "options", 1, "text"], 3, r"\.text is 3; .* a text"),
    "a bug that is a line": (
        ["parsons", "distractors", 0, "line"],
        "def softmax(scores):",
        r"is a line of the solution",
    ),
    "no lines": (["parsons", "lines"], "x=1", r"should be a list of lines"),
    "an empty line": (["parsons", "lines", 0], "", r"should be a list of lines"),
    "two lines": (["parsons", "lines"], ["a", "b"], r"3 make an order"),
    "no reason for a bug": (["parsons", "distractors", 1, "why"], "del", r"tors\[1\]\.why is miss"),
}


@pytest.mark.parametrize(("path", "value", "message"), FAULTS.values(), ids=FAULTS)
def test_malformed_bank_says_which_key(path, value, message):
    bank = sample_bank()
    set_at(bank, path, value)
    with pytest.raises(ValueError, match=message) as caught:
        check_bank(bank, CHAPTER)
    assert str(caught.value).startswith(f"bank {CHAPTER}.")


def test_sample_bank_is_well_formed():
    assert check_bank(sample_bank(), CHAPTER)["quiz"][0]["options"][1] == option(
        "the queries", "Then columns would sum to 1."
    )

"""The gallery as bytes: what it carries, rounds, names and refuses."""

import html as html_module
import json
import re

import numpy as np
import pytest

from tests.elements.test_elements import Tree, page_elsewhere
from tutorial_lib import causal_mask, running_example, softmax, trace
from tutorial_lib.elements import gallery
from tutorial_lib.elements.sources import script, style
from tutorial_lib.errors import ShapeError
from tutorial_lib.figures import HEAD_COLOURS

H, T = 3, 5
TOKENS = list("vwxyz")
EXAMPLE = running_example()


def some_weights(heads=H, queries=T, keys=None, seed=0):
    """Weights of a softmax."""
    shape = heads, queries, keys or queries
    return softmax(2 * np.random.default_rng(seed).standard_normal(shape))


def example_weights():
    """(2, 3, 3), every weight a fraction."""
    return trace(EXAMPLE.X, EXAMPLE.params, mask=EXAMPLE.mask).weights


def asked(scores=(0.25, 0.5, 0.1)):
    """A gallery of three heads with these scores."""
    answers = [(score, f"reason {h}") for h, score in enumerate(scores)]
    return gallery(some_weights(), TOKENS, "Which *head*?", answers)


def drawn(weights, tokens=TOKENS, **options):
    """A gallery of any weights, whose last head scores highest."""
    answers = [(h, "why") for h in range(len(weights))]
    return gallery(weights, tokens, "Which?", answers, **options)


def example():
    """A gallery of the running example."""
    return drawn(example_weights(), EXAMPLE.tokens, mask=EXAMPLE.mask)


def carried(element):
    """What the script reads: thousandths (H * T rows, NaN where hidden), tokens, fractions."""
    [found] = re.findall(r'<div class="tl-live[^>]*>', element.html)
    data = dict(re.findall(r'data-(\w+)="([^"]*)"', found))
    data = {name: html_module.unescape(text) for name, text in data.items()}
    tokens = json.loads(data["tokens"])
    rows = [re.findall("..", row) for row in data["weights"].split(" ")]
    numbers = [
        [
            np.nan if pair == "--" else int(pair, 36)
            for pair in row + ["--"] * (len(tokens) - len(row))
        ]
        for row in rows
    ]
    return np.array(numbers), tokens, json.loads(data["fractions"])


def test_weights_travel_in_thousandths():
    weights = some_weights()
    numbers, tokens, fractions = carried(drawn(weights))
    np.testing.assert_allclose(numbers.reshape(H, T, T), 1000 * weights, atol=0.5 + 1e-9)
    assert (tokens, fractions) == (TOKENS, {})


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_weights_of_low_precision_are_taken(dtype):
    weights = some_weights().astype(dtype)
    numbers, *_ = carried(drawn(weights))
    np.testing.assert_allclose(numbers.reshape(H, T, T), 1000 * some_weights(), atol=1)


def test_hidden_keys_are_not_zeros():
    weights = np.stack([np.tri(4) / np.arange(1, 5)[:, None]] * 2)
    hidden, *_ = carried(drawn(weights, TOKENS[:4], mask=causal_mask(4)))
    shown, *_ = carried(drawn(weights, TOKENS[:4]))
    assert np.array_equal(np.isnan(hidden.reshape(2, 4, 4)), weights == 0)
    assert not np.isnan(shown).any()


def test_mask_that_hides_a_key_before_one_that_is_seen():
    mask = np.array([[True, False, True], [False, True, True], [True, True, False]])
    numbers, *_ = carried(drawn(mask[None] / 2, TOKENS[:3], mask=mask))
    np.testing.assert_array_equal(numbers, np.where(mask, 500, np.nan))


def test_weights_that_are_all_fractions_are_written_so():
    element = example()
    *_, fractions = carried(element)
    assert fractions["571"] == "4/7"
    assert fractions["1000"] == "1"
    assert "head 0, bark: dogs 4/7, bark 2/7, that 1/7" in element.text
    assert "<td>dogs 4/7, bark 2/7, that 1/7</td>" in element.html


def test_one_weight_that_is_no_fraction_makes_all_decimals():
    weights = np.array([[[0.5, 0.5], [1 / np.pi, 1 - 1 / np.pi]]])
    element = drawn(weights, ["a", "b"])
    assert carried(element)[2] == {}
    assert "head 0, a: a 0.500, b 0.500" in element.text
    assert "head 0, b: b 0.682, a 0.318" in element.text


def test_two_fractions_that_share_a_thousandth_leave_no_fraction():
    rows = np.array([[62 / 63, 1 / 63], [63 / 64, 1 / 64]])
    assert len(set(np.round(1000 * rows[:, 1]))) == 1
    assert carried(drawn(rows[None], ["a", "b"]))[2] == {}


def test_noise_in_the_last_digit_changes_no_byte():
    weights, noise = example_weights(), np.random.default_rng(1).uniform(-1e-13, 1e-13, (2, 3, 3))
    noisy = np.where(EXAMPLE.mask, weights + noise, 0)
    assert drawn(noisy, EXAMPLE.tokens, mask=EXAMPLE.mask) == example()
    uniform = np.full((1, 16, 16), 1 / 16)  # 62.5 thousandths each
    assert drawn(uniform + 1e-15, range(16)) == drawn(uniform - 1e-15, range(16))


def page():
    """One of each, as bytes."""
    return example().html + example().text + asked().html + asked().text


def test_bytes_are_the_same_in_another_process():
    assert page_elsewhere(__name__) == page()


def test_html_closes_what_it_opens_and_every_control_keeps_its_keys():
    tree = Tree(re.sub(r"<svg.*?</svg>", "", asked().html))
    assert (tree.open, tree.faults) == ([], [])
    controls = [attrs for tag, attrs in tree.tags if tag in ("input", "button")]
    assert len(controls) == H + 2
    assert all("data-lm-suppress-shortcuts" in attrs for attrs in controls)
    assert len([attrs for _, attrs in tree.tags if attrs.get("aria-live") == "polite"]) == 2


def test_every_map_has_names_on_both_axes_and_words_for_who_cannot_see_it():
    pictures = re.findall(r"<svg.*?</svg>", asked().html)
    assert len(pictures) == H
    for h, picture in enumerate(pictures):
        names = re.findall(r">([^<]+)</text>", picture)
        assert sorted(names) == sorted(["query ↓", "key →", *TOKENS, *TOKENS])
        assert f'role="img" aria-label="The weights of head {h} as a map: arrow keys' in picture


@pytest.mark.parametrize("length", [3, 12, 24, 33, 64])
def test_names_on_an_axis_do_not_touch(length):
    html = drawn(np.full((1, length, length), 1 / length), range(length)).html
    heights = re.findall(r'<text transform="translate\(\d+ ([\d.]+)\)" text-anchor="end', html)
    rows = sorted(map(float, heights))[1:-1]  # without the names of the axes
    assert min(np.diff(rows)) >= 14
    assert len(rows) >= min(length, 12)


def names_of(keys):
    """The names below a map of these keys: (x, y, is upright), and its two sizes."""
    html = drawn(np.full((1, len(keys), len(keys)), 1 / len(keys)), keys).html
    [picture] = re.findall(r"<svg.*?</svg>", html)
    found = re.findall(
        r'translate\(([\d.]+) ([\d.]+)\)( rotate\(-90\))?" text-anchor="(\w+)">\w', picture
    )
    below = [(float(x), float(y), not turn) for x, y, turn, at in found if turn or at == "middle"]
    return below, tuple(map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', picture).groups()))


@pytest.mark.parametrize(
    ("n_keys", "letters", "upright"),
    [(12, 2, True), (12, 3, False), (20, 2, True), (20, 3, False), (40, 1, True), (40, 3, False)],
)
def test_names_of_keys_are_upright_where_they_have_room_and_else_turned(n_keys, letters, upright):
    places, (width, height) = names_of([chr(200 + s) * letters for s in range(n_keys)])
    length = 7 * letters
    assert {is_upright for *_, is_upright in places} == {upright}
    apart = np.diff([x for x, *_ in places])
    assert apart.min() >= (length + 3 if upright else 13)
    for x, y, _ in places:
        assert x + (length / 2 if upright else 0) <= width
        assert 20 < y + (0 if upright else length) <= height


def test_a_name_of_nine_letters_is_whole_and_a_longer_one_is_cut_to_nine():
    html = drawn(np.full((1, 2, 2), 0.5), ["n" * 9, "m" * 10]).html
    names = re.findall(r">([^<]+)</text>", html.partition("</svg>")[0])
    assert {*names[2:]} == {"n" * 9, "m" * 8 + "…"}


NASTY = ["</script><b>", "$x$", 'a "b" & c', "line\nbreak", "<img src=x onerror=alert(1)>"]


def test_tokens_are_escaped_and_stay_in_one_line():
    element = drawn(some_weights(1), NASTY)
    tags = [tag for tag, _ in Tree(element.html).tags]
    assert "img" not in tags
    assert tags.count("b") == 2, "its name and its score"
    assert carried(element)[1][3] == r"line\nbreak"
    assert element.html.count("</script>") == 1
    assert 'class="tl-live tl-heads tex2jax_ignore mathjax_ignore"' in element.html


def test_names_that_repeat_get_their_positions():
    element = drawn(some_weights(1, 3), ["h", "e", "h"])
    assert carried(element)[1] == ["h (0)", "e", "h (2)"]
    assert "A number in brackets is a position" in element.html
    assert "in brackets" not in drawn(some_weights(1, 3), ["h", "e", "a"]).html


def test_form_without_a_script_holds_the_strongest_keys_of_every_query():
    weights = some_weights()
    element = drawn(weights)
    rows = re.findall(
        r'<tr><td>(\d)</td><th scope="row">(\w)</th><td>(.*?)</td></tr>', element.html
    )
    assert len(rows) == H * T
    for h, query, keys in rows:
        row = weights[int(h), TOKENS.index(query)]
        best = np.argsort(-row)[:3]
        assert keys == ", ".join(f"{TOKENS[s]} {row[s]:.3f}" for s in best)
        assert f"head {h}, {query}: {keys}" in element.text


def test_query_that_sees_nothing_looks_at_nothing():
    weights = some_weights(1, 2)
    weights[0, 1] = 0
    assert "head 0, r: nothing" in drawn(weights, ["q", "r"]).text


def test_large_array_says_that_it_is_too_large_for_a_table():
    element = drawn(some_weights(16, 64), range(64))
    said = "16 heads with 64 queries each are too many for one table."
    assert said in element.text
    assert said in element.html
    assert "<td>0</td>" not in element.html


@pytest.mark.parametrize(("causal", "most"), [(False, 198_000), (True, 133_500)])
def test_largest_array_stays_light(causal, most):
    weights = some_weights(16, 64)
    if causal:
        weights = weights * np.tri(64)
        weights /= weights.sum(axis=-1, keepdims=True)
    element = drawn(weights, range(64), mask=causal_mask(64) if causal else None)
    assert len(element.html.encode()) <= most


def test_heads_have_the_colours_of_the_figures():
    colours = re.findall(
        r'\[data-head="(\d)"\] \{ color: color-mix\(in srgb, (#\w+) 60%', style("gallery")
    )
    assert colours == [(str(h), colour) for h, colour in enumerate(HEAD_COLOURS)]
    assert "% 4" in script("gallery")


WRONG = {
    "a list": ([[[1.0]]], {}, TypeError, "weights is a list"),
    "a batch axis": (some_weights()[None], {}, ShapeError, r"expected \(H, T, T\)"),
    "one head alone": (some_weights()[0], {}, ShapeError, r"expected \(H, T, T\)"),
    "heads": (some_weights(17), {}, ShapeError, r"axis H has 17 heads; expected at most 16"),
    "queries": (some_weights(1, 65), {}, ShapeError, r"axis T has 65 queries; expected at most 64"),
    "other keys": (some_weights(keys=6), {}, ShapeError, r"expected \(H, T, T\) with T=5"),
    "no query": (some_weights()[:, :0, :0], {}, ShapeError, r"axis T is empty"),
    "tokens": (
        some_weights(queries=4),
        {},
        ShapeError,
        r"axis T has 4 queries, but 5 names are given for them; expected one for each\.$",
    ),
    "infinite": (
        some_weights() + np.inf,
        {},
        ValueError,
        r"weights is inf at position \(0, 0, 0\)",
    ),
    "scores": (some_weights() - 1, {}, ValueError, r"expected 0 to 1\. If these are scores"),
    "one weight below 0": (
        some_weights() - np.eye(T),
        {},
        ValueError,
        r"weights is -0\.\d+ at position \(0, 0, 0\); expected 0 to 1",
    ),
    "columns": (
        np.swapaxes(some_weights(), -1, -2),
        {},
        ValueError,
        r"row of head 0, query 0 sums to .* along axis S; expected 1, or 0",
    ),
    "a mask of numbers": (some_weights(), {"mask": np.ones((T, T))}, TypeError, "mask is of type"),
    "a mask too wide": (some_weights(), {"mask": np.ones((T, 7), dtype=bool)}, ShapeError, "mask"),
    "another mask": (
        some_weights(),
        {"mask": causal_mask(T)},
        ValueError,
        r"mask hides position \(0, 0, 1\), where the weight is",
    ),
}


@pytest.mark.parametrize(("weights", "options", "kind", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_drawn_is_refused_by_its_axis(weights, options, kind, message):
    with pytest.raises(kind, match=message):
        drawn(weights, **options)


def test_error_says_how_to_mend_it():
    with pytest.raises(ShapeError, match=r"Choose some of them: weights\[:16\]\."):
        drawn(some_weights(17))


def test_inputs_are_left_as_they_were(assert_untouched):
    assert_untouched(drawn, some_weights(), TOKENS)


def test_gallery_marks_the_highest_score_alone():
    html = asked().html
    shown = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.S)
    assert re.findall("✓ ([^<]+)<", shown) == ["0.50"]
    reasons = re.findall(r"<dt>(.*?)</dt>\s*<dd><b[^>]*>(.*?)</b> (.*?)</dd>", html)
    assert reasons == [
        ("head 0", "0.25", "reason 0"),
        ("head 1", "✓ 0.50", "reason 1"),
        ("head 2", "0.10", "reason 2"),
    ]


def test_gallery_asks_and_its_text_does_not_answer():
    element = asked()
    assert "<legend>Which <em>head</em>?</legend>" in element.html
    assert element.text.startswith("Which *head*? 3 heads, 5 queries, 5 keys")
    assert "reason" not in element.text
    assert "0.50" not in element.text.partition("\n")[0]
    outside = re.sub(r"<(details|script|style)\b.*?</\1>", "", element.html, flags=re.S)
    assert "reason" not in outside
    assert len(re.findall(r'<svg class="tl-weights"', element.html)) == H


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        ((1, 2), ShapeError, r"axis H of weights has 3 heads, but 2 answers"),
        ((1, 1, 0), ValueError, r"the scores are 1\.00, 1\.00, 0\.00; .* the highest"),
        ((0.501, 0.5, 0), ValueError, r"the scores are 0\.50, 0\.50, 0\.00"),
        ((np.nan, 1, 2), ValueError, r"the scores are nan, 1\.00, 2\.00"),
    ],
)
def test_gallery_wants_one_best_answer(scores, kind, message):
    with pytest.raises(kind, match=message):
        asked(scores)


# A gallery whose truth is known.

TARGET = np.array([-1, 0, 1, -1, 2])


def known(target=TARGET, *, heads=H, queries=TOKENS, mask=None):
    """A gallery of some heads, of which head 1 scores highest, with what decides."""
    T = len(queries)
    mask = causal_mask(T) if mask is None else mask
    weights = softmax(np.where(mask, np.log(some_weights(heads, T)), -np.inf))
    answers = [(0.9 if h == 1 else h / 100, f"reason {h}") for h in range(heads)]
    return gallery(weights, queries, "Which?", answers, mask=mask, target=target), weights


def rings(element):
    """Query and key of the rings of each map, and how wide a ring is, in cells."""
    maps = re.findall(r'<svg class="tl-weights".*?</svg>', element.html, re.S)
    for svg in maps:
        left, top, side = map(int, re.search(r"(\d+) (\d+)\)\" data-side=\"(\d+)", svg).groups())
        (rim, line) = re.findall(r'<path d="([^"]*)"', svg)
        assert rim == line, "a rim of the other ink below each ring"
        found = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)a([\d.]+)", line)
        places = [
            ((float(y) - top + w / 2) // side, (float(x) - left + float(h) / 2) // side)
            for x, y, h, r in found
            for w in [float(h) + 2 * float(r)]
        ]
        yield places, {(float(h) + 2 * float(r)) / side for *_, h, r in found}


def test_a_ring_stands_in_every_map_where_a_word_decides():
    element, _ = known()
    for places, widths in rings(element):
        assert places == [(1, 0), (2, 1), (4, 2)]
        assert max(widths) < 1, "inside a cell that has room for a number"
    small, _ = known(np.arange(40) // 2, queries=range(40))
    for places, widths in rings(small):
        assert places == [(t, t // 2) for t in range(40)]
        assert min(widths) > 1, "around a cell that is small"
    assert json.loads(html_module.unescape(re.search('data-target="(.*?)"', element.html)[1])) == [
        *TARGET.tolist()
    ]


def test_what_decides_is_told_in_words():
    element, weights = known()
    lines = element.text.splitlines()
    assert len(lines) == 1 + H * T
    for h in range(H):
        for t, key in enumerate(TARGET.tolist()):
            told = f"{TOKENS[key]} {weights[h, t, key]:.3f}" if key >= 0 else "none"
            assert lines[1 + h * T + t].endswith(f"; target: {told}")
            assert f"<td>{told}</td></tr>" in element.html
    assert '<th scope="col">target</th>' in element.html
    ring = "A ring marks the target: the word that decides which word comes after the query."
    assert f' {ring}</p>\n<div class="tl-live' in element.html, "before the maps"
    assert element.html.count(ring) == 1
    said = "choose a query and a key; a ring is the target, the word that decides the next one"
    assert element.html.count(said) == H


def test_a_long_table_keeps_the_queries_whose_next_word_is_decided():
    target = np.full(40, -1)
    target[[7, 31]] = 3
    element, _ = known(target, queries=range(40))
    assert len(element.text.splitlines()) == 1 + 2 * H
    assert "The strongest keys, where a word decides the next: 3 heads, 40 queries" in element.html
    element, _ = known(np.arange(40), queries=range(40))
    assert "too many for one table" in element.text


def test_a_key_that_decides_and_is_hidden_from_one_head_is_told_to_be_hidden():
    mask = np.stack([causal_mask(T), causal_mask(T) & ~causal_mask(T).T | np.eye(T, dtype=bool)])
    mask = np.concatenate([mask, mask[:1]])
    mask[1, 4, 2] = False
    element, _ = known(mask=mask)
    assert "head 1, z: " in element.text
    assert re.search(r"head 1, z: .*; target: x hidden", element.text)


def test_gallery_without_a_truth_says_nothing_of_it():
    assert "decides" not in re.sub("<script>.*?</script>", "", asked().html, flags=re.S)
    assert "data-target" not in asked().html
    assert "decides" not in asked().text


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        (TARGET.tolist(), TypeError, r"target is a list; expected a NumPy array"),
        (TARGET > 0, TypeError, r"target is an array of bool"),
        (TARGET.astype(float), TypeError, r"target is an array of float64; expected whole numbers"),
        (TARGET[None], ShapeError, r"target has shape \(1, 5\).*expected \(T\)"),
        (TARGET[:4], ShapeError, r"target has shape \(4,\)"),
        (TARGET * 0 + 5, ValueError, r"target is 5 at query 0; expected -1 to 4"),
        (TARGET - 1, ValueError, r"target is -2 at query 0; expected -1 to 4"),
        (TARGET[::-1].copy(), ValueError, r"target is 2 at query 0, a key that mask hides"),
    ],
)
def test_a_truth_that_is_no_place_is_refused(target, kind, message):
    with pytest.raises(kind, match=message):
        known(target)

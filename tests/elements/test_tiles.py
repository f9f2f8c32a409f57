"""The tiles as bytes: without a script they are the library's steps, from the scores to the end."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from tests.elements.test_elements import Tree
from tutorial_lib import causal_mask, running_example, scaled_dot_product_attention, trace
from tutorial_lib.elements.exhibits import fold_tiles

HTML = {owners: fold_tiles(owners=owners).html for owners in (1, 2, 3)}
WORDS = ["dogs", "that", "bark", "cats", "that", "sleep"]
ROW = re.compile(r'<th scope="row">queries (\S+), keys (\S+)</th>(.*?)</tr>')


def given(owners):
    """What the script of an element starts from."""
    return json.loads(
        next(a["data-given"] for _, a in Tree(HTML[owners]).tags if "data-given" in a)
    )


def numbers(text):
    """The fractions of a cell."""
    return [float(Fraction(n)) for n in re.findall(r"-?\d+(?:/\d+)?", text.replace("−", "-"))]


def test_first_three_words_are_the_running_example_and_the_rest_its_layer():
    example = running_example()
    short = trace(example.X, example.params, mask=example.mask)
    S, V, heads = (np.array(given(1)[name]) for name in ("S", "V", "heads"))
    np.testing.assert_allclose(S[:3, :3] * np.log(2), short.scores[0], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(V[:3], short.V[0])
    np.testing.assert_allclose(heads[:3], short.heads[0], rtol=0, atol=1e-11)
    X = example.E[example.vocabulary.ids(WORDS)] + np.tile(example.P[:3], (2, 1))
    whole = trace(X, example.params, mask=causal_mask(6))
    np.testing.assert_allclose(S * np.log(2), whole.scores[0], rtol=0, atol=1e-12)
    plain = scaled_dot_product_attention(whole.Q[0], whole.K[0], whole.V[0], mask=causal_mask(6))
    np.testing.assert_allclose(heads, plain, rtol=0, atol=1e-11)
    assert given(1)["words"] == WORDS


@pytest.mark.parametrize("owners", HTML)
def test_form_without_a_script_holds_every_score_and_every_step(owners):
    S, heads = np.array(given(owners)["S"]), np.array(given(owners)["heads"])
    grid = HTML[owners].split('class="tl-scores"')[1].split("<tbody>")[1].split("</table>")[0]
    assert numbers(" ".join(re.findall("<b>(.*?)</b>", grid))) == list(S[np.tril_indices(6)])
    assert grid.count("<td data-out") == 15
    ends, powers = {}, 2.0 ** np.where(causal_mask(6), S, -np.inf)
    came = np.zeros((6, 6), bool)
    for queries, keys, cells in ROW.findall(HTML[owners]):
        query, maximum, total, mixed, output = re.findall("<td>(.*?)</td>", cells)
        t = int(query[0])
        first, last = (int(end) for end in (keys[0], keys[-1]))
        assert int(queries[0]) <= t <= int(queries[-1])
        came[t, first : last + 1] = True
        seen = powers[t] * came[t]
        assert numbers(maximum) == [np.log2(seen.max())]
        assert numbers(total) == pytest.approx([seen.sum() / seen.max()], rel=1e-12)
        assert numbers(mixed) == pytest.approx(seen @ given(owners)["V"] / seen.max(), rel=1e-12)
        ends[t] = numbers(output)
    assert [ends[t] for t in range(6)] == [pytest.approx(row, abs=1e-11) for row in heads]
    assert (came | ~causal_mask(6)).all()


@pytest.mark.parametrize("owners", [0, 4, 6, "2"])
def test_owners_that_six_words_do_not_divide_are_refused(owners):
    with pytest.raises(ValueError, match="expected 1, 2 or 3, as six words divide"):
        fold_tiles(owners=owners)

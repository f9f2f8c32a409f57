"""The tiles in Chromium: what each query has is the library's, whatever the sizes and the order."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.elements.test_tiles import given
from tests.sampling import long
from tests.site.browsing import RECALL, said
from tutorial_lib import attention_weights, causal_mask
from tutorial_lib.elements.exhibits import fold_tiles
from tutorial_lib.onepass import attend_rows, fold_block, last_keys
from tutorial_lib.tiled import attend_block

T = 6
SEEN = causal_mask(T)
SCORES = np.array(given(1)["S"]) * np.log(2)
V = np.array(given(1)["V"], dtype=float)
PLAIN = attention_weights(SCORES, mask=SEEN) @ V
ORDERS = {"rows": "By rows", "columns": "By columns", "last": "Last keys first"}
FIRST = {"rows": 2, "keys": 2, "order": "rows", "factor": "yes", "tiles_in": []}
DEALS = {"halves": "Halves", "turn": "In turn"}
# All that is shown, as one text.
READ = """(tiles) => {
  const [grid, held] = tiles.querySelectorAll(".tl-fold table");
  const rows = (table) => [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  const of = (read) => rows(grid).map((row) => row.map(read));
  const texts = (selector) => [...tiles.querySelectorAll(selector)].map((one) => one.textContent);
  const pressed = (button) => button.ariaPressed == "true" ? [button.textContent] : [];
  return JSON.stringify({
    scores: of((cell) => cell.textContent),
    fates: of((cell) => cell.dataset.fate),
    tops: of((cell) => "top" in cell.dataset),
    lefts: of((cell) => "left" in cell.dataset),
    held: rows(held).map((row) => row.map((cell) => [...cell.childNodes].map(
      (node) => node.textContent))),
    meters: texts(".tl-meter span"),
    widths: [...tiles.querySelectorAll(".tl-meter i")].map((bar) => bar.style.width),
    keys: texts(".tl-scores thead small"),
    queries: texts(".tl-scores tbody small"),
    sizes: [...tiles.querySelectorAll("[type=range]")].map((slider) => slider.value),
    pressed: [...tiles.querySelectorAll("button")].flatMap(pressed),
  });
}"""


def number(text):
    """The number that a fraction, or four decimals, show."""
    return float(Fraction(text.replace("−", "-")))


def near(text, values):
    """Whether the numbers of a text are these."""
    found = [number(part) for part in text.strip("()").split(", ")]
    return np.allclose(found, values, rtol=0, atol=5e-5 if "." in text else 1e-11)


def cut(rows, keys):
    """Tiles by their numbers: which queries, which keys."""
    blocks = [[list(range(i, min(i + n, T))) for i in range(0, T, n)] for n in (rows, keys)]
    return list(product(*blocks))


def dealt(deal, owners):
    """The words of each process."""
    if deal == "turn":
        return [list(range(rank, T, owners)) for rank in range(owners)]
    return np.split(np.arange(T), owners)


def seen_of(tile):
    """Which pairs of a tile the mask leaves."""
    return SEEN[np.ix_(*tile)]


def library(groups, shrinks=True):
    """Fold tiles by `fold_block`: the states, the factors of the last, and how many each saw."""
    states = [(np.full((1, 1), np.finfo(float).min), np.zeros((1, 1)), np.zeros((1, 4)))] * T
    came, factors, held = np.zeros(T, int), {}, [0]
    for group in groups:
        factors, open_ = {}, {t for t in range(T) if came[t] == t + 1}
        for queries, keys in group:
            scores = np.where(SEEN, SCORES, -np.inf)[np.ix_(queries, keys)]
            for t, row in zip(queries, scores, strict=True):
                old, states[t] = states[t], fold_block(states[t], row[None], V[keys])
                factor = np.exp(old[0] - states[t][0]).item()
                if not shrinks and came[t]:  # what it would be with nothing shrunk
                    lost = [(1 - factor) * part for part in old[1:]]
                    states[t] = (
                        states[t][0],
                        *(a + b for a, b in zip(states[t][1:], lost, strict=True)),
                    )
                if came[t] and (row > -np.inf).any():
                    factors[t] = factor if shrinks else 1
                came[t] += (row > -np.inf).sum()
        work = sum(1 for t in range(T) if came[t] and t not in open_)
        held.append(sum(len(q) * len(k) for q, k in group) + 6 * work)
    return states, factors, came, held


def agrees(tiles, rows, keys, order, factor, tiles_in):
    """Compare all that is shown of one process with the library."""
    shown, all_ = json.loads(tiles.evaluate(READ)), cut(rows, keys)
    groups = [[all_[n]] for n in tiles_in]
    *_, came, held = stands(shown, groups, all_, shrinks=factor == "yes")
    for n, (queries, columns) in enumerate(all_):
        gone = all(came[t] == t + 1 for t in queries)
        fate = "now" if [n] == tiles_in[-1:] else "in" if n in tiles_in else ""
        fate = fate if seen_of(all_[n]).any() else "skipped" if gone else ""
        assert {shown["fates"][t][s] for t in queries for s in columns} == {fate}
    assert shown["meters"] == [
        f"{held[-1]} numbers held now, at most {max(held)} so far",
        f"{T * T} numbers in the table",
    ]
    bars = [float(width.strip("%")) for width in shown["widths"]]
    np.testing.assert_allclose(bars, [100 * held[-1] / 72, 50], rtol=0, atol=0.051)
    assert shown["sizes"] == [str(rows), str(keys)]
    assert shown["pressed"] == [ORDERS[order], *["No factor"] * (factor == "no")]
    assert shown["keys"] == [*map(str, range(T))]


def ring_agrees(tiles, owners, deal, steps):
    """Compare all that is shown of a ring with the library."""
    shown, own = json.loads(tiles.evaluate(READ)), dealt(deal, owners)
    line = [[(own[i], own[(i - step) % owners]) for i in range(owners)] for step in range(owners)]
    all_ = [tile for group in line for tile in group]
    stands(shown, line[:steps], all_)
    scored = np.zeros(owners, int)
    for step, group in enumerate(line):
        for rank, tile in enumerate(group):
            fate = "now" if step == steps - 1 else "in" if step < steps else ""
            fate = fate if seen_of(tile).any() else "skipped" if step < steps else ""
            assert {shown["fates"][t][s] for t in tile[0] for s in tile[1]} == {fate}
            scored[rank] += seen_of(tile).sum() * (step < steps)
    assert shown["meters"] == [
        f"rank {i} has scored {n} pair{'s' * (n != 1)}" for i, n in enumerate(scored.tolist())
    ]
    home = [next(i for i in range(owners) if t in own[i]) for t in range(T)]
    assert shown["queries"][:T] == [f"rank {i}" for i in home]
    assert shown["keys"] == [f"at {(i + max(steps - 1, 0)) % owners}" for i in home]
    assert shown["pressed"] == [DEALS[deal]]


def stands(shown, groups, all_, shrinks=True):
    """Compare scores, tiles and states with the library, outputs with plain attention."""
    states, factors, came, held = library(groups, shrinks)
    for t, (maximum, factor, total, (mixed, verdict)) in enumerate(shown["held"]):
        texts = [number(text) if text else None for text in shown["scores"][t]]
        assert texts == [*given(1)["S"][t][: t + 1], *[None] * (T - 1 - t)]
        assert number(factor[0]) == pytest.approx(factors[t]) if t in factors else factor == []
        if not came[t]:
            assert [maximum, total, mixed, verdict] == [["–"], ["–"], "–", ""]
            continue
        for text, part in zip((maximum[0], total[0], mixed), states[t], strict=True):
            assert near(text, part.ravel() / (np.log(2) if part is states[t][0] else 1)), (t, text)
        output = states[t][2].ravel() / states[t][1].item()
        right = np.allclose(output, PLAIN[t], rtol=0, atol=1e-9)
        assert verdict[:2] == ("" if came[t] <= t else "✓ " if right else "✗ ")
        assert not verdict or near(verdict[2:], output)
        assert right or not shrinks or came[t] <= t
    where = {(t, s): i for i, (q, k) in enumerate(all_) for t in q for s in k}
    for t, s in where:
        assert shown["tops"][t][s] == (t > 0 and where[t, s] != where[t - 1, s])
        assert shown["lefts"][t][s] == (s > 0 and where[t, s] != where[t, s - 1])
    return states, factors, came, held


def random_states(count):
    """States of any sizes, with some tiles in, in any order; every third to the end."""
    rng = np.random.default_rng(12)
    found = []
    for i in range(count):
        rows, keys = (int(n) for n in rng.integers(1, T + 1, 2))
        seen = [n for n, tile in enumerate(cut(rows, keys)) if seen_of(tile).any()]
        taken = len(seen) if i % 3 == 0 else int(rng.integers(0, len(seen) + 1))
        found.append(
            {
                "rows": rows,
                "keys": keys,
                "order": str(rng.choice([*ORDERS])),
                "factor": "no" if i % 4 == 1 else "yes",
                "tiles_in": [int(n) for n in rng.permutation(seen)[:taken]],
            }
        )
    return found


def state_of(tiles_in, **rest):
    """The state of an address, written from its description and not by the script."""
    entries = [f"{key}={value}" for key, value in rest.items()]
    return "&".join([*entries, f"tiles={'.'.join(map(str, tiles_in))}"])


def button(tiles, name):
    """A button by its name."""
    return tiles.get_by_role("button", name=name, exact=True)


def cell(tiles, t, s):
    """The cell of a pair."""
    return tiles.locator(".tl-scores tbody tr").nth(t).locator("td").nth(s)


BARK = "(6/7, 3/7, 4/7, 1/7)"


@pytest.fixture
def tiles(show):
    """The tiles on a page of their own."""
    return show(fold_tiles().html).locator("tl-tiles")


@pytest.mark.parametrize("count", [8, *long(60)])
def test_every_state_and_output_is_the_librarys_in_random_states(tiles, count):
    for state in random_states(count):
        assert tiles.evaluate(RECALL, state_of(**state))
        agrees(tiles, **state)
    assert said(tiles) == ""


@pytest.mark.parametrize("owners", [2, *long(3)])
def test_ring_is_the_librarys_at_every_step(show, owners):
    ring = show(fold_tiles(owners=owners).html).locator("tl-tiles")
    for deal, steps in product(DEALS, range(owners + 1)):
        assert ring.evaluate(RECALL, f"deal={deal}&steps={steps}") is True
        ring_agrees(ring, owners, deal, steps)


@pytest.mark.long
def test_no_size_and_no_order_ends_elsewhere_than_the_layers_that_fold_or_hold_all(tiles):
    Q, K = SCORES * np.sqrt(T), np.eye(T)  # so that Q K / sqrt(T) are the scores
    for rows, keys, order in product((1, 2, 4, 6), (1, 3, 5), ORDERS):
        tiles.evaluate(RECALL, f"rows={rows}&keys={keys}&order={order}")
        button(tiles, "All the rest").click()
        shown = json.loads(tiles.evaluate(READ))["held"]
        last = last_keys(T, T, causal=True)
        for start in range(0, T, rows):
            block = slice(start, start + rows)
            folded, _ = attend_rows(Q[block], K, V, last[block], keys)
            stop = min(start + rows, T)
            held = attend_block(SCORES[block], K[:, :stop], V[:stop], causal=True)
            np.testing.assert_allclose(folded, held, rtol=0, atol=1e-12)
            for t, head in zip(range(start, stop), folded, strict=True):
                assert near(shown[t][3][1].removeprefix("✓ "), head)
        assert f"bark ends at {BARK}, and all outputs are plain attention's" in said(tiles)


def test_question_stays_and_the_end_answers_it(tiles):
    question = tiles.get_by_text("can you make any output wrong? And without the factor?")
    assert question.is_visible()
    assert said(tiles) == ""
    agrees(tiles, **FIRST | {"tiles_in": [0]})
    button(tiles, "Start over").click()
    told = []
    for _ in range(6):
        button(tiles, "Next tile").click()
        told.append(said(tiles))
    assert question.is_visible()
    held = "16 numbers are held, the table has 36"
    assert told[0] == (
        f"Queries 0–1, keys 0–1: no old maximum rises; {held}; 2 tiles beyond the mask skipped."
    )
    assert told[4] == (
        "Queries 4–5, keys 2–3: a higher maximum for query 4, so old total and mixed are "
        f"multiplied by 1/2; {held}."
    )
    assert told[5] == (
        f"After 6 tiles, 3 more skipped, bark ends at {BARK}, and all outputs are plain "
        "attention's; at most 16 numbers were held, the table has 36."
    )
    agrees(tiles, **FIRST | {"tiles_in": [0, 3, 4, 6, 7, 8]})
    button(tiles, "Next tile").click()
    assert said(tiles) == "All pairs are in: start over, or choose anew."
    button(tiles, "Start over").click()
    assert said(tiles) == (
        "9 tiles of 2 queries by 2 keys, row by row: 3 of them wholly beyond the mask."
    )
    agrees(tiles, **FIRST | {"tiles_in": []})


def test_another_order_begins_anew(tiles):
    for name in ("All the rest", "By columns"):
        button(tiles, name).click()
    agrees(tiles, **FIRST | {"order": "columns", "tiles_in": []})


def test_without_the_factor_outputs_are_wrong_and_it_is_said(tiles):
    for name in ("Last keys first", "No factor"):
        button(tiles, name).click()
    assert said(tiles).endswith("beyond the mask, and what is old will not be shrunk.")
    tiles.evaluate(RECALL, "rows=1&keys=1&order=last&factor=no")
    for name in ("All the rest", "Start over", "Last keys first", "All the rest"):
        button(tiles, name).click()
    state, _, came, _ = library([[(t, s)] for t, s in singles()], shrinks=False)
    wrong = [t for t in range(T) if not np.allclose(state[t][2] / state[t][1], PLAIN[t])]
    assert all(came == np.arange(1, T + 1))
    assert len(wrong) == 5
    assert said(tiles) == (
        "All pairs are in, but 5 of 6 outputs are wrong: query 2, bark, ends at "
        f"(4/5, 3/5, 2/5, 1/5) in place of {BARK}."
    )
    assert tiles.locator(".tl-wrong:visible:not(:empty)").count() == 5


def singles():
    """Tiles of one pair each, a query after the other, the last key first."""
    return [([t], [s]) for t in range(T) for s in reversed(range(t + 1))]


def test_worked_by_keys_alone_and_tiles_are_taken_in_any_order(tiles):
    page = tiles.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert said(tiles).startswith("6 tiles of 3 queries by 2 keys, row by row: 1 of them wholly")
    for key in ("Tab", "Home", *["Tab"] * 9, *["ArrowDown"] * 2, "ArrowRight", "Enter"):
        page.keyboard.press(key)
    label = "() => document.activeElement.ariaLabel"
    assert page.evaluate(label) == "query 2 bark, key 1 that: score −1, just folded in"
    order = {"rows": 3, "keys": 1, "order": "rows", "factor": "yes"}
    agrees(tiles, **order, tiles_in=[1])
    for key in ("ArrowRight", "Space", "ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    agrees(tiles, **order, tiles_in=[1, 2, 0])
    assert said(tiles) == (
        "Queries 0–2, key 0: a higher maximum for query 1 and query 2, so old total and mixed "
        "are multiplied by 1/4 and 1/2; 21 numbers are held, the table has 36; 3 tiles beyond the "
        "mask skipped."
    )
    page.keyboard.press("Enter")
    assert said(tiles) == "The tile of queries 0–2, key 0 is in already."
    cell(tiles, 0, 5).click()
    assert said(tiles) == (
        "The tile of queries 0–2, key 5 lies wholly beyond the mask, so it is skipped."
    )
    cell(tiles, 5, 5).click()
    agrees(tiles, **order, tiles_in=[1, 2, 0, 11])


@pytest.mark.long
def test_ring_says_who_waits_and_what_is_sent(show):
    ring = show(fold_tiles(owners=2).html).locator("tl-tiles")
    assert ring.get_by_text("Which one waits, and what if").is_visible()
    ring_agrees(ring, 2, "halves", 1)
    button(ring, "Start over").click()
    button(ring, "Next step").click()
    assert said(ring) == (
        "Step 1: rank 0 folds in keys 0–2 (6 pairs); rank 1 folds in keys 3–5 (6 pairs); then "
        "each sends these keys and values on, 24 numbers."
    )
    button(ring, "Next step").click()
    same = "all outputs are plain attention's."
    assert said(ring) == (
        "Step 2: rank 0 waits, for keys 3–5 are wholly beyond its queries; rank 1 folds in keys "
        f"0–2 (9 pairs). In all they scored 6 and 15 pairs and sent 24 numbers each; {same}"
    )
    button(ring, "In turn").click()
    assert said(ring) == "Dealt in turn, rank 0 holds words 0, 2 and 4 and rank 1 holds words " + (
        "1, 3 and 5."
    )
    button(ring, "All the rest").click()
    scored = "In all they scored 9 and 12 pairs and sent 24 numbers each; "
    assert said(ring).endswith(f"{scored}{same}")
    ring_agrees(ring, 2, "turn", 2)


@pytest.mark.long
def test_process_that_waits_is_said_to_wait(show):
    ring = show(fold_tiles(owners=3).html).locator("tl-tiles")
    button(ring, "Next step").click()
    assert said(ring).startswith("Step 2: rank 0 waits, for keys 4–5 are wholly beyond its queries")

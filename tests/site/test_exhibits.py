"""What exhibits and questions promise in Chromium: links, silence, no need of a script, touch, axe.

Each has a row: states with what is said where a link leads to them, what is expected of each part
of a state, and, where Python draws any state, random ones in which the script is compared with it.
The state of a question has no link: it is told to the page, by the texts of what was answered.
What else an exhibit says and does is tested in a file of its own.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from urllib.parse import parse_qsl, quote_plus, urlencode

import numpy as np
import pytest

from tests.elements.sample_bank import CHAPTER, sample_bank
from tests.elements.test_strip import PRODUCT
from tests.sampling import long
from tests.site.arrival import BUDGETS, do_references, largest_task, recorded
from tests.site.browsing import INKS, LOOKS, OPEN_ALL, PHONE, RECALL, said
from tests.site.showing import assert_shows, differences, seen
from tests.site.states import (
    ask_state,
    bench_state,
    bytes_state,
    clock_state,
    drawing_state,
    heads_state,
    map_state,
    paint_state,
    parsons_state,
    plane_state,
    playground_state,
    products_state,
    quiz_state,
    slopes_state,
    strip_state,
    sum_state,
    tiles_state,
)
from tests.site.test_browser import violations
from tools.chapters import FOLDER, pages
from tutorial_lib.elements import exhibits
from tutorial_lib.elements.exhibits.ask.element import draw_ask
from tutorial_lib.elements.exhibits.bench.element import draw_bench
from tutorial_lib.elements.exhibits.bytes.element import draw_calculator
from tutorial_lib.elements.exhibits.clock.element import draw_clock
from tutorial_lib.elements.exhibits.drawing.element import draw_drawing
from tutorial_lib.elements.exhibits.heads.element import draw_attention_map_atlas
from tutorial_lib.elements.exhibits.map.element import draw_map
from tutorial_lib.elements.exhibits.paint.element import draw_mask
from tutorial_lib.elements.exhibits.plane.element import draw_plane
from tutorial_lib.elements.exhibits.playground.element import draw_playground
from tutorial_lib.elements.exhibits.strip.element import draw_strip
from tutorial_lib.elements.exhibits.sum.element import draw_sum
from tutorial_lib.elements.exhibits.tiles.element import draw_tiles
from tutorial_lib.elements.parsons.element import draw_parsons
from tutorial_lib.elements.prediction.element import draw_prediction
from tutorial_lib.elements.quiz.element import draw_quiz
from tutorial_lib.elements.sources import KINDS, style
from tutorial_lib.models.copying import TinyModel
from tutorial_lib.models.grammar import WORDS
from tutorial_lib.records import checkpoint


@dataclass(frozen=True)
class Row:
    """An exhibit or a question as a chapter calls it, and what is expected of its state."""

    call: str | Callable
    states: dict  # a state as a link writes it -> what is said at the end; of a question, states
    expected: dict  # a part of a state -> what it may be, or the whole sentence, around “{}”
    beyond: tuple = ()  # states that are beyond what is expected of their one part
    wrong: dict = field(default_factory=dict)  # states that are wrong in other ways -> a sentence
    fields: dict = field(default_factory=dict)  # in which parts are written: their names -> part
    settable: str = ""  # what can be set, if it is said otherwise than by the list of parts
    reset: str = ""  # what is said when all is as it was
    targets: dict = field(default_factory=dict)  # cells for a finger -> their least size
    uncut: str = ".tl-numbers > div"  # what must not scroll or be cut on a narrow screen
    tinted: str = ""  # cells whose ink must stand out from their tint
    added: str = ""  # what its script adds to what Python draws
    draw: Callable = None  # draws it in a state, by the parts of a link
    state: Callable = None  # makes a state by a generator

    @property
    def first(self):
        """The first of the states."""
        return next(iter(self.states))


WHOLE = "a whole number from 0 to 100,000"
RADIANS = "a number from 0 to 10, such as 0.1 or π/2"
PRODUCTS = "a number from −1000 to 1000, such as 0.5 or 2 ln 2"
ANGLE, LENGTH = "a number from −360 to 360", "a number from 0 to 4"
YES_NO, SIZES = "one of yes, no", "one of 1, 2, 3, 4, 5, 6"
TILES = "tiles that the mask leaves, each once: 0.2"
SWITCHES = {"true": "one of look, hide", "align": "one of bottom-right, top-left"}
LINKED = "some of r2-3-4, r3-2-4, r3-8, r24, s0-1, s1-2, with dots between"
TOKENS, USERS = "a whole number from 1 to 1,048,576", "a whole number from 1 to 1,024"
BEGINS = "the dogs that the cats see"
ASKED = {"text": BEGINS, "query": "", "silenced": "", "word": "", "minus": ""}
PLACE = "“{}” cannot be set; expected a place such as "
ROWS = {
    "clock": Row(
        "rotation_clock()",
        {
            "m=70&pair=1&frequency.1=0.25": "Query at 70, key at 4, distance 66: the score is",
            "n=12": "Query at 9, key at 12, distance −3 (the key is after the query): the score is",
            "m=3&frequency.3=2": "Query at 3, key at 4, distance −1",
        },
        {"m": WHOLE, "n": WHOLE, "pair": "one of 0, 1, 2, 3"}
        | {f"frequency.{i}": RADIANS for i in range(4)},
        beyond=("m=-1", "n=100001", "m=2.5", "pair=4", "frequency.0=11", "frequency.0=ππ"),
        fields={
            "position of the query, as a number": "m",
            "position of the key, as a number": "n",
            "frequency of the pair": "frequency.0",
        },
        reset="The clock is as it was.",
        targets={".tl-pair": (44, 44)},
        draw=draw_clock,
        state=clock_state,
    ),
    "sum": Row(
        "heads_sum()",
        {
            "word=that&off=1&swap=without&row=3&times=1.5": "The sum of the link is here: it moves",
            "word=dogs": "“dogs”: the heads pull against each other in 1 of 8 features.",
            "off=01&times=-1": "is here: it moves all 8 features of Y of “bark”.",
            "swap=with": "The sum of the link is here: it moves no feature of Y of “bark”.",
        },
        {
            "word": "one of dogs, that, bark",
            "off": "one of 0, 1, 01",
            "swap": "one of no, with, without",
            "row": "one of 0, 1, 2, 3, 4, 5, 6, 7",
            "times": "one of −1, −1/2, 0, 1/2, 1, 3/2, 2",
        },
        beyond=("word=cats", "off=2", "row=8", "times=3", "times="),
        reset="The sum is as it was.",
        targets={".tl-heap, .tl-meets div > span": (0, 44)},
        draw=draw_sum,
        state=sum_state,
        uncut="th, td, .tl-numbers > div, .tl-meets span",
    ),
    "plane": Row(
        "query_plane()",
        {
            "heads=2&head=1&angle.1=150&length.1=3.5": "Head 1 at 150°, length 3.5: ",
            "angle=45&length=4": "At 45°, length 4: dogs 0.4955, that 0.0091",
        },
        {
            "heads": "one of 1, 2",
            "head": "one of 0, 1",
            "angle": ANGLE,
            "length": LENGTH,
            "angle.1": ANGLE,
            "length.1": LENGTH,
        },
        beyond=("heads=3", "angle=361", "length=-1", "length=1/0", "length.1=4.1"),
        fields={"angle of the query, in degrees": "angle", "length of the query": "length"},
        wrong={"head=1": "head is “1”; expected 0, or heads=2 with it."},
        reset="The plane is as it was.",
        targets={".tl-asker, .tl-arrows": (44, 44)},
        draw=draw_plane,
        state=plane_state,
    ),
    "products": Row(
        "query_plane(weights=False)",
        {
            "angle=45&length=4": "At 45°, length 4: dogs 5.6569, that 0.0000, bark 5.6569; “dogs” "
            "and “bark” fit best.",
            "length=0": "all three fit alike.",
        },
        {"angle": ANGLE, "length": LENGTH},
        wrong={
            "heads=2": "heads is “2”; expected 1.",
            "head=1": "head is “1”; expected 0, or heads=2 with it.",
        },
        settable="one of heads, head, angle, length, angle.1, length.1",
        reset="The plane is as it was.",
        draw=partial(draw_plane, weights=False),
        state=products_state,
    ),
    "heads": Row(
        "head_maps()",
        {
            "head=3.4&group=name": "heads are ringed: those of the group name.",
            "head=2.1": "Layer 2, head 1",
            "group=sink": "heads are ringed: those of the group sink.",
        },
        {
            "head": "a layer and a head, from 0.0 to 29.8",
            "group": "one of sink, previous, induction, number, name",
        },
        beyond=("head=30.0", "group=Sink"),
        reset="The maps are as they were: one is large, no group is ringed.",
        targets={"[role=gridcell]": (30, 30)},
        tinted="td:has(b:not(:empty))",
        draw=draw_attention_map_atlas,
        state=heads_state,
    ),
    "strip": Row(
        'memory_strip("heads")',
        {
            "do=r3-2-4.s0-1&number=4": "4 is at [1, 0, 0], and each block keeps to one head: as "
            "asked.",
            "number=23": "23 of product is at [2, 3].",
            "do=s0-1.r24": "reshape(24) is a copy with strides [1]",
        },
        {
            "do": LINKED,
            "number": f"one of {', '.join(map(str, PRODUCT.ravel()))}",
        },
        beyond=("do=", "do=r3-2-4,s0-1", "do=r3-2-4.r5-5", "number=8"),
        wrong={
            "do=s1-2": "swapaxes(1, 2) needs 3 axes; the shape is (3, 8).",
            "do=r24.s0-1": "swapaxes(0, 1) needs 2 axes; the shape is (24,).",
            f"do={'.'.join(['r24'] * 13)}": "12 presses are the most; expected Undo or Reset.",
        },
        reset="product is as it was.",
        draw=draw_strip,
        state=strip_state,
        targets={"[role=gridcell]": (36, 44)},
        uncut=".tl-blocks, .tl-blocks td, .tl-memory b, .tl-numbers > div, .tl-made",
    ),
    "concat": Row(
        'memory_strip("concat")',
        {"do=r24": "reshape(24) is a copy with strides [1]"},
        {"do": LINKED},
        uncut=".tl-blocks, .tl-blocks td, .tl-memory b, .tl-numbers > div, .tl-made",
        settable="one of do, number",
        draw=partial(draw_strip, "concat"),
        state=partial(strip_state, start="concat"),
    ),
    "tiles": Row(
        "fold_tiles()",
        {
            "order=columns&factor=no&tiles=0.3.6.4.7.8": "All pairs are in, but ",
            "order=columns&tiles=0.3": "Queries 2–3, keys 0–1: no old maximum rises",
            "rows=3&keys=1": "Queries 0–2, key 0: no old maximum rises; 21 numbers are held",
            "order=last&tiles=0.4.3": "Queries 2–3, keys 0–1: ",
        },
        {
            "rows": SIZES,
            "keys": SIZES,
            "order": "one of rows, columns, last",
            "factor": YES_NO,
            "tiles": TILES,
        },
        beyond=("rows=0", "keys=7", "factor=1", "tiles=0.1", "tiles=0.0", "tiles=9"),
        wrong={
            "steps=1": "“steps” cannot be set; expected one of rows, keys, order, factor, tiles."
        },
        targets={".tl-scores tbody td": (44, 44)},
        uncut=".tl-fold, .tl-fold :is(th, td)",
        tinted=".tl-scores tbody td:not([data-out])",
        draw=draw_tiles,
        state=tiles_state,
    ),
    "bench": Row(
        "softmax_bench()",
        {
            "dogs=1000&that=-3+ln+2&divide=4&hide=that+bark&largest=away": "weights are dogs 1,",
            "divide=1": "The weights are dogs 16/21, that 1/21, bark 4/21; the largest is 0.7619",
        },
        {
            **dict.fromkeys(("dogs", "that", "bark"), PRODUCTS),
            "divide": "a number from 1 to 16",
            "hide": "some of dogs, that, bark, with spaces between",
            "largest": "away",
        },
        beyond=(
            *("dogs=1000.1", "dogs=1,000", "dogs=ln+ln+2", "dogs=ln+0", "dogs=ln+1,000"),
            *("divide=17", "divide=0", "hide=dogs+cats", "largest=gone"),
        ),
        fields={"q · k of dogs, as a number": "dogs", "divide by, as a number": "divide"},
        wrong={
            "by=that": "“by” cannot be set; expected one of dogs, that, bark, divide, hide, "
            "largest."
        },
        reset="The bench is as it was.",
        draw=draw_bench,
        state=bench_state,
    ),
    "slopes": Row(
        "softmax_bench(slope=True)",
        {
            "dogs=ln+2&that=-ln+2&divide=1": "The weights are dogs 4/7, that 1/7, bark 2/7; ",
            "that=0.5&by=that": "their slopes in the score of that are",
        },
        {"by": "one of dogs, that, bark"},
        settable="one of dogs, that, bark, divide, hide, largest, by",
        reset="The bench is as it was.",
        targets={".tl-lane": (44, 44)},
        draw=partial(draw_bench, slope=True),
        state=slopes_state,
    ),
    "paint": Row(
        "paint_mask()",
        {
            "mask=1f03150a1f&true=hide&masked=nan": "The mask of the link is here. ",
            "mask=181c1e&true=hide&queries=3&masked=nan": "The mask of the link is here. ",
            "make=packed": "The mask of the link is here. ",
            "make=window&queries=3": "The mask of the link is here. ",
            "align=top-left&queries=3": "The mask of the link is here. ",
        },
        {
            "make": "one of causal, padded, packed, window",
            "mask": "6 or 10 digits, 00 to 1f for each query",
            **SWITCHES,
            "queries": "one of 5, 3",
            "masked": "one of zeros, nan",
        },
        beyond=("mask=12", "mask=2010101010", "queries=4", "masked=0"),
        wrong={
            "mask=10181c": "mask has 6 digits; expected 10, for 5 queries.",
            "mask=10181c1e1f&queries=3": "mask has 10 digits; expected 6, for 3 queries.",
            "make=causal&mask=10181c1e1f": "it has both make and mask; expected one of the two.",
        },
        reset="The mask is as it was",
        targets={".tl-gave, [role=grid] tbody td": (44, 44)},
        draw=draw_mask,
        state=paint_state,
        uncut=".tl-numbers > div, .tl-code code, .tl-mask td",
        tinted=".tl-mask tbody td:not(:empty)",
    ),
    "words": Row(
        'paint_mask("Tap a cell above the diagonal.")',
        {"mask=667": "The mask of the link is here. "},
        {"mask": "3 digits, 0 to 7 for each query"},
        beyond=("mask=12", "mask=668"),
        settable="one of make, mask, true, align, queries, masked",
        reset="The mask is as it was",
    ),
    "drawing": Row(
        "mask_drawing()",
        {
            "from=strided&causal=no&layers=6": "of 256 pairs. After 6 layers row 15 depends on ",
            "from=longformer&causal=yes&layers=3": "The mask of the link is here: 58 of 136 pairs.",
            "from=bigbird": "The mask of the link is here: ",
            f"mask={'f00f' * 16}": "The mask of the link is here: 128 of 256 pairs.",
        },
        {
            "from": "one of window, strided, longformer, bigbird, all",
            "mask": "64 digits, each 0 to f",
            "causal": YES_NO,
            "layers": "a whole number from 1 to 6",
        },
        beyond=("mask=12", f"mask={'g' * 64}", "layers=7", "layers=0", "causal=1"),
        wrong={f"from=all&mask={'0' * 64}": "it has both from and mask; expected one of the two."},
        reset="The grid is as it was.",
        tinted=".tl-mask tbody td:not(:empty)",
        draw=draw_drawing,
        state=drawing_state,
    ),
    "bytes": Row(
        "byte_calculator()",
        {
            "tokens=32768&users=8": "The numbers of the link are here. The cache of 8 users at "
            "32,768 tokens is 137",
            "model=my+own&heads=8&d_v=64&billions=0.5": "The cache of 1 user at 4,096 tokens is",
            "model=DeepSeek-V3&bits=8": "The numbers of the link are here. ",
        },
        {"tokens": TOKENS, "users": USERS, "bits": "one of 32, 16, 8, 4"},
        beyond=(
            *("tokens=", "tokens=0", "tokens=-5", "tokens=2M"),
            *("users=1.5", "users=1e400", "bits=12"),
        ),
        fields={"tokens": "tokens", "users": "users"},
        wrong={"users=7&tokens=2M": f"tokens is “2M”; expected {TOKENS}."},
        settable="one of model, tokens, users, bits, weights, layers, heads, d_k, d_v, billions",
        reset="One user of Llama 2 7B is back. ",
        uncut=".tl-plot",
        draw=draw_calculator,
        state=bytes_state,
    ),
    "map": Row(
        "live_map()",
        {
            "cell=X.0.2.1&X.0.2.1=2": "X, bark, 1 is 2. One more would change",
            "X.0.1.0=1": "The numbers of the link are here.",
            "cell=Y.0.2.4": "Y, bark, 4 = ",
        },
        {"cell": f"{PLACE}Y.0.2.4.", "X.0.2.1": "a number"},
        beyond=("cell=Y.0.9.9", "cell=", "X.0.2.1=1/2", "X.0.2.1="),
        wrong={
            "W_Q.0.0.0=1": f"{PLACE}X.0.2.1.".format("W_Q.0.0.0"),
            "X.0.9.9=1": f"{PLACE}X.0.2.1.".format("X.0.9.9"),
            "X.0.0.0=1e308": "these numbers make another infinite; expected smaller ones.",
        },
        settable="a place such as X.0.2.1",
        reset="The example's own numbers are back. ",
        targets={".tl-board td[tabindex]": (24, 24)},
        draw=lambda **state: draw_map(state),
        state=map_state,
    ),
    "playground": Row(
        "playground()",
        {
            "cell=mask.0.0.1&X.0.0.0=0.5&mask.0.0.1=1": "mask, dogs, that: may look. Enter changes",
            "scale.0.0.0=4": "The numbers of the link are here.",
        },
        {"cell": f"{PLACE}Y.0.2.4.", "X.0.0.0": "a number", "mask.0.0.0": "0 or 1"},
        beyond=("cell=Y.0.3.0", "cell=__proto__", "X.0.0.0=", "X.0.0.0=Infinity", "mask.0.0.0=2"),
        wrong={
            "Y.0.0.0=1": f"{PLACE}X.0.2.1.".format("Y.0.0.0"),
            "X.0.0.length=2": f"{PLACE}X.0.2.1.".format("X.0.0.length"),
            "__proto__.0.0.0=1": f"{PLACE}X.0.2.1.".format("__proto__.0.0.0"),
            "scale.0.0.0=0": "these numbers make another infinite; expected smaller ones.",
        },
        settable="a place such as X.0.2.1",
        reset="The example's own numbers are back. ",
        targets={".tl-grids td[tabindex]": (24, 24)},
        draw=lambda **state: draw_playground(state),
        state=playground_state,
    ),
    "ask": Row(
        f'ask_model(known_text(), WORDS, "{BEGINS}", question="Which?")',
        {
            "text=the+dogs+that+bark&query=3&silenced=1.2%2C0.1&word=bark&minus=barks": "Silenced: "
            "1.2, 0.1. ",
            "query=3": "Next after “that”: ",
            "silenced=1.1": "Silenced: 1.1. Next after “see”",
        },
        {
            "text": "1 to 63 tokens of the list at the end",
            "query": "a position of the sentence",
            "silenced": "heads from 0.0 to 1.3, with commas between",
            "word": "a token of the model",
            "minus": "a token of the model",
        },
        beyond=("query=-1", "silenced=2.0", "word=cow%2C", "text=", "text=the+dgos", "text=<bos>"),
        fields={"Sentence": "text"},
        wrong={
            "query=7": "query is “7”; expected a position from 0 to 6.",
            "text=the&query=2": "query is “2”; expected a position from 0 to 1.",
        },
        reset="The sentence is as it was.",
        targets={".tl-word": (44, 44)},
        draw=lambda **state: draw_ask(known_text(), WORDS, "Which?", ASKED, **state),
        state=ask_state,
    ),
}
BANK = sample_bank()
ASKED_LAST = "What does a row of the mask without a True give?"
answer = partial(dict.fromkeys, ("picked", "told", "first"))
LINES, BUGS = (BANK["parsons"][key] for key in ("lines", "distractors"))
BUG, OTHER = (bug["line"] for bug in BUGS)
BUGGY = {"program": [BUG], "pool": [*LINES, OTHER], "checked": True}
TOO_LONG = BUGGY | {"program": [*LINES, OTHER], "pool": [BUG]}
QUESTIONS = {
    "quiz": Row(
        partial(draw_quiz, BANK, CHAPTER),
        [{"What does W_Q[0] hold?": answer("one head's queries"), ASKED_LAST: answer("zeros")}],
        {},
        state=quiz_state,
    ),
    "parsons": Row(
        partial(draw_parsons, BANK, CHAPTER),
        [BUGGY, TOO_LONG],
        {},
        uncut="li, li > code",
        added=".tl-grip, li > button",
        state=parsons_state,
    ),
    "choice": Row(partial(draw_prediction, BANK, CHAPTER, 1), [answer("(3, 3)")], {}),
    "number": Row(partial(draw_prediction, BANK, CHAPTER, 2), [{"typed": "1", "told": "4/7"}], {}),
}
ALL = ROWS | QUESTIONS
NO_STATES = [None, 7, "x", True, [], [[1]], {}, {"picked": 0}, {"typed": 5}, {"program": [1]}]
NO_STATES += [
    BUGGY | {"pool": 7},
    {"program": ["x"], "pool": [{}]},
    {"Predict.": {"picked": "x"}},
    {"opened": 3},
]
# All that a reader can do: the second option of each question, a number, and every button once.
# Returns how much was done.
ANSWER = """(question) => {
  const find = (selector) => [...question.querySelectorAll(selector)];
  const buttons = find("button").filter((one) => one.checkVisibility());
  const presses = [...find("fieldset").map((box) => box.querySelectorAll("input")[1]), ...buttons];
  const fields = find("[type=text]");
  for (const field of fields) {
    field.value = "0.665";
    field.dispatchEvent(new Event("input"));
  }
  presses.forEach((one) => one.click());
  return fields.length + presses.length;
}"""
UNSETTABLE = ("toString", "T", "3")
NONSENSE = (None, 7, {}, ["m=1"], "toString=1")
CONTROLS = ":is(button, input, select)"
STOPS = f":is({CONTROLS}, summary, a[href]):visible, [tabindex='0']:visible"
# What has the keyboard is marked; and the controls that never had it, but for the other radios.
MARK = "(e) => e.contains(document.activeElement) && (document.activeElement.dataset.met = 1)"
UNREACHED = """(all) => all.filter((e) => !e.dataset.met && !e.disabled && e.type != "radio" &&
  e.tabIndex == 0 && !e.closest("[data-met]")).map((e) => e.outerHTML.slice(0, 90))"""
# Cells whose neighbours, the nearest around, have no stop; nor has the table or the picture.
STOPLESS = """(all) => all.filter((e) => {
  let around = e.parentNode;
  while (around.querySelectorAll("[tabindex]").length < 2) around = around.parentNode;
  const grids = ["table", "[role=grid]", ".tl-blocks", ".tl-board"].map((grid) => e.closest(grid));
  return ![around, ...grids].some((grid) => grid?.querySelector("[tabindex='0']"));
}).map((e) => e.outerHTML.slice(0, 90))"""
TELL = "() => { told = []; addEventListener('tl-work', (e) => told.push(e.detail)); }"
TOLD = "() => told.splice(0)"
FOLLOW = """async (exhibit, addresses) => {
  const [region, spoken] = [exhibit.querySelector("[aria-live]"), []];
  for (const address of addresses) {
    region.textContent = "";
    history.replaceState(null, "", "#");
    const arrived = new Promise((done) => addEventListener("hashchange", done, { once: true }));
    location.hash = address;
    await arrived;
    spoken.push(region.textContent);
  }
  return spoken;
}"""
# Letters in pixels of the screen, also those of a drawing that is smaller than its plan.
LETTERS = """(all) => all.map((e) => {
  const svg = e.ownerSVGElement;
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  return parseFloat(getComputedStyle(e).fontSize) * scale;
})"""
TEXTS = ":is(p, span, b, i, small, button, input, label, summary, caption, figcaption, code, "
TEXTS += "th, td, dt, dd, svg text):visible"
CUT = """(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.outerHTML.slice(0, 90))"""
# Boxes that scroll sideways, but are no stop for the keyboard, or have no name.
UNREACHABLE = """(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1)
  .filter((e) => getComputedStyle(e).overflowX != "visible" && !(e.tabIndex == 0 && e.ariaLabel))
  .map((e) => e.outerHTML.slice(0, 90))"""
# What the style sheet of all elements changes in one that has its own, before it and behind it.
CHANGES = """(sheet) => {
  const elements = [...document.querySelectorAll(".tl, .tl *")];
  const look = () => elements.map((element) => {
    const style = getComputedStyle(element);
    return [...style].map((name) => `${name}: ${style.getPropertyValue(name)}`);
  });
  const [before, style] = [look(), document.createElement("style")];
  style.textContent = sheet;
  const found = [];
  for (const put of ["prepend", "append"]) {
    document.body[put](style);
    look().forEach((now, i) => now.forEach((line, j) => {
      if (line != before[i][j]) found.push(`${elements[i].tagName} ${line}, ${before[i][j]} alone`);
    }));
  }
  return {elements: elements.length, found: [...new Set(found)].slice(0, 20)};
}"""
SMALL = """(all, [width, height]) => all.map((e) => e.closest("label") ?? e)
  .filter((e) => e.offsetHeight < height || e.offsetWidth < width)
  .map((e) => e.outerHTML.slice(0, 90))"""


@cache
def known_text():
    """The model of the known text, as it is committed."""
    return TinyModel.of(checkpoint("known_text"))


@cache
def html_of(call):
    """An exhibit or a question as a chapter draws it."""
    if callable(call):
        return call().html
    return eval(call, vars(exhibits) | {"known_text": known_text, "WORDS": WORDS}).html


def kind_of(row):
    """The kind of an exhibit, which a link calls it by."""
    return re.search(r"<tl-([\w-]+)", html_of(row.call))[1]


def follow(exhibit, *addresses):
    """Follow links, one after the other, and return what is said of each."""
    spoken = exhibit.evaluate(FOLLOW, addresses)
    assert said(exhibit) == spoken[-1]
    return spoken


def strange_links(row):
    """What no link can name, and what is expected."""
    kind = kind_of(row)
    found = {f"{kind}=5": f"“5” is no {kind} of this page; expected 0."}
    found |= {f"{kind}=0&{query}": sentence for query, sentence in row.wrong.items()}
    zebras = [f"{quote_plus(part)}=zebra" for part in row.expected]
    for query in (*zebras, *row.beyond):
        [(part, text)] = parse_qsl(query, keep_blank_values=True)
        whole = row.expected[part]
        sentence = whole if "{}" in whole else f"{part} is “{{}}”; expected {whole}."
        found[f"{kind}=0&{query}"] = sentence.format(text)
    parts = row.settable or f"one of {', '.join(row.expected)}"
    for part in UNSETTABLE:
        found[f"{kind}=0&{part}=1"] = f"“{part}” cannot be set; expected {parts}."
    return found


@pytest.fixture(params=ROWS)
def row(request):
    """An exhibit: one that a chapter shows."""
    return ROWS[request.param]


@pytest.fixture
def open_row(show):
    """Open an exhibit or a question on a page of its own."""
    return lambda row, **look: show(html_of(row.call), **look).locator(f"tl-{kind_of(row)}")


@pytest.fixture
def exhibit(row, open_row):
    """An exhibit on a page of its own."""
    return open_row(row)


def test_every_exhibit_has_a_row():
    assert {row.call.partition("(")[0] for row in ROWS.values()} == set(exhibits.__all__)


def test_a_state_is_put_back_in_silence_and_its_link_brings_it_again(row, exhibit):
    exhibit.page.evaluate(TELL)
    views, link = {}, exhibit.get_by_role("link", name="Link to th")
    first = seen(exhibit)
    for state in row.states:
        assert exhibit.evaluate(RECALL, state) is True
        own = [(kind_of(row), "0"), *parse_qsl(state)]
        assert parse_qsl(link.get_attribute("href")[1:]) == own
        views[state] = seen(exhibit)
    assert exhibit.evaluate(RECALL, "") is True
    assert differences(seen(exhibit), first) == []
    assert exhibit.locator("[aria-live]").text_content() == ""
    assert exhibit.page.evaluate(TOLD) == []
    assert len({json.dumps(view) for view in [first, *views.values()]}) == len(views) + 1
    for state, words in row.states.items():
        assert words in follow(exhibit, f"{kind_of(row)}=0&{state}")[0]
        assert exhibit.evaluate(RECALL, "") is True
        changed = differences(seen(exhibit), views[state])
        assert changed == [], "a link goes before what the page kept"


RESET = {name: row for name, row in ROWS.items() if row.reset}
DRAWN = {name: row for name, row in ROWS.items() if row.draw}


@pytest.mark.parametrize("count", [8, *long(60)])
@pytest.mark.parametrize("row", DRAWN.values(), ids=DRAWN)
def test_the_script_draws_every_state_as_python_does(row, exhibit, count):
    rng = np.random.default_rng(23)
    for _ in range(count):
        state = row.state(rng)
        assert exhibit.evaluate(RECALL, urlencode(state)) is True
        assert_shows(exhibit, row.draw(**state))


STATED = {name: row for name, row in QUESTIONS.items() if row.state}
each_row = pytest.mark.parametrize("row", ALL.values(), ids=ALL)


@pytest.mark.parametrize("count", [6, *long(60)])
@pytest.mark.parametrize("row", STATED.values(), ids=STATED)
def test_the_script_of_a_question_draws_every_state_as_python_does(row, open_row, count):
    rng = np.random.default_rng(23)
    for state in [*row.states, *(row.state(rng) for _ in range(count))]:
        question = open_row(row)
        assert question.evaluate(RECALL, state)
        assert_shows(question, row.call(state), besides=row.added)


@pytest.mark.parametrize("row", QUESTIONS.values(), ids=QUESTIONS)
def test_what_a_question_tells_is_put_back_in_silence_and_nonsense_is_not(row, open_row):
    question, later = open_row(row), open_row(row)
    view = seen(later)
    later.page.evaluate(TELL)
    assert [later.evaluate(RECALL, state) for state in NO_STATES] == [False] * len(NO_STATES)
    assert differences(seen(later), view) == []
    question.page.evaluate(TELL)
    actions = question.evaluate(ANSWER)
    *before, told = question.page.evaluate(TOLD)
    assert len(before) + 1 == actions, "each is told, also what is not yet checked"
    of = question.locator("fieldset").count() or 1
    work = {"done": 0 if row.added else of, "of": of}  # all lines are in, in a wrong order
    assert {key: told[key] for key in work} == later.evaluate(RECALL, told["state"]) == work
    assert differences(seen(later), seen(question)) == []
    assert differences(seen(later), view) != []
    assert later.page.evaluate(TOLD) == []
    assert later.page.evaluate("() => document.activeElement == document.body")


def test_what_cannot_be_is_refused_in_words_and_changes_nothing(row, exhibit):
    exhibit.evaluate(RECALL, row.first)
    view, link = seen(exhibit), exhibit.get_by_role("link", name="Link to th")
    address, strange = link.get_attribute("href"), strange_links(row)
    spoken = follow(exhibit, *strange)
    assert spoken == [f"The link does not fit: {w} Nothing has changed." for w in strange.values()]
    states = [text.partition("&")[2] for text in strange if "&" in text]
    for nonsense in (*NONSENSE, *states):
        assert exhibit.evaluate(RECALL, nonsense) is False, nonsense
    assert differences(seen(exhibit), view) == []
    assert link.get_attribute("href") == address
    assert said(exhibit) == spoken[-1]


FIELDS = {name: row for name, row in ROWS.items() if row.fields}


@pytest.mark.parametrize("row", FIELDS.values(), ids=FIELDS)
def test_what_cannot_be_waits_in_its_field_and_changes_nothing(row, exhibit):
    view = seen(exhibit)
    for name, part in row.fields.items():
        written = exhibit.get_by_label(name, exact=True)
        before = written.input_value()
        beyond = [text for query in row.beyond for key, text in parse_qsl(query) if key == part]
        for text in ("zebra", "", *beyond):
            written.fill(text)
            written.press("Enter")
            words = f"“{text}” cannot be; expected {row.expected[part]}. Nothing has changed."
            assert re.sub(", and “.+” is none of them", "", said(exhibit)) == words
            assert written.get_attribute("aria-invalid") == "true"
        written.fill(before)
        written.press("Enter")
        assert written.get_attribute("aria-invalid") is None
        assert differences(seen(exhibit), view) == []


def test_each_press_tells_the_page_the_state_that_the_link_names(row, exhibit):
    exhibit.page.evaluate(TELL)
    link = exhibit.get_by_role("link", name="Link to th")
    for button in exhibit.locator("button:visible").element_handles():
        if not button.is_enabled():
            continue
        before = link.get_attribute("href")
        button.click()
        told, after = exhibit.page.evaluate(TOLD), link.get_attribute("href")
        assert len(told) <= 1
        if told:
            query = told[0]["state"]
            assert after == f"#{kind_of(row)}=0" + (f"&{query}" if query else "")
            assert told[0] == {"state": query, "done": 0, "of": 0}
        else:
            assert after == before
        pressed = button.get_attribute("aria-pressed") == "true"
        assert pressed or len(said(exhibit)) > 15, button.text_content()


@pytest.mark.parametrize("row", RESET.values(), ids=RESET)
def test_all_is_reset_at_once(row, exhibit):
    first = seen(exhibit)
    exhibit.evaluate(RECALL, row.first)
    exhibit.get_by_role("button", name="Reset").click()
    assert said(exhibit).startswith(row.reset)
    assert differences(seen(exhibit), first) == []


def test_the_form_without_a_script_shows_the_same_and_its_tables_scroll_alone(row, show, exhibit):
    page = show(html_of(row.call), java_script_enabled=False, width=320)
    static = page.locator(f"tl-{kind_of(row)}")
    assert static.locator(f"{CONTROLS}:visible").count() == 0
    found = (seen(one, awake=False) for one in (exhibit, static))
    assert differences(*found) == []
    page.evaluate(OPEN_ALL)
    tables = static.locator("details table")
    assert tables.count() == 0 or tables.first.is_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    assert static.locator("details, details div").evaluate_all(UNREACHABLE) == []


@each_row
def test_every_control_is_reached_by_keys_and_every_grid_has_one_stop(row, exhibit):
    exhibit.page.keyboard.press("Tab")
    for _ in range(60):
        if not exhibit.evaluate(MARK):
            break
        exhibit.page.keyboard.press("Tab")
    assert exhibit.locator(STOPS).evaluate_all(UNREACHED) == []
    assert exhibit.locator("[tabindex='-1']:visible").evaluate_all(STOPLESS) == []


@pytest.mark.long
@each_row
def test_targets_are_large_for_a_finger(row, open_row):
    exhibit = open_row(row, **PHONE)
    for selector, least in {CONTROLS: (44, 44), **row.targets}.items():
        assert exhibit.locator(f"{selector} >> visible=true").evaluate_all(SMALL, least) == []


@each_row
@pytest.mark.parametrize(("appearance", "width"), LOOKS)
def test_nothing_sticks_out_is_too_small_or_found_by_axe(row, open_row, axe, appearance, width):
    exhibit = open_row(row, mode=appearance, width=width)
    page = exhibit.page
    for state in ("", row.first):
        exhibit.evaluate(RECALL, state)
        assert violations(axe, page) == []
        page.evaluate(OPEN_ALL)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert exhibit.locator(row.uncut).evaluate_all(CUT) == []
        assert exhibit.locator("button:visible").evaluate_all(SMALL, (24, 24)) == []
        assert min(exhibit.locator(TEXTS).evaluate_all(LETTERS)) >= 11
        if row.tinted:
            assert min(exhibit.locator(row.tinted).evaluate_all(INKS)) >= 4.5


@pytest.mark.parametrize("name", ["sum", *long(*sorted(ALL.keys() - {"sum", "concat"}))])
def test_the_style_sheet_of_all_elements_draws_it_as_its_own_does(open_row, name):
    changes = open_row(ALL[name]).page.evaluate(CHANGES, style(*KINDS))
    assert changes["elements"] > 15
    assert changes["found"] == []


@pytest.mark.long
@each_row
def test_a_press_is_answered_at_once(row, exhibit, browser):
    with recorded(browser) as events:
        for button in exhibit.locator("button:visible").element_handles():
            if button.is_enabled():
                button.click()
        for slider in exhibit.get_by_role("slider").all():
            slider.press("ArrowRight")
        do_references(exhibit.page)
    assert largest_task(events) <= BUDGETS["answer"]


@pytest.mark.long
def test_no_link_where_the_address_is_not_the_pages_own(row, show):
    page = show('<div class="jp-Notebook">', html_of(row.call), "</div>")
    assert page.get_by_role("link", name="Link to th").count() == 0
    assert page.locator(f"tl-{kind_of(row)}[data-lm-suppress-shortcuts]").count() == 1


# What the book shows outside its chapters.
HOMES = {
    "plane": "book/ten_minutes",
    "words": "book/ten_minutes",
    "map": "book/intro",
    "ask": "notebooks/20_scoring_heads",
}


def home_of(name):
    """The page that shows an exhibit."""
    call = json.dumps(ROWS[name].call)[1:-1]
    names = [page.name for page in pages() if call in page.path.read_text(encoding="utf-8")]
    return HOMES.get(name) or f"{FOLDER}{names[0]}"


@pytest.mark.parametrize("name", ROWS)
def test_the_page_that_shows_it_follows_a_link(open_page, name):
    row = ROWS[name]
    page = open_page(f"{home_of(name)}.html#{kind_of(row)}=0&{row.first}")
    page.locator(f"tl-{kind_of(row)} [aria-live]", has_text=row.states[row.first]).wait_for()

"""States of exhibits, made by a generator: by the parts of a link, as Python draws them."""

import numpy as np

from tests.elements.sample_bank import sample_bank
from tests.elements.test_strip import PRODUCT, STARTS
from tutorial_lib.elements.exhibits.pairs import mask_to_hex
from tutorial_lib.elements.exhibits.strip.element import PRESSES, apply_press
from tutorial_lib.elements.markup import inline, text_of
from tutorial_lib.records import record


def one_of_each(parts):
    """Make states of which each part is one of some, or left out where that is None."""

    def state(rng):
        chosen = {key: some[rng.integers(len(some))] for key, some in parts.items()}
        return {key: value for key, value in chosen.items() if value is not None}

    return state


sum_state = one_of_each(
    {
        "word": ("dogs", "that", "bark"),
        "off": (None, "0", "1", "01"),
        "swap": ("no", "with", "without"),
        "row": range(8),
        "times": (-1, -0.5, 0, 0.5, 1, 1.5, 2),
    }
)


heads_state = one_of_each(
    {
        "head": [f"{layer}.{head}" for layer in range(30) for head in range(9)],
        "group": (None, *record("real_circuits")["groups"]),
    }
)


def clock_state(rng):
    """Positions near and far, any pair, a frequency of its own."""
    m, n = (int(10 ** rng.uniform(0, 5)) for _ in range(2))
    i, pair = (int(i) for i in rng.integers(4, size=2))
    return {"m": m, "n": n, "pair": pair, f"frequency.{i}": round(rng.uniform(0, 4), 3)}


def plane_state(rng):
    """One head or two, with queries of every direction, and of length 0 too."""
    heads, head = ((1, 0), (2, 0), (2, 1))[rng.integers(3)]
    state = {"heads": heads, "head": head}
    for part in ("", ".1"):
        state[f"angle{part}"] = round(rng.uniform(-179.9, 180), rng.integers(3))
        state[f"length{part}"] = round(rng.uniform(0, 4), 2) * int(rng.random() > 0.1)
    return state


def products_state(rng):
    """The query of the first head."""
    state = plane_state(rng)
    return {part: state[part] for part in ("angle", "length")}


def bench_state(rng):
    """Multiples of ln 2 and other products, near and far, some keys hidden, the largest away."""
    words = ("dogs", "that", "bark")
    size = 10.0 ** rng.integers(-1, 4)
    state = {word: round(rng.uniform(-size, size), 3) for word in words}
    state |= {word: np.log(2) * rng.integers(-32, 33) / 4 for word in words if rng.random() < 0.5}
    state["divide"] = rng.choice([1.0, 2.0, 16.0, round(rng.uniform(1, 16), 2)]).item()
    hide = " ".join(word for word in words if rng.random() < 0.25)
    away = {"largest": "away"} if rng.random() < 0.5 else {}
    return state | away | ({"hide": hide} if hide else {})


def slopes_state(rng):
    """The same, and slopes in any score."""
    return bench_state(rng) | {"by": str(rng.choice(["dogs", "that", "bark"]))}


def drawing_state(rng):
    """A mask of few or of many pairs, some of its rows blind."""
    mask = rng.random((16, 16)) < rng.choice([0.01, 0.05, 0.1, 0.3, 0.9])
    mask[rng.random(16) < 0.1] = False
    causal = ("yes", "no")[rng.integers(2)]
    return {"mask": mask_to_hex(mask), "causal": causal, "layers": int(rng.integers(1, 7))}


def map_state(rng, names=("X",)):
    """Some inputs of the example, whole or not."""
    sizes = {"X": (1, 3, 8), "W_O": (1, 8, 8)}
    places = [(n, *rng.integers(sizes.get(n, (2, 8, 4)))) for n in names for _ in range(5)]
    number = (lambda: int(rng.integers(-3, 4)), lambda: round(rng.normal(0, 2), 2))[rng.integers(2)]
    return {".".join(map(str, place)): number() for place in places}


def playground_state(rng):
    """Inputs of every kind; the scale has either sign, and some rows of the mask are empty."""
    state = map_state(rng, names=("X", "W_Q", "W_K", "W_V", "W_O"))
    mask = rng.random((3, 3)) < rng.choice([0.2, 0.7])
    state |= {f"mask.0.{t}.{s}": int(mask[t, s]) for t, s in np.ndindex(3, 3)}
    return state | {"scale.0.0.0": round(rng.choice([-1, 1]) * rng.uniform(0.3, 5), 2)}


def bytes_state(rng):
    """A published model, or one of the reader's own."""
    bits = {key: int(rng.choice([32, 16, 8, 4])) for key in ("bits", "weights")}
    counts = {"tokens": int(2 ** rng.uniform(0, 20)), "users": int(2 ** rng.uniform(0, 10))}
    model = str(rng.choice(["my own", "Llama 2 7B", "Mistral 7B", "DeepSeek-V3", "gpt-oss-120b"]))
    own = {key: int(rng.integers(1, 200)) for key in ("layers", "heads", "d_k", "d_v", "billions")}
    return {"model": model} | bits | counts | (own if model == "my own" else {})


def strip_state(rng, start="heads"):
    """Up to eight presses that NumPy allows one after the other, and any number in hand."""
    (_, array), presses = STARTS[start], []
    for press in rng.choice([*PRESSES], 8):
        try:
            array = apply_press(array, PRESSES[press])
        except ValueError:  # also AxisError
            continue
        presses.append(press)
    number = int(rng.choice(PRODUCT.ravel()))
    return {"do": ".".join(presses), "number": number} if presses else {"number": number}


def ask_state(rng):
    """Two clauses or one, any position, some heads silenced, a token or two compared."""
    text = "the dogs that the cats see bark" if rng.random() < 0.7 else "Anna often sees the cat"
    heads = [f"{layer}.{head}" for layer in range(2) for head in range(4)]
    silenced = ",".join(rng.choice(heads, rng.integers(4), replace=False))
    word, minus = rng.choice(["bark", "barks", "cats", "sleep", "sees"], 2, replace=False)
    compared = ({}, {"word": word}, {"minus": minus}, {"word": word, "minus": minus})
    query = {"query": str(rng.integers(len(text.split()) + 1))} if rng.random() < 0.7 else {}
    return {"text": text, "silenced": silenced} | query | compared[rng.integers(4)]


def tiles_state(rng):
    """Tiles of any sizes, some of them in, in any order; of every third state all."""
    rows, keys = (int(n) for n in rng.integers(1, 7, 2))
    across = -(-6 // keys)
    numbers = np.arange(-(-6 // rows) * across)
    last = np.minimum((numbers // across + 1) * rows, 6) - 1  # query of each tile
    seen = rng.permutation(numbers[numbers % across * keys <= last])
    taken = seen[: rng.choice([rng.integers(len(seen) + 1), len(seen)], p=[2 / 3, 1 / 3])]
    chosen = one_of_each({"order": ("rows", "columns", "last"), "factor": ("yes", "no")})(rng)
    return {"rows": rows, "keys": keys, **chosen, "tiles": ".".join(map(str, taken))}


def paint_state(rng):
    """A mask of few or of many pairs, some of its rows blind, in every reading and size."""
    state = {"true": ("look", "hide"), "align": ("bottom-right", "top-left"), "queries": (5, 3)}
    chosen = one_of_each(state | {"masked": ("zeros", "nan")})(rng)
    looks = rng.random((chosen["queries"], 5)) < rng.choice([0.1, 0.3, 0.5, 0.7, 0.9])
    looks[rng.random(len(looks)) < 0.2] = False
    named = rng.random() < 0.2
    return chosen | ({} if named else {"mask": mask_to_hex(looks ^ (chosen["true"] == "hide"))})


def choice_state(rng, question):
    """A question that is untouched, picked, or answered once or again, by the texts of options."""
    texts = [text_of(inline(option["text"])) for option in question["options"]]
    state = zip(("picked", "told", "first"), rng.choice(texts, 3).tolist(), strict=True)
    return dict(list(state)[: rng.choice([0, 1, 3], p=[0.05, 0.05, 0.9])])


def quiz_state(rng):
    """Each question in a state of its own; about every second quiz is answered to the end."""
    questions = sample_bank()["quiz"]
    return {text_of(inline(one["question"])): choice_state(rng, one) for one in questions}


def parsons_state(rng):
    """A program that begins as the solution does and goes on in any way, judged or not."""
    problem = sample_bank()["parsons"]
    lines = problem["lines"][: rng.integers(5)]
    rest = [*problem["lines"][len(lines) :], *(bug["line"] for bug in problem["distractors"])]
    rest = rng.permutation(rest).tolist()
    count = rng.choice([0, rng.integers(len(rest) + 1)])
    checked = bool(rng.random() < 0.9)
    return {"program": [*lines, *rest[:count]], "pool": rest[count:], "checked": checked}

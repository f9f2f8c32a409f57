"""What glossary and notation state in words and can be computed is so.

Each line of claims.txt holds an entry of the glossary, or `notation`, some of its words (of a
table, a piece of a row), and a condition in Python that they stand for; its names are those of
ARRAYS and of GIVEN.
"""

import importlib
import inspect
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tutorial_lib as tl
from tests.chapters.anatomy import STEPS
from tests.chapters.test_look_up import (
    ARRAYS,
    ENTRIES,
    GLOSSARY,
    NOTATION,
    SECTIONS,
    S,
    T,
    d_k,
    passed,
)
from tests.pytorch import test_differences
from tools.chapters import ROOT
from tutorial_lib import onepass
from tutorial_lib.counting import attention_bytes, attention_flop
from tutorial_lib.models import ablation, block, circuits, copying, entropy, grammar, head_scores
from tutorial_lib.models.training import adam_step, train
from tutorial_lib.pytorch import bridge, parallel
from tutorial_lib.records import checkpoint, facts
from tutorial_lib.variants import cache, grouped, latent, patterns, positions
from tutorial_lib.variants import state as states

FILE = Path(__file__).parent / "claims.txt"
LINES = FILE.read_text(encoding="utf-8").splitlines()
CLAIMS = [re.fullmatch(r"(.*?) \| (.*) \| (.*)", line).groups() for line in LINES]
GIVEN = ARRAYS | {"torch": torch, "F": F, "nn": nn, "same": np.allclose, "flop": attention_flop}
GIVEN |= {"SEEN": tl.causal_mask(T, S), "A": np.arange(6).reshape(2, 3)}
GIVEN |= {"alone": tl.trace(ARRAYS["X"], ARRAYS["params"])}  # self-attention
GIVEN |= {"rng": np.random.default_rng(1), "raises": pytest.raises, "pt": test_differences}
GIVEN |= {"onepass": onepass, "attention_bytes": attention_bytes, "facts": facts}
WORD = [7, 4, 0, 3, 18] * 2  # headsheads
MODEL = copying.TinyModel.of(checkpoint("copying"))
GIVEN |= {"WORD": WORD, "trained": copying.run(MODEL, np.array(WORD)), "copying": copying}
GIVEN |= {"MODEL": MODEL, "marks": head_scores, "ablation": ablation}
GIVEN |= {"adam_step": adam_step, "train": train, "ENTRIES": ENTRIES}
GIVEN |= {"even": passed(d_v=d_k)}  # even: as PyTorch's layer
GIVEN |= {"layer": bridge.torch_mha_from_params(GIVEN["even"].params).requires_grad_(False)}
GIVEN |= {"bridge": bridge, "parallel": parallel, "kept": cache}
EMPTY = cache.KVCache.empty(ARRAYS["params"], T + 1, batch=ARRAYS["X"].shape[:1])
GIVEN |= {"read": cache.decode_step(ARRAYS["X"], ARRAYS["params"], EMPTY)[1]}
GIVEN |= {"positions": positions, "grouped": grouped, "latent": latent, "patterns": patterns}
GIVEN |= {"states": states, "TABLE": np.arange(2.0 * 3 * 4 * 7).reshape(2, 3, 4, 7)}  # a state
GIVEN |= {"grammar": grammar, "entropy": entropy, "block": block, "circuits": circuits}
GIVEN |= {"ROOT": ROOT, "SECTIONS": SECTIONS, "NOTATION": NOTATION}


def varlen():
    """Return PyTorch's module for sequences end to end, which loads the compiler."""
    return importlib.import_module("torch.nn.attention.varlen")


def last_row(X, n_layers):
    """Return the last word's output after some layers, each under a causal mask."""
    for _ in range(n_layers):
        X = tl.trace(X, GIVEN["even"].params, mask=tl.causal_mask(len(X))).Y
    return X[-1]


def refused(call, *given, **options):
    """Return whether a call raises an error about what it was given."""
    try:
        call(*given, **options)
    except (ValueError, RuntimeError):
        return True
    return False


def arguments(call):
    """Return the names of a call's arguments."""
    return list(inspect.signature(call).parameters)


GIVEN |= {"varlen": varlen, "refused": refused, "arguments": arguments, "last_row": last_row}


def test_claims_stand_in_the_order_of_the_glossary_and_then_those_of_the_notation():
    places = [*ENTRIES, "notation"]
    found = [places.index(entry) for entry, _, _ in CLAIMS]
    wrong = [CLAIMS[i + 1] for i, (one, after) in enumerate(pairwise(found)) if one > after]
    assert not wrong, f"claims.txt: move these lines to where their entries stand: {wrong}"


@pytest.mark.parametrize(("entry", "words", "condition"), CLAIMS)
def test_what_is_said_is_so(entry, words, condition):
    text = NOTATION if entry == "notation" else ENTRIES[entry]
    assert words in text, f"{entry} no longer says {words!r}: let claims.txt follow it"
    assert eval(condition, GIVEN), f"{entry}: correct {words!r}, which {condition} denies"


def test_the_six_steps_are_named_and_numbered_in_their_order():
    listed = ", ".join(f"{{term}}`{step}`" for step in STEPS)
    assert f"there are six steps: {listed}." in GLOSSARY
    places = ("first", "second", "third", "fourth", "fifth", "sixth")
    for step, place in zip(STEPS, places, strict=True):
        definition = ENTRIES[step].partition("\n\n")[0]
        assert re.search(rf" is the {place} (of the six )?steps? of a \w+", definition), step

"""What glossary and notation state in words and can be computed is so.

Each line of claims.txt holds an entry of the glossary, or `notation`, some of its words, and a
condition in Python that they stand for; its names are those of ARRAYS and of GIVEN.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tutorial_lib as tl
from tests.chapters.anatomy import STEPS
from tests.chapters.test_look_up import ARRAYS, ENTRIES, GLOSSARY, NOTATION, S, T
from tests.pytorch import test_differences
from tutorial_lib import onepass
from tutorial_lib.counting import attention_bytes, attention_flop
from tutorial_lib.models import copying
from tutorial_lib.models.training import adam_step, train
from tutorial_lib.records import checkpoint, facts

FILE = Path(__file__).parent / "claims.txt"
CLAIMS = [line.split(" | ") for line in FILE.read_text(encoding="utf-8").splitlines()]
GIVEN = ARRAYS | {"torch": torch, "F": F, "nn": nn, "same": np.allclose, "flop": attention_flop}
GIVEN |= {"SEEN": tl.causal_mask(T, S), "A": np.arange(6).reshape(2, 3)}
GIVEN |= {"alone": tl.trace(ARRAYS["X"], ARRAYS["params"])}  # self-attention
GIVEN |= {"rng": np.random.default_rng(1), "raises": pytest.raises, "pt": test_differences}
GIVEN |= {"onepass": onepass, "attention_bytes": attention_bytes, "facts": facts}
WORD = [7, 4, 0, 3, 18] * 2  # headsheads
MODEL = copying.TinyModel.of(checkpoint("copying"))
GIVEN |= {"WORD": WORD, "trained": copying.run(MODEL, np.array(WORD)), "copying": copying}
GIVEN |= {"adam_step": adam_step, "train": train, "ENTRIES": ENTRIES}


@pytest.mark.parametrize(("entry", "words", "condition"), CLAIMS)
def test_what_is_said_is_so(entry, words, condition):
    text = NOTATION if entry == "notation" else ENTRIES[entry]
    assert words in text, f"{entry} no longer says {words!r}: let claims.txt follow it"
    assert eval(condition, GIVEN), f"{entry} says {words!r}, which is not so"


def test_the_six_steps_are_named_and_numbered_in_their_order():
    listed = ", ".join(f"{{term}}`{step}`" for step in STEPS)
    assert f"there are six steps: {listed}." in GLOSSARY
    places = ("first", "second", "third", "fourth", "fifth", "sixth")
    for step, place in zip(STEPS, places, strict=True):
        assert re.match(rf"\s*The {place} (of the six )?steps?\b", ENTRIES[step]), step

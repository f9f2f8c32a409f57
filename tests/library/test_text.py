"""A token's id is its index in the vocabulary."""

import numpy as np
import pytest

from tutorial_lib import Vocabulary

WORDS = Vocabulary(["<pad>", "dogs", "that", "bark"])


def test_id_of_a_token_is_its_index():
    ids = WORDS.ids(["bark", "dogs", "bark", "<pad>"])
    assert ids.tolist() == [3, 1, 3, 0]
    assert ids.dtype.kind == "i"


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_any_sequence_of_tokens_has_ids(kind):
    assert WORDS.ids(kind(["that", "bark"])).tolist() == [2, 3]


def test_tokens_become_a_tuple_so_the_vocabulary_cannot_change():
    tokens = ["dogs", "bark"]
    vocabulary = Vocabulary(tokens)
    tokens.append("cats")
    assert vocabulary.tokens == ("dogs", "bark")
    with pytest.raises(AttributeError):
        vocabulary.tokens = ("cats",)


def test_length_is_the_number_of_tokens():
    assert len(WORDS) == 4


def test_every_token_comes_back_from_its_id():
    assert tuple(WORDS.tokens[i] for i in WORDS.ids(WORDS.tokens)) == WORDS.tokens

"""A token's id is its index in the vocabulary."""

import numpy as np
import pytest

from tutorial_lib import Vocabulary

VOCABULARY = Vocabulary(["<pad>", "dogs", "that", "bark"])


@pytest.mark.parametrize("sequence_type", [list, tuple, np.array])
def test_id_of_a_token_is_its_index_in_any_sequence(sequence_type):
    ids = VOCABULARY.ids(sequence_type(["bark", "dogs", "bark", "<pad>"]))
    assert ids.tolist() == [3, 1, 3, 0]
    assert ids.dtype.kind == "i"


def test_tokens_become_a_tuple_so_the_vocabulary_cannot_change():
    tokens = ["dogs", "bark"]
    vocabulary = Vocabulary(tokens)
    tokens.append("cats")
    assert vocabulary.tokens == ("dogs", "bark")
    with pytest.raises(AttributeError):
        vocabulary.tokens = ("cats",)


def test_length_is_the_number_of_tokens():
    assert len(VOCABULARY) == 4

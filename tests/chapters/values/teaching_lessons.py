"""What the lesson plans say of the chapters that they show."""

import re

import numpy as np

from tests.chapters.named import printed_under, read
from tutorial_lib.records import facts, question_bank, record


def most_options_of_a_first_prediction():
    """No prediction of chapter 01 has more options than this."""
    predictions = question_bank("01_embeddings")["predictions"]
    return max(len(asked.get("options", [])) for asked in predictions)


def one_wide_head_and_four_narrow_ones_have_equal_size():
    """One head of width 16 and four of width 4 have the same number of parameters."""
    one, four = printed_under("02_queries_keys_values", "parameters")[:2]
    return one == four


def ann_and_bob_get_the_answer_of_cem_and_eve():
    """Both questions get the same mean age."""
    ann_and_bob, cem_and_eve = (
        printed_under("04_multi_head_attention", label).item()
        for label in ("Ann and Bob", "Cem and Eve")
    )
    return ann_and_bob == cem_and_eve


def scores_of_the_first_prediction():
    """The first prediction of chapter 04 has these two scores."""
    asked = question_bank("04_multi_head_attention")["predictions"][0]["question"]
    return [int(score) for score in re.search(r"scores are (\d+) and (\d+)", asked).groups()]


def parameters_of_the_layer_of_gpt_3():
    """A layer of GPT-3 has 4 · d_model² parameters in its attention."""
    (gpt_3,) = (m for m in facts("models")["models"] if m["name"] == "GPT-3 175B")
    return 4 * gpt_3["d_model"] ** 2


def both_orders_end_alike():
    """The last value is the same in the order of the sentence and on paper."""
    orders = [printed_under("12_flash_attention", n) for n in ("as on paper", "in this order")]
    return orders[0][2, 1] == orders[1][2, 1]


def halves_and_neighbours_print_the_same_for_head_0():
    """In head 0 both ways to pair give *bark* the same weights."""
    halves = printed_under("16_rope_alibi", "bark, rotate_half")
    return np.array_equal(halves[0], printed_under("16_rope_alibi", "bark, interleaved")[0])


def heads_that_are_reordered():
    """The Check of chapter 04 reorders so many heads."""
    found = re.search(r"layer\(\[(.*?)\]\)", read("notebooks/04_multi_head_attention.ipynb"))
    return len(found[1].split(","))


def head_that_copies_most_of_a_surname():
    """The head of layer 1 whose ablation raises the loss of the surname's form most."""
    scored = record("scored_heads")["heads"]["two layers"]
    costs = dict(zip(scored["names"], scored["seeds"][0]["form"]["surname"], strict=True))
    return max((name for name in costs if name.startswith("1.")), key=costs.get)

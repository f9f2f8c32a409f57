"""The check for the task of Part I's review."""

from tutorial_lib import multihead
from tutorial_lib.practice.account import read_room
from tutorial_lib.practice.ch06_output_projection.checks import my_layer_cases

MISTAKES, cases_of = read_room(__file__)


def _layer_from_memory(X, params, mask):
    return multihead.multi_head_attention(X, params, mask=mask)


@cases_of(_layer_from_memory)
def check_layer_from_memory():
    yield from my_layer_cases()

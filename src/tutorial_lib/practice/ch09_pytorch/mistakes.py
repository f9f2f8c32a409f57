"""Wrong forms of the functions of chapter 09."""

import math
from dataclasses import replace

import numpy as np

from tutorial_lib.practice.mistake import Mistake


def _rows(W):
    return np.swapaxes(W, -1, -2).reshape(-1, W.shape[1])


def _packed(turn=_rows):
    return lambda params: np.concatenate([turn(W) for W in (params.W_Q, params.W_K, params.W_V)])


def _head_by_head(params):
    heads = zip(params.W_Q, params.W_K, params.W_V, strict=True)
    return np.concatenate([W.T for head in heads for W in head])


def _scaled(params):
    return _packed()(replace(params, W_Q=params.W_Q / math.sqrt(params.d_k)))


PACKED_WEIGHT = (
    Mistake(
        "reshape_for_swapaxes",
        "it reads each head's matrix in the order it lies, so rows are no longer columns",
        "Turn each matrix first: np.swapaxes(W, -1, -2), and then the reshape.",
        _packed(lambda W: W.reshape(-1, W.shape[1])),
    ),
    Mistake(
        "head_by_head",
        "its rows go head by head: query, key and value of head 0, then of head 1",
        "All queries come first, then all keys, then all values.",
        _head_by_head,
    ),
    Mistake(
        "width_before_head",
        "its rows go through the heads first and through their widths second",
        "All rows of one head stand together: the axis of heads comes before that of widths.",
        _packed(lambda W: W.transpose(2, 0, 1).reshape(-1, W.shape[1])),
    ),
    Mistake(
        "columns",
        "it lies on its other side, (d_model, rows)",
        "nn.Linear keeps a row for each number it puts out: (rows, d_model).",
        lambda params: _packed()(params).T,
    ),
    Mistake(
        "scaled_already",
        "its queries are divided by sqrt(d_k), which the layer does again",
        "Leave the matrices as they are; the scale belongs to the scores.",
        _scaled,
    ),
)


def _cut(weight, n_heads):
    return weight.reshape(3, n_heads, -1, weight.shape[1])  # (3, H, d, d_model)


def _heads_first(weight, n_heads):
    blocks = weight.reshape(n_heads, 3, -1, weight.shape[1])
    return tuple(blocks.transpose(1, 0, 3, 2))


def _widths_first(weight, n_heads):
    blocks = weight.reshape(3, -1, n_heads, weight.shape[1])
    return tuple(blocks.transpose(0, 2, 3, 1))


SPLIT_PACKED = (
    Mistake(
        "not_turned",
        "it leaves the matrices on their side, (H, d, d_model)",
        "Swap the last two axes: Params wants (H, d_model, d).",
        lambda weight, n_heads: tuple(_cut(weight, n_heads)),
    ),
    Mistake(
        "reshape_to_turn",
        "it turns the matrices by a reshape, which moves no number",
        "Swap the last two axes: np.swapaxes(blocks, -1, -2).",
        lambda weight, n_heads: tuple(weight.reshape(3, n_heads, weight.shape[1], -1)),
    ),
    Mistake(
        "turned_before_the_cut",
        "it turns the whole packed matrix first and then cuts the rows of d_model",
        "Cut the first axis apart while it is the first, and turn then.",
        lambda weight, n_heads: tuple(weight.T.reshape(3, n_heads, weight.shape[1], -1)),
    ),
    Mistake(
        "head_before_kind",
        "it reads the rows head by head, as in GPT-NeoX",
        "Here all queries come first: the first axis is kind, head, width.",
        _heads_first,
    ),
    Mistake(
        "width_before_head",
        "it reads the rows as kind, width, head",
        "All rows of one head stand together: kind, head, width.",
        _widths_first,
    ),
)


def _kinds_innermost(weight, n_heads):
    blocks = weight.reshape(n_heads, -1, 3, weight.shape[1])
    return blocks.transpose(2, 0, 1, 3).reshape(weight.shape)


FROM_INTERLEAVED = (
    Mistake(
        "unchanged",
        "it gives the rows back in the order they came",
        "Swap the axes of heads and kinds between two reshapes; a reshape moves nothing.",
        lambda weight, n_heads: weight.copy(),
    ),
    Mistake(
        "there_instead_of_back",
        "it reads the rows as kind, head, width, which is the order to arrive at",
        "They come as head, kind, width. With three heads both would give the same.",
        lambda weight, n_heads: _cut(weight, n_heads).swapaxes(0, 1).reshape(weight.shape),
    ),
    Mistake(
        "width_first",
        "it reads the rows as head, width, kind",
        "Inside a head all rows of the query come first, then those of the key.",
        _kinds_innermost,
    ),
)


def _heard(hear, *, read=lambda seen, names: [seen[name] for name in names]):
    def outputs_of(module, X, names):
        seen = {}
        parts = {name: module.get_submodule(name) for name in names}
        hooks = [part.register_forward_hook(hear(seen, name)) for name, part in parts.items()]
        module(X)
        for hook in hooks:
            hook.remove()
        return tuple(read(seen, names))

    return outputs_of


def _output(seen, name):
    return lambda part, inputs, output: seen.update({name: output})


def _input(seen, name):
    return lambda part, inputs, output: seen.update({name: inputs[0]})


def _in_running_order(seen, names):
    return seen.values()


def _last(seen, names):
    return [list(seen.values())[-1]] * len(names)


OUTPUTS_OF = (
    Mistake(
        "running_order",
        "its list has the order in which the parts ran",
        "Keep what they put out in a dict, and read it in the order of the names.",
        _heard(_output, read=_in_running_order),
    ),
    Mistake(
        "inputs",
        "it keeps what the parts took in",
        "A forward hook is called with the part, its inputs and its output: keep the third.",
        _heard(_input),
    ),
    Mistake(
        "last_name",
        "every name has the output of the part that ran last",
        "A function made in a loop sees the loop's last name: bind it, with name=name.",
        _heard(_output, read=_last),
    ),
)

MISTAKES = {
    "packed_weight": PACKED_WEIGHT,
    "split_packed": SPLIT_PACKED,
    "from_interleaved": FROM_INTERLEAVED,
    "outputs_of": OUTPUTS_OF,
}

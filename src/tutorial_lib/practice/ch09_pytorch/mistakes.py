"""Wrong forms of the functions of chapter 09."""

import math

import numpy as np

from tutorial_lib.practice.mistake import Mistake


def _rows(W):
    return np.swapaxes(W, -1, -2).reshape(-1, W.shape[1])


def _packed(*, turn=_rows, order="QKV", scale=1.0):
    def packed_weight(params):
        kinds = {"Q": scale * params.W_Q, "K": params.W_K, "V": params.W_V}
        return np.concatenate([turn(kinds[kind]) for kind in order])

    return packed_weight


def _head_by_head(params):
    heads = zip(params.W_Q, params.W_K, params.W_V, strict=True)
    return np.concatenate([W.T for head in heads for W in head])


def _scaled(params):
    return _packed(scale=1 / math.sqrt(params.d_k))(params)


PACKED_WEIGHT = (
    Mistake(
        "reshape_for_swapaxes",
        "it reads each head's matrix in the order it lies, so rows are no longer columns",
        "Turn each matrix first: np.swapaxes(W, -1, -2), and then the reshape.",
        _packed(turn=lambda W: W.reshape(-1, W.shape[1])),
    ),
    Mistake(
        "head_by_head",
        "its rows go head by head: query, key and value of head 0, then of head 1",
        "All queries come first, then all keys, then all values.",
        _head_by_head,
    ),
    Mistake(
        "keys_first",
        "its keys come before its queries",
        "The order is queries, keys, values.",
        _packed(order="KQV"),
    ),
    Mistake(
        "width_before_head",
        "its rows go through the heads first and through their widths second",
        "All rows of one head stand together: the axis of heads comes before that of widths.",
        _packed(turn=lambda W: W.transpose(2, 0, 1).reshape(-1, W.shape[1])),
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


def _split(*, read=(3, "H", "d"), order=(0, 1, 2), turn=lambda W: np.swapaxes(W, -1, -2)):
    def split_packed(weight, n_heads):
        d_model = weight.shape[1]
        lengths = {"H": n_heads, "d": len(weight) // (3 * n_heads)}
        blocks = weight.reshape(*(lengths.get(axis, axis) for axis in read), d_model)
        places = [read.index(axis) for axis in (3, "H", "d")]
        blocks = blocks.transpose(*places, 3)
        return tuple(turn(blocks[kind]) for kind in order)

    return split_packed


def _reshaped(blocks):
    heads, d, d_model = blocks.shape
    return blocks.reshape(heads, d_model, d)


def _turned_before(weight, n_heads):
    return tuple(weight.T.reshape(3, n_heads, weight.shape[1], -1))


SPLIT_PACKED = (
    Mistake(
        "not_turned",
        "it leaves the matrices on their side, (H, d, d_model)",
        "Swap the last two axes: Params wants (H, d_model, d).",
        _split(turn=lambda W: W),
    ),
    Mistake(
        "reshape_to_turn",
        "it turns the matrices by a reshape, which moves no number",
        "Swap the last two axes: np.swapaxes(blocks, -1, -2).",
        _split(turn=_reshaped),
    ),
    Mistake(
        "turned_before_the_cut",
        "it turns the whole packed matrix first and then cuts the rows of d_model",
        "Cut the first axis apart while it is the first, and turn then.",
        _turned_before,
    ),
    Mistake(
        "head_before_kind",
        "it reads the rows head by head, as in GPT-NeoX",
        "Here all queries come first: the first axis is kind, head, width.",
        _split(read=("H", 3, "d")),
    ),
    Mistake(
        "width_before_head",
        "it reads the rows as kind, width, head",
        "All rows of one head stand together: kind, head, width.",
        _split(read=(3, "d", "H")),
    ),
    Mistake(
        "keys_first",
        "it takes the first rows for keys",
        "The order is queries, keys, values.",
        _split(order=(1, 0, 2)),
    ),
)


def _reordered(*, read=("H", 3, "d"), write=(3, "H", "d"), lay=lambda blocks: blocks):
    def from_interleaved(weight, n_heads):
        lengths = {"H": n_heads, "d": len(weight) // (3 * n_heads)}
        blocks = weight.reshape(*(lengths.get(axis, axis) for axis in read), weight.shape[1])
        places = [read.index(axis) for axis in write]
        return lay(blocks.transpose(*places, 3)).reshape(weight.shape)

    return from_interleaved


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
        _reordered(read=(3, "H", "d"), write=("H", 3, "d")),
    ),
    Mistake(
        "width_first",
        "it reads the rows as head, width, kind",
        "Inside a head all rows of the query come first, then those of the key.",
        _reordered(read=("H", "d", 3)),
    ),
    Mistake(
        "kinds_innermost",
        "it ends with the kinds innermost: the rows go head, width, kind",
        "The packed order is kind, head, width.",
        _reordered(write=("H", "d", 3)),
    ),
    Mistake(
        "keys_first",
        "its keys come before its queries",
        "The order is queries, keys, values, in both.",
        _reordered(lay=lambda blocks: blocks[[1, 0, 2]]),
    ),
    Mistake(
        "columns",
        "it turns the matrix on its other side",
        "Only the order of the rows changes: the result is as large as the given one.",
        lambda weight, n_heads: _reordered()(weight, n_heads).T,
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
    Mistake(
        "whole_module",
        "every name has the output of the whole module",
        "Put the hook on the part: module.get_submodule(name).",
        lambda module, X, names: tuple(module(X) for _ in names),
    ),
)

MISTAKES = {
    "packed_weight": PACKED_WEIGHT,
    "split_packed": SPLIT_PACKED,
    "from_interleaved": FROM_INTERLEAVED,
    "outputs_of": OUTPUTS_OF,
}

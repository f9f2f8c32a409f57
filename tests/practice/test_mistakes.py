"""Every named mistake is recognised: by its check, and by the check as a notebook calls it."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tutorial_lib.mistakes import MISTAKES, Mistake

from tests import oracle
from tutorial_lib import Params, causal_mask, checks, multi_head_attention

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FIFTEEN = [
    *("no_scale", "scale_d_k", "scale_d_model", "softmax_over_queries", "q_k_swapped"),
    *("reshape_without_transpose", "interleaved", "concat_without_transpose", "heads_reversed"),
    *("w_o_transposed", "w_o_forgotten", "mask_upside_down", "mask_hides_the_diagonal"),
    *("mask_after_softmax", "mask_filled_with_0"),
]
CHAPTERS = {
    "01_embeddings": {
        *("embed", "sinusoidal_positions", "embed_padded"),
        *("positions_from_wavelengths", "is_equivariant"),
    },
    "02_queries_keys_values": {
        *("project_heads", "project_with_bias", "project_sliced_input", "count_parameters"),
    },
    "03_attention_weights": {
        *("softmax", "causal_mask", "attention_weights", "scaled_dot_product_attention"),
        *("log_softmax", "causal_padding_mask", "summed_axis"),
    },
    "04_heads": {"split_heads", "same_token_weights", "multiply_adds", "score_ranks"},
    "05_concatenation": {
        *("concat_heads", "concat_tokens_first", "passes_round_trip", "attend_packed"),
    },
    "06_output_projection": {
        *("trace", "multi_head_attention", "head_shares", "length_factor", "layer_parameters"),
    },
    "07_vectorised": {
        *("attend_block", "attend_in_blocks", "tiled_multi_head_attention"),
        *("score_across_heads", "window_masks", "weighted_norms"),
    },
    "08_gradients": {
        *("softmax_backward", "sum_copies", "attention_backward", "linear_backward"),
        *("project_heads_backward", "multi_head_attention_backward"),
        *("input_gradients", "scale_gradients", "wrong_entries"),
    },
    "review_part_1": {"attend_to_sentence"},
    "09_pytorch": {"packed_weight", "split_packed", "from_interleaved", "outputs_of"},
    "10_masks": {
        "masked_softmax",
        "fused_attention",
        "may_look",
        "for_torch_layer",
        "packed_mask",
        "leaking_pairs",
    },
    "11_gpu": {
        *("attention_flop", "attention_bytes", "median_time", "least_times"),
        "within_rounding",
    },
    "12_flash_attention": {
        *("fold_block", "attend_rows", "flash_backward"),
        *("merge_parts", "tiles_to_score", "weights_on"),
    },
    "13_many_devices": {"shard_params", "shard_unevenly", "bytes_sent", "pairs_seen"},
}
ALL = [(name, mistake) for name, mistakes in MISTAKES.items() for mistake in mistakes]


def mistake_id(value):
    """The name of a mistake, or of the function that it is a mistake of."""
    return value.name if isinstance(value, Mistake) else value


def each_mistake(pairs):
    """A test for each pair of a function's name and a mistake."""
    return pytest.mark.parametrize(("name", "mistake"), pairs, ids=mistake_id)


def sentences(said):
    """The sentences of an account, each a line again: where one goes on it is indented by four."""
    return said.replace("\n    ", " ").splitlines()


def find_checks(path):
    """The calls `checks.check_<name>(...)` in a notebook's code: {name: {call: its argument}}."""
    found = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        tree = ast.parse("".join(cell["source"]) if cell["cell_type"] == "code" else "")
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.startswith("checks.check_"):
                calls = found.setdefault(called.removeprefix("checks.check_"), {})
                calls[ast.unparse(node)] = ast.unparse(node.args[0])
    return found


CHECKS = {path.stem: find_checks(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
IN_NOTEBOOKS = [
    pytest.param(chapter, name, mistake, id=f"{chapter}-{name}-{mistake.name}")
    for chapter, found in CHECKS.items()
    for name in found
    for mistake in MISTAKES.get(name, ())
]


@each_mistake(ALL)
def test_check_names_the_mistake_first_and_says_last_how_to_mend_it(name, mistake, capsys):
    with np.errstate(all="raise"):  # no mistake warns
        getattr(checks, f"check_{name}")(mistake.function)
    first, *_, last = sentences(capsys.readouterr().out)
    assert first == f"✗ {name}: {mistake.says}."
    assert last == f"  {mistake.mend}"


@pytest.mark.parametrize(("chapter", "name", "mistake"), IN_NOTEBOOKS)
def test_the_notebooks_own_check_names_the_mistake(chapter, name, mistake, capsys):
    for call, argument in CHECKS[chapter][name].items():
        eval(call, {"checks": checks, argument: mistake.function})
        assert mistake.says in sentences(capsys.readouterr().out)[0]


@pytest.mark.parametrize("chapter", CHECKS)
def test_notebook_checks_every_function_of_its_chapter(chapter):
    assert set(CHECKS[chapter]) >= CHAPTERS.get(chapter, set())


@pytest.mark.parametrize("chapter", CHECKS)
def test_notebook_checks_its_own_functions_by_name(chapter):
    for calls in CHECKS[chapter].values():
        for call, argument in calls.items():
            assert argument.isidentifier(), call


@pytest.mark.parametrize("chapter", CHECKS)
def test_every_check_that_a_notebook_calls_exists_and_has_mistakes(chapter):
    for name in CHECKS[chapter]:
        assert callable(getattr(checks, f"check_{name}"))
        assert name in MISTAKES


def test_notebooks_are_found():
    assert CHECKS


def test_every_function_with_mistakes_belongs_to_one_chapter():
    assert sorted(name for names in CHAPTERS.values() for name in names) == sorted(MISTAKES)


def test_every_check_has_mistakes():
    with_check = {name for name in vars(checks) if name.startswith("check_")}
    assert with_check == {f"check_{name}" for name in MISTAKES}


@pytest.mark.parametrize("name", MISTAKES)
def test_every_function_has_six_named_mistakes_or_more(name):
    names = [mistake.name for mistake in MISTAKES[name]]
    assert len(names) == len(set(names)) >= 6
    assert len({mistake.says for mistake in MISTAKES[name]}) == len(names)


def test_fifteen_mistakes_of_the_layer_are_all_here():
    assert [mistake.name for mistake in MISTAKES["multi_head_attention"]] == FIFTEEN


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_in_words(name):
    for mistake in MISTAKES[name]:
        assert re.fullmatch(r"[a-z0-9_]+", mistake.name)
        assert re.fullmatch(r"[^.\n][^\n]*[^.!\n]", mistake.says)
        assert mistake.mend.endswith(".")


def test_all_fifteen_outputs_differ_from_each_other_and_from_the_right_one(normal):
    shapes = (3, 12, 4), (3, 12, 4), (3, 12, 7), (21, 12)
    params = Params(*(normal(i, *shape) / shape[-2] ** 0.5 for i, shape in enumerate(shapes)))
    X, mask = normal(9, 5, 12), causal_mask(5)
    wrong = {m.name: m.function(X, params, mask=mask) for m in MISTAKES["multi_head_attention"]}
    outputs = {"right": multi_head_attention(X, params, mask=mask), **wrong}
    np.testing.assert_allclose(outputs["right"], oracle.mha(X, params, mask=mask), rtol=1e-10)
    for name, output in outputs.items():
        for other, another in outputs.items():
            if name < other and output.shape == another.shape:
                assert np.abs(output - another).max() > 1e-3, (name, other)

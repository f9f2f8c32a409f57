"""The report says what was found, and the table of names is whole."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.chapters.pages import chapter_headings
from tests.probe.layers import D_MODEL, band, layer, random_layer
from tests.probe.test_mistakes import HINTS, MISTAKES, PLACED, WITH_TORCH
from tutorial_lib.probe import probe
from tutorial_lib.probe.__main__ import main
from tutorial_lib.probe.report import NAMES, PLACES, WRONG


@pytest.mark.parametrize("name", NAMES)
def test_the_section_of_a_name_is_a_heading(name):
    number, heading = re.fullmatch(r"chapter (\d\d), (.+)", NAMES[name].section).groups()
    assert any(title.startswith(heading) for title in chapter_headings(number))


def test_each_name_is_planted():
    assert set(NAMES) - set(PLACES) == {*MISTAKES, *WITH_TORCH, *HINTS}
    assert set(PLACED) <= set(PLACES)


@pytest.mark.parametrize("name", HINTS)
def test_with_one_witness_there_is_a_hint_and_no_name(name):
    function, options = HINTS[name]
    report = probe(function, **options)
    assert name in [hint for row in report.table() for hint in row["hints"]], report
    assert name not in report.names


def test_a_mask_of_evaluation_alone_and_a_cut_gradient():
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, cut):
            super().__init__()
            self.d_model, self.cut = D_MODEL, cut
            self.qkv = nn.Linear(D_MODEL, 3 * D_MODEL)

        def forward(self, X):
            Q, K, V = self.qkv(X)[:, None].chunk(3, dim=-1)
            causal = self.cut or not self.training
            K = K.detach() if self.cut else K
            return nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=causal)[:, 0]

    class Detached(nn.Module):
        def forward(self, X):
            return X.detach()

    torch.manual_seed(0)
    assert probe.torch(Layer(cut=False), causal=True).names == ("mask_dropped_in_training",)
    assert probe.torch(Layer(cut=True), causal=True).names == ("gradient_cut",)
    blind = probe.torch(nn.Sequential(Layer(cut=True), Detached()), d_model=D_MODEL)
    assert blind.names == ("gradient_cut",)


def test_a_parameter_without_a_part():
    import torch

    class Unused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.k_proj, self.v_proj = (torch.nn.Linear(D_MODEL, D_MODEL) for _ in "kv")

        def forward(self, X):
            K = self.k_proj(X)
            return torch.softmax(X @ K.mT, dim=-1) @ K

    report = probe.torch(Unused(), d_model=D_MODEL)
    assert report.names == ("parameter_unused",), report
    assert "v_proj.weight, v_proj.bias" in str(report)


def test_a_wrong_backward_pass():
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention

    class Wrong(torch.autograd.Function):
        """Attention whose backward pass has another mask."""

        @staticmethod
        def forward(ctx, Q, K, V, mask):
            ctx.save_for_backward(Q, K, V)
            return attend(Q, K, V, mask)

        @staticmethod
        def backward(ctx, dY):
            with torch.enable_grad():
                arrays = [array.detach().requires_grad_() for array in ctx.saved_tensors]
                return *torch.autograd.grad(attend(*arrays), arrays, dY), None

    report = probe.torch(lambda Q, K, V, mask=None: Wrong.apply(Q, K, V, mask), heads=(2, 2))
    assert report.ok, report
    report = probe.torch(
        lambda Q, K, V, mask=None: Wrong.apply(Q, K, V, mask), heads=(2, 2), mask="mask"
    )
    assert report.names == ("gradient_of_another_function",), report


@pytest.mark.parametrize("precision", ["single", "half"])
def test_a_mask_lost_in_lower_precision(precision):
    import torch

    lost = {"single": (torch.float32, torch.float16), "half": (torch.float16,)}[precision]

    class Layer(torch.nn.Linear):
        def forward(self, X):
            scores = self.weight.mean() * (X @ X.mT)
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            if X.dtype not in lost:
                scores = scores.masked_fill(mask, -torch.inf)
            return torch.softmax(scores, dim=-1) @ X

    report = probe.torch(Layer(D_MODEL, D_MODEL, bias=False), causal=True)
    assert report.names == (f"mask_lost_in_{precision}",), report


def test_rows_of_a_matrix_without_a_part():
    import torch

    class First(torch.nn.Linear):
        def forward(self, X):
            return torch.softmax(X @ X.mT, dim=-1) @ super().forward(X)[..., :4]

    report = probe.torch(torch.nn.Sequential(First(D_MODEL, D_MODEL)), d_model=D_MODEL)
    assert report.names == ("parameter_unused",), report


def test_what_lower_precision_loses():
    import torch

    def attend(Q, K, V, mask=None, *, before=1.0, hidden=-1e4, added=0.0):
        K, V = (x.repeat_interleave(2, dim=1) for x in (K, V))
        scores = (Q * before) @ K.mT / (before * Q.shape[-1] ** 0.5) + added
        if mask is not None:
            scores = scores + (~mask).to(scores.dtype) * hidden
        return torch.softmax(scores - scores.amax(-1, keepdim=True), -1) @ V

    for name, flaw in {
        "scores_overflow_in_half": {"before": 3e4},
        "mask_value_overflows_in_half": {"hidden": -1e5},
        "scores_lost_in_single": {"added": -1e9},
    }.items():
        report = probe.torch(partial(attend, **flaw), heads=(4, 2), mask="mask")
        assert name in report.names, report


def test_rows_of_padding_that_see_nothing_spoil_gradients_and_no_output_that_counts():
    import torch

    class Banded(torch.nn.Linear):
        low = float("-inf")

        def forward(self, X, keep=None):
            near = torch.ones(X.shape[1], X.shape[1], dtype=torch.bool).tril().triu(-1)
            near = near if keep is None else near & keep[:, None]
            scores = (X @ X.mT).masked_fill(~near, self.low)
            return torch.softmax(scores, dim=-1) @ super().forward(X)

    module, claims = Banded(D_MODEL, D_MODEL), {"causal": True, "window": 2, "keep": "keep"}
    report = probe.torch(module, **claims)
    assert report.names == ("gradient_not_finite",), report
    assert "on the left is not finite" in str(report)
    assert probe.torch(module, **claims, sides=("right",)).ok
    module.low = -1e30
    assert probe.torch(module, **claims).ok


@pytest.mark.parametrize(("low", "names"), [(-1e9, ("scores_lost_in_single",)), (-1e30, ())])
def test_queries_without_an_effect_are_no_mixed_heads(low, names):
    def attend(Q, K, V):
        scores = (Q @ K.swapaxes(-1, -2) / Q.shape[-1] ** 0.5).astype(np.float32) + np.float32(low)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ V

    report = probe(attend, heads=(3, 3))
    assert not report.ok
    assert report.names == names, report
    assert "queries have no effect" in str(report)


def test_a_mask_that_only_longer_texts_show_is_described():
    def two_blocks(T):
        i, j = np.arange(T)[:, None] // 8, np.arange(T) // 8
        return np.tri(T, dtype=bool) & (i - j <= 1)

    report = probe(layer(two_blocks), d_model=D_MODEL)
    assert report.ok
    assert "· longer mask: of 67 tokens: output 66 does not depend on token 55" in str(report)
    assert "longer mask" not in str(probe(layer(), d_model=D_MODEL))


def test_one_evaluation_that_switches_dropout_off_for_good_is_found():
    import torch

    class Dropped(torch.nn.Linear):
        rate, for_good = 0.3, True

        def forward(self, X):
            if not self.training and self.for_good:
                self.rate = 0.0
            weights = torch.softmax(X @ X.mT, dim=-1)
            return super().forward(torch.dropout(weights, self.rate, self.training) @ X)

    module = Dropped(D_MODEL, D_MODEL)
    report = probe.torch(module, causal=False)
    assert report.names == ("dropout_lost_after_evaluation",), report
    module.for_good = False
    assert probe.torch(module, causal=False).ok


def test_dropout_whose_result_is_not_used_is_found():
    import torch

    class InVain(torch.nn.Linear):
        def forward(self, X):
            weights = torch.softmax(X @ X.mT, dim=-1)
            torch.dropout(weights, 0.3, self.training)
            return super().forward(weights @ X)

    report = probe.torch(InVain(D_MODEL, D_MODEL), causal=False)
    assert report.names == ("dropout_without_effect",), report


def test_what_only_training_shows():
    import torch

    class Layer(torch.nn.Linear):
        flaw = None

        def forward(self, X, keep=None):
            keep = None if self.flaw == "keep" and self.training else keep
            X = X.add_(1) if self.flaw == "input" else X
            X = X * (2 if self.flaw == "scale" and self.training else 1)
            low = torch.finfo(X.dtype).min
            scores = X @ X.mT + low * torch.ones(X.shape[1], X.shape[1], dtype=X.dtype).triu(1)
            scores = (
                scores if keep is None else (scores + (~keep[:, None]).to(X) * low).clamp(min=low)
            )
            drawn = 1
            if self.training and self.flaw == "drawn":
                drawn = torch.rand(len(X), 1, 1) > 0.1
            return X + drawn * (torch.softmax(scores, dim=-1) @ super().forward(X))

    module = Layer(D_MODEL, D_MODEL)
    names = {"keep": "training_another", "scale": "training_another"}
    names |= {"rate": "dropout_not_used", "list": "parameter_not_registered"}
    names |= {"input": "input_overwritten", "drawn": None, None: None}
    for module.flaw, name in names.items():
        module.dropout = 0.1 * (module.flaw == "rate")
        module.others = [torch.nn.Linear(2, 2)] if module.flaw == "list" else []
        report = probe.torch(module, causal=True, keep="keep")
        assert report.names == ((name,) if name else ()), report
    report = probe.torch(torch.nn.utils.parametrizations.spectral_norm(module), causal=True)
    assert "mask_dropped_in_training" not in report.names


def test_a_probe_begins_with_one_state_and_puts_generators_back():
    import torch

    reports = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        reports.append(str(probe(random_layer(), d_model=D_MODEL)))
        assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), before[1])
    assert reports[0] == reports[1]


def test_a_wrong_report_is_false_drawn_and_raised():
    report = probe(layer(band(ahead=1)), d_model=D_MODEL, causal=True)
    assert not report
    signs = np.array([line.split() for line in str(report).splitlines()[1:15]])
    expected = np.where(np.tri(14, dtype=bool), "■", np.where(np.eye(14, k=1) == 1, "▲", "·"))
    np.testing.assert_array_equal(signs, expected)
    with pytest.raises(AssertionError, match="the diagonal of the mask is off by one"):
        report.raise_if_wrong()
    assert [row["name"] for row in report.table() if row["sign"] == WRONG] == ["mask_one_ahead"]


def test_a_missing_key_is_drawn_as_a_gap():
    report = probe(layer(band(3)), d_model=D_MODEL, causal=True, window=4)
    rows = [line.split() for line in str(report).splitlines()[1:15]]
    assert all(rows[i][i - 3] == "○" for i in range(3, 14))


def test_what_a_layer_refuses_is_described():
    def without_large_numbers(X):
        if abs(X).max() > 50:
            raise ValueError("too large")
        return layer()(X)

    report = probe(without_large_numbers, d_model=D_MODEL, causal=True)
    assert report.ok
    assert "· large scores: refused, ValueError: too large" in str(report)


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["layer.py:attend", "--d_model", "12", "--causal"], 0, "✓ mask: as claimed: causal"),
        (
            ["layer.py:attend", "--d_model", "12", "--causal", "--window", "4"],
            1,
            "= window_missing",
        ),
        (["layer.py:mix", "--heads", "4,2", "--scale", "1"], 1, "claimed is 1"),
        ([], 2, "python -m tutorial_lib.probe layer.py:attend"),
        (["layer.py:attend", "--d-model", "12", "--no-causal"], 1, "= mask_causal"),
        (["layer.py:attend", "--windwo", "12", "--d-model", "12"], 2, "  window: how many tokens"),
        (["layer.py:other"], 2, "layer.py has no 'other'"),
        (["nothing.py:attend"], 2, "there is no file 'nothing.py'"),
        (["layer.py:attend"], 2, "Give it: probe(layer, d_model=64)"),
    ],
)
def test_a_file_is_asked_in_a_terminal(tmp_path, monkeypatch, capsys, words, code, shown):
    monkeypatch.chdir(tmp_path)
    source = "from tests.probe.layers import attention, layer\nattend, mix = layer(), attention()\n"
    Path("layer.py").write_text(source, encoding="utf-8")
    assert main(words) == code
    assert shown in "".join(capsys.readouterr())

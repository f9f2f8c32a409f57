"""The probe asks functions of JAX, and its wheel runs in empty environments."""

import subprocess
import sys

import pytest

from tests.test_setup import pins
from tests.wheel import build_wheel
from tutorial_lib.probe import probe

ASK = {
    "numpy": (
        "import sys; assert probe(lambda X: X - X.mean(axis=1, keepdims=True), d_model=8); "
        "assert 'torch' not in sys.modules"
    ),
    "torch": (
        "from torch.nn import MultiheadAttention; "
        "assert probe.torch(MultiheadAttention(8, 2, batch_first=True))"
    ),
    "jax": "import jax; assert probe.jax(jax.nn.dot_product_attention, heads=(2, 2), axes='BTHd')",
}


# Only in the lane of the peers: else `make test` would fetch PyTorch and JAX anew each time.
attend = pytest.importorskip("jax").nn.dot_product_attention


def test_attention_of_jax_is_described():
    report = probe.jax(
        lambda Q, K, V, mask=None: attend(Q, K, V, mask=None if mask is None else mask[None, None]),
        heads=(6, 2),
        axes="BTHd",
        mask="mask",
        scale="1/sqrt(d_k)",
    )
    assert report.ok, report
    assert report.facts["key_heads"] == "repeated"
    assert report.facts["empty_row"] == "mean"


def test_its_causal_mask_is_aligned_to_the_first_corner():
    report = probe.jax(
        lambda Q, K, V: attend(Q, K, V, is_causal=True), heads=(2, 2), axes="BTHd", causal=True
    )
    assert report.ok, report
    assert report.facts["corner"] == "first"


def test_its_window_does_not_count_the_token_itself():
    report = probe.jax(
        lambda Q, K, V: attend(Q, K, V, is_causal=True, local_window_size=(4, 0)),
        heads=(2, 2),
        axes="BTHd",
        causal=True,
        window=4,
    )
    assert report.names == ("window_one_wide",)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("peer", ASK)
def test_the_wheel_runs_in_an_empty_environment(tmp_path, wheel, peer):
    python = tmp_path / "env" / "bin" / "python"
    wanted = f"{peer}=={(pins() | pins('requirements.peers'))[peer]}"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    subprocess.run([python, "-I", "-m", "pip", "install", "-q", wheel, wanted], check=True)
    line = f"from tutorial_lib.probe import probe; {ASK[peer]}"
    subprocess.run([python, "-I", "-c", line], check=True, cwd=tmp_path)

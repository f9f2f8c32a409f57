"""Which library means what: the answers of JAX and of ONNX, each by its call on the CPU."""

import inspect
from functools import partial
from importlib.metadata import version

import numpy as np
import pytest

from tests.conventions import (
    CELLS,
    VERSIONS,
    WINDOW,
    Interface,
    called,
    described_rows,
    draw,
    rotary_pairs,
    softmax,
)

jax = pytest.importorskip("jax")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator

OPSET = 25  # the first with a window


class Jax(Interface):
    layout = (0, 2, 1, 3)
    parameters = frozenset(inspect.signature(jax.nn.dot_product_attention).parameters)
    function = staticmethod(jax.nn.dot_product_attention)

    def call(self, Q, K, V, *, mask=None, causal=False, window=None, **options):
        options["mask"] = None if mask is None else mask[None, None]
        if window:
            options["local_window_size"] = (window, 0)
        return self.function(Q, K, V, is_causal=causal, **options)

    def lengths(self):
        seen = self.weights(3, 5, key_value_seq_lengths=np.array([2])) > 1e-9
        assert (seen == (np.arange(5) < 2)).all()
        return "by lengths (B,)"


class Onnx(Interface):
    schema = onnx.defs.get_schema("Attention", OPSET)
    parameters = frozenset([*schema.attributes, *(formal.name for formal in schema.inputs)])

    def __init__(self, run):
        self.run = run

    def call(self, Q, K, V, *, mask=None, causal=False, window=-1, **options):
        options |= {"is_causal": int(causal), "left_window_size": window}
        return self.attend(Q, K, V, mask, **options)[0]

    def attend(self, Q, K, V, mask=None, *, past=("", ""), lengths=None, outputs=("Y",), **options):
        inputs = {"Q": Q, "K": K, "V": V, "attn_mask": mask, "nonpad_kv_seqlen": lengths}
        inputs |= {"past_key": past[0], "past_value": past[1]}
        inputs = {name: A for name, A in inputs.items() if isinstance(A, np.ndarray)}
        names = [formal.name if formal.name in inputs else "" for formal in self.schema.inputs]
        return self.run("Attention", inputs, names, outputs, options)

    def rotary(self):
        angles = np.broadcast_to(np.array([0, 1], np.float32)[None, :, None], (1, 2, 4))
        names = ["X", "cos_cache", "sin_cache"]
        inputs = {"cos_cache": np.cos(angles), "sin_cache": np.sin(angles)}

        def rotate(Q, **options):
            return self.run("RotaryEmbedding", inputs | {"X": Q}, names, ("Y",), options)[0]

        assert rotary_pairs(partial(rotate, interleaved=1)) == "neighbours"
        return rotary_pairs(rotate)

    def lengths(self):
        seen = self.weights(3, 5, lengths=np.array([2])) > 1e-9
        assert (seen == (np.arange(5) < 2)).all()
        return "by lengths (B,)"


def model(operator, inputs, names, outputs, options):
    """Return a model of one node; an input without a name is left out."""
    node = onnx.helper.make_node(operator, names, outputs, **options)
    values = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(A.dtype), A.shape
        )
        for name, A in inputs.items()
    ]
    results = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in outputs
        if name
    ]
    graph = onnx.helper.make_graph([node], "one_node", values, results)
    opset = onnx.helper.make_opsetid("", OPSET)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=11)


def run_in_runtime(operator, inputs, names, outputs, options):
    made = model(operator, inputs, names, outputs, options).SerializeToString()
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def run_in_reference(operator, inputs, names, outputs, options):
    return ReferenceEvaluator(model(operator, inputs, names, outputs, options)).run(None, inputs)


JAX, RUNTIMES = Jax(), [Onnx(run_in_runtime), Onnx(run_in_reference)]
ASKED = {"jax": [JAX], "onnx": RUNTIMES}


@pytest.mark.parametrize("name", called(ASKED))
def test_the_answer_of_a_cell_is_what_its_call_returns(name):
    question, interface = name.split(": ")
    for asked in ASKED[interface]:
        assert getattr(asked, question)() == CELLS[name]["answer"]


def test_the_versions_are_those_that_the_page_names():
    names = [named.split()[0] for asked in ASKED for named in VERSIONS[asked].split(", ")]
    installed = ", ".join(f"{name} {version(name)}" for name in names)
    assert installed == ", ".join(VERSIONS[asked] for asked in ASKED)


def test_what_the_notes_say_of_jax():
    keys = np.flatnonzero(JAX.weights(300, 300, local_window_size=WINDOW)[150] > 1e-9)
    assert (keys == np.arange(150 - WINDOW, 151 + WINDOW)).all()
    beyond = JAX.weights(3, 5, query_seq_lengths=np.array([2]))[2]
    assert described_rows(beyond) == "zeros"
    Q, bias = np.zeros((1, 1, 5, 5), np.float32), draw(5, 5)
    heads = JAX.outputs(
        Q, Q, np.eye(5, dtype=np.float32)[None, None], scale=0.3, bias=bias[None, None]
    )
    np.testing.assert_allclose(heads[0, 0], softmax(bias), atol=1e-6)
    Q = np.zeros((3, 2, 8), np.float32)
    heads, logsumexp = jax.nn.dot_product_attention(Q, Q, Q, return_residual=True)
    assert heads.shape == (3, 2, 8)
    logsumexp = jax.nn.dot_product_attention(Q[None], Q[None], Q[None], return_residual=True)[1]
    np.testing.assert_allclose(logsumexp, np.full((1, 3, 2), np.log(3)), atol=1e-6)


@pytest.mark.parametrize("interface", RUNTIMES)
def test_what_the_notes_say_of_onnx(interface):
    bias, Q, S = draw(3, 5), draw(1, 1, 3, 5), 5
    K, V = draw(1, 1, S, 5, seed=1), np.eye(S, dtype=np.float32)[None, None]
    weights = interface.call(Q * 0, K, V, mask=bias)[0, 0]
    np.testing.assert_allclose(weights, softmax(bias), atol=1e-6)
    lengths = interface.attend(Q, K, V, lengths=np.array([4]), is_causal=1)[0][0, 0]
    assert ((lengths > 1e-9) == np.tri(3, 5, 1, dtype=bool)).all()
    past, outputs = (K[:, :, :4], V[:, :, :4]), ("Y", "present_key", "present_value")
    after_past = interface.attend(
        Q[:, :, :1], K[:, :, 4:], V[:, :, 4:], past=past, outputs=outputs, is_causal=1
    )
    assert (after_past[0] > 1e-9).all(), "all five keys"
    np.testing.assert_array_equal(after_past[1], K)
    scores, products = ("Y", "", "", "qk_matmul_output"), Q @ K.swapaxes(-1, -2)
    np.testing.assert_allclose(
        interface.attend(Q, K, V, outputs=scores)[-1], products / 5**0.5, atol=1e-5
    )
    weights = interface.attend(Q, K, V, outputs=scores, qk_matmul_output_mode=3)[-1]
    np.testing.assert_allclose(weights, softmax(products / 5**0.5), atol=1e-5)
    X, heads = draw(2, 3, 4 * 8), {"q_num_heads": 4, "kv_num_heads": 2}
    assert interface.attend(X, X[..., :16], X[..., :16], **heads)[0].shape == X.shape
    older = {opset: onnx.defs.get_schema("Attention", opset) for opset in (23, 24)}
    assert "left_window_size" not in older[24].attributes
    assert [len(older[opset].inputs) for opset in (23, 24)] == [6, 7]
    assert older[24].inputs[6].name == "nonpad_kv_seqlen"

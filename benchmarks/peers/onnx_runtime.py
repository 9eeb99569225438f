"""ONNX Runtime: graphs written operation by operation, as exporters write them, optimised by the session.

Weights are initialisers, so that the session may pack them in advance, as in a deployed model.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from peers import Candidate, Missing
from workloads import EPS, Input, Workload, attention_scale

F32 = npt.NDArray[np.float32]
OPSET = 20


def _rmsnorm(inputs: list[Input]) -> ModelProto:
    constants = {"two": np.float32(2), "eps": np.float32(EPS), "axes": np.array([-1]), "w": inputs[1]}
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["squares"]),
        helper.make_node("ReduceMean", ["squares", "axes"], ["mean"], keepdims=1),
        helper.make_node("Add", ["mean", "eps"], ["shifted"]),
        helper.make_node("Sqrt", ["shifted"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["normed"]),
        helper.make_node("Mul", ["normed", "w"], ["out"]),
    ]
    return _model(nodes, {"x": inputs[0]}, constants)


def _softmax(inputs: list[Input]) -> ModelProto:
    return _model([helper.make_node("Softmax", ["x"], ["out"], axis=-1)], {"x": inputs[0]}, {})


def _swiglu(inputs: list[Input]) -> ModelProto:
    constants = dict(zip(("w_gate", "w_up", "w_down"), inputs[1:], strict=True))
    nodes = [
        helper.make_node("MatMul", ["x", "w_gate"], ["gate"]),
        helper.make_node("Sigmoid", ["gate"], ["sigmoid"]),
        helper.make_node("Mul", ["gate", "sigmoid"], ["silu"]),
        helper.make_node("MatMul", ["x", "w_up"], ["up"]),
        helper.make_node("Mul", ["silu", "up"], ["gated"]),
        helper.make_node("MatMul", ["gated", "w_down"], ["out"]),
    ]
    return _model(nodes, {"x": inputs[0]}, constants)


def _attention(inputs: list[Input]) -> ModelProto:
    nodes = [
        helper.make_node("Transpose", ["k"], ["k_t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "k_t"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["out"]),
    ]
    scale = np.float32(attention_scale(inputs[0]))
    return _model(nodes, dict(zip("qkv", inputs, strict=True)), {"scale": scale})


def _causal(inputs: list[Input]) -> ModelProto:
    scale = np.float32(attention_scale(inputs[0]))
    length = inputs[0].shape[-2]
    later = np.triu(np.full((length, length), -np.inf, np.float32), 1)
    nodes = [
        helper.make_node("Transpose", ["k"], ["k_t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "k_t"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "later"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["out"]),
    ]
    return _model(nodes, dict(zip("qkv", inputs, strict=True)), {"scale": scale, "later": later})


def _cross_entropy(inputs: list[Input]) -> ModelProto:
    nodes = [
        helper.make_node("LogSoftmax", ["x"], ["logs"], axis=-1),
        helper.make_node("Unsqueeze", ["targets", "last"], ["places"]),
        helper.make_node("GatherElements", ["logs", "places"], ["picked"], axis=1),
        helper.make_node("ReduceMean", ["picked"], ["mean"], keepdims=0),
        helper.make_node("Neg", ["mean"], ["out"]),
    ]
    return _model(nodes, {"x": inputs[0], "targets": inputs[1]}, {"last": np.array([1])})


def _gemm(inputs: list[Input]) -> ModelProto:
    nodes = [helper.make_node("MatMul", ["a", "b"], ["out"])]
    return _model(nodes, dict(zip("ab", inputs, strict=True)), {})


def _described(name: str, array: Input) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _model(nodes: list[NodeProto], inputs: Mapping[str, Input], constants: Mapping[str, object]) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "workload",
        [_described(name, array) for name, array in inputs.items()],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


GRAPHS = {
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "swiglu": _swiglu,
    "attention": _attention,
    "causal_attention": _causal,
    "cross_entropy": _cross_entropy,
    "gemm": _gemm,
}


class OnnxRuntime:
    def __init__(self, threads: int) -> None:
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.log_severity_level = 3

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        if workload.kind not in GRAPHS:
            raise Missing("no graph of this grows")
        model = GRAPHS[workload.kind](inputs).SerializeToString()
        session = onnxruntime.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
        feed = {wanted.name: array for wanted, array in zip(session.get_inputs(), inputs, strict=False)}
        return {"run": Candidate(lambda: session.run(None, feed)[0])}

    def to_numpy(self, result: object) -> F32:
        return np.asarray(result)

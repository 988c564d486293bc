"""onnxruntime: a product of matrices in threads of its own."""

import numpy
import onnxruntime
from onnx import TensorProto, helper


def _model():
    shape = [None, 64]
    one = helper.make_tensor_value_info("one", TensorProto.FLOAT, shape)
    two = helper.make_tensor_value_info("two", TensorProto.FLOAT, shape)
    product = helper.make_tensor_value_info("product", TensorProto.FLOAT, shape)
    node = helper.make_node("MatMul", ["one", "two"], ["product"])
    graph = helper.make_graph([node], "zoo", [one, two], [product])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


def work():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(_model(), options, providers=["CPUExecutionProvider"])
    ones = numpy.ones((64, 64), numpy.float32)
    return float(session.run(None, {"one": ones, "two": ones})[0].sum())

"""onnxruntime: which providers there are, and session options."""

import onnxruntime


def work():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return "CPUExecutionProvider" in onnxruntime.get_available_providers()

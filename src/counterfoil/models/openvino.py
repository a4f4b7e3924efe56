"""ONNX networks in OpenVINO: on processors with bf16 instructions about twice as fast, at reduced precision."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.models.options import Precision
from counterfoil.models.weights import check_file

_EXTRA = "openvino"


def open_request(path: Path, precision: Precision) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """The network as a function; each thread that calls it gets a request of its own."""
    openvino = required("openvino", _EXTRA)
    core = openvino.Core()
    _check_precision(core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"), precision)
    check_file(path, "an ONNX network")
    threads = os.cpu_count() or 1
    settings = {"INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
    try:
        network = core.compile_model(str(path), "CPU", settings)
    except RuntimeError as error:
        line = " ".join(str(error).split())
        raise UserError(f"expected an ONNX network, got {path}, which OpenVINO refuses: {line[:200]}") from error
    own = threading.local()

    def answer(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        if not hasattr(own, "request"):
            own.request = network.create_infer_request()
        return np.array(own.request.infer([pictures])[0], np.float32)

    return answer


def _check_precision(capabilities: list[str], precision: Precision) -> None:
    """OpenVINO would fall back to f32 in silence."""
    if precision == "f32" or precision.upper() in capabilities:
        return
    if precision == "fp16":
        raise UserError("expected f32 or bf16 on a CPU, got fp16; --precision fp16 is for a GPU")
    raise UserError(
        "expected a processor with bf16 instructions for --precision bf16, this one has none; leave it at f32"
    )

"""ONNX Runtime sessions with one thread per call, and the graph of an ONNX file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as faults

from counterfoil.errors import UserError

onnxruntime.disable_telemetry_events()  # newer builds would otherwise write a device id to the user's cache

RUNTIME_FAULTS = (faults.Fail, faults.InvalidArgument, faults.InvalidGraph, faults.InvalidProtobuf, faults.NoSuchFile,
                  faults.NotImplemented, faults.RuntimeException)  # fmt: skip


def open_onnx_session(network: Path | bytes) -> Any:
    """A session with one thread; several threads may run it at once."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    given = network if isinstance(network, bytes) else os.fspath(network)
    # Without the fallback: it prints four lines about a damaged file, between the results, and tries the same again.
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"], enable_fallback=0)


def read_graph(path: Path) -> Any:
    """The graph of an ONNX file; weights that lie in files beside it are not read."""
    import onnx  # imported here because running a network does not need it
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(path, load_external_data=False).graph
    except DecodeError as error:
        raise UserError(f"expected an ONNX network, got {path}, which is damaged or something else") from error

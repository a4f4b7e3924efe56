"""Networks in ONNX Runtime: one thread a call, no telemetry."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnxruntime

onnxruntime.disable_telemetry_events()  # newer builds would otherwise keep a device id in the user's cache


def session(network: Path | bytes) -> Any:
    """A session with one thread; several threads may run it at once."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    given = network if isinstance(network, bytes) else os.fspath(network)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])

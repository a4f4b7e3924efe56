"""The machine that makes a part: its kind, since probabilities may differ in their last bits, and its memory."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_RUNTIMES = ("numpy", "onnxruntime", "opencv-python-headless", "torch")
# the instructions that kernels of numerical libraries are chosen by
_FEATURES = ("avx", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "fma", "asimd", "sve", "bf16")


@cache
def describe_machine() -> dict[str, str]:
    """Processor, its vector instructions and the versions of the numerical libraries."""
    runtimes = [f"{package} {found}" for package in _RUNTIMES if (found := _find_version(package))]
    return {"processor": platform.machine(), "features": " ".join(_list_features()), "runtimes": ", ".join(runtimes)}


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _list_features() -> list[str]:
    """The processor's vector instructions, as Linux names them; empty where they are not known."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            there = set(value.split())
            return [feature for feature in _FEATURES if feature in there]
    return []


def return_memory() -> None:
    """Give freed memory back to the system: the C library keeps what lies between arrays that are still in use."""
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], int] | None:
    """The C library's function; None where it has none, as on macOS and Windows."""
    if platform.system() != "Linux":
        return None
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return None
    return trim

"""Weights in torch's old stream format, read without torch and without running code of the file."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.safe_pickle import Call, Persistent, Reference, read_pickle
from counterfoil.errors import UserError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
DICTIONARY = "collections OrderedDict"
TENSOR = "torch._utils _rebuild_tensor_v2"
STORAGE_TYPES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
MAX_AXES = 8
MAX_NUMBER = 1 << 40  # no network has larger sizes or strides, in elements
ALLOWED = frozenset({DICTIONARY, TENSOR, *STORAGE_TYPES})


@dataclass(frozen=True)
class _Tensor:
    """The storage of one tensor, and where its elements lie in it."""

    key: str
    element_type: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_stream(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a state dictionary by name."""
    stream = io.BytesIO(content)  # not a file: reading one would reserve memory for a forged size before it fails
    _check_head(stream)
    state = read_pickle(stream, ALLOWED)
    if not isinstance(state, Call) or state.function != DICTIONARY:
        raise UserError("expected a torch state dictionary, got a pickle of something else")
    tensors = {name: _tensor(name, value) for name, value in state.items.items()}
    element_types = {tensor.key: tensor.element_type for tensor in tensors.values()}
    storages = _storages(stream, element_types)
    return {name: _array(name, tensor, storages) for name, tensor in tensors.items()}


def _check_head(stream: io.BytesIO) -> None:
    magic = read_pickle(stream, ())
    if magic != MAGIC_NUMBER:
        raise UserError("expected weights in torch's old stream format, got a pickle without its magic number")
    if read_pickle(stream, ()) != PROTOCOL_VERSION:
        raise UserError(f"expected torch stream protocol {PROTOCOL_VERSION}, got another")
    system = read_pickle(stream, ())
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise UserError("expected a torch stream from a little-endian machine, got another")


def _tensor(name: str, value: object) -> _Tensor:
    """Read the record of a tensor: (storage, offset, shape, strides, ...)."""
    match value:
        case Call(
            function=function,
            arguments=(
                Persistent(identity=("storage", Reference(name=kind), str(key), str(), int(), None)),
                int(offset),
                tuple(shape),
                tuple(strides),
                *_,
            ),
        ) if function == TENSOR and kind in STORAGE_TYPES and len(shape) == len(strides) <= MAX_AXES:
            if all(isinstance(number, int) and 0 <= number < MAX_NUMBER for number in (offset, *shape, *strides)):
                return _Tensor(key, STORAGE_TYPES[kind], offset, shape, strides)
    raise UserError(f"expected a plain tensor under {name!r} in the torch stream, got something else")


def _storages(stream: io.BytesIO, element_types: dict[str, str]) -> dict[str, NDArray[Any]]:
    keys = read_pickle(stream, ())
    # No str() of anything but strings: it can take exponential time on nested shared lists.
    if not isinstance(keys, list) or sorted(key for key in keys if isinstance(key, str)) != sorted(element_types):
        raise UserError("expected one storage for each tensor of the torch stream, got another list")
    storages = {key: _storage(stream, element_types[key]) for key in keys if isinstance(key, str)}
    if stream.read(1):
        raise UserError("expected the torch stream to end after its last storage, got more bytes")
    return storages


def _storage(stream: io.BytesIO, element_type: str) -> NDArray[Any]:
    count = int.from_bytes(_exactly(stream, 8), "little", signed=True)
    return np.frombuffer(_exactly(stream, count * np.dtype(element_type).itemsize), element_type)


def _exactly(stream: io.BytesIO, size: int) -> bytes:
    remaining = stream.getbuffer().nbytes - stream.tell()
    if not 0 <= size <= remaining:
        raise UserError(f"expected a whole torch stream, got one with {remaining} bytes where {size} should follow")
    return stream.read(size)


def _array(name: str, tensor: _Tensor, storages: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """A copy of the tensor's elements, bounds checked first, since strides can point anywhere."""
    storage = storages[tensor.key]
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if math.prod(tensor.shape) > len(storage) or last >= len(storage):
        raise UserError(f"expected tensor {name!r} inside its storage of {len(storage)} elements, got one beyond it")
    strides = tuple(stride * storage.itemsize for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, strides, writeable=False)
    return np.ascontiguousarray(view).reshape(tensor.shape)

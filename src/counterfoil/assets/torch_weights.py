"""Pickles read as data, nothing executed; weights of torch's old stream format.

The standard library's unpickler executes what a file asks for, and a restricted one is only as safe as every class
that it lets through. Here `pickletools.genops` splits the bytes into opcodes, which runs nothing, and the machine
below knows just the opcodes of torch's weights files. A function or class of the file stays a name (`Reference`)
and a call of it a record (`Call`); every other opcode, and every name that the reader did not expect, is refused.
"""

from __future__ import annotations

import io
import math
import pickletools
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import UserError


@dataclass(frozen=True)
class Reference:
    """The name of a class or function, "module name", that nothing resolves."""

    name: str


@dataclass
class Call:
    """The record of a call that did not happen, with the entries meant for its result."""

    function: str
    arguments: tuple[Any, ...]
    items: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Persistent:
    """The identity of an object that the file keeps elsewhere."""

    identity: Any


def load_inert(stream: io.BytesIO, allowed: Collection[str]) -> Any:
    """Read one pickle from the stream; only the names in `allowed` may occur as references."""
    machine = _Machine(allowed)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            machine.step(opcode.name, argument)
        return machine.pop(object)
    except (ValueError, IndexError, KeyError) as error:  # a damaged number, an empty stack, a missing memo
        raise UserError(f"expected a whole weights file, got a damaged one (pickle: {error})") from error


class _Machine:
    """The stack, the marks on it and the memo."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = allowed
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Follow one opcode."""
        match name:
            case "PROTO" | "STOP":
                pass
            case "MARK":
                self._marks.append(len(self._stack))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = self._stack[-1]
            case "SETITEM":
                self._fill(self._pop_last(2))
            case "SETITEMS":
                self._fill(self._pop_to_mark())
            case "APPEND":
                self._extend(self._pop_last(1))
            case "APPENDS":
                self._extend(self._pop_to_mark())
            case "BUILD":  # the state of an object, which no weight depends on
                self.pop(object)
            case _:
                self._stack.append(self._made(name, argument))

    def _made(self, name: str, argument: Any) -> Any:
        """The value that an opcode puts on the stack."""
        match name:
            case "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1":
                return argument
            case "NONE":
                return None
            case "NEWTRUE" | "NEWFALSE":
                return name == "NEWTRUE"
            case "EMPTY_LIST":
                return []
            case "EMPTY_DICT":
                return {}
            case "EMPTY_TUPLE":
                return ()
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                return tuple(self._pop_last(int(name[-1])))
            case "TUPLE":
                return tuple(self._pop_to_mark())
            case "BINGET" | "LONG_BINGET":
                return self._memo[argument]
            case "GLOBAL":
                return self._reference(argument)
            case "REDUCE":
                arguments = self.pop(tuple)
                return Call(self.pop(Reference).name, arguments)
            case "BINPERSID":
                return Persistent(self.pop(object))
        raise UserError(f"expected a weights file, got a pickle with the opcode {name}, which no weights file needs")

    def pop(self, kind: type) -> Any:
        """Take the top of the stack, which must be of this kind."""
        return _checked(self._stack.pop(), kind)

    def _pop_last(self, count: int) -> list[Any]:
        return [self._stack.pop() for _ in range(count)][::-1]

    def _pop_to_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _extend(self, items: list[Any]) -> None:
        _checked(self._stack[-1], list).extend(items)

    def _fill(self, flat: list[Any]) -> None:
        """Put keys and values, one after the other, into the mapping on top of the stack."""
        target = self._stack[-1]
        entries = target.items if isinstance(target, Call) else _checked(target, dict)
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            entries[_checked(key, str)] = value  # strings only: the hash of nested tuples can take for ever

    def _reference(self, argument: str) -> Reference:
        if argument not in self._allowed:
            raise UserError(f"expected a weights file, got a pickle that asks for {argument!r}; do not use this file")
        return Reference(argument)


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
DICTIONARY = "collections OrderedDict"
TENSOR = "torch._utils _rebuild_tensor_v2"
STORAGE_TYPES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
MAX_AXES = 8
MAX_NUMBER = 1 << 40  # larger sizes or strides, in elements, are no network's
ALLOWED = frozenset({DICTIONARY, TENSOR, *STORAGE_TYPES})


@dataclass(frozen=True)
class _Tensor:
    """Where the elements of one tensor lie in which storage."""

    key: str
    element_type: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_stream(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a state dictionary by name."""
    stream = io.BytesIO(data)  # not a file: there a hostile size would reserve that much memory before it fails
    _check_head(stream)
    state = load_inert(stream, ALLOWED)
    if not isinstance(state, Call) or state.function != DICTIONARY:
        raise UserError("expected a torch state dictionary, got a pickle of something else")
    tensors = {name: _tensor(name, value) for name, value in state.items.items()}
    element_types = {tensor.key: tensor.element_type for tensor in tensors.values()}
    storages = _storages(stream, element_types)
    return {name: _array(name, tensor, storages) for name, tensor in tensors.items()}


def _check_head(stream: io.BytesIO) -> None:
    magic = load_inert(stream, ())
    if magic != MAGIC_NUMBER:
        raise UserError("expected weights in torch's old stream format, got a pickle without its magic number")
    if load_inert(stream, ()) != PROTOCOL_VERSION:
        raise UserError(f"expected torch stream protocol {PROTOCOL_VERSION}, got another")
    system = load_inert(stream, ())
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
    keys = load_inert(stream, ())
    # No str() of what is not a string: the text of nested shared lists can take for ever.
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
    """A copy of the tensor's elements; both checks come first, since strides can point anywhere."""
    storage = storages[tensor.key]
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if math.prod(tensor.shape) > len(storage) or last >= len(storage):
        raise UserError(f"expected tensor {name!r} inside its storage of {len(storage)} elements, got one beyond it")
    strides = tuple(stride * storage.itemsize for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, strides, writeable=False)
    return np.ascontiguousarray(view).reshape(tensor.shape)

"""Paddle's inference files as plain data: the program (operations in order) and its weights."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.embedded.networks.wire import Message
from counterfoil.errors import UserError

LOD_TENSOR, FLOAT32 = 7, 5  # VarType.Type: a variable that holds a tensor; a tensor's element type

AttributeValue: TypeAlias = "int | float | str | bool | tuple[int, ...]"


@dataclass(frozen=True)
class Operation:
    """One step of the program: variables by the names of their roles, and the attributes that are plain values."""

    kind: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True)
class Program:
    """The operations in order, the shape of every tensor variable (-1 for the batch), and the weights."""

    operations: Sequence[Operation]
    shapes: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, NDArray[np.float32]]


def read_program(program: bytes, weights: bytes) -> Program:
    """Read `inference.pdmodel` and `inference.pdiparams`."""
    blocks = Message(program).messages(1)
    if len(blocks) != 1:
        raise UserError(f"expected a Paddle program of one block, got {len(blocks)}")
    variables = [_variable(message) for message in blocks[0].messages(3)]
    shapes = {name: shape for name, shape, _ in variables if shape is not None}
    persistent = [name for name, shape, kept in variables if kept and shape is not None]
    operations = [_operation(message) for message in blocks[0].messages(4)]
    return Program(operations, shapes, _read_weights(weights, sorted(persistent), shapes))


def _variable(message: Message) -> tuple[str, tuple[int, ...] | None, bool]:
    """A variable's name, its shape if it is a tensor, and whether the weights file holds it."""
    kind = _only(message.messages(2), "type of a variable")
    persistent = message.integers(3) == [1]
    name = _only(message.texts(1), "name of a variable")
    if kind.integers(1) != [LOD_TENSOR]:
        return name, None, persistent
    tensor = _only(_only(kind.messages(3), "tensor of a variable").messages(1), "tensor of a variable")
    return name, tuple(tensor.integers(2)), persistent


def _operation(message: Message) -> Operation:
    kind = _only(message.texts(3), "kind of an operation")
    attributes = dict(_attribute(attribute) for attribute in message.messages(4))
    plain = {name: value for name, value in attributes.items() if value is not None}
    return Operation(kind, _roles(message.messages(1)), _roles(message.messages(2)), plain)


def _roles(messages: Sequence[Message]) -> dict[str, list[str]]:
    return {_only(message.texts(1), "role of a variable"): message.texts(2) for message in messages}


def _attribute(message: Message) -> tuple[str, AttributeValue | None]:
    """An attribute's name and value; None for the kinds that no operation here needs."""
    name = _only(message.texts(1), "name of an attribute")
    kind = _only(message.integers(2), "kind of an attribute")
    if kind == 0:
        return name, _only(message.integers(3), name)
    if kind == 1:
        return name, _only(message.floats(4), name)
    if kind == 2:
        return name, _only(message.texts(5), name)
    if kind == 3:
        return name, tuple(message.integers(6))
    if kind == 6:
        return name, bool(_only(message.integers(10), name))
    return name, None


def _only(values: Sequence[Any], what: str) -> Any:
    if len(values) != 1:
        raise UserError(f"expected one {what} in the Paddle program, got {len(values)}")
    return values[0]


def _read_weights(data: bytes, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The weights, which lie one after the other in the order of their names."""
    arrays: dict[str, NDArray[Any]] = {}
    position = 0
    for name in names:
        arrays[name], position = _read_tensor(data, position, shapes[name])
    if position != len(data):
        raise UserError(f"expected Paddle weights of {position} bytes for this program, got {len(data)}")
    return arrays


def _read_tensor(data: bytes, position: int, shape: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """One tensor: version, levels of detail (none), version, size of its description, description, elements."""
    head = struct.Struct("<IQIi")
    start = position + head.size
    if start > len(data):
        raise UserError("expected Paddle weights for the whole program, got fewer")
    *zeros, size = head.unpack_from(data, position)
    description = Message(data[start : start + max(size, 0)])
    if any(zeros) or description.integers(1) != [FLOAT32] or tuple(description.integers(2)) != shape:
        raise UserError(f"expected a float32 tensor of shape {shape} in the Paddle weights, got something else")
    count, first = math.prod(shape), start + size
    if min(shape, default=1) < 0 or first + 4 * count > len(data):
        raise UserError("expected Paddle weights for the whole program, got fewer")
    return np.frombuffer(data, "<f4", count, first).reshape(shape), first + 4 * count

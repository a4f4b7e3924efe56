"""Paddle's inference files as plain data: the program (operations in order) and its weights."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessages
from numpy.typing import NDArray

from counterfoil.errors import UserError

LOD_TENSOR, FLOAT32 = 7, 5  # VarType.Type: a variable that holds a tensor; a tensor's element type
VALUES = {0: "i", 1: "f", 2: "s", 3: "ints", 6: "b"}  # AttrType: the field that holds the value

SCHEMA = {  # the messages and fields of Paddle's framework.proto that are read here
    "ProgramDesc": {"blocks": (1, "repeated BlockDesc")},
    "BlockDesc": {"vars": (3, "repeated VarDesc"), "ops": (4, "repeated OpDesc")},
    "VarDesc": {"name": (1, "string"), "type": (2, "VarType"), "persistable": (3, "bool")},
    "VarType": {"type": (1, "int32"), "lod_tensor": (3, "LoDTensorDesc")},
    "LoDTensorDesc": {"tensor": (1, "TensorDesc")},
    "TensorDesc": {"data_type": (1, "int32"), "dims": (2, "repeated int64")},
    "OpDesc": {
        "inputs": (1, "repeated Var"),
        "outputs": (2, "repeated Var"),
        "type": (3, "string"),
        "attrs": (4, "repeated Attr"),
    },
    "Var": {"parameter": (1, "string"), "arguments": (2, "repeated string")},
    "Attr": {
        "name": (1, "string"),
        "type": (2, "int32"),
        "i": (3, "int32"),
        "f": (4, "float"),
        "s": (5, "string"),
        "ints": (6, "repeated int32"),
        "b": (10, "bool"),
    },
}

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
    blocks = _parse("ProgramDesc", program).blocks
    if len(blocks) != 1:
        raise UserError(f"expected a Paddle program of one block, got {len(blocks)}")
    tensors = [variable for variable in blocks[0].vars if variable.type.type == LOD_TENSOR]
    shapes = {variable.name: tuple(variable.type.lod_tensor.tensor.dims) for variable in tensors}
    persistent = [variable.name for variable in tensors if variable.persistable]
    operations = [_operation(description) for description in blocks[0].ops]
    return Program(operations, shapes, _read_weights(weights, sorted(persistent), shapes))


def _parse(kind: str, data: bytes) -> Any:
    """A message of Paddle's; bytes that are none are refused."""
    try:
        return _messages()[kind].FromString(data)
    except DecodeError as error:
        raise UserError(f"expected Paddle's {kind} as a protobuf message, got other or damaged bytes") from error


@lru_cache(maxsize=1)
def _messages() -> dict[str, Any]:
    """The classes of the messages, by name; proto3, because it also refuses names that are no UTF-8."""
    file = FileDescriptorProto(name="paddle.proto", syntax="proto3")
    for message, fields in SCHEMA.items():
        description = file.message_type.add(name=message)
        for name, (number, words) in fields.items():
            *repeated, kind = words.split()
            label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            field = description.field.add(name=name, number=number, label=label)
            if kind in SCHEMA:
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    return dict(GetMessages([file]))


def _operation(description: Any) -> Operation:
    inputs, outputs = (
        {role.parameter: list(role.arguments) for role in roles} for roles in (description.inputs, description.outputs)
    )
    attributes = {
        attribute.name: _value(attribute, VALUES[attribute.type])
        for attribute in description.attrs
        if attribute.type in VALUES  # the other kinds are needed by no operation here
    }
    return Operation(description.type, inputs, outputs, attributes)


def _value(attribute: Any, field: str) -> AttributeValue:
    value: AttributeValue = getattr(attribute, field)
    return tuple(attribute.ints) if field == "ints" else value


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
    description = _parse("TensorDesc", data[start : start + max(size, 0)])
    if any(zeros) or description.data_type != FLOAT32 or tuple(description.dims) != shape:
        raise UserError(f"expected a float32 tensor of shape {shape} in the Paddle weights, got something else")
    count, first = math.prod(shape), start + size
    if min(shape, default=1) < 0 or first + 4 * count > len(data):
        raise UserError("expected Paddle weights for the whole program, got fewer")
    return np.frombuffer(data, "<f4", count, first).reshape(shape), first + 4 * count

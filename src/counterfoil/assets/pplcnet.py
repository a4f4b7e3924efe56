"""PP-LCNetV2 converted from Paddle's inference program and weights to an ONNX graph."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessages
from numpy.typing import NDArray

from counterfoil.assets.onnx_graph import AttributeValue, Graph
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

ProgramValue: TypeAlias = "int | float | str | bool | tuple[int, ...]"


@dataclass(frozen=True)
class Operation:
    """One step of the program: its variables by role, and the attributes that are plain values."""

    kind: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    attributes: Mapping[str, ProgramValue]


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


def _parse(kind: str, encoded: bytes) -> Any:
    """A Paddle message; raises where the bytes cannot be parsed."""
    try:
        return _messages()[kind].FromString(encoded)
    except DecodeError as error:
        raise UserError(f"expected Paddle's {kind} as a protobuf message, got other or damaged bytes") from error


@lru_cache(maxsize=1)
def _messages() -> dict[str, Any]:
    """The message classes by name; proto3, because it also refuses names that are not UTF-8."""
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
        if attribute.type in VALUES  # no operation here needs the other kinds
    }
    return Operation(description.type, inputs, outputs, attributes)


def _value(attribute: Any, field: str) -> ProgramValue:
    value: ProgramValue = getattr(attribute, field)
    return tuple(attribute.ints) if field == "ints" else value


def _read_weights(
    encoded: bytes, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]]:
    """The weights, stored one after the other in the order of their names."""
    arrays: dict[str, NDArray[Any]] = {}
    position = 0
    for name in names:
        arrays[name], position = _read_tensor(encoded, position, shapes[name])
    if position != len(encoded):
        raise UserError(f"expected Paddle weights of {position} bytes for this program, got {len(encoded)}")
    return arrays


def _read_tensor(encoded: bytes, position: int, shape: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """One tensor: version, levels of detail (none), version, size of its description, description, elements."""
    head = struct.Struct("<IQIi")
    start = position + head.size
    if start > len(encoded):
        raise UserError("expected Paddle weights for the whole program, got fewer")
    *zeros, size = head.unpack_from(encoded, position)
    description = _parse("TensorDesc", encoded[start : start + max(size, 0)])
    if any(zeros) or description.data_type != FLOAT32 or tuple(description.dims) != shape:
        raise UserError(f"expected a float32 tensor of shape {shape} in the Paddle weights, got something else")
    count, first = math.prod(shape), start + size
    if min(shape, default=1) < 0 or first + 4 * count > len(encoded):
        raise UserError("expected Paddle weights for the whole program, got fewer")
    return np.frombuffer(encoded, "<f4", count, first).reshape(shape), first + 4 * count


SIZE = 224
CLASSES = 1000


def convert_pplcnet(program: bytes, weights: bytes) -> bytes:
    """Convert program and weights to an ONNX model: normalised NCHW pictures in, probabilities out."""
    conversion = _Conversion(read_program(program, weights))
    for operation in conversion.program.operations:
        conversion.add(operation)
    if not conversion.fetched:
        raise UserError("expected a Paddle program with a result, got one that fetches nothing")
    outputs = {"probabilities": (conversion.fetched, (CLASSES,))}
    return conversion.graph.model({"pictures": (3, SIZE, SIZE)}, outputs)


class _Conversion:
    """The graph being built, and the value that stands for each Paddle variable."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph = Graph("pp-lcnetv2")
        self.fetched = ""
        self._values: dict[str, str] = {}

    def add(self, operation: Operation) -> None:
        """Append one operation to the graph."""
        convert = _CONVERTERS.get(operation.kind)
        if convert is None:
            raise UserError(f"expected a PP-LCNetV2 program, got one with the unknown operation {operation.kind!r}")
        convert(self, operation)

    def value(self, operation: Operation, role: str) -> str:
        """The graph's value for the variable in this role; a weight becomes a constant on first use."""
        name = self.variable(operation, role)
        if name in self.program.weights:
            return self.graph.constant(name, self.program.weights[name])
        if name not in self._values:
            raise UserError(f"expected {name!r} to be computed before {operation.kind!r} uses it, got no such variable")
        return self._values[name]

    def variable(self, operation: Operation, role: str) -> str:
        """The name of the one variable in this role."""
        names = [*operation.inputs.get(role, ()), *operation.outputs.get(role, ())]
        if len(names) != 1:
            raise UserError(f"expected one {role!r} of the operation {operation.kind!r}, got {len(names)}")
        return names[0]

    def shape(self, operation: Operation, role: str) -> tuple[int, ...]:
        """The shape of the variable in this role."""
        name = self.variable(operation, role)
        if name not in self.program.shapes:
            raise UserError(f"expected {name!r} of the operation {operation.kind!r} to be a tensor, got another kind")
        return self.program.shapes[name]

    def bind(self, operation: Operation, role: str, value: str) -> None:
        """Map the variable in this role to a value of the graph."""
        self._values[self.variable(operation, role)] = value


_Converter = Callable[[_Conversion, Operation], None]


def _expect(operation: Operation, expected: Mapping[str, object]) -> None:
    """Refuse an operation whose attributes this converter does not support."""
    for name, value in expected.items():
        if operation.attributes.get(name) != value:
            came = operation.attributes.get(name)
            raise UserError(f"expected {name}={value!r} of the operation {operation.kind!r}, got {came!r}")


def _feed(conversion: _Conversion, operation: Operation) -> None:
    conversion.bind(operation, "Out", "pictures")


def _fetch(conversion: _Conversion, operation: Operation) -> None:
    conversion.fetched = conversion.value(operation, "X")


def _convolution(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"padding_algorithm": "EXPLICIT", "data_format": "NCHW", "dilations": (1, 1)})
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": conversion.shape(operation, "Filter")[2:],
        "strides": _pair(operation, "strides"),
        "pads": _pair(operation, "paddings") * 2,
        "group": _integer(operation, "groups"),
    }
    inputs = [conversion.value(operation, role) for role in ("Input", "Filter")]
    conversion.bind(operation, "Output", conversion.graph.node("Conv", inputs, attributes))


def _batch_norm(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"data_layout": "NCHW", "is_test": True})
    inputs = [conversion.value(operation, role) for role in ("X", "Scale", "Bias", "Mean", "Variance")]
    attributes = {"epsilon": _number(operation, "epsilon")}
    conversion.bind(operation, "Y", conversion.graph.node("BatchNormalization", inputs, attributes))


def _unary(operator: str) -> _Converter:
    def convert(conversion: _Conversion, operation: Operation) -> None:
        conversion.bind(operation, "Out", conversion.graph.node(operator, [conversion.value(operation, "X")]))

    return convert


def _binary(operator: str) -> _Converter:
    def convert(conversion: _Conversion, operation: Operation) -> None:
        inputs = [conversion.value(operation, "X"), _aligned(conversion, operation)]
        conversion.bind(operation, "Out", conversion.graph.node(operator, inputs))

    return convert


def _aligned(conversion: _Conversion, operation: Operation) -> str:
    """The second operand, reshaped: Paddle aligns its first axis with `axis`, ONNX aligns the last axes."""
    axis = _integer(operation, "axis")
    name = conversion.variable(operation, "Y")
    rank, own = len(conversion.shape(operation, "X")), len(conversion.shape(operation, "Y"))
    missing = 0 if axis == -1 else rank - axis - own
    if missing <= 0:
        return conversion.value(operation, "Y")
    if name not in conversion.program.weights:
        raise UserError(f"expected a weight as second operand of {operation.kind!r} along axis {axis}, got {name!r}")
    weight = conversion.program.weights[name]
    return conversion.graph.constant(f"{name}.aligned", weight.reshape(weight.shape + (1,) * missing))


def _pool(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"pooling_type": "avg", "adaptive": True, "ksize": (1, 1), "data_format": "NCHW"})
    _unary("GlobalAveragePool")(conversion, operation)


def _dropout(conversion: _Conversion, operation: Operation) -> None:
    """Paddle's older dropout, which at inference only scales the values down."""
    _expect(operation, {"dropout_implementation": "downgrade_in_infer", "is_test": True})
    kept = conversion.graph.constant("dropout.kept", np.array(1 - _number(operation, "dropout_prob")))
    conversion.bind(operation, "Out", conversion.graph.node("Mul", [conversion.value(operation, "X"), kept]))


def _flatten(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"start_axis": 1, "stop_axis": 3})
    _unary("Flatten")(conversion, operation)


def _matrix_product(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"trans_x": False, "trans_y": False})
    inputs = [conversion.value(operation, role) for role in ("X", "Y")]
    conversion.bind(operation, "Out", conversion.graph.node("MatMul", inputs))


def _softmax(conversion: _Conversion, operation: Operation) -> None:
    _expect(operation, {"axis": -1})
    _unary("Softmax")(conversion, operation)


def _integer(operation: Operation, name: str) -> int:
    value = operation.attributes.get(name)
    if not isinstance(value, int):
        raise UserError(f"expected an integer {name!r} of the operation {operation.kind!r}, got {value!r}")
    return value


def _number(operation: Operation, name: str) -> float:
    value = operation.attributes.get(name)
    if not isinstance(value, float):
        raise UserError(f"expected a number {name!r} of the operation {operation.kind!r}, got {value!r}")
    return value


def _pair(operation: Operation, name: str) -> tuple[int, ...]:
    value = operation.attributes.get(name)
    if not isinstance(value, tuple) or len(value) != 2:
        raise UserError(f"expected a pair {name!r} of the operation {operation.kind!r}, got {value!r}")
    return value


_CONVERTERS: dict[str, _Converter] = {
    "feed": _feed,
    "fetch": _fetch,
    "conv2d": _convolution,
    "depthwise_conv2d": _convolution,
    "batch_norm": _batch_norm,
    "relu": _unary("Relu"),
    "sigmoid": _unary("Sigmoid"),
    "elementwise_add": _binary("Add"),
    "elementwise_mul": _binary("Mul"),
    "pool2d": _pool,
    "dropout": _dropout,
    "flatten_contiguous_range": _flatten,
    "matmul_v2": _matrix_product,
    "softmax": _softmax,
}

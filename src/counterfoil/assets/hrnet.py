"""HRNet18 with object context, which cuts out what a click points at, converted from Paddle's program to ONNX.

The program asks for the shapes of its own results; with pictures of one size all of them are known, and become
constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.onnx_graph import Graph
from counterfoil.assets.pplcnet import Operation, Program, read_program
from counterfoil.errors import UserError

SIDE = 400  # pixels of the input
INPUTS = {"image": "pictures", "coord_features": "clicks"}  # Paddle's variable to the graph's input
END = 2**31 - 1  # of a slice that goes to the end

Shape: TypeAlias = "tuple[int, ...]"


def convert_hrnet(program: bytes, weights: bytes) -> bytes:
    """Convert program and weights to an ONNX model: normalised pictures and clicks in, logits of the object out."""
    conversion = _Conversion(read_program(program, weights))
    for operation in conversion.program.operations:
        convert = _CONVERTERS.get(operation.kind)
        if convert is None:
            raise UserError(f"expected HRNet's program, got one with the unknown operation {operation.kind!r}")
        convert(conversion, operation)
    if not conversion.fetched:
        raise UserError("expected a Paddle program with a result, got one that fetches nothing")
    shape = conversion.shapes[conversion.fetched]
    outputs = {"logits": (conversion.values[conversion.fetched], shape[1:])}
    return conversion.graph.model(dict.fromkeys(INPUTS.values(), (3, SIDE, SIDE)), outputs)


class _Conversion:
    """The graph being built; each Paddle variable is a value of the graph, an array, or a known number or shape."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph = Graph("hrnet18-click")
        self.values: dict[str, str] = {}
        self.shapes: dict[str, Shape] = {}
        self.arrays: dict[str, NDArray[Any]] = dict(program.weights)
        self.numbers: dict[str, int | Shape] = {}
        self.fetched = ""

    def name(self, operation: Operation, role: str) -> str:
        """The name of the one variable in this role."""
        names = [*operation.inputs.get(role, ()), *operation.outputs.get(role, ())]
        if len(names) != 1:
            raise UserError(f"expected one {role!r} of the operation {operation.kind!r}, got {len(names)}")
        return names[0]

    def value(self, operation: Operation, role: str) -> str:
        """The graph's value of the variable in this role; an array becomes a constant on first use."""
        name = self.name(operation, role)
        if name in self.arrays:
            return self.graph.constant(name, self.arrays[name])
        if name not in self.values:
            raise UserError(f"expected {name!r} to be computed before {operation.kind!r} uses it, got no such variable")
        return self.values[name]

    def shape(self, operation: Operation, role: str) -> Shape:
        """The shape of the variable in this role."""
        name = self.name(operation, role)
        return tuple(self.arrays[name].shape) if name in self.arrays else self.shapes[name]

    def bind(self, operation: Operation, role: str, value: str, shape: Shape) -> None:
        """Map the variable in this role to a value of the graph."""
        name = self.name(operation, role)
        self.values[name], self.shapes[name] = value, shape

    def known_numbers(self, names: Sequence[str]) -> Shape:
        """Numbers that the program computes from shapes, one after the other."""
        found: list[int] = []
        for name in names:
            if name not in self.numbers:
                raise UserError(f"expected {name!r} to follow from a shape, got something else")
            number = self.numbers[name]
            found.extend([number] if isinstance(number, int) else number)
        return tuple(found)

    def keep(self, operator: str, operation: Operation, attributes: Mapping[str, Any] | None = None) -> None:
        """Append an operator of one input whose result has the input's shape."""
        value = self.graph.node(operator, [self.value(operation, "X")], attributes)
        self.bind(operation, "Out", value, self.shape(operation, "X"))


_Converter = Callable[[_Conversion, Operation], None]


def _feed(conversion: _Conversion, operation: Operation) -> None:
    name = conversion.name(operation, "Out")
    if name not in INPUTS:
        raise UserError(f"expected the inputs {', '.join(INPUTS)} of HRNet's program, got {name!r}")
    conversion.bind(operation, "Out", INPUTS[name], (1, 3, SIDE, SIDE))


def _fetch(conversion: _Conversion, operation: Operation) -> None:
    if operation.attributes.get("col") == 0:  # the object; the other result is a by-product of training
        conversion.fetched = conversion.name(operation, "X")


def _convolution(conversion: _Conversion, operation: Operation) -> None:
    strides, pads = (_integers(operation, name) for name in ("strides", "paddings"))
    if _integers(operation, "dilations") != (1, 1) or operation.attributes.get("groups") != 1:
        raise UserError("expected convolutions without dilations and groups, got others")
    kernel, (batch, _, *sides) = conversion.shape(operation, "Filter"), conversion.shape(operation, "Input")
    inputs = [conversion.value(operation, role) for role in ("Input", "Filter")]
    attributes = {"kernel_shape": kernel[2:], "strides": strides, "pads": pads * 2}
    reached = zip(sides, pads, kernel[2:], strides, strict=True)
    shape = (batch, kernel[0], *((side + 2 * pad - width) // step + 1 for side, pad, width, step in reached))
    conversion.bind(operation, "Output", conversion.graph.node("Conv", inputs, attributes), shape)


def _batch_norm(conversion: _Conversion, operation: Operation) -> None:
    inputs = [conversion.value(operation, role) for role in ("X", "Scale", "Bias", "Mean", "Variance")]
    attributes = {"epsilon": float(operation.attributes.get("epsilon", 1e-5))}  # type: ignore[arg-type]
    value = conversion.graph.node("BatchNormalization", inputs, attributes)
    conversion.bind(operation, "Y", value, conversion.shape(operation, "X"))


def _binary(operator: str) -> _Converter:
    def convert(conversion: _Conversion, operation: Operation) -> None:
        shape, name = conversion.shape(operation, "X"), conversion.name(operation, "Y")
        if name in conversion.arrays and operation.attributes.get("axis") == 1:  # one number per channel
            array = conversion.arrays[name]
            other = conversion.graph.constant(f"{name}.aligned", array.reshape(-1, *(1,) * (len(shape) - 2)))
        else:
            other = conversion.value(operation, "Y")
        value = conversion.graph.node(operator, [conversion.value(operation, "X"), other])
        conversion.bind(operation, "Out", value, shape)

    return convert


def _scale(conversion: _Conversion, operation: Operation) -> None:
    factor, bias = (float(operation.attributes.get(name, 0.0)) for name in ("scale", "bias"))  # type: ignore[arg-type]
    source, target = conversion.name(operation, "X"), conversion.name(operation, "Out")
    if source in conversion.arrays:
        conversion.arrays[target] = conversion.arrays[source] * np.float32(factor) + np.float32(bias)
        return
    if bias:
        raise UserError("expected a scale without bias, got one with it")
    constant = conversion.graph.constant(f"{target}.factor", np.array(factor))
    value = conversion.graph.node("Mul", [conversion.value(operation, "X"), constant])
    conversion.bind(operation, "Out", value, conversion.shape(operation, "X"))


def _absolute(conversion: _Conversion, operation: Operation) -> None:
    conversion.arrays[conversion.name(operation, "Out")] = np.abs(conversion.arrays[conversion.name(operation, "X")])


def _shape(conversion: _Conversion, operation: Operation) -> None:
    conversion.numbers[conversion.name(operation, "Out")] = conversion.shape(operation, "Input")


def _slice(conversion: _Conversion, operation: Operation) -> None:
    numbers = conversion.known_numbers([conversion.name(operation, "Input")])
    (start,), (end,) = (_integers(operation, name) for name in ("starts", "ends"))
    part = numbers[start : None if end == END else end]
    one = bool(operation.attributes.get("decrease_axis"))
    conversion.numbers[conversion.name(operation, "Out")] = part[0] if one else part


def _fill_constant(conversion: _Conversion, operation: Operation) -> None:
    conversion.numbers[conversion.name(operation, "Out")] = int(str(operation.attributes.get("str_value")))


def _resize(conversion: _Conversion, operation: Operation) -> None:
    if operation.attributes.get("align_corners") is not True:
        raise UserError("expected pictures resized corner to corner, got another way")
    asked = operation.inputs.get("SizeTensor") or operation.inputs.get("OutSize") or ()
    shape = (*conversion.shape(operation, "X")[:2], *conversion.known_numbers(asked))
    inputs = [conversion.value(operation, "X"), "", "", conversion.graph.integers(shape)]
    attributes = {"coordinate_transformation_mode": "align_corners", "mode": "linear"}
    conversion.bind(operation, "Out", conversion.graph.node("Resize", inputs, attributes), shape)


def _concatenate(conversion: _Conversion, operation: Operation) -> None:
    names = operation.inputs["X"]
    first, channels = conversion.shapes[names[0]], sum(conversion.shapes[name][1] for name in names)
    value = conversion.graph.node("Concat", [conversion.values[name] for name in names], {"axis": 1})
    conversion.bind(operation, "Out", value, (first[0], channels, *first[2:]))


def _reshape(conversion: _Conversion, operation: Operation) -> None:
    asked = operation.inputs.get("ShapeTensor")
    wanted = conversion.known_numbers(asked) if asked else _integers(operation, "shape")
    count = math.prod(conversion.shape(operation, "X"))
    known = math.prod(length for length in wanted if length > 0)
    shape = tuple(count // known if length == -1 else length for length in wanted)
    if math.prod(shape) != count:
        raise UserError(f"expected a shape of {count} numbers, got {shape}")
    inputs = [conversion.value(operation, "X"), conversion.graph.integers(shape)]
    conversion.bind(operation, "Out", conversion.graph.node("Reshape", inputs), shape)


def _transpose(conversion: _Conversion, operation: Operation) -> None:
    order, shape = _integers(operation, "axis"), conversion.shape(operation, "X")
    value = conversion.graph.node("Transpose", [conversion.value(operation, "X")], {"perm": order})
    conversion.bind(operation, "Out", value, tuple(shape[axis] for axis in order))


def _softmax(conversion: _Conversion, operation: Operation) -> None:
    conversion.keep("Softmax", operation, {"axis": operation.attributes.get("axis", -1)})


def _matrix_product(conversion: _Conversion, operation: Operation) -> None:
    left, right = (conversion.shape(operation, role) for role in ("X", "Y"))
    value = conversion.graph.node("MatMul", [conversion.value(operation, role) for role in ("X", "Y")])
    conversion.bind(operation, "Out", value, (*left[:-1], right[-1]))


def _unsqueeze(conversion: _Conversion, operation: Operation) -> None:
    (axis,), shape = _integers(operation, "axes"), conversion.shape(operation, "X")
    value = conversion.graph.node("Unsqueeze", [conversion.value(operation, "X"), conversion.graph.integers((axis,))])
    conversion.bind(operation, "Out", value, (*shape[:axis], 1, *shape[axis:]))


def _leaky(conversion: _Conversion, operation: Operation) -> None:
    conversion.keep("LeakyRelu", operation, {"alpha": operation.attributes.get("alpha", 0.0)})


def _integers(operation: Operation, name: str) -> Shape:
    value = operation.attributes.get(name)
    if not isinstance(value, tuple):
        raise UserError(f"expected whole numbers {name!r} of the operation {operation.kind!r}, got {value!r}")
    return value


_CONVERTERS: dict[str, _Converter] = {
    "feed": _feed,
    "fetch": _fetch,
    "conv2d": _convolution,
    "batch_norm": _batch_norm,
    "relu": lambda conversion, operation: conversion.keep("Relu", operation),
    "leaky_relu": _leaky,
    "elementwise_add": _binary("Add"),
    "elementwise_mul": _binary("Mul"),
    "scale": _scale,
    "abs": _absolute,
    "shape": _shape,
    "slice": _slice,
    "fill_constant": _fill_constant,
    "bilinear_interp_v2": _resize,
    "concat": _concatenate,
    "reshape2": _reshape,
    "transpose2": _transpose,
    "softmax": _softmax,
    "matmul_v2": _matrix_product,
    "unsqueeze2": _unsqueeze,
}

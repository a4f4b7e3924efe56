"""A small classifier's ONNX file in torch, for its gradient: the operators of EfficientNet-Lite and its like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from counterfoil.embedded.session import read_graph
from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.types import Preprocessing

LEAST = 1e-12  # probability

Values = dict[str, Any]
Attributes = Mapping[str, Any]


def log_probability(file: Path, column: int, wanted: Preprocessing) -> Callable[[Any], Any]:
    """Tensors (n, 3, height, width) of levels to the log of one column's probability, with a gradient."""
    torch: Any = required("torch", "diffusion")
    graph = read_graph(file)
    nodes = [_node(node) for node in graph.node]
    strangers = {operator for operator, *_ in nodes} - set(_operators(torch))
    strangers |= {f"{name} of another form" for name, inputs, _, about in nodes if not _is_plain(name, inputs, about)}
    if strangers:
        raise UserError(f"expected a network of {', '.join(_operators(torch))}, got {file.name} with {min(strangers)}")
    held = {tensor.name: _tensor(tensor) for tensor in graph.initializer}
    given, result = graph.input[0].name, graph.output[0].name
    gives_probabilities = "Softmax" in {operator for operator, *_ in nodes}

    def asked(levels: Any) -> Any:
        there = {name: value.to(levels.device) for name, value in held.items()}
        values = {**there, given: _prepared(torch, levels, wanted)}
        for operator, inputs, output, attributes in nodes:
            values[output] = _operators(torch)[operator](*(values.get(name) for name in inputs), attributes)
        scores = values[result] if gives_probabilities else values[result].softmax(-1)
        return scores[:, column].clamp(min=LEAST).log()

    return asked


def _operators(torch: Any) -> dict[str, Callable[..., Any]]:
    functional = torch.nn.functional
    return {
        "Conv": lambda value, kernel, bias, about: _convolution(functional, (value, kernel, bias), about),
        "Clip": lambda value, low, high, about: value.clamp(float(low), float(high)),
        "Relu": lambda value, about: value.clamp(min=0),
        "Add": lambda value, other, about: value + other,
        "GlobalAveragePool": lambda value, about: value.mean((2, 3), keepdim=True),
        "Flatten": lambda value, about: value.flatten(1),
        "Gemm": lambda value, matrix, bias, about: value @ (matrix.T if about.get("transB") else matrix) + bias,
        "Softmax": lambda value, about: value.softmax(-1),
        "Identity": lambda value, about: value,
    }


def _is_plain(operator: str, inputs: Sequence[str], about: Attributes) -> bool:
    """Whether an operator is used as written here: what it is told otherwise would be passed over in silence."""
    if operator == "Conv":
        return len(inputs) == 3 and {"pads", "strides"} <= about.keys() and set(about.get("dilations", ())) <= {1}
    if operator == "Clip":
        return len(inputs) == 3
    return operator != "Gemm" or (len(inputs) == 3 and not {"transA"} & about.keys())


def _convolution(functional: Any, parts: tuple[Any, ...], about: Attributes) -> Any:
    top, left, bottom, right = about["pads"]
    padded = functional.pad(parts[0], (left, right, top, bottom))
    return functional.conv2d(padded, *parts[1:], stride=tuple(about["strides"]), groups=about.get("group", 1))


def _node(node: Any) -> tuple[str, list[str], str, Attributes]:
    from onnx import helper

    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return node.op_type, list(node.input), node.output[0], attributes


def _tensor(tensor: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    torch: Any = required("torch", "diffusion")
    if tensor.data_type != TensorProto.FLOAT or tensor.data_location == TensorProto.EXTERNAL:
        raise UserError(
            f"expected a network whose file holds its weights as 32-bit numbers, got another kind in '{tensor.name}'"
        )
    return torch.from_numpy(numpy_helper.to_array(tensor).copy())  # a copy, because torch wants to write


def _prepared(torch: Any, levels: Any, wanted: Preprocessing) -> Any:
    """What the classifier makes of a picture, in operations that have a gradient."""
    height, width = levels.shape[-2:]
    scale = (wanted.resize or 0) / min(height, width)
    size = (round(height * scale), round(width * scale)) if wanted.resize else wanted.size
    # Products with matrices: the gradient of torch's own resizing adds up in another order every time on a GPU.
    down, across = (_resizing(*sides).to(levels.device) for sides in zip((height, width), size, strict=True))
    fitted = down @ levels @ across.T
    top, left = ((fitted.shape[2 + axis] - wanted.size[axis]) // 2 for axis in (0, 1))
    cropped = fitted[:, :, top : top + wanted.size[0], left : left + wanted.size[1]]
    cropped = cropped.flip(1) if wanted.colour_order == "BGR" else cropped
    mean, deviation = (levels.new_tensor(values).view(1, 3, 1, 1) for values in (wanted.mean, wanted.std))
    return (cropped - mean) / deviation


@lru_cache(maxsize=16)
def _resizing(before: int, after: int) -> Any:
    """The matrix, (after, before), that resizes one side."""
    torch: Any = required("torch", "diffusion")
    unit = torch.eye(before)[None, None]
    return torch.nn.functional.interpolate(unit, size=(after, before), mode="bilinear", antialias=True)[0, 0]

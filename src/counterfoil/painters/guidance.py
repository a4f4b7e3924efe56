"""Guidance of the painted background: towards more or less complexity, and against an ONNX classifier's answer."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.assets.onnx_session import read_graph
from counterfoil.errors import UserError
from counterfoil.painters.sampler import Array, Guide
from counterfoil.plugins import import_extra
from counterfoil.types import Preprocessing

PUSH = 0.2  # root mean square of a step at full noise, pictures from -1 to 1


def gradient_guide(log_probability: Callable[[Any], Any], push: float = PUSH) -> Guide:
    """A guide that lowers the log probability of the true label; takes tensors (1, 3, height, width) from 0 to 255."""
    torch: Any = import_extra("torch", "diffusion")

    def guide(clean: Array, noise: float) -> Array:
        picture = torch.as_tensor(clean).detach().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(log_probability((picture + 1) * 127.5).sum(), picture)
        size = gradient.square().mean().sqrt().clamp(min=1e-12)
        stepped = (picture - push * noise * gradient / size).detach()
        return stepped.numpy() if isinstance(clean, np.ndarray) else stepped

    return guide


USUAL = 28.0  # c of a photo at 256 px, levels from -1 to 1: the mean of 480
MOST_NEUTRAL = 1.5
LEAST_COMPLEXITY = 1e-6  # of a wave's amplitude; the phase of weaker ones is noise
SIDE = 256  # of the pictures in whose amplitudes the guidance is measured
# By strength of the edit, the correction that makes guidance 0 neutral, measured on 480 photos.
NEUTRAL_STRENGTHS, NEUTRAL_GUIDANCES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0), (0.0, 5.8, 4.2, 3.7, 4.9, 4.9)


@dataclass(frozen=True)
class ComplexityGuide:
    """Adds to every wave's amplitude in proportion to the noise: a closed-form step along the gradient of c."""

    total: Array  # a number, or one for each picture, (n, 1, 1, 1)

    def __call__(self, clean: Array, noise: float) -> Array:
        """The predicted picture, made more complex or plainer."""
        return guide_complexity(clean, self.total, noise)


def guide_complexity(clean: Array, total: Array, noise: Array) -> Array:
    """The predicted picture with `total` per share of noise on its amplitudes."""
    height, width = clean.shape[-2:]
    return raise_complexity(clean, total * noise * math.sqrt(height * width) / SIDE)


def complexity_guide(guidance: float, strength: float, before: float = USUAL) -> ComplexityGuide:
    """The guide for a lambda, for a picture of complexity `before`."""
    # The model removes a share of the complexity, so the correction is a share of it too.
    neutral = float(np.interp(strength, NEUTRAL_STRENGTHS, NEUTRAL_GUIDANCES)) * min(before / USUAL, MOST_NEUTRAL)
    return ComplexityGuide(guidance + neutral)


def fourier_complexity(picture: Array) -> float:
    """c of one picture, (1, 3, height, width) from -1 to 1, as it would be at 256 px."""
    height, width = picture.shape[-2:]
    return float(abs(np.fft.fft2(picture)).mean()) * SIDE / math.sqrt(height * width)


def raise_complexity(picture: Array, added: Array) -> Array:
    """The picture with `added` on the amplitude of every wave but the mean; negative amplitudes become 0."""
    module: Any = np if isinstance(picture, np.ndarray) else sys.modules["torch"]
    waves = module.fft.rfft2(picture)
    strength = module.clip(abs(waves), LEAST_COMPLEXITY, None)
    factors = module.clip(strength + added, 0, None) / strength
    factors[..., 0, 0] = 1
    size = tuple(picture.shape[-2:])
    result = module.fft.irfft2(waves * factors, s=size)
    return result.astype(np.float32) if module is np else result


LEAST = 1e-12  # probability

Values = dict[str, Any]
Attributes = Mapping[str, Any]


def log_probability(file: Path, column: int, wanted: Preprocessing) -> Callable[[Any], Any]:
    """Tensors (n, 3, height, width) of levels to the log of one column's probability, with a gradient."""
    torch: Any = import_extra("torch", "diffusion")
    graph = read_graph(file)
    nodes, known = [_node(node) for node in graph.node], _operators(torch)
    unsupported = {operator for operator, *_ in nodes} - set(known)
    unsupported |= {f"{name} of another form" for name, inputs, _, about in nodes if not _is_plain(name, inputs, about)}
    if unsupported:
        raise UserError(f"expected a network of {', '.join(known)}, got {file.name} with {min(unsupported)}")
    held = {tensor.name: _tensor(tensor) for tensor in graph.initializer}
    given, result = graph.input[0].name, graph.output[0].name
    gives_probabilities = "Softmax" in {operator for operator, *_ in nodes}

    def compute(levels: Any) -> Any:
        there = {name: value.to(levels.device) for name, value in held.items()}
        values = {**there, given: _prepared(torch, levels, wanted)}
        for operator, inputs, output, attributes in nodes:
            values[output] = known[operator](*(values.get(name) for name in inputs), attributes)
        scores = values[result] if gives_probabilities else values[result].softmax(-1)
        return scores[:, column].clamp(min=LEAST).log()

    return compute


@dataclass(frozen=True)
class SurrogateGuide:
    """Guidance away from one column of an ONNX classifier, by its gradient; may be pickled."""

    file: Path
    column: int
    preprocessing: Preprocessing

    def __call__(self, clean: Array, noise: float) -> Array:
        """The predicted picture, a step away from the column's answer."""
        return _load_guide(self.file, self.column, self.preprocessing)(clean, noise)


@lru_cache(maxsize=64)
def _load_guide(file: Path, column: int, preprocessing: Preprocessing) -> Guide:
    return gradient_guide(log_probability(file, column, preprocessing))


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
    """Whether an operator has only the attributes supported here."""
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

    torch: Any = import_extra("torch", "diffusion")
    if tensor.data_type != TensorProto.FLOAT or tensor.data_location == TensorProto.EXTERNAL:
        raise UserError(
            f"expected a network whose file holds its weights as 32-bit numbers, got another kind in '{tensor.name}'"
        )
    return torch.from_numpy(numpy_helper.to_array(tensor).copy())  # a copy, because torch needs writable memory


def _prepared(torch: Any, levels: Any, wanted: Preprocessing) -> Any:
    """The classifier's preprocessing in operations that have a gradient."""
    height, width = levels.shape[-2:]
    scale = (wanted.resize or 0) / min(height, width)
    size = (round(height * scale), round(width * scale)) if wanted.resize else wanted.size
    # Matrix products, because the gradient of torch's own resizing is not deterministic on a GPU.
    down, across = (_resizing(*sides).to(levels.device) for sides in zip((height, width), size, strict=True))
    fitted = down @ levels @ across.T
    top, left = ((fitted.shape[2 + axis] - wanted.size[axis]) // 2 for axis in (0, 1))
    cropped = fitted[:, :, top : top + wanted.size[0], left : left + wanted.size[1]]
    cropped = cropped.flip(1) if wanted.colour_order == "BGR" else cropped
    mean, deviation = (levels.new_tensor(values).view(1, 3, 1, 1) for values in (wanted.mean, wanted.std))
    return (cropped - mean) / deviation


@lru_cache(maxsize=16)
def _resizing(before: int, after: int) -> Any:
    """The matrix, (new length, old length), that resizes one side."""
    torch: Any = import_extra("torch", "diffusion")
    unit = torch.eye(before)[None, None]
    return torch.nn.functional.interpolate(unit, size=(after, before), mode="bilinear", antialias=True)[0, 0]

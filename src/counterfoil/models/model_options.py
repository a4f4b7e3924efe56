"""How a model is loaded and run: device, precision, runtime, batch size, and the prompts of zero-shot models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from counterfoil.errors import UserError
from counterfoil.labels.label_space import LabelSpace

Precision: TypeAlias = Literal["f32", "bf16", "fp16"]
Runtime: TypeAlias = Literal["own", "onnx", "openvino"]  # own: torch for torch models, ONNX Runtime for ONNX files

DEFAULT_TEMPLATES = ("A photo of a {c}",)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Everything about loading that a user may choose."""

    describe: str | None = None  # labels and preprocessing of a file that does not say them: JSON, or a JSON file
    device: str = "auto"  # auto takes a GPU where torch sees one
    precision: Precision = "f32"
    runtime: Runtime = "own"  # onnx exports a torch model once, checks it against the original, and keeps it
    batch_size: int | None = None  # pictures per batch on a GPU; None measures which is best
    classes: LabelSpace | None = None  # what a zero-shot model chooses from; ImageNet-1k where none is given
    templates: tuple[str, ...] = DEFAULT_TEMPLATES  # what a zero-shot model is told, {c} standing for the class

    def __post_init__(self) -> None:
        for template in self.templates:
            if "{c}" not in template:
                raise UserError(f"expected {{c}} for the class in every prompt template, got '{template}'")
        if not self.templates:
            raise UserError("expected at least one prompt template, got none")
        if self.batch_size is not None and self.batch_size < 1:
            raise UserError(f"expected a batch size of at least 1, got {self.batch_size}")


@dataclass(frozen=True)
class Request:
    """An address, the part of it behind the kind, and how to load it."""

    address: str
    place: str
    options: ModelOptions = field(default_factory=ModelOptions)


def format_class_name(name: str) -> str:
    """A class name as ImageNet-D's prompts have it: lower case, no dashes or underscores, "a/b" as "a or b"."""
    return " ".join(name.lower().replace("_", " ").replace("-", " ").replace("/", " or ").split())


def fill_templates(space: LabelSpace, templates: Sequence[str]) -> list[list[str]]:
    """Of each class, in the order of the labels, every template filled in."""
    return [[template.replace("{c}", format_class_name(name)) for template in templates] for name in space.names]


def read_templates(text: str) -> tuple[str, ...]:
    """A template such as "a sketch of a {c}", or a text file with one a line."""
    if "{c}" in text:
        return (text,)
    if not Path(text).is_file():
        raise UserError(f"expected a prompt template with {{c}} for the class, or a text file of them, got '{text}'")
    return tuple(line.strip() for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip())

"""How a model is to be loaded and run: what the address alone does not say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from counterfoil.errors import UserError
from counterfoil.labels import LabelSpace

Precision: TypeAlias = Literal["f32", "bf16", "fp16"]
Runtime: TypeAlias = Literal["own", "onnx", "openvino"]  # own: torch for torch models, ONNX Runtime for ONNX files

DEFAULT_TEMPLATES = ("A photo of a {c}",)


@dataclass(frozen=True)
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

"""How a model is loaded and run: device, precision, runtime, prompts, and the description beside an ONNX file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from counterfoil.errors import UserError, expect_choice, expect_kind
from counterfoil.labels.label_space import BACKGROUND, LabelSpace, imagenet1k
from counterfoil.types import PhotoInput, Preprocessing

Precision: TypeAlias = Literal["f32", "bf16", "fp16"]
Runtime: TypeAlias = Literal["own", "onnx", "openvino"]  # own: torch for torch models, ONNX Runtime for ONNX files

WITH_BACKGROUND = "imagenet1k+background"  # 1001 columns, as many networks of TensorFlow have them
NO_PREPROCESSING = {"labels", "scores", "input", "note"}  # keys of a description that say nothing about it
DEFAULT_TEMPLATES = ("A photo of a {c}",)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Everything about loading that a user may choose."""

    describe: str | None = None  # labels and preprocessing of a file that lacks them: JSON, or a JSON file
    device: str = "auto"  # auto takes a GPU where torch sees one
    precision: Precision = "f32"
    runtime: Runtime = "own"  # onnx exports a torch model once, checks it against the original, and keeps it
    batch_size: int | None = None  # pictures per batch on a GPU; None measures which is best
    classes: LabelSpace | None = None  # what a zero-shot model chooses from; ImageNet-1k where none is given
    templates: tuple[str, ...] = DEFAULT_TEMPLATES  # prompts of a zero-shot model; {c} is the class

    def __post_init__(self) -> None:
        expect_kind(self.device, str, "device as auto, cpu, cuda or cuda:NUMBER")
        expect_kind(self.describe, (str, type(None)), "describe as JSON, or as the name of a file")
        expect_choice(self.precision, get_args(Precision), "precision")
        expect_choice(self.runtime, get_args(Runtime), "runtime")
        expect_kind(self.batch_size, (int, type(None)), "the batch size as a whole number")
        expect_kind(self.classes, (LabelSpace, type(None)), "classes as a LabelSpace")
        expect_kind(self.templates, tuple, "templates as a tuple of prompts")
        for template in self.templates:
            if "{c}" not in template:
                raise UserError(f"expected {{c}} for the class in every prompt template, got '{template}'")
        if not self.templates:
            raise UserError("expected at least one prompt template, got none")
        if self.batch_size is not None and self.batch_size < 1:
            raise UserError(f"expected a batch size of at least 1, got {self.batch_size}")


@dataclass(frozen=True)
class Request:
    """An address, the part after its scheme, and how to load it."""

    address: str
    place: str
    options: ModelOptions = field(default_factory=ModelOptions)


def format_class_name(name: str) -> str:
    """A class name as ImageNet-D's prompts have it: lower case, no dashes or underscores, "a/b" as "a or b"."""
    return " ".join(name.lower().replace("_", " ").replace("-", " ").replace("/", " or ").split())


def fill_templates(space: LabelSpace, templates: Sequence[str]) -> list[list[str]]:
    """Every template filled in for each class, in the order of the labels."""
    return [[template.replace("{c}", format_class_name(name)) for template in templates] for name in space.names]


def read_templates(text: str) -> tuple[str, ...]:
    """A template such as "a sketch of a {c}", or the lines of a text file."""
    if "{c}" in text:
        return (text,)
    if not Path(text).is_file():
        raise UserError(f"expected a prompt template with {{c}} for the class, or a text file of them, got '{text}'")
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"expected a text file of prompt templates in UTF-8, got {text}: {error}") from error
    templates = tuple(line.strip() for line in lines if line.strip())
    without = next((line for line in templates if "{c}" not in line), None)
    if without is not None or not templates:
        found = f"the line '{without}'" if templates else "an empty file"
        raise UserError(f"expected lines with {{c}} for the class in {text}, got {found}")
    return templates


_Side = Annotated[int, Field(gt=0, le=8192)]  # pixels


class Description(BaseModel):
    """`network.json` beside `network.onnx`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    labels: (
        str | tuple[str, ...]
    )  # "imagenet1k", "imagenet1k+background", a text file with one label per line, or the labels themselves
    size: tuple[_Side, _Side] = (224, 224)
    resize: _Side | None = 256
    interpolation: Literal["bilinear", "bicubic", "lanczos"] = "bilinear"
    mean: tuple[float, float, float] = (123.675, 116.28, 103.53)
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat] = (58.395, 57.12, 57.375)
    colour_order: Literal["RGB", "BGR"] = "RGB"
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    scores: Literal["logits", "probabilities", "detect"] = Field(default="detect")
    input: Literal["prepared", "photo"] = "prepared"  # photo: the network prepares it, (1, 3, height, width), 0..255
    note: str = ""  # about the network, for its owner

    @property
    def preprocessing(self) -> Preprocessing:
        """The preprocessing in the description."""
        if self.resize is not None and self.resize < max(self.size):
            raise UserError(f"expected resize of at least the crop {max(self.size)}, got {self.resize}")
        known = self.model_dump(exclude=NO_PREPROCESSING)
        return PhotoInput(**known) if self.input == "photo" else Preprocessing(**known)


def read_description(network: Path, flags: str | None) -> Description:
    """The description of a network: the flag (JSON, or the file that holds it) first, else the JSON beside it."""
    json_file = network.with_suffix(".json")
    if flags is not None:
        text, where = _given(flags)
    elif json_file.is_file():
        text, where = _read(json_file), str(json_file)
    else:
        raise UserError(
            f"expected labels and preprocessing of {network.name}: write {json_file.name} beside it or give --describe,"
            ' for example {"labels": "imagenet1k", "size": [224, 224], "resize": 256}'
        )
    try:
        return Description.model_validate(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"expected JSON, got {where}: {error}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        expected = ", ".join(Description.model_fields)
        raise UserError(f"{where}: '{place}': {fault['msg'].lower()}; expected keys: {expected}") from error


def override_preprocessing(description: Description, known: Preprocessing) -> Preprocessing:
    """The known preprocessing, with the keys that the description gives replaced."""
    given = description.model_fields_set - NO_PREPROCESSING
    return replace(known, **{name: getattr(description, name) for name in given})


def read_labels(description: Description, folder: Path) -> tuple[str, ...]:
    """The name of each output column."""
    if not isinstance(description.labels, str):
        return description.labels
    if description.labels == "imagenet1k":
        return imagenet1k().labels
    if description.labels == WITH_BACKGROUND:
        return (BACKGROUND, *imagenet1k().labels)
    path = folder / description.labels
    if not path.is_file():
        raise UserError(
            f"expected labels 'imagenet1k', '{WITH_BACKGROUND}' or a text file with one label a line,"
            f" got '{description.labels}'"
        )
    return tuple(line.strip() for line in _read(path).splitlines() if line.strip())


def suggest_labels(labels: int, columns: int) -> str:
    """What to do where a network has another number of columns than there are labels."""
    if columns == labels + 1:
        return (
            f'if its first column is a background class, say "labels": "{WITH_BACKGROUND}" or name it in your own list'
        )
    return "give the labels this network was trained on"


def _given(flags: str) -> tuple[str, str]:
    if flags.lstrip().startswith("{"):
        return flags, "--describe"
    path = Path(flags)
    if not path.is_file():
        raise UserError(f"expected JSON or a JSON file for --describe, got '{flags}', which is not there")
    return _read(path), flags


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"expected UTF-8 text, got {path}: {error}") from error
